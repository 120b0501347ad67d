//! The C++ standard library of an object.
//!
//! A *strong* exported definition of a libstdc++ symbol that is no template is library code: user code never emits one,
//! while it emits thousands of weak ones (templates, inline functions). Templates are left out even where they are
//! strong, because link-time optimisation makes weak definitions global (llvmlite 0.50). Which *part* of the
//! library it is shows the version node: what a split toolchain adds to an old system's libstdc++ is newer than
//! [`BASE`], what a full copy brings is older too. A hidden full copy shows nothing; it is told by its texts.

use abiaudit_elf::Binding;
use abiaudit_policy::symbols::{Release, gcc_release_of};

use crate::allocators::replaces_new;
use crate::data::{Kind, MARKERS, is_trap};
use crate::evidence::{Evidence, Exposure, Fact, Grade};
use crate::itanium;
use crate::markers::Speaks;
use crate::object_facts::{ObjectFacts, Tally, evidence_of};

/// How much of a C++ standard library an object carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CxxClass {
    /// No C++, or C++ that uses nothing of a standard library.
    None,
    /// It uses a libstdc++ that another object provides.
    Dynamic,
    /// Dynamic, and it holds the parts that the oldest promised system's libstdc++ lacks: the split model of
    /// manylinux toolchains (`libstdc++_nonshared.a`).
    Partial,
    /// It holds a whole libstdc++ (`-static-libstdc++`).
    Full,
    /// It holds a whole libstdc++ and needs libstdc++.so.6 too: a static library with its own copy was linked in.
    FullAndNeeded,
    /// It holds the language support library alone (libsupc++): exceptions and typeinfo, no streams or locales.
    Minimal,
    /// It uses or holds LLVM's libc++.
    LibCxx {
        /// The inline namespace of its names: `__1`, Yandex's `__y1`, Android's `__ndk1`.
        namespace: String,
        /// Where libc++ is.
        linkage: LibCxxLinkage,
    },
    /// It is a libstdc++, by its soname.
    Vendored,
}

/// Where libc++ is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibCxxLinkage {
    /// In another object.
    Dynamic,
    /// In this one.
    Static,
    /// This is libc++.
    Library,
}

/// `__once_proxy` and `std::__once_call`: `std::call_once` passes a function from the one to the other, so both must
/// come from one copy. The first has C linkage and survives a version script that hides `std::*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OncePair {
    /// Neither is exported.
    Neither,
    /// Both are exported.
    Both,
    /// Only `__once_proxy` is exported.
    ProxyOnly,
    /// Only `std::__once_call` is exported.
    CallOnly,
}

/// An exported strong definition of a libstdc++ symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedDefinition {
    /// Mangled name.
    pub name: String,
    /// The version node that libstdc++.so.6 has it at, such as `GLIBCXX_3.4.26`.
    pub node: &'static str,
    /// Every libstdc++.so.6 since GCC 4.1 has it, so that no split toolchain adds it.
    pub base: bool,
}

/// What is said of an object's C++ standard library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CxxRuntime {
    /// How much of it is carried.
    pub class: CxxClass,
    /// How much of what is carried other objects see.
    pub exposure: Exposure,
    /// Whether `std::call_once` is torn.
    pub once: OncePair,
    /// Exported `STB_GNU_UNIQUE` definitions of `std::locale` facet ids, sorted. One id for the process and one facet
    /// table for each copy is what breaks streams.
    pub unique_facet_ids: Vec<String>,
    /// Exported strong definitions of libstdc++ symbols, in the order of the symbol table; instances of templates,
    /// allocator functions and other known look-alikes are left out.
    pub exported: Vec<ExportedDefinition>,
    /// `DT_NEEDED` names a libstdc++ (or libc++, where that is the class).
    pub needs_library: bool,
    /// References to symbols of a C++ standard library.
    pub references: usize,
    /// What the class rests on, the best first.
    pub evidence: Vec<Evidence>,
}

impl CxxRuntime {
    /// Does the object hold a copy of what there should be one of in a process: streams, locales, exception state?
    pub fn has_own_copy(&self) -> bool {
        use CxxClass::{Full, FullAndNeeded, LibCxx, Minimal, Vendored};
        match &self.class {
            Full | FullAndNeeded | Minimal | Vendored => true,
            LibCxx { linkage, .. } => *linkage != LibCxxLinkage::Dynamic,
            _ => false,
        }
    }
}

