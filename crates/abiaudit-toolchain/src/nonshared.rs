//! `libstdc++_nonshared.a`: what the compiler's libstdc++ has and the target's has not, without any of what both have.
//!
//! Red Hat builds such an archive from patched sources of GCC. Here it is made of the ordinary `libstdc++.a`, symbol by
//! symbol: a definition that the target's shared library has too becomes a reference to it, and of each member only the
//! sections stay that the new symbols reach. That works because libstdc++ is compiled with `-ffunction-sections
//! -fdata-sections` and, where it is built with `--with-pic`, position-independent (as Debian does).
//!
//! What must not happen, each measured to break programs that pass every check of versions:
//! * State that the process must have once (streams, locale ids, waiter pools) may not get a second home. Hence the
//!   allow-lists [`STATE`] and [`INITIALIZERS`], the refusal of `locale::id`s, and the look for new symbols that are
//!   other names of old functions: `std::ios_base_library_init` of GCC 13 is the constructor of `ios_base::Init`.
//! * Statics of inline functions are one for the whole process (`STB_GNU_UNIQUE`), and stay so: hidden, each module
//!   would wait in a pool of its own that others never notify.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use abiaudit_policy::compare_versions;
use object::elf;
use serde::{Deserialize, Serialize};

use crate::archive::{self, Member};
use crate::error::Result;
use crate::relocatable::{Live, Place, Relocatable, Symbol};

/// What is split, and where the border runs.
#[derive(Debug, Clone, Copy)]
pub struct Split<'a> {
    /// What the target's shared library exports: never defined in the archive.
    pub baseline: &'a BTreeSet<String>,
    /// What the compiler's shared library exports beyond that.
    pub new: &'a BTreeSet<String>,
    /// Those of `new` that come from elsewhere, see [`crate::shim`].
    pub replaced: &'a BTreeSet<String>,
    /// Those of `new` that no archive can bring to the target, with the reason.
    pub refused: &'a BTreeMap<String, String>,
}

/// An archive and what is to be said about it.
#[derive(Debug, Clone)]
pub struct Nonshared {
    /// The members, with everything but statics of inline functions hidden.
    pub members: Vec<Member>,
    /// What was found on the way.
    pub report: Report,
}

/// What an archive holds, and what not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// New symbols that it defines.
    pub covered: BTreeSet<String>,
    /// New symbols that `libstdc++.a` does not define.
    pub missing: BTreeSet<String>,
    /// New symbols that are left out on purpose, with the reason.
    pub refused: BTreeMap<String, String>,
    /// Internal symbols that new ones need, hidden.
    pub helpers: BTreeSet<String>,
    /// Statics of inline functions and their guards, which stay visible and unique.
    pub unique: BTreeSet<String>,
    /// New symbols that are another name of a function of the baseline: the archive has a copy of it.
    pub aliases: BTreeMap<String, String>,
    /// Variables that the program can change: `member section`, with the size in bytes.
    pub state: BTreeMap<String, u64>,
    /// Members whose initialisers are kept.
    pub initializers: BTreeSet<String>,
    /// Symbols that other libraries (libc, libgcc) define.
    pub external: BTreeSet<String>,
}

/// A variable that may have a second home.
#[derive(Debug, Clone, Copy)]
pub struct AllowedState {
    /// A part of `member section`.
    pub part: &'static str,
    /// No more bytes than this.
    pub size: u64,
    /// Why it may.
    pub reason: &'static str,
}

const fn state(part: &'static str, size: u64, reason: &'static str) -> AllowedState {
    AllowedState { part, size, reason }
}

