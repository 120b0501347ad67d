//! Which sections some symbols need: what `ld --gc-sections` does, within one file.

use std::collections::BTreeSet;

use object::elf;

use super::{Place, Relocatable, Section, eh_frame};
use crate::error::Result;

/// The sections of a file that are reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    /// Indices of sections.
    pub sections: BTreeSet<usize>,
    /// Indices of symbols that a reached section refers to.
    pub symbols: BTreeSet<usize>,
}

impl Relocatable {
    /// All sections that the definitions `roots` (indices of symbols) reach over relocations.
    ///
    /// A function reaches its unwind information and so its exception table and personality routine. Groups are not
    /// followed: a group's other sections come along if something refers to them.
    pub fn live(&self, roots: impl IntoIterator<Item = usize>) -> Result<Live> {
        let frames = self.frames()?;
        let mut live = Live::default();
        let mut symbols: Vec<usize> = roots.into_iter().collect();
        while let Some(symbol) = symbols.pop() {
            live.symbols.insert(symbol);
            let Some(Place::Section(section)) = self.symbols.get(symbol).map(|s| s.place) else { continue };
            if live.sections.insert(section) {
                symbols.extend(self.sections[section].relocations.iter().filter_map(|r| r.symbol));
                symbols
                    .extend(frames.iter().filter(|frame| frame.function == section).flat_map(|f| &f.symbols));
                let about = |other: &Section| other.about == Some(section);
                for (index, other) in self.sections.iter().enumerate().filter(|(_, other)| about(other)) {
                    live.sections.insert(index);
                    symbols.extend(other.relocations.iter().filter_map(|r| r.symbol));
                }
            }
        }
        Ok(live)
    }

    /// What the unwind records of each function's section refer to.
    fn frames(&self) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        for section in self.sections.iter().filter(|section| eh_frame::is_eh_frame(section)) {
            let records = eh_frame::records(self, section)?;
            for record in &records {
                let Some(cie) = record.cie else { continue };
                let function = eh_frame::function_of(section, record).and_then(|r| r.symbol);
                let Some(Place::Section(function)) = function.map(|s| self.symbols[s].place) else {
                    continue;
                };
                let of = |index: usize| records[index].relocations.iter();
                let all = record.relocations.iter().chain(of(cie));
                let symbols = all.filter_map(|i| section.relocations.get(*i)?.symbol).collect();
                frames.push(Frame { function, symbols });
            }
        }
        Ok(frames)
    }

    /// The functions that `.init_array` and its like call, as (section of the array, indices of symbols).
    pub fn initializers(&self) -> impl Iterator<Item = (usize, Vec<usize>)> {
        let arrays = self.sections.iter().enumerate().filter(|(_, section)| is_initializer(section));
        arrays.map(|(index, section)| (index, section.relocations.iter().filter_map(|r| r.symbol).collect()))
    }

    /// The file with only these sections, the notes that say what the code needs of the machine and the stack, and the
    /// symbols that are left.
    pub fn retain(&self, live: &Live) -> Result<Self> {
        let kept: Vec<usize> = (0..self.sections.len())
            .filter(|index| live.sections.contains(index) || is_kept_always(&self.sections[*index]))
            .collect();
        let new_section = |old: usize| kept.binary_search(&old).ok();
        let mut sections = Vec::with_capacity(kept.len());
        for index in &kept {
            let section = &self.sections[*index];
            let mut section = if eh_frame::is_eh_frame(section) {
                let records = eh_frame::records(self, section)?;
                eh_frame::prune(section, &records, |record| {
                    let function = eh_frame::function_of(section, &records[record]).and_then(|r| r.symbol);
                    matches!(function.map(|s| self.symbols[s].place), Some(Place::Section(s)) if live.sections.contains(&s))
                })
            } else {
                section.clone()
            };
            section.about = section.about.and_then(new_section);
            sections.push(section);
        }
        let mut file = Self { sections, symbols: Vec::new(), groups: Vec::new(), ..self.clone() };
        let renumbered = file.take_symbols(&self.symbols, live, new_section);
        for relocation in file.sections.iter_mut().flat_map(|section| &mut section.relocations) {
            relocation.symbol = relocation.symbol.and_then(|symbol| renumbered[symbol]);
        }
        for group in &self.groups {
            let sections: Vec<usize> = group.sections.iter().filter_map(|s| new_section(*s)).collect();
            if !sections.is_empty() {
                let signature = renumbered[group.signature].unwrap_or_else(|| {
                    // Only its name counts; that of constructors (`C5`) is the name of nothing else.
                    let mut symbol = self.symbols[group.signature].clone();
                    symbol.undefine();
                    symbol.binding = elf::STB_LOCAL;
                    symbol.place = Place::Absolute;
                    file.symbols.push(symbol);
                    file.symbols.len() - 1
                });
                file.groups.push(super::Group { flags: group.flags, signature, sections });
            }
        }
        Ok(file)
    }

    /// Takes the symbols that are defined in what is left or that it refers to; gives the new index of each old one.
    fn take_symbols(
        &mut self,
        symbols: &[super::Symbol],
        live: &Live,
        new_section: impl Fn(usize) -> Option<usize>,
    ) -> Vec<Option<usize>> {
        let referred: BTreeSet<usize> =
            self.sections.iter().flat_map(|s| &s.relocations).filter_map(|r| r.symbol).collect();
        symbols
            .iter()
            .enumerate()
            .map(|(index, symbol)| {
                let place = match symbol.place {
                    Place::Section(section) => Place::Section(new_section(section)?),
                    Place::Absolute if symbol.kind == elf::STT_FILE => Place::Absolute,
                    other if referred.contains(&index) || live.symbols.contains(&index) => other,
                    _ => return None,
                };
                self.symbols.push(super::Symbol { place, ..symbol.clone() });
                Some(self.symbols.len() - 1)
            })
            .collect()
    }
}

struct Frame {
    /// The section of the function.
    function: usize,
    symbols: Vec<usize>,
}

fn is_initializer(section: &Section) -> bool {
    matches!(section.kind, elf::SHT_INIT_ARRAY | elf::SHT_FINI_ARRAY | elf::SHT_PREINIT_ARRAY)
        || section.name.starts_with(b".ctors")
        || section.name.starts_with(b".dtors")
}

/// The unwind tables, cut down, and what the linker must know of every file: does it need an executable stack, and has
/// it landing pads for indirect branches?
fn is_kept_always(section: &Section) -> bool {
    eh_frame::is_eh_frame(section)
        || section.name == b".note.GNU-stack"
        || section.name == b".note.gnu.property"
}