/// The last GCC whose version nodes count as base: GLIBCXX_3.4.8 came with 4.1.1, and the oldest system that a tag
/// ever promised (CentOS 5, PEP 513) has it. Measured: no partial runtime brings a symbol that old, look-alikes aside.
const BASE: Release = Release::with_patch(4, 1, 1);
/// So many exported base definitions are a whole libstdc++. Measured: partial ones have at most 4, full ones 159 and
/// more.
const FULL_EXPORTS: usize = 40;

pub(crate) fn detect(facts: &ObjectFacts<'_>) -> CxxRuntime {
    let symbols = StandardSymbols::new(facts);
    let local = local_definitions(facts);
    let class = classify(facts, &symbols, &local);
    let exposure = exposure(&class, &symbols);
    let evidence = evidence(facts, &symbols, &local, &class);
    CxxRuntime {
        exposure,
        once: symbols.once,
        needs_library: facts.needed(Kind::Cxx).next().is_some(),
        references: symbols.references.count,
        unique_facet_ids: symbols.unique_facet_ids,
        exported: symbols.exported,
        class,
        evidence,
    }
}

/// The dynamic symbols that belong to a C++ standard library.
struct StandardSymbols {
    exported: Vec<ExportedDefinition>,
    /// How many of them are base and streams, locales and the like (`GLIBCXX_*`): libc++abi exports `CXXABI_*` names.
    base_exports: usize,
    newer_exports: usize,
    unique_facet_ids: Vec<String>,
    once: OncePair,
    references: Tally,
    libcxx_exports: Tally,
    libcxx_references: Tally,
    /// `__cxa_*` and typeinfo of `std::exception`: what libc++abi and libsupc++ share.
    abi_exports: Tally,
}

impl StandardSymbols {
    fn new(facts: &ObjectFacts<'_>) -> Self {
        let mut symbols = Self {
            exported: Vec::new(),
            base_exports: 0,
            newer_exports: 0,
            unique_facet_ids: Vec::new(),
            once: once_pair(facts),
            references: Tally::default(),
            libcxx_exports: Tally::default(),
            libcxx_references: Tally::default(),
            abi_exports: Tally::default(),
        };
        // Allocators replace operators that libstdc++ has, old and new ones.
        let is_allocator = replaces_new(facts);
        for (symbol, name) in facts.exports() {
            if is_allocator && itanium::is_allocation_operator(name) {
                continue;
            }
            if itanium::may_be_standard(name)
                && let Ok(name) = str::from_utf8(name)
            {
                symbols.add_export(facts, name, symbol.binding());
            }
        }
        symbols.unique_facet_ids.sort();
        for (symbol, name) in facts.references() {
            let Ok(name) = str::from_utf8(name) else { continue };
            if libcxx_namespace_of(name).is_some() {
                symbols.libcxx_references.add(name);
            } else if is_reference_to_libstdcxx(facts, symbol, name) {
                symbols.references.add(name);
            }
        }
        symbols
    }

    fn add_export(&mut self, facts: &ObjectFacts<'_>, name: &str, binding: Binding) {
        if libcxx_namespace_of(name).is_some() {
            if binding == Binding::Global {
                self.libcxx_exports.add(name);
            }
            return;
        }
        let node = |name: &str| facts.libstdcxx.and_then(|library| library.node_of(name));
        match binding {
            Binding::Unique if is_facet_id(name) && node(name).is_some() => {
                self.unique_facet_ids.push(name.to_owned());
            }
            Binding::Global if itanium::is_plain(name) && !is_trap(name) => {
                let Some(node) = node(name) else { return };
                // Nodes without a known release are those of another `long double`, old and new.
                let Some(release) = gcc_release_of(node) else { return };
                let base = release <= BASE;
                if base && node.starts_with("GLIBCXX") {
                    self.base_exports += 1;
                }
                if base && node.starts_with("CXXABI") {
                    self.abi_exports.add(name);
                }
                if !base {
                    self.newer_exports += 1;
                }
                self.exported.push(ExportedDefinition { name: name.to_owned(), node, base });
            }
            _ => {}
        }
    }
}

/// `std::num_put<...>::id` and the like: a static member `id` of a facet, and not the guard of one.
fn is_facet_id(name: &str) -> bool {
    name.starts_with("_ZNSt") && name.ends_with("E2idE")
}

