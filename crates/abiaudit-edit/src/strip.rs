//! Removing sections that are not loaded, and keeping them in a file of their own.
//!
//! What is loaded stays at its addresses; segments move towards the beginning of the file where something before them
//! goes, by whole pages. Bytes behind everything that headers know of (an appended archive) stay behind everything.

mod check;
mod debug_file;

pub use debug_file::{debug_file, debug_link};

use crate::abi::{
    PT_GNU_STACK, SHT_DYNSYM, SHT_NOBITS, SHT_NULL, SHT_PROGBITS, SHT_REL, SHT_RELA, SHT_STRTAB, SHT_SYMTAB,
};
use crate::encoding::align_up;
use crate::error::EditError;
use crate::headers::{FileHeader, ProgramHeader, SectionHeader};
use crate::image::ElfImage;
use crate::plan::{DebugLink, StripLevel};
use crate::refusal::Refusal;
use crate::symbols::RawSymbol;

/// A file without what strip removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripped {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Names of the sections that went.
    pub removed: Vec<String>,
}

/// Removes sections, and verifies that what is loaded is the same.
///
/// # Errors
/// [`Refusal::NoSections`] if section headers cannot be relied upon; [`EditError::Unverified`] if the result is wrong.
pub fn strip(bytes: &[u8], level: StripLevel, debug_link: Option<&DebugLink>) -> Result<Stripped, EditError> {
    let image = ElfImage::parse(bytes)?;
    refuse_what_cannot_be_stripped(&image)?;
    let plan = Sections::choose(&image, level, debug_link);
    if plan.is_unchanged(&image) {
        return Ok(Stripped { bytes: bytes.to_vec(), removed: Vec::new() });
    }
    let stripped = plan.write(&image)?;
    let violations = check::check(&image, &stripped, &plan)?;
    if !violations.is_empty() {
        return Err(EditError::Unverified(violations));
    }
    let removed = plan.removed.iter().map(|&index| image.section_name(index)).collect();
    Ok(Stripped { bytes: stripped, removed })
}

fn refuse_what_cannot_be_stripped(image: &ElfImage) -> Result<(), EditError> {
    let refuse = |reason: &str| Err(Refusal::NoSections(reason.to_owned()).into());
    if image.segments.is_empty() {
        return refuse("the file has no segments (it is an object file)");
    }
    if !image.sections_agree {
        return refuse("the section headers are missing, or contradict the program headers");
    }
    if image.sections.len() >= 0xff00 || image.header.shstrndx as usize >= image.sections.len() {
        return refuse("the section headers are numbered in the extended way");
    }
    let is_in_load = |s: &ProgramHeader| {
        s.is_load() && s.offset <= image.header.phoff && image.header.phoff < s.file_end()
    };
    if !image.segments.iter().any(is_in_load) {
        return refuse("the program headers are in no segment");
    }
    Ok(())
}

/// What stays and what goes.
pub(crate) struct Sections {
    /// Old indices of the sections that stay, in order.
    pub kept: Vec<usize>,
    pub removed: Vec<usize>,
    /// Content of a new `.gnu_debuglink`.
    pub link: Option<Vec<u8>>,
}

impl Sections {
    fn choose(image: &ElfImage, level: StripLevel, link: Option<&DebugLink>) -> Self {
        let names: Vec<&[u8]> = (0..image.sections.len())
            .map(|index| image.section_name_bytes(index).unwrap_or_default())
            .collect();
        let mut goes: Vec<bool> = image
            .sections
            .iter()
            .zip(&names)
            .map(|(section, name)| {
                let is_symbols = level == StripLevel::Symbols && section.kind == SHT_SYMTAB;
                let is_old_link = link.is_some() && *name == b".gnu_debuglink";
                let is_loaded = section.is_allocated() || section.kind == SHT_NULL;
                !is_loaded && (is_debug(name) || is_symbols || is_old_link)
            })
            .collect();
        // What only serves sections that go, goes: their relocations, and their names.
        for (index, section) in image.sections.iter().enumerate() {
            let is_relocation = matches!(section.kind, SHT_REL | SHT_RELA) && !section.is_allocated();
            let target_goes = goes.get(section.info as usize) == Some(&true);
            let symbols_go = goes.get(section.link as usize) == Some(&true);
            if is_relocation && (target_goes || symbols_go) {
                goes[index] = true;
            }
        }
        for (index, section) in image.sections.iter().enumerate() {
            let mut users = image.sections.iter().enumerate().filter(|(_, user)| user.link as usize == index);
            let is_names = section.kind == SHT_STRTAB && !section.is_allocated();
            let has_users = image.sections.iter().any(|user| user.link as usize == index);
            if is_names
                && index != image.header.shstrndx as usize
                && has_users
                && users.all(|(user, _)| goes[user])
            {
                goes[index] = true;
            }
        }
        let (removed, kept) = (0..goes.len()).partition(|&index| goes[index]);
        Self { kept, removed, link: link.map(|link| link_content(image, link)) }
    }

