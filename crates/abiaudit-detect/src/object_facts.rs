//! What all detectors ask of an object, gathered in one pass over its symbols.

use abiaudit_elf::{Object, RelocationUse, Symbol, SymbolVersion};
use abiaudit_policy::symbols::{self, GccLibrary};

use crate::data::{Kind, family_of};
use crate::evidence::{Evidence, Fact, Grade};
use crate::markers::{Found, Markers, Speaks};

/// How many names evidence shows.
const EXAMPLES: usize = 4;

/// An object, its markers, and what is known of libstdc++ on its architecture.
pub(crate) struct ObjectFacts<'o> {
    pub(crate) object: &'o Object,
    found: Vec<&'o Found>,
    /// `None` for an architecture without a list: then no symbol counts as libstdc++'s.
    pub(crate) libstdcxx: Option<GccLibrary>,
    pub(crate) soname: Option<String>,
    pub(crate) needed: Vec<String>,
}

/// Symbols of one kind: how many, and the first few names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) count: usize,
    pub(crate) examples: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, name: &str) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(name.to_owned());
        }
    }

    /// Evidence of grade A that these are exported, if there are any.
    pub(crate) fn exported(&self, what: &str) -> Option<Evidence> {
        let Self { count, examples } = self.clone();
        let fact = Fact::Exports { what: what.to_owned(), count, examples };
        (count > 0).then(|| Evidence::new(Grade::A, fact))
    }

    /// Evidence of grade A that these are referred to, if there are any.
    pub(crate) fn referred(&self, what: &str) -> Option<Evidence> {
        let Self { count, examples } = self.clone();
        let fact = Fact::References { what: what.to_owned(), count, examples };
        (count > 0).then(|| Evidence::new(Grade::A, fact))
    }
}

impl<'o> ObjectFacts<'o> {
    pub(crate) fn new(object: &'o Object, markers: &'o Markers) -> Self {
        let arch = object.identity.arch().and_then(|arch| arch.parse().ok());
        Self {
            object,
            found: markers.iter().filter(|found| is_loaded(object, found.offset)).collect(),
            libstdcxx: arch.and_then(symbols::libstdcxx),
            soname: object.dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text),
            needed: object.dynamic.needed.iter().map(abiaudit_elf::Name::to_text).collect(),
        }
    }

    /// Finds of markers that speak for this.
    pub(crate) fn found(&self, what: Speaks) -> impl Iterator<Item = &'o Found> {
        self.found.iter().copied().filter(move |found| found.marker().speaks_for == what)
    }

    /// Texts that speak for this, as evidence.
    pub(crate) fn texts(&self, what: Speaks) -> Vec<Evidence> {
        self.found(what).map(evidence_of).collect()
    }

    /// Two different translation units bear witness, and one of them by a text that no other code has: enough to
    /// claim presence.
    pub(crate) fn is_proved(&self, what: Speaks) -> bool {
        let units = self.units(what, Grade::C);
        units >= 2 && self.units(what, Grade::B) >= 1
    }

    /// How many different translation units bear witness with at least this grade.
    pub(crate) fn units(&self, what: Speaks, grade: Grade) -> usize {
        let good = self.found(what).map(Found::marker).filter(|marker| marker.grade <= grade);
        let mut units: Vec<_> = good.map(|marker| marker.unit).collect();
        units.sort_unstable();
        units.dedup();
        units.len()
    }

    /// The family that the object's own soname belongs to.
    pub(crate) fn own_family(&self, kind: Kind) -> Option<(&'static str, &str)> {
        let soname = self.soname.as_deref()?;
        Some((family_of(soname, kind)?, soname))
    }

    /// Needed libraries of a kind: family and soname, in the order of `DT_NEEDED`.
    pub(crate) fn needed(&self, kind: Kind) -> impl Iterator<Item = (&'static str, &str)> {
        self.needed.iter().filter_map(move |soname| Some((family_of(soname, kind)?, soname.as_str())))
    }

    /// Exported definitions, with their names. Copies that a program keeps of a library's variables (COPY
    /// relocations) are the library's, not the program's.
    pub(crate) fn exports(&self) -> impl Iterator<Item = (&'o Symbol, &'o [u8])> {
        let symbols = &self.object.symbols;
        let own = |symbol: &&Symbol| !symbol.uses.contains(RelocationUse::COPY);
        symbols.exported().filter(own).map(|symbol| (symbol, symbols.name(symbol)))
    }

    /// References, with their names.
    pub(crate) fn references(&self) -> impl Iterator<Item = (&'o Symbol, &'o [u8])> {
        let symbols = &self.object.symbols;
        symbols.undefined().map(|symbol| (symbol, symbols.name(symbol)))
    }

    /// Exported definitions whose name begins with one of these.
    pub(crate) fn exports_from(&self, prefixes: &[&str]) -> Tally {
        tally(self.exports(), prefixes)
    }

    /// References whose name begins with one of these.
    pub(crate) fn references_to(&self, prefixes: &[&str]) -> Tally {
        tally(self.references(), prefixes)
    }

    /// Is there an exported definition of this name?
    pub(crate) fn defines(&self, name: &str) -> bool {
        let own = |symbol: &&Symbol| !symbol.uses.contains(RelocationUse::COPY);
        self.object.symbols.definitions(name.as_bytes()).iter().any(own)
    }

    /// Is there a symbol of another object's library with this name?
    pub(crate) fn refers(&self, name: &str) -> bool {
        self.references().any(|(_, found)| found == name.as_bytes())
    }

    /// The library that a reference names as its provider, if it has a version.
    pub(crate) fn provider(&self, symbol: &Symbol) -> Option<&'o abiaudit_elf::Name> {
        match self.object.version_of(symbol) {
            SymbolVersion::Needed(need, _) => Some(&need.library),
            _ => None,
        }
    }
}

fn tally<'s>(symbols: impl Iterator<Item = (&'s Symbol, &'s [u8])>, prefixes: &[&str]) -> Tally {
    let mut tally = Tally::default();
    for (_, name) in symbols {
        if prefixes.iter().any(|prefix| name.starts_with(prefix.as_bytes())) {
            tally.add(&String::from_utf8_lossy(name));
        }
    }
    tally
}

/// A find as evidence.
pub(crate) fn evidence_of(found: &Found) -> Evidence {
    let marker = found.marker();
    let text = found.text.chars().take(120).collect();
    let fact = Fact::Text { text, offset: found.offset, count: found.count, unit: marker.unit };
    Evidence::new(marker.grade, fact)
}

/// Is the byte part of what is loaded? Debug information and symbol names are not the program's own texts. A file
/// without segments (an object file) counts as a whole. Section headers are not asked: they can be stripped.
fn is_loaded(object: &Object, offset: u64) -> bool {
    let mut loads = object.segments.loads().peekable();
    loads.peek().is_none() || loads.any(|load| load.file_range().contains(&offset))
}
