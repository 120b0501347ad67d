//! A member's name is not a path that is safe to install.
//!
//! ## What it does
//! Reports member names that are absolute, contain `..`, backslashes, drive letters or control characters, are not
//! UTF-8, are empty or too long for a file system, and names that are a file for one member and a directory for
//! another.
//!
//! ## Why is this bad?
//! An installer that follows such a name writes outside of the environment; one that does not refuses the wheel or
//! installs the file under another name.
//!
//! ## Example
//! `../../../etc/cron.d/job`; `pkg\lib\a.so` from an archiver on Windows.
//!
//! ## How to mend it
//! Pack the wheel with a packaging tool rather than with a general archiver.
//!
//! ## References
//! PKWARE APPNOTE 4.4.17; CWE-22 ("zip slip").

use abiaudit_wheel::ArchiveProblem;
use abiaudit_wheel::archive::NameDefect;

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI609", "unsafe-member-name", Error, "abi609_unsafe_member_name.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let name_of = |index: &usize| audit.subject.archive_names.get(*index).map_or("", String::as_str);
    for problem in &audit.subject.archive_problems {
        match problem {
            ArchiveProblem::UnsafeName { member, reason } => {
                sink.member(name_of(member), format!("the member's name {}", defect(*reason)))
                    .help("pack the wheel with a packaging tool");
            }
            ArchiveProblem::FileDirectoryClash { file, directory } => {
                sink.member(name_of(file), "is a file, and another member needs a directory of that name")
                    .evidence([Evidence::member(name_of(directory))]);
            }
            _ => {}
        }
    }
}

fn defect(reason: NameDefect) -> &'static str {
    match reason {
        NameDefect::Absolute => "is an absolute path",
        NameDefect::ParentTraversal => "has a .. component: it leads out of the wheel",
        NameDefect::Backslash => "has a backslash, which separates directories on Windows",
        NameDefect::DriveLetter => "begins with a drive letter",
        NameDefect::NotUtf8 => "is not UTF-8",
        NameDefect::Empty => "has no component",
        NameDefect::ControlCharacter => "has a control character",
        NameDefect::ComponentTooLong => {
            "has a component of more than 255 bytes, which most file systems refuse"
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::testing::findings;

    fn wheel(name: &str) -> TestWheel {
        TestWheel::new("p", "1", "py3-none-any").file(name, "content")
    }

    #[test]
    fn names_that_lead_elsewhere_are_errors() {
        for name in ["../a.py", "/a.py", "p\\a.py", "C:/a.py", "p/\u{1}.py", &"a".repeat(300)] {
            assert_eq!(findings("ABI609", &wheel(name)).len(), 1, "{name:?}");
        }
    }

    #[test]
    fn a_file_cannot_be_a_directory_too() {
        assert_eq!(findings("ABI609", &wheel("p/a").file("p/a/b.py", "")).len(), 1);
    }

    #[test]
    fn odd_but_harmless_names_are_fine() {
        for name in ["p/a..py", "p/ä.py", "p/a b.py", "..p/a.py", "p/c:d.py"] {
            assert!(findings("ABI609", &wheel(name)).is_empty(), "{name:?}");
        }
    }
}
