//! A platform tag promises something that cannot be judged.
//!
//! ## What it does
//! Reports tags of Linux that no policy covers (an architecture or libc that none exists for, `musllinux_1_0`),
//! tags that are misspelt, and tags of other systems on a wheel with Linux code (errors); and notes wheels that are
//! for other systems only, which are not judged at all.
//!
//! ## Why is this bad?
//! Installers compare tags as text: a misspelt one fits no system, so nobody gets the wheel (`not a supported wheel
//! on this platform`), and a tag of another system hands users a file that their loader does not know.
//!
//! ## Example
//! `manylinux_2_28-x86_64` written as `manylinux_228_x86_64`; `linux_armv6l` given a `musllinux_1_2_armv6l` tag
//! though no image or policy of that name exists.
//!
//! ## How to mend it
//! Correct the tag: `manylinux_X_Y_ARCH`, `musllinux_X_Y_ARCH` or `linux_ARCH`.
//!
//! ## References
//! PEP 425, 600, 656; auditwheel #247 and #571.

use std::collections::BTreeSet;

use abiaudit_wheel::PlatformTag;

use crate::audit::Audit;
use crate::finding::{Severity, Sink};
use crate::verdict::foreign_tags;

super::rule!("ABI603", "unknown-claim", Error, "abi603_unknown_claim.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let unknown = audit.claims.iter().filter_map(|claim| match &claim.target {
        Some(Err(error)) => Some(error.clone()),
        _ => None,
    });
    let mut said = false;
    for error in unknown {
        said = true;
        sink.whole(error).help("use a tag that a policy covers, or add the policy to the configuration");
    }
    said |= foreign(audit, sink);
    if !said && audit.platform.is_none() && audit.loadable().next().is_some() {
        let machines: BTreeSet<String> =
            audit.loadable().map(|(_, entry)| entry.object.identity.machine_name()).collect();
        let machines = machines.into_iter().collect::<Vec<_>>().join(", ");
        sink.whole(format!("no policy covers {machines}: nothing was judged")).severity(Severity::Warning);
    }
}

/// `any` is ABI604's.
fn foreign(audit: &Audit<'_>, sink: &mut Sink) -> bool {
    let tags: Vec<String> = foreign_tags(audit).into_iter().filter(|tag| tag != "any").collect();
    if tags.is_empty() {
        return false;
    }
    let list = tags.join(", ");
    let misspelt =
        |tag: &String| matches!(PlatformTag::parse(tag), PlatformTag::Other(_)) && tag.contains("linux");
    if tags.iter().any(misspelt) {
        sink.whole(format!("{list} is not a platform tag that an installer knows"))
            .help("write manylinux_X_Y_ARCH, musllinux_X_Y_ARCH or linux_ARCH");
    } else if audit.loadable().next().is_some() {
        sink.whole(format!("{list} promises another system, but the wheel has code for Linux"))
            .help("build a wheel for each system");
    } else {
        sink.whole(format!("{list} is not Linux: nothing was judged")).severity(Severity::Info);
    }
    true
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    fn severities(platform: &str) -> Vec<Severity> {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        let wheel = TestWheel::new("p", "1", &format!("cp312-cp312-{platform}")).elf("p/m.so", &elf);
        findings("ABI603", &wheel).iter().map(|f| f.severity).collect()
    }

    #[test]
    fn unknown_misspelt_and_foreign_tags_are_errors() {
        for platform in [
            "musllinux_1_0_x86_64",
            "manylinux_2_17_armv6l",
            "manylinux_228_x86_64",
            "macosx_11_0_arm64.manylinux_2_17_x86_64",
            "win_amd64",
        ] {
            assert_eq!(severities(platform), [Severity::Error], "{platform}");
        }
    }

    #[test]
    fn known_tags_are_fine() {
        for platform in
            ["linux_x86_64", "manylinux2014_x86_64", "manylinux_2_44_x86_64", "musllinux_1_2_x86_64", "any"]
        {
            assert_eq!(severities(platform), [], "{platform}");
        }
    }

    #[test]
    fn wheels_of_other_systems_and_machines_are_noted() {
        let wheel = TestWheel::new("p", "1", "cp312-cp312-win_amd64").file("p/m.pyd", b"MZ");
        assert_eq!(findings("ABI603", &wheel)[0].severity, Severity::Info);
        let mips = ElfWriter::new(Arch::Mips64).define("PyInit_m");
        let wheel = TestWheel::new("p", "1", "cp312-cp312-linux_mips64").elf("p/m.so", &mips);
        assert_eq!(findings("ABI603", &wheel)[0].severity, Severity::Warning);
    }
}
