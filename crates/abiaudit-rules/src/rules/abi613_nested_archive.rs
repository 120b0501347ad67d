//! The wheel has an archive inside, which was not looked into.
//!
//! ## What it does
//! Reports nested wheels and eggs (warning) and lists other zip archives that commonly carry native code: `.zip`,
//! `.jar`, `.pyz`, `.pex` (info). Data formats that happen to be zip (`.npz`, `.xlsx`) are left alone.
//!
//! ## Why is this bad?
//! Native code inside of them is not audited, by this tool or others; a wheel in a wheel can be installed at run
//! time with whatever tags it has.
//!
//! ## Example
//! A package that unpacks a bundled wheel on first import; a jar with `libsnappyjava.so` in it.
//!
//! ## How to mend it
//! Depend on the other distribution instead of shipping its wheel, or audit the inner wheel by itself.
//!
//! ## References
//! PEP 441 (`.pyz`); JAR File Specification.

use abiaudit_elf::FileKind;
use abiaudit_scan::{Content, Member};

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::rules::{count, size};

super::rule!("ABI613", "nested-archive", Warning, "abi613_nested_archive.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let archives =
        audit.subject.members.iter().filter(|m| matches!(m.content, Content::Other(FileKind::Zip)));
    let mut others: Vec<&Member> = Vec::new();
    for member in archives {
        match member
            .base_name()
            .rsplit_once('.')
            .map(|(_, extension)| extension.to_ascii_lowercase())
            .as_deref()
        {
            Some("whl" | "egg") => {
                let message =
                    format!("a package inside the wheel ({}): it was not audited", size(member.size));
                sink.member(&member.name, message).help("depend on it, or audit it by itself");
            }
            Some("zip" | "jar" | "war" | "pyz" | "pyzw" | "pex" | "apk") => others.push(member),
            _ => {}
        }
    }
    if !others.is_empty() {
        let message = format!("{} inside the wheel, not looked into", count(others.len(), "archive"));
        let evidence = others.into_iter().map(|m| Evidence::member(&m.name).with_note(size(m.size)));
        sink.whole(message).severity(Severity::Info).evidence(evidence);
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{TestWheel, Zip};

    use crate::finding::Severity;
    use crate::testing::findings;

    fn wheel(name: &str) -> TestWheel {
        let inner = TestWheel::new("inner", "1", "cp312-cp312-linux_x86_64").file("m.so", "x").bytes();
        TestWheel::new("p", "1", "py3-none-any").file(name, inner)
    }

    #[test]
    fn packages_are_warnings_and_other_archives_notes() {
        let severity = |name| findings("ABI613", &wheel(name)).first().map(|f| f.severity);
        assert_eq!(severity("p/inner-1-cp312-cp312-linux_x86_64.whl"), Some(Severity::Warning));
        assert_eq!(severity("p/inner.egg"), Some(Severity::Warning));
        assert_eq!(severity("p/inner.jar"), Some(Severity::Info));
        assert_eq!(severity("p/inner.npz"), None);
    }

    #[test]
    fn the_name_alone_makes_no_archive() {
        let wheel = TestWheel::new("p", "1", "py3-none-any").file("p/a.whl", "text");
        assert!(findings("ABI613", &wheel).is_empty());
        let empty = Zip::default().write();
        let wheel = TestWheel::new("p", "1", "py3-none-any").file("p/a.whl", empty);
        assert!(findings("ABI613", &wheel).is_empty(), "an archive without members has nothing in it");
    }
}
