//! What a shared library exports, and what of that an older one did.

use std::collections::BTreeMap;
use std::path::Path;

use abiaudit_elf::{Binding, Object, SymbolType, SymbolVersion, Wants};
use abiaudit_policy::symbols::{Kind, Release, glibc};
use abiaudit_policy::{Arch, Target};

use crate::error::{Error, Result, read};
use crate::version::{admits, order};

/// A shared library: its soname and what it exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// `DT_SONAME`.
    pub soname: String,
    /// What it exports, sorted by name and version.
    pub exports: Vec<Export>,
}

/// A versioned symbol that a library exports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Export {
    /// The symbol.
    pub name: String,
    /// Its version node.
    pub version: String,
    /// Does the linker take this version for a new reference (`name@@VERSION`)?
    pub default: bool,
    /// What it is.
    pub kind: Kind,
    /// How it binds: global, weak or unique.
    pub binding: ExportBinding,
    /// Bytes of an object, which a copy relocation copies; 0 for everything else.
    pub size: u64,
    /// Symbols of one kind with the same place, if it is not 0, are names of one thing.
    pub place: u64,
}

/// How an exported symbol binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExportBinding {
    /// `STB_GLOBAL`
    Global,
    /// `STB_WEAK`
    Weak,
    /// `STB_GNU_UNIQUE`
    Unique,
}

impl Library {
    /// Reads the versioned exports of an installed library. Symbols without a version are left out.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(path, &read(path)?)
    }

    /// The same from bytes that were read before; `path` is for errors.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let malformed = |what, found: String| Error::Malformed { path: path.to_owned(), what, found };
        let object = Object::from_bytes(bytes, &Wants::default())
            .map_err(|error| malformed("shared library", error.to_string()))?;
        let soname = object.dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text);
        let soname = soname.ok_or_else(|| malformed("dynamic section", "no soname".to_owned()))?;
        let mut exports: Vec<Export> =
            object.symbols.exported().filter_map(|s| Export::of(&object, s)).collect();
        exports.sort();
        Ok(Self { soname, exports })
    }

    /// The library as it was when the newest nodes of `target` were new. Nothing is ever taken away from an existing
    /// node of libstdc++ and libgcc_s, so that filtering a newer library by version gives exactly the older one.
    #[must_use]
    pub fn at(&self, target: &Target) -> Self {
        let exports = self.exports.iter().filter(|export| admits(target, &export.version)).cloned().collect();
        let mut old = Self { soname: self.soname.clone(), exports };
        old.choose_defaults(|_| false);
        old
    }

    /// Makes the newest version of each symbol the default one, as it was when there was no newer one
    /// (`std::condition_variable::wait` moved in GCC 12). A symbol that `is_linkable` never was has none.
    fn choose_defaults(&mut self, is_never_linkable: impl Fn(&str) -> bool) {
        let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
        for export in &self.exports {
            let best = newest.entry(&export.name).or_insert(&export.version);
            if order(&export.version, best).is_gt() {
                *best = &export.version;
            }
        }
        let defaults: Vec<bool> = self
            .exports
            .iter()
            .map(|export| {
                newest.get(export.name.as_str()) == Some(&export.version.as_str())
                    && !is_never_linkable(&export.name)
            })
            .collect();
        for (export, default) in self.exports.iter_mut().zip(defaults) {
            export.default = default;
        }
    }

    /// The names that a link can take from the library, sorted.
    pub fn linkable(&self) -> impl Iterator<Item = &str> {
        self.exports.iter().filter(|export| export.default).map(|export| export.name.as_str())
    }
}

