//! The zip archive is damaged or made to deceive.
//!
//! ## What it does
//! Reports members that cannot be read (encrypted, unknown compression, wrong checksum or size, out of bounds, far
//! larger than their data), members whose bytes overlap, local headers that contradict the directory, a wrong number
//! of entries (errors), and bytes before, between or after the archive's parts (warnings).
//!
//! ## Why is this bad?
//! Installers refuse the wheel, or read something else from it than others do; overlapping or exaggerated members
//! fill disks. What cannot be read here was not audited.
//!
//! ## Example
//! An upload that was cut and completed; a self-extractor in front of the archive; a zip bomb.
//!
//! ## How to mend it
//! Pack the wheel again; compare its hash with the one that the build printed.
//!
//! ## References
//! PKWARE APPNOTE 4.3; D. Fifield, "A better zip bomb" (WOOT 2019); PyPI blog, "Preventing ZIP parser confusion
//! attacks on Python package installers" (2025).

use std::collections::BTreeSet;

use abiaudit_scan::Content;
use abiaudit_wheel::ArchiveProblem;
use abiaudit_wheel::archive::HeaderField;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::rules::size;

super::rule!("ABI610", "archive-structure", Error, "abi610_archive_structure.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for problem in &audit.subject.archive_problems {
        report(audit, problem, sink, &mut told);
    }
    // What the structure does not show: corrupt data, wrong checksums, files that the system would not give.
    for member in &audit.subject.members {
        if let Content::Unreadable(error) = &member.content
            && !told.contains(member.name.as_str())
        {
            let error = error.strip_prefix(&format!("{}: ", member.name)).unwrap_or(error);
            sink.member(&member.name, format!("cannot be read, so it was not audited: {error}"));
        }
    }
}

fn report<'a>(audit: &'a Audit<'_>, problem: &ArchiveProblem, sink: &mut Sink, told: &mut BTreeSet<&'a str>) {
    let name_of = |index: usize| audit.subject.archive_names.get(index).map_or("", String::as_str);
    let mut about = |sink: &mut Sink, index: usize, message: String| {
        told.insert(name_of(index));
        sink.member(name_of(index), message);
    };
    match problem {
        ArchiveProblem::OverlappingMembers { members, into_directory } => {
            told.extend(members.iter().map(|&index| name_of(index)));
            let with = if *into_directory { " and the archive's directory" } else { "" };
            sink.whole(format!("the bytes of {} members{with} overlap: they were not read", members.len()))
                .evidence(members.iter().map(|&index| Evidence::member(name_of(index))));
        }
        ArchiveProblem::Encrypted { member } => {
            about(sink, *member, "is encrypted: installers cannot read it".to_owned());
        }
        ArchiveProblem::UnsupportedMethod { member, method } => {
            about(sink, *member, format!("has the compression {method}, which was not read"));
        }
        ArchiveProblem::NoLocalHeader { member, offset } => {
            about(sink, *member, format!("has no local header at offset {offset}"));
        }
        ArchiveProblem::SizeLie { member, size, compressed_size } => {
            let message = format!("declares {size} bytes from {compressed_size}, which cannot be");
            about(sink, *member, message);
        }
        ArchiveProblem::TooLarge { member, size: bytes } => {
            about(sink, *member, format!("declares {}, more than is read of one member", size(*bytes)));
        }
        ArchiveProblem::BombRatio { member, ratio } => {
            about(sink, *member, format!("declares to become {ratio} times as large as it is: not read"));
        }
        ArchiveProblem::TotalTooLarge { member } => {
            let message = "from here on the archive declares more than is read of one archive".to_owned();
            about(sink, *member, message);
        }
        ArchiveProblem::HeaderMismatch { member, fields } => {
            // A missing data descriptor hides nothing: readers go by the directory.
            let harmless = fields.iter().all(|field| matches!(field, HeaderField::DataDescriptor));
            sink.member(name_of(*member), "its local header contradicts the archive's directory")
                .severity(if harmless { Severity::Warning } else { Severity::Error })
                .evidence(fields.iter().map(|field| Evidence::note(contradiction(field))));
        }
        ArchiveProblem::EntryCount { declared, found } => {
            sink.whole(format!("the archive declares {declared} members and has {found}"));
        }
        ArchiveProblem::DirectoryTrailer { offset } => {
            sink.whole(format!("bytes at offset {offset} of the archive's directory are no entry"))
                .severity(Severity::Warning);
        }
        ArchiveProblem::PrefixData { bytes } => {
            sink.whole(format!("{} before the first member", size(*bytes))).severity(Severity::Warning);
        }
        ArchiveProblem::TrailingData { bytes } => {
            sink.whole(format!("{} after the end of the archive", size(*bytes))).severity(Severity::Warning);
        }
        // ABI608, ABI609 and ABI611.
        ArchiveProblem::DuplicateMember { .. }
        | ArchiveProblem::UnsafeName { .. }
        | ArchiveProblem::FileDirectoryClash { .. }
        | ArchiveProblem::Symlink { .. } => {}
    }
}

