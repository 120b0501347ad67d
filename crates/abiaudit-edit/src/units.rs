//! What can be moved: the tables of the dynamic section, and what only a segment header leads to.

use serde::Serialize;

use crate::abi::{
    PT_DYNAMIC, PT_GNU_PROPERTY, PT_INTERP, PT_MIPS_ABIFLAGS, PT_MIPS_REGINFO, PT_NOTE, SHT_NOBITS, SHT_NOTE,
    SHT_PROGBITS,
};
use crate::encoding::align_up;
use crate::error::EditError;
use crate::headers::ProgramHeader;
use crate::image::ElfImage;
use crate::table::{Extent, Table};

/// A range of the file that can be moved as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    pub kind: UnitKind,
    pub extent: Extent,
    pub align: u64,
    /// Sections within it.
    pub sections: Vec<usize>,
    /// Segments within it, `PT_LOAD` aside.
    pub segments: Vec<usize>,
    /// New bytes, if they change.
    pub content: Option<Vec<u8>>,
    /// Something else shares its bytes, so that it can neither move nor make room.
    pub is_shared: bool,
    /// Where it goes, once that is decided.
    pub is_moving: bool,
}

/// What a unit is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitKind {
    /// A table of the dynamic section.
    Table(Table),
    /// The path of the program interpreter.
    Interpreter,
    /// Notes and what else only a segment header leads to.
    Notes,
}

impl UnitKind {
    /// Name for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Table(table) => table.name(),
            Self::Interpreter => ".interp",
            Self::Notes => "notes",
        }
    }

    /// Whether it must be writable where it goes.
    pub(crate) fn is_writable(&self) -> bool {
        *self == Self::Table(Table::Dynamic)
    }
}

impl Unit {
    fn new(kind: UnitKind, extent: Extent, align: u64) -> Self {
        Self {
            kind,
            extent,
            align,
            sections: Vec::new(),
            segments: Vec::new(),
            content: None,
            is_shared: false,
            is_moving: false,
        }
    }

    /// Bytes that it will take.
    pub(crate) fn size(&self) -> u64 {
        self.content.as_ref().map_or(self.extent.size, |content| content.len() as u64)
    }

    pub(crate) fn overlaps(&self, begin: u64, end: u64) -> bool {
        self.extent.offset < end && self.extent.end() > begin
    }
}

/// All movable units, by offset.
pub(crate) fn units(image: &ElfImage) -> Result<Vec<Unit>, EditError> {
    let mut units = Vec::new();
    for table in Table::ALL {
        if let Some(extent) = image.table(table)? {
            let word = image.encoding.word_size() as u64;
            units.push(Unit::new(UnitKind::Table(table), extent, table.alignment(word)));
        }
    }
    for (begin, end) in segment_ranges(image) {
        let interpreter = image.segments.iter().find(|s| s.kind == PT_INTERP && s.offset == begin);
        let kind = if interpreter.is_some_and(|s| s.file_end() == end) {
            UnitKind::Interpreter
        } else {
            UnitKind::Notes
        };
        let address = image.segments.iter().find(|s| is_reached_by_segment(s) && s.offset == begin);
        if let Some(address) = address.map(|s| s.vaddr) {
            units.push(Unit::new(kind, Extent { address, offset: begin, size: end - begin }, 1));
        }
    }
    add_loose_notes(image, &mut units);
    if image.sections_agree {
        for unit in &mut units {
            claim_sections(image, unit);
        }
    }
    for unit in &mut units {
        claim_segments(image, unit);
    }
    units.sort_by_key(|unit| (unit.extent.offset, unit.extent.size));
    mark_shared(image, &mut units);
    Ok(units)
}

/// Kinds of segments whose bytes nothing else leads to.
fn is_reached_by_segment(segment: &ProgramHeader) -> bool {
    let is_kind = matches!(segment.kind, PT_NOTE | PT_GNU_PROPERTY | PT_INTERP);
    let is_of_mips = matches!(segment.kind, PT_MIPS_ABIFLAGS | PT_MIPS_REGINFO);
    segment.filesz > 0 && (is_kind || is_of_mips)
}

/// Ranges of the file that such segments cover, joined where they overlap (`PT_GNU_PROPERTY` lies in a `PT_NOTE`).
fn segment_ranges(image: &ElfImage) -> Vec<(u64, u64)> {
    let is_mapped = |s: &&ProgramHeader| image.offset_of(s.vaddr, s.filesz) == Some(s.offset);
    let segments = image.segments.iter().filter(|s| is_reached_by_segment(s)).filter(is_mapped);
    let segments = segments.filter(|s| !lies_in_headers(image, s));
    let mut ranges: Vec<(u64, u64)> = segments.map(|s| (s.offset, s.file_end())).collect();
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in ranges {
        match joined.last_mut() {
            Some(last) if begin < last.1 => last.1 = last.1.max(end),
            _ => joined.push((begin, end)),
        }
    }
    joined
}

