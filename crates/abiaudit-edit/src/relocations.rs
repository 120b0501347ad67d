//! Dynamic relocations: which symbols they name.

use crate::abi::{DT_JMPREL, DT_PLTREL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELASZ, DT_RELSZ, EM_MIPS};
use crate::encoding::Encoding;
use crate::error::EditError;
use crate::image::ElfImage;

/// Tags of relocation tables that the editor cannot read: Android's packed ones.
const PACKED: [u64; 4] = [0x6000_000f, 0x6000_0010, 0x6000_0011, 0x6000_0012];

/// One table of `Rel` or `Rela` entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RelocationTable {
    pub offset: u64,
    pub count: u64,
    pub has_addend: bool,
}

/// One relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relocation {
    /// `r_offset`, an address.
    pub place: u64,
    pub symbol: u32,
    /// All of `r_info` but the symbol.
    pub kind: u64,
    pub addend: u64,
}

impl RelocationTable {
    pub(crate) fn entry_size(self, encoding: Encoding) -> u64 {
        encoding.word_size() as u64 * if self.has_addend { 3 } else { 2 }
    }
}

/// Whether there are relocations in a form that cannot be read.
pub(crate) fn has_packed_tables(image: &ElfImage) -> bool {
    PACKED.iter().any(|&tag| image.dynamic_value(tag).is_some())
}

/// The tables of `DT_RELA`, `DT_REL` and `DT_JMPREL`. Where the last is a part of another, it is not listed twice.
pub(crate) fn tables(image: &ElfImage) -> Result<Vec<RelocationTable>, EditError> {
    let plt_has_addend = image.dynamic_value(DT_PLTREL) == Some(DT_RELA);
    let kinds =
        [(DT_RELA, DT_RELASZ, true), (DT_REL, DT_RELSZ, false), (DT_JMPREL, DT_PLTRELSZ, plt_has_addend)];
    let mut tables: Vec<RelocationTable> = Vec::new();
    for (address, size, has_addend) in kinds {
        let Some((address, size)) = image.dynamic_value(address).zip(image.dynamic_value(size)) else {
            continue;
        };
        if size == 0 {
            continue;
        }
        let offset = image.offset_of(address, size);
        let offset = offset.ok_or_else(|| EditError::outside("a relocation table", address))?;
        image.slice("a relocation table", offset, size)?;
        let mut table = RelocationTable { offset, count: 0, has_addend };
        let entry = table.entry_size(image.encoding);
        table.count = size / entry;
        let end = |table: &RelocationTable| table.offset + table.count * entry;
        let is_part = |known: &RelocationTable| {
            known.has_addend == has_addend && known.offset <= offset && end(&table) <= end(known)
        };
        if !tables.iter().any(is_part) {
            // Tables that overlap in part are read up to where the next begins.
            for known in tables.iter_mut().filter(|known| known.has_addend == has_addend) {
                if known.offset < offset && end(known) > offset {
                    known.count = (offset - known.offset) / entry;
                }
            }
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Where the symbol index is in an entry, and how many bytes it has. ELF32 has three bytes above the type; MIPS64 keeps
/// the symbol first in either byte order (MIPS64 ELF object file specification, section 2.9).
fn symbol_field(encoding: Encoding, machine: u16) -> (usize, usize) {
    match (encoding.is_64, encoding.is_big_endian) {
        (false, true) => (4, 3),
        (false, false) => (5, 3),
        (true, true) => (8, 4),
        (true, false) if machine == EM_MIPS => (8, 4),
        (true, false) => (12, 4),
    }
}

/// The entries of a table.
pub(crate) fn entries(image: &ElfImage, table: RelocationTable) -> Result<Vec<Relocation>, EditError> {
    let (encoding, word) = (image.encoding, image.encoding.word_size());
    let size = table.entry_size(encoding);
    let bytes = image.slice("a relocation table", table.offset, table.count * size)?;
    let (symbol_at, symbol_size) = symbol_field(encoding, image.header.machine);
    let read = |entry: &[u8]| {
        let mut rest = entry.to_vec();
        encoding.put(&mut rest, symbol_at, symbol_size, 0);
        Some(Relocation {
            place: encoding.word(entry, 0)?,
            symbol: encoding.get(entry, symbol_at, symbol_size)? as u32,
            kind: encoding.word(&rest, word)?,
            addend: if table.has_addend { encoding.word(entry, 2 * word)? } else { 0 },
        })
    };
    let entries = bytes.chunks_exact(size as usize).map(read);
    entries.collect::<Option<_>>().ok_or_else(|| EditError::outside("a relocation table", table.offset))
}

/// The bytes of a table whose symbols are numbered anew.
pub(crate) fn renumbered(
    image: &ElfImage,
    table: RelocationTable,
    new_index: &[u32],
) -> Result<Vec<u8>, EditError> {
    let size = table.entry_size(image.encoding);
    let original = image.slice("a relocation table", table.offset, table.count * size)?;
    let (at, width) = symbol_field(image.encoding, image.header.machine);
    let mut bytes = original.to_vec();
    for entry in bytes.chunks_exact_mut(size as usize) {
        let old = image.encoding.get(entry, at, width).unwrap_or_default();
        let new = usize::try_from(old).ok().and_then(|old| new_index.get(old)).copied();
        let new = new.ok_or_else(|| {
            EditError::malformed("a relocation", table.offset, format!("symbol {old}"), "a dynamic symbol")
        })?;
        image.encoding.put(entry, at, width, u64::from(new));
    }
    Ok(bytes)
}