    fn is_unchanged(&self, image: &ElfImage) -> bool {
        let old_link =
            self.removed.iter().find(|&&index| image.section_name_bytes(index) == Some(b".gnu_debuglink"));
        match (&self.link, old_link) {
            (None, _) => self.removed.is_empty(),
            (Some(link), Some(&old)) if self.removed.len() == 1 => {
                let section = &image.sections[old];
                image.slice(".gnu_debuglink", section.offset, section.size).is_ok_and(|bytes| bytes == link)
            }
            _ => false,
        }
    }

    /// New index of a section.
    pub(crate) fn new_index(&self, old: usize) -> Option<usize> {
        self.kept.binary_search(&old).ok()
    }
}

/// Sections of debug information: those that GNU strip -g and elfutils remove.
fn is_debug(name: &[u8]) -> bool {
    let prefixes: [&[u8]; 5] = [b".debug_", b".zdebug_", b".gnu.debuglto_", b".stab", b".line"];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) || matches!(name, b".gdb_index" | b".debug")
}

fn link_content(image: &ElfImage, link: &DebugLink) -> Vec<u8> {
    let mut bytes = link.name.as_bytes().to_vec();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    image.encoding.push(&mut bytes, 4, u64::from(link.crc));
    bytes
}

/// Where a `PT_LOAD`'s bytes were and where they go.
struct MovedLoad {
    load: ProgramHeader,
    offset: u64,
}

