//! RECORD does not describe the wheel.
//!
//! ## What it does
//! Compares RECORD with the members: files that it does not list, rows without a file, wrong hashes and sizes,
//! paths that leave the wheel, weak or missing hashes. Members are found through the archive, never through RECORD,
//! and nothing that RECORD names is opened outside of the wheel. In an installed tree only hashes and sizes are
//! compared, since installers add rows of their own.
//!
//! ## Why is this bad?
//! The format says that installation fails if a file is not listed or its hash is wrong; some installers do so,
//! others install whatever is there, and PyPI refuses wheels whose files and RECORD differ. A file that RECORD does
//! not list stays behind on removal, and tools that trust RECORD never look at it.
//!
//! ## Example
//! A wheel from which a library was removed, or into which one was copied, with `zip` and without a new RECORD.
//!
//! ## How to mend it
//! Repack with a tool that writes RECORD: `wheel unpack` and `wheel pack`.
//!
//! ## References
//! PEP 376, 427 and 627; "Recording installed projects"; PyPI blog, "Preventing ZIP parser confusion attacks on
//! Python package installers" (2025).

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_scan::{Content, Member, SubjectKind};
use abiaudit_wheel::DistInfoProblem;
use abiaudit_wheel::distinfo::record::{ActualMember, PathDefect, RecordProblem, compare};

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::rules::count;

super::rule!("ABI606", "record-mismatch", Error, "abi606_record_mismatch.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(info) = &audit.subject.dist_info else { return };
    let mut problems = Vec::new();
    for problem in &info.problems {
        match problem {
            DistInfoProblem::MissingFile { file: "RECORD" } => {
                sink.whole("RECORD is missing: installers refuse the wheel")
                    .help("repack with a tool that writes RECORD");
            }
            DistInfoProblem::Unreadable { file: "RECORD", error } => {
                sink.whole(format!("RECORD cannot be read: {error}"));
            }
            DistInfoProblem::TooLarge { file: "RECORD", size, limit } => {
                sink.whole(format!("RECORD has {size} bytes; {limit} were read")).severity(Severity::Warning);
            }
            DistInfoProblem::Record(problem) => problems.push(problem.clone()),
            _ => {}
        }
    }
    if let Some(record) = &info.record {
        let compared = compare(record, audit.subject.members.iter().map(actual));
        let whole = audit.subject.kind == SubjectKind::Wheel;
        problems.extend(compared.into_iter().filter(|problem| whole || is_about_content(problem)));
    }
    report(audit, problems, sink);
}

/// A symbolic link has no content of its own that RECORD could be right about.
fn actual(member: &Member) -> ActualMember<'_> {
    let readable = !matches!(member.content, Content::Unreadable(_) | Content::Symlink(_));
    ActualMember { name: &member.name, size: readable.then_some(member.size), sha256: member.sha256 }
}

fn is_about_content(problem: &RecordProblem) -> bool {
    matches!(problem, RecordProblem::HashMismatch { .. } | RecordProblem::SizeMismatch { .. })
}

/// One finding for each kind of problem, with all files it is about.
fn report(audit: &Audit<'_>, problems: Vec<RecordProblem>, sink: &mut Sink) {
    let elf: BTreeSet<&str> = audit
        .subject
        .members
        .iter()
        .filter(|m| matches!(m.content, Content::Object(_) | Content::BrokenElf(_)))
        .map(|m| m.name.as_str())
        .collect();
    let mut kinds: BTreeMap<Kind, Vec<(String, Option<String>)>> = BTreeMap::new();
    for problem in problems {
        let (kind, path, note) = classify(problem, &elf);
        kinds.entry(kind).or_default().push((path, note));
    }
    for (kind, files) in kinds {
        let severity = kind.severity();
        let finding = match files.as_slice() {
            [(path, note)] if !path.is_empty() => {
                let note = note.as_ref().map(|n| format!(" ({n})")).unwrap_or_default();
                sink.member(path, format!("{}{note}", kind.text()))
            }
            _ => {
                let total = count(files.len(), "file");
                let more = files.len().saturating_sub(MOST_FILES);
                let evidence = files.into_iter().take(MOST_FILES).map(|(path, note)| Evidence {
                    member: (!path.is_empty()).then_some(path),
                    note,
                    ..Evidence::default()
                });
                let rest = (more > 0).then(|| Evidence::note(format!("and {}", count(more, "more file"))));
                sink.whole(format!("{}: {total}", kind.text())).evidence(evidence).evidence(rest)
            }
        };
        finding.severity(severity).help("repack with a tool that writes RECORD (wheel unpack, wheel pack)");
    }
}

