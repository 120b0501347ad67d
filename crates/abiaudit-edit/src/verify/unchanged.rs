//! Bytes, notes and sections that the plan has no business with.

use super::{Case, Invariant, Violation};
use crate::abi::{
    DT_PLTGOT, PT_GNU_PROPERTY, PT_MIPS_ABIFLAGS, PT_MIPS_REGINFO, PT_NOTE, SHT_GNU_VERNEED, SHT_SYMTAB,
};
use crate::error::EditError;
use crate::headers::SectionHeader;
use crate::image::ElfImage;
use crate::relocations;
use crate::symbols::RawSymbol;
use crate::units::{lies_in_headers, units};

pub(super) fn check(case: &Case, violations: &mut Vec<Violation>) -> Result<(), EditError> {
    check_bytes(case, violations)?;
    check_notes(case, violations);
    check_sections(case, violations);
    check_symbol_tables(case, violations);
    Ok(())
}

/// Ranges of the original that an edit may change: headers, movable tables, relocations that are renumbered.
fn changeable(case: &Case) -> Result<Vec<(u64, u64)>, EditError> {
    let image = case.before;
    let mut ranges = vec![(0, image.encoding.file_header_size())];
    for image in [case.before, case.after] {
        let size = u64::from(image.header.phnum) * image.encoding.program_header_size();
        ranges.push((image.header.phoff, image.header.phoff + size));
        let size = image.sections.len() as u64 * image.encoding.section_header_size();
        ranges.push((image.header.shoff, image.header.shoff + size));
    }
    ranges.extend(units(image)?.iter().map(|unit| (unit.extent.offset, unit.extent.end())));
    if case.layout.order.is_some() {
        for table in relocations::tables(image)? {
            ranges.push((table.offset, table.offset + table.count * table.entry_size(image.encoding)));
        }
    }
    let word = image.encoding.word_size() as u64;
    let got = image.dynamic_value(DT_PLTGOT).and_then(|address| image.offset_of(address, word));
    ranges.extend(got.map(|offset| (offset, offset + word)));
    let tables = image.sections.iter().filter(|s| image.sections_agree && s.kind == SHT_SYMTAB);
    ranges.extend(tables.map(|s| (s.offset, s.file_end())));
    ranges.extend(reused(case));
    ranges.sort_unstable();
    Ok(ranges)
}

fn check_bytes(case: &Case, violations: &mut Vec<Violation>) -> Result<(), EditError> {
    let (before, after) = (case.before.bytes, case.after.bytes);
    let mut at = 0;
    let end = before.len() as u64;
    for (begin, next) in changeable(case)?.into_iter().chain([(end, end)]) {
        let range = at as usize..begin.clamp(at, end) as usize;
        let old = before.get(range.clone()).unwrap_or_default();
        let new = after.get(range.clone()).unwrap_or_default();
        if old != new {
            let detail = format!("between {:#x} and {:#x}", range.start, range.end);
            violations.push(Violation::new(Invariant::Bytes, detail));
        }
        at = at.max(next).min(end);
    }
    let got = case.before.dynamic_value(DT_PLTGOT);
    if let Some(address) = got {
        check_got(case, address, violations);
    }
    Ok(())
}

/// The end of the file from where segments were taken apart whose room is used again.
fn reused(case: &Case) -> Option<(u64, u64)> {
    let first = case.layout.added.iter().map(|new| new.extent.offset).min()?;
    let end = case.before.bytes.len() as u64;
    let begins = case.layout.dropped.iter().map(|extent| extent.offset);
    let begin = begins.filter(|begin| *begin <= first && first < end).min()?;
    Some((begin, end))
}

