//! Platform tag and native code do not go together.
//!
//! ## What it does
//! Reports a wheel for any platform that has ELF files which a loader opens (error), and notes a wheel with a Linux
//! tag that has none.
//!
//! ## Why is this bad?
//! A wheel tagged `any` is installed on every system and architecture, where its native code fails: `wrong ELF
//! class`, `invalid ELF header`. The other way round nothing fails, but every platform needs a wheel of its own for
//! the same content.
//!
//! ## Example
//! A `py3-none-any` wheel of a project whose `setup.py` puts prebuilt libraries into the package data.
//!
//! ## How to mend it
//! Tag wheels with native code for their platform (setuptools: `has_ext_modules`, hatchling: `pure_python = false`);
//! tag others `py3-none-any`.
//!
//! ## References
//! PEP 425; auditwheel #47 and #660.

use abiaudit_scan::{Content, SubjectKind};
use abiaudit_wheel::PlatformTag;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::rules::count;

super::rule!("ABI604", "platform-tag-mismatch", Error, "abi604_platform_tag_mismatch.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let any = audit.platform_tags.contains(&PlatformTag::Any);
    let native: Vec<&str> = audit.loadable().map(|(_, entry)| entry.member.name.as_str()).collect();
    if any && audit.settings.target.is_none() && !native.is_empty() {
        let message = format!(
            "tagged for any platform, but has native code for Linux: {}",
            count(native.len(), "file")
        );
        sink.whole(message)
            .help("give it the platform tag that its code honours")
            .evidence(native.into_iter().map(Evidence::member));
        return;
    }
    let unread = |content: &Content| matches!(content, Content::BrokenElf(_) | Content::Unreadable(_));
    let linux = audit.platform_tags.iter().find(|tag| tag.is_linux());
    // Scripts of an installed distribution lie outside of its directory.
    if let Some(tag) = linux
        && audit.subject.kind == SubjectKind::Wheel
        && audit.objects.is_empty()
        && !audit.subject.members.iter().any(|member| unread(&member.content))
    {
        sink.whole(format!("tagged {tag}, but has no native code"))
            .severity(Severity::Info)
            .help("tag it py3-none-any if one wheel can serve all systems");
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    fn elf() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("f")
    }

    #[test]
    fn native_code_for_any_platform_is_an_error() {
        let wheel = TestWheel::new("p", "1", "py3-none-any").elf("p/lib.so", &elf());
        let found = findings("ABI604", &wheel);
        assert_eq!(found[0].severity, Severity::Error);
        assert_eq!(found[0].evidence[0].member.as_deref(), Some("p/lib.so"));
    }

    #[test]
    fn a_linux_tag_without_code_is_noted() {
        let wheel = TestWheel::new("p", "1", "py3-none-manylinux_2_17_x86_64").file("p/__init__.py", "");
        assert_eq!(findings("ABI604", &wheel)[0].severity, Severity::Info);
    }

    #[test]
    fn pure_and_native_wheels_with_fitting_tags_are_fine() {
        let pure = TestWheel::new("p", "1", "py3-none-any").file("p/__init__.py", "");
        assert!(findings("ABI604", &pure).is_empty());
        // An object file in a pure wheel is data: nothing loads it.
        assert!(findings("ABI604", &pure.elf("p/x.o", &elf().object_type(1))).is_empty());
        let native = TestWheel::new("p", "1", "py3-none-manylinux_2_17_x86_64").elf("p/lib.so", &elf());
        assert!(findings("ABI604", &native).is_empty());
        let broken = TestWheel::new("p", "1", "py3-none-manylinux_2_17_x86_64").file("p/lib.so", b"\x7fELF");
        assert!(findings("ABI604", &broken).is_empty());
    }
}
