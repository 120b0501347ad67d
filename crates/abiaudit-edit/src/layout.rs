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

use serde::Serialize;

use crate::abi::{
    DT_FINI, DT_FINI_ARRAY, DT_GNU_HASH, DT_HASH, DT_INIT, DT_INIT_ARRAY, DT_JMPREL, DT_MIPS_RLD_MAP_REL,
    DT_PLTGOT, DT_PREINIT_ARRAY, DT_REL, DT_RELA, DT_RELR, DT_STRSZ, DT_STRTAB, DT_SYMTAB, DT_VERDEF,
    DT_VERNEED, DT_VERSYM, PF_R, PF_W, PF_X, PN_XNUM, PT_GNU_RELRO, PT_GNU_STACK, PT_INTERP, PT_LOAD,
    PT_NULL, PT_PHDR, SHN_LORESERVE, SHN_UNDEF, SHT_SYMTAB,
};
use crate::contents::{Contents, Value};
use crate::encode::Encoded;
use crate::encoding::align_up;
use crate::error::EditError;
use crate::headers::{ProgramHeader, SectionHeader};
use crate::image::ElfImage;
use crate::plan::{Edit, EditPlan};
use crate::refusal::Refusal;
use crate::relocations;
use crate::symbols::RawSymbol;
use crate::table::{Extent, Table};
use crate::units::{Unit, UnitKind, place, units};

/// Free entries behind the end of a dynamic section that moves, as GNU ld leaves them.
const SPARE_ENTRIES: u64 = 4;
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

/// Where the program headers will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderPlace {
    /// At this offset, where they are or belong.
    Fixed(u64),
    /// At the beginning of the new read-only segment.
    Tail,
}

struct Arrangement<'i, 'a> {
    image: &'i ElfImage<'a>,
    encoded: Encoded,
    units: Vec<Unit>,
    /// Whether `PT_GNU_STACK` is added.
    adds_stack: bool,
    headers: HeaderPlace,
    /// Segments that go.
    dropped: Vec<usize>,
    /// Offset from which the file is written anew.
    tail: u64,
}

impl<'i, 'a> Arrangement<'i, 'a> {
    fn new(image: &'i ElfImage<'a>, mut encoded: Encoded, after: &Contents) -> Result<Self, EditError> {
        let mut units = units(image)?;
        for unit in &mut units {
            unit.content = match unit.kind {
                UnitKind::Table(Table::Dynamic) => {
                    let entry = 2 * image.encoding.word_size() as u64;
                    let used = (after.entries.len() as u64 + 1) * entry;
                    // Only the size matters yet: addresses are filled in when they are known.
                    let has_room = image.dynamic.as_ref().is_some_and(|dynamic| used <= dynamic.extent.size);
                    (!has_room).then(|| vec![0; (used + SPARE_ENTRIES * entry) as usize])
                }
                UnitKind::Table(table) => encoded.tables.remove(&table),
                UnitKind::Interpreter => interpreter(image, after),
                UnitKind::Notes => None,
            };
            unit.is_moving = unit.content.as_ref().is_some_and(|bytes| bytes.len() as u64 > unit.extent.size);
        }
        let has_stack = image.segments.iter().any(|s| s.kind == PT_GNU_STACK);
        Ok(Self {
            image,
            encoded,
            units,
            adds_stack: !has_stack && after.stack_flags.is_some(),
            headers: HeaderPlace::Fixed(image.header.phoff),
            dropped: Vec::new(),
            tail: image.bytes.len() as u64,
        })
    }

    fn moves(&self, is_writable: bool) -> bool {
        self.units.iter().any(|unit| unit.is_moving && unit.kind.is_writable() == is_writable)
    }