/// All variables that may have a second home. A new symbol that needs another one is refused.
pub const STATE: &[AllowedState] = &[
    state("futex_clock_monotonic_unavailable", 1, "remembers that the kernel lacks a system call"),
    state("futex_clock_realtime_unavailable", 1, "remembers that the kernel lacks a system call"),
    state(
        "_ZNSt3pmr12_GLOBAL__N_110newdel_resE",
        16,
        "what new_delete_resource returns: another one in each module",
    ),
    state(
        "_ZNSt3pmr12_GLOBAL__N_18null_resE",
        16,
        "what null_memory_resource returns: another one in each module",
    ),
    state(
        "_ZNSt3pmr12_GLOBAL__N_111default_resE",
        16,
        "what get_default_resource returns: another one in each module",
    ),
    state("tzdb.o ", 4096, "the database of time zones: each module reads its own"),
    state("fs_ops.o .data", 32, "a constant table of names of environment variables (aarch64)"),
    state(
        "system_category_instance",
        8,
        "an error category without fields: equal to others by value, not by address",
    ),
    state(
        "generic_category_instance",
        8,
        "an error category without fields: equal to others by value, not by address",
    ),
    state(
        "io_category_instance",
        8,
        "an error category without fields: equal to others by value, not by address",
    ),
    state(
        "rounds_to_nearestEvE4fmin",
        4,
        "a constant, volatile so that the compiler does not calculate with it",
    ),
    state("__at_thread_exit", 4, "what notify_all_at_thread_exit registers: each module its own"),
    state("8key_initEvE2ks", 8, "the key of what notify_all_at_thread_exit registers"),
    state("_ZNSt12_GLOBAL__N_13keyE", 4, "the key of what notify_all_at_thread_exit registers"),
];

/// May this section of this member be there once in each module?
pub(crate) fn is_allowed_state(member: &str, section: &str, size: u64) -> bool {
    let place = format!("{member} {section}");
    STATE.iter().any(|state| place.contains(state.part) && size <= state.size)
}

/// Members whose initialisers may be kept: they fill variables of [`STATE`].
pub const INITIALIZERS: &[&str] =
    &["memory_resource.o", "tzdb.o", "system_error.o", "cxx11-ios_failure.o", "ios_failure.o"];

/// Splits `libstdc++.a`, whose bytes are given; `path` is for errors.
pub fn split(path: &Path, bytes: &[u8], split: &Split<'_>) -> Result<Nonshared> {
    let mut surgeon = Surgeon::new(path, bytes, split)?;
    // Each round refuses at least one symbol.
    loop {
        surgeon.choose_roots()?;
        surgeon.close()?;
        if !surgeon.refuse_state() {
            return surgeon.finish();
        }
    }
}

/// One member, with its baseline definitions made references.
struct Part {
    name: String,
    file: Relocatable,
    /// Indices of symbols to keep.
    roots: BTreeSet<usize>,
    live: Live,
}

struct Surgeon<'a> {
    split: &'a Split<'a>,
    parts: Vec<Part>,
    /// Which members define a name that is not of the baseline, in the order of the archive.
    definers: BTreeMap<Vec<u8>, Vec<(usize, usize)>>,
    /// New symbol to baseline symbol at the same place of the same member.
    aliases: BTreeMap<String, String>,
    refused: BTreeMap<String, String>,
}

impl<'a> Surgeon<'a> {
    fn new(path: &Path, bytes: &[u8], split: &'a Split<'a>) -> Result<Self> {
        let mut surgeon = Self {
            split,
            parts: Vec::new(),
            definers: BTreeMap::new(),
            aliases: BTreeMap::new(),
            refused: split.refused.clone(),
        };
        for (name, data) in archive::members(path, bytes)? {
            let Some(mut file) = Relocatable::parse(&archive::member_path(path, &name), data)? else {
                continue;
            };
            surgeon.find_aliases(&file);
            for symbol in &mut file.symbols {
                if symbol.is_definition() && split.baseline.contains(&symbol.name_text()) {
                    symbol.undefine();
                }
            }
            for (index, symbol) in file.definitions() {
                surgeon.definers.entry(symbol.name.clone()).or_default().push((surgeon.parts.len(), index));
            }
            surgeon.parts.push(Part { name, file, roots: BTreeSet::new(), live: Live::default() });
        }
        Ok(surgeon)
    }

