//! The wheel has native code of another system.
//!
//! ## What it does
//! In a wheel with Linux tags only, reports Mach-O and PE files. Libraries and extension modules by their name
//! (`.dylib`, `.pyd`, `.so`) are errors, a `.dll` is a warning, since .NET assemblies have that form on Linux too,
//! and others, which are data as far as can be told (launchers, tools for another system), are noted.
//!
//! ## Why is this bad?
//! No loader on Linux opens them: `invalid ELF header`. Mostly they mean that the build tree was not clean, and
//! that the Linux library that should be there is missing.
//!
//! ## Example
//! A wheel built in a checkout on macOS that still had `_native.cpython-312-darwin.so`.
//!
//! ## How to mend it
//! Build from a clean checkout; select package data by platform.
//!
//! ## References
//! Mach-O and PE/COFF file formats; playwright ships `PrintDeps.exe` on purpose, setuptools its launchers.

use abiaudit_elf::FileKind;
use abiaudit_scan::Content;

use crate::audit::Audit;
use crate::finding::{Severity, Sink};

super::rule!("ABI612", "foreign-binary", Error, "abi612_foreign_binary.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let tags = &audit.platform_tags;
    if tags.is_empty() || !tags.iter().all(abiaudit_wheel::PlatformTag::is_linux) {
        return;
    }
    for member in &audit.subject.members {
        let system = match member.content {
            Content::Other(FileKind::MachO) => "macOS (Mach-O)",
            Content::Other(FileKind::Pe) => "Windows (PE)",
            _ => continue,
        };
        let severity = severity(member.base_name());
        let effect = if severity == Severity::Info {
            "data, as far as can be told"
        } else {
            "no loader on Linux opens it"
        };
        sink.member(&member.name, format!("native code for {system}: {effect}"))
            .severity(severity)
            .help("build from a clean checkout; select package data by platform");
    }
}

fn severity(base_name: &str) -> Severity {
    let name = base_name.to_ascii_lowercase();
    if name.ends_with(".dll") {
        Severity::Warning
    } else if [".dylib", ".pyd", ".so"].iter().any(|suffix| name.ends_with(suffix)) || name.contains(".so.") {
        Severity::Error
    } else {
        Severity::Info
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::finding::Severity;
    use crate::testing::findings;

    const MACH_O: [u8; 32] = [
        0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0,
    ];

    fn pe() -> Vec<u8> {
        let mut pe = vec![0; 0x80];
        pe[..2].copy_from_slice(b"MZ");
        pe[0x3c] = 0x40;
        pe[0x40..0x44].copy_from_slice(b"PE\0\0");
        pe
    }

    fn wheel(platform: &str) -> TestWheel {
        TestWheel::new("p", "1", &format!("cp312-cp312-{platform}"))
            .file("p/a.cpython-312-darwin.so", MACH_O)
            .file("p/b.dll", pe())
            .file("p/c.exe", pe())
    }

    #[test]
    fn the_name_decides_how_bad_it_is() {
        let found = findings("ABI612", &wheel("manylinux_2_17_x86_64"));
        let severities: Vec<Severity> = found.iter().map(|f| f.severity).collect();
        assert_eq!(severities, [Severity::Error, Severity::Warning, Severity::Info]);
    }

    #[test]
    fn wheels_for_several_or_other_systems_may_have_them() {
        assert!(findings("ABI612", &wheel("any")).is_empty());
        assert!(findings("ABI612", &wheel("macosx_11_0_arm64")).is_empty());
        assert!(findings("ABI612", &wheel("macosx_11_0_arm64.manylinux_2_17_x86_64")).is_empty());
    }

    #[test]
    fn text_that_begins_like_a_program_is_text() {
        let wheel = TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64")
            .file("p/mz.dll", "MZ is Mozambique");
        assert!(findings("ABI612", &wheel).is_empty());
    }
}
