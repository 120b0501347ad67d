//! The content runs on older systems than the tag says.
//!
//! ## What it does
//! If all tags hold, compares them with the oldest tag that the content honours by itself. Only for glibc: what
//! older musl releases have cannot be proven from the tables.
//!
//! ## Why is this bad?
//! Nothing fails. Installers on systems between the two tags pass the wheel over and build from source, though it
//! would run there. A `linux_*` tag is not accepted by PyPI at all.
//!
//! ## Example
//! A library of C code without newer functions, built and tagged in a `manylinux_2_28` image, that needs no symbol
//! newer than glibc 2.17.
//!
//! ## How to mend it
//! Give the wheel the older tag, if you want to support these systems; a higher one is a decision too.
//!
//! ## References
//! PEP 600; `auditwheel repair --plat auto`.

use std::cmp::Ordering;

use abiaudit_wheel::PlatformTag;

use crate::audit::Audit;
use crate::finding::Sink;

super::rule!("ABI602", "claim-too-high", Info, "abi602_claim_too_high.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = audit.verdict.as_ref().filter(|v| v.claim_ok) else { return };
    let honoured = PlatformTag::parse(&verdict.tag);
    if !matches!(honoured, PlatformTag::Manylinux { .. }) {
        return;
    }
    for claim in audit.claims.iter().filter(|claim| !claim.requested) {
        let message = match &claim.tag {
            // Only if it is the only promise: `linux_*` beside another tag adds nothing.
            PlatformTag::Linux { .. } if audit.claims.len() == 1 => {
                format!("tagged {}, which promises nothing; the content honours {honoured}", claim.tag)
            }
            tag if honoured.compare_age(tag) == Some(Ordering::Less) => {
                format!("claims {tag}, the content honours {honoured} too")
            }
            _ => continue,
        };
        sink.whole(message).help(format!("tag it {honoured} if these systems shall get it"));
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{findings, findings_with};

    fn wheel(platform: &str, library: &str, version: &str) -> TestWheel {
        let elf = ElfWriter::new(Arch::X86_64)
            .needed(library)
            .undefined_versioned("f", library, version)
            .define("PyInit_m");
        TestWheel::new("p", "1", &format!("cp312-cp312-{platform}")).elf("p/m.so", &elf)
    }

    #[test]
    fn an_older_tag_is_named() {
        let found = findings("ABI602", &wheel("manylinux_2_28_x86_64", "libc.so.6", "GLIBC_2.17"));
        assert_eq!(
            found[0].message,
            "claims manylinux_2_28_x86_64, the content honours manylinux_2_17_x86_64 too"
        );
        assert_eq!(findings("ABI602", &wheel("linux_x86_64", "libc.so.6", "GLIBC_2.17")).len(), 1);
    }

    #[test]
    fn exact_tags_and_broken_promises_are_silent() {
        assert!(findings("ABI602", &wheel("manylinux_2_17_x86_64", "libc.so.6", "GLIBC_2.17")).is_empty());
        // The oldest of several tags is the promise.
        let both = wheel("manylinux_2_17_x86_64.manylinux_2_28_x86_64", "libc.so.6", "GLIBC_2.17");
        assert!(findings("ABI602", &both).is_empty());
        assert!(findings("ABI602", &wheel("manylinux_2_17_x86_64", "libc.so.6", "GLIBC_2.34")).is_empty());
    }

    #[test]
    fn nothing_is_said_of_older_musl_or_of_a_tag_that_was_asked_for() {
        let musl = ElfWriter::new(Arch::X86_64).needed("libc.musl-x86_64.so.1").define("PyInit_m");
        let wheel_musl = TestWheel::new("p", "1", "cp312-cp312-musllinux_1_2_x86_64").elf("p/m.so", &musl);
        assert!(findings("ABI602", &wheel_musl).is_empty());
        let wheel = wheel("manylinux_2_17_x86_64", "libc.so.6", "GLIBC_2.17");
        let asked = findings_with("ABI602", &wheel, |s| s.target = Some("manylinux_2_28_x86_64".to_owned()));
        assert!(asked.is_empty());
    }
}
