//! Strong references to a version of a glibc library's symbol that the library has in some releases only, or that
//! nobody has heard of.
//!
//! That a node is younger than a target is for the version needs to say; here the symbol itself is followed through
//! all releases, since a platform tag is a promise for every newer system too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use abiaudit_elf::{Object, Symbol, SymbolVersion};
use abiaudit_loader::search::Outcome;
use abiaudit_policy::symbols::{self, Export, GlibcTable, Release};
use abiaudit_policy::{Libc, Target};

use crate::audit::Audit;
use crate::scopes::Scopes;
use crate::symbol_tables;

/// What the tables hold against the references of an input.
#[derive(Debug, Clone, Default)]
pub struct LostReferences {
    references: Vec<LostReference>,
    /// By root: what comes from outside with the objects that it loads.
    surroundings: BTreeMap<usize, Surroundings>,
}

/// A reference that some release does not serve, or none.
#[derive(Debug, Clone)]
pub struct LostReference {
    /// The object that has it.
    pub object: usize,
    /// The symbol as in the file.
    pub symbol: String,
    /// Its version node.
    pub node: String,
    /// The library that `DT_VERNEED` names.
    pub library: String,
    history: History,
}

/// How a symbol fared at a node of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
enum History {
    /// No release is known to have it.
    Unheard,
    /// The releases in which the library lacks it although some library had it before, oldest first, with those that
    /// have it then.
    Lacking(Vec<(Release, Vec<&'static str>)>),
}

/// What becomes of a reference on the systems of a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// From release `at` on it is not served; the libraries `to` have the symbol there.
    Gone {
        /// The first release.
        at: Release,
        /// Libraries that are not loaded with the object, or do not count.
        to: Vec<&'static str>,
    },
    /// It is served by a library that only the interpreter has loaded.
    ByLuck {
        /// The first release where that is so.
        at: Release,
        /// The libraries.
        to: Vec<&'static str>,
    },
    /// No release is known to have it: a vendor may have added it.
    Unheard,
}

/// Until then the library that `DT_VERNEED` names had to have the symbol ("not defined in file libc.so.6 with link time
/// reference"); since then ld.so looks on among all that is loaded (glibc bug 24741, elf/dl-lookup.c).
const ANY_LIBRARY_WILL_DO: Release = Release::new(2, 30);

impl LostReferences {
    pub(crate) fn gather(audit: &Audit<'_>) -> Self {
        let mut lost = Self::default();
        let Some(platform) = audit.platform.filter(|p| p.libc == Libc::Glibc) else { return lost };
        let Some(table) = symbols::glibc(platform.arch) else { return lost };
        let mut judge = Judge { table, releases: all_releases(), known: HashMap::new() };
        let scopes = Scopes::new(audit, platform);
        for (index, entry) in audit.counted() {
            let before = lost.references.len();
            let strong = entry.object.symbols.undefined().filter(|s| !s.is_weak());
            lost.references.extend(strong.filter_map(|s| judge.lost(index, entry.object, s)));
            if lost.references.len() > before {
                let around = lost.surroundings.entry(audit.root_of(index));
                around.or_insert_with(|| Surroundings::of(audit, &scopes, index));
            }
        }
        lost
    }

    /// What is lost on the systems of a glibc target.
    pub fn on(&self, audit: &Audit<'_>, target: &Target) -> Vec<(&LostReference, Loss)> {
        let Some(from) = target.glibc_version().and_then(symbol_tables::release) else { return Vec::new() };
        let on_target = |reference| Some((reference, self.loss(audit, reference, from)?));
        self.references.iter().filter_map(on_target).collect()
    }

    fn loss(&self, audit: &Audit<'_>, reference: &LostReference, from: Release) -> Option<Loss> {
        let History::Lacking(lacking) = &reference.history else { return Some(Loss::Unheard) };
        let (at, to) = lacking.iter().find(|(release, _)| *release >= from)?.clone();
        if at < ANY_LIBRARY_WILL_DO && reference.asks_libc() {
            return Some(Loss::Gone { at, to });
        }
        let around = self.surroundings.get(&audit.root_of(reference.object))?;
        // libc is in every process.
        if to.iter().any(|library| *library == "libc.so.6" || around.needed.contains(*library)) {
            return None;
        }
        let lucky = to.iter().any(|library| around.outside.contains(*library));
        Some(if lucky { Loss::ByLuck { at, to } } else { Loss::Gone { at, to } })
    }
}

impl LostReference {
    /// The smaller libraries kept forwarders when their functions went to libc (`clock_gettime` of librt), which the
    /// tables do not show before 2.23; libc itself never handed a function on.
    fn asks_libc(&self) -> bool {
        self.library == "libc.so.6"
    }
}

impl Loss {
    /// In words for a finding's evidence.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Unheard => None,
            Self::Gone { at, to } if to.is_empty() => Some(format!("gone since glibc {at}")),
            Self::Gone { at, to } if *at < ANY_LIBRARY_WILL_DO => {
                Some(format!("glibc {at} has it no longer there, {} has it", to.join(", ")))
            }
            Self::Gone { at, to } | Self::ByLuck { at, to } => {
                Some(format!("glibc {at} has it in {}", to.join(", ")))
            }
        }
    }
}

