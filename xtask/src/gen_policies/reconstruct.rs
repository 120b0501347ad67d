//! glibc's tables: the merged ABI lists, completed and checked by dumps of real glibcs. The rules and their
//! limits stand in the documentation of `abiaudit_policy::symbols::glibc`.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_policy::symbols::{Kind, Release};
use anyhow::Result;

use super::ARCHS;
use super::abilists::AbiLists;
use super::packages::{Dump, GLIBC_LIBRARIES};
use super::rows::{self, Date, Life, NodeReleases, Row};

/// The libraries that glibc 2.34 emptied into libc; of libresolv only a part (the `res_*` and `dn_*`
/// functions).
const EMPTIED: [&str; 6] =
    ["libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libanl.so.1", "libresolv.so.2"];
/// The release that emptied them.
const EMPTIED_IN: Release = Release::new(2, 34);
/// Libraries that the ABI lists do not cover; their rows come from dumps.
const NOT_IN_LISTS: [&str; 3] = ["libmvec.so.1", "libanl.so.1", "libnsl.so.1"];

/// The result.
pub struct Glibc {
    pub rows: Vec<Row>,
    pub nodes: NodeReleases,
    /// What the dumps showed that the rules did not foresee.
    pub surprises: Vec<String>,
}

/// Symbol and version node.
type Key = (String, String);

/// A triple of the lists before its end is known.
#[derive(Clone)]
struct Entry {
    since: Date,
    until: Option<Date>,
    kind: Kind,
    size: u32,
}

/// Makes the rows of all architectures.
pub fn glibc(lists: &AbiLists, dumps: &[Dump]) -> Result<Glibc> {
    let nodes: NodeReleases =
        lists.releases().iter().map(|release| (format!("GLIBC_{release}"), *release)).collect();
    let mut glibc = Glibc { rows: Vec::new(), nodes, surprises: Vec::new() };
    let from_dumps = rows::from_dumps(dumps, &NOT_IN_LISTS, &glibc.nodes, &lists.releases());
    for arch in ARCHS {
        let (target, loader) = target(arch);
        let mut libraries =
            Libraries { nodes: &glibc.nodes, entries: BTreeMap::new(), dumps: BTreeMap::new() };
        for dump in dumps.iter().filter(|dump| dump.arch == arch && GLIBC_LIBRARIES.contains(&dump.library)) {
            libraries.dumps.entry(dump.library).or_default().push(dump);
        }
        for dumps in libraries.dumps.values_mut() {
            dumps.sort_by_key(|dump| dump.release);
        }
        for entry in lists.entries(target)? {
            libraries.insert(
                soname(entry.library, loader)?,
                (entry.symbol.to_owned(), format!("GLIBC_{}", entry.version)),
                Entry { since: Date::exact(entry.version), until: None, kind: entry.kind, size: entry.size },
            );
        }
        for row in from_dumps.iter().filter(|row| row.arch == arch) {
            let Some(since) = row.since else { continue };
            let library = GLIBC_LIBRARIES.iter().find(|library| **library == row.library).unwrap_or(&"");
            let entry = Entry { since, until: None, kind: row.kind, size: row.size };
            libraries.insert(library, (row.symbol.clone(), row.version.clone()), entry);
        }
        libraries.add_moved(arch, &mut glibc.surprises);
        libraries.end_gone(arch, &mut glibc.surprises);
        libraries.rows(arch, &mut glibc.rows);
    }
    Ok(glibc)
}

struct Libraries<'a> {
    nodes: &'a NodeReleases,
    entries: BTreeMap<(&'static str, Key), Entry>,
    /// By library, oldest first.
    dumps: BTreeMap<&'static str, Vec<&'a Dump>>,
}

