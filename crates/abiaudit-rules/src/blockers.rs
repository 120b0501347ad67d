//! What stands between an input and a target.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use abiaudit_elf::{IsaLevel, Object, SymbolVersion};
use abiaudit_loader::search::Outcome;
use abiaudit_policy::symbols::Release;
use abiaudit_policy::{Libc, LibraryVerdict, NodeVerdict, Target};

use crate::audit::{Audit, Role};
use crate::external::Origin;
use crate::lost_references::Loss;
use crate::python;
use crate::references::{OpenReference, Outlook};
use crate::symbol_tables;

/// All reasons why a target is not honoured.
#[derive(Debug, Clone, Default)]
pub struct Blockers {
    /// Symbols, or bare version needs, that the target lacks.
    pub symbols: Vec<SymbolBlocker>,
    /// Libraries that the target does not promise.
    pub libraries: Vec<LibraryBlocker>,
    /// Symbols that exist there but must not be used from the system's library.
    pub forbidden: Vec<ForbiddenSymbol>,
    /// Objects that need a newer processor than the target's architecture promises.
    pub isa: Vec<(usize, IsaLevel)>,
    /// Objects that need a Python that is not there, with the symbols.
    pub python: Vec<(usize, Vec<String>)>,
}

/// A symbol that the target's library does not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolBlocker {
    /// The object that refers to it.
    pub object: usize,
    /// The library that should have it.
    pub library: String,
    /// The version node; for an unversioned reference the node at which the library has it, `None` on musl, whose
    /// symbols have no versions.
    pub node: Option<String>,
    /// The symbol as in the file; `None` where a version is needed that no symbol uses (`GLIBC_ABI_DT_RELR`).
    pub symbol: Option<String>,
    /// The newest node of the family on the target, without the family's name.
    pub ceiling: Option<String>,
    /// Why.
    pub reason: SymbolReason,
}

/// Why a symbol blocks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolReason {
    /// The node is newer than the target's newest.
    TooNew,
    /// No release of the library has that node for users: `GLIBC_PRIVATE`, another architecture's, a vendor's.
    NoSuchNode,
    /// The reference has no version, and the library has the symbol only at a node that is too new.
    Unversioned,
    /// The object has `DT_RELR` and does not ask for the version that stands for loaders which read it, so that older
    /// ones run it with pointers that were never relocated.
    PackedRelocations,
    /// The library that the object asks has it no longer, on the target's systems or on newer ones.
    Gone(Loss),
    /// No musl has it, and no library that is loaded with the object.
    NotInMusl {
        /// The library of glibc systems that has it.
        elsewhere: &'static str,
    },
    /// musl got it after the release that the target promises.
    LaterInMusl {
        /// The release.
        since: Release,
    },
}

impl SymbolReason {
    /// It is about musl, one library under many names.
    pub fn is_musl(&self) -> bool {
        matches!(self, Self::NotInMusl { .. } | Self::LaterInMusl { .. })
    }
}

/// A library that the target does not promise.
#[derive(Debug, Clone)]
pub struct LibraryBlocker {
    /// As in `DT_NEEDED`.
    pub soname: String,
    /// Objects that need it.
    pub needed_by: Vec<usize>,
    /// Why it blocks.
    pub reason: LibraryReason,
}

/// Why a library blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibraryReason {
    /// Not promised by the target, and not in the input.
    NotPromised,
    /// The configuration wants it in the wheel.
    MustBundle(String),
    /// The configuration wants it nowhere.
    Denied(String),
    /// It is in the input, but no search path leads there. `preloadable`: something else in the input can be
    /// imported before and bring it.
    Unreachable {
        /// Members of that name.
        present: Vec<usize>,
        /// Every object that needs it can be helped so.
        preloadable: bool,
    },
}

/// A symbol that policies forbid to take from the system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForbiddenSymbol {
    /// The object that refers to it.
    pub object: usize,
    /// The library.
    pub library: String,
    /// The symbol.
    pub symbol: String,
}

impl Blockers {
    /// Nothing stands in the way.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
            && self.libraries.is_empty()
            && self.forbidden.is_empty()
            && self.isa.is_empty()
            && self.python.is_empty()
    }
}

