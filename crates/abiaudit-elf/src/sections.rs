//! Section headers: names, `.comment` and `.symtab`. Decoration: nothing that decides a verdict comes from here.

use std::ops::Range;

use object::read::elf::{SectionHeader, Sym};
use object::{Endianness, elf};

use crate::error::{Fault, Problem};
use crate::image::Image;
use crate::name::{Name, escape};
use crate::raw::Elf;
use crate::strings::{short_string_at, string_at, terminated};

/// One section header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Name; empty where `.shstrtab` could not be read.
    pub name: Name,
    /// `sh_type`; 8 is `SHT_NOBITS`.
    pub section_type: u32,
    /// `sh_flags`; 2 is `SHF_ALLOC`, 4 `SHF_EXECINSTR`.
    pub flags: u64,
    /// `sh_addr`
    pub address: u64,
    /// `sh_offset`
    pub offset: u64,
    /// `sh_size` in bytes.
    pub size: u64,
    link: u32,
}

impl Section {
    /// `SHF_ALLOC`: part of the process image.
    pub fn is_alloc(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    /// `SHT_NOBITS`: no bytes in the file.
    pub fn is_nobits(&self) -> bool {
        self.section_type == elf::SHT_NOBITS.0
    }

    /// It has bytes in a `PT_LOAD`. Thread-local zeros (`.tbss`) have an address and a size, but take no room there.
    pub(crate) fn takes_memory(&self) -> bool {
        self.is_alloc() && self.size > 0 && !(self.is_nobits() && self.flags & elf::SHF_TLS.0 != 0)
    }

    fn file_range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size)
    }
}

/// All section headers, and what is read through them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sections {
    /// In the order of the table, with the null section.
    pub headers: Vec<Section>,
    /// The distinct strings of `.comment`: which compilers and linkers made the parts, sorted.
    pub comments: Vec<String>,
    /// `.symtab` is there.
    pub has_symtab: bool,
    /// `.debug_info` is there, or its compressed forms.
    pub has_debug_info: bool,
    /// Sum of the sizes of all `.debug_*` and `.zdebug_*` sections that have bytes in the file.
    pub debug_size: u64,
}

/// One entry of `.symtab`: symbols that the loader does not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymtabEntry {
    /// Mangled name.
    pub name: String,
    /// `st_info`
    pub info: u8,
    /// `st_shndx`
    pub section: u16,
    /// `st_value`
    pub value: u64,
    /// `st_size` in bytes.
    pub size: u64,
}

/// `.symtab`, read only when asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symtab(pub Vec<SymtabEntry>);

impl Sections {
    /// The section of this name.
    pub fn find(&self, name: &str) -> Option<&Section> {
        self.headers.iter().find(|s| s.name == *name)
    }
}

/// Reads headers, names and comments. Faults of the file become problems: a loader would not notice them.
pub(crate) fn read<E: Elf>(
    image: &Image,
    header: &E,
    endian: Endianness,
    problems: &mut Vec<Problem>,
) -> Result<Sections, Fault> {
    match read_headers::<E>(image, header, endian) {
        Ok(headers) => describe(image, headers),
        Err(Fault::Bad(error)) => {
            problems.push(Problem { what: "section headers", detail: error.to_string() });
            Ok(Sections::default())
        }
        Err(missing) => Err(missing),
    }
}

/// The section header table, where the ELF header says how long it is.
pub(crate) fn table<E: Elf>(header: &E, endian: Endianness) -> Option<Range<u64>> {
    let offset: u64 = header.e_shoff(endian).into();
    let size = u64::from(header.e_shnum(endian)) * u64::from(header.e_shentsize(endian));
    (offset != 0).then(|| offset..offset.saturating_add(size))
}

/// Object files compiled with one section per function have tens of thousands; linked files have fifty.
const MOST_SECTIONS: u64 = 1 << 18;
/// A name longer than this is no name.
const LONGEST_NAME: usize = 256;