/// Whether a segment covers program headers: early patchelf moved notes away and left their `PT_NOTE` there.
pub(crate) fn lies_in_headers(image: &ElfImage, segment: &ProgramHeader) -> bool {
    let size = u64::from(image.header.phnum) * image.encoding.program_header_size();
    let (begin, end) = (image.header.phoff, image.header.phoff.saturating_add(size));
    segment.offset < end && segment.file_end() > begin
}

/// Note sections that no `PT_NOTE` covers.
fn add_loose_notes(image: &ElfImage, units: &mut Vec<Unit>) {
    if !image.sections_agree {
        return;
    }
    for section in image.sections.iter().filter(|s| s.is_allocated() && s.has_bytes() && s.kind == SHT_NOTE) {
        if !units.iter().any(|unit| unit.overlaps(section.offset, section.file_end())) {
            let extent = Extent { address: section.addr, offset: section.offset, size: section.size };
            units.push(Unit::new(UnitKind::Notes, extent, section.align));
        }
    }
}

/// A table's section may be larger than the table; the whole of it belongs to the unit.
fn claim_sections(image: &ElfImage, unit: &mut Unit) {
    if let UnitKind::Table(table) = unit.kind
        && let Some(index) = image.section_at(unit.extent.address, table.section_kind())
    {
        let section = &image.sections[index];
        unit.extent.size = unit.extent.size.max(section.size);
        unit.align = unit.align.max(section.align);
        unit.sections.push(index);
        return;
    }
    let is_table = matches!(unit.kind, UnitKind::Table(_));
    let (begin, end) = (unit.extent.offset, unit.extent.end());
    for (index, section) in image.sections.iter().enumerate() {
        let is_allocated = section.is_allocated() && section.kind != SHT_NOBITS;
        let is_inside = section.offset >= begin && section.file_end() <= end;
        // An empty section at the border is the neighbour's.
        if !is_table && is_allocated && section.size > 0 && is_inside {
            unit.align = unit.align.max(section.align);
            unit.sections.push(index);
        }
    }
}

fn claim_segments(image: &ElfImage, unit: &mut Unit) {
    let (begin, end) = (unit.extent.offset, unit.extent.end());
    for (index, segment) in image.segments.iter().enumerate() {
        let is_dynamic = segment.kind == PT_DYNAMIC && unit.kind.is_writable();
        let is_inside = segment.offset >= begin && segment.file_end() <= end;
        if is_inside && (is_reached_by_segment(segment) || is_dynamic) {
            unit.segments.push(index);
            // More than a page would be a mistake of the file, and cost room.
            unit.align = unit.align.max(segment.align.min(0x1000));
        }
    }
    unit.align = unit.align.max(1).checked_next_power_of_two().unwrap_or(1).min(0x1000);
}

/// Units that overlap each other, or an allocated section of another kind, are tied to their places.
fn mark_shared(image: &ElfImage, units: &mut [Unit]) {
    let extents: Vec<(u64, u64)> = units.iter().map(|u| (u.extent.offset, u.extent.end())).collect();
    for (index, unit) in units.iter_mut().enumerate() {
        let mut others = extents.iter().enumerate().filter(|(other, _)| *other != index);
        let overlaps_unit = others.any(|(_, &(begin, end))| unit.overlaps(begin, end));
        let overlaps_section = image.sections_agree
            && image.sections.iter().enumerate().any(|(at, section)| {
                section.is_allocated()
                    && section.has_bytes()
                    && unit.overlaps(section.offset, section.file_end())
                    && !unit.sections.contains(&at)
            });
        let is_foreign = unit.sections.iter().any(|&at| !is_movable_section(unit, image.sections[at].kind));
        unit.is_shared = overlaps_unit || overlaps_section || is_foreign;
    }
}

/// Kinds of sections that may lie in a unit.
fn is_movable_section(unit: &Unit, kind: u32) -> bool {
    match unit.kind {
        UnitKind::Table(table) => kind == table.section_kind(),
        UnitKind::Interpreter => kind == SHT_PROGBITS,
        // Processor-specific: .MIPS.abiflags, .reginfo.
        UnitKind::Notes => kind == SHT_NOTE || (0x7000_0000..=0x7fff_ffff).contains(&kind),
    }
}

/// The next place for a unit at or behind `offset`.
pub(crate) fn place(unit: &Unit, offset: u64) -> Option<u64> {
    align_up(offset, unit.align)
}