/// What the objects ask for, gathered once, so that asking about each target is cheap.
pub(crate) struct Demands {
    /// `(object, library, node)` of every version need that the system must satisfy.
    nodes: Vec<NodeDemand>,
    /// Objects with `DT_RELR` that do not ask for [`RELR_NODE`].
    packed: Vec<usize>,
    /// Unversioned references that a system library has only at some node.
    unversioned: Vec<UnversionedDemand>,
    /// References that no musl has, or not every one.
    musl: Vec<MuslDemand>,
    /// `(object, library, symbol)` that some target of the ladder forbids.
    forbidden: Vec<ForbiddenSymbol>,
    isa: Vec<(usize, IsaLevel)>,
    python: Vec<(usize, Vec<String>)>,
    unreachable: Vec<LibraryBlocker>,
    /// Per object, filled when one of its nodes blocks.
    by_version: Vec<OnceCell<SymbolsByVersion>>,
}

struct NodeDemand {
    object: usize,
    library: String,
    node: String,
    /// `vna_other`
    index: u16,
    /// The symbols that use the node, looked up when it blocks some target.
    users: OnceCell<Vec<Option<String>>>,
}

struct MuslDemand {
    object: usize,
    symbol: String,
    reason: SymbolReason,
}

impl MuslDemand {
    /// What it blocks: nothing on glibc, and on musl no release that has the symbol.
    fn on(&self, target: &Target) -> Option<SymbolBlocker> {
        let promised = symbol_tables::release(target.musl_version()?)?;
        if matches!(self.reason, SymbolReason::LaterInMusl { since } if since <= promised) {
            return None;
        }
        Some(SymbolBlocker {
            object: self.object,
            library: format!("libc.musl-{}.so.1", target.arch().tag()),
            node: None,
            symbol: Some(self.symbol.clone()),
            ceiling: None,
            reason: self.reason.clone(),
        })
    }
}

struct UnversionedDemand {
    object: usize,
    library: &'static str,
    node: &'static str,
    symbol: String,
}

impl Demands {
    pub(crate) fn gather<'t>(audit: &Audit<'_>, targets: impl Iterator<Item = &'t Target>) -> Self {
        let targets: Vec<&Target> = targets.collect();
        Self {
            nodes: node_demands(audit),
            packed: audit
                .counted()
                .filter(|(_, o)| is_unguarded_relr(o.object))
                .map(|(index, _)| index)
                .collect(),
            unversioned: unversioned_demands(audit),
            musl: musl_demands(audit),
            forbidden: forbidden_candidates(audit, &targets),
            isa: isa(audit),
            python: python_needs(audit),
            unreachable: unreachable(audit),
            by_version: audit.objects.iter().map(|_| OnceCell::new()).collect(),
        }
    }

    /// What stands in the way of `target`. With `accept_providers`, libraries that requirements or drivers bring,
    /// and siblings that an earlier import brings, do not.
    pub(crate) fn against(&self, audit: &Audit<'_>, target: &Target, accept_providers: bool) -> Blockers {
        Blockers {
            symbols: self.symbols(audit, target),
            libraries: self.libraries(audit, target, accept_providers),
            forbidden: self.forbidden_on(target),
            isa: self.isa.clone(),
            python: self.python.clone(),
        }
    }

    fn symbols(&self, audit: &Audit<'_>, target: &Target) -> Vec<SymbolBlocker> {
        let mut blockers = Vec::new();
        let mut judged: BTreeMap<&str, NodeVerdict> = BTreeMap::new();
        for demand in &self.nodes {
            let verdict = judged.entry(&demand.node).or_insert_with(|| target.allows_node(&demand.node));
            let (ceiling, reason) = match verdict {
                NodeVerdict::Allowed | NodeVerdict::NotCovered => continue,
                NodeVerdict::TooNew { ceiling } => (ceiling.clone(), SymbolReason::TooNew),
                NodeVerdict::Unknown => (None, SymbolReason::NoSuchNode),
            };
            let users = demand.users.get_or_init(|| match self.by_version.get(demand.object) {
                Some(by_version) => users_of_node(audit, demand, by_version),
                None => Vec::new(),
            });
            blockers.extend(users.iter().cloned().map(|symbol| SymbolBlocker {
                object: demand.object,
                library: demand.library.clone(),
                node: Some(demand.node.clone()),
                symbol,
                ceiling: ceiling.clone(),
                reason: reason.clone(),
            }));
        }
        for demand in &self.unversioned {
            if let NodeVerdict::TooNew { ceiling } = target.allows_node(demand.node) {
                blockers.push(SymbolBlocker {
                    object: demand.object,
                    library: demand.library.to_owned(),
                    node: Some(demand.node.to_owned()),
                    symbol: Some(demand.symbol.clone()),
                    ceiling,
                    reason: SymbolReason::Unversioned,
                });
            }
        }
        if let NodeVerdict::TooNew { ceiling } = target.allows_node(RELR_NODE) {
            blockers.extend(self.packed.iter().map(|&object| SymbolBlocker {
                object,
                library: "libc.so.6".to_owned(),
                node: Some(RELR_NODE.to_owned()),
                symbol: None,
                ceiling: ceiling.clone(),
                reason: SymbolReason::PackedRelocations,
            }));
        }
        blockers.extend(gone(audit, target));
        blockers.extend(self.musl.iter().filter_map(|demand| demand.on(target)));
        blockers.sort();
        blockers
    }

    fn libraries(&self, audit: &Audit<'_>, target: &Target, accept_providers: bool) -> Vec<LibraryBlocker> {
        let mut blockers = Vec::new();
        for external in &audit.externals {
            let reason = match target.library(&external.soname) {
                LibraryVerdict::Allowed | LibraryVerdict::DynamicLinker => continue,
                LibraryVerdict::NotAllowed => LibraryReason::NotPromised,
                LibraryVerdict::MustBundle { reason } => LibraryReason::MustBundle(reason),
                LibraryVerdict::Denied { reason } => LibraryReason::Denied(reason),
            };
            let provided = matches!(external.origin, Origin::Provider { .. } | Origin::Driver(_));
            if accept_providers && provided && reason == LibraryReason::NotPromised {
                continue;
            }
            let needed_by = external.needed_by.clone();
            blockers.push(LibraryBlocker { soname: external.soname.clone(), needed_by, reason });
        }
        let helped = |b: &&LibraryBlocker| {
            !(accept_providers && matches!(b.reason, LibraryReason::Unreachable { preloadable: true, .. }))
        };
        blockers.extend(self.unreachable.iter().filter(helped).cloned());
        blockers
    }

    fn forbidden_on(&self, target: &Target) -> Vec<ForbiddenSymbol> {
        let forbids = |f: &&ForbiddenSymbol| {
            target.forbidden_symbols(&f.library).iter().any(|s| *s == f.symbol || *s == "*")
        };
        self.forbidden.iter().filter(forbids).cloned().collect()
    }
}