    /// Decides what moves, until that asks for no more room.
    fn decide(&mut self, options: Options) -> Result<(), EditError> {
        let stay = HeaderPlace::Fixed(self.image.header.phoff);
        loop {
            self.take_apart_last_segments();
            self.drop_empty_segments();
            let count = self.header_count();
            if self.headers == stay && count <= usize::from(self.image.header.phnum) {
                break;
            }
            if count >= usize::from(PN_XNUM) {
                return Err(Refusal::TooManyProgramHeaders(count).into());
            }
            let state = |arrangement: &Self| {
                (arrangement.headers, arrangement.units.iter().filter(|unit| unit.is_moving).count())
            };
            let known = state(self);
            if let Err(refusal) = self.make_room(count as u64) {
                if !options.allow_phdr_move {
                    return Err(refusal.into());
                }
                self.headers = HeaderPlace::Tail;
                self.drop_empty_segments();
                break;
            }
            if state(self) == known {
                break;
            }
        }
        if let Some(unit) = self.units.iter().find(|unit| unit.is_moving && unit.is_shared) {
            let user = format!("something that overlaps {}", unit.kind.name());
            return Err(Refusal::UnknownUser(user).into());
        }
        Ok(())
    }

    fn drop_empty_segments(&mut self) {
        let headers = match self.headers {
            HeaderPlace::Fixed(offset) => offset,
            HeaderPlace::Tail => u64::MAX,
        };
        let all = 0..self.image.segments.len();
        self.dropped = all.filter(|&index| is_empty_load(self.image, index, headers, &self.units)).collect();
    }

    /// Program headers that the result has.
    fn header_count(&self) -> usize {
        let kept = self.image.segments.iter().enumerate();
        let kept = kept.filter(|(index, s)| s.kind != PT_NULL && !self.dropped.contains(index)).count();
        let needs_read_only = self.moves(false) || self.headers == HeaderPlace::Tail;
        kept + usize::from(needs_read_only) + usize::from(self.moves(true)) + usize::from(self.adds_stack)
    }

    /// Moves what lies where program headers grow to. They grow where they are, or go back to where they belong.
    fn make_room(&mut self, count: u64) -> Result<(), Refusal> {
        let home = self.image.encoding.file_header_size();
        let size = self.image.encoding.program_header_size();
        let end = home + count * size;
        let blocked = |room_end: u64, blocker: String| Refusal::ProgramHeadersBlocked {
            needed: count,
            room: room_end.saturating_sub(home) / size,
            blocker,
        };
        if let Some((offset, blocker)) = self.first_blocker(home, end) {
            return Err(blocked(offset, blocker));
        }
        for unit in self.units.iter_mut().filter(|unit| unit.overlaps(home, end)) {
            unit.is_moving = true;
        }
        self.headers = HeaderPlace::Fixed(home);
        Ok(())
    }

    /// What in a range cannot be moved: its offset and name.
    fn first_blocker(&self, home: u64, end: u64) -> Option<(u64, String)> {
        let image = self.image;
        let own_end = if image.header.phoff == home {
            home + u64::from(image.header.phnum) * image.encoding.program_header_size()
        } else {
            home
        };
        let covers = image.segments.iter().any(|s| s.is_load() && s.offset <= home && s.file_end() >= end);
        if !covers {
            return Some((own_end, "the end of the first segment".to_owned()));
        }
        if let Some(unit) = self.units.iter().find(|unit| unit.is_shared && unit.overlaps(own_end, end)) {
            return Some((unit.extent.offset, unit.kind.name().to_owned()));
        }
        let shoff = image.header.shoff;
        if !image.sections.is_empty() && shoff < end && shoff >= home {
            return Some((shoff, "the section header table".to_owned()));
        }
        if image.sections_agree { self.blocking_section(home, end) } else { self.blocking_gap(own_end, end) }
    }

    fn blocking_section(&self, home: u64, end: u64) -> Option<(u64, String)> {
        let is_movable = |index: usize| self.units.iter().any(|unit| unit.sections.contains(&index));
        let mut sections = self.image.sections.iter().enumerate();
        let found = sections.find(|(index, section)| {
            section.has_bytes() && section.offset < end && section.file_end() > home && !is_movable(*index)
        });
        found.map(|(index, section)| (section.offset, self.image.section_name(index)))
    }

