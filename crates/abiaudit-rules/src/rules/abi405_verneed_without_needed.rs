//! Versions are needed from a library that is not NEEDED.
//!
//! ## What it does
//! Compares the file names in `DT_VERNEED` with `DT_NEEDED`, and with everything else that is loaded with the object:
//! the loader looks the name up among all loaded objects.
//!
//! ## Why is this bad?
//! ld.so ends the process: ``Inconsistency detected by ld.so: dl-version.c: _dl_check_map_versions: Assertion
//! `needed != NULL' failed!``.
//!
//! ## Example
//! A tool renamed `DT_NEEDED libfoo.so.1` to `libfoo-1a2b3c4d.so.1` and forgot the file name in `DT_VERNEED`.
//!
//! ## How to mend it
//! Repair the original wheel again with a tool that changes both, or relink.
//!
//! ## References
//! glibc elf/dl-version.c (`find_needed`); uccl-project/uccl #1038.

use std::collections::BTreeSet;

use abiaudit_elf::Name;
use abiaudit_policy::Libc;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::scopes::Scopes;

super::rule!("ABI405", "verneed-without-needed", Error, "abi405_verneed_without_needed.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(platform) = audit.platform.filter(|p| p.libc == Libc::Glibc) else { return };
    let scopes = Scopes::new(audit, platform);
    for (index, entry) in audit.counted() {
        let object = entry.object;
        let stray: BTreeSet<String> = object
            .versions
            .needs
            .iter()
            .filter(|need| !object.dynamic.needed.contains(&need.library))
            .map(|need| need.library.to_text())
            .filter(|name| name != "libc.so.6" && !platform.libc.is_dynamic_linker(name))
            .collect();
        if stray.is_empty() {
            continue;
        }
        let scope = scopes.of(index);
        let asked: BTreeSet<&str> = scope
            .members
            .iter()
            .flat_map(|&m| audit.resolution.needs_of(m))
            .map(|need| need.name.as_str())
            .collect();
        for name in stray.iter().filter(|name| !asked.contains(name.as_str())) {
            let lucky = scope.outside.contains(name);
            let message = if lucky {
                format!("needs versions from {name}, which is loaded only because the interpreter has it")
            } else {
                format!("needs versions from {name}, which is not NEEDED: the loader aborts")
            };
            let needed = object.dynamic.needed.iter().map(Name::to_text).collect::<Vec<_>>().join(", ");
            sink.member(&entry.member.name, message)
                .severity(if lucky { Severity::Warning } else { Severity::Error })
                .help("let DT_VERNEED and DT_NEEDED name the same file: repair the original wheel again, or relink")
                .evidence([Evidence::default().with_library(name).with_note(format!("NEEDED: {needed}"))]);
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::{TAGS, findings, module};

    fn found(elf: &ElfWriter) -> Vec<Severity> {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", elf)
            .elf("p/libfoo-1a2b3c4d.so.1", &ElfWriter::new(Arch::X86_64).soname("libfoo-1a2b3c4d.so.1"));
        findings("ABI405", &wheel).iter().map(|f| f.severity).collect()
    }

    #[test]
    fn a_rename_that_forgot_the_version_table() {
        let elf = module().needed("libfoo-1a2b3c4d.so.1").runpath("$ORIGIN");
        assert_eq!(found(&elf.clone().undefined_versioned("f", "libfoo.so.1", "FOO_1")), [Severity::Error]);
        assert!(found(&elf.undefined_versioned("f", "libfoo-1a2b3c4d.so.1", "FOO_1")).is_empty());
    }

    #[test]
    fn what_is_loaded_anyway_is_found() {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        let elf = elf.undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14").undefined_versioned(
            "__tls_get_addr",
            "ld-linux-x86-64.so.2",
            "GLIBC_2.3",
        );
        assert!(found(&elf).is_empty());
        let lucky = elf.undefined_versioned("sqrt", "libm.so.6", "GLIBC_2.2.5");
        assert_eq!(found(&lucky), [Severity::Warning]);
    }
}
