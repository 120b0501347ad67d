//! Where everything goes: the writes that turn a file into the edited one.
//!
//! Rules (each has a reason that was measured on real files):
//! * What fits stays where it is. The rest goes into at most one read-only and one writable new segment at the end.
//! * Program headers stay behind the file header. To make room for more of them, tables that lie behind them move: those
//!   that the loader finds through dynamic tags or segment headers, and nothing else. Program headers at the end of
//!   a file are what `strip` breaks.
//! * A `PT_LOAD` without an allocated section goes: `strip` gives it a file offset that glibc refuses.
//! * New segments are congruent to the largest page by choice of address, not by padding of the file.
//! * Segments at the end of the file that hold nothing but such tables (an earlier edit's) are taken apart and their room
//!   is used again, so that editing twice costs no more than editing once.

mod arrangement;
mod headers;
mod patches;
mod symbols;
mod tables;
mod tail;
mod write;

use serde::Serialize;

use self::arrangement::Arrangement;
use crate::abi::{
    DT_FINI, DT_FINI_ARRAY, DT_GNU_HASH, DT_HASH, DT_INIT, DT_INIT_ARRAY, DT_JMPREL, DT_PLTGOT,
    DT_PREINIT_ARRAY, DT_REL, DT_RELA, DT_RELR, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM, PF_X,
    PT_LOAD, PT_NULL, PT_PHDR,
};
use crate::contents::Contents;
use crate::encode::Encoded;
use crate::error::EditError;
use crate::headers::{ProgramHeader, SectionHeader};
use crate::image::ElfImage;
use crate::plan::{Edit, EditPlan};
use crate::table::Extent;
use crate::units::{Unit, UnitKind};

/// Alignment of a new segment's beginning in the file, in bytes.
const SEGMENT_ALIGN: u64 = 16;

/// What the caller allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Move the program headers to the end of the file if there is no other way. Such a file loads, but does not survive
    /// `strip`.
    pub allow_phdr_move: bool,
}

/// Bytes to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Write {
    /// Offset in the file.
    pub offset: u64,
    /// New bytes.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Number of new bytes.
    pub size: u64,
}

/// A unit that goes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// What moves.
    pub what: UnitKind,
    /// Whence.
    pub from: Extent,
    /// Where to.
    pub to: Extent,
}

/// A new segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NewSegment {
    /// Its place.
    pub extent: Extent,
    /// Whether it is writable.
    pub is_writable: bool,
}

/// Something that the caller should know about the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Warning {
    /// `allow_phdr_move` was needed.
    #[error("the program headers moved to the end of the file: it will not survive strip")]
    ProgramHeadersMoved,
    /// `.dynamic` had no room left in the part that is made read-only after relocation.
    #[error("the dynamic section moved out of the segment that is read-only after relocation (RELRO)")]
    DynamicLeftRelro,
    /// Section headers contradict program headers, and were left as they are.
    #[error("the section headers contradict the program headers, and were not adapted")]
    SectionsIgnored,
    /// There are bytes behind all sections and headers, which new segments now follow.
    #[error("bytes appended to the file (an archive or a signature) are no longer at its end")]
    OverlayNotLast,
}

/// A laid out plan: what [`Layout::apply`] writes, and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Disjoint, by offset. What lies beyond the old end of the file is the new tail.
    pub writes: Vec<Write>,
    /// Size of the file before, in bytes.
    pub old_size: u64,
    /// Size of the file afterwards, in bytes.
    pub new_size: u64,
    /// What moves.
    pub moves: Vec<Move>,
    /// Segments that are added.
    pub added: Vec<NewSegment>,
    /// Segments that go because nothing is left in them.
    pub dropped: Vec<Extent>,
    /// Edits that found nothing to work on.
    pub notes: Vec<String>,
    /// What the caller should know.
    pub warnings: Vec<Warning>,
    /// For each dynamic symbol its former index, if their order changes.
    #[serde(skip)]
    pub(crate) order: Option<Vec<u32>>,
}

impl Layout {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.old_size == self.new_size
    }

    /// Bytes that the file grows by.
    pub fn growth(&self) -> i64 {
        i64::try_from(i128::from(self.new_size) - i128::from(self.old_size)).unwrap_or(i64::MAX)
    }
}

