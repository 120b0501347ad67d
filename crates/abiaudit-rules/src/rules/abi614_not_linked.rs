//! The wheel has build products that no loader opens.
//!
//! ## What it does
//! Lists object files (`ET_REL`), core dumps, static libraries, linker scripts where a library would be, and empty
//! files with a library's name.
//!
//! ## Why is this bad?
//! Nothing fails by them alone. Object files and static libraries are of use only to wheels that serve others for
//! building; an empty file or a linker script in the place of a library fails when something needs it: `file too
//! short`, `invalid ELF header`.
//!
//! ## Example
//! `libnpymath.a` in NumPy (meant for builds); `build/temp/*.o` swept up by a too wide pattern.
//!
//! ## How to mend it
//! Exclude them from the package data, unless others build against them.
//!
//! ## References
//! gABI chapter 4 (`e_type`); ld manual, "Implicit Linker Scripts".

use std::collections::BTreeMap;

use abiaudit_elf::FileKind;
use abiaudit_scan::{Content, Member};

use crate::audit::{Audit, Role};
use crate::finding::{Evidence, Sink};
use crate::rules::{count, size};

super::rule!("ABI614", "not-linked", Info, "abi614_not_linked.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let mut kinds: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
    for entry in audit.objects.iter().filter(|entry| entry.role == Role::NotLinked) {
        kinds.entry("object file").or_default().push(entry.member);
    }
    for member in &audit.subject.members {
        let kind = match &member.content {
            Content::Other(FileKind::StaticArchive) => "static library",
            Content::Other(FileKind::LinkerScript) => "linker script in the place of a library",
            Content::Other(FileKind::Empty) if is_library_name(member.base_name()) => {
                "empty file in the place of a library"
            }
            _ => continue,
        };
        kinds.entry(kind).or_default().push(member);
    }
    for (kind, members) in kinds {
        if let [member] = members.as_slice() {
            sink.member(&member.name, format!("{kind} ({}), which no loader opens", size(member.size)));
            continue;
        }
        let sum = members.iter().fold(0u64, |sum, member| sum.saturating_add(member.size));
        sink.whole(format!(
            "{kind}: {} ({} together), which no loader opens",
            count(members.len(), "file"),
            size(sum)
        ))
        .evidence(members.into_iter().map(|m| Evidence::member(&m.name).with_note(size(m.size))));
    }
}

fn is_library_name(base: &str) -> bool {
    base.ends_with(".so") || base.contains(".so.")
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    fn wheel() -> TestWheel {
        TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64")
    }

    #[test]
    fn each_kind_is_noted_once() {
        let object_file = ElfWriter::new(Arch::X86_64).object_type(1);
        let wheel = wheel()
            .elf("p/a.o", &object_file)
            .elf("p/b.o", &object_file)
            .file("p/liba.a", "!<arch>\n")
            .file("p/libb.so", "/* GNU ld script */\nGROUP ( libb.so.1 )\n")
            .file("p/libc.so.1", "");
        let found = findings("ABI614", &wheel);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().any(|f| f.member.is_none() && f.evidence.len() == 2));
    }

    #[test]
    fn libraries_and_empty_text_files_are_fine() {
        let wheel = wheel().elf("p/m.so", &ElfWriter::new(Arch::X86_64)).file("p/__init__.py", "");
        assert!(findings("ABI614", &wheel).is_empty());
    }
}
