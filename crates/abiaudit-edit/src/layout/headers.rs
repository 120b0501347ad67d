//! Program headers and section headers that follow what moved.

use super::arrangement::Arrangement;
use super::arrangement::HeaderPlace;
use super::patches::Patches;
use super::tail::Tail;
use crate::abi::{PF_R, PF_W, PT_GNU_STACK, PT_NULL, PT_PHDR};
use crate::contents::Contents;
use crate::headers::ProgramHeader;
use crate::headers::SectionHeader;
use crate::table::Extent;
use crate::table::Table;
use crate::units::UnitKind;

impl Arrangement<'_, '_> {
    /// New addresses, offsets and sizes of sections.
    pub(super) fn new_sections(&self, places: &[Option<Extent>]) -> Vec<SectionHeader> {
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
    pub(super) fn needs_count(&self, old: u32) -> u32 {
        self.encoded.needs_count.unwrap_or(old)
    }

    pub(super) fn new_segments(&self, after: &Contents, tail: &Tail) -> Vec<ProgramHeader> {
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
    pub(super) fn set_header_segment(&self, segments: &mut [ProgramHeader], tail: &Tail) {
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

    pub(super) fn put_headers(
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
}
