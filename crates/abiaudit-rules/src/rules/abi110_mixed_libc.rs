//! An object was linked against the other C library than the tag names.
//!
//! ## What it does
//! Tells glibc from musl objects by the loader that they ask for and the C library that they NEED, and compares with
//! each claimed tag. Static programs belong to neither.
//!
//! ## Why is this bad?
//! `libc.musl-x86_64.so.1: cannot open shared object file` on a glibc system, or `Error loading shared library
//! ld-linux-x86-64.so.2` on Alpine; a program ends with `No such file or directory`.
//!
//! ## Example
//! A binary of an npm or Rust tool for musl that was copied into the manylinux wheel.
//!
//! ## How to mend it
//! Build it for the tag's C library, link it statically, or leave it out.
//!
//! ## References
//! PEP 600; PEP 656.

use abiaudit_policy::Libc;
use abiaudit_wheel::PlatformTag;

use crate::audit::{Audit, Role};
use crate::finding::{Severity, Sink};

super::rule!("ABI110", "mixed-libc", Error, "abi110_mixed_libc.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for claim in &audit.claims {
        let claimed = match claim.tag {
            PlatformTag::Manylinux { .. } => Libc::Glibc,
            PlatformTag::Musllinux { .. } => Libc::Musl,
            _ => continue,
        };
        for (_, entry) in audit.counted() {
            let Some(libc) = entry.libc.filter(|libc| *libc != claimed) else { continue };
            // Some packages carry a build for each C library and choose at run time; an extension cannot.
            let severity = match entry.role {
                Role::Extension(_) => Severity::Error,
                _ if both(audit) => Severity::Info,
                _ => Severity::Error,
            };
            sink.member(&entry.member.name, format!("is linked against {libc}, under the tag {}", claim.tag))
                .severity(severity)
                .help(format!("build it for {claimed}, link it statically, or leave it out"));
        }
    }
}

/// There are programs or libraries of both kinds.
fn both(audit: &Audit<'_>) -> bool {
    let plain =
        |libc| audit.counted().any(|(_, o)| o.libc == Some(libc) && !matches!(o.role, Role::Extension(_)));
    plain(Libc::Glibc) && plain(Libc::Musl)
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::{TAGS, findings, module};

    fn musl() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).needed("libc.musl-x86_64.so.1")
    }

    #[test]
    fn objects_of_the_other_libc_than_the_tag() {
        let wheel = TestWheel::new("p", "1", TAGS).elf("p/m.so", &musl().define("PyInit_m"));
        let found = findings("ABI110", &wheel);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].severity, found[0].member.as_deref()), (Severity::Error, Some("p/m.so")));
        let wheel = TestWheel::new("p", "1", "cp312-cp312-musllinux_1_2_x86_64").elf("p/m.so", &module());
        assert_eq!(findings("ABI110", &wheel).len(), 1);
    }

    #[test]
    fn two_builds_of_a_tool_are_information() {
        let glibc = ElfWriter::new(Arch::X86_64).needed("libc.so.6");
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module())
            .elf("p/linux/tool.so", &glibc)
            .elf("p/linuxmusl/tool.so", &musl());
        let found = findings("ABI110", &wheel);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Info);
    }

    #[test]
    fn static_files_belong_to_neither() {
        let wheel = TestWheel::new("p", "1", "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64")
            .elf("p/tool", &ElfWriter::new(Arch::X86_64).object_type(2));
        assert!(findings("ABI110", &wheel).is_empty());
    }
}
