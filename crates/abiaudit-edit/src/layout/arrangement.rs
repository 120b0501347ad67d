//! What moves, what goes, and where the program headers will be.

use super::Options;
use super::SEGMENT_ALIGN;
use super::is_empty_load;
use crate::abi::{PN_XNUM, PT_GNU_STACK, PT_INTERP, PT_NULL};
use crate::contents::Contents;
use crate::encode::Encoded;
use crate::error::EditError;
use crate::headers::ProgramHeader;
use crate::image::ElfImage;
use crate::refusal::Refusal;
use crate::table::Table;
use crate::units::Unit;
use crate::units::UnitKind;
use crate::units::units;

/// Free entries behind the end of a dynamic section that moves, as GNU ld leaves them.
const SPARE_ENTRIES: u64 = 4;

/// Where the program headers will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderPlace {
    /// At this offset, where they are or belong.
    Fixed(u64),
    /// At the beginning of the new read-only segment.
    Tail,
}

pub(super) struct Arrangement<'i, 'a> {
    pub(super) image: &'i ElfImage<'a>,
    pub(super) encoded: Encoded,
    pub(super) units: Vec<Unit>,
    /// Whether `PT_GNU_STACK` is added.
    pub(super) adds_stack: bool,
    pub(super) headers: HeaderPlace,
    /// Segments that go.
    pub(super) dropped: Vec<usize>,
    /// Offset from which the file is written anew.
    pub(super) tail: u64,
}

impl<'i, 'a> Arrangement<'i, 'a> {
    pub(super) fn new(
        image: &'i ElfImage<'a>,
        mut encoded: Encoded,
        after: &Contents,
    ) -> Result<Self, EditError> {
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

    pub(super) fn moves(&self, is_writable: bool) -> bool {
        self.units.iter().any(|unit| unit.is_moving && unit.kind.is_writable() == is_writable)
    }

    /// Decides what moves, until that asks for no more room.
    pub(super) fn decide(&mut self, options: Options) -> Result<(), EditError> {
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

    pub(super) fn drop_empty_segments(&mut self) {
        let headers = match self.headers {
            HeaderPlace::Fixed(offset) => offset,
            HeaderPlace::Tail => u64::MAX,
        };
        let all = 0..self.image.segments.len();
        self.dropped = all.filter(|&index| is_empty_load(self.image, index, headers, &self.units)).collect();
    }

    /// Program headers that the result has.
    pub(super) fn header_count(&self) -> usize {
        let kept = self.image.segments.iter().enumerate();
        let kept = kept.filter(|(index, s)| s.kind != PT_NULL && !self.dropped.contains(index)).count();
        let needs_read_only = self.moves(false) || self.headers == HeaderPlace::Tail;
        kept + usize::from(needs_read_only) + usize::from(self.moves(true)) + usize::from(self.adds_stack)
    }

    /// Moves what lies where program headers grow to. They grow where they are, or go back to where they belong.
    pub(super) fn make_room(&mut self, count: u64) -> Result<(), Refusal> {
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
    pub(super) fn first_blocker(&self, home: u64, end: u64) -> Option<(u64, String)> {
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

    pub(super) fn blocking_section(&self, home: u64, end: u64) -> Option<(u64, String)> {
        let is_movable = |index: usize| self.units.iter().any(|unit| unit.sections.contains(&index));
        let mut sections = self.image.sections.iter().enumerate();
        let found = sections.find(|(index, section)| {
            section.has_bytes() && section.offset < end && section.file_end() > home && !is_movable(*index)
        });
        found.map(|(index, section)| (section.offset, self.image.section_name(index)))
    }

    /// Without sections, bytes that no unit covers are padding if they are zero and no more than alignment asks for.
    pub(super) fn blocking_gap(&self, begin: u64, end: u64) -> Option<(u64, String)> {
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
    pub(super) fn take_apart_last_segments(&mut self) {
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
    pub(super) fn last_segment_of_units(&self) -> Option<usize> {
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
pub(super) fn interpreter(image: &ElfImage, after: &Contents) -> Option<Vec<u8>> {
    let mut bytes = after.interpreter.clone()?;
    bytes.push(0);
    let segment = image.segments.iter().find(|s| s.kind == PT_INTERP)?;
    let old = image.slice("the program interpreter", segment.offset, segment.filesz).ok()?;
    (old != bytes).then_some(bytes)
}
