//! A file as the editor sees it: headers, and where the tables of the dynamic section are.
//!
//! Program headers and `PT_DYNAMIC` are the truth. Section headers are believed only if they say the same.

use crate::abi::{
    DT_GNU_HASH, DT_HASH, DT_NULL, DT_STRSZ, DT_STRTAB, DT_SYMTAB, DT_VERDEFNUM, DT_VERNEEDNUM, EM_AARCH64,
    EM_ALPHA, EM_LOONGARCH, EM_MIPS, EM_PPC, EM_PPC64, EM_S390, PT_DYNAMIC, SHT_DYNAMIC, SHT_DYNSYM,
    SHT_STRTAB,
};
use crate::encoding::Encoding;
use crate::error::EditError;
use crate::hash::{GnuHash, SysvHash};
use crate::headers::{FileHeader, ProgramHeader, SectionHeader};
use crate::table::{Extent, Table};

/// One entry of the dynamic section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DynamicEntry {
    pub tag: u64,
    pub value: u64,
}

/// The dynamic section.
#[derive(Debug, Clone)]
pub(crate) struct DynamicSection {
    /// Entries before the first `DT_NULL`.
    pub entries: Vec<DynamicEntry>,
    pub extent: Extent,
}

/// An ELF file that can be edited.
#[derive(Debug, Clone)]
pub struct ElfImage<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) encoding: Encoding,
    pub(crate) header: FileHeader,
    pub(crate) segments: Vec<ProgramHeader>,
    /// As they are in the file; empty if there are none that can be read.
    pub(crate) sections: Vec<SectionHeader>,
    /// Whether the section headers agree with program headers and dynamic section.
    pub(crate) sections_agree: bool,
    pub(crate) dynamic: Option<DynamicSection>,
    /// `DT_HASH` and `DT_GNU_HASH`, decoded.
    pub(crate) sysv_hash: Option<SysvHash>,
    pub(crate) gnu_hash: Option<GnuHash>,
    /// The number of dynamic symbols, 0 without a symbol table.
    pub(crate) symbol_count: u64,
}

impl<'a> ElfImage<'a> {
    /// Reads headers and dynamic section, and the sizes of the tables that it points to.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EditError> {
        let (encoding, header) = FileHeader::parse(bytes)?;
        let segments = read_segments(encoding, &header, bytes)?;
        let sections = read_sections(encoding, &header, bytes);
        let mut image = Self {
            bytes,
            encoding,
            header,
            segments,
            sections,
            sections_agree: false,
            dynamic: None,
            sysv_hash: None,
            gnu_hash: None,
            symbol_count: 0,
        };
        image.dynamic = image.read_dynamic()?;
        if image.dynamic.is_some() {
            image.sysv_hash = image.read_sysv_hash()?;
            image.gnu_hash = image.read_gnu_hash()?;
            image.symbol_count = image.count_symbols()?;
        }
        image.sections_agree = image.do_sections_agree();
        Ok(image)
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Class and byte order.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// `e_machine`.
    pub fn machine(&self) -> u16 {
        self.header.machine
    }

    /// `len` bytes of the file at `offset`.
    pub(crate) fn slice(&self, what: &'static str, offset: u64, len: u64) -> Result<&'a [u8], EditError> {
        let range = usize::try_from(offset).ok().zip(offset.checked_add(len));
        let range = range.and_then(|(begin, end)| self.bytes.get(begin..usize::try_from(end).ok()?));
        range.ok_or_else(|| EditError::outside(what, offset))
    }

    /// File offset of `size` bytes that the loader maps at an address.
    pub(crate) fn offset_of(&self, address: u64, size: u64) -> Option<u64> {
        let load = self.segments.iter().find(|s| s.is_load() && s.maps(address, size))?;
        load.offset.checked_add(address - load.vaddr)
    }

    /// The bytes from an address to the end of what its segment has in the file.
    fn mapped_from(&self, what: &'static str, address: u64) -> Result<(u64, &'a [u8]), EditError> {
        let load = self.segments.iter().find(|s| s.is_load() && s.maps(address, 1));
        let load = load.ok_or_else(|| {
            EditError::malformed(
                what,
                address,
                "an address outside of every segment",
                "an address inside one",
            )
        })?;
        let skip = address - load.vaddr;
        let offset = load.offset.checked_add(skip).ok_or_else(|| EditError::outside(what, address))?;
        Ok((offset, self.slice(what, offset, load.filesz - skip)?))
    }

    /// The first dynamic entry with a tag.
    pub(crate) fn dynamic_value(&self, tag: u64) -> Option<u64> {
        let entries = &self.dynamic.as_ref()?.entries;
        entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.value)
    }