/// The version of libc that stands for a loader which reads `DT_RELR` (glibc 2.36, elf/dl-version.c).
const RELR_NODE: &str = "GLIBC_ABI_DT_RELR";

/// Has `DT_RELR`, and an old glibc does not refuse it for lack of [`RELR_NODE`], as it should.
fn is_unguarded_relr(object: &Object) -> bool {
    let asks = || object.versions.needs.iter().flat_map(|n| &n.versions).any(|v| v.name == RELR_NODE);
    object.dynamic.relr && !asks()
}

/// The libraries that an object needs and that are in the input, reachable or not: a version that is wanted from
/// one of them is not wanted from the system.
fn in_wheel_needs<'a>(audit: &'a Audit<'_>, object: usize) -> BTreeSet<&'a str> {
    audit
        .resolution
        .needs_of(object)
        .iter()
        .filter(|need| matches!(need.outcome, Outcome::Found { .. } | Outcome::Unreachable { .. }))
        .map(|need| need.name.as_str())
        .collect()
}

fn node_demands(audit: &Audit<'_>) -> Vec<NodeDemand> {
    let mut demands = Vec::new();
    for (index, entry) in audit.counted() {
        let own = in_wheel_needs(audit, index);
        for need in &entry.object.versions.needs {
            let library = need.library.to_text();
            if own.contains(library.as_str()) {
                continue;
            }
            demands.extend(need.versions.iter().map(|version| NodeDemand {
                object: index,
                library: library.clone(),
                node: version.name.to_text(),
                index: version.index & VERSION_INDEX,
                users: OnceCell::new(),
            }));
        }
    }
    demands
}

