//! The arrangement as writes.

use super::Layout;
use super::Move;
use super::NewSegment;
use super::Warning;
use super::arrangement::Arrangement;
use super::arrangement::HeaderPlace;
use super::owned_end;
use super::patches::Patches;
use super::tail::Tail;
use crate::abi::{PF_W, PT_GNU_RELRO};
use crate::contents::Contents;
use crate::error::EditError;
use crate::headers::ProgramHeader;
use crate::table::Extent;
use crate::units::Unit;

impl Arrangement<'_, '_> {
    pub(super) fn write(mut self, after: &Contents) -> Result<Layout, EditError> {
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

fn new_segment(segment: &ProgramHeader) -> NewSegment {
    NewSegment { extent: segment_extent(segment), is_writable: segment.flags & PF_W != 0 }
}

fn segment_extent(segment: &ProgramHeader) -> Extent {
    Extent { address: segment.vaddr, offset: segment.offset, size: segment.filesz }
}
