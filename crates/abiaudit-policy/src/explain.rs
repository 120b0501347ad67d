//! What is known of a version node or a symbol, as pure data: the answer to `abiaudit explain`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::symbols::pool::Pool;
use crate::symbols::{self, Export, Kind, Release};
use crate::{Arch, Distribution, Libc, Node, NodeVerdict, PolicySet, Target, distributions};

/// How many symbols of a node are shown as examples.
const EXAMPLES: usize = 5;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "about", rename_all = "kebab-case")]
pub enum Explanation {
    /// The query names a version node: `GLIBCXX_3.4.26`.
    Node(NodeExplanation),
    /// The query names a symbol: `memcpy`, `memcpy@GLIBC_2.14`.
    Symbol(SymbolExplanation),
}

/// What is known of a version node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeExplanation {
    /// The node.
    pub node: String,
    /// The sonames of the libraries that have symbols at it. glibc's nodes without symbols (`GLIBC_ABI_DT_RELR`) are
    /// defined by its libc (glibc elf/Versions).
    pub libraries: Vec<&'static str>,
    /// The project whose release brought it: `glibc`, `GCC`, `zlib`; `None` for other families.
    pub project: Option<&'static str>,
    /// That release, where known.
    pub release: Option<Release>,
    /// For nodes of libstdc++: the file of that release, `libstdc++.so.6.0.26`.
    pub library_file: Option<String>,
    /// Architecture -> the tag of the oldest policy that allows it; `None` where no policy does.
    pub first_policy: BTreeMap<&'static str, Option<String>>,
    /// Of each distribution, the oldest release known to have it.
    pub distributions: Vec<DistributionRelease>,
    /// Architecture -> its symbols, where the node has some.
    pub symbols: BTreeMap<&'static str, NodeSymbols>,
}

/// The symbols of a node on one architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NodeSymbols {
    /// How many there are.
    pub count: usize,
    /// The first few, by name.
    pub examples: Vec<String>,
}

/// A release of a distribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DistributionRelease {
    /// `Debian`.
    pub name: &'static str,
    /// `12`.
    pub release: &'static str,
}

/// What is known of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SymbolExplanation {
    /// The name without a version.
    pub symbol: String,
    /// The version that the query asks for. If it is of no row, the symbol exists, but not so.
    pub version: Option<String>,
    /// Who has it; rows of all versions if the one asked for does not exist.
    pub exports: Vec<SymbolExport>,
}

/// One library's export, on the architectures where all else is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SymbolExport {
    /// `glibc`, `GCC`, `musl` or `zlib`: what the releases are releases of.
    pub project: &'static str,
    /// The soname.
    pub library: &'static str,
    /// The version node, where the library versions the symbol.
    pub version: Option<&'static str>,
    /// Is it the version that new links bind to?
    pub default: bool,
    /// The first release that has it, where known.
    pub since: Option<Release>,
    /// Is `since` exact? If not, older releases may have it too.
    pub since_exact: bool,
    /// The first release that has it no more.
    pub until: Option<Release>,
    /// Is `until` exact? If not, older releases may lack it too.
    pub until_exact: bool,
    /// `function`, `object`, `tls`, `ifunc` or `notype`.
    pub kind: &'static str,
    /// Where `until` is set: the other library that has the same symbol and version from then on.
    pub moved_to: Option<&'static str>,
    /// The architectures.
    pub archs: Vec<&'static str>,
}

/// Explains a version node, a symbol or `symbol@VERSION` (`symbol@@VERSION`); `None` if nothing is known of
/// it.
///
/// Reads whole tables for a node: a few milliseconds.
pub fn explain(query: &str) -> Option<Explanation> {
    let (symbol, version) = match query.split_once('@') {
        Some((symbol, version)) => (symbol, Some(version.strip_prefix('@').unwrap_or(version))),
        None => (query, None),
    };
    if version.is_none()
        && let Some(node) = explain_node(symbol)
    {
        return Some(Explanation::Node(node));
    }
    explain_symbol(symbol, version).map(Explanation::Symbol)
}

