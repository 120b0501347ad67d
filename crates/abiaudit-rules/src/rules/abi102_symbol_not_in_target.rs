//! A system library does not have a symbol, whatever its age.
//!
//! ## What it does
//! Reports what no matching age of the system mends: version nodes that no release of the architecture has for users
//! (`GLIBC_PRIVATE`, another architecture's, a vendor's own); symbols that a library of the claimed system had and a
//! newer one has no longer, or keeps in another library (which ld.so accepts since 2.30, if it is loaded with the
//! object); on musl, symbols that musl lacks or got after the claimed release.
//! A symbol that the tables do not know at its node is a warning: a vendor may have added it.
//!
//! ## Why is this bad?
//! ``ImportError: version `GLIBC_PRIVATE' not found``, `symbol scalbln, version GLIBC_2.2.5 not defined in file libc.so.6`
//! on systems newer than the tag's oldest, or `Error relocating x.so: __cxa_thread_atexit_impl: symbol not found` on Alpine. A platform tag is a
//! promise for all newer systems too.
//!
//! ## Example
//! A vendored copy of glibc's `libresolv-2.5.so`, which uses `GLIBC_PRIVATE` symbols of exactly that glibc.
//!
//! ## How to mend it
//! Do not vendor parts of glibc; link each library that a symbol comes from (`-lm`, `-ldl`); for musl, build against
//! musl, not against glibc headers with its fortified functions (`__memcpy_chk`).
//!
//! ## References
//! auditwheel #272; glibc bug 24741 (before 2.30 only the named library counts); microsoft/rego-cpp #226; PEP 600;
//! PEP 656.

use std::collections::BTreeMap;

use abiaudit_policy::Libc;

use crate::audit::Audit;
use crate::blockers::{SymbolBlocker, SymbolReason};
use crate::demangle::demangle;
use crate::finding::{Evidence, Severity, Sink};
use crate::lost_references::{Loss, LostReference};
use crate::rules::and_more;
use crate::verdict::ClaimVerdict;

super::rule!("ABI102", "symbol-not-in-target", Error, "abi102_symbol_not_in_target.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    no_such_node(audit, sink);
    for claim in audit.verdict.iter().flat_map(|v| &v.claims) {
        gone(audit, claim, sink);
        missing_in_musl(audit, claim, sink);
    }
    let targets = audit.claims.iter().filter_map(|c| c.target.as_ref()?.as_ref().ok());
    for target in targets.filter(|target| target.libc() == Libc::Glibc) {
        doubtful(audit, &audit.lost_references.on(audit, target), sink);
    }
}

/// The blockers of one kind, by object.
fn by_object<'b>(
    blockers: impl Iterator<Item = &'b SymbolBlocker>,
    of_kind: impl Fn(&SymbolReason) -> bool,
) -> BTreeMap<usize, Vec<Evidence>> {
    let mut by_object: BTreeMap<usize, Vec<Evidence>> = BTreeMap::new();
    for blocker in blockers.filter(|b| of_kind(&b.reason)) {
        by_object.entry(blocker.object).or_default().push(evidence(blocker));
    }
    for evidence in by_object.values_mut() {
        evidence.sort();
        evidence.dedup();
    }
    by_object
}

fn evidence(blocker: &SymbolBlocker) -> Evidence {
    let note = match &blocker.reason {
        SymbolReason::Gone(loss) => loss.note(),
        SymbolReason::NotInMusl { elsewhere } => Some(format!("{elsewhere} of glibc systems has it")),
        SymbolReason::LaterInMusl { since } => Some(format!("since musl {since}")),
        _ => None,
    };
    // musl is one library under many names.
    let library = (!blocker.reason.is_musl()).then(|| blocker.library.clone());
    let (symbol, version) = (blocker.symbol.clone(), blocker.node.clone());
    Evidence { symbol, version, library, note, ..Evidence::default() }
}

