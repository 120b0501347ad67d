//! The archive has two files of one name.
//!
//! ## What it does
//! Reports members whose names are the same once `.` and empty components are dropped.
//!
//! ## Why is this bad?
//! Which one is installed depends on the installer: some take the first, most the last. What was audited need not
//! be what runs, so such an archive can hide a file from a check.
//!
//! ## Example
//! A build step that appends to an existing wheel with `zip` or with Python's `zipfile` in mode `a`.
//!
//! ## How to mend it
//! Write the archive anew: `wheel unpack` and `wheel pack`.
//!
//! ## References
//! PKWARE APPNOTE 4.3; PyPI blog, "Preventing ZIP parser confusion attacks on Python package installers" (2025).

use abiaudit_wheel::ArchiveProblem;

use crate::audit::Audit;
use crate::finding::Sink;

super::rule!("ABI608", "duplicate-member", Error, "abi608_duplicate_member.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for problem in &audit.subject.archive_problems {
        if let ArchiveProblem::DuplicateMember { name, members } = problem {
            let message = format!(
                "is {} times in the archive: which one is installed depends on the installer",
                members.len()
            );
            sink.member(name, message).help("write the archive anew: wheel unpack, wheel pack");
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::testing::findings;

    #[test]
    fn the_same_name_twice_is_an_error_and_the_same_content_is_not() {
        let wheel = TestWheel::new("p", "1", "py3-none-any").file("p/a.py", "a").file("p/b.py", "a");
        assert!(findings("ABI608", &wheel).is_empty());
        let found = findings("ABI608", &wheel.file("p/a.py", "another"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].member.as_deref(), Some("p/a.py"));
    }
}