impl Export {
    fn of(object: &Object, symbol: &abiaudit_elf::Symbol) -> Option<Self> {
        let SymbolVersion::Defined(version, hidden) = object.version_of(symbol) else { return None };
        let (name, version) = (object.symbols.name_text(symbol), version.name.to_text());
        let kind = match symbol.symbol_type() {
            SymbolType::Object => Kind::Object,
            SymbolType::Function => Kind::Function,
            SymbolType::Tls => Kind::Tls,
            SymbolType::Ifunc => Kind::IFunc,
            SymbolType::None | SymbolType::Other(_) => Kind::NoType,
        };
        let binding = match symbol.binding() {
            Binding::Weak => ExportBinding::Weak,
            Binding::Unique => ExportBinding::Unique,
            _ => ExportBinding::Global,
        };
        // The absolute symbols that carry the names of the nodes are no exports.
        let size = if matches!(kind, Kind::Object | Kind::Tls) { symbol.size } else { 0 };
        (name != version).then_some(Self {
            name,
            version,
            default: !hidden,
            kind,
            binding,
            size,
            place: symbol.value,
        })
    }
}

/// The libraries of glibc at the release of a target, each from the list of that very release: a newer release's list
/// cannot tell what an older one had where, since symbols move between libraries.
pub fn glibc_libraries(target: &Target) -> Result<Vec<Library>> {
    let refuse = |reason: String| Error::Target { target: target.tag(), reason };
    let Some((major, minor)) = target.glibc_version() else {
        return Err(refuse("musl has no symbol versions to hold a link to".to_owned()));
    };
    let table = glibc(target.arch())
        .ok_or_else(|| refuse(format!("there is no list of glibc's symbols for {}", target.arch())))?;
    let number = |n: u32| u16::try_from(n).map_err(|_| refuse(format!("no such release: {major}.{minor}")));
    let release = Release::new(number(major)?, number(minor)?);
    let mut libraries: BTreeMap<&str, Vec<Export>> = BTreeMap::new();
    let mut linkable: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, rows) in table.symbols() {
        for row in rows {
            let Some(version) = row.version else { continue };
            // Compatibility symbols were not to be linked with in any release that was looked at.
            if row.default {
                linkable.entry(row.library).or_default().push(name.clone());
            }
            if !row.is_in(release) || target.forbidden_symbols(row.library).contains(&name.as_str()) {
                continue;
            }
            libraries.entry(row.library).or_default().push(Export {
                name: name.clone(),
                version: version.to_owned(),
                default: false,
                kind: row.kind,
                binding: ExportBinding::Global,
                size: u64::from(row.size),
                place: place_of(&name),
            });
        }
    }
    Ok(libraries
        .into_iter()
        .map(|(soname, mut exports)| {
            exports.sort();
            let mut library = Library { soname: soname.to_owned(), exports };
            let names = linkable.get(soname).map(Vec::as_slice).unwrap_or_default();
            library.choose_defaults(|name| names.binary_search_by(|n| n.as_str().cmp(name)).is_err());
            library
        })
        .collect())
}

/// Variables of glibc with several names (weak_alias in glibc's sources). An executable that uses one of them through a
/// copy relocation must take over all names, or the library goes on with a variable of its own.
const ALIASES: &[&[&str]] = &[
    &["environ", "__environ", "_environ"],
    &["timezone", "__timezone"],
    &["daylight", "__daylight"],
    &["tzname", "__tzname"],
    &["program_invocation_name", "__progname_full"],
    &["program_invocation_short_name", "__progname"],
    &["sys_errlist", "_sys_errlist"],
    &["sys_nerr", "_sys_nerr"],
    &["sys_siglist", "_sys_siglist"],
    &["h_errlist", "_h_errlist"],
    &["h_nerr", "_h_nerr"],
    &["signgam", "__signgam"],
];

fn place_of(name: &str) -> u64 {
    let group = ALIASES.iter().position(|names| names.contains(&name));
    group.map_or(0, |index| index as u64 + 1)
}

/// The file name of the dynamic loader, which is also its soname.
pub(crate) fn loader_of(arch: Arch) -> &'static str {
    match arch {
        Arch::Aarch64 => "ld-linux-aarch64.so.1",
        _ => "ld-linux-x86-64.so.2",
    }
}