/// The symbols that use a node; `None` alone if no symbol does. `by_version` holds the object's symbols by version
/// index, so that asking about each of many nodes costs no walk over all symbols.
fn users_of_node(
    audit: &Audit<'_>,
    demand: &NodeDemand,
    by_version: &OnceCell<SymbolsByVersion>,
) -> Vec<Option<String>> {
    let Some(entry) = audit.objects.get(demand.object) else { return Vec::new() };
    let object = entry.object;
    let users = by_version.get_or_init(|| symbols_by_version(object)).get(&demand.index);
    let mut users: Vec<Option<String>> = users
        .into_iter()
        .flatten()
        .filter_map(|&i| object.symbols.get(i))
        .filter(|s| match object.version_of(s) {
            SymbolVersion::Needed(need, version) => {
                version.name == *demand.node.as_str() && need.library == *demand.library.as_str()
            }
            _ => false,
        })
        .map(|s| Some(object.symbols.name_text(s)))
        .collect();
    users.sort();
    users.dedup();
    if users.is_empty() { vec![None] } else { users }
}

/// Undefined symbols by `DT_VERSYM` index, as positions in the table.
type SymbolsByVersion = HashMap<u16, Vec<u32>>;

fn symbols_by_version(object: &Object) -> SymbolsByVersion {
    let mut by_version = SymbolsByVersion::new();
    for (position, symbol) in (1..).zip(object.symbols.iter()) {
        if symbol.is_undefined() {
            by_version.entry(symbol.version & VERSION_INDEX).or_default().push(position);
        }
    }
    by_version
}

/// The part of a `DT_VERSYM` entry that is the index; the rest is the hidden bit.
const VERSION_INDEX: u16 = 0x7fff;

fn unversioned_demands(audit: &Audit<'_>) -> Vec<UnversionedDemand> {
    let demand = |reference: &OpenReference| {
        let Outlook::System(exports) = &reference.outlook else { return None };
        let (library, node) = symbol_tables::oldest(exports)?;
        let symbol = reference.symbol.clone();
        Some(UnversionedDemand { object: reference.object, library, node, symbol })
    };
    audit.open_references.iter().filter_map(demand).collect()
}

fn musl_demands(audit: &Audit<'_>) -> Vec<MuslDemand> {
    let Some(platform) = audit.platform.filter(|p| p.libc == Libc::Musl) else { return Vec::new() };
    let reason = |reference: &OpenReference| match &reference.outlook {
        Outlook::Nobody(_) => {
            let others = symbol_tables::glibc_exports(platform, &reference.symbol);
            Some(SymbolReason::NotInMusl { elsewhere: others.first()?.library })
        }
        Outlook::System(exports) => {
            let since = symbol_tables::musl_since(exports)?;
            Some(SymbolReason::LaterInMusl { since })
        }
        Outlook::Elsewhere(_) => None,
    };
    let demand = |reference: &OpenReference| {
        let (object, symbol) = (reference.object, reference.symbol.clone());
        Some(MuslDemand { object, symbol, reason: reason(reference)? })
    };
    audit.open_references.iter().filter_map(demand).collect()
}

fn gone<'a>(audit: &'a Audit<'_>, target: &Target) -> impl Iterator<Item = SymbolBlocker> + use<'a> {
    let lost = audit.lost_references.on(audit, target).into_iter();
    lost.filter(|(_, loss)| matches!(loss, Loss::Gone { .. })).map(|(reference, loss)| SymbolBlocker {
        object: reference.object,
        library: reference.library.clone(),
        node: Some(reference.node.clone()),
        symbol: Some(reference.symbol.clone()),
        ceiling: None,
        reason: SymbolReason::Gone(loss),
    })
}

/// All ELF files are looked at, libraries that others bring in too, and weak references are not: a loader leaves
/// those at zero.
fn forbidden_candidates(audit: &Audit<'_>, targets: &[&Target]) -> Vec<ForbiddenSymbol> {
    let mut found = Vec::new();
    for (index, entry) in audit.counted() {
        let external =
            audit.resolution.needs_of(index).iter().filter(|n| matches!(n.outcome, Outcome::External));
        for library in external.map(|n| n.name.as_str()) {
            let listed: BTreeSet<&str> =
                targets.iter().flat_map(|t| t.forbidden_symbols(library).iter().copied()).collect();
            if listed.is_empty() {
                continue;
            }
            let symbols = &entry.object.symbols;
            let strong = symbols.undefined().filter(|s| !s.is_weak()).map(|s| symbols.name_text(s));
            found.extend(
                strong
                    .filter(|name| listed.contains(name.as_str()) || listed.contains("*"))
                    .map(|symbol| ForbiddenSymbol { object: index, library: library.to_owned(), symbol }),
            );
        }
    }
    found.sort();
    found.dedup();
    found
}