    /// Without sections, bytes that no unit covers are padding if they are zero and no more than alignment asks for.
    fn blocking_gap(&self, begin: u64, end: u64) -> Option<(u64, String)> {
        let mut at = begin;
        while at < end {
            let next =
                self.units.iter().filter(|unit| unit.extent.end() > at).min_by_key(|u| u.extent.offset);
            let gap_end = next.map_or(end, |unit| unit.extent.offset.max(at));
            let is_small = next.is_some_and(|unit| gap_end - at < unit.align.max(16));
            let gap = self.image.slice("a gap", at, gap_end.min(end) - at).unwrap_or_default();
            if gap_end > at && !(is_small && gap.iter().all(|byte| *byte == 0)) {
                return Some((at, "something that no dynamic tag or segment leads to".to_owned()));
            }
            at = next.map_or(end, |unit| unit.extent.end());
        }
        None
    }

    /// If anything moves: segments at the end of the file that hold nothing but units are taken apart, and their room is
    /// used again.
    fn take_apart_last_segments(&mut self) {
        if !self.image.sections_agree || !self.units.iter().any(|unit| unit.is_moving) {
            return;
        }
        while let Some(index) = self.last_segment_of_units() {
            let load = self.image.segments[index];
            for unit in &mut self.units {
                unit.is_moving |= load.maps(unit.extent.address, unit.extent.size);
            }
            self.tail = load.offset;
        }
    }

    /// A segment that ends where the tail begins, and that is empty once its units have moved.
    fn last_segment_of_units(&self) -> Option<usize> {
        let image = self.image;
        let is_last = |load: &ProgramHeader| {
            load.is_load()
                && load.filesz > 0
                && load.file_end() <= self.tail
                && load.memsz == load.filesz
                && {
                    let gap = image
                        .slice("a gap", load.file_end(), self.tail - load.file_end())
                        .unwrap_or_default();
                    gap.len() < SEGMENT_ALIGN as usize && gap.iter().all(|byte| *byte == 0)
                }
        };
        let index = image.segments.iter().position(is_last)?;
        let load = image.segments.get(index)?;
        let headers_end =
            image.header.shoff + image.sections.len() as u64 * image.encoding.section_header_size();
        let holds_file_data = headers_end > load.offset
            || image
                .sections
                .iter()
                .any(|s| s.has_bytes() && !s.is_allocated() && s.file_end() > load.offset);
        let mut moved = self.units.clone();
        for unit in moved.iter_mut().filter(|unit| load.maps(unit.extent.address, unit.extent.size)) {
            unit.is_moving = !unit.is_shared;
        }
        (!holds_file_data && is_empty_load(image, index, image.header.phoff, &moved)).then_some(index)
    }
}

/// The new bytes of `.interp`, if they change.
fn interpreter(image: &ElfImage, after: &Contents) -> Option<Vec<u8>> {
    let mut bytes = after.interpreter.clone()?;
    bytes.push(0);
    let segment = image.segments.iter().find(|s| s.kind == PT_INTERP)?;
    let old = image.slice("the program interpreter", segment.offset, segment.filesz).ok()?;
    (old != bytes).then_some(bytes)
}

/// The new tail, and where units went.
struct Tail {
    bytes: Vec<u8>,
    begin: u64,
    segments: Vec<ProgramHeader>,
    /// For each unit its new place.
    places: Vec<Option<Extent>>,
    /// Place of the program headers, if they are in the tail.
    headers: Option<Extent>,
}

impl Arrangement<'_, '_> {
    fn write(mut self, after: &Contents) -> Result<Layout, EditError> {
        let mut tail = self.lay_out_tail()?;
        let dynamic = self.encode_dynamic(after, &tail.places);
        let sections = self.new_sections(&tail.places);
        let segments = self.new_segments(after, &tail);
        let mut patches = Patches::default();
        self.put_units(&mut patches, &mut tail, dynamic);
        for (offset, bytes) in std::mem::take(&mut self.encoded.relocations) {
            patches.put(offset, bytes);
        }
        self.put_symbol_values(&mut patches, &tail.places);
        self.put_global_offset_table(&mut patches, &tail.places);
        self.put_headers(&mut patches, &tail, &segments, &sections);
        let moves = self.moves_made(&tail.places);
        let warnings = self.warnings(&tail);
        let image = self.image;
        Ok(Layout {
            writes: patches.into_writes(image.bytes, tail.begin, &tail.bytes)?,
            old_size: image.bytes.len() as u64,
            new_size: if tail.segments.is_empty() { self.tail } else { tail.begin + tail.bytes.len() as u64 },
            moves,
            added: tail.segments.iter().map(new_segment).collect(),
            dropped: self.dropped.iter().map(|&index| segment_extent(&image.segments[index])).collect(),
            notes: Vec::new(),
            warnings,
            order: self.encoded.order.take(),
        })
    }

