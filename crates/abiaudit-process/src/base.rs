//! What is in the process before any wheel: a described CPython, the C library, GCC's runtimes.
//!
//! No library of the machine is looked at. What the system has is known from the tables of
//! [`abiaudit_policy::symbols`], at one release of the C library and of GCC. Two kinds of libraries have no table:
//!
//! * **CPython** is taken to export every name that begins with `Py` or `_Py`, but `PyInit_*` (each extension has its
//!   own) and names that an input exports itself (`PyArray_*` and the like are theirs). It needs libm and libc; what a
//!   distribution's build links beyond that (zlib, libexpat, its own extension modules) is not there.
//! * **Other libraries of the system**, such as libX11: that they exist is known, what they export is not. They serve
//!   nothing; a reference that finds no one else stays unresolved, and whoever reports it can name them
//!   ([`SystemKind::Unknown`]).
//!
//! What libstdc++ and libgcc_s ask the loader for themselves, and what libgomp exports, is in
//! `policies/system-references.toml`: the relocations and symbols of one distribution's builds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use abiaudit_elf::Name;
use abiaudit_loader::binding::{Provided, SystemLibrary, SystemReference};
use abiaudit_policy::symbols::{self, Export, Kind, Release};
use abiaudit_policy::{Arch, Libc, PolicySet, ProviderClass, providers};

use crate::site::{Platform, Site};
use crate::system_references::{self, Named};

/// Which releases the system has; what is not given is the newest that the tables know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Releases {
    /// glibc or musl.
    pub libc: Option<Release>,
    /// GCC, for libstdc++, libgcc_s and libatomic.
    pub gcc: Option<Release>,
}

/// There is no table for the platform, so that nothing could be said of its system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no symbol table for {libc} on {}", arch.tag())]
pub struct UnknownPlatform {
    /// Architecture.
    pub arch: Arch,
    /// C library.
    pub libc: Libc,
}

/// What is known of a library of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemKind {
    /// The program: CPython, by the names' beginnings.
    Python,
    /// A table of exports.
    Table,
    /// That it exists.
    Unknown,
}

/// The libraries of the system.
#[derive(Debug)]
pub struct SystemBase {
    libraries: Vec<Described>,
    /// Release of the C library.
    pub libc: Release,
    /// Release of GCC.
    pub gcc: Release,
}

#[derive(Debug)]
struct Described {
    soname: String,
    needed: Vec<String>,
    exports: Exports,
    /// What it asks the loader for itself, as far as predicates look at it.
    references: Vec<Named>,
}

#[derive(Debug)]
enum Exports {
    /// All that begins with `Py` or `_Py` but these.
    Python(HashSet<Vec<u8>>),
    Versioned(HashMap<String, Vec<Definition>>),
    /// musl compares no versions.
    Unversioned(HashSet<String>),
    Zlib(symbols::ZlibTable),
    Unknown,
}

#[derive(Debug)]
struct Definition {
    version: Option<&'static str>,
    /// A reference without a version takes it.
    is_default: bool,
    is_unique: bool,
}

impl SystemBase {
    /// Position of the program among the libraries.
    pub const PROGRAM: usize = 0;

    /// The system that the files of the site may count on.
    ///
    /// # Errors
    /// [`UnknownPlatform`] if there is no table of the C library.
    pub fn new(site: &Site<'_>, releases: Releases) -> Result<Self, UnknownPlatform> {
        let Platform { arch, libc } = site.platform;
        let unknown = UnknownPlatform { arch, libc };
        let gcc = releases.gcc.or_else(|| Some(symbols::libstdcxx(arch)?.newest_release()));
        let gcc = gcc.unwrap_or(Release::new(0, 0));
        let (mut libraries, libc_release) = match libc {
            Libc::Glibc => {
                let table = symbols::glibc(arch).ok_or(unknown)?;
                let release = releases.libc.unwrap_or(table.newest_release());
                (glibc(table, release, python(site, glibc_needs(release))), release)
            }
            Libc::Musl => {
                let table = symbols::musl(arch).ok_or(unknown)?;
                let release = releases.libc.unwrap_or(table.newest_release());
                (musl(table, arch, release, site), release)
            }
        };
        libraries.extend(gcc_runtimes(site.platform, gcc, &libraries));
        add_references(&mut libraries);
        let known: HashSet<&str> = libraries.iter().map(|library| library.soname.as_str()).collect();
        let others = others(site, &known);
        libraries.extend(others);
        Ok(Self { libraries, libc: libc_release, gcc })
    }

