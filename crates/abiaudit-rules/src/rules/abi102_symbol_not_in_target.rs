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

use std::collections::{BTreeMap, BTreeSet, HashMap};

use abiaudit_elf::{Object, Symbol, SymbolVersion};
use abiaudit_loader::search::Outcome;
use abiaudit_policy::symbols::{self, Export, GlibcTable, Release};
use abiaudit_policy::{Libc, Target};

use crate::audit::Audit;
use crate::blockers::SymbolReason;
use crate::demangle::demangle;
use crate::finding::{Evidence, Severity, Sink};
use crate::platform::Platform;
use crate::references::{Outlook, Scope};
use crate::symbol_tables;

super::rule!("ABI102", "symbol-not-in-target", Error, "abi102_symbol_not_in_target.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    no_such_node(audit, sink);
    let targets = audit.claims.iter().filter_map(|c| c.target.as_ref()?.as_ref().ok());
    for target in targets {
        match target.libc() {
            Libc::Glibc => moved_or_gone(audit, target, sink),
            Libc::Musl => not_in_musl(audit, target, sink),
        }
    }
}

/// Version nodes that no release has.
fn no_such_node(audit: &Audit<'_>, sink: &mut Sink) {
    let claims = audit.verdict.iter().flat_map(|v| &v.claims);
    let blockers = claims.flat_map(|c| &c.blockers.symbols).filter(|b| b.reason == SymbolReason::NoSuchNode);
    let mut by_object: BTreeMap<usize, BTreeSet<Evidence>> = BTreeMap::new();
    for blocker in blockers {
        let evidence = Evidence {
            symbol: blocker.symbol.clone(),
            version: Some(blocker.node.clone()),
            library: Some(blocker.library.clone()),
            ..Evidence::default()
        };
        by_object.entry(blocker.object).or_default().insert(evidence);
    }
    for (object, evidence) in by_object {
        let nodes: BTreeSet<&str> = evidence.iter().filter_map(|e| e.version.as_deref()).collect();
        let private = nodes.iter().any(|n| n.ends_with("_PRIVATE"));
        let nodes = nodes.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("needs {nodes}, which no release has for users on this architecture");
        let help = if private {
            "private symbols change with every glibc build: do not vendor parts of glibc, and link nothing against them"
        } else {
            "link against the library that the target's systems have, or bring along the one that has this version"
        };
        sink.member(audit.member_name(object), message).help(help).evidence(evidence);
    }
}

