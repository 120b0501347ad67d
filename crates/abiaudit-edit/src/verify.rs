//! Proof that an edited file is the original but for the plan.
//!
//! The expected contents are computed from the original and the plan alone; the edited file is read anew, by the
//! editor's own reader and by a second one that shares no code with it ([`second`]). What is wrong in the original and
//! untouched by the plan is no violation.

mod hashes;
mod second;
mod segments;
mod unchanged;

pub(crate) use self::segments::violations_of as structure;

use std::fmt;

use serde::Serialize;

use crate::abi::DT_STRSZ;
use crate::contents::{Contents, Entry, Symbol};
use crate::error::EditError;
use crate::image::ElfImage;
use crate::layout::{Layout, Options, is_address_tag};
use crate::plan::EditPlan;
use crate::relocations;
use crate::symbols::RawSymbol;

/// What an edited file must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invariant {
    /// The editor can read it.
    Readable,
    /// `PT_LOAD` entries ascend, do not overlap, and are congruent to their alignment and to the machine's page.
    Segments,
    /// The program headers are mapped, and `PT_PHDR` says where.
    ProgramHeaders,
    /// No `PT_LOAD` without an allocated section: `strip` breaks a file that has one.
    EmptySegment,
    /// Every address in the dynamic section is mapped, and is its section's.
    Pointers,
    /// The dynamic section is writable, and where it was: inside RELRO.
    DynamicSection,
    /// Dynamic entries are those of the plan.
    Entries,
    /// Dynamic symbols, with names, values and versions, are those of the plan.
    Symbols,
    /// Needed versions and defined versions are those of the plan.
    Versions,
    /// Every relocation names the symbol that it named.
    Relocations,
    /// Every symbol that can be found is found by the hash tables.
    Hash,
    /// Bytes that the plan has no business with are the same.
    Bytes,
    /// Notes, among them the build-id, are the same.
    Notes,
    /// Section headers are the same but for what moved.
    Sections,
    /// A second edit by the same plan changes nothing.
    Idempotence,
    /// A second reader sees the same.
    SecondReader,
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// What was expected and what was found.
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(invariant: Invariant, detail: impl Into<String>) -> Self {
        Self { invariant, detail: detail.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.detail)
    }
}

/// Checks an edited file against the original and the plan. An empty list is the proof.
///
/// `layout` says what moved, which the checks need in order to find it; they do not trust it with anything else.
///
/// # Errors
/// If the original cannot be read or the plan cannot be carried out on it.
pub fn verify(
    before: &[u8],
    after: &[u8],
    plan: &EditPlan,
    layout: &Layout,
) -> Result<Vec<Violation>, EditError> {
    let before = ElfImage::parse(before)?;
    let original = Contents::read(&before)?;
    let mut expected = original.clone();
    crate::edits::apply(&mut expected, plan)?;
    let read = ElfImage::parse(after).and_then(|image| Ok((Contents::read(&image)?, image)));
    let (found, after) = match read {
        Ok(read) => read,
        Err(error) => return Ok(vec![Violation::new(Invariant::Readable, error.to_string())]),
    };
    let case = Case {
        before: &before,
        after: &after,
        original: &original,
        expected: &expected,
        found: &found,
        layout,
    };
    let mut violations = Vec::new();
    segments::check(&case, &mut violations);
    case.check_entries(&mut violations);
    case.check_symbols(&mut violations);
    case.check_versions(&mut violations);
    case.check_relocations(&mut violations)?;
    hashes::check(&case, &mut violations);
    unchanged::check(&case, &mut violations)?;
    second::check(&case, &mut violations);
    case.check_idempotence(plan, &mut violations);
    violations.sort();
    Ok(violations)
}

/// What the checks compare.
pub(crate) struct Case<'c, 'b, 'a> {
    pub before: &'c ElfImage<'b>,
    pub after: &'c ElfImage<'a>,
    pub original: &'c Contents<'b>,
    pub expected: &'c Contents<'b>,
    pub found: &'c Contents<'a>,
    pub layout: &'c Layout,
}

