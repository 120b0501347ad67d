//! Objects of several architectures are in one wheel.
//!
//! ## What it does
//! Where the tags name no architecture or several, tells of objects of more than one. (With one architecture in the
//! tags, ABI105 names the objects that are of another.)
//!
//! ## Why is this bad?
//! Each user downloads code that their machine cannot run, an audit judges only the most common architecture, and an
//! installer cannot choose. It works if the package picks the right file itself.
//!
//! ## Example
//! A `py3-none-any` wheel with `lib/x86_64/libfoo.so` and `lib/aarch64/libfoo.so` that `ctypes` opens by
//! `platform.machine()`.
//!
//! ## How to mend it
//! Build one wheel for each platform.
//!
//! ## References
//! PEP 425 (platform tags).

use std::collections::BTreeMap;

use super::abi105_wrong_architecture::{is_host_code, names_one};
use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI106", "mixed-architecture", Warning, "abi106_mixed_architecture.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    if names_one(audit) {
        return;
    }
    let mut by_machine: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for entry in audit.objects.iter().filter(|o| is_host_code(o)) {
        by_machine.entry(entry.object.identity.machine_name()).or_default().push(&entry.member.name);
    }
    if by_machine.len() < 2 {
        return;
    }
    let names: Vec<String> =
        by_machine.iter().map(|(m, members)| format!("{m} ({})", members.len())).collect();
    let evidence = by_machine.iter().filter_map(|(machine, members)| {
        Some(Evidence::member(*members.first()?).with_note(machine.clone()))
    });
    sink.whole(format!("has objects of several architectures: {}", names.join(", ")))
        .help("build one wheel for each platform")
        .evidence(evidence);
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    #[test]
    fn several_architectures_under_a_tag_without_one() {
        let wheel = TestWheel::new("p", "1", "py3-none-any")
            .elf("p/x86/l.so", &module())
            .elf("p/arm/l.so", &ElfWriter::new(Arch::Aarch64));
        let found = findings("ABI106", &wheel);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message, "has objects of several architectures: aarch64 (1), x86_64 (1)");
    }

    #[test]
    fn silent_with_one_architecture_and_where_the_tag_names_one() {
        let one = TestWheel::new("p", "1", "py3-none-any").elf("p/l.so", &module());
        assert!(findings("ABI106", &one).is_empty());
        let tagged = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module())
            .elf("p/l.so", &ElfWriter::new(Arch::Aarch64));
        assert!(findings("ABI106", &tagged).is_empty());
    }
}
