//! A symbol is taken from a system library that not every system of the tag exports.
//!
//! ## What it does
//! Looks at the strong references of all objects, vendored libraries included, for symbols that the policy excludes
//! although it allows their library: internals of `libz.so.1` that some builds of zlib hide, and functions that were
//! patched into an old glibc of one distribution.
//!
//! ## Why is this bad?
//! `undefined symbol: zcfree` on the distributions whose zlib does not export it, while it works on the build machine.
//!
//! ## Example
//! An aarch64 object that uses `__cxa_thread_atexit_impl` under a `manylinux_2_17` tag: CentOS 7's glibc has it, others
//! of that age do not.
//!
//! ## How to mend it
//! Do not call private functions of the library, or copy the library into the wheel (`auditwheel repair`).
//!
//! ## References
//! PEP 600 (manylinux policies' blacklist); auditwheel #647, #655, #663 (weak references do not count).

use std::collections::BTreeMap;

use crate::audit::Audit;
use crate::blockers::ForbiddenSymbol;
use crate::demangle::demangle;
use crate::finding::{Evidence, Sink};

super::rule!("ABI104", "symbol-forbidden", Error, "abi104_symbol_forbidden.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    for claim in &verdict.claims {
        let mut groups: BTreeMap<(usize, &str), Vec<&ForbiddenSymbol>> = BTreeMap::new();
        for forbidden in &claim.blockers.forbidden {
            groups.entry((forbidden.object, &forbidden.library)).or_default().push(forbidden);
        }
        for ((object, library), symbols) in groups {
            let names: Vec<String> = symbols.iter().take(3).map(|f| demangle(&f.symbol)).collect();
            let more = if symbols.len() > names.len() { ", ..." } else { "" };
            let message = format!(
                "takes {}{more} from {library}, which not every system of {} exports",
                names.join(", "),
                claim.tag
            );
            let evidence =
                symbols.iter().map(|f| Evidence::symbol(f.symbol.clone()).with_library(f.library.clone()));
            sink.member(audit.member_name(object), message)
                .help("do not call it, or copy the library into the wheel (auditwheel repair)")
                .evidence(evidence);
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_elf::test_support::SymbolSpec;
    use abiaudit_testing::{Arch, ElfWriter};

    use crate::testing::{findings, module, wheel};

    #[test]
    fn internals_of_zlib_in_an_extension_and_in_a_vendored_library() {
        let library =
            ElfWriter::new(Arch::X86_64).soname("libpng.so").needed("libz.so.1").undefined("zcfree");
        let elf = module().needed("libz.so.1").undefined("_tr_init").needed("libpng.so").runpath("$ORIGIN");
        let found = findings("ABI104", &wheel(&elf).elf("p/libpng.so", &library));
        let members: Vec<_> = found.iter().map(|f| f.member.as_deref().unwrap()).collect();
        assert_eq!(members, ["p/libpng.so", "p/m.so"]);
        assert!(found[0].message.contains("zcfree from libz.so.1"), "{}", found[0].message);
    }

    #[test]
    fn silent_about_its_public_functions_weak_references_and_a_vendored_zlib() {
        assert!(findings("ABI104", &wheel(&module().needed("libz.so.1").undefined("inflate"))).is_empty());
        let weak = SymbolSpec { info: 0x20, ..SymbolSpec::undefined("zcfree") };
        assert!(findings("ABI104", &wheel(&module().needed("libz.so.1").symbol(weak))).is_empty());
        let zlib = ElfWriter::new(Arch::X86_64).soname("libz.so.1").define("zcfree");
        let elf = module().needed("libz.so.1").undefined("zcfree").runpath("$ORIGIN");
        assert!(findings("ABI104", &wheel(&elf).elf("p/libz.so.1", &zlib)).is_empty());
    }
}