/// Version nodes that no release has.
fn no_such_node(audit: &Audit<'_>, sink: &mut Sink) {
    let blockers = audit.verdict.iter().flat_map(|v| &v.claims).flat_map(|c| &c.blockers.symbols);
    for (object, evidence) in by_object(blockers, |reason| *reason == SymbolReason::NoSuchNode) {
        let mut nodes: Vec<&str> = evidence.iter().filter_map(|e| e.version.as_deref()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let private = nodes.iter().any(|n| n.ends_with("_PRIVATE"));
        let message =
            format!("needs {}, which no release has for users on this architecture", nodes.join(", "));
        let help = if private {
            "private symbols change with every glibc build: do not vendor parts of glibc, and link nothing against them"
        } else {
            "link against the library that the target's systems have, or bring along the one that has this version"
        };
        sink.member(audit.member_name(object), message).help(help).evidence(evidence);
    }
}

fn gone(audit: &Audit<'_>, claim: &ClaimVerdict, sink: &mut Sink) {
    let blockers = claim.blockers.symbols.iter();
    for (object, evidence) in by_object(blockers, |reason| matches!(reason, SymbolReason::Gone(_))) {
        let message = format!("{} is not where newer systems have it", listed(&evidence));
        sink.member(audit.member_name(object), message)
            .help("link the library that the symbol comes from on every system of the tag")
            .evidence(evidence);
    }
}

/// What works, but not by the object's own doing, and what the tables may not know.
fn doubtful(audit: &Audit<'_>, lost: &[(&LostReference, Loss)], sink: &mut Sink) {
    let mut by_luck: BTreeMap<usize, Vec<Evidence>> = BTreeMap::new();
    let mut unheard: BTreeMap<usize, Vec<Evidence>> = BTreeMap::new();
    for (reference, loss) in lost {
        let of_kind = match loss {
            Loss::Gone { .. } => continue,
            Loss::ByLuck { .. } => &mut by_luck,
            Loss::Unheard => &mut unheard,
        };
        let evidence = Evidence {
            note: loss.note(),
            ..Evidence::symbol(reference.symbol.clone())
                .with_version(reference.node.clone())
                .with_library(reference.library.clone())
        };
        of_kind.entry(reference.object).or_default().push(evidence);
    }
    for (object, evidence) in by_luck {
        let message =
            format!("{} is found only because the interpreter has loaded its library", listed(&evidence));
        sink.member(audit.member_name(object), message)
            .severity(Severity::Warning)
            .help("link the library that the symbol comes from (-lm, -lpthread, -ldl)")
            .evidence(evidence);
    }
    for (object, evidence) in unheard {
        let message =
            format!("{}: no release of glibc is known to have it at that version", listed(&evidence));
        sink.member(audit.member_name(object), message)
            .severity(Severity::Warning)
            .help("check which library the build linked: its glibc was changed by somebody")
            .evidence(evidence);
    }
}

fn missing_in_musl(audit: &Audit<'_>, claim: &ClaimVerdict, sink: &mut Sink) {
    let blockers = || claim.blockers.symbols.iter();
    for (object, evidence) in by_object(blockers(), |r| matches!(r, SymbolReason::NotInMusl { .. })) {
        let message = format!("{} is in no musl and in no library beside it", listed(&evidence));
        sink.member(audit.member_name(object), message)
            .help("build against musl; link what else it comes from into the wheel")
            .evidence(evidence);
    }
    for (object, evidence) in by_object(blockers(), |r| matches!(r, SymbolReason::LaterInMusl { .. })) {
        let message = format!("{} came to musl later than {} promises", listed(&evidence), claim.tag);
        sink.member(audit.member_name(object), message)
            .help("build on the oldest musl that the tag promises, or refer to it weakly")
            .evidence(evidence);
    }
}

fn listed(evidence: &[Evidence]) -> String {
    let first = evidence.first();
    let symbol = first.and_then(|e| e.symbol.as_deref()).unwrap_or_default();
    let mut text = demangle(symbol);
    if let Some(version) = first.and_then(|e| e.version.as_deref()) {
        text = format!("{text}@{version}");
    }
    and_more(&text, evidence.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use abiaudit_elf::test_support::SymbolSpec;
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use super::*;
    use crate::testing::{TAGS, findings, module};

    fn wheel(tags: &str, elf: &ElfWriter) -> TestWheel {
        TestWheel::new("p", "1", tags).elf("p/m.so", elf)
    }

    fn musl() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libc.musl-x86_64.so.1")
    }

    const MUSL: &str = "cp312-cp312-musllinux_1_2_x86_64";

    #[test]
    fn private_nodes_are_for_nobody() {
        let elf = module().undefined_versioned("__libc_enable_secure", "libc.so.6", "GLIBC_PRIVATE");
        let found = findings("ABI102", &wheel(TAGS, &elf));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.starts_with("needs GLIBC_PRIVATE"), "{}", found[0].message);
        assert_eq!(found[0].severity, Severity::Error);
    }

    #[test]
    fn what_moved_to_libc_is_found_there() {
        let elf = module().needed("libpthread.so.0").undefined_versioned(
            "pthread_create",
            "libpthread.so.0",
            "GLIBC_2.2.5",
        );
        assert!(findings("ABI102", &wheel(TAGS, &elf)).is_empty());
    }

    #[test]
    fn before_2_30_only_the_named_library_counts() {
        let elf = module().needed("libm.so.6").undefined_versioned("scalbln", "libc.so.6", "GLIBC_2.2.5");
        let found = findings("ABI102", &wheel(TAGS, &elf));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Error));
        assert!(found[0].evidence[0].note.as_deref().unwrap().contains("libm.so.6 has it"));
    }

    #[test]
    fn small_libraries_kept_forwarders_to_libc() {
        let elf =
            module().needed("librt.so.1").undefined_versioned("clock_gettime", "librt.so.1", "GLIBC_2.2.5");
        assert!(findings("ABI102", &wheel(TAGS, &elf)).is_empty());
    }

    #[test]
    fn since_2_30_any_library_that_is_loaded_will_do() {
        let tags = "cp312-cp312-manylinux_2_34_x86_64";
        let elf = module().undefined_versioned("scalbln", "libc.so.6", "GLIBC_2.2.5");
        let found = findings("ABI102", &wheel(tags, &elf));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Warning), "the interpreter has libm");
        assert!(findings("ABI102", &wheel(tags, &elf.needed("libm.so.6"))).is_empty());
    }

    #[test]
    fn a_symbol_that_no_glibc_has_is_a_warning() {
        let elf = module().undefined_versioned("vendors_own_call", "libc.so.6", "GLIBC_2.17");
        let found = findings("ABI102", &wheel(TAGS, &elf));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Warning);
    }

    #[test]
    fn weak_references_may_stay_open() {
        let mut elf = module();
        let version = elf.need_version("libc.so.6", "GLIBC_2.17");
        let weak = SymbolSpec { version, info: 0x20, ..SymbolSpec::undefined("vendors_own_call") };
        assert!(findings("ABI102", &wheel(TAGS, &elf.symbol(weak))).is_empty());
    }

    #[test]
    fn musl_lacks_what_only_glibc_has() {
        let elf = musl().undefined("__memcpy_chk").undefined("__cxa_thread_atexit_impl").undefined("memcpy");
        let found = findings("ABI102", &wheel(MUSL, &elf));
        assert_eq!(found.len(), 1);
        let symbols: Vec<_> = found[0].evidence.iter().map(|e| e.symbol.as_deref().unwrap()).collect();
        assert_eq!(symbols, ["__cxa_thread_atexit_impl", "__memcpy_chk"]);
    }

    #[test]
    fn musl_got_some_symbols_after_the_promise() {
        let found = findings("ABI102", &wheel(MUSL, &musl().undefined("qsort_r")));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence[0].note.as_deref(), Some("since musl 1.2.3"));
    }

    #[test]
    fn a_library_beside_it_may_have_what_musl_lacks() {
        let library = ElfWriter::new(Arch::X86_64).soname("libssp.so").define("__memcpy_chk");
        let elf = musl().needed("libssp.so").runpath("$ORIGIN").undefined("__memcpy_chk");
        assert!(findings("ABI102", &wheel(MUSL, &elf).elf("p/libssp.so", &library)).is_empty());
        let unknown = musl().needed("libsomething.so.3").undefined("__memcpy_chk");
        assert!(findings("ABI102", &wheel(MUSL, &unknown)).is_empty(), "that library may have it");
    }
}