/// How many files of a kind are listed. A RECORD of a million rows that name no file is not worth a report of a million
/// lines.
const MOST_FILES: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    NotText,
    UnsafePath,
    NativeNotListed,
    NotListed,
    Ghost,
    WrongHash,
    WrongSize,
    BadRow,
    BadHash,
    NoHash,
    WeakHash,
    Twice,
    NotChecked,
    Directory,
}

impl Kind {
    fn text(self) -> &'static str {
        match self {
            Self::NotText => "RECORD is not a table that can be read",
            Self::UnsafePath => "RECORD lists a path that leaves the wheel",
            Self::NativeNotListed => "native code that RECORD does not list",
            Self::NotListed => "not listed in RECORD",
            Self::Ghost => "listed in RECORD, but not in the wheel",
            Self::WrongHash => "another hash than RECORD says",
            Self::WrongSize => "another size than RECORD says",
            Self::BadRow => "row of RECORD that is not of the form path,hash,size",
            Self::BadHash => "RECORD has a hash that is not of the form sha256=BASE64 for it",
            Self::NoHash => "RECORD has no hash for it",
            Self::WeakHash => "RECORD has a hash that is not allowed for it",
            Self::Twice => "listed twice in RECORD",
            Self::NotChecked => "RECORD has a hash that was not checked",
            Self::Directory => "RECORD lists a directory",
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::NotText
            | Self::UnsafePath
            | Self::NativeNotListed
            | Self::NotListed
            | Self::Ghost
            | Self::WrongHash
            | Self::WrongSize => Severity::Error,
            Self::BadRow | Self::BadHash | Self::NoHash | Self::WeakHash | Self::Twice => Severity::Warning,
            Self::NotChecked | Self::Directory => Severity::Info,
        }
    }
}

