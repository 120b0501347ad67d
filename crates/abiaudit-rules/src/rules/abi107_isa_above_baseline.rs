//! An object says that it needs a newer processor than the tag promises.
//!
//! ## What it does
//! Reads the property `GNU_PROPERTY_X86_ISA_1_NEEDED` of each object (x86-64-v2, v3, v4). Copies below a
//! `glibc-hwcaps` directory are meant for such processors and are left alone. Only the declaration is read: code that
//! uses newer instructions without saying so is not seen.
//!
//! ## Why is this bad?
//! `ImportError: CPU ISA level is lower than required`: the loader refuses the file on machines of the baseline.
//!
//! ## Example
//! A library linked with `-Wl,-z,x86-64-v3`, or on a distribution that is built for v2 and marks what it builds.
//!
//! ## How to mend it
//! Build for the baseline (`-march=x86-64`, `-Wl,-z,nox86-64-v2`) and choose faster code at run time.
//!
//! ## References
//! x86-64 psABI, "Micro-Architecture Levels"; glibc sysdeps/x86/dl-prop.h; auditwheel #535.

use abiaudit_elf::IsaLevel;

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI107", "isa-above-baseline", Error, "abi107_isa_above_baseline.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    let mut objects: Vec<(usize, IsaLevel)> =
        verdict.claims.iter().flat_map(|c| c.blockers.isa.iter().copied()).collect();
    objects.sort_unstable();
    objects.dedup();
    for (object, level) in objects {
        let level = match level {
            IsaLevel::Baseline => "x86-64",
            IsaLevel::V2 => "x86-64-v2",
            IsaLevel::V3 => "x86-64-v3",
            IsaLevel::V4 => "x86-64-v4",
        };
        sink.member(
            audit.member_name(object),
            format!("says that it needs {level}; the tag promises x86-64"),
        )
        .help("build for the baseline (-march=x86-64) and choose faster code at run time")
        .evidence([Evidence::note("GNU_PROPERTY_X86_ISA_1_NEEDED")]);
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    /// GNU_PROPERTY_X86_ISA_1_NEEDED (x86-64 psABI).
    const NEEDED: u32 = 0xc000_8002;

    #[test]
    fn a_declared_level_above_the_baseline() {
        let elf = module().property(NEEDED, 0x7);
        let found = findings("ABI107", &TestWheel::new("p", "1", TAGS).elf("p/m.so", &elf));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("x86-64-v3"), "{}", found[0].message);
    }

    #[test]
    fn silent_about_the_baseline_and_copies_for_newer_processors() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module().property(NEEDED, 1))
            .elf("p/glibc-hwcaps/x86-64-v3/libf.so", &ElfWriter::new(Arch::X86_64).property(NEEDED, 4));
        assert!(findings("ABI107", &wheel).is_empty());
    }
}