/// What can be wrong with `symbol@node` of one library from the claimed release on.
#[derive(Debug, Clone)]
enum Fault {
    /// From a release on the library has it no longer, and these have it then.
    Moved { at: Release, to: Vec<&'static str> },
    /// No release is known to have it.
    Unheard,
}

fn moved_or_gone(audit: &Audit<'_>, target: &Target, sink: &mut Sink) {
    let (Some(platform), Some(from)) =
        (audit.platform, target.glibc_version().and_then(symbol_tables::release))
    else {
        return;
    };
    let Some(table) = symbols::glibc(platform.arch) else { return };
    let mut judge = Judge { table, later: symbol_tables::glibc_releases(from), known: HashMap::new() };
    let mut surroundings: BTreeMap<usize, Surroundings<'_>> = BTreeMap::new();
    for (index, entry) in audit.counted() {
        let strong = entry.object.symbols.undefined().filter(|s| !s.is_weak());
        let found: Vec<(Evidence, Fault)> = strong.filter_map(|s| judge.fault_of(entry.object, s)).collect();
        if !found.is_empty() {
            let around = surroundings.entry(audit.root_of(index));
            let around = around.or_insert_with(|| Surroundings::of(audit, index, platform));
            report_faults(audit, around, index, found, sink);
        }
    }
}

/// Asks the tables about each symbol, version and library once.
struct Judge {
    table: GlibcTable,
    /// The claimed release and all after it.
    later: Vec<Release>,
    known: HashMap<[Vec<u8>; 3], Option<Fault>>,
}

impl Judge {
    fn fault_of(&mut self, object: &Object, symbol: &Symbol) -> Option<(Evidence, Fault)> {
        let SymbolVersion::Needed(need, version) = object.version_of(symbol) else { return None };
        let name = object.symbols.name(symbol);
        let key = [name, version.name.as_bytes(), need.library.as_bytes()].map(<[u8]>::to_vec);
        let (table, later) = (&self.table, &self.later);
        let fault = self.known.entry(key).or_insert_with(|| {
            let (node, library) = (version.name.to_text(), need.library.to_text());
            let judged = table.has_library(&library) && is_public_glibc(&node);
            let all = judged.then(|| table.versions_of(&object.symbols.name_text(symbol)))?;
            fault(&all, &node, &library, later)
        });
        let fault = fault.clone()?;
        let evidence = Evidence::symbol(object.symbols.name_text(symbol))
            .with_version(version.name.to_text())
            .with_library(need.library.to_text());
        Some((evidence, fault))
    }
}

fn is_public_glibc(node: &str) -> bool {
    node.strip_prefix("GLIBC_").is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

/// The symbol's node says since when it is there, which is the business of ABI101; here only what happens later.
fn fault(all: &[Export], node: &str, library: &str, later: &[Release]) -> Option<Fault> {
    let rows: Vec<&Export> = all.iter().filter(|e| e.version == Some(node)).collect();
    if rows.is_empty() {
        return Some(Fault::Unheard);
    }
    let own = |r: Release| rows.iter().any(|e| e.library == library && e.is_in(r));
    let born = rows.iter().filter_map(|e| e.since).min();
    let lacking = later.iter().copied().find(|&r| born.is_none_or(|b| b <= r) && !own(r))?;
    let to = rows.iter().filter(|e| e.is_in(lacking)).map(|e| e.library).collect();
    Some(Fault::Moved { at: lacking, to })
}

/// The smaller libraries kept forwarders when their functions went to libc (`clock_gettime` of librt), which the tables do
/// not show before 2.23; libc itself never handed a function on.
fn asks_libc(evidence: &Evidence) -> bool {
    evidence.library.as_deref() == Some("libc.so.6")
}

/// Until then the library that `DT_VERNEED` names had to have the symbol ("not defined in file libc.so.6 with link time
/// reference"); since then ld.so looks on among all that is loaded (glibc bug 24741, elf/dl-lookup.c).
const ANY_LIBRARY_WILL_DO: Release = Release::new(2, 30);

/// What comes from outside with the objects that a root loads. The same for all of them, and asked for once: a root can
/// load thousands.
struct Surroundings<'a> {
    /// NEEDED by something in scope, as opposed to what the interpreter happens to have.
    needed: BTreeSet<&'a str>,
    /// Both.
    outside: BTreeSet<String>,
}

impl<'a> Surroundings<'a> {
    fn of(audit: &'a Audit<'_>, object: usize, platform: Platform) -> Self {
        let scope = Scope::of(audit, object, platform);
        let needs = scope.members.iter().flat_map(|&m| audit.resolution.needs_of(m));
        let external = needs.filter(|n| n.outcome == Outcome::External);
        Self { needed: external.map(|n| n.name.as_str()).collect(), outside: scope.outside }
    }
}

fn report_faults(
    audit: &Audit<'_>,
    around: &Surroundings<'_>,
    object: usize,
    found: Vec<(Evidence, Fault)>,
    sink: &mut Sink,
) {
    let mut gone = Vec::new();
    let mut by_luck = Vec::new();
    let mut unheard = Vec::new();
    for (evidence, fault) in found {
        match fault {
            Fault::Unheard => unheard.push(evidence),
            Fault::Moved { at, to } if at < ANY_LIBRARY_WILL_DO && asks_libc(&evidence) => {
                let elsewhere =
                    if to.is_empty() { String::new() } else { format!(", {} has it", to.join(", ")) };
                gone.push(evidence.with_note(format!("glibc {at} has it no longer there{elsewhere}")));
            }
            // libc is in every process.
            Fault::Moved { to, .. } if to.iter().any(|l| *l == "libc.so.6" || around.needed.contains(l)) => {}
            Fault::Moved { at, to } => {
                let note = if to.is_empty() {
                    format!("gone since glibc {at}")
                } else {
                    format!("glibc {at} has it in {}", to.join(", "))
                };
                let lucky = to.iter().any(|l| around.outside.contains(*l));
                if lucky { &mut by_luck } else { &mut gone }.push(evidence.with_note(note));
            }
        }
    }
    let member = audit.member_name(object);
    if !gone.is_empty() {
        let message = format!("{} is not where newer systems have it", listed(&gone));
        sink.member(member, message)
            .help("link the library that the symbol comes from on every system of the tag")
            .evidence(gone);
    }
    if !by_luck.is_empty() {
        let message =
            format!("{} is found only because the interpreter has loaded its library", listed(&by_luck));
        sink.member(member, message)
            .severity(Severity::Warning)
            .help("link the library that the symbol comes from (-lm, -lpthread, -ldl)")
            .evidence(by_luck);
    }
    if !unheard.is_empty() {
        let message =
            format!("{}: no release of glibc is known to have it at that version", listed(&unheard));
        sink.member(member, message)
            .severity(Severity::Warning)
            .help("check which library the build linked: its glibc was changed by somebody")
            .evidence(unheard);
    }
}

fn not_in_musl(audit: &Audit<'_>, target: &Target, sink: &mut Sink) {
    let Some(platform) = audit.platform.filter(|p| p.libc == Libc::Musl) else { return };
    let claimed = target.musl_version().and_then(symbol_tables::release);
    let mut absent: BTreeMap<usize, Vec<Evidence>> = BTreeMap::new();
    let mut newer: BTreeMap<usize, Vec<Evidence>> = BTreeMap::new();
    for reference in &audit.open_references {
        let evidence = Evidence::symbol(reference.symbol.clone());
        match &reference.outlook {
            Outlook::Nobody(_) => {
                let others = symbol_tables::glibc_exports(platform, &reference.symbol);
                if let Some(export) = others.first() {
                    let note = format!("{} of glibc systems has it", export.library);
                    absent.entry(reference.object).or_default().push(evidence.with_note(note));
                }
            }
            Outlook::System(exports) => {
                let since = exports.iter().filter_map(|e| e.since.filter(|_| e.since_exact)).min();
                let dated = exports.iter().all(|e| e.since_exact && e.since.is_some());
                if let (true, Some(since), Some(claimed)) = (dated, since, claimed)
                    && since > claimed
                    && exports.iter().all(|e| e.library != "libz.so.1")
                {
                    let evidence = evidence.with_note(format!("since musl {since}"));
                    newer.entry(reference.object).or_default().push(evidence);
                }
            }
            Outlook::Elsewhere(_) => {}
        }
    }
    for (object, evidence) in absent {
        let message = format!("{} is in no musl and in no library beside it", listed(&evidence));
        sink.member(audit.member_name(object), message)
            .help("build against musl; link what else it comes from into the wheel")
            .evidence(evidence);
    }
    for (object, evidence) in newer {
        let message = format!("{} came to musl later than {} promises", listed(&evidence), target.policy());
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
    match evidence.len().saturating_sub(1) {
        0 => text,
        1 => format!("{text} (and 1 more)"),
        n => format!("{text} (and {n} more)"),
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_elf::test_support::SymbolSpec;
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use super::*;
    use crate::testing::findings;

    const TAGS: &str = "cp312-cp312-manylinux_2_17_x86_64";

    fn module() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libc.so.6")
    }

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
        assert_eq!(symbols, ["__memcpy_chk", "__cxa_thread_atexit_impl"]);
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

    #[test]
    fn a_move_counts_only_where_nobody_else_has_it() {
        let export = |library, since: u16, until: Option<u16>| Export {
            library,
            version: Some("GLIBC_2.2.5"),
            default: true,
            since: Some(Release::new(2, since)),
            since_exact: true,
            until: until.map(|minor| Release::new(2, minor)),
            until_exact: true,
            kind: symbols::Kind::Function,
            size: 0,
        };
        let later = [Release::new(2, 17), Release::new(2, 27), Release::new(2, 40)];
        let judge = |rows: &[Export]| fault(rows, "GLIBC_2.2.5", "libc.so.6", &later);
        assert!(judge(&[export("libc.so.6", 2, None)]).is_none());
        match judge(&[export("libc.so.6", 2, Some(27)), export("libm.so.6", 2, None)]) {
            Some(Fault::Moved { at, to }) => assert_eq!((at, to), (Release::new(2, 27), vec!["libm.so.6"])),
            other => panic!("{other:?}"),
        }
        assert!(matches!(judge(&[]), Some(Fault::Unheard)));
        // Too new for the oldest system, and there ever after: that is for ABI101.
        assert!(judge(&[export("libc.so.6", 30, None)]).is_none());
    }
}