impl Libraries<'_> {
    fn insert(&mut self, library: &'static str, key: Key, entry: Entry) {
        self.entries.insert((library, key), entry);
    }

    /// Adds what dumps show and the lists leave out: the old versions of symbols in the library they moved
    /// to.
    fn add_moved(&mut self, arch: &str, surprises: &mut Vec<String>) {
        let mut found = Vec::new();
        for (&library, dumps) in &self.dumps {
            let keys: BTreeSet<&Key> = dumps.iter().flat_map(|dump| dump.exports.keys()).collect();
            for key in keys {
                // Symbols without a node of the lists (GCC_3.0 of libc on some architectures) have no
                // release.
                if self.entries.contains_key(&(library, key.clone())) || !self.nodes.contains_key(&key.1) {
                    continue;
                }
                let Some(life) = Life::of(dumps, key) else { continue };
                let since = if let Some(date) = self.moved_in(library, key, &life) {
                    date
                } else {
                    surprises.push(format!(
                        "{arch}: {}@{} is in {library} from {} on, unexplained",
                        key.0, key.1, life.first
                    ));
                    Date::at_latest(life.first)
                };
                let kind = if life.newest.kind == Kind::IFunc { Kind::Function } else { life.newest.kind };
                found.push((
                    (library, key.clone()),
                    Entry { since, until: None, kind, size: life.newest.size },
                ));
            }
        }
        self.entries.extend(found);
    }

    /// The release in which a symbol of another library moved into `library`: the one of its next version
    /// there, or else (at latest) the one that emptied the other library, if no dump contradicts.
    fn moved_in(&self, library: &'static str, key: &Key, life: &Life) -> Option<Date> {
        let version = self.nodes.get(&key.1)?;
        let elsewhere: Vec<&str> = self
            .dumps
            .keys()
            .copied()
            .filter(|other| *other != library && self.entries.contains_key(&(*other, key.clone())))
            .collect();
        let fits = |release: Release| {
            release <= life.first && life.last_before.is_none_or(|lacking| lacking < release)
        };
        let next = self
            .nodes
            .iter()
            .filter(|(node, release)| {
                *release > version && self.entries.contains_key(&(library, (key.0.clone(), (*node).clone())))
            })
            .map(|(_, release)| *release)
            .find(|release| fits(*release));
        match next {
            Some(release) if !elsewhere.is_empty() => Some(Date::exact(release)),
            _ if fits(EMPTIED_IN) && elsewhere.iter().any(|other| EMPTIED.contains(other)) => {
                Some(Date::at_latest(EMPTIED_IN))
            }
            _ => None,
        }
    }

    /// Ends the entries that later dumps lack.
    fn end_gone(&mut self, arch: &str, surprises: &mut Vec<String>) {
        let mut ends = Vec::new();
        for ((library, key), entry) in &self.entries {
            let Some(dumps) = self.dumps.get(library) else { continue };
            let dumps: Vec<&Dump> =
                dumps.iter().copied().filter(|dump| dump.release >= entry.since.release).collect();
            let (last, lacking) = match Life::of(&dumps, key) {
                Some(life) => (Some(life.last), life.first_after),
                None => (None, dumps.first().map(|dump| dump.release)),
            };
            let Some(lacking) = lacking else { continue };
            let end = self.end(library, key, last, lacking);
            if end.release <= entry.since.release {
                surprises.push(format!("{arch}: {}@{} is not in any dump of {library}", key.0, key.1));
                continue;
            }
            if end.at_latest && !EMPTIED.contains(library) {
                surprises
                    .push(format!("{arch}: {}@{} is not in {library} of {lacking} any more", key.0, key.1));
            }
            ends.push(((*library, key.clone()), end));
        }
        for (id, end) in ends {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.until = Some(end);
            }
        }
    }

    /// The end of a symbol that the dump of `last` has and the one of `lacking` lacks: the release in which
    /// another library got it, or the one that emptied the library, if they are between the two.
    fn end(&self, library: &str, key: &Key, last: Option<Release>, lacking: Release) -> Date {
        let between = |release: Release| release <= lacking && last.is_none_or(|last| last < release);
        let moved = self
            .dumps
            .keys()
            .filter(|other| **other != library)
            .filter_map(|other| self.entries.get(&(*other, key.clone())))
            .map(|entry| entry.since)
            .find(|since| between(since.release) && Some(&since.release) != self.nodes.get(&key.1));
        match moved {
            Some(since) => since,
            None if EMPTIED.contains(&library) && between(EMPTIED_IN) => Date::at_latest(EMPTIED_IN),
            None => Date::at_latest(lacking),
        }
    }

    fn rows(&self, arch: &'static str, rows: &mut Vec<Row>) {
        for ((library, key), entry) in &self.entries {
            rows.push(Row {
                symbol: key.0.clone(),
                library: (*library).to_owned(),
                version: key.1.clone(),
                since: Some(entry.since),
                until: entry.until,
                kind: entry.kind,
                default: self.is_default(library, key),
                size: entry.size,
                arch,
            });
        }
    }

    /// As in the newest dump that has it; for what no dump has, the newest version in the library is the
    /// default.
    fn is_default(&self, library: &'static str, key: &Key) -> bool {
        let dumps = self.dumps.get(library).map(Vec::as_slice).unwrap_or_default();
        if let Some(exported) = dumps.iter().rev().find_map(|dump| dump.exports.get(key)) {
            return exported.default;
        }
        let newest = self
            .nodes
            .iter()
            .filter(|(node, _)| self.entries.contains_key(&(library, (key.0.clone(), (*node).clone()))))
            .max_by_key(|(_, release)| **release);
        newest.is_some_and(|(node, _)| *node == key.1)
    }
}

/// Zig's name of an architecture, and its dynamic loader.
fn target(arch: &str) -> (&'static str, &'static str) {
    match arch {
        "x86_64" => ("x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
        "i686" => ("x86-linux-gnu", "ld-linux.so.2"),
        "aarch64" => ("aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
        "armv7l" => ("arm-linux-gnueabihf", "ld-linux-armhf.so.3"),
        "ppc64le" => ("powerpc64le-linux-gnu", "ld64.so.2"),
        "s390x" => ("s390x-linux-gnu", "ld64.so.1"),
        "riscv64" => ("riscv64-linux-gnu", "ld-linux-riscv64-lp64d.so.1"),
        _ => ("loongarch64-linux-gnu", "ld-linux-loongarch-lp64d.so.1"),
    }
}

fn soname(library: &str, loader: &'static str) -> Result<&'static str> {
    Ok(match library {
        "c" => "libc.so.6",
        "m" => "libm.so.6",
        "pthread" => "libpthread.so.0",
        "dl" => "libdl.so.2",
        "rt" => "librt.so.1",
        "util" => "libutil.so.1",
        "resolv" => "libresolv.so.2",
        "ld" => loader,
        _ => anyhow::bail!("the abilists have a library {library} that is not expected"),
    })
}
