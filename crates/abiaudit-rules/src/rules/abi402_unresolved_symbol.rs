//! A symbol is referred to that nothing has.
//!
//! ## What it does
//! Looks at strong references without a version that no object loaded with theirs defines, nor any system library
//! that is loaded with it, nor any other object of the wheel. It is silent as soon as one library in scope is not
//! known by its symbols, for names of the Python C API, and for what no relocation uses.
//!
//! ## Why is this bad?
//! `ImportError: ...: undefined symbol: ucnv_open`, at import or at the first call.
//!
//! ## Example
//! The link line lacked `-licuuc`: a shared library links without it, and a check of NEEDED libraries sees nothing.
//!
//! ## How to mend it
//! Link the library that defines it; build with `-Wl,-z,defs` (for extension modules: `-Wl,--unresolved-symbols` with
//! care, since Python's own symbols stay open).
//!
//! ## References
//! auditwheel #431, #23; ld(1) `-z defs`.

use std::collections::BTreeMap;

use abiaudit_policy::Libc;

use crate::audit::{Audit, Role};
use crate::demangle::demangle;
use crate::finding::{Evidence, Severity, Sink};
use crate::references::Outlook;
use crate::rules::and_more;
use crate::symbol_tables;

super::rule!("ABI402", "unresolved-symbol", Error, "abi402_unresolved_symbol.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(platform) = audit.platform else { return };
    let mut by_object: BTreeMap<usize, Vec<Evidence>> = BTreeMap::new();
    for reference in &audit.open_references {
        let Outlook::Nobody(known) = &reference.outlook else { continue };
        // What only glibc has is ABI102's.
        if platform.libc == Libc::Musl
            && !symbol_tables::glibc_exports(platform, &reference.symbol).is_empty()
        {
            continue;
        }
        let mut evidence = Evidence::symbol(reference.symbol.clone());
        if let Some(export) = known.iter().find(|e| e.until.is_none()) {
            evidence = evidence.with_note(format!("{} has it, which is not NEEDED", export.library));
        }
        by_object.entry(reference.object).or_default().push(evidence);
    }
    for (object, evidence) in by_object {
        let extension = audit.objects.get(object).is_some_and(|o| matches!(o.role, Role::Extension(_)));
        let symbol = evidence.first().and_then(|e| e.symbol.as_deref()).map(demangle).unwrap_or_default();
        let symbols = and_more(&symbol, evidence.len().saturating_sub(1));
        sink.member(audit.member_name(object), format!("nothing that is loaded with it has {symbols}"))
            .severity(if extension { Severity::Error } else { Severity::Warning })
            .help("link the library that defines it; -Wl,-z,defs finds this at build time")
            .evidence(evidence);
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_elf::test_support::SymbolSpec;
    use abiaudit_testing::{Arch, ElfWriter};

    use crate::finding::Severity;
    use crate::testing::{findings, module, wheel};

    #[test]
    fn a_forgotten_library_in_an_extension_is_an_error() {
        let found = findings("ABI402", &wheel(&module().undefined("ucnv_open").undefined("_Z5twicei")));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Error);
        assert_eq!(found[0].message, "nothing that is loaded with it has ucnv_open (and 1 more)");
    }

    #[test]
    fn a_system_library_that_is_not_needed_is_named() {
        let found = findings("ABI402", &wheel(&module().undefined("_ZdlPv")));
        let note = found[0].evidence[0].note.as_deref().unwrap();
        assert_eq!(note, "libstdc++.so.6 has it, which is not NEEDED");
    }

    #[test]
    fn in_a_library_it_is_a_warning() {
        let library = ElfWriter::new(Arch::X86_64).soname("libs.so").needed("libc.so.6").undefined("nowhere");
        let elf = module().needed("libs.so").runpath("$ORIGIN");
        let found = findings("ABI402", &wheel(&elf).elf("p/libs.so", &library));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Warning));
    }

    #[test]
    fn silent_about_python_the_interpreters_libraries_and_the_loader() {
        let elf = module()
            .undefined("PyModule_Create2")
            .undefined("_Py_NoneStruct")
            .undefined("sqrt")
            .undefined("__tls_get_addr")
            .undefined("memcpy");
        assert!(findings("ABI402", &wheel(&elf)).is_empty());
    }

    #[test]
    fn silent_as_soon_as_a_library_is_unknown() {
        assert!(findings("ABI402", &wheel(&module().needed("libX11.so.6").undefined("XOpenIt"))).is_empty());
    }

    #[test]
    fn silent_about_weak_references_and_what_a_loader_of_both_brings() {
        let weak = SymbolSpec { info: 0x20, ..SymbolSpec::undefined("maybe") };
        assert!(findings("ABI402", &wheel(&module().symbol(weak))).is_empty());
        let user = ElfWriter::new(Arch::X86_64).soname("libuser.so").undefined("shared_thing");
        let other = ElfWriter::new(Arch::X86_64).soname("libother.so").define("shared_thing");
        let elf = module().needed("libuser.so").needed("libother.so").runpath("$ORIGIN");
        let wheel = wheel(&elf).elf("p/libuser.so", &user).elf("p/libother.so", &other);
        assert!(findings("ABI4", &wheel).is_empty());
    }
}