    /// Gives every moving unit its place: the read-only ones, then the writable one.
    fn lay_out_tail(&self) -> Result<Tail, EditError> {
        let mut tail = Tail {
            bytes: Vec::new(),
            begin: self.tail,
            segments: Vec::new(),
            places: vec![None; self.units.len()],
            headers: None,
        };
        let header_bytes = match self.headers {
            HeaderPlace::Tail => self.header_count() as u64 * self.image.encoding.program_header_size(),
            HeaderPlace::Fixed(_) => 0,
        };
        let mut end = self.address_end();
        if self.moves(false) || header_bytes > 0 {
            end = end.max(self.relocated_end(end)?);
            end = self.lay_out_segment(&mut tail, false, header_bytes, end)?;
        }
        if self.moves(true) {
            self.lay_out_segment(&mut tail, true, 0, end)?;
        }
        Ok(tail)
    }

    fn address_end(&self) -> u64 {
        let loads = self.image.segments.iter().enumerate();
        let loads = loads.filter(|(index, s)| s.is_load() && !self.dropped.contains(index));
        loads.map(|(_, s)| s.vaddr + s.memsz.max(s.filesz)).max().unwrap_or(0)
    }

    /// End of what relocations seem to write: `eu-elflint` takes a relocation to be as large as its symbol, and reports
    /// a text relocation if that reaches into a read-only segment. Addresses cost nothing, so it gets none to report.
    fn relocated_end(&self, end: u64) -> Result<u64, EditError> {
        const FARTHEST: u64 = 1 << 24;
        let symbols = self.image.table_bytes(Table::DynamicSymbols)?;
        let size = self.image.encoding.symbol_size() as usize;
        let symbol_size = |index: u32| {
            let at = usize::try_from(index).ok()?.checked_mul(size)?;
            RawSymbol::read(self.image.encoding, symbols, at).map(|symbol| symbol.size)
        };
        let mut farthest = end;
        for table in relocations::tables(self.image)? {
            for relocation in relocations::entries(self.image, table)? {
                let size = symbol_size(relocation.symbol).unwrap_or(0);
                let reach = relocation.place.saturating_add(size).saturating_add(1);
                if reach > farthest && reach - end <= FARTHEST {
                    farthest = reach;
                }
            }
        }
        Ok(farthest)
    }

    /// The alignment of new segments: the largest of the file's, and of the machine's pages.
    fn page(&self) -> u64 {
        let loads = self.image.segments.iter().filter(|s| s.is_load());
        let largest = loads.map(|s| s.align).filter(|align| align.is_power_of_two()).max().unwrap_or(0);
        largest.min(1 << 30).max(self.image.machine_page())
    }

    /// Fills one new segment, and gives the end of the address space used.
    fn lay_out_segment(
        &self,
        tail: &mut Tail,
        is_writable: bool,
        header_bytes: u64,
        address_end: u64,
    ) -> Result<u64, EditError> {
        let exhausted = || EditError::from(Refusal::AddressSpaceExhausted { end: address_end });
        let page = self.page();
        let chosen = |unit: &Unit| unit.is_moving && unit.kind.is_writable() == is_writable;
        let first = self.units.iter().find(|unit| chosen(unit)).map_or(1, |unit| unit.align);
        let align = if header_bytes > 0 { SEGMENT_ALIGN } else { first.max(SEGMENT_ALIGN) };
        let offset = align_up(tail.begin + tail.bytes.len() as u64, align).ok_or_else(exhausted)?;
        let base = align_up(address_end, page).ok_or_else(exhausted)?;
        let address = base.checked_add(offset % page).ok_or_else(exhausted)?;
        let mut end = offset + header_bytes;
        if header_bytes > 0 {
            tail.headers = Some(Extent { address, offset, size: header_bytes });
        }
        for (index, unit) in self.units.iter().enumerate().filter(|(_, unit)| chosen(unit)) {
            let at = place(unit, end).ok_or_else(exhausted)?;
            let moved = address.checked_add(at - offset).ok_or_else(exhausted)?;
            tail.places[index] = Some(Extent { address: moved, offset: at, size: unit.size() });
            end = at.checked_add(unit.size()).ok_or_else(exhausted)?;
        }
        let size = end - offset;
        let address_end = address.checked_add(size).filter(|&end| self.image.encoding.fits_word(end));
        let address_end = address_end.ok_or_else(exhausted)?;
        if !self.image.encoding.fits_word(end) {
            return Err(exhausted());
        }
        tail.bytes.resize((end - tail.begin) as usize, 0);
        tail.segments.push(ProgramHeader {
            kind: PT_LOAD,
            flags: if is_writable { PF_R | PF_W } else { PF_R },
            offset,
            vaddr: address,
            paddr: address,
            filesz: size,
            memsz: size,
            align: page,
        });
        Ok(address_end)
    }

