//! Native code is declared to be pure Python.
//!
//! ## What it does
//! Reports ELF files that are installed into `purelib`: those below `*.data/purelib/`, and those at the root of a
//! wheel whose WHEEL says `Root-Is-Purelib: true` (a warning: several large projects do so, and it works where the
//! two directories are one). A folder that is merely called `purelib` means nothing.
//!
//! ## Why is this bad?
//! Where `purelib` and `platlib` are different directories (`lib` and `lib64` of the system Python of Fedora, RHEL
//! and others), libraries land in the one that is shared between architectures, and a package with files in both
//! falls apart: `ModuleNotFoundError` for one half, or `$ORIGIN/../other/lib` leads nowhere. `auditwheel` refuses
//! wheels with native code below `*.data/purelib/`.
//!
//! ## Example
//! A wheel packed by a build backend that thought the project pure, with libraries added as package data.
//!
//! ## How to mend it
//! Tell the backend that the wheel is not pure (setuptools: `has_ext_modules`), so that it writes `Root-Is-Purelib:
//! false`; move files from `*.data/purelib/` to the root.
//!
//! ## References
//! Binary distribution format ("The .data directory", `Root-Is-Purelib`); auditwheel #32, #35, #333.

use abiaudit_wheel::{Scheme, classify};

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::rules::count;

super::rule!("ABI605", "purelib-with-elf", Error, "abi605_purelib_with_elf.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let wheel = audit.subject.dist_info.as_ref().and_then(|d| d.wheel.as_ref());
    let root_is_pure = wheel.and_then(|w| w.root_is_purelib) == Some(true);
    let in_scheme = |scheme: Scheme| -> Vec<&str> {
        let names = audit.loadable().map(|(_, entry)| entry.member.name.as_str());
        names.filter(|name| classify(name).0 == scheme).collect()
    };
    let below = in_scheme(Scheme::Purelib);
    if !below.is_empty() {
        let message = format!("native code below *.data/purelib/: {}", count(below.len(), "file"));
        sink.whole(message)
            .help("move them to the root or below *.data/platlib/")
            .evidence(below.into_iter().map(Evidence::member));
    }
    let at_root = if root_is_pure { in_scheme(Scheme::Root) } else { Vec::new() };
    if !at_root.is_empty() {
        let message = format!(
            "WHEEL says Root-Is-Purelib: true, but has native code: {}",
            count(at_root.len(), "file")
        );
        sink.whole(message)
            .severity(Severity::Warning)
            .help("have the build backend write Root-Is-Purelib: false")
            .evidence(at_root.into_iter().map(Evidence::member));
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    fn wheel(member: &str) -> TestWheel {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64").elf(member, &elf)
    }

    #[test]
    fn both_ways_into_purelib_are_found() {
        let severity = |wheel: &TestWheel| findings("ABI605", wheel)[0].severity;
        assert_eq!(severity(&wheel("p-1.data/purelib/p/m.so")), Severity::Error);
        assert_eq!(severity(&wheel("p/m.so").purelib(true)), Severity::Warning);
    }

    #[test]
    fn other_places_are_fine() {
        assert!(findings("ABI605", &wheel("p/purelib/m.so")).is_empty());
        assert!(findings("ABI605", &wheel("p-1.data/platlib/p/m.so").purelib(true)).is_empty());
        assert!(findings("ABI605", &wheel("p-1.data/scripts/tool").purelib(true)).is_empty());
        assert!(findings("ABI605", &wheel("p/m.so")).is_empty());
    }
}