/// The project whose releases a table counts in, by the file name of the table.
fn project_of(table: &str) -> &'static str {
    match table {
        "glibc.bin" => "glibc",
        "gcc.bin" => "GCC",
        "musl.bin" => "musl",
        _ => "zlib",
    }
}

fn explain_node(name: &str) -> Option<NodeExplanation> {
    let parsed = Node::parse(name)?;
    let policies = PolicySet::builtin();
    let first_policy: BTreeMap<_, _> =
        Arch::ALL.into_iter().map(|arch| (arch.tag(), first_policy(&policies, arch, name))).collect();
    let table = symbols::TABLES.into_iter().find(|(_, pool)| pool.version_index(name).is_some());
    if table.is_none() && first_policy.values().all(Option::is_none) {
        return None;
    }
    let project = match parsed.family {
        "GLIBC" => Some("glibc"),
        "GLIBCXX" | "CXXABI" | "GCC" | "LIBATOMIC" => Some("GCC"),
        "ZLIB" => Some("zlib"),
        _ => None,
    };
    let release = match parsed.family {
        // A node without symbols of its own is in no table (GLIBC_2.37 on most architectures).
        "GLIBC" => parsed.version.parse().ok(),
        _ => table.and_then(|(_, pool)| pool.versions().find(|(version, _)| *version == name)?.1),
    };
    let (mut libraries, symbols) = table.map(|(_, pool)| symbols_at(pool, name)).unwrap_or_default();
    if libraries.is_empty() && parsed.family == "GLIBC" {
        libraries.push("libc.so.6");
    }
    Some(NodeExplanation {
        node: name.to_owned(),
        libraries,
        project,
        release,
        library_file: matches!(parsed.family, "GLIBCXX" | "CXXABI")
            .then(|| release.and_then(libstdcxx_file))
            .flatten(),
        first_policy,
        distributions: distributions_with(parsed, name),
        symbols,
    })
}

fn first_policy(policies: &PolicySet, arch: Arch, node: &str) -> Option<String> {
    let mut ladder = policies.ladder(Libc::Glibc, arch).iter();
    ladder.find(|target| target.allows_node(node) == NodeVerdict::Allowed).map(Target::tag)
}

/// The file that a GCC release installs. Its last number is the one of the newest `GLIBCXX_3.4.N` (GCC's
/// libstdc++ manual, "ABI Policy and Guidelines").
fn libstdcxx_file(release: Release) -> Option<String> {
    let (_, pool) = symbols::TABLES.into_iter().find(|(name, _)| *name == "gcc.bin")?;
    let newest = pool
        .versions()
        .filter(|(_, introduced)| introduced.is_some_and(|introduced| introduced <= release))
        .filter_map(|(node, _)| match node.strip_prefix("GLIBCXX_3.4")? {
            "" => Some(0_u32),
            number => number.strip_prefix('.')?.parse().ok(),
        })
        .max()?;
    Some(format!("libstdc++.so.6.0.{newest}"))
}

fn distributions_with(node: Node<'_>, name: &str) -> Vec<DistributionRelease> {
    let glibc = || {
        let release: Release = node.version.parse().ok()?;
        let at_least = (release.major.into(), release.minor.into());
        // A node with a third number (2.2.5) is older than every distribution listed.
        Some(oldest(distributions().with_glibc(at_least)))
    };
    match node.family {
        "GLIBC" => glibc().unwrap_or_default(),
        "GLIBCXX" => oldest(distributions().with_glibcxx(name)),
        _ => Vec::new(),
    }
}

/// The first row of each distribution: the table is oldest first.
fn oldest(rows: impl Iterator<Item = &'static Distribution>) -> Vec<DistributionRelease> {
    let mut found: Vec<DistributionRelease> = Vec::new();
    for row in rows {
        if !found.iter().any(|known| known.name == row.name) {
            found.push(DistributionRelease { name: row.name, release: row.release });
        }
    }
    found
}