    /// Address of the dynamic entry at an index.
    pub(crate) fn entry_address(&self, index: usize) -> u64 {
        let address = self.dynamic.as_ref().map_or(0, |dynamic| dynamic.extent.address);
        address.wrapping_add(index as u64 * 2 * self.encoding.word_size() as u64)
    }

    fn read_dynamic(&self) -> Result<Option<DynamicSection>, EditError> {
        const WHAT: &str = "the dynamic section";
        let Some(segment) = self.segments.iter().find(|s| s.kind == PT_DYNAMIC) else { return Ok(None) };
        let (offset, size) = (segment.offset, segment.filesz);
        if self.offset_of(segment.vaddr, size) != Some(offset) {
            let found = format!("an address, {:#x}, that is not mapped from there", segment.vaddr);
            return Err(EditError::malformed(WHAT, offset, found, "one place for tools and loader"));
        }
        let bytes = self.slice(WHAT, offset, size)?;
        let word = self.encoding.word_size();
        let mut entries = Vec::new();
        for entry in bytes.chunks_exact(2 * word) {
            let field = |at| self.encoding.word(entry, at).unwrap_or_default();
            match field(0) {
                DT_NULL => {
                    let extent = Extent { address: segment.vaddr, offset, size };
                    return Ok(Some(DynamicSection { entries, extent }));
                }
                tag => entries.push(DynamicEntry { tag, value: field(word) }),
            }
        }
        Err(EditError::malformed(WHAT, offset, "no DT_NULL", "an end"))
    }

    fn read_sysv_hash(&self) -> Result<Option<SysvHash>, EditError> {
        const WHAT: &str = "the hash table (DT_HASH)";
        let Some(address) = self.dynamic_value(DT_HASH) else { return Ok(None) };
        let (offset, bytes) = self.mapped_from(WHAT, address)?;
        let is_wide = self.encoding.is_64 && matches!(self.header.machine, EM_S390 | EM_ALPHA);
        let table = SysvHash::read(self.encoding, if is_wide { 8 } else { 4 }, bytes);
        table.map(Some).ok_or_else(|| EditError::outside(WHAT, offset))
    }

    fn read_gnu_hash(&self) -> Result<Option<GnuHash>, EditError> {
        const WHAT: &str = "the hash table (DT_GNU_HASH)";
        let Some(address) = self.dynamic_value(DT_GNU_HASH) else { return Ok(None) };
        let (offset, bytes) = self.mapped_from(WHAT, address)?;
        let table = GnuHash::read(self.encoding, bytes);
        table.map(Some).ok_or_else(|| EditError::outside(WHAT, offset))
    }