    fn place_of(&self, places: &[Option<Extent>], table: Table) -> Option<Extent> {
        let index = self.units.iter().position(|unit| unit.kind == UnitKind::Table(table))?;
        let unit = &self.units[index];
        let stays = Extent { size: unit.size(), ..unit.extent };
        Some(places.get(index).copied().flatten().unwrap_or(stays))
    }

    /// The dynamic section with new addresses, as large as its unit.
    fn encode_dynamic(&self, after: &Contents, places: &[Option<Extent>]) -> Vec<u8> {
        let Some(own) = self.place_of(places, Table::Dynamic) else { return Vec::new() };
        let (encoding, word) = (self.image.encoding, self.image.encoding.word_size());
        let mut bytes = Vec::new();
        for (index, entry) in after.entries.iter().enumerate() {
            let table = Table::ALL.into_iter().find(|table| table.tag() == Some(entry.tag));
            let value = match (&entry.value, table) {
                (Value::Text(text), _) => u64::from(self.encoded.strings.place(text)),
                (Value::Number(_), Some(table)) if self.place_of(places, table).is_some() => {
                    self.place_of(places, table).map_or(0, |place| place.address)
                }
                (Value::Number(_), _) if entry.tag == DT_STRSZ => self.strings_size(),
                (Value::Number(value), _) if entry.tag == DT_MIPS_RLD_MAP_REL => {
                    value.wrapping_sub(own.address + (index * 2 * word) as u64)
                }
                (Value::Number(value), _) => *value,
            };
            encoding.push(&mut bytes, word, entry.tag);
            encoding.push(&mut bytes, word, value);
        }
        bytes.resize(bytes.len().max(own.size as usize), 0);
        bytes
    }

    /// `DT_STRSZ`: what the table has, not what its section has.
    fn strings_size(&self) -> u64 {
        let unit = self.units.iter().find(|unit| unit.kind == UnitKind::Table(Table::DynamicStrings));
        let changed = unit.and_then(|unit| unit.content.as_ref()).map(|content| content.len() as u64);
        changed.or_else(|| self.image.dynamic_value(DT_STRSZ)).unwrap_or(0)
    }

    fn put_units(&self, patches: &mut Patches, tail: &mut Tail, dynamic: Vec<u8>) {
        let mut dynamic = Some(dynamic);
        for (unit, moved) in self.units.iter().zip(&tail.places) {
            let content = match unit.kind {
                UnitKind::Table(Table::Dynamic) => dynamic.take(),
                UnitKind::Table(Table::DynamicSymbols) => self.shifted_symbols(unit, &tail.places),
                _ => unit.content.clone(),
            };
            match (moved, content) {
                (Some(to), content) => {
                    let old = || self.image.slice("a table", unit.extent.offset, unit.extent.size);
                    let bytes = content.unwrap_or_else(|| old().unwrap_or_default().to_vec());
                    let begin = (to.offset - tail.begin) as usize;
                    if let Some(room) = tail.bytes.get_mut(begin..begin + bytes.len()) {
                        room.copy_from_slice(&bytes);
                    }
                }
                (None, Some(mut content)) => {
                    content.resize(unit.extent.size as usize, 0);
                    patches.put(unit.extent.offset, content);
                }
                (None, None) => {}
            }
        }
    }