    fn find_aliases(&mut self, file: &Relocatable) {
        let mut places: BTreeMap<(usize, u64), String> = BTreeMap::new();
        let of = |symbol: &Symbol| match symbol.place {
            Place::Section(section) => Some((section, symbol.value)),
            _ => None,
        };
        for (_, symbol) in file.definitions() {
            let name = symbol.name_text();
            if let Some(place) = of(symbol).filter(|_| self.split.baseline.contains(&name)) {
                places.entry(place).or_insert(name);
            }
        }
        for (_, symbol) in file.definitions() {
            let name = symbol.name_text();
            if self.split.new.contains(&name)
                && let Some(baseline) = of(symbol).and_then(|place| places.get(&place))
            {
                self.aliases.insert(name, baseline.clone());
            }
        }
    }

    /// The new symbols that each member defines.
    fn choose_roots(&mut self) -> Result<()> {
        for name in self.split.new {
            let Some(definers) = self.definers.get(name.as_bytes()) else { continue };
            if self.split.replaced.contains(name) || self.refused.contains_key(name) {
                continue;
            }
            if let Some(baseline) = self.aliases.get(name)
                && !self.is_pure(definers)?
            {
                let reason =
                    format!("another name of {baseline}, which the target has, with variables of its own");
                self.refused.insert(name.clone(), reason);
                continue;
            }
            for (part, symbol) in definers {
                self.parts[*part].roots.insert(*symbol);
            }
        }
        Ok(())
    }

