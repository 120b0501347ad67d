//! Local headers, directory entries and end records as bytes (APPNOTE 4.3).

use super::time::DosTime;
use crate::archive::Method;

/// A field of 32 bits that holds this says that a zip64 field has the value (APPNOTE 4.5.3).
pub(super) const WIDE: u32 = u32::MAX;
/// Extra field with 64-bit sizes and offset.
const ZIP64: u16 = 1;
/// Version needed to extract: deflate.
const VERSION_DEFLATE: u16 = 20;
/// Version needed to extract: zip64.
const VERSION_ZIP64: u16 = 45;
/// Made by version 2.0 on Unix: the upper half of the external attributes is a mode.
const MADE_BY_UNIX: u16 = (3 << 8) | VERSION_DEFLATE;
/// The name is UTF-8.
const FLAG_UTF8: u16 = 1 << 11;
/// CRC-32 and sizes follow the data.
pub(super) const FLAG_DATA_DESCRIPTOR: u16 = 1 << 3;

/// One directory entry, to be written.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub made_by: u16,
    pub needed: u16,
    pub flags: u16,
    pub method: u16,
    pub time: DosTime,
    pub crc32: u32,
    pub compressed_size: u64,
    pub size: u64,
    pub name: Vec<u8>,
    /// Extra fields without zip64's.
    pub extra: Vec<u8>,
    pub comment: Vec<u8>,
    pub internal_attributes: u16,
    pub external_attributes: u32,
    /// Where the local header is.
    pub offset: u64,
}

impl Entry {
    /// For a file that is written anew.
    pub(super) fn new(name: &str, mode: u32, time: DosTime) -> Self {
        Self {
            made_by: MADE_BY_UNIX,
            needed: VERSION_DEFLATE,
            flags: if name.is_ascii() { 0 } else { FLAG_UTF8 },
            method: Method::Deflate.code(),
            time,
            crc32: 0,
            compressed_size: 0,
            size: 0,
            name: name.as_bytes().to_vec(),
            extra: Vec::new(),
            comment: Vec::new(),
            internal_attributes: 0,
            external_attributes: mode << 16,
            offset: 0,
        }
    }

    /// Reads the entry at the start of `bytes`; sizes and offset stay as the 32-bit fields have them, since the reader has
    /// the true ones. `None` if there is no whole entry.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let fixed = bytes.get(..46)?.strip_prefix(b"PK\x01\x02")?;
        let u16_at = |at: usize| Some(u16::from_le_bytes(fixed.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(fixed.get(at..at + 4)?.try_into().ok()?));
        let lengths = [u16_at(24)?, u16_at(26)?, u16_at(28)?].map(usize::from);
        let mut rest = bytes.get(46..)?;
        let mut take = |length: usize| {
            let (head, tail) = rest.split_at_checked(length)?;
            rest = tail;
            Some(head.to_vec())
        };
        let [name, extra, comment] = [take(lengths[0])?, take(lengths[1])?, take(lengths[2])?];
        Some(Self {
            made_by: u16_at(0)?,
            needed: u16_at(2)?,
            flags: u16_at(4)?,
            method: u16_at(6)?,
            time: DosTime { time: u16_at(8)?, date: u16_at(10)? },
            crc32: u32_at(12)?,
            compressed_size: u32_at(16)?.into(),
            size: u32_at(20)?.into(),
            name,
            extra: without_zip64(&extra),
            comment,
            internal_attributes: u16_at(32)?,
            external_attributes: u32_at(34)?,
            offset: u32_at(38)?.into(),
        })
    }

    /// The local header. `wide` reserves room for 64-bit sizes, which must be decided before they are known.
    pub(super) fn local(&self, wide: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(30 + self.name.len() + 20);
        out.extend_from_slice(b"PK\x03\x04");
        put16(&mut out, if wide { VERSION_ZIP64 } else { self.needed });
        self.shared(&mut out, wide);
        put16(&mut out, self.name.len() as u16);
        put16(&mut out, if wide { 20 } else { 0 });
        out.extend_from_slice(&self.name);
        if wide {
            put16(&mut out, ZIP64);
            put16(&mut out, 16);
            out.extend_from_slice(&self.size.to_le_bytes());
            out.extend_from_slice(&self.compressed_size.to_le_bytes());
        }
        out
    }

