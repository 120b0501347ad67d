//! The archive has a symbolic link.
//!
//! ## What it does
//! Reports members that are symbolic links: an error if the name is a library's or the link leads out of the wheel,
//! else a warning.
//!
//! ## Why is this bad?
//! Wheels have no symbolic links: installers write the link's target as the text of a file. A library of that name
//! is then a few bytes of text: `ImportError: libx.so.1: file too short` or `invalid ELF header`. An installer that
//! did create links could be led out of the environment.
//!
//! ## Example
//! `libfoo.so.1 -> libfoo.so.1.2.3`, packed by `zip --symlinks`.
//!
//! ## How to mend it
//! Ship the library once, under the name in its soname, which is all that the loader asks for.
//!
//! ## References
//! Binary distribution format; pypa/wheel #203 and #400.

use abiaudit_scan::{Content, SubjectKind};

use crate::audit::Audit;
use crate::finding::{Severity, Sink};

super::rule!("ABI611", "symlink-member", Error, "abi611_symlink_member.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    if audit.subject.kind != SubjectKind::Wheel {
        return;
    }
    for member in &audit.subject.members {
        let Content::Symlink(target) = &member.content else { continue };
        let (to, escapes) = match target {
            Some(target) => (format!("to {target}"), escapes(&member.name, target)),
            None => ("whose target cannot be read".to_owned(), true),
        };
        let library = member.base_name().contains(".so");
        let out = if escapes { ", out of the wheel" } else { "" };
        sink.member(
            &member.name,
            format!("is a symbolic link {to}{out}: installers write it as a file of that text"),
        )
        .severity(if library || escapes { Severity::Error } else { Severity::Warning })
        .help("ship the file itself, under the one name that is asked for (the soname)");
    }
}

fn escapes(link: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut depth = link.split('/').count().saturating_sub(1);
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use super::escapes;
    use crate::finding::Severity;
    use crate::testing::findings;

    #[test]
    fn links_are_reported_by_what_they_break() {
        let wheel = TestWheel::new("p", "1", "py3-none-any").file("p/README", "text");
        assert!(findings("ABI611", &wheel).is_empty());
        let severity = |name, target| findings("ABI611", &wheel.clone().symlink(name, target))[0].severity;
        assert_eq!(severity("p/READ", "README"), Severity::Warning);
        assert_eq!(severity("p/libx.so.1", "libx.so.1.0"), Severity::Error);
        assert_eq!(severity("p/passwd", "../../../etc/passwd"), Severity::Error);
    }

    #[test]
    fn a_link_may_go_up_as_far_as_it_is_deep() {
        assert!(!escapes("a/b/c", "../../d"));
        assert!(escapes("a/b/c", "../../../d"));
        assert!(!escapes("a/b", "./x/../../c"));
        assert!(escapes("a", "/etc"));
    }
}