    /// How many dynamic symbols there are: the hash tables know; else the section; else what fits before `.dynstr`.
    fn count_symbols(&self) -> Result<u64, EditError> {
        let Some(address) = self.dynamic_value(DT_SYMTAB) else { return Ok(0) };
        let entry = self.encoding.symbol_size();
        let from_section = || {
            let section = self.sections.iter().find(|s| s.kind == SHT_DYNSYM && s.addr == address);
            section.map(|section| section.size / entry)
        };
        let from_room = || {
            let strings = self.dynamic_value(DT_STRTAB)?;
            strings.checked_sub(address).map(|room| room / entry)
        };
        let from_sysv = self.sysv_hash.as_ref().map(|table| table.chains.len() as u64);
        let count = from_sysv.or_else(|| self.gnu_hash.as_ref()?.symbol_count()).or_else(from_section);
        let count = count.or_else(from_room).ok_or(crate::refusal::Refusal::UnknownSymbolCount)?;
        let size = count.checked_mul(entry).ok_or_else(|| EditError::outside("the symbol table", address))?;
        if self.offset_of(address, size).is_none() {
            return Err(EditError::outside("the symbol table", address));
        }
        Ok(count)
    }

    /// Where a table is and how many bytes it has; `None` if the file has none.
    pub(crate) fn table(&self, table: Table) -> Result<Option<Extent>, EditError> {
        if table == Table::Dynamic {
            return Ok(self.dynamic.as_ref().map(|dynamic| dynamic.extent));
        }
        let Some(address) = table.tag().and_then(|tag| self.dynamic_value(tag)) else { return Ok(None) };
        let size = match table {
            Table::DynamicStrings => self.dynamic_value(DT_STRSZ),
            Table::DynamicSymbols => self.symbol_count.checked_mul(self.encoding.symbol_size()),
            Table::VersionSymbols => self.symbol_count.checked_mul(2),
            Table::SysvHash => self.sysv_hash.as_ref().map(SysvHash::size),
            Table::GnuHash => self.gnu_hash.as_ref().map(|hash| hash.size(self.encoding)),
            Table::VersionNeeds => self.needs_size()?,
            Table::VersionDefinitions => self.definitions_size()?,
            Table::Dynamic => None,
        };
        let size = size.ok_or_else(|| {
            EditError::malformed("the dynamic section", address, format!("no size of {table}"), "a size")
        })?;
        let offset = self.offset_of(address, size);
        let offset = offset.ok_or_else(|| EditError::outside(table.name(), address))?;
        self.slice(table.name(), offset, size)?;
        Ok(Some(Extent { address, offset, size }))
    }