type SymbolsByArch = BTreeMap<&'static str, NodeSymbols>;

fn symbols_at(pool: Pool, node: &str) -> (Vec<&'static str>, SymbolsByArch) {
    let Some(version) = pool.version_index(node) else { return Default::default() };
    let archs: Vec<(&str, u16)> =
        pool.archs().filter_map(|arch| Some((arch, pool.arch_bit(arch)?))).collect();
    let (mut libraries, mut symbols) = (Vec::new(), SymbolsByArch::new());
    for (name, records) in pool.symbols() {
        let records: Vec<_> = records.filter(|record| record.version == version).collect();
        for library in records.iter().filter_map(|record| pool.library(record.library)) {
            if !libraries.contains(&library) {
                libraries.push(library);
            }
        }
        for (arch, bit) in &archs {
            if records.iter().any(|record| record.archs & bit != 0) {
                let entry = symbols.entry(arch).or_default();
                entry.count += 1;
                if entry.examples.len() < EXAMPLES {
                    entry.examples.push(name.clone());
                }
            }
        }
    }
    libraries.sort_unstable();
    (libraries, symbols)
}

fn explain_symbol(symbol: &str, version: Option<&str>) -> Option<SymbolExplanation> {
    let mut exports: Vec<SymbolExport> =
        symbols::TABLES.into_iter().flat_map(|(table, pool)| symbol_exports(table, pool, symbol)).collect();
    if exports.is_empty() {
        return None;
    }
    if exports.iter().any(|export| export.version == version && version.is_some()) {
        exports.retain(|export| export.version == version);
    }
    Some(SymbolExplanation { symbol: symbol.to_owned(), version: version.map(str::to_owned), exports })
}

fn symbol_exports(table: &str, pool: Pool, symbol: &str) -> Vec<SymbolExport> {
    let mut rows: Vec<SymbolExport> = Vec::new();
    for arch in pool.archs() {
        let Some(bit) = pool.arch_bit(arch) else { continue };
        let exports = symbols::exports(pool, bit, symbol);
        for export in &exports {
            let row = symbol_export(project_of(table), export, &exports);
            match rows.iter_mut().find(|known| SymbolExport { archs: Vec::new(), ..(*known).clone() } == row)
            {
                Some(known) => known.archs.push(arch),
                None => rows.push(SymbolExport { archs: vec![arch], ..row }),
            }
        }
    }
    rows.sort_by_key(|row| (row.library, row.since));
    rows
}

