//! The file header, program headers and section headers, as fields of one width (gABI chapters 4 and 5).

use crate::abi::{PN_XNUM, PT_LOAD, SHF_ALLOC, SHN_LORESERVE, SHT_NOBITS, SHT_NULL};
use crate::encoding::Encoding;
use crate::error::EditError;

/// Fields of `Elf32_Ehdr` or `Elf64_Ehdr` that the editor uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub kind: u16,
    pub machine: u16,
    pub entry: u64,
    pub phoff: u64,
    pub shoff: u64,
    pub phnum: u16,
    pub shnum: u64,
    pub shstrndx: u32,
}

/// Sizes and places that differ between the classes.
impl Encoding {
    pub(crate) fn file_header_size(self) -> u64 {
        self.by_class(52, 64)
    }
    pub(crate) fn program_header_size(self) -> u64 {
        self.by_class(32, 56)
    }
    pub(crate) fn section_header_size(self) -> u64 {
        self.by_class(40, 64)
    }
    /// Offset of `e_ehsize`, behind which both classes look alike.
    fn header_tail(self) -> usize {
        self.by_class(40, 52)
    }
}

impl FileHeader {
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Encoding, Self), EditError> {
        if bytes.get(..4) != Some(b"\x7fELF") {
            return Err(EditError::NotElf);
        }
        let (class, data) = (bytes.get(4).copied(), bytes.get(5).copied());
        let (Some(class @ 1..=2), Some(data @ 1..=2)) = (class, data) else {
            let found = format!("class {class:?}, data encoding {data:?}");
            return Err(EditError::malformed("the file header", 4, found, "1 or 2 each"));
        };
        let encoding = Encoding { is_64: class == 2, is_big_endian: data == 2 };
        let header = Self::read(encoding, bytes).ok_or_else(|| EditError::outside("the file header", 0))?;
        header.check_entry_sizes(encoding, bytes)?;
        Ok((encoding, header))
    }

    fn read(encoding: Encoding, bytes: &[u8]) -> Option<Self> {
        let tail = encoding.header_tail();
        let phoff = encoding.word(bytes, encoding.by_class(28, 32))?;
        let shoff = encoding.word(bytes, encoding.by_class(32, 40))?;
        let mut header = Self {
            kind: encoding.u16(bytes, 16)?,
            machine: encoding.u16(bytes, 18)?,
            entry: encoding.word(bytes, 24)?,
            phoff,
            shoff,
            phnum: encoding.u16(bytes, tail + 4)?,
            shnum: u64::from(encoding.u16(bytes, tail + 8)?),
            shstrndx: u32::from(encoding.u16(bytes, tail + 10)?),
        };
        header.read_extended_numbers(encoding, bytes);
        Some(header)
    }

    /// Numbers that do not fit the header are in section header 0 (gABI chapter 4).
    fn read_extended_numbers(&mut self, encoding: Encoding, bytes: &[u8]) {
        let first = usize::try_from(self.shoff).ok().filter(|&at| at != 0);
        let Some(first) = first.and_then(|at| SectionHeader::read(encoding, bytes, at)) else { return };
        if self.shnum == 0 {
            self.shnum = first.size;
        }
        if self.shstrndx == 0xffff {
            self.shstrndx = first.link;
        }
    }

    fn check_entry_sizes(&self, encoding: Encoding, bytes: &[u8]) -> Result<(), EditError> {
        let tail = encoding.header_tail();
        let phentsize = encoding.u16(bytes, tail + 2).map(u64::from);
        if self.phnum > 0 && phentsize != Some(encoding.program_header_size()) {
            let found = format!("e_phentsize {phentsize:?}");
            return Err(EditError::malformed("the file header", 0, found, "the size of a program header"));
        }
        if self.phnum == PN_XNUM {
            return Err(EditError::malformed("the file header", 0, "PN_XNUM", "fewer program headers"));
        }
        Ok(())
    }

    /// Bytes of the header in which `e_phoff`, `e_shoff` and the counts are set to these values.
    pub(crate) fn rewritten(&self, encoding: Encoding, original: &[u8]) -> Vec<u8> {
        let size = encoding.file_header_size() as usize;
        let mut bytes = original.get(..size).unwrap_or_default().to_vec();
        let (word, tail) = (encoding.word_size(), encoding.header_tail());
        encoding.put(&mut bytes, encoding.by_class(28, 32), word, self.phoff);
        encoding.put(&mut bytes, encoding.by_class(32, 40), word, self.shoff);
        encoding.put(&mut bytes, tail + 4, 2, u64::from(self.phnum));
        // Extended numbers stay where they are, in section header 0.
        if self.shnum < u64::from(SHN_LORESERVE) && self.shstrndx < u32::from(SHN_LORESERVE) {
            encoding.put(&mut bytes, tail + 8, 2, self.shnum);
            encoding.put(&mut bytes, tail + 10, 2, u64::from(self.shstrndx));
        }
        bytes
    }
}

/// `Elf32_Phdr` or `Elf64_Phdr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ProgramHeader {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub vaddr: u64,
    pub paddr: u64,
    pub filesz: u64,
    pub memsz: u64,
    pub align: u64,
}