    /// The bytes of a table; empty if the file has none.
    pub(crate) fn table_bytes(&self, table: Table) -> Result<&'a [u8], EditError> {
        match self.table(table)? {
            Some(extent) => self.slice(table.name(), extent.offset, extent.size),
            None => Ok(&[]),
        }
    }

    /// The mapped bytes from a version table on, and how many records it has.
    pub(crate) fn version_table(&self, table: Table, count_tag: u64) -> Result<(&'a [u8], u64), EditError> {
        let Some(address) = table.tag().and_then(|tag| self.dynamic_value(tag)) else { return Ok((&[], 0)) };
        let count = self.dynamic_value(count_tag).ok_or_else(|| {
            EditError::malformed("the dynamic section", address, format!("no count of {table}"), "a count")
        })?;
        Ok((self.mapped_from(table.name(), address)?.1, count))
    }

    fn needs_size(&self) -> Result<Option<u64>, EditError> {
        let (bytes, count) = self.version_table(Table::VersionNeeds, DT_VERNEEDNUM)?;
        let ignore_names = |_| Some(crate::text::Text::new(""));
        let read = crate::versions::read_needs(self.encoding, bytes, count, &ignore_names);
        Ok(read.map(|(_, size)| size as u64))
    }

    fn definitions_size(&self) -> Result<Option<u64>, EditError> {
        let (bytes, count) = self.version_table(Table::VersionDefinitions, DT_VERDEFNUM)?;
        let ignore_names = |_| Some(crate::text::Text::new(""));
        let read = crate::versions::read_definitions(self.encoding, bytes, count, &ignore_names);
        Ok(read.map(|(_, size)| size as u64))
    }

    /// The section that is a table, in a file whose sections can be believed.
    pub(crate) fn section_at(&self, address: u64, kind: u32) -> Option<usize> {
        let found = |s: &SectionHeader| s.is_allocated() && s.kind == kind && s.addr == address;
        self.sections.iter().position(found)
    }

    /// Sections are believed if they name the dynamic tables where the loader sees them, and if the bytes of each
    /// allocated one are where a segment maps them from.
    fn do_sections_agree(&self) -> bool {
        if self.sections.len() < 2 {
            return false;
        }
        let are_mapped = self
            .sections
            .iter()
            .filter(|s| s.is_allocated() && s.has_bytes())
            .all(|section| self.offset_of(section.addr, section.size) == Some(section.offset));
        let tables = [
            (Table::Dynamic, SHT_DYNAMIC),
            (Table::DynamicStrings, SHT_STRTAB),
            (Table::DynamicSymbols, SHT_DYNSYM),
        ];
        let are_named = tables.iter().all(|&(table, kind)| match self.table(table) {
            Ok(Some(extent)) => self
                .section_at(extent.address, kind)
                .and_then(|index| self.sections.get(index))
                .is_some_and(|section| section.size >= extent.size),
            Ok(None) => true,
            Err(_) => false,
        });
        are_mapped && are_named
    }

    /// Name of a section, for messages.
    pub(crate) fn section_name(&self, index: usize) -> String {
        self.section_name_bytes(index)
            .map_or_else(|| format!("section {index}"), |name| String::from_utf8_lossy(name).into_owned())
    }

    pub(crate) fn section_name_bytes(&self, index: usize) -> Option<&'a [u8]> {
        let section = self.sections.get(index)?;
        let names = self.sections.get(self.header.shstrndx as usize)?;
        let bytes = self.slice("section names", names.offset, names.size).ok()?;
        let rest = bytes.get(section.name as usize..)?;
        rest.get(..memchr::memchr(0, rest)?)
    }

    /// The alignment that segments of this machine need whatever the file says: the largest page that its kernels use.
    pub(crate) fn machine_page(&self) -> u64 {
        machine_page(self.header.machine)
    }
}

/// Largest page size of kernels, as GNU ld's `MAXPAGESIZE` has it (bfd/elfnn-*.c).
pub(crate) fn machine_page(machine: u16) -> u64 {
    match machine {
        EM_AARCH64 | EM_PPC | EM_PPC64 | EM_MIPS | EM_LOONGARCH | EM_ALPHA => 0x10000,
        _ => 0x1000,
    }
}

fn read_segments(
    encoding: Encoding,
    header: &FileHeader,
    bytes: &[u8],
) -> Result<Vec<ProgramHeader>, EditError> {
    let outside = || EditError::outside("the program headers", header.phoff);
    let begin = usize::try_from(header.phoff).map_err(|_| outside())?;
    let size = encoding.program_header_size() as usize;
    let segments = (0..usize::from(header.phnum)).map(|index| {
        let segment = ProgramHeader::read(encoding, bytes, begin.checked_add(index * size)?)?;
        // A segment whose end does not exist would make every later sum wrong.
        let is_bounded = segment.offset.checked_add(segment.filesz).is_some()
            && segment.vaddr.checked_add(segment.memsz.max(segment.filesz)).is_some();
        is_bounded.then_some(segment)
    });
    segments.collect::<Option<_>>().ok_or_else(outside)
}

/// All section headers, or none if the table is not within the file.
fn read_sections(encoding: Encoding, header: &FileHeader, bytes: &[u8]) -> Vec<SectionHeader> {
    let size = encoding.section_header_size();
    let end = header.shnum.checked_mul(size).and_then(|size| header.shoff.checked_add(size));
    if header.shoff == 0 || end.is_none_or(|end| end > bytes.len() as u64) {
        return Vec::new();
    }
    let at = |index: u64| usize::try_from(header.shoff + index * size).ok();
    (0..header.shnum).map_while(|index| SectionHeader::read(encoding, bytes, at(index)?)).collect()
}