fn isa(audit: &Audit<'_>) -> Vec<(usize, IsaLevel)> {
    let needed = |(index, entry): (usize, &crate::audit::AuditObject<'_>)| {
        let level = entry.object.notes.isa_needed()?;
        let newer = level > IsaLevel::Baseline && !is_hwcaps_copy(&entry.member.name);
        newer.then_some((index, level))
    };
    audit.counted().filter_map(needed).collect()
}

/// ld.so opens files below such a directory only on processors of its level (glibc elf/dl-hwcaps.c).
fn is_hwcaps_copy(member: &str) -> bool {
    member.split('/').any(|part| part == "glibc-hwcaps")
}

fn python_needs(audit: &Audit<'_>) -> Vec<(usize, Vec<String>)> {
    let mut needs = Vec::new();
    for (index, entry) in audit.counted() {
        let Role::Extension(extension) = &entry.role else { continue };
        let mut symbols = python::fpe_symbols(entry.object);
        if extension.entry == python::EntryPoint::Init2 {
            symbols.extend(python::ucs2_symbols(entry.object));
        }
        if !symbols.is_empty() {
            needs.push((index, symbols));
        }
    }
    needs
}

fn unreachable(audit: &Audit<'_>) -> Vec<LibraryBlocker> {
    let mut by_name: BTreeMap<&str, LibraryBlocker> = BTreeMap::new();
    for need in &audit.resolution.needs {
        if !audit.objects.get(need.from).is_some_and(|o| o.counts) {
            continue;
        }
        let Outcome::Unreachable { present } = &need.outcome else { continue };
        let helpless = !audit.may_be_preloaded(need);
        let blocker = by_name.entry(&need.name).or_insert_with(|| LibraryBlocker {
            soname: need.name.clone(),
            needed_by: Vec::new(),
            reason: LibraryReason::Unreachable { present: present.clone(), preloadable: true },
        });
        blocker.needed_by.push(need.from);
        if let (true, LibraryReason::Unreachable { preloadable, .. }) = (helpless, &mut blocker.reason) {
            *preloadable = false;
        }
    }
    by_name.into_values().collect()
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use super::{SymbolBlocker, SymbolReason};
    use crate::audit::Audit;
    use crate::settings::Settings;

    fn audited<T>(wheel: &TestWheel, ask: impl FnOnce(&Audit<'_>) -> T) -> T {
        let directory = tempfile::tempdir().unwrap();
        let options = abiaudit_scan::Options::default();
        let subjects = abiaudit_scan::scan(&wheel.write(directory.path()), &options).unwrap();
        let settings = Settings::default();
        ask(&Audit::new(&subjects[0], &settings))
    }

    /// The oldest tag that a wheel's content honours.
    fn tag(wheel: &TestWheel) -> String {
        audited(wheel, |audit| audit.verdict.as_ref().unwrap().tag.clone())
    }

    fn module() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m")
    }

    fn wheel(module: &ElfWriter) -> TestWheel {
        tagged("linux_x86_64", module)
    }

    fn tagged(platforms: &str, module: &ElfWriter) -> TestWheel {
        TestWheel::new("p", "1", &format!("cp312-cp312-{platforms}")).elf("p/m.so", module)
    }

    #[test]
    fn a_version_needed_from_the_loader_counts() {
        let module = module().needed("libc.so.6").needed("ld-linux-x86-64.so.2").undefined_versioned(
            "_dl_find_object",
            "ld-linux-x86-64.so.2",
            "GLIBC_2.35",
        );
        let wheel = wheel(&module);
        assert_eq!(tag(&wheel), "manylinux_2_35_x86_64");
        audited(&wheel, |audit| assert!(audit.externals.iter().all(|e| e.soname == "libc.so.6")));
    }

    /// ld.so answers `libc.so.6` with what the interpreter has loaded before it looks at any path.
    #[test]
    fn a_copy_of_libc_in_the_wheel_serves_no_module() {
        let module = module().needed("libc.so.6").undefined_versioned("f", "libc.so.6", "GLIBC_2.34");
        let module = module.runpath("$ORIGIN");
        let libc = ElfWriter::new(Arch::X86_64).soname("libc.so.6").define("f");
        assert_eq!(tag(&wheel(&module).elf("p/libc.so.6", &libc)), "manylinux_2_34_x86_64");
    }

    #[test]
    fn a_copy_that_no_path_leads_to_leaves_a_need_to_the_system() {
        let copy = |soname: &str| ElfWriter::new(Arch::X86_64).soname(soname).define("f");
        for soname in ["libc.so.6", "libz.so.1"] {
            let wheel = wheel(&module().needed(soname)).elf(&format!("p/root/{soname}"), &copy(soname));
            assert_eq!(tag(&wheel), "manylinux_2_5_x86_64", "{soname}");
        }
        let wheel = wheel(&module().needed("libfoo.so.1")).elf("p/root/libfoo.so.1", &copy("libfoo.so.1"));
        assert_eq!(tag(&wheel), "linux_x86_64", "no system has it");
    }

    /// glibc before 2.36 has no notion of `DT_RELR` and starts the object with pointers that were never relocated.
    #[test]
    fn packed_relocations_need_a_loader_that_reads_them() {
        const DT_RELR: i64 = 36;
        assert_eq!(tag(&wheel(&module().needed("libc.so.6").dynamic(DT_RELR, 0))), "manylinux_2_36_x86_64");
    }

    #[test]
    fn each_criterion_knows_releases_that_no_policy_lists() {
        let module = module().needed("libc.so.6").undefined_versioned("f", "libc.so.6", "GLIBC_2.42");
        audited(&wheel(&module), |audit| {
            let verdict = audit.verdict.as_ref().unwrap();
            assert_eq!(verdict.tag, "manylinux_2_42_x86_64");
            assert_eq!(verdict.by.symbols, verdict.tag);
            assert_eq!(verdict.by.libraries, "manylinux_2_5_x86_64");
        });
    }

    /// The verdict, the ladder and ABI102 say the same of a symbol that is not where its version says.
    #[test]
    fn a_symbol_that_newer_systems_lack_breaks_the_promise_to_them() {
        let module = module().needed("libc.so.6").needed("libm.so.6");
        let moved = module.undefined_versioned("scalbln", "libc.so.6", "GLIBC_2.2.5");
        audited(&tagged("manylinux_2_17_x86_64", &moved), |audit| {
            let verdict = audit.verdict.as_ref().unwrap();
            assert!(!verdict.claim_ok);
            // From 2.30 on ld.so looks for it in libm too.
            assert_eq!(verdict.tag, "manylinux_2_31_x86_64");
            let gone = |b: &SymbolBlocker| matches!(b.reason, SymbolReason::Gone(_));
            assert!(verdict.ladder.iter().all(|step| step.blockers.symbols.iter().any(gone)));
        });
    }

    #[test]
    fn a_symbol_that_musl_lacks_or_got_later_breaks_the_promise() {
        let musl = || module().needed("libc.musl-x86_64.so.1");
        for (symbol, tag) in [("__memcpy_chk", "linux_x86_64"), ("qsort_r", "linux_x86_64")] {
            audited(&tagged("musllinux_1_2_x86_64", &musl().undefined(symbol)), |audit| {
                let verdict = audit.verdict.as_ref().unwrap();
                assert!(!verdict.claim_ok, "{symbol}");
                assert_eq!(verdict.by.symbols, tag, "{symbol}");
            });
        }
        audited(&tagged("musllinux_1_2_x86_64", &musl().undefined("memcpy")), |audit| {
            assert!(audit.verdict.as_ref().unwrap().claim_ok);
        });
    }

    /// glibc does not follow `DT_RUNPATH` of the loading object (ld.so(8)); musl does (ldso/dynlink.c).
    #[test]
    fn each_claim_is_judged_by_its_own_loader() {
        let library = |soname: &str| ElfWriter::new(Arch::X86_64).soname(soname);
        let module = module().needed("liba.so").runpath("$ORIGIN/libs");
        let wheel = tagged("manylinux_2_17_x86_64.musllinux_1_2_x86_64", &module)
            .elf("p/libs/liba.so", &library("liba.so").needed("libb.so"))
            .elf("p/libs/libb.so", &library("libb.so"));
        audited(&wheel, |audit| {
            let claims = &audit.verdict.as_ref().unwrap().claims;
            let held: Vec<(&str, bool)> = claims.iter().map(|c| (c.tag.as_str(), c.holds)).collect();
            assert_eq!(held, [("manylinux_2_17_x86_64", false), ("musllinux_1_2_x86_64", true)]);
        });
    }
}