    /// New addresses, offsets and sizes of sections.
    fn new_sections(&self, places: &[Option<Extent>]) -> Vec<SectionHeader> {
        let mut sections = self.image.sections.clone();
        if !self.image.sections_agree {
            return sections;
        }
        for (unit, moved) in self.units.iter().zip(places) {
            for &index in &unit.sections {
                let Some(section) = sections.get_mut(index) else { continue };
                if let Some(to) = moved {
                    section.addr = to.address + (section.addr - unit.extent.address);
                    section.offset = to.offset + (section.offset - unit.extent.offset);
                }
                if let (UnitKind::Table(_) | UnitKind::Interpreter, Some(content)) =
                    (&unit.kind, &unit.content)
                {
                    section.size = content.len() as u64;
                }
                if unit.kind == UnitKind::Table(Table::VersionNeeds) {
                    section.info = self.needs_count(section.info);
                }
            }
        }
        sections
    }

    /// `sh_info` of `.gnu.version_r`: the number of its records.
    fn needs_count(&self, old: u32) -> u32 {
        self.encoded.needs_count.unwrap_or(old)
    }

    fn new_segments(&self, after: &Contents, tail: &Tail) -> Vec<ProgramHeader> {
        let mut segments = self.image.segments.clone();
        for (unit, moved) in self.units.iter().zip(&tail.places) {
            for &index in &unit.segments {
                let Some(segment) = segments.get_mut(index) else { continue };
                if let Some(to) = moved {
                    let skip = segment.offset - unit.extent.offset;
                    segment.offset = to.offset + skip;
                    segment.vaddr = to.address + skip;
                    segment.paddr = segment.vaddr;
                }
                let is_whole = matches!(unit.kind, UnitKind::Table(_) | UnitKind::Interpreter);
                if let Some(content) = unit.content.as_ref().filter(|_| is_whole) {
                    (segment.filesz, segment.memsz) = (content.len() as u64, content.len() as u64);
                }
            }
        }
        for segment in segments.iter_mut().filter(|s| s.kind == PT_GNU_STACK) {
            segment.flags = after.stack_flags.unwrap_or(segment.flags);
        }
        let kept = segments.iter().enumerate();
        let kept = kept.filter(|(index, s)| s.kind != PT_NULL && !self.dropped.contains(index));
        let mut segments: Vec<ProgramHeader> = kept.map(|(_, s)| *s).collect();
        // PT_LOAD entries are in the order of their addresses (gABI chapter 5).
        let behind_loads =
            segments.iter().rposition(ProgramHeader::is_load).map_or(segments.len(), |at| at + 1);
        segments.splice(behind_loads..behind_loads, tail.segments.iter().copied());
        if self.adds_stack {
            segments.push(ProgramHeader {
                kind: PT_GNU_STACK,
                flags: after.stack_flags.unwrap_or(PF_R | PF_W),
                offset: 0,
                vaddr: 0,
                paddr: 0,
                filesz: 0,
                memsz: 0,
                align: 16,
            });
        }
        self.set_header_segment(&mut segments, tail);
        segments
    }

    /// `PT_PHDR` says where the program headers are themselves.
    fn set_header_segment(&self, segments: &mut [ProgramHeader], tail: &Tail) {
        let size = segments.len() as u64 * self.image.encoding.program_header_size();
        let home = match self.headers {
            HeaderPlace::Fixed(offset) => offset,
            HeaderPlace::Tail => tail.headers.map_or(0, |extent| extent.offset),
        };
        let load = segments.iter().find(|s| s.is_load() && s.offset <= home && s.file_end() >= home + size);
        let address = load.map(|load| load.vaddr + (home - load.offset));
        for segment in segments.iter_mut().filter(|s| s.kind == PT_PHDR) {
            (segment.filesz, segment.memsz) = (size, size);
            if segment.offset != home {
                segment.offset = home;
                segment.vaddr = address.unwrap_or(segment.vaddr);
                segment.paddr = segment.vaddr;
            }
        }
    }