    /// All of them; the first is the program.
    pub fn libraries(&self) -> impl Iterator<Item = &dyn SystemLibrary> {
        self.libraries.iter().map(|library| library as &dyn SystemLibrary)
    }

    /// The name of a library; `python` for the program.
    pub fn soname(&self, library: usize) -> &str {
        self.libraries.get(library).map_or("", |library| &library.soname)
    }

    /// A library by its position.
    pub fn library(&self, library: usize) -> Option<&dyn SystemLibrary> {
        self.libraries.get(library).map(|library| library as &dyn SystemLibrary)
    }

    /// Name of what a library refers to, by [`SystemBinding`](abiaudit_loader::binding::SystemBinding).
    pub fn reference(&self, library: usize, reference: usize) -> Option<SystemReference<'_>> {
        self.libraries.get(library)?.references.get(reference).map(Named::as_reference)
    }

    /// What is known of it.
    pub fn kind(&self, library: usize) -> SystemKind {
        match self.libraries.get(library).map(|library| &library.exports) {
            Some(Exports::Python(_)) => SystemKind::Python,
            Some(Exports::Versioned(_) | Exports::Unversioned(_) | Exports::Zlib(_)) => SystemKind::Table,
            Some(Exports::Unknown) | None => SystemKind::Unknown,
        }
    }
}