    /// Does what these definitions reach change nothing but what the baseline has?
    fn is_pure(&self, definers: &[(usize, usize)]) -> Result<bool> {
        for (part, symbol) in definers {
            let file = &self.parts[*part].file;
            let live = file.live([*symbol])?;
            let is_foreign = |symbol: &usize| {
                let symbol = &file.symbols[*symbol];
                symbol.place == Place::Undefined && !self.split.baseline.contains(&symbol.name_text())
            };
            if live.sections.iter().any(|section| file.sections[*section].is_state())
                || live.symbols.iter().any(is_foreign)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps what the kept needs, until nothing more is needed.
    fn close(&mut self) -> Result<()> {
        loop {
            let mut wanted: BTreeSet<Vec<u8>> = BTreeSet::new();
            let mut have: BTreeSet<&[u8]> = BTreeSet::new();
            for part in self.parts.iter_mut().filter(|part| !part.roots.is_empty()) {
                part.live = part.file.live(part.roots.iter().copied())?;
                while part.keep_initializers()? {}
            }
            for part in self.parts.iter().filter(|part| !part.roots.is_empty()) {
                for symbol in part.live.symbols.iter().map(|index| &part.file.symbols[*index]) {
                    if symbol.place == Place::Undefined {
                        wanted.insert(symbol.name.clone());
                    }
                }
                have.extend(part.kept_definitions().map(|symbol| symbol.name.as_slice()));
            }
            let replaced: BTreeSet<&[u8]> = self.split.replaced.iter().map(String::as_bytes).collect();
            let is_there = |name: &[u8]| have.contains(name) || replaced.contains(name);
            let missing = wanted.iter().filter(|name| !is_there(name));
            let found: Vec<(usize, usize)> =
                missing.filter_map(|name| self.definers.get(name)?.first().copied()).collect();
            if found.is_empty() {
                return Ok(());
            }
            for (part, symbol) in found {
                self.parts[part].roots.insert(symbol);
            }
        }
    }

    /// Refuses the new symbols that reach variables which the process must have once; says whether there were any.
    fn refuse_state(&mut self) -> bool {
        let users = self.users();
        let mut found = false;
        for (start, what) in self.forbidden_state() {
            let mut reached = BTreeSet::from([start]);
            let mut open = vec![start];
            while let Some(place) = open.pop() {
                for user in users.get(&place).into_iter().flatten().filter(|user| reached.insert(**user)) {
                    open.push(*user);
                }
            }
            for (part, symbol) in self.all_roots() {
                let symbol = &self.parts[part].file.symbols[symbol];
                let name = symbol.name_text();
                let Place::Section(section) = symbol.place else { continue };
                // One that was refused before is here because others need it.
                if reached.contains(&(part, section))
                    && self.split.new.contains(&name)
                    && !self.refused.contains_key(&name)
                {
                    self.refused.insert(name, format!("needs {what}, which the process must have once"));
                    found = true;
                }
            }
        }
        if found {
            for part in &mut self.parts {
                (part.roots, part.live) = (BTreeSet::new(), Live::default());
            }
        }
        found
    }

    /// Variables that are kept and may not be, as (part, section), with a name for people.
    fn forbidden_state(&self) -> Vec<((usize, usize), String)> {
        let mut forbidden = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            for section in part.live.sections.iter().copied() {
                let content = &part.file.sections[section];
                let name = String::from_utf8_lossy(&content.name).into_owned();
                if content.is_state()
                    && !is_allowed_state(&part.name, &name, content.size)
                    && !part.file.symbols.iter().any(|s| is_unique(s) && s.place == Place::Section(section))
                {
                    forbidden.push(((index, section), format!("{} of {}", name, part.name)));
                }
            }
        }
        forbidden
    }

    fn all_roots(&self) -> Vec<(usize, usize)> {
        let of = |(index, part): (usize, &Part)| {
            part.roots.iter().map(|symbol| (index, *symbol)).collect::<Vec<_>>()
        };
        self.parts.iter().enumerate().flat_map(of).collect()
    }

    /// For each kept section those that refer to it, across members.
    fn users(&self) -> BTreeMap<(usize, usize), Vec<(usize, usize)>> {
        let mut users: BTreeMap<(usize, usize), Vec<(usize, usize)>> = BTreeMap::new();
        for (index, part) in self.parts.iter().enumerate() {
            for section in &part.live.sections {
                let symbols = part.file.sections[*section].relocations.iter().filter_map(|r| r.symbol);
                for symbol in symbols.map(|symbol| &part.file.symbols[symbol]) {
                    let places = match symbol.place {
                        Place::Section(other) => vec![(index, other)],
                        Place::Absolute => Vec::new(),
                        Place::Undefined => self.places_of(&symbol.name),
                    };
                    for place in places {
                        users.entry(place).or_default().push((index, *section));
                    }
                }
            }
        }
        users
    }

    /// The sections that define a name.
    fn places_of(&self, name: &[u8]) -> Vec<(usize, usize)> {
        let definers = self.definers.get(name).into_iter().flatten();
        definers
            .filter_map(|(part, symbol)| match self.parts[*part].file.symbols[*symbol].place {
                Place::Section(section) => Some((*part, section)),
                _ => None,
            })
            .collect()
    }

    fn finish(self) -> Result<Nonshared> {
        let mut report = Report { refused: self.refused, ..Report::default() };
        let mut members = Vec::new();
        let mut undefined = BTreeSet::new();
        let mut defined = BTreeSet::new();
        for part in self.parts.iter().filter(|part| !part.roots.is_empty()) {
            let mut file = part.file.retain(&part.live)?;
            for symbol in file.symbols.iter_mut().filter(|symbol| symbol.is_definition()) {
                let name = symbol.name_text();
                if is_unique(symbol) {
                    report.unique.insert(name.clone());
                } else {
                    symbol.visibility = elf::STV_HIDDEN;
                    if !self.split.new.contains(&name) || report.refused.contains_key(&name) {
                        report.helpers.insert(name.clone());
                    }
                }
                defined.insert(name);
            }
            for section in file.sections.iter().filter(|section| section.is_state()) {
                let name = format!("{} {}", part.name, String::from_utf8_lossy(&section.name));
                report.state.insert(name, section.size);
            }
            if file.initializers().next().is_some() {
                report.initializers.insert(part.name.clone());
            }
            let references = file.symbols.iter().filter(|s| s.is_global() && s.place == Place::Undefined);
            undefined.extend(references.map(Symbol::name_text));
            members.push(member(&part.name, &file));
        }
        report.covered = self.split.new.intersection(&defined).cloned().collect();
        // What is refused may still be there for others, hidden: it is not promised.
        report.covered.retain(|name| !report.refused.contains_key(name));
        report.aliases = self.aliases.into_iter().filter(|(name, _)| defined.contains(name)).collect();
        report.external = undefined
            .into_iter()
            .filter(|n| !defined.contains(n) && !self.split.baseline.contains(n))
            .collect();
        report.missing = self
            .split
            .new
            .iter()
            .filter(|name| {
                !defined.contains(*name)
                    && !report.refused.contains_key(*name)
                    && !self.split.replaced.contains(*name)
            })
            .cloned()
            .collect();
        Ok(Nonshared { members, report })
    }
}

impl Part {
    /// Keeps the initialisers of variables that are kept; says whether there were new ones.
    fn keep_initializers(&mut self) -> Result<bool> {
        let mut found = false;
        let arrays: Vec<(usize, Vec<usize>)> = self.file.initializers().collect();
        for (section, functions) in arrays {
            if self.live.sections.contains(&section) {
                continue;
            }
            let reached = self.file.live(functions.iter().copied())?;
            let fills = |section: &usize| {
                self.file.sections[*section].is_state() && self.live.sections.contains(section)
            };
            if reached.sections.iter().any(fills) {
                self.live.sections.insert(section);
                self.live.sections.extend(reached.sections);
                self.live.symbols.extend(reached.symbols);
                found = true;
            }
        }
        Ok(found)
    }