    fn put_headers(
        &self,
        patches: &mut Patches,
        tail: &Tail,
        segments: &[ProgramHeader],
        sections: &[SectionHeader],
    ) {
        let (image, encoding) = (self.image, self.image.encoding);
        let mut table = Vec::new();
        for segment in segments {
            segment.push(encoding, &mut table);
        }
        let mut header = image.header;
        header.phnum = segments.len() as u16;
        header.phoff = match self.headers {
            HeaderPlace::Fixed(offset) => offset,
            HeaderPlace::Tail => tail.headers.map_or(header.phoff, |extent| extent.offset),
        };
        if header.phoff == image.header.phoff {
            let old = usize::from(image.header.phnum) * encoding.program_header_size() as usize;
            table.resize(table.len().max(old), 0);
        }
        patches.put(0, header.rewritten(encoding, image.bytes));
        patches.put(header.phoff, table);
        if !sections.is_empty() {
            let mut table = Vec::new();
            for section in sections {
                section.push(encoding, &mut table);
            }
            patches.put(image.header.shoff, table);
        }
    }

    /// `.dynsym`, if it changes, with the values of symbols that lie in moved sections.
    fn shifted_symbols(&self, unit: &Unit, places: &[Option<Extent>]) -> Option<Vec<u8>> {
        let image = self.image;
        let old = || image.slice(".dynsym", unit.extent.offset, unit.extent.size).ok();
        let mut bytes = unit.content.clone().or_else(|| old().map(<[u8]>::to_vec))?;
        let mut is_changed = unit.content.is_some();
        for at in (0..bytes.len()).step_by(image.encoding.symbol_size() as usize) {
            let Some(symbol) = RawSymbol::read(image.encoding, &bytes, at) else { continue };
            if let Some(value) = self.shifted_value(&symbol, places) {
                let field = at + image.encoding.symbol_value_at();
                image.encoding.put(&mut bytes, field, image.encoding.word_size(), value);
                is_changed = true;
            }
        }
        is_changed.then_some(bytes)
    }

    /// The value of a symbol that lies in a moved section (a section symbol, `_DYNAMIC`).
    fn shifted_value(&self, symbol: &RawSymbol, places: &[Option<Extent>]) -> Option<u64> {
        if !self.image.sections_agree || symbol.shndx == SHN_UNDEF || symbol.shndx >= SHN_LORESERVE {
            return None;
        }
        let unit = self.units.iter().position(|unit| unit.sections.contains(&usize::from(symbol.shndx)))?;
        let (from, to) = (self.units.get(unit)?.extent, places.get(unit)?.as_ref()?);
        let inside = symbol.value.checked_sub(from.address).filter(|skip| *skip <= from.size)?;
        Some(to.address + inside)
    }

    /// Symbols of `.symtab` that lie in a moved section move with it.
    fn put_symbol_values(&self, patches: &mut Patches, places: &[Option<Extent>]) {
        let image = self.image;
        if !image.sections_agree {
            return;
        }
        let size = image.encoding.symbol_size();
        for section in image.sections.iter().filter(|s| s.kind == SHT_SYMTAB && s.entsize == size) {
            let Ok(bytes) = image.slice(".symtab", section.offset, section.size) else { continue };
            for at in (0..bytes.len()).step_by(size as usize) {
                let Some(symbol) = RawSymbol::read(image.encoding, bytes, at) else { continue };
                if let Some(value) = self.shifted_value(&symbol, places) {
                    let mut field = Vec::new();
                    image.encoding.push(&mut field, image.encoding.word_size(), value);
                    patches.put(section.offset + (at + image.encoding.symbol_value_at()) as u64, field);
                }
            }
        }
    }

    /// The first word of the global offset table is the address of the dynamic section on most machines (for i386 and
    /// x86-64 the psABI says so).
    fn put_global_offset_table(&self, patches: &mut Patches, places: &[Option<Extent>]) {
        let index = self.units.iter().position(|unit| unit.kind.is_writable());
        let moved = index.and_then(|index| Some((self.units[index].extent, (*places.get(index)?)?)));
        let Some((from, to)) = moved else { return };
        let (encoding, word) = (self.image.encoding, self.image.encoding.word_size());
        let table = self.image.dynamic_value(DT_PLTGOT);
        let offset = table.and_then(|address| self.image.offset_of(address, word as u64));
        let Some(offset) = offset else { return };
        if encoding.word(self.image.bytes, offset as usize) == Some(from.address) {
            let mut field = Vec::new();
            encoding.push(&mut field, word, to.address);
            patches.put(offset, field);
        }
    }

