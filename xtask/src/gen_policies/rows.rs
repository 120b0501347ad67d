//! Rows of a table, and how dumps of several releases become rows.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_policy::symbols::{Kind, Release};

use super::packages::{Dump, Exported};

/// Version node -> the release that introduced it.
pub type NodeReleases = BTreeMap<String, Release>;

/// One fact of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub symbol: String,
    pub library: String,
    pub version: String,
    pub since: Option<Date>,
    pub until: Option<Date>,
    pub kind: Kind,
    pub default: bool,
    pub size: u32,
    pub arch: &'static str,
}

/// A release at which something began or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    pub release: Release,
    /// Not exact: the oldest release that was seen so.
    pub at_latest: bool,
}

impl Date {
    pub fn exact(release: Release) -> Self {
        Self { release, at_latest: false }
    }

    pub fn at_latest(release: Release) -> Self {
        Self { release, at_latest: true }
    }
}

/// Rows of the libraries, from the dumps of their releases, where the name of a node is known to tell its
/// release.
///
/// A symbol begins with the release of its node, unless a dump of that release or later lacks it; then, and
/// without a known node, with the first dump that has it. It ends with the first dump that lacks it after
/// the last that has it. `releases` are all that exist: a date between two dumps of neighbours is exact.
pub fn from_dumps(
    dumps: &[Dump],
    libraries: &[&str],
    nodes: &NodeReleases,
    releases: &BTreeSet<Release>,
) -> Vec<Row> {
    let mut series: BTreeMap<(&str, &str), Vec<&Dump>> = BTreeMap::new();
    for dump in dumps.iter().filter(|dump| libraries.contains(&dump.library)) {
        series.entry((dump.library, dump.arch)).or_default().push(dump);
    }
    let mut rows = Vec::new();
    for ((library, arch), mut dumps) in series {
        dumps.sort_by_key(|dump| dump.release);
        let keys: BTreeSet<&(String, String)> = dumps.iter().flat_map(|dump| dump.exports.keys()).collect();
        for key in keys {
            let Some(life) = Life::of(&dumps, key) else { continue };
            let (symbol, version) = key.clone();
            let node = nodes.get(&version).copied();
            let since = match node {
                Some(node) if life.last_before.is_none_or(|lacking| lacking < node) => Date::exact(node),
                _ => life.first(releases),
            };
            rows.push(Row {
                symbol,
                library: library.to_owned(),
                version,
                since: Some(since),
                until: life.end(releases),
                kind: life.newest.kind,
                default: life.newest.default,
                size: 0,
                arch,
            });
        }
    }
    rows
}

/// When a symbol is in the dumps of one library, oldest first.
pub struct Life {
    /// The last dump before the first that has it.
    pub last_before: Option<Release>,
    /// The first dump that has it.
    pub first: Release,
    /// The last dump that has it.
    pub last: Release,
    /// The first dump after the last that has it.
    pub first_after: Option<Release>,
    /// The symbol in the last dump that has it.
    pub newest: Exported,
}

impl Life {
    pub fn of(dumps: &[&Dump], key: &(String, String)) -> Option<Self> {
        let first = dumps.iter().position(|dump| dump.exports.contains_key(key))?;
        let last = dumps.iter().rposition(|dump| dump.exports.contains_key(key))?;
        Some(Self {
            last_before: first.checked_sub(1).map(|index| dumps[index].release),
            first: dumps[first].release,
            last: dumps[last].release,
            first_after: dumps.get(last + 1).map(|dump| dump.release),
            newest: *dumps[last].exports.get(key)?,
        })
    }

    fn first(&self, releases: &BTreeSet<Release>) -> Date {
        let at_latest = self.last_before.is_none_or(|before| !neighbours(releases, before, self.first));
        Date { release: self.first, at_latest }
    }

    fn end(&self, releases: &BTreeSet<Release>) -> Option<Date> {
        let release = self.first_after?;
        Some(Date { release, at_latest: !neighbours(releases, self.last, release) })
    }
}

fn neighbours(releases: &BTreeSet<Release>, older: Release, newer: Release) -> bool {
    releases.contains(&older) && releases.range(..newer).next_back() == Some(&older)
}