/// The inline namespace of libc++ that a symbol is in, if it is one that is known.
fn libcxx_namespace_of(symbol: &str) -> Option<&'static str> {
    let nested = itanium::nested_name(symbol)?;
    let names = MARKERS.iter().filter(|marker| marker.speaks_for == Speaks::LibcxxName);
    // The markers are `NSt3__1` and the like: the length has one digit.
    names.map(|marker| marker.text).find(|text| nested.starts_with(&text[1..])).map(|text| &text[4..])
}

fn once_pair(facts: &ObjectFacts<'_>) -> OncePair {
    match (facts.defines("__once_proxy"), facts.defines("_ZSt11__once_call")) {
        (false, false) => OncePair::Neither,
        (true, true) => OncePair::Both,
        (true, false) => OncePair::ProxyOnly,
        (false, true) => OncePair::CallOnly,
    }
}

/// A reference with a version names its library; one without (musl) is looked up by name.
fn is_reference_to_libstdcxx(facts: &ObjectFacts<'_>, symbol: &abiaudit_elf::Symbol, name: &str) -> bool {
    match facts.provider(symbol) {
        Some(library) => crate::stem(&library.to_text()) == "libstdc++",
        None => {
            itanium::may_be_standard(name.as_bytes())
                // A weak reference to it is made by the start-up code of C too (glibc's crti, GCC's crtstuff).
                && name != "__cxa_finalize"
                && facts.libstdcxx.is_some_and(|library| library.contains(name))
        }
    }
}

/// Newer parts of libstdc++ that only `.symtab` shows, if it was read. Everything that is hidden is local there, what
/// was weak too; so only plain functions and variables count, which nobody but the library defines.
fn local_definitions(facts: &ObjectFacts<'_>) -> Tally {
    let mut tally = Tally::default();
    let Some(library) = facts.libstdcxx else { return tally };
    for entry in &facts.object.symtab.0 {
        let name = &entry.name;
        let defined = entry.section != 0 && entry.section < 0xff00;
        if !defined || !itanium::may_be_standard(name.as_bytes()) || !itanium::is_plain(name) {
            continue;
        }
        if is_trap(name) || libcxx_namespace_of(name).is_some() {
            continue;
        }
        let newer = |node: &str| gcc_release_of(node).is_some_and(|release| release > BASE);
        if library.node_of(name).is_some_and(newer) {
            tally.add(name);
        }
    }
    tally
}

fn classify(facts: &ObjectFacts<'_>, symbols: &StandardSymbols, local: &Tally) -> CxxClass {
    let own = facts.own_family(Kind::Cxx).map(|(family, _)| family);
    if own == Some("libstdc++") {
        return CxxClass::Vendored;
    }
    let needs = |family| facts.needed(Kind::Cxx).any(|(name, _)| name == family);
    let full = facts.units(Speaks::LibstdcxxFull, Grade::B) >= 2 || symbols.base_exports >= FULL_EXPORTS;
    if full {
        return if needs("libstdc++") { CxxClass::FullAndNeeded } else { CxxClass::Full };
    }
    if let Some(class) = libcxx(facts, symbols, own == Some("libc++"), needs("libc++")) {
        return class;
    }
    // Two units: the typeinfo of typeinfos, and the terminate handler.
    if facts.is_proved(Speaks::CxxAbiLibrary) {
        return CxxClass::Minimal;
    }
    if symbols.newer_exports > 0 || local.count > 0 {
        return CxxClass::Partial;
    }
    if symbols.references.count > 0 { CxxClass::Dynamic } else { CxxClass::None }
}

/// libc++, if the object has to do with it.
fn libcxx(
    facts: &ObjectFacts<'_>,
    symbols: &StandardSymbols,
    is_library: bool,
    needs_library: bool,
) -> Option<CxxClass> {
    let facet = facts.found(Speaks::LocaleFacet).find_map(|f| itanium::namespace_of_facet(&f.text));
    let name = facts.found(Speaks::LibcxxName).next().map(|found| &found.marker().text[4..]);
    let symbol = symbols.libcxx_exports.examples.iter().chain(&symbols.libcxx_references.examples).next();
    let namespace = facet.or(name).or(symbol.and_then(|s| libcxx_namespace_of(s)))?.to_owned();
    let linkage = if is_library {
        LibCxxLinkage::Library
    } else if needs_library || symbols.libcxx_references.count > 0 {
        LibCxxLinkage::Dynamic
    } else {
        // Names alone come from headers: its locales or its ABI library must be here too.
        let carried = (facet.is_some() && facts.units(Speaks::Libcxx, Grade::B) > 0)
            || facts.units(Speaks::CxxAbiLibrary, Grade::B) > 0;
        if !carried {
            return None;
        }
        LibCxxLinkage::Static
    };
    Some(CxxClass::LibCxx { namespace, linkage })
}

