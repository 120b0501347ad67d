//! The format of the symbol tables: a sorted, front-coded pool of names, read in place.
//!
//! A table is a byte string compiled into the program. Nothing is parsed at start: a look-up is a binary
//! search over blocks of [`BLOCK`] names, then a walk through one block. All integers are little-endian.
//!
//! ```text
//! magic            8 bytes, MAGIC
//! section offsets  7 x u32, from the start: architectures, libraries, versions, releases, version releases,
//!                  block index, blocks
//! symbol count     u32
//! block count      u32
//! string table     u16 count, then u8 length and bytes for each (architectures, libraries, versions,
//!                  releases)
//! version releases u8 each version: index of the release that introduced it, NONE where unknown
//! block index      u32 each block: its offset in the section of blocks
//! block            up to BLOCK symbols, sorted by bytes; each: varint length shared with the name before
//!                  it (0 for the first), varint length of the rest, the rest, varint record count, records
//! record           RECORD_LEN bytes: u16 architecture bits, u8 library, u8 kind and flags, u16 version,
//!                  u8 since, u8 until (NONE: not known to be gone), u32 object size
//! ```
//!
//! Readers check every offset, so that even a damaged table gives no answer instead of a panic; that the
//! committed tables are whole is the business of a test.

use super::Release;

/// The first bytes of a table.
pub const MAGIC: [u8; 8] = *b"abisyms1";
/// Bytes before the first section.
pub const HEADER_LEN: usize = 8 + 7 * 4 + 2 * 4;
/// Names in a block.
pub const BLOCK: usize = 16;
/// Bytes of a record.
pub const RECORD_LEN: usize = 12;
/// An index that stands for "unknown" or "never".
pub const NONE: u8 = 0xff;
/// The bits of the flags byte that hold the kind.
pub const KIND_MASK: u8 = 0x07;
/// Flag: the default version of the symbol in its library (`symbol@@VERSION`).
pub const FLAG_DEFAULT: u8 = 0x08;
/// Flag: `since` is the oldest release that was seen to have the symbol; it may have it for longer.
pub const FLAG_SINCE_AT_LATEST: u8 = 0x10;
/// Flag: `until` is the oldest release that was seen to lack the symbol; it may lack it for longer.
pub const FLAG_UNTIL_AT_LATEST: u8 = 0x20;

/// What a symbol is; the number is the one in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `STT_FUNC`.
    Function = 0,
    /// `STT_OBJECT`, `STT_COMMON`.
    Object = 1,
    /// `STT_TLS`.
    Tls = 2,
    /// `STT_GNU_IFUNC`.
    IFunc = 3,
    /// `STT_NOTYPE`.
    NoType = 4,
}

impl Kind {
    const fn from_bits(bits: u8) -> Self {
        match bits & KIND_MASK {
            0 => Self::Function,
            1 => Self::Object,
            2 => Self::Tls,
            3 => Self::IFunc,
            _ => Self::NoType,
        }
    }
}

/// One fact: these architectures' library exports the symbol at this version, from one release to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// Bit n: the n-th architecture of the table.
    pub archs: u16,
    /// Index in the table of libraries.
    pub library: u8,
    /// Index in the table of versions.
    pub version: u16,
    /// Index in the table of releases.
    pub since: u8,
    /// Index in the table of releases of the first one without the symbol.
    pub until: u8,
    /// What the symbol is.
    pub kind: Kind,
    /// `FLAG_*`.
    pub flags: u8,
    /// Bytes of an object, 0 for everything else.
    pub size: u32,
}

impl Record {
    /// The bytes in a table.
    pub fn encode(&self) -> [u8; RECORD_LEN] {
        let [a0, a1] = self.archs.to_le_bytes();
        let [v0, v1] = self.version.to_le_bytes();
        let [s0, s1, s2, s3] = self.size.to_le_bytes();
        let flags = (self.flags & !KIND_MASK) | self.kind as u8;
        [a0, a1, self.library, flags, v0, v1, self.since, self.until, s0, s1, s2, s3]
    }

