//! Relocations are packed in a form that loaders of the target do not read.
//!
//! ## What it does
//! Looks for `DT_RELR` under a tag whose oldest systems cannot apply it: glibc before 2.36, where the object lacks the
//! version `GLIBC_ABI_DT_RELR` that would make such a loader refuse it (with that version ABI101 speaks), and musl
//! before 1.2.4, which ignores the table without a word.
//!
//! ## Why is this bad?
//! The loader starts code whose pointers were never relocated: a segmentation fault on the first use.
//!
//! ## Example
//! Libraries of Alpine 3.18 and newer, copied into `musllinux_1_2` wheels: they run on musl 1.2.4 (May 2023) and newer,
//! while the tag promises 1.2.0.
//!
//! ## How to mend it
//! Link with `-Wl,-z,nopack-relative-relocs`, or build on an older distribution.
//!
//! ## References
//! gABI, "Relative Relocation Table"; glibc 2.36 NEWS; musl 1.2.4 release notes; PEP 656.

use abiaudit_policy::Libc;

use crate::audit::Audit;
use crate::blockers::{SymbolBlocker, SymbolReason};
use crate::finding::{Evidence, Severity, Sink};

super::rule!("ABI108", "relr-unsupported", Error, "abi108_relr_unsupported.rs");

const HELP: &str = "link with -Wl,-z,nopack-relative-relocs, or build on an older distribution";

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for claim in audit.verdict.iter().flat_map(|v| &v.claims) {
        let packed = |b: &&SymbolBlocker| b.reason == SymbolReason::PackedRelocations;
        for blocker in claim.blockers.symbols.iter().filter(packed) {
            let message =
                format!("has DT_RELR, which glibc before 2.36 ignores; {} starts earlier", claim.tag);
            sink.member(audit.member_name(blocker.object), message).help(HELP);
        }
    }
    let targets = audit.claims.iter().filter_map(|c| c.target.as_ref()?.as_ref().ok());
    for target in targets.filter(|t| t.libc() == Libc::Musl && t.musl_version() <= Some((1, 2))) {
        for (_, entry) in audit.counted().filter(|(_, o)| o.object.dynamic.relr) {
            let message =
                format!("has DT_RELR, which musl before 1.2.4 ignores; {target} promises 1.2.0 or older");
            sink.member(&entry.member.name, message)
                .severity(Severity::Warning)
                .help(HELP)
                .evidence([Evidence::note("runs on Alpine 3.18 (musl 1.2.4) and newer")]);
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::{findings, module};

    const DT_RELR: i64 = 36;

    fn wheel(platform: &str, elf: &ElfWriter) -> TestWheel {
        TestWheel::new("p", "1", &format!("cp312-cp312-{platform}_x86_64")).elf("p/m.so", elf)
    }

    fn relr() -> ElfWriter {
        module().dynamic(DT_RELR, 0)
    }

    #[test]
    fn glibc_before_2_36_would_start_it_unrelocated() {
        let found = findings("ABI108", &wheel("manylinux_2_28", &relr()));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Error);
    }

    #[test]
    fn silent_where_glibc_knows_it_or_would_refuse() {
        assert!(findings("ABI108", &wheel("manylinux_2_36", &relr())).is_empty());
        let mut guarded = relr();
        guarded.need_version("libc.so.6", "GLIBC_ABI_DT_RELR");
        assert!(findings("ABI108", &wheel("manylinux_2_28", &guarded)).is_empty());
        assert!(findings("ABI108", &wheel("manylinux_2_28", &module())).is_empty());
    }

    #[test]
    fn musl_before_1_2_4_is_a_warning() {
        let elf = ElfWriter::new(Arch::X86_64).needed("libc.musl-x86_64.so.1").dynamic(DT_RELR, 0);
        let found = findings("ABI108", &wheel("musllinux_1_2", &elf));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Warning);
    }
}
