//! A small zip writer that can lie (PKWARE APPNOTE 6.3.10). It shares no code with the reader under test.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// One member. The constructors make an honest one; a test changes fields afterwards.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name in the central directory.
    pub name: Vec<u8>,
    /// Name in the local header, where it shall be another.
    pub local_name: Option<Vec<u8>>,
    /// Compression method: 0 stored, 8 deflate.
    pub method: u16,
    /// General purpose flags; bit 0 means encrypted.
    pub flags: u16,
    /// CRC-32 of the content.
    pub crc32: u32,
    /// Declared size of the content in bytes.
    pub size: u32,
    /// What stands in the file.
    pub data: Vec<u8>,
    /// Unix mode with the file type, such as `0o100_644`.
    pub mode: u32,
    /// Uses the local header of this earlier entry (by index) instead of having its own.
    pub same_as: Option<usize>,
}

impl Entry {
    /// A regular file, deflated where that makes it smaller.
    ///
    /// # Panics
    /// If the content has more than 4 GiB.
    pub fn new(name: impl AsRef<[u8]>, content: &[u8]) -> Self {
        let mut entry = Self::stored(name, content);
        let deflated = deflate(content);
        if deflated.len() < content.len() {
            entry.method = 8;
            entry.data = deflated;
        }
        entry
    }

    /// A regular file, not compressed.
    ///
    /// # Panics
    /// If the content has more than 4 GiB.
    pub fn stored(name: impl AsRef<[u8]>, content: &[u8]) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            local_name: None,
            method: 0,
            // Bit 11: the name is UTF-8.
            flags: 1 << 11,
            crc32: crc32fast::hash(content),
            size: u32::try_from(content.len()).expect("a small file"),
            data: content.to_vec(),
            mode: 0o100_644,
            same_as: None,
        }
    }
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

/// An archive. Offsets count from the end of `prefix` as self-extracting archives have them.
#[derive(Debug, Clone, Default)]
pub struct Zip {
    /// Members, in the order of the central directory.
    pub entries: Vec<Entry>,
    /// Bytes before the first member.
    pub prefix: Vec<u8>,
    /// Bytes after the end record.
    pub trailing: Vec<u8>,
}

impl Zip {
    /// The file.
    ///
    /// # Panics
    /// If it would have more than 4 GiB or 65,535 members, or an entry names a later one in `same_as`.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut offsets: Vec<u32> = Vec::new();
        for entry in &self.entries {
            if let Some(earlier) = entry.same_as {
                offsets.push(offsets[earlier]);
                continue;
            }
            offsets.push(length(&out));
            out.extend_from_slice(b"PK\x03\x04");
            header(&mut out, entry, entry.local_name.as_ref().unwrap_or(&entry.name));
            put16(&mut out, 0);
            out.extend_from_slice(entry.local_name.as_ref().unwrap_or(&entry.name));
            out.extend_from_slice(&entry.data);
        }
        let directory = length(&out);
        for (entry, offset) in self.entries.iter().zip(&offsets) {
            out.extend_from_slice(b"PK\x01\x02");
            // Made by Unix, so that the upper half of the external attributes is the mode.
            put16(&mut out, 0x0314);
            header(&mut out, entry, &entry.name);
            // Extra field, comment, disk, internal attributes.
            put16(&mut out, 0);
            put16(&mut out, 0);
            put32(&mut out, 0);
            put32(&mut out, entry.mode << 16);
            put32(&mut out, *offset);
            out.extend_from_slice(&entry.name);
        }
        let size = length(&out) - directory;
        let count = u16::try_from(self.entries.len()).expect("few members");
        out.extend_from_slice(b"PK\x05\x06");
        put32(&mut out, 0);
        put16(&mut out, count);
        put16(&mut out, count);
        put32(&mut out, size);
        put32(&mut out, directory);
        put16(&mut out, 0);
        [self.prefix.as_slice(), &out, &self.trailing].concat()
    }
}

/// What local and central header share, from the version needed to the length of the name.
fn header(out: &mut Vec<u8>, entry: &Entry, name: &[u8]) {
    put16(out, 20);
    put16(out, entry.flags);
    put16(out, entry.method);
    // 1980-01-01 00:00.
    put32(out, 0x0021_0000);
    put32(out, entry.crc32);
    put32(out, u32::try_from(entry.data.len()).expect("a small file"));
    put32(out, entry.size);
    put16(out, u16::try_from(name.len()).expect("a short name"));
}

fn length(out: &[u8]) -> u32 {
    u32::try_from(out.len()).expect("a small archive")
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}