    fn decode(bytes: &[u8; RECORD_LEN]) -> Self {
        let [a0, a1, library, flags, v0, v1, since, until, s0, s1, s2, s3] = *bytes;
        Self {
            archs: u16::from_le_bytes([a0, a1]),
            library,
            version: u16::from_le_bytes([v0, v1]),
            since,
            until,
            kind: Kind::from_bits(flags),
            flags: flags & !KIND_MASK,
            size: u32::from_le_bytes([s0, s1, s2, s3]),
        }
    }
}

/// Sections, in the order of their offsets in the header.
#[derive(Debug, Clone, Copy)]
enum Section {
    Archs,
    Libraries,
    Versions,
    Releases,
    VersionReleases,
    Index,
    Blocks,
}

/// A table, read in place.
#[derive(Debug, Clone, Copy)]
pub struct Pool {
    bytes: &'static [u8],
}

impl Pool {
    /// A table over `bytes`. Nothing is looked at yet.
    pub const fn new(bytes: &'static [u8]) -> Self {
        Self { bytes }
    }

    /// The whole table.
    pub const fn bytes(self) -> &'static [u8] {
        self.bytes
    }

    /// The bit of an architecture, by its spelling in a platform tag. `None`: the table has no list for it.
    pub fn arch_bit(self, tag: &str) -> Option<u16> {
        let index = self.strings(Section::Archs).position(|name| name == tag)?;
        1_u16.checked_shl(u32::try_from(index).ok()?)
    }

    /// The architectures that the table has a list for.
    pub fn archs(self) -> impl Iterator<Item = &'static str> {
        self.strings(Section::Archs)
    }

    /// The n-th library: its soname.
    pub fn library(self, index: u8) -> Option<&'static str> {
        self.strings(Section::Libraries).nth(usize::from(index))
    }

    /// The sonames of all libraries.
    pub fn libraries(self) -> impl Iterator<Item = &'static str> {
        self.strings(Section::Libraries)
    }

    /// The n-th version node; empty for symbols without a version.
    pub fn version(self, index: u16) -> Option<&'static str> {
        self.strings(Section::Versions).nth(usize::from(index))
    }

    /// All version nodes, with the release that introduced each, where known.
    pub fn versions(self) -> impl Iterator<Item = (&'static str, Option<Release>)> {
        self.strings(Section::Versions).enumerate().map(move |(index, name)| {
            let release = self.section(Section::VersionReleases).get(index).and_then(|&r| self.release(r));
            (name, release)
        })
    }

    /// The index of a version node.
    pub fn version_index(self, name: &str) -> Option<u16> {
        u16::try_from(self.strings(Section::Versions).position(|version| version == name)?).ok()
    }

    /// The n-th release.
    pub fn release(self, index: u8) -> Option<Release> {
        if index == NONE {
            return None;
        }
        self.strings(Section::Releases).nth(usize::from(index))?.parse().ok()
    }

    /// All releases, oldest first.
    pub fn releases(self) -> impl Iterator<Item = Release> {
        self.strings(Section::Releases).filter_map(|release| release.parse().ok())
    }

    /// The records of a symbol; none if no architecture has it.
    pub fn records(self, symbol: &str) -> Records {
        self.find(symbol.as_bytes()).unwrap_or_default()
    }

    /// Every symbol with its records, sorted by the bytes of the name. Reads the whole table.
    pub fn symbols(self) -> impl Iterator<Item = (String, Records)> {
        let mut name = Vec::new();
        (0..self.block_count()).filter_map(move |block| self.block(block)).flat_map(move |mut cursor| {
            let mut entries = Vec::new();
            while let Some(records) = cursor.next_entry(&mut name) {
                entries.push((String::from_utf8_lossy(&name).into_owned(), records));
            }
            entries
        })
    }

    /// How many symbols the table says to have.
    pub fn symbol_count(self) -> usize {
        self.u32_at(8 + 7 * 4)
    }

    fn block_count(self) -> usize {
        self.u32_at(8 + 8 * 4).min(self.section(Section::Index).len() / 4)
    }

    fn find(self, symbol: &[u8]) -> Option<Records> {
        let mut name = Vec::with_capacity(symbol.len());
        let (mut low, mut high) = (0, self.block_count());
        // The last block whose first name is not after the symbol.
        while low < high {
            let middle = low + (high - low) / 2;
            self.block(middle)?.next_entry(&mut name)?;
            if name.as_slice() <= symbol {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut cursor = self.block(low.checked_sub(1)?)?;
        while let Some(records) = cursor.next_entry(&mut name) {
            if name.as_slice() == symbol {
                return Some(records);
            }
        }
        None
    }

    fn block(self, index: usize) -> Option<Cursor> {
        let offsets = self.section(Section::Index);
        let start = le_u32(offsets, index.checked_mul(4)?)?;
        let blocks = self.section(Section::Blocks);
        let end = le_u32(offsets, index.checked_add(1)?.checked_mul(4)?).unwrap_or(blocks.len());
        Some(Cursor { rest: blocks.get(start..end)? })
    }

    fn strings(self, section: Section) -> impl Iterator<Item = &'static str> {
        let bytes = self.section(section);
        let (count, mut rest) = match bytes.split_first_chunk::<2>() {
            Some((count, rest)) => (u16::from_le_bytes(*count), rest),
            None => (0, bytes),
        };
        (0..count).map_while(move |_| {
            let (&len, tail) = rest.split_first()?;
            let (text, tail) = tail.split_at_checked(usize::from(len))?;
            rest = tail;
            std::str::from_utf8(text).ok()
        })
    }

    fn section(self, section: Section) -> &'static [u8] {
        let at = 8 + 4 * (section as usize);
        let start = self.u32_at(at);
        let end = match section {
            Section::Blocks => self.bytes.len(),
            _ => self.u32_at(at + 4),
        };
        self.bytes.get(start..end).unwrap_or_default()
    }

    fn u32_at(self, at: usize) -> usize {
        le_u32(self.bytes, at).unwrap_or(0)
    }
}