/// The first word of the GOT is what it was, or follows the dynamic section.
fn check_got(case: &Case, address: u64, violations: &mut Vec<Violation>) {
    let word = |image: &ElfImage| {
        let offset = image.offset_of(address, image.encoding.word_size() as u64)?;
        image.encoding.word(image.bytes, usize::try_from(offset).ok()?)
    };
    let dynamic = |image: &ElfImage| image.dynamic.as_ref().map(|dynamic| dynamic.extent.address);
    let (old, new) = (word(case.before), word(case.after));
    let follows = old == dynamic(case.before) && new == dynamic(case.after);
    if old != new && !follows {
        violations.push(Violation::new(Invariant::Bytes, "the global offset table"));
    }
}

fn check_notes(case: &Case, violations: &mut Vec<Violation>) {
    let notes = |image: &ElfImage| -> Vec<Option<Vec<u8>>> {
        let segments = image.segments.iter().filter(|s| {
            matches!(s.kind, PT_NOTE | PT_GNU_PROPERTY | PT_MIPS_ABIFLAGS | PT_MIPS_REGINFO)
                && !lies_in_headers(image, s)
        });
        // As the loader sees them, and as tools do.
        let read = |s: &crate::headers::ProgramHeader| {
            let offset = if s.filesz == 0 { Some(s.offset) } else { image.offset_of(s.vaddr, s.filesz) };
            let bytes = image.slice("a note", s.offset, s.filesz).ok()?;
            (offset == Some(s.offset)).then(|| bytes.to_vec())
        };
        segments.map(read).collect()
    };
    if notes(case.before) != notes(case.after) {
        violations.push(Violation::new(Invariant::Notes, "the notes differ"));
    }
}

fn check_sections(case: &Case, violations: &mut Vec<Violation>) {
    let mut wrong = |detail: String| violations.push(Violation::new(Invariant::Sections, detail));
    let (before, after) = (&case.before.sections, &case.after.sections);
    if before.len() != after.len() {
        return wrong(format!("{} sections instead of {}", after.len(), before.len()));
    }
    if case.before.sections_agree && !case.after.sections_agree {
        return wrong("they do not agree with the segments any more".to_owned());
    }
    for (index, (old, new)) in before.iter().zip(after).enumerate() {
        let fixed = |s: &SectionHeader| {
            let info = if s.kind == SHT_GNU_VERNEED { 0 } else { s.info };
            (s.name, s.kind, s.flags, s.link, info, s.align, s.entsize)
        };
        let is_moved = old.is_allocated()
            && case
                .layout
                .moves
                .iter()
                .any(|m| old.offset >= m.from.offset && old.file_end() <= m.from.end());
        let place = |s: &SectionHeader| (s.addr, s.offset);
        if fixed(old) != fixed(new) || (!is_moved && place(old) != place(new)) {
            wrong(format!("{} changed: {new:x?} instead of {old:x?}", case.before.section_name(index)));
        }
        if case.before.section_name_bytes(index) != case.after.section_name_bytes(index) {
            wrong(format!("{} has another name", case.before.section_name(index)));
        }
    }
}

/// `.symtab` is the same but for values in sections that moved.
fn check_symbol_tables(case: &Case, violations: &mut Vec<Violation>) {
    if !case.before.sections_agree {
        return;
    }
    let size = case.before.encoding.symbol_size();
    for section in case.before.sections.iter().filter(|s| s.kind == SHT_SYMTAB) {
        let read = |image: &ElfImage, index: u64| {
            let at = usize::try_from(section.offset.checked_add(index * size)?).ok()?;
            RawSymbol::read(image.encoding, image.bytes, at)
        };
        for index in 0..section.size / size {
            let (old, new) = (read(case.before, index), read(case.after, index));
            let is_same = old.zip(new).is_none_or(|(old, new)| {
                let moved = RawSymbol { value: case.moved(&old), ..old };
                new == old || new == moved || case.follows_dynamic(&old, &new)
            });
            if !is_same {
                let detail = format!("symbol {index} of .symtab changed");
                violations.push(Violation::new(Invariant::Sections, detail));
                return;
            }
        }
    }
}
