//! The same library is in the wheel several times.
//!
//! ## What it does
//! Groups libraries and programs of the same content, and those of the same build-id and soname (copies that a tool
//! edited). Different builds of one library are not meant. Only wheels are looked at: elsewhere such files may be
//! links.
//!
//! ## Why is this bad?
//! Each copy is downloaded, stored, and, if loaded under two names, initialised twice: two sets of global variables,
//! callbacks registered in one and called in the other.
//!
//! ## Example
//! `libtbb.so`, `libtbb.so.12` and `libtbb.so.12.14`: symbolic links in the build tree, three full copies in the
//! wheel, since wheels have no links.
//!
//! ## How to mend it
//! Ship each library once, under the name in its soname; nothing at run time asks for the others.
//!
//! ## References
//! pypa/wheel #203 and #400; auditwheel #231.

use std::collections::BTreeMap;

use abiaudit_scan::SubjectKind;

use crate::audit::{Audit, AuditObject};
use crate::finding::{Evidence, Sink};
use crate::rules::size;

super::rule!("ABI616", "duplicate-vendored-copy", Warning, "abi616_duplicate_vendored_copy.rs");

/// What makes two files the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Sameness {
    Content([u8; 32]),
    Build { id: Vec<u8>, soname: String },
}

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    // In a directory these may be links, which are read as the files that they point to.
    if audit.subject.kind != SubjectKind::Wheel {
        return;
    }
    let mut groups: BTreeMap<Sameness, Vec<&AuditObject<'_>>> = BTreeMap::new();
    for (_, entry) in audit.loadable() {
        if let Some(sameness) = sameness(entry) {
            groups.entry(sameness).or_default().push(entry);
        }
    }
    for copies in groups.values().filter(|copies| copies.len() > 1) {
        report(copies, sink);
    }
}

/// By build-id where there is one: copies with another RPATH are copies too.
fn sameness(entry: &AuditObject<'_>) -> Option<Sameness> {
    let soname = entry.object.dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text);
    match (&entry.object.notes.build_id, soname) {
        // A build-id of a few bytes is a fixed text rather than a hash of the content (ld --build-id).
        (Some(id), Some(soname)) if id.len() >= 8 => Some(Sameness::Build { id: id.clone(), soname }),
        _ => entry.member.sha256.map(Sameness::Content),
    }
}

fn report(copies: &[&AuditObject<'_>], sink: &mut Sink) {
    let Some((first, others)) = copies.split_first() else { return };
    let bytes: u64 = others.iter().fold(0u64, |sum, copy| sum.saturating_add(copy.member.size));
    let packed: u64 = others.iter().fold(0u64, |sum, copy| sum.saturating_add(copy.member.compressed_size));
    let equal = copies.iter().all(|copy| copy.member.sha256 == first.member.sha256);
    let what = if equal { "the same content" } else { "the same build (build-id and soname)" };
    let message =
        format!("{what} as {}: {} more unpacked, {} packed", list(others), size(bytes), size(packed));
    let help = match &first.object.dynamic.soname {
        Some(soname) => format!("ship it once, as {soname}"),
        None => "ship it once".to_owned(),
    };
    sink.member(&first.member.name, message).help(help).evidence(
        copies.iter().map(|copy| Evidence::member(&copy.member.name).with_note(size(copy.member.size))),
    );
}

fn list(copies: &[&AuditObject<'_>]) -> String {
    match copies {
        [one] => one.member.name.clone(),
        many => format!("{} other files", many.len()),
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    fn library(id: u8) -> ElfWriter {
        ElfWriter::new(Arch::X86_64).soname("libtbb.so.12").build_id(&[id; 20]).define("f")
    }

    fn wheel() -> TestWheel {
        TestWheel::new("p", "1", "py3-none-manylinux_2_17_x86_64")
    }

    #[test]
    fn flattened_links_are_one_finding() {
        let wheel = wheel()
            .elf("p/libtbb.so", &library(1))
            .elf("p/libtbb.so.12", &library(1))
            .elf("p/libtbb.so.12.14", &library(1));
        let found = findings("ABI616", &wheel);
        assert_eq!((found.len(), found[0].evidence.len()), (1, 3));
        assert!(found[0].message.starts_with("the same content as 2 other files"), "{}", found[0].message);
    }

    #[test]
    fn edited_copies_are_the_same_build() {
        let wheel =
            wheel().elf("a/libtbb.so.12", &library(1)).elf("b/libtbb.so.12", &library(1).runpath("$ORIGIN"));
        assert!(findings("ABI616", &wheel)[0].message.starts_with("the same build"));
    }

    #[test]
    fn two_builds_of_one_library_are_two_libraries() {
        let wheel = wheel().elf("a/libtbb.so.12", &library(1)).elf("b/libtbb.so.12", &library(2));
        assert!(findings("ABI616", &wheel).is_empty());
        // The same build-id under two sonames: a renamed graft, which the loader keeps apart on purpose.
        let renamed = library(1).soname("libtbb-1234.so.12");
        let wheel = self::wheel().elf("a/libtbb.so.12", &library(1)).elf("b/libtbb-1234.so.12", &renamed);
        assert!(findings("ABI616", &wheel).is_empty());
    }
}