/// What CPython is linked to. Before glibc 2.34 threads, `dlopen` and pseudo-terminals were libraries of their own.
fn glibc_needs(release: Release) -> Vec<String> {
    let names: &[&str] = if release < Release::new(2, 34) {
        &["libpthread.so.0", "libdl.so.2", "libutil.so.1", "libm.so.6", "libc.so.6"]
    } else {
        &["libm.so.6", "libc.so.6"]
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn python(site: &Site<'_>, needed: Vec<String>) -> Described {
    let mut theirs = HashSet::new();
    for file in &site.files {
        let symbols = &file.object.symbols;
        let names = symbols.exported().map(|symbol| symbols.name(symbol));
        theirs.extend(names.filter(|name| is_python(name)).map(<[u8]>::to_vec));
    }
    Described::new("python".to_owned(), needed, Exports::Python(theirs))
}

fn is_python(name: &[u8]) -> bool {
    (name.starts_with(b"Py") || name.starts_with(b"_Py")) && !name.starts_with(b"PyInit")
}

/// Python, and every library of glibc that the release has.
fn glibc(table: symbols::GlibcTable, release: Release, python: Described) -> Vec<Described> {
    let mut libraries = by_library(table.symbols(), release);
    let loader = libraries.keys().find(|soname| Libc::Glibc.is_dynamic_linker(soname)).copied();
    let mut described = vec![python];
    for (soname, symbols) in std::mem::take(&mut libraries) {
        let needed = match (soname, loader) {
            ("libc.so.6", Some(loader)) => vec![loader.to_owned()],
            (soname, _) if Some(soname) == loader || soname == "libc.so.6" => Vec::new(),
            _ => vec!["libc.so.6".to_owned()],
        };
        let exports = Exports::Versioned(symbols);
        described.push(Described::new(soname.to_owned(), needed, exports));
    }
    described
}

fn musl(table: symbols::MuslTable, arch: Arch, release: Release, site: &Site<'_>) -> Vec<Described> {
    let soname = format!("libc.musl-{}.so.1", arch.musl_name());
    let symbols = table.symbols().filter(|(_, rows)| rows.iter().any(|row| row.is_in(release)));
    let exports = Exports::Unversioned(symbols.map(|(name, _)| name).collect());
    let python = python(site, vec![soname.clone()]);
    vec![python, Described::new(soname, Vec::new(), exports)]
}

fn gcc_runtimes(platform: Platform, release: Release, libc: &[Described]) -> Vec<Described> {
    let Platform { arch, libc: family } = platform;
    let has = |soname: &&str| libc.iter().any(|library| library.soname == *soname);
    let libc_soname = match family {
        Libc::Glibc => "libc.so.6".to_owned(),
        Libc::Musl => format!("libc.musl-{}.so.1", arch.musl_name()),
    };
    let describe = |soname: &str, before: &[&str], exports: Exports| {
        let mut needed: Vec<String> =
            before.iter().filter(|s| has(s) || !s.starts_with("libm.")).map(|s| (*s).to_owned()).collect();
        needed.push(libc_soname.clone());
        Described::new(soname.to_owned(), needed, exports)
    };
    let mut runtimes = Vec::new();
    for (table, before) in [
        (symbols::libstdcxx(arch), &["libm.so.6", "libgcc_s.so.1"][..]),
        (symbols::libgcc(arch), &[]),
        (symbols::libatomic(arch), &[]),
    ] {
        let Some(table) = table else { continue };
        let exports = match family {
            Libc::Glibc => {
                let symbols = by_library(table.symbols(), release).remove(table.soname());
                Exports::Versioned(symbols.unwrap_or_default())
            }
            Libc::Musl => {
                let symbols = table.symbols().filter(|(_, rows)| rows.iter().any(|row| row.is_in(release)));
                Exports::Unversioned(symbols.map(|(name, _)| name).collect())
            }
        };
        runtimes.push(describe(table.soname(), before, exports));
    }
    runtimes.push(describe("libz.so.1", &[], Exports::Zlib(symbols::libz())));
    runtimes
}

/// Exports that the release has, by library and symbol.
fn by_library(
    symbols: impl Iterator<Item = (String, Vec<Export>)>,
    release: Release,
) -> BTreeMap<&'static str, HashMap<String, Vec<Definition>>> {
    let mut libraries = BTreeMap::<&str, HashMap<String, Vec<Definition>>>::new();
    let mut bases = BTreeMap::<&str, (Release, &str)>::new();
    for (name, rows) in symbols {
        for row in rows {
            // A library that a release has emptied is still there (libpthread since glibc 2.34).
            let library = libraries.entry(row.library).or_default();
            if let (Some(since), Some(version)) = (row.since, row.version) {
                let base = bases.entry(row.library).or_insert((since, version));
                *base = (*base).min((since, version));
            }
            if row.is_in(release) {
                let is_unique = is_unique(&name, row.kind);
                let definition = Definition { version: row.version, is_default: row.default, is_unique };
                library.entry(name.clone()).or_default().push(definition);
            }
        }
    }
    // Version index 2, the first that a library defines, serves references without a version too
    // (do_lookup_unversioned in glibc elf/dl-lookup.c).
    for (library, symbols) in &mut libraries {
        let base = bases.get(library).map(|(_, version)| *version);
        for definition in symbols.values_mut().flatten() {
            definition.is_default |= definition.version.is_none() || definition.version == base;
        }
    }
    libraries
}

/// `STB_GNU_UNIQUE` in libstdc++: static data of its class templates and the guards of its facets' ids. The facets that
/// are full specializations (ctype, codecvt) are no templates any more. Equal to the symbol table of the libstdc++ of
/// GCC 12 on x86_64; the tables of releases do not say it.
fn is_unique(name: &str, kind: Kind) -> bool {
    const STATIC_DATA: [&str; 6] =
        ["2idE", "4intlE", "4nposE", "11_S_max_sizeE", "11_S_terminalE", "20_S_empty_rep_storageE"];
    let of_std = ["_ZNSt", "_ZNSs", "_ZNSb", "_ZGVNSt"].iter().any(|prefix| name.starts_with(prefix));
    let specialized = ["_ZNSt5ctypeI", "_ZNSt7codecvtI"].iter().any(|prefix| name.starts_with(prefix));
    kind == Kind::Object && of_std && !specialized && STATIC_DATA.iter().any(|end| name.ends_with(end))
}

/// What files need or open of the system beyond the tables: what a platform tag promises, a driver, a host package.
fn others(site: &Site<'_>, known: &HashSet<&str>) -> Vec<Described> {
    let own: HashSet<String> = site
        .files
        .iter()
        .flat_map(|file| {
            let base = file.member.base_name().to_owned();
            file.object.dynamic.soname.iter().map(Name::to_text).chain([base])
        })
        .collect();
    let policies = PolicySet::builtin();
    let targets = policies.ladder(site.platform.libc, site.platform.arch);
    let promised: BTreeSet<String> =
        targets.iter().flat_map(|target| target.libraries().map(std::borrow::Cow::into_owned)).collect();
    let needed: BTreeSet<String> =
        site.files.iter().flat_map(|file| file.object.dynamic.needed.iter().map(Name::to_text)).collect();
    let of_system = |soname: &String| {
        let rows = providers().lookup(soname);
        promised.contains(soname)
            || rows.iter().any(|row| row.class != ProviderClass::Wheel)
            || system_references::of(soname).is_some()
    };
    needed
        .into_iter()
        .filter(|soname| !known.contains(soname.as_str()) && !own.contains(soname) && of_system(soname))
        .map(|soname| {
            let exports = other_exports(&soname, site.platform.libc);
            Described::new(soname, Vec::new(), exports)
        })
        .collect()
}

/// libgomp's exports are listed; of no other one anything is known.
fn other_exports(soname: &str, libc: Libc) -> Exports {
    let Some(listed) = system_references::of(soname).filter(|listed| !listed.exports.is_empty()) else {
        return Exports::Unknown;
    };
    let names = || listed.exports.iter();
    match libc {
        Libc::Musl => Exports::Unversioned(names().map(|named| named.symbol.clone()).collect()),
        Libc::Glibc => {
            let mut symbols = HashMap::<String, Vec<Definition>>::new();
            for Named { symbol, version } in names() {
                let version = version.as_deref();
                let definition = Definition { version, is_default: true, is_unique: false };
                symbols.entry(symbol.clone()).or_default().push(definition);
            }
            Exports::Versioned(symbols)
        }
    }
}

/// References that some library of the system serves: what an architecture or a release does not have is left out.
fn add_references(libraries: &mut [Described]) {
    for position in 0..libraries.len() {
        let Some(listed) = libraries.get(position).and_then(|library| system_references::of(&library.soname))
        else {
            continue;
        };
        let is_served = |named: &&Named| {
            let version = named.version.as_deref().map(str::as_bytes);
            libraries.iter().any(|library| library.provides(named.symbol.as_bytes(), version).is_some())
        };
        let references = listed.references.iter().filter(is_served).cloned().collect();
        if let Some(library) = libraries.get_mut(position) {
            library.references = references;
        }
    }
}

impl Described {
    fn new(soname: String, needed: Vec<String>, exports: Exports) -> Self {
        Self { soname, needed, exports, references: Vec::new() }
    }
}

impl SystemLibrary for Described {
    fn soname(&self) -> &str {
        &self.soname
    }

    fn needed(&self) -> Vec<String> {
        self.needed.clone()
    }

    fn provides(&self, symbol: &[u8], version: Option<&[u8]>) -> Option<Provided> {
        let name = || std::str::from_utf8(symbol).ok();
        match &self.exports {
            Exports::Python(theirs) => {
                (is_python(symbol) && !theirs.contains(symbol)).then_some(Provided::Ordinary)
            }
            Exports::Versioned(symbols) => {
                let fits = |definition: &&Definition| match version {
                    Some(version) => definition.version.is_none_or(|own| own.as_bytes() == version),
                    None => definition.is_default,
                };
                let definition = symbols.get(name()?)?.iter().find(fits)?;
                Some(if definition.is_unique { Provided::Unique } else { Provided::Ordinary })
            }
            Exports::Unversioned(symbols) => symbols.contains(name()?).then_some(Provided::Ordinary),
            Exports::Zlib(table) => {
                let rows = table.exports(name()?);
                let fits = |row: &Export| {
                    row.version.is_none_or(|own| version.is_none_or(|version| own.as_bytes() == version))
                };
                rows.iter().any(fits).then_some(Provided::Ordinary)
            }
            Exports::Unknown => None,
        }
    }

    fn references(&self) -> Vec<SystemReference<'_>> {
        self.references.iter().map(Named::as_reference).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(arch: Arch, libc: Libc, releases: Releases) -> SystemBase {
        SystemBase::new(&Site::new(&[], Platform { arch, libc }), releases).expect("a table")
    }

    fn provides(base: &SystemBase, soname: &str, symbol: &str, version: Option<&str>) -> Option<Provided> {
        let library = base.libraries().find(|library| library.soname() == soname).expect("the library");
        library.provides(symbol.as_bytes(), version.map(str::as_bytes))
    }

    #[test]
    fn releases_have_their_symbols() {
        let new = base(Arch::X86_64, Libc::Glibc, Releases::default());
        let old = Releases { libc: Some(Release::new(2, 17)), gcc: Some(Release::new(8, 0)) };
        let old = base(Arch::X86_64, Libc::Glibc, old);
        let create = ("pthread_create", Some("GLIBC_2.2.5"));
        assert_eq!(provides(&new, "libc.so.6", create.0, create.1), Some(Provided::Ordinary));
        assert_eq!(provides(&old, "libc.so.6", create.0, create.1), None);
        assert_eq!(provides(&old, "libpthread.so.0", create.0, create.1), Some(Provided::Ordinary));
        let path = "_ZNSt10filesystem7__cxx114path14_M_split_cmptsEv";
        assert_eq!(provides(&new, "libstdc++.so.6", path, Some("GLIBCXX_3.4.26")), Some(Provided::Ordinary));
        assert_eq!(provides(&old, "libstdc++.so.6", path, Some("GLIBCXX_3.4.26")), None);
    }

    #[test]
    fn references_without_a_version_take_base_or_default() {
        let base = base(Arch::X86_64, Libc::Glibc, Releases::default());
        assert_eq!(provides(&base, "libc.so.6", "memcpy", None), Some(Provided::Ordinary));
        assert_eq!(provides(&base, "libc.so.6", "memcpy", Some("GLIBC_2.14")), Some(Provided::Ordinary));
        assert_eq!(provides(&base, "libc.so.6", "memcpy", Some("GLIBC_9.9")), None);
        // Compatibility only, and at the first node: dlsym finds it, and so does an old object.
        assert_eq!(provides(&base, "libz.so.1", "inflate", None), Some(Provided::Ordinary));
        assert_eq!(provides(&base, "libz.so.1", "inflateMagic", None), None);
    }

    #[test]
    fn unique_is_static_data_of_templates() {
        let base = base(Arch::X86_64, Libc::Glibc, Releases::default());
        let ask = |symbol| provides(&base, "libstdc++.so.6", symbol, None);
        assert_eq!(
            ask("_ZNSt7num_putIcSt19ostreambuf_iteratorIcSt11char_traitsIcEEE2idE"),
            Some(Provided::Unique)
        );
        assert_eq!(ask("_ZNSs4_Rep20_S_empty_rep_storageE"), Some(Provided::Unique));
        assert_eq!(ask("_ZNSt5ctypeIcE2idE"), Some(Provided::Ordinary));
        assert_eq!(ask("_ZSt4cout"), Some(Provided::Ordinary));
    }

    #[test]
    fn python_exports_what_is_called_so() {
        let base = base(Arch::Aarch64, Libc::Musl, Releases::default());
        assert_eq!(provides(&base, "python", "PyModule_Create2", None), Some(Provided::Ordinary));
        assert_eq!(provides(&base, "python", "_Py_Dealloc", None), Some(Provided::Ordinary));
        assert_eq!(provides(&base, "python", "PyInit_mod", None), None);
        assert_eq!(
            provides(&base, "libc.musl-aarch64.so.1", "memcpy", Some("GLIBC_2.17")),
            Some(Provided::Ordinary)
        );
        assert_eq!(base.kind(SystemBase::PROGRAM), SystemKind::Python);
    }
}