    fn moves_made(&self, places: &[Option<Extent>]) -> Vec<Move> {
        let made =
            self.units.iter().zip(places).filter_map(|(unit, to)| {
                Some(Move { what: unit.kind.clone(), from: unit.extent, to: (*to)? })
            });
        made.collect()
    }

    fn warnings(&self, tail: &Tail) -> Vec<Warning> {
        let image = self.image;
        let mut warnings = Vec::new();
        if self.headers == HeaderPlace::Tail {
            warnings.push(Warning::ProgramHeadersMoved);
        }
        let relro = image.segments.iter().find(|s| s.kind == PT_GNU_RELRO);
        let leaves = |unit: &Unit| {
            unit.is_moving
                && unit.kind.is_writable()
                && relro.is_some_and(|relro| {
                    unit.extent.address >= relro.vaddr && unit.extent.address < relro.memory_end()
                })
        };
        if self.units.iter().any(leaves) {
            warnings.push(Warning::DynamicLeftRelro);
        }
        if !image.sections.is_empty() && !image.sections_agree {
            warnings.push(Warning::SectionsIgnored);
        }
        if !tail.segments.is_empty() && owned_end(image) < tail.begin {
            warnings.push(Warning::OverlayNotLast);
        }
        warnings
    }
}

/// End of all that headers know of.
pub(crate) fn owned_end(image: &ElfImage) -> u64 {
    let table = image.header.shoff + image.sections.len() as u64 * image.encoding.section_header_size();
    let sections = image.sections.iter().filter(|s| s.has_bytes()).map(SectionHeader::file_end);
    let segments = image.segments.iter().map(ProgramHeader::file_end);
    sections.chain(segments).chain([table]).max().unwrap_or(0)
}

fn new_segment(segment: &ProgramHeader) -> NewSegment {
    NewSegment { extent: segment_extent(segment), is_writable: segment.flags & PF_W != 0 }
}

fn segment_extent(segment: &ProgramHeader) -> Extent {
    Extent { address: segment.vaddr, offset: segment.offset, size: segment.filesz }
}

/// New bytes for places of the old file.
#[derive(Default)]
struct Patches(Vec<(u64, Vec<u8>)>);

impl Patches {
    fn put(&mut self, offset: u64, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.0.push((offset, bytes));
        }
    }

    /// Only what differs from the old bytes, then the tail.
    fn into_writes(mut self, old: &[u8], tail_begin: u64, tail: &[u8]) -> Result<Vec<Write>, Refusal> {
        let mut tail = tail.to_vec();
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        self.0.sort_by_key(|(offset, _)| *offset);
        let mut neighbours = self.0.windows(2);
        if neighbours.any(|pair| pair[0].0 + pair[0].1.len() as u64 > pair[1].0) {
            return Err(Refusal::UnknownUser("a structure that overlaps another one".to_owned()));
        }
        for (offset, bytes) in self.0 {
            // Program headers that move are a patch of the tail.
            if let Some(begin) = offset.checked_sub(tail_begin) {
                if let Some(room) = tail.get_mut(begin as usize..begin as usize + bytes.len()) {
                    room.copy_from_slice(&bytes);
                }
                continue;
            }
            runs.extend(differences(old, offset, &bytes));
        }
        if !tail.is_empty() {
            runs.push((tail_begin, tail));
        }
        let writes = runs.into_iter();
        Ok(writes.map(|(offset, bytes)| Write { offset, size: bytes.len() as u64, bytes }).collect())
    }
}

/// Runs in which new bytes differ from old ones; runs with little between them are one.
fn differences(old: &[u8], offset: u64, new: &[u8]) -> Vec<(u64, Vec<u8>)> {
    const GAP: usize = 32;
    let begin = usize::try_from(offset).unwrap_or(usize::MAX);
    let old = old.get(begin..).unwrap_or_default();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, byte) in new.iter().enumerate() {
        if old.get(at) == Some(byte) {
            continue;
        }
        match runs.last_mut() {
            Some(last) if at - last.1 < GAP => last.1 = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs.into_iter().map(|(from, to)| (offset + from as u64, new[from..to].to_vec())).collect()
}