    fn kept_definitions(&self) -> impl Iterator<Item = &Symbol> {
        let definitions = self.file.symbols.iter().filter(|symbol| symbol.is_definition());
        definitions.filter(|symbol| match symbol.place {
            Place::Section(section) => self.live.sections.contains(&section),
            _ => true,
        })
    }
}

/// A member of an archive, found by what it defines.
pub(crate) fn member(name: &str, file: &Relocatable) -> Member {
    Member {
        name: name.to_owned(),
        data: file.write(),
        symbols: file.definitions().map(|(_, symbol)| symbol.name.clone()).collect(),
    }
}

/// The same archive with the definitions of `names` visible, as a companion library exports them (and as Red Hat's archive
/// has them). `path` is for errors.
pub fn expose(path: &Path, bytes: &[u8], names: &BTreeSet<String>) -> Result<Vec<u8>> {
    let mut members = Vec::new();
    for (name, data) in archive::members(path, bytes)? {
        let Some(mut file) = Relocatable::parse(&archive::member_path(path, &name), data)? else { continue };
        for symbol in file.symbols.iter_mut().filter(|symbol| symbol.is_definition()) {
            if names.contains(&symbol.name_text()) {
                symbol.visibility = elf::STV_DEFAULT;
            }
        }
        members.push(member(&name, &file));
    }
    Ok(archive::write(&members))
}

/// The reason to leave a new symbol out of the archive of a target whose libstdc++ ends at `glibcxx` (`3.4.24`).
pub fn refusal(name: &str, glibcxx: &str) -> Option<String> {
    // A facet's id is an index that the library gives out once; with an id of its own a module looks for its facets
    // where no locale has them, and gets std::bad_cast.
    if name.starts_with("_ZNSt") && name.ends_with("2idE") {
        return Some("a std::locale::id: the facet is in no locale of the target's library".to_owned());
    }
    let is_new_string = name.contains("__cxx11") || name.contains("B5cxx11");
    let has_new_string =
        compare_versions(glibcxx, NEW_STRING_ABI).is_some_and(|order| order != Ordering::Less);
    (is_new_string && !has_new_string).then(|| {
        format!("of the new string ABI (GLIBCXX_{NEW_STRING_ABI}); compile with -D_GLIBCXX_USE_CXX11_ABI=0")
    })
}

/// The first version of libstdc++ with `std::__cxx11::basic_string` and its facets (GCC 5.1, "Dual ABI").
pub const NEW_STRING_ABI: &str = "3.4.21";

/// Must a definition stay one for the whole process? Unique symbols, and statics of inline functions (`_ZZ`) with their
/// guards (`_ZGV`) where the compiler was built without unique symbols.
pub(crate) fn is_unique(symbol: &Symbol) -> bool {
    symbol.binding == elf::STB_GNU_UNIQUE
        || (symbol.binding == elf::STB_WEAK
            && symbol.kind == elf::STT_OBJECT
            && (symbol.name.starts_with(b"_ZZ") || symbol.name.starts_with(b"_ZGVZ")))
}