impl Sections {
    fn write(&self, image: &ElfImage) -> Result<Vec<u8>, EditError> {
        let loads = move_loads(image)?;
        let mut bytes = Vec::new();
        for moved in &loads {
            let content = image.slice("a segment", moved.load.offset, moved.load.filesz)?;
            let (begin, end) = (moved.offset as usize, moved.offset as usize + content.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[begin..end].copy_from_slice(content);
        }
        let mut sections = Vec::new();
        let names = self.new_names(image);
        for &old in &self.kept {
            let mut section = image.sections[old];
            section.name = *names.offsets.get(sections.len()).unwrap_or(&0);
            if section.is_allocated() {
                section.offset = section_offset(&section, &loads);
            } else if section.kind != SHT_NULL {
                let content = if old == image.header.shstrndx as usize {
                    names.bytes.clone()
                } else if section.kind == SHT_NOBITS {
                    Vec::new()
                } else {
                    self.renumbered(image, old, &mut section)?
                };
                append(&mut bytes, &mut section, &content)?;
            }
            section.link = self.renumber(section.link);
            if is_info_a_section(&section) {
                section.info = self.renumber(section.info);
            }
            sections.push(section);
        }
        if let Some(content) = &self.link {
            let mut section = empty_section(SHT_PROGBITS, 4);
            section.name = names.link;
            append(&mut bytes, &mut section, content)?;
            sections.push(section);
        }
        self.renumber_dynamic_symbols(image, &loads, &mut bytes);
        self.write_headers(image, &loads, &sections, &mut bytes)?;
        bytes.extend_from_slice(overlay(image));
        Ok(bytes)
    }

    fn renumber(&self, old: u32) -> u32 {
        self.new_index(old as usize).unwrap_or(0) as u32
    }

    /// A kept section's bytes; a symbol table's with its section numbers changed, and without symbols of sections that
    /// are gone.
    fn renumbered(
        &self,
        image: &ElfImage,
        old: usize,
        section: &mut SectionHeader,
    ) -> Result<Vec<u8>, EditError> {
        let content = image.slice("a section", section.offset, section.size)?;
        if section.kind != SHT_SYMTAB || section.entsize != image.encoding.symbol_size() {
            return Ok(content.to_vec());
        }
        let users = self.kept.iter().map(|&index| &image.sections[index]);
        if users.filter(|user| user.kind != SHT_NULL).any(|user| user.link as usize == old) {
            let reason = "relocations of sections refer to the symbol table";
            return Err(Refusal::NoSections(reason.to_owned()).into());
        }
        let (mut bytes, mut locals) = (Vec::new(), 0);
        for at in (0..content.len()).step_by(section.entsize as usize) {
            let Some(mut symbol) = RawSymbol::read(image.encoding, content, at) else { continue };
            let Some(index) = self.new_symbol_section(symbol.shndx) else { continue };
            symbol.shndx = index;
            locals += u32::from(symbol.is_local());
            symbol.push(image.encoding, &mut bytes);
        }
        (section.size, section.info) = (bytes.len() as u64, locals);
        Ok(bytes)
    }

    /// New `st_shndx`; `None` if the section is gone.
    pub(crate) fn new_symbol_section(&self, old: u16) -> Option<u16> {
        if old == 0 || old >= crate::abi::SHN_LORESERVE {
            return Some(old);
        }
        self.new_index(usize::from(old)).map(|index| index as u16)
    }

    /// Loaders ask no more than whether `st_shndx` is zero, tools more.
    fn renumber_dynamic_symbols(&self, image: &ElfImage, loads: &[MovedLoad], bytes: &mut [u8]) {
        let size = image.encoding.symbol_size();
        for section in image.sections.iter().filter(|s| s.kind == SHT_DYNSYM && s.is_allocated()) {
            let begin = section_offset(section, loads);
            for index in 0..section.size / size {
                let at = (begin + index * size) as usize;
                let Some(symbol) = RawSymbol::read(image.encoding, bytes, at) else { continue };
                if let Some(new) = self.new_symbol_section(symbol.shndx).filter(|new| *new != symbol.shndx) {
                    let field = at + image.encoding.by_class(14, 6);
                    image.encoding.put(bytes, field, 2, u64::from(new));
                }
            }
        }
    }

    fn write_headers(
        &self,
        image: &ElfImage,
        loads: &[MovedLoad],
        sections: &[SectionHeader],
        bytes: &mut Vec<u8>,
    ) -> Result<(), EditError> {
        let encoding = image.encoding;
        let mut segments = Vec::new();
        for segment in &image.segments {
            let mut segment = *segment;
            segment.offset = segment_offset(&segment, loads);
            segment.push(encoding, &mut segments);
        }
        // The program headers are in the first segment, which does not move.
        let phoff = loads.iter().find_map(|moved| inside(moved, image.header.phoff));
        let phoff = phoff.ok_or_else(|| EditError::outside("the program headers", image.header.phoff))?;
        put(bytes, phoff, &segments);
        let shoff = align_up(bytes.len() as u64, 8).unwrap_or(bytes.len() as u64);
        bytes.resize(shoff as usize, 0);
        for section in sections {
            section.push(encoding, bytes);
        }
        let header = FileHeader {
            phoff,
            shoff,
            shnum: sections.len() as u64,
            shstrndx: self.renumber(image.header.shstrndx),
            ..image.header
        };
        put(bytes, 0, &header.rewritten(encoding, image.bytes));
        Ok(())
    }
}

/// Section names anew, without those that are gone.
struct Names {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    link: u32,
}

impl Sections {
    fn new_names(&self, image: &ElfImage) -> Names {
        let mut names = Names { bytes: vec![0], offsets: Vec::new(), link: 0 };
        let mut add = |name: &[u8]| -> u32 {
            let mut needle = name.to_vec();
            needle.push(0);
            if let Some(place) = memchr::memmem::find(&names.bytes, &needle) {
                return place as u32;
            }
            let place = names.bytes.len() as u32;
            names.bytes.extend_from_slice(&needle);
            place
        };
        let offsets =
            self.kept.iter().map(|&old| add(image.section_name_bytes(old).unwrap_or_default())).collect();
        let link = if self.link.is_some() { add(b".gnu_debuglink") } else { 0 };
        (names.offsets, names.link) = (offsets, link);
        names
    }
}

/// `sh_info` is a section index for relocations (gABI chapter 4).
fn is_info_a_section(section: &SectionHeader) -> bool {
    const SHF_INFO_LINK: u64 = 0x40;
    matches!(section.kind, SHT_REL | SHT_RELA) || section.flags & SHF_INFO_LINK != 0
}

fn empty_section(kind: u32, align: u64) -> SectionHeader {
    SectionHeader {
        name: 0,
        kind,
        flags: 0,
        addr: 0,
        offset: 0,
        size: 0,
        link: 0,
        info: 0,
        align,
        entsize: 0,
    }
}

fn append(bytes: &mut Vec<u8>, section: &mut SectionHeader, content: &[u8]) -> Result<(), EditError> {
    let align = if section.align.is_power_of_two() { section.align.min(0x1000) } else { 1 };
    let offset = align_up(bytes.len() as u64, align);
    section.offset = offset.ok_or_else(|| EditError::outside("a section", section.offset))?;
    if section.kind != SHT_NOBITS {
        section.size = content.len() as u64;
        bytes.resize(section.offset as usize, 0);
        bytes.extend_from_slice(content);
    }
    Ok(())
}

fn put(bytes: &mut Vec<u8>, offset: u64, content: &[u8]) {
    let (begin, end) = (offset as usize, offset as usize + content.len());
    bytes.resize(bytes.len().max(end), 0);
    bytes[begin..end].copy_from_slice(content);
}

/// Places of `PT_LOAD`s without what was between them. They stay congruent to their alignment and the machine's page.
fn move_loads(image: &ElfImage) -> Result<Vec<MovedLoad>, EditError> {
    let mut loads: Vec<ProgramHeader> =
        image.segments.iter().filter(|s| s.is_load() && s.filesz > 0).copied().collect();
    loads.sort_by_key(|load| (load.offset, load.filesz));
    let (mut moved, mut old_end, mut new_end): (Vec<MovedLoad>, u64, u64) = (Vec::new(), 0, 0);
    for load in loads {
        let page = if load.align.is_power_of_two() { load.align } else { 1 };
        let page = page.max(image.machine_page());
        let offset = match moved.last() {
            // It shares bytes with the one before.
            Some(last) if load.offset < old_end => last.offset + (load.offset - last.load.offset),
            _ => {
                let first = align_up(new_end.saturating_sub(load.offset % page), page);
                first
                    .and_then(|first| first.checked_add(load.offset % page))
                    .unwrap_or(load.offset)
                    .min(load.offset)
            }
        };
        old_end = old_end.max(load.file_end());
        new_end = new_end.max(offset.saturating_add(load.filesz));
        moved.push(MovedLoad { load, offset });
    }
    match moved.first() {
        Some(first) if first.offset == first.load.offset => Ok(moved),
        _ => Err(EditError::malformed("the first segment", 0, "no bytes", "the file header")),
    }
}

/// New place of an old offset inside a segment.
fn inside(moved: &MovedLoad, offset: u64) -> Option<u64> {
    let skip = offset.checked_sub(moved.load.offset)?;
    (skip < moved.load.filesz).then(|| moved.offset + skip)
}

fn by_address(loads: &[MovedLoad], address: u64) -> Option<&MovedLoad> {
    loads.iter().find(|moved| address >= moved.load.vaddr && address <= moved.load.memory_end())
}

fn section_offset(section: &SectionHeader, loads: &[MovedLoad]) -> u64 {
    let holds = |moved: &&MovedLoad| moved.load.maps(section.addr, section.size.max(1));
    let found = loads.iter().find(holds).or_else(|| by_address(loads, section.addr));
    found.map_or(section.offset, |moved| {
        section.offset.wrapping_sub(moved.load.offset).wrapping_add(moved.offset)
    })
}

fn segment_offset(segment: &ProgramHeader, loads: &[MovedLoad]) -> u64 {
    if segment.kind == PT_GNU_STACK {
        return segment.offset;
    }
    let is_itself = |moved: &&MovedLoad| moved.load == *segment;
    let holds = |moved: &&MovedLoad| moved.load.maps(segment.vaddr, segment.filesz.max(1));
    let found = loads.iter().find(is_itself).or_else(|| loads.iter().find(holds));
    let found = found.or_else(|| by_address(loads, segment.vaddr));
    found.map_or(segment.offset, |moved| {
        segment.offset.wrapping_sub(moved.load.offset).wrapping_add(moved.offset)
    })
}

/// Bytes behind all that headers know of.
fn overlay<'a>(image: &ElfImage<'a>) -> &'a [u8] {
    let begin = usize::try_from(crate::layout::owned_end(image)).unwrap_or(usize::MAX);
    image.bytes.get(begin..).unwrap_or_default()
}