/// Node -> release, for a library whose nodes end in the number of the release (`ZLIB_1.2.9`). Nodes with
/// four numbers are of development versions and name no release.
pub fn nodes_named_after_releases(dumps: &[Dump], libraries: &[&str]) -> NodeReleases {
    let dumps = dumps.iter().filter(|dump| libraries.contains(&dump.library));
    dumps
        .flat_map(|dump| dump.exports.keys())
        .filter_map(|(_, version)| Some((version.clone(), version.rsplit_once('_')?.1.parse().ok()?)))
        .collect()
}

/// Is this a symbol of libstdc++ that an older build with its node lacks? A node is closed when GCC is
/// released (libstdc++ checks its exports against a baseline), so it is an accident of one build: Debian's
/// cross compiled libraries for aarch64 have out-of-line copies of inline functions (`std::array<unsigned
/// char, 256>::operator[]`) that the native ones of the same version have not. Nothing may rely on it.
pub fn is_late(row: &Row, nodes: &NodeReleases) -> bool {
    let node = nodes.get(&row.version);
    row.library == "libstdc++.so.6"
        && node.is_some_and(|node| row.since.is_some_and(|since| since.release > *node))
}

/// musl 1.2.4 dropped `fopen64` and its like from its symbol table, but its loader goes on to bind them to
/// the plain name: they have not ended. Its buffer for that (`get_lfs64` in `ldso/dynlink.c`) holds names
/// of up to 16 bytes, so that `posix_fallocate64` really has.
pub fn keep_large_file_names(rows: &mut [Row]) {
    const LONGEST: usize = 16;
    let living: BTreeSet<(String, &str)> =
        rows.iter().filter(|row| row.until.is_none()).map(|row| (row.symbol.clone(), row.arch)).collect();
    for row in rows.iter_mut().filter(|row| row.until.is_some() && row.symbol.len() <= LONGEST) {
        let plain = match row.symbol.as_str() {
            "readdir64_r" => Some("readdir_r"),
            name => name.strip_suffix("64"),
        };
        if plain.is_some_and(|plain| living.contains(&(plain.to_owned(), row.arch))) {
            row.until = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(release: &str, symbols: &[(&str, &str)]) -> Dump {
        let exported = Exported { kind: Kind::Function, default: true, size: 0 };
        let exports = symbols
            .iter()
            .map(|(name, version)| (((*name).to_owned(), (*version).to_owned()), exported))
            .collect();
        Dump { arch: "x86_64", release: release.parse().unwrap(), library: "lib.so", exports }
    }

    #[test]
    fn dates_are_exact_only_between_neighbours_or_by_the_node() {
        let dumps = [
            dump("1.1", &[("old", ""), ("gone", "")]),
            dump("1.2", &[("old", ""), ("new", ""), ("noted", "N_1.2")]),
            dump("1.4", &[("old", ""), ("new", ""), ("newer", ""), ("noted", "N_1.2"), ("late", "N_1.2")]),
        ];
        let releases = ["1.1", "1.2", "1.3", "1.4"].iter().map(|text| text.parse().unwrap()).collect();
        let nodes = nodes_named_after_releases(&dumps, &["lib.so"]);
        let rows = from_dumps(&dumps, &["lib.so"], &nodes, &releases);
        let date = |major, minor, at_latest| Some(Date { release: Release::new(major, minor), at_latest });
        let of = |name: &str| {
            let row = rows.iter().find(|row| row.symbol == name).unwrap();
            (row.since, row.until)
        };
        assert_eq!(of("old"), (date(1, 1, true), None));
        assert_eq!(of("new"), (date(1, 2, false), None));
        assert_eq!(of("newer"), (date(1, 4, true), None));
        assert_eq!(of("noted"), (date(1, 2, false), None));
        assert_eq!(of("late"), (date(1, 4, true), None), "a dump that should have it has it not");
        assert_eq!(of("gone"), (date(1, 1, true), date(1, 2, false)));
    }

    #[test]
    fn musl_binds_large_file_names_to_the_plain_ones() {
        let old =
            ["fopen", "fopen64", "odd64", "posix_fallocate", "posix_fallocate64"].map(|name| (name, ""));
        let new = ["fopen", "posix_fallocate"].map(|name| (name, ""));
        let dumps = [dump("1.2.3", &old), dump("1.2.5", &new)];
        let mut rows = from_dumps(&dumps, &["lib.so"], &NodeReleases::new(), &BTreeSet::new());
        keep_large_file_names(&mut rows);
        let ended: Vec<_> =
            rows.iter().filter(|row| row.until.is_some()).map(|row| row.symbol.as_str()).collect();
        assert_eq!(ended, ["odd64", "posix_fallocate64"]);
    }
}