fn classify(problem: RecordProblem, elf: &BTreeSet<&str>) -> (Kind, String, Option<String>) {
    match problem {
        RecordProblem::NotUtf8 => (Kind::NotText, String::new(), Some("not UTF-8".to_owned())),
        RecordProblem::NotCsv { line } => {
            let line = line.map_or("somewhere".to_owned(), |line| format!("from line {line} on"));
            (Kind::NotText, String::new(), Some(format!("not CSV {line}")))
        }
        RecordProblem::Columns { line, found } => {
            (Kind::BadRow, String::new(), Some(format!("line {line} has {found} columns")))
        }
        RecordProblem::UnsafePath { path, reason } => {
            let reason = match reason {
                PathDefect::Absolute => "absolute",
                PathDefect::ParentTraversal => "through ..",
                PathDefect::Backslash => "with a backslash",
            };
            (Kind::UnsafePath, path, Some(reason.to_owned()))
        }
        RecordProblem::Duplicate { path, line } => (Kind::Twice, path, Some(format!("again in line {line}"))),
        RecordProblem::MissingHash { path } => (Kind::NoHash, path, None),
        RecordProblem::BadHash { path, value } => (Kind::BadHash, path, Some(value)),
        RecordProblem::BadSize { path, value } => (Kind::BadRow, path, Some(value)),
        RecordProblem::WeakHash { path, algorithm } => (Kind::WeakHash, path, Some(algorithm)),
        RecordProblem::HashNotChecked { path, algorithm } => (Kind::NotChecked, path, Some(algorithm)),
        RecordProblem::DirectoryListed { path } => (Kind::Directory, path, None),
        RecordProblem::NotListed { name } if elf.contains(name.as_str()) => {
            (Kind::NativeNotListed, name, None)
        }
        RecordProblem::NotListed { name } => (Kind::NotListed, name, None),
        RecordProblem::Ghost { path } => (Kind::Ghost, path, None),
        RecordProblem::HashMismatch { path, expected, found } => {
            (Kind::WrongHash, path, Some(format!("sha256 {expected} listed, {found} found")))
        }
        RecordProblem::SizeMismatch { path, expected, found } => {
            (Kind::WrongSize, path, Some(format!("{expected} bytes listed, {found} found")))
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    fn wheel() -> TestWheel {
        TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64")
            .elf("p/m.so", &ElfWriter::new(Arch::X86_64).define("PyInit_m"))
            .file("p/a.py", "a")
            .file("p/b.py", "b")
    }

    fn only(wheel: &TestWheel) -> (Severity, Option<String>, String) {
        let found = findings("ABI606", wheel);
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].severity, found[0].member.clone(), found[0].message.clone())
    }

    #[test]
    fn a_true_record_is_silent() {
        assert!(findings("ABI606", &wheel()).is_empty());
        let signed = wheel().file("p-1.dist-info/RECORD.jws", "{}").unlisted("p-1.dist-info/RECORD.jws");
        assert!(findings("ABI606", &signed).is_empty());
    }

    #[test]
    fn files_and_rows_without_counterpart_are_errors() {
        let (severity, member, message) = only(&wheel().unlisted("p/m.so"));
        assert_eq!((severity, member.as_deref()), (Severity::Error, Some("p/m.so")));
        assert!(message.starts_with("native code"));
        let both = wheel().unlisted("p/a.py").unlisted("p/b.py");
        assert_eq!(only(&both).2, "not listed in RECORD: 2 files");
        assert_eq!(
            only(&wheel().record_row("p/gone.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0")).0,
            Severity::Error
        );
    }

    #[test]
    fn wrong_hashes_are_errors_and_weak_ones_warnings() {
        assert_eq!(only(&wheel().wrong_hash("p/m.so")).0, Severity::Error);
        let weak =
            wheel().file("p/c.py", "c").unlisted("p/c.py").record_row("p/c.py,md5=SoqH8Ox7mJNqF_9Ap0XQHA,1");
        let found = findings("ABI606", &weak);
        assert!(found.iter().any(|f| f.severity == Severity::Warning && f.message.contains("not allowed")));
    }

    #[test]
    fn a_missing_record_and_a_path_out_of_the_wheel_are_errors() {
        assert_eq!(only(&wheel().without("RECORD")).0, Severity::Error);
        let found = findings("ABI606", &wheel().record_row("/usr/bin/env,,"));
        assert!(
            found.iter().any(|f| f.message.contains("leaves the wheel") && f.severity == Severity::Error)
        );
    }

    #[test]
    fn a_record_without_end_is_counted_and_not_listed() {
        let row = |number: usize| format!("p/ghost{number}.py,sha256={},1", "A".repeat(43));
        let wheel = (0..super::MOST_FILES + 5)
            .fold(TestWheel::new("p", "1", "py3-none-any"), |wheel, number| wheel.record_row(&row(number)));
        let found = findings("ABI606", &wheel);
        let ghosts = found.iter().find(|f| f.message.contains("not in the wheel")).unwrap();
        assert!(ghosts.message.ends_with("10005 files"), "{}", ghosts.message);
        assert_eq!(ghosts.evidence.len(), super::MOST_FILES + 1);
        assert_eq!(ghosts.evidence.last().unwrap().note.as_deref(), Some("and 5 more files"));
    }
}