fn symbol_export(project: &'static str, export: &Export, all: &[Export]) -> SymbolExport {
    let moved_to = export.until.and_then(|until| {
        all.iter()
            .find(|other| {
                other.library != export.library && other.version == export.version && other.is_in(until)
            })
            .map(|other| other.library)
    });
    SymbolExport {
        project,
        library: export.library,
        version: export.version,
        default: export.default,
        since: export.since,
        since_exact: export.since_exact,
        until: export.until,
        until_exact: export.until_exact,
        kind: match export.kind {
            Kind::Function => "function",
            Kind::Object => "object",
            Kind::Tls => "tls",
            Kind::IFunc => "ifunc",
            Kind::NoType => "notype",
        },
        moved_to,
        archs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(query: &str) -> NodeExplanation {
        match explain(query) {
            Some(Explanation::Node(node)) => node,
            other => panic!("{query}: {other:?}"),
        }
    }

    fn symbol(query: &str) -> SymbolExplanation {
        match explain(query) {
            Some(Explanation::Symbol(symbol)) => symbol,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn a_libstdcxx_node_names_its_gcc_and_its_file() {
        let node = node("GLIBCXX_3.4.26");
        assert_eq!((node.project, node.release), (Some("GCC"), Some(Release::new(9, 1))));
        assert_eq!(node.library_file.as_deref(), Some("libstdc++.so.6.0.26"));
        assert_eq!(node.libraries, ["libstdc++.so.6"]);
        assert_eq!(node.first_policy["x86_64"].as_deref(), Some("manylinux_2_31_x86_64"));
        let symbols = &node.symbols["x86_64"];
        assert!(symbols.count > 100 && symbols.examples.len() == EXAMPLES, "{symbols:?}");
        assert!(node.distributions.iter().any(|row| (row.name, row.release) == ("Debian", "11")), "{node:?}");
    }

    #[test]
    fn a_cxxabi_node_is_in_the_file_of_its_gcc() {
        assert_eq!(node("CXXABI_1.3.13").library_file.as_deref(), Some("libstdc++.so.6.0.29"));
        assert_eq!(node("CXXABI_1.3.1").library_file.as_deref(), Some("libstdc++.so.6.0.4"));
    }

    #[test]
    fn a_glibc_node_without_symbols_is_of_libc() {
        assert_eq!(node("GLIBC_ABI_DT_RELR").libraries, ["libc.so.6"]);
    }

    #[test]
    fn a_glibc_node_names_its_policy() {
        let node = node("GLIBC_2.34");
        assert_eq!((node.project, node.release), (Some("glibc"), Some(Release::new(2, 34))));
        assert_eq!(node.first_policy["aarch64"].as_deref(), Some("manylinux_2_34_aarch64"));
        assert!(node.libraries.contains(&"libc.so.6"));
        assert!(node.symbols["s390x"].count > 100);
    }

    #[test]
    fn a_node_without_symbols_is_known_from_the_policies() {
        let node = node("GLIBC_ABI_DT_RELR");
        assert_eq!((node.release, node.symbols.len()), (None, 0));
        assert_eq!(node.first_policy["x86_64"].as_deref(), Some("manylinux_2_36_x86_64"));
    }

    #[test]
    fn a_symbol_tells_who_has_it_since_when() {
        let memcpy = symbol("memcpy@GLIBC_2.14");
        assert_eq!(memcpy.exports.len(), 1);
        let row = &memcpy.exports[0];
        assert_eq!((row.library, row.since, row.default), ("libc.so.6", Some(Release::new(2, 14)), true));
        assert_eq!(row.archs, ["x86_64"]);
        assert_eq!(symbol("memcpy@@GLIBC_2.14").exports, memcpy.exports);

        let projects: Vec<_> = symbol("memcpy").exports.iter().map(|row| row.project).collect();
        assert!(projects.contains(&"glibc") && projects.contains(&"musl"), "{projects:?}");
    }

    #[test]
    fn a_moved_symbol_tells_where_it_went() {
        let rows = symbol("pthread_create@GLIBC_2.2.5").exports;
        let old = rows.iter().find(|row| row.library == "libpthread.so.0").unwrap();
        assert_eq!((old.until, old.moved_to), (Some(Release::new(2, 34)), Some("libc.so.6")));
    }

    #[test]
    fn a_version_that_a_symbol_never_had_shows_those_it_has() {
        let rows = symbol("memcpy@GLIBC_2.99");
        assert_eq!(rows.version.as_deref(), Some("GLIBC_2.99"));
        assert!(rows.exports.len() > 2);
    }

    #[test]
    fn what_is_unknown_is_not_made_up() {
        for query in ["", "@", "no_such_symbol_anywhere", "GLIBC_9.99", "NOSUCH_1.0", "@GLIBC_2.14"] {
            assert_eq!(explain(query), None, "{query:?}");
        }
    }

    #[test]
    fn it_is_data_for_json() {
        let json = serde_json::to_value(explain("GLIBCXX_3.4.29")).unwrap();
        assert_eq!(json["about"], "node");
        assert_eq!(json["release"], "11.1");
        let json = serde_json::to_value(explain("arc4random")).unwrap();
        assert_eq!(json["about"], "symbol");
        assert_eq!(json["exports"][0]["since"], "2.36");
    }
}