    /// The directory entry. A field that needs 64 bits goes to the zip64 extra field, in APPNOTE's order.
    pub(super) fn central(&self) -> Vec<u8> {
        let mut zip64 = Vec::new();
        for value in [self.size, self.compressed_size, self.offset] {
            if value >= WIDE.into() {
                zip64.extend_from_slice(&value.to_le_bytes());
            }
        }
        let mut extra = Vec::new();
        if !zip64.is_empty() {
            put16(&mut extra, ZIP64);
            put16(&mut extra, zip64.len() as u16);
            extra.extend_from_slice(&zip64);
        }
        extra.extend_from_slice(&self.extra);
        let needed = if zip64.is_empty() { self.needed } else { self.needed.max(VERSION_ZIP64) };
        let mut out = Vec::with_capacity(46 + self.name.len() + extra.len() + self.comment.len());
        out.extend_from_slice(b"PK\x01\x02");
        put16(&mut out, self.made_by);
        put16(&mut out, needed);
        self.shared(&mut out, false);
        put16(&mut out, self.name.len() as u16);
        put16(&mut out, extra.len() as u16);
        put16(&mut out, self.comment.len() as u16);
        put16(&mut out, 0);
        put16(&mut out, self.internal_attributes);
        put32(&mut out, self.external_attributes);
        put32(&mut out, narrow(self.offset));
        out.extend_from_slice(&self.name);
        out.extend_from_slice(&extra);
        out.extend_from_slice(&self.comment);
        out
    }

    /// Flags to uncompressed size, which both headers have.
    fn shared(&self, out: &mut Vec<u8>, wide: bool) {
        put16(out, self.flags);
        put16(out, self.method);
        put16(out, self.time.time);
        put16(out, self.time.date);
        put32(out, self.crc32);
        put32(out, if wide { WIDE } else { narrow(self.compressed_size) });
        put32(out, if wide { WIDE } else { narrow(self.size) });
    }
}

/// The end of the directory: a zip64 record and its locator where a number needs them, then the end record (APPNOTE 4.3.14
/// to 4.3.16).
pub(super) fn end_records(entries: u64, directory: u64, size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    if entries >= u16::MAX.into() || directory >= WIDE.into() || size >= WIDE.into() {
        out.extend_from_slice(b"PK\x06\x06");
        out.extend_from_slice(&44u64.to_le_bytes());
        put16(&mut out, (3 << 8) | VERSION_ZIP64);
        put16(&mut out, VERSION_ZIP64);
        put32(&mut out, 0);
        put32(&mut out, 0);
        for value in [entries, entries, size, directory] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(b"PK\x06\x07");
        put32(&mut out, 0);
        out.extend_from_slice(&(directory.saturating_add(size)).to_le_bytes());
        put32(&mut out, 1);
    }
    out.extend_from_slice(b"PK\x05\x06");
    put32(&mut out, 0);
    let count = u16::try_from(entries).unwrap_or(u16::MAX);
    put16(&mut out, count);
    put16(&mut out, count);
    put32(&mut out, narrow(size));
    put32(&mut out, narrow(directory));
    put16(&mut out, 0);
    out
}

/// Extra fields without zip64's, whose place follows from what this writer puts where. Bytes that are no field stay.
fn without_zip64(extra: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut rest = extra;
    while let Some(&[a, b, c, d]) = rest.first_chunk::<4>() {
        let length = 4 + usize::from(u16::from_le_bytes([c, d]));
        let Some((field, tail)) = rest.split_at_checked(length) else { break };
        if u16::from_le_bytes([a, b]) != ZIP64 {
            kept.extend_from_slice(field);
        }
        rest = tail;
    }
    kept.extend_from_slice(rest);
    kept
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(WIDE)
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}
