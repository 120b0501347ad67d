//! Proof that a stripped file loads as the original does.

use super::Sections;
use crate::abi::{PT_LOAD, SHT_NOBITS, SHT_NULL, SHT_SYMTAB};
use crate::contents::Contents;
use crate::error::EditError;
use crate::headers::ProgramHeader;
use crate::image::ElfImage;
use crate::verify::{Invariant, Violation, structure};

pub(super) fn check(
    before: &ElfImage,
    stripped: &[u8],
    plan: &Sections,
) -> Result<Vec<Violation>, EditError> {
    let read = ElfImage::parse(stripped).and_then(|image| Ok((Contents::read(&image)?, image)));
    let (contents, after) = match read {
        Ok(read) => read,
        Err(error) => return Ok(vec![Violation::new(Invariant::Readable, error.to_string())]),
    };
    let known = structure(before);
    let mut violations: Vec<Violation> =
        structure(&after).into_iter().filter(|violation| !known.contains(violation)).collect();
    let mut expected = Contents::read(before)?;
    for symbol in &mut expected.symbols {
        symbol.raw.shndx = plan.new_symbol_section(symbol.raw.shndx).unwrap_or(symbol.raw.shndx);
    }
    if expected != contents {
        violations.push(Violation::new(Invariant::Entries, "the dynamic section or its tables changed"));
    }
    check_memory(before, &after, &mut violations);
    check_sections(before, &after, plan, &mut violations);
    Ok(violations)
}

/// Every segment has the same bytes at the same addresses, headers and the numbers of sections aside.
fn check_memory(before: &ElfImage, after: &ElfImage, violations: &mut Vec<Violation>) {
    let mut wrong = |detail: String| violations.push(Violation::new(Invariant::Bytes, detail));
    let placed = |image: &ElfImage| -> Vec<ProgramHeader> {
        image.segments.iter().map(|segment| ProgramHeader { offset: 0, ..*segment }).collect()
    };
    if placed(before) != placed(after) {
        return wrong("segments changed otherwise than by their place in the file".to_owned());
    }
    let size = before.encoding.program_header_size() * u64::from(before.header.phnum);
    let symbols = before.table(crate::table::Table::DynamicSymbols).ok().flatten();
    let excepted = [
        (0, before.encoding.file_header_size()),
        (before.header.phoff, before.header.phoff + size),
        symbols.map_or((0, 0), |extent| (extent.offset, extent.end())),
    ];
    let pairs = before.segments.iter().zip(&after.segments).filter(|(s, _)| s.kind == PT_LOAD);
    for (old, new) in pairs {
        let contents = before.slice("a segment", old.offset, old.filesz);
        let contents = contents.ok().zip(after.slice("a segment", new.offset, new.filesz).ok());
        let Some((old_bytes, new_bytes)) = contents else {
            wrong(format!("the segment at {:#x} is not in the file", old.vaddr));
            continue;
        };
        let (mut old_bytes, mut new_bytes) = (old_bytes.to_vec(), new_bytes.to_vec());
        for (begin, end) in excepted {
            let from = begin.saturating_sub(old.offset).min(old.filesz) as usize;
            let to = end.saturating_sub(old.offset).min(old.filesz) as usize;
            for bytes in [&mut old_bytes, &mut new_bytes] {
                bytes[from..to.max(from)].fill(0);
            }
        }
        if old_bytes != new_bytes {
            wrong(format!("the segment at {:#x}", old.vaddr));
        }
    }
}

/// Sections that stay are the same but for places, numbers and, in a symbol table, symbols of what went.
fn check_sections(before: &ElfImage, after: &ElfImage, plan: &Sections, violations: &mut Vec<Violation>) {
    let mut wrong = |detail: String| violations.push(Violation::new(Invariant::Sections, detail));
    if after.sections.len() != plan.kept.len() + usize::from(plan.link.is_some()) || !after.sections_agree {
        return wrong("the section headers do not agree with the segments".to_owned());
    }
    for (new_index, &old_index) in plan.kept.iter().enumerate() {
        let (old, new) = (&before.sections[old_index], &after.sections[new_index]);
        let name = before.section_name(old_index);
        if before.section_name_bytes(old_index) != after.section_name_bytes(new_index)
            || (old.kind, old.flags, old.addr, old.align) != (new.kind, new.flags, new.addr, new.align)
        {
            wrong(format!("{name} changed"));
        }
        let is_names = old_index == before.header.shstrndx as usize;
        if old.is_allocated() || matches!(old.kind, SHT_NULL | SHT_NOBITS | SHT_SYMTAB) || is_names {
            continue;
        }
        let bytes = |image: &ElfImage, s: &crate::headers::SectionHeader| {
            image.slice("a section", s.offset, s.size).ok().map(<[u8]>::to_vec)
        };
        if bytes(before, old) != bytes(after, new) {
            wrong(format!("{name} has other bytes"));
        }
    }
}