fn read_headers<E: Elf>(image: &Image, header: &E, endian: Endianness) -> Result<Vec<Section>, Fault> {
    let offset: u64 = header.e_shoff(endian).into();
    if offset == 0 {
        return Ok(Vec::new());
    }
    let entry_size = header.e_shentsize(endian);
    if usize::from(entry_size) != size_of::<E::SectionHeader>() {
        return Err(Fault::malformed("e_shentsize", entry_size.to_string(), "the size of a section header"));
    }
    // gABI chapter 4: counts that do not fit the ELF header are in section 0.
    let first = image.read::<E::SectionHeader>("section header 0", offset)?;
    let count = match header.e_shnum(endian) {
        0 => first.sh_size(endian).into(),
        count => u64::from(count),
    };
    let names_at = match header.e_shstrndx(endian).0 {
        0xffff => first.sh_link(endian),
        index => index.into(),
    };
    if count > MOST_SECTIONS {
        return Err(Fault::malformed("e_shnum", count.to_string(), "a sensible number of sections"));
    }
    let raw = image.read_slice::<E::SectionHeader>("section headers", offset, count)?;
    let names = raw.get(names_at as usize).filter(|h| h.sh_type(endian) == elf::SHT_STRTAB);
    let names = match names {
        Some(h) => image.bytes(".shstrtab", h.sh_offset(endian).into(), h.sh_size(endian).into())?,
        None => &[],
    };
    let section = |h: &E::SectionHeader| Section {
        name: short_string_at(names, h.sh_name(endian).into(), LONGEST_NAME).unwrap_or_default().into(),
        section_type: h.sh_type(endian).0,
        flags: h.sh_flags(endian).0,
        address: h.sh_addr(endian).into(),
        offset: h.sh_offset(endian).into(),
        size: h.sh_size(endian).into(),
        link: h.sh_link(endian),
    };
    Ok(raw.iter().map(section).collect())
}

fn describe(image: &Image, headers: Vec<Section>) -> Result<Sections, Fault> {
    let is_debug = |s: &&Section| {
        let name = s.name.as_bytes();
        (name.starts_with(b".debug_") || name.starts_with(b".zdebug_")) && !s.is_nobits()
    };
    let comments = match headers.iter().find(|s| s.name == ".comment" && !s.is_nobits()) {
        Some(s) if s.file_range().end <= image.size() => {
            comments(image.bytes(".comment", s.offset, s.size.min(1 << 16))?)
        }
        _ => Vec::new(),
    };
    Ok(Sections {
        comments,
        has_symtab: headers.iter().any(|s| s.section_type == elf::SHT_SYMTAB.0),
        has_debug_info: headers.iter().filter(is_debug).any(|s| s.name.as_bytes().ends_with(b"debug_info")),
        debug_size: headers.iter().filter(is_debug).fold(0, |sum, s| sum.saturating_add(s.size)),
        headers,
    })
}

fn comments(bytes: &[u8]) -> Vec<String> {
    let mut comments: Vec<String> = bytes.split(|&b| b == 0).filter(|c| !c.is_empty()).map(escape).collect();
    comments.sort();
    comments.dedup();
    comments
}

/// Reads `.symtab`; an empty table if there is none or it is broken.
pub(crate) fn read_symtab<E: Elf>(
    image: &Image,
    sections: &Sections,
    endian: Endianness,
    problems: &mut Vec<Problem>,
) -> Result<Symtab, Fault> {
    let Some(table) = sections.headers.iter().find(|s| s.section_type == elf::SHT_SYMTAB.0) else {
        return Ok(Symtab::default());
    };
    let strings = sections.headers.get(table.link as usize);
    image.require(std::iter::once(table.file_range()).chain(strings.map(Section::file_range)))?;
    let read = || -> Result<Vec<SymtabEntry>, Fault> {
        let strings = match strings {
            Some(s) => terminated(image.bytes(".strtab", s.offset, s.size)?),
            None => &[],
        };
        let count = table.size / size_of::<E::Sym>() as u64;
        let raw = image.read_slice::<E::Sym>(".symtab", table.offset, count)?;
        let most = strings.len().saturating_mul(4) + (1 << 16);
        let mut sum = 0usize;
        let mut entries = Vec::with_capacity(raw.len());
        for symbol in raw {
            let name = string_at(strings, symbol.st_name(endian).into()).unwrap_or_default();
            sum += name.len();
            if sum > most {
                return Err(Fault::malformed(
                    ".symtab",
                    format!("names of more than {most} bytes"),
                    "names that share little",
                ));
            }
            entries.push(SymtabEntry {
                name: escape(name),
                info: symbol.st_info().0,
                section: symbol.st_shndx(endian).0,
                value: symbol.st_value(endian).into(),
                size: symbol.st_size(endian).into(),
            });
        }
        Ok(entries)
    };
    match read() {
        Ok(entries) => Ok(Symtab(entries)),
        Err(Fault::Bad(error)) => {
            problems.push(Problem { what: ".symtab", detail: error.to_string() });
            Ok(Symtab::default())
        }
        Err(missing) => Err(missing),
    }
}