fn all_releases() -> Vec<Release> {
    symbol_tables::glibc_releases(Release::new(0, 0))
}

/// Asks the tables about each symbol, version and library once.
struct Judge {
    table: GlibcTable,
    releases: Vec<Release>,
    known: HashMap<[Vec<u8>; 3], Option<History>>,
}

impl Judge {
    fn lost(&mut self, index: usize, object: &Object, symbol: &Symbol) -> Option<LostReference> {
        let SymbolVersion::Needed(need, version) = object.version_of(symbol) else { return None };
        let name = object.symbols.name(symbol);
        let key = [name, version.name.as_bytes(), need.library.as_bytes()].map(<[u8]>::to_vec);
        let (table, releases) = (&self.table, &self.releases);
        let history = self.known.entry(key).or_insert_with(|| {
            let (node, library) = (version.name.to_text(), need.library.to_text());
            let judged = table.has_library(&library) && is_public_glibc(&node);
            let all = judged.then(|| table.versions_of(&object.symbols.name_text(symbol)))?;
            history(&all, &node, &library, releases)
        });
        Some(LostReference {
            object: index,
            history: history.clone()?,
            symbol: object.symbols.name_text(symbol),
            node: version.name.to_text(),
            library: need.library.to_text(),
        })
    }
}

fn is_public_glibc(node: &str) -> bool {
    node.strip_prefix("GLIBC_").is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

/// `None` if the library has the symbol from its first release on.
fn history(all: &[Export], node: &str, library: &str, releases: &[Release]) -> Option<History> {
    let rows: Vec<&Export> = all.iter().filter(|e| e.version == Some(node)).collect();
    if rows.is_empty() {
        return Some(History::Unheard);
    }
    let own = |r: Release| rows.iter().any(|e| e.library == library && e.is_in(r));
    let born = rows.iter().filter_map(|e| e.since).min();
    let lacks = |r: &Release| born.is_none_or(|b| b <= *r) && !own(*r);
    let others = |r: Release| rows.iter().filter(|e| e.is_in(r)).map(|e| e.library).collect();
    let lacking: Vec<_> = releases.iter().copied().filter(lacks).map(|r| (r, others(r))).collect();
    (!lacking.is_empty()).then_some(History::Lacking(lacking))
}

/// What comes from outside with the objects that a root loads. The same for all of them, and asked for once: a root can
/// load thousands.
#[derive(Debug, Clone, Default)]
struct Surroundings {
    /// NEEDED by something in scope, as opposed to what the interpreter happens to have.
    needed: BTreeSet<String>,
    /// Both.
    outside: BTreeSet<String>,
}

impl Surroundings {
    fn of(audit: &Audit<'_>, scopes: &Scopes<'_, '_>, object: usize) -> Self {
        let scope = scopes.of(object);
        let needs = scope.members.iter().flat_map(|&m| audit.resolution.needs_of(m));
        let external = needs.filter(|n| n.outcome == Outcome::External);
        Self { needed: external.map(|n| n.name.clone()).collect(), outside: scope.outside }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let releases = [17, 27, 40].map(|minor| Release::new(2, minor));
        let judge = |rows: &[Export]| history(rows, "GLIBC_2.2.5", "libc.so.6", &releases);
        assert!(judge(&[export("libc.so.6", 2, None)]).is_none());
        let moved = judge(&[export("libc.so.6", 2, Some(27)), export("libm.so.6", 2, None)]);
        let libm = vec!["libm.so.6"];
        let expected = vec![(Release::new(2, 27), libm.clone()), (Release::new(2, 40), libm)];
        assert_eq!(moved, Some(History::Lacking(expected)));
        assert_eq!(judge(&[]), Some(History::Unheard));
        // Too new for the oldest system, and there ever after: that is for the version needs to say.
        assert!(judge(&[export("libc.so.6", 30, None)]).is_none());
    }
}