impl ProgramHeader {
    pub(crate) fn read(encoding: Encoding, bytes: &[u8], at: usize) -> Option<Self> {
        let word = encoding.word_size();
        let field = |index: usize| encoding.word(bytes, at.checked_add(index)?);
        // The class moves p_flags: behind p_type, or behind p_memsz.
        let (first, flags_at) = encoding.by_class((4, 24), (8, 4));
        Some(Self {
            kind: encoding.u32(bytes, at)?,
            flags: encoding.u32(bytes, at.checked_add(flags_at)?)?,
            offset: field(first)?,
            vaddr: field(first + word)?,
            paddr: field(first + 2 * word)?,
            filesz: field(first + 3 * word)?,
            memsz: field(first + 4 * word)?,
            align: field(encoding.by_class(28, 48))?,
        })
    }

    pub(crate) fn push(&self, encoding: Encoding, bytes: &mut Vec<u8>) {
        let word = encoding.word_size();
        encoding.push(bytes, 4, u64::from(self.kind));
        if encoding.is_64 {
            encoding.push(bytes, 4, u64::from(self.flags));
        }
        for field in [self.offset, self.vaddr, self.paddr, self.filesz, self.memsz] {
            encoding.push(bytes, word, field);
        }
        if !encoding.is_64 {
            encoding.push(bytes, 4, u64::from(self.flags));
        }
        encoding.push(bytes, word, self.align);
    }

    pub(crate) fn is_load(&self) -> bool {
        self.kind == PT_LOAD
    }

    pub(crate) fn file_end(&self) -> u64 {
        self.offset.saturating_add(self.filesz)
    }

    pub(crate) fn memory_end(&self) -> u64 {
        self.vaddr.saturating_add(self.memsz)
    }

    /// Whether the segment has bytes of the file for the whole range of addresses.
    pub(crate) fn maps(&self, address: u64, size: u64) -> bool {
        let end = address.checked_add(size);
        address >= self.vaddr && end.is_some_and(|end| end <= self.vaddr.saturating_add(self.filesz))
    }
}

/// `Elf32_Shdr` or `Elf64_Shdr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectionHeader {
    pub name: u32,
    pub kind: u32,
    pub flags: u64,
    pub addr: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
    pub info: u32,
    pub align: u64,
    pub entsize: u64,
}

impl SectionHeader {
    pub(crate) fn read(encoding: Encoding, bytes: &[u8], at: usize) -> Option<Self> {
        let word = encoding.word_size();
        let at = |index: usize| at.checked_add(index);
        Some(Self {
            name: encoding.u32(bytes, at(0)?)?,
            kind: encoding.u32(bytes, at(4)?)?,
            flags: encoding.word(bytes, at(8)?)?,
            addr: encoding.word(bytes, at(8 + word)?)?,
            offset: encoding.word(bytes, at(8 + 2 * word)?)?,
            size: encoding.word(bytes, at(8 + 3 * word)?)?,
            link: encoding.u32(bytes, at(8 + 4 * word)?)?,
            info: encoding.u32(bytes, at(12 + 4 * word)?)?,
            align: encoding.word(bytes, at(16 + 4 * word)?)?,
            entsize: encoding.word(bytes, at(16 + 5 * word)?)?,
        })
    }

    pub(crate) fn push(&self, encoding: Encoding, bytes: &mut Vec<u8>) {
        let word = encoding.word_size();
        encoding.push(bytes, 4, u64::from(self.name));
        encoding.push(bytes, 4, u64::from(self.kind));
        for field in [self.flags, self.addr, self.offset, self.size] {
            encoding.push(bytes, word, field);
        }
        encoding.push(bytes, 4, u64::from(self.link));
        encoding.push(bytes, 4, u64::from(self.info));
        encoding.push(bytes, word, self.align);
        encoding.push(bytes, word, self.entsize);
    }

    pub(crate) fn is_allocated(&self) -> bool {
        self.kind != SHT_NULL && self.flags & SHF_ALLOC != 0
    }

    /// Whether the section has bytes in the file.
    pub(crate) fn has_bytes(&self) -> bool {
        self.kind != SHT_NULL && self.kind != SHT_NOBITS && self.size > 0
    }

    pub(crate) fn file_end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_written_as_they_are_read() {
        for is_64 in [false, true] {
            let encoding = Encoding { is_64, is_big_endian: is_64 };
            let segment = ProgramHeader {
                kind: 1,
                flags: 5,
                offset: 0x40,
                vaddr: 0x1040,
                paddr: 0x2040,
                filesz: 7,
                memsz: 9,
                align: 0x1000,
            };
            let mut bytes = Vec::new();
            segment.push(encoding, &mut bytes);
            assert_eq!(bytes.len() as u64, encoding.program_header_size());
            assert_eq!(ProgramHeader::read(encoding, &bytes, 0), Some(segment));

            let section = SectionHeader {
                name: 1,
                kind: 2,
                flags: 3,
                addr: 4,
                offset: 5,
                size: 6,
                link: 7,
                info: 8,
                align: 9,
                entsize: 10,
            };
            let mut bytes = Vec::new();
            section.push(encoding, &mut bytes);
            assert_eq!(bytes.len() as u64, encoding.section_header_size());
            assert_eq!(SectionHeader::read(encoding, &bytes, 0), Some(section));
        }
    }
}