impl EditPlan {
    /// Decides where everything goes. [`Edit::Strip`] is not laid out: [`crate::edit`] carries it out first.
    pub fn lay_out(&self, image: &ElfImage, options: &Options) -> Result<Layout, EditError> {
        let before = Contents::read(image)?;
        let mut after = before.clone();
        let notes = crate::edits::apply(&mut after, self)?;
        let size = image.bytes.len() as u64;
        let heals = self.edits.contains(&Edit::Heal);
        if after == before && !(heals && has_empty_loads(image)) {
            return Ok(Layout { old_size: size, new_size: size, notes, ..Layout::default() });
        }
        let encoded = Encoded::new(image, &before, &after)?;
        let mut arranged = Arrangement::new(image, encoded, &after)?;
        arranged.decide(*options)?;
        let mut layout = arranged.write(&after)?;
        layout.notes = notes;
        Ok(layout)
    }
}

fn has_empty_loads(image: &ElfImage) -> bool {
    let headers = image.header.phoff;
    image.sections_agree && (0..image.segments.len()).any(|index| is_empty_load(image, index, headers, &[]))
}

/// Whether nothing is in a `PT_LOAD`, with program headers at `phoff`, and counting units that move as gone.
///
/// Executable segments and those that another header or the entry point lead into are never empty.
pub(crate) fn is_empty_load(image: &ElfImage, index: usize, phoff: u64, units: &[Unit]) -> bool {
    let Some(load) = image.segments.get(index).filter(|s| s.is_load()) else { return false };
    if !image.sections_agree || load.flags & PF_X != 0 || load.offset == 0 {
        return false;
    }
    let phdr_size = u64::from(image.header.phnum) * image.encoding.program_header_size();
    let holds_headers = load.offset < phoff.saturating_add(phdr_size) && phoff < load.file_end();
    let moving = || units.iter().filter(|unit| unit.is_moving);
    let moves_section = |at: usize| moving().any(|unit| unit.sections.contains(&at));
    let moves_segment = |at: usize| moving().any(|unit| unit.segments.contains(&at));
    let (begin, end) = (load.vaddr, load.memory_end());
    let touches = |address: u64, size: u64| address < end && address.saturating_add(size.max(1)) > begin;
    let mut sections = image.sections.iter().enumerate();
    let holds_section =
        sections.any(|(at, s)| s.is_allocated() && touches(s.addr, s.size) && !moves_section(at));
    let mut segments = image.segments.iter().enumerate().filter(|(at, _)| *at != index);
    let holds_segment = segments.any(|(at, s)| {
        !matches!(s.kind, PT_LOAD | PT_NULL | PT_PHDR)
            && s.memsz > 0
            && touches(s.vaddr, s.memsz)
            && !moves_segment(at)
    });
    let mut entries = image.dynamic.iter().flat_map(|dynamic| &dynamic.entries);
    let moves_address = |value| moving().any(|unit| unit.extent.address == value);
    let holds_target = entries
        .any(|entry| is_address_tag(entry.tag) && touches(entry.value, 1) && !moves_address(entry.value));
    !(holds_headers || holds_section || holds_segment || holds_target || touches(image.header.entry, 1))
}

/// Tags whose value is an address (gABI chapter 5, elf.h).
pub(crate) fn is_address_tag(tag: u64) -> bool {
    matches!(
        tag,
        DT_PLTGOT
            | DT_HASH
            | DT_STRTAB
            | DT_SYMTAB
            | DT_RELA
            | DT_INIT
            | DT_FINI
            | DT_REL
            | DT_JMPREL
            | DT_INIT_ARRAY
            | DT_FINI_ARRAY
            | DT_PREINIT_ARRAY
            | DT_RELR
            | DT_GNU_HASH
            | DT_VERSYM
            | DT_VERDEF
            | DT_VERNEED
    )
}

/// End of all that headers know of.
pub(crate) fn owned_end(image: &ElfImage) -> u64 {
    let table = image.header.shoff + image.sections.len() as u64 * image.encoding.section_header_size();
    let sections = image.sections.iter().filter(|s| s.has_bytes()).map(SectionHeader::file_end);
    let segments = image.segments.iter().map(ProgramHeader::file_end);
    sections.chain(segments).chain([table]).max().unwrap_or(0)
}
