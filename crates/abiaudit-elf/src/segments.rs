//! Program headers: what the kernel and the loader map.

use std::ops::Range;

use object::read::elf::ProgramHeader;
use object::{Endianness, elf};

use crate::error::{Fault, ParseError, Problem};
use crate::image::Image;
use crate::raw::Elf;

/// `p_type`, as far as facts come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentType {
    /// `PT_LOAD`
    Load,
    /// `PT_DYNAMIC`
    Dynamic,
    /// `PT_INTERP`
    Interp,
    /// `PT_NOTE`
    Note,
    /// `PT_PHDR`
    Phdr,
    /// `PT_TLS`
    Tls,
    /// `PT_GNU_STACK`
    GnuStack,
    /// `PT_GNU_RELRO`
    GnuRelro,
    /// `PT_GNU_EH_FRAME`
    GnuEhFrame,
    /// `PT_GNU_PROPERTY`
    GnuProperty,
    /// Any other value.
    Other(u32),
}

/// One program header (gABI chapter 5). Addresses and sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// `p_type`
    pub segment_type: SegmentType,
    /// `p_flags`: 1 executable, 2 writable, 4 readable.
    pub flags: u32,
    /// `p_offset`
    pub offset: u64,
    /// `p_vaddr`
    pub address: u64,
    /// `p_filesz`
    pub file_size: u64,
    /// `p_memsz`
    pub memory_size: u64,
    /// `p_align`
    pub align: u64,
}

impl Segment {
    /// `PF_X`
    pub fn is_executable(&self) -> bool {
        self.flags & 1 != 0
    }

    /// `PF_W`
    pub fn is_writable(&self) -> bool {
        self.flags & 2 != 0
    }

    /// The bytes of the file that the segment covers; an end past `u64::MAX` saturates.
    pub fn file_range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.file_size)
    }
}

/// All program headers in file order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

impl Segments {
    /// In the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter()
    }

    /// The first segment of this type.
    pub fn first(&self, segment_type: SegmentType) -> Option<&Segment> {
        self.iter().find(|s| s.segment_type == segment_type)
    }

    /// The dynamic section that counts: the last one with bytes in the file, as in `_dl_map_object_from_fd` (glibc
    /// elf/dl-load.c).
    pub(crate) fn dynamic(&self) -> Option<&Segment> {
        self.0.iter().rev().find(|s| s.segment_type == SegmentType::Dynamic && s.file_size > 0)
    }

    /// All `PT_LOAD` segments.
    pub fn loads(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.0.iter().filter(|s| s.segment_type == SegmentType::Load)
    }

    /// Where the file content of `address` is. Where loads overlap the later one wins, as with the fixed
    /// mappings of ld.so (glibc elf/dl-map-segments.h).
    pub(crate) fn offset_of(&self, what: &'static str, address: u64) -> Result<u64, ParseError> {
        self.loads()
            .rev()
            .find_map(|load| {
                let within = address.checked_sub(load.address)?;
                if within < load.file_size { load.offset.checked_add(within) } else { None }
            })
            .ok_or(ParseError::Unmapped { what, address })
    }

    /// How many bytes of the file a load maps from `offset` on; 0 if none does.
    pub(crate) fn file_content_after(&self, offset: u64) -> u64 {
        let mut ranges = self.loads().rev().map(Segment::file_range);
        ranges.find(|range| range.contains(&offset)).map_or(0, |range| range.end - offset)
    }

    /// Reads the table that the ELF header names.
    pub(crate) fn read<E: Elf>(image: &Image, header: &E, endian: Endianness) -> Result<Self, Fault> {
        let offset: u64 = header.e_phoff(endian).into();
        let count = count::<E>(image, header, endian)?;
        if count == 0 || offset == 0 {
            return Ok(Self::default());
        }
        let entry_size = header.e_phentsize(endian);
        if usize::from(entry_size) != size_of::<E::ProgramHeader>() {
            return Err(Fault::malformed(
                "e_phentsize",
                entry_size.to_string(),
                "the size of a program header",
            ));
        }
        let headers = image.read_slice::<E::ProgramHeader>("program header table", offset, count)?;
        Ok(Self(headers.iter().map(|h| segment::<E>(h, endian)).collect()))
    }

    /// Loads that overlap in memory (ld.so maps one over the other, tools disagree about which one counts) or
    /// whose bytes the file does not have (it was cut; touching them is a `SIGBUS`).
    pub(crate) fn problems(&self, file_size: u64) -> Vec<Problem> {
        let mut loads: Vec<_> = self.loads().filter(|l| l.memory_size > 0).collect();
        loads.sort_by_key(|l| l.address);
        let end = |load: &Segment| load.address.saturating_add(load.memory_size);
        let overlap = loads.windows(2).find(|pair| end(pair[0]) > pair[1].address).map(|pair| {
            format!("segments at {:#x} and {:#x} overlap in memory", pair[0].address, pair[1].address)
        });
        let cut = self
            .loads()
            .find(|load| load.file_range().end > file_size)
            .map(|load| format!("the segment at {:#x} reaches past the end of the file", load.address));
        overlap.into_iter().chain(cut).map(|detail| Problem { what: "PT_LOAD", detail }).collect()
    }
}

/// `e_phnum`, or `sh_info` of section 0 where it does not fit (`PN_XNUM`, gABI chapter 4).
fn count<E: Elf>(image: &Image, header: &E, endian: Endianness) -> Result<u64, Fault> {
    use object::read::elf::SectionHeader;
    const PN_XNUM: u16 = 0xffff;
    let count = header.e_phnum(endian);
    if count != PN_XNUM {
        return Ok(count.into());
    }
    let sections: u64 = header.e_shoff(endian).into();
    let info = match sections {
        0 => 0,
        _ => image.read::<E::SectionHeader>("section header 0", sections)?.sh_info(endian),
    };
    match info {
        0 => Err(Fault::malformed(
            "e_phnum",
            "PN_XNUM without a number in section header 0",
            "the number of program headers",
        )),
        count => Ok(count.into()),
    }
}

fn segment<E: Elf>(header: &E::ProgramHeader, endian: Endianness) -> Segment {
    Segment {
        segment_type: match header.p_type(endian) {
            elf::PT_LOAD => SegmentType::Load,
            elf::PT_DYNAMIC => SegmentType::Dynamic,
            elf::PT_INTERP => SegmentType::Interp,
            elf::PT_NOTE => SegmentType::Note,
            elf::PT_PHDR => SegmentType::Phdr,
            elf::PT_TLS => SegmentType::Tls,
            elf::PT_GNU_STACK => SegmentType::GnuStack,
            elf::PT_GNU_RELRO => SegmentType::GnuRelro,
            elf::PT_GNU_EH_FRAME => SegmentType::GnuEhFrame,
            elf::PT_GNU_PROPERTY => SegmentType::GnuProperty,
            other => SegmentType::Other(other.0),
        },
        flags: header.p_flags(endian).0,
        offset: header.p_offset(endian).into(),
        address: header.p_vaddr(endian).into(),
        file_size: header.p_filesz(endian).into(),
        memory_size: header.p_memsz(endian).into(),
        align: header.p_align(endian).into(),
    }
}