fn le_u32(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

/// A walk through the symbols of one block.
struct Cursor {
    rest: &'static [u8],
}

impl Cursor {
    /// Moves to the next symbol and turns `name`, which must hold the one before it, into its name.
    fn next_entry(&mut self, name: &mut Vec<u8>) -> Option<Records> {
        let shared = self.varint()?;
        let len = self.varint()?;
        name.truncate(shared);
        name.extend_from_slice(self.take(len)?);
        let records = self.varint()?;
        Some(Records { rest: self.take(records.checked_mul(RECORD_LEN)?)? })
    }

    fn varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        for shift in (0..28).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, len: usize) -> Option<&'static [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }
}

/// The records of one symbol.
#[derive(Debug, Clone, Default)]
pub struct Records {
    rest: &'static [u8],
}

impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let (record, rest) = self.rest.split_first_chunk::<RECORD_LEN>()?;
        self.rest = rest;
        Some(Record::decode(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_table_answers_nothing() {
        for bytes in [&[][..], &MAGIC[..], &[0xff; 200][..], &[0; 44][..]] {
            let pool = Pool::new(Box::leak(bytes.to_vec().into_boxed_slice()));
            assert_eq!(pool.records("memcpy").count(), 0);
            assert_eq!(pool.symbols().count(), 0);
            assert_eq!(pool.versions().count(), 0);
            assert_eq!(pool.arch_bit("x86_64"), None);
        }
    }

    #[test]
    fn a_record_survives_its_encoding() {
        let record = Record {
            archs: 0x1ff,
            library: 3,
            version: 300,
            since: 7,
            until: NONE,
            kind: Kind::IFunc,
            flags: FLAG_DEFAULT | FLAG_SINCE_AT_LATEST,
            size: 70000,
        };
        assert_eq!(Record::decode(&record.encode()), record);
    }
}