fn exposure(class: &CxxClass, symbols: &StandardSymbols) -> Exposure {
    let torn = matches!(symbols.once, OncePair::ProxyOnly | OncePair::CallOnly);
    let exported = match class {
        CxxClass::None | CxxClass::Dynamic | CxxClass::LibCxx { linkage: LibCxxLinkage::Dynamic, .. } => {
            return Exposure::NotApplicable;
        }
        CxxClass::Vendored | CxxClass::LibCxx { linkage: LibCxxLinkage::Library, .. } => true,
        CxxClass::LibCxx { linkage: LibCxxLinkage::Static, .. } => {
            symbols.libcxx_exports.count > 0 || symbols.abi_exports.count > 0
        }
        CxxClass::Minimal => symbols.abi_exports.count > 0,
        CxxClass::Partial => symbols.newer_exports > 0,
        CxxClass::Full | CxxClass::FullAndNeeded => symbols.base_exports >= FULL_EXPORTS,
    };
    // Facets break in every process, a torn call_once only next to another copy in the global scope.
    if !symbols.unique_facet_ids.is_empty() {
        Exposure::Exported
    } else if torn {
        Exposure::HalfHidden
    } else if exported {
        Exposure::Exported
    } else {
        Exposure::Hidden
    }
}

fn evidence(
    facts: &ObjectFacts<'_>,
    symbols: &StandardSymbols,
    local: &Tally,
    class: &CxxClass,
) -> Vec<Evidence> {
    let mut all = Vec::new();
    if let Some((_, soname)) = facts.own_family(Kind::Cxx) {
        all.push(Evidence::new(Grade::A, Fact::Soname(soname.to_owned())));
    }
    let mut ids = Tally::default();
    symbols.unique_facet_ids.iter().for_each(|id| ids.add(id));
    all.extend(ids.exported("facet ids of binding UNIQUE"));
    let torn = match symbols.once {
        OncePair::ProxyOnly => Some("__once_proxy"),
        OncePair::CallOnly => Some("_ZSt11__once_call"),
        _ => None,
    };
    if let Some(name) = torn {
        let mut tally = Tally::default();
        tally.add(name);
        all.extend(tally.exported("half of std::call_once"));
    }
    let definitions = |base: bool| {
        let mut tally = Tally::default();
        let some = symbols.exported.iter().filter(|d| d.base == base);
        some.for_each(|d| tally.add(&format!("{}@{}", d.name, d.node)));
        tally
    };
    all.extend(definitions(true).exported("strong libstdc++ definitions of GCC 4.1 and before"));
    all.extend(definitions(false).exported("newer strong libstdc++ definitions"));
    all.extend(symbols.libcxx_exports.exported("strong libc++ definitions"));
    if local.count > 0 {
        let Tally { count, examples } = local.clone();
        let what = "newer libstdc++ definitions".to_owned();
        all.push(Evidence::new(Grade::A, Fact::Locals { what, count, examples }));
    }
    for (_, soname) in facts.needed(Kind::Cxx) {
        all.push(Evidence::new(Grade::A, Fact::Needed(soname.to_owned())));
    }
    all.extend(symbols.references.referred("libstdc++ symbols"));
    all.extend(symbols.libcxx_references.referred("libc++ symbols"));
    all.extend(facts.texts(Speaks::LibstdcxxFull));
    all.extend(facts.texts(Speaks::CxxAbiLibrary));
    all.extend(facts.texts(Speaks::LibstdcxxPart));
    all.extend(facts.texts(Speaks::Libcxx));
    let facets = facts.found(Speaks::LocaleFacet);
    all.extend(facets.filter(|f| itanium::namespace_of_facet(&f.text).is_some()).map(evidence_of));
    all.extend(facts.found(Speaks::LibcxxName).take(1).map(evidence_of));
    if *class == CxxClass::None && facts.needed(Kind::Cxx).next().is_some() {
        let text = "needs a C++ library and refers to none of its symbols";
        all.push(Evidence::new(Grade::D, Fact::Circumstance(text)));
    }
    all.sort_by_key(|evidence| evidence.grade);
    all
}