fn contradiction(field: &HeaderField) -> String {
    match field {
        HeaderField::Name { local } => format!("another name: {local:?}"),
        HeaderField::Method { local } => format!("another compression: {local}"),
        HeaderField::Encryption { local: true } => "encrypted only in the local header".to_owned(),
        HeaderField::Encryption { local: false } => "encrypted only in the directory".to_owned(),
        HeaderField::CompressedSize { local } => format!("another compressed size: {local}"),
        HeaderField::Size { local } => format!("another size: {local}"),
        HeaderField::Crc32 { local } => format!("another checksum: {local:08x}"),
        HeaderField::DataDescriptor => "no data descriptor where one is promised".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Entry, TestWheel};

    use crate::finding::{Finding, Severity};
    use crate::testing::findings;

    fn wheel(change: impl FnOnce(&mut Entry)) -> TestWheel {
        TestWheel::new("p", "1", "py3-none-any").entry("p/a.py", "content", change)
    }

    fn only(wheel: &TestWheel) -> Finding {
        let mut found = findings("ABI610", wheel);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn what_cannot_be_read_is_an_error_told_once() {
        let broken = [
            wheel(|e| e.flags |= 1),
            wheel(|e| e.method = 99),
            wheel(|e| e.crc32 ^= 1),
            wheel(|e| e.size += 1),
            wheel(|e| {
                e.method = 8;
                e.data = vec![0xff; 7];
            }),
        ];
        for wheel in broken {
            let finding = only(&wheel);
            assert_eq!(finding.severity, Severity::Error);
            assert_eq!(finding.member.as_deref(), Some("p/a.py"));
        }
    }

    #[test]
    fn a_local_header_with_another_name_is_an_error() {
        let finding = only(&wheel(|e| e.local_name = Some(b"p/b.py".to_vec())));
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(finding.evidence[0].note.as_deref(), Some("another name: \"p/b.py\""));
    }

    #[test]
    fn overlapping_members_are_one_finding() {
        let wheel = wheel(|_| {}).entry("p/b.py", "content", |e| e.same_as = Some(0)).entry(
            "p/c.py",
            "content",
            |e| e.same_as = Some(0),
        );
        let found = findings("ABI610", &wheel);
        assert_eq!(found.iter().filter(|f| f.member.is_none()).count(), 1);
        assert!(found.iter().all(|f| f.severity == Severity::Error));
    }

    #[test]
    fn bytes_around_the_archive_are_warnings() {
        assert_eq!(only(&wheel(|_| {}).prefix("#!/bin/sh\n")).severity, Severity::Warning);
        assert_eq!(only(&wheel(|_| {}).trailing("more")).severity, Severity::Warning);
    }

    #[test]
    fn a_clean_archive_is_silent() {
        assert!(findings("ABI610", &wheel(|_| {})).is_empty());
    }
}