impl Case<'_, '_, '_> {
    fn check_entries(&self, violations: &mut Vec<Violation>) {
        // Addresses and sizes of tables are checked where the tables are.
        let is_compared = |entry: &&Entry| {
            entry.tag != DT_STRSZ
                && crate::table::Table::ALL.iter().all(|table| table.tag() != Some(entry.tag))
        };
        let expected: Vec<&Entry> = self.expected.entries.iter().filter(is_compared).collect();
        let found: Vec<&Entry> = self.found.entries.iter().filter(is_compared).collect();
        if expected != found {
            let first = expected.iter().zip(&found).find(|(expected, found)| expected != found);
            let detail = match first {
                Some((expected, found)) => format!("{found:?} instead of {expected:?}"),
                None => format!("{} entries instead of {}", found.len(), expected.len()),
            };
            violations.push(Violation::new(Invariant::Entries, detail));
        }
        if self.expected.interpreter != self.found.interpreter {
            violations.push(Violation::new(Invariant::Entries, "another interpreter"));
        }
        if self.expected.stack_flags != self.found.stack_flags {
            let detail = format!("PT_GNU_STACK {:?}", self.found.stack_flags);
            violations.push(Violation::new(Invariant::Segments, detail));
        }
    }

    /// The expected symbol that is at an index of the edited table.
    fn expected_symbol(&self, index: usize) -> Option<&Symbol<'_>> {
        let former = match &self.layout.order {
            Some(order) => *order.get(index)? as usize,
            None => index,
        };
        self.expected.symbols.get(former)
    }

    /// Where the value of a symbol went whose section moved.
    fn moved(&self, symbol: &RawSymbol) -> u64 {
        let address = symbol.value;
        let section = self.before.sections.get(usize::from(symbol.shndx)).filter(|s| s.is_allocated());
        let of = |m: &&crate::layout::Move| {
            let holds = section.is_some_and(|s| s.offset >= m.from.offset && s.file_end() <= m.from.end());
            holds && address >= m.from.address && address - m.from.address <= m.from.size
        };
        self.layout.moves.iter().find(of).map_or(address, |m| m.to.address + (address - m.from.address))
    }

    /// Whether a symbol of the dynamic section's address took its new one.
    fn follows_dynamic(&self, old: &RawSymbol, new: &RawSymbol) -> bool {
        let address = |image: &ElfImage| image.dynamic.as_ref().map(|dynamic| dynamic.extent.address);
        let is_moved = Some(old.value) == address(self.before) && Some(new.value) == address(self.after);
        is_moved && RawSymbol { value: 0, ..*old } == RawSymbol { value: 0, ..*new }
    }

    fn check_symbols(&self, violations: &mut Vec<Violation>) {
        let mut wrong = |detail: String| violations.push(Violation::new(Invariant::Symbols, detail));
        let (expected, found) = (self.expected.symbols.len(), self.found.symbols.len());
        if expected != found {
            return wrong(format!("{found} symbols instead of {expected}"));
        }
        if let Some(order) = &self.layout.order {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if sorted.iter().enumerate().any(|(index, former)| index != *former as usize) {
                return wrong("the new order is no permutation".to_owned());
            }
        }
        for (index, found) in self.found.symbols.iter().enumerate() {
            let Some(expected) = self.expected_symbol(index) else { continue };
            let named = |symbol: &Symbol| RawSymbol { name: 0, ..symbol.raw };
            let is_moved = found.raw.value == self.moved(&expected.raw)
                || self.follows_dynamic(&named(expected), &named(found));
            let raw = |symbol: &Symbol| RawSymbol { name: 0, value: 0, ..symbol.raw };
            let is_same_value =
                found.raw.value == expected.raw.value || (is_moved && self.before.sections_agree);
            if found.name != expected.name
                || raw(found) != raw(expected)
                || !is_same_value
                || found.version != expected.version
                || found.in_gnu_hash != expected.in_gnu_hash
                || found.in_sysv_hash != expected.in_sysv_hash
            {
                return wrong(format!("symbol {index}: {found:?} instead of {expected:?}"));
            }
        }
        let locals_end = self.found.symbols.iter().rposition(|symbol| symbol.raw.is_local());
        let first_other = self.found.symbols.iter().position(|symbol| !symbol.raw.is_local());
        let was_sorted = is_sorted(self.original);
        if was_sorted && locals_end.zip(first_other).is_some_and(|(last, first)| last > first) {
            wrong("a local symbol behind a global one".to_owned());
        }
    }

    fn check_versions(&self, violations: &mut Vec<Violation>) {
        type Need = (Vec<u8>, Vec<(Vec<u8>, u16, u16)>);
        let needs = |contents: &Contents| -> Vec<Need> {
            let of = |need: &crate::versions::VersionNeed| {
                let versions = need.versions.iter();
                versions.map(|v| (v.name.bytes().to_vec(), v.flags, v.index)).collect()
            };
            contents.needs.iter().map(|need| (need.file.bytes().to_vec(), of(need))).collect()
        };
        if needs(self.expected) != needs(self.found) {
            violations.push(Violation::new(Invariant::Versions, "other version needs than planned"));
        }
        if self.expected.definitions != self.found.definitions {
            violations.push(Violation::new(Invariant::Versions, "other version definitions"));
        }
        for file in self.found.needs.iter().map(|need| need.file.display()) {
            let was_so = self.original.needs.iter().any(|need| need.file.is(&file))
                && !self.original.has_needed(&file);
            if !self.found.has_needed(&file) && !was_so {
                let detail = format!("a version of {file} is needed, and {file} is not");
                violations.push(Violation::new(Invariant::Versions, detail));
            }
        }
    }

    fn check_relocations(&self, violations: &mut Vec<Violation>) -> Result<(), EditError> {
        let tables = relocations::tables(self.before)?;
        let mut wrong = |detail: String| violations.push(Violation::new(Invariant::Relocations, detail));
        let Ok(found) = relocations::tables(self.after) else {
            wrong("the tables cannot be read".to_owned());
            return Ok(());
        };
        if tables != found {
            wrong("the tables are not where they were".to_owned());
            return Ok(());
        }
        for table in tables {
            let before = relocations::entries(self.before, table)?;
            let Ok(after) = relocations::entries(self.after, table) else { continue };
            for (before, after) in before.iter().zip(&after) {
                let former = match &self.layout.order {
                    Some(order) => order.get(after.symbol as usize).copied(),
                    None => Some(after.symbol),
                };
                let same =
                    (before.place, before.kind, before.addend) == (after.place, after.kind, after.addend);
                if !same || former != Some(before.symbol) {
                    wrong(format!("{after:x?} instead of {before:x?}"));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Where the plan's meaning leaves nothing to do for a second run, the file must leave nothing to do.
    fn check_idempotence(&self, plan: &EditPlan, violations: &mut Vec<Violation>) {
        // A plan may name what it removed, or rename what it named; then it means something else the second time.
        let mut planned_twice = self.expected.clone();
        let is_stable =
            crate::edits::apply(&mut planned_twice, plan).is_ok() && planned_twice == *self.expected;
        let again = plan.lay_out(self.after, &Options::default());
        if is_stable && !again.as_ref().is_ok_and(Layout::is_empty) {
            violations.push(Violation::new(Invariant::Idempotence, "a second run changes the file"));
        }
    }
}

fn is_sorted(contents: &Contents) -> bool {
    let last = contents.symbols.iter().rposition(|symbol| symbol.raw.is_local());
    let first = contents.symbols.iter().position(|symbol| !symbol.raw.is_local());
    last.zip(first).is_none_or(|(last, first)| last < first)
}

/// Addresses of the dynamic section that name no table of the editor's.
pub(crate) fn plain_addresses<'c>(image: &'c ElfImage) -> impl Iterator<Item = (u64, u64)> + 'c {
    let entries = image.dynamic.iter().flat_map(|dynamic| &dynamic.entries);
    entries.filter(|entry| is_address_tag(entry.tag)).map(|entry| (entry.tag, entry.value))
}
