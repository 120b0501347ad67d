//! A small zip writer for tests, which can lie wherever a test needs a lie. It shares no code with the reader.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// A member to be written. The constructors make an honest one; tests change fields afterwards.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: Vec<u8>,
    pub local_name: Option<Vec<u8>>,
    pub method: u16,
    pub local_method: Option<u16>,
    pub flags: u16,
    pub crc32: u32,
    pub size: u64,
    pub data: Vec<u8>,
    pub compressed_size: Option<u64>,
    pub mode: u32,
    pub zip64: bool,
    pub streamed: Option<Descriptor>,
    pub comment: Vec<u8>,
    /// Points at the local header of an earlier entry instead of having its own.
    pub same_as: Option<usize>,
}

/// How the data descriptor of a streamed entry looks.
#[derive(Debug, Clone, Copy)]
pub enum Descriptor {
    Signed32,
    Signed64,
    Bare32,
    Missing,
}

impl Entry {
    pub fn stored(name: &str, content: &[u8]) -> Self {
        Self::with_data(name, content, 0, content.to_vec())
    }

    pub fn deflated(name: &str, content: &[u8]) -> Self {
        Self::with_data(name, content, 8, deflate(content))
    }

    pub fn bzip2(name: &str, content: &[u8]) -> Self {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(9));
        encoder.write_all(content).expect("writing to memory");
        Self::with_data(name, content, 12, encoder.finish().expect("writing to memory"))
    }

    /// With the end marker, which the encoder always writes, and so flag bit 1.
    pub fn lzma(name: &str, content: &[u8]) -> Self {
        let mut alone = Vec::new();
        lzma_rs::lzma_compress(&mut &content[..], &mut alone).expect("writing to memory");
        // `.lzma` has 5 bytes of properties and 8 of size; the zip form has 4 other bytes and no size.
        let mut data = vec![9, 4, 5, 0];
        data.extend_from_slice(&alone[..5]);
        data.extend_from_slice(&alone[13..]);
        let mut entry = Self::with_data(name, content, 14, data);
        entry.flags |= 2;
        entry
    }

    /// One frame per 100,000 bytes, each of raw blocks with a skippable frame before it.
    pub fn zstd(name: &str, content: &[u8]) -> Self {
        let mut data = Vec::new();
        for piece in content.chunks(100_000) {
            data.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
            data.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0xa0]);
            let length = u32::try_from(piece.len()).expect("small");
            data.extend_from_slice(&length.to_le_bytes());
            data.extend_from_slice(&(1 | (length << 3)).to_le_bytes()[..3]);
            data.extend_from_slice(piece);
        }
        Self::with_data(name, content, 93, data)
    }

    pub fn directory(name: &str) -> Self {
        Self { mode: 0o040_755, ..Self::stored(name, b"") }
    }

    pub fn symlink(name: &str, target: &str) -> Self {
        Self { mode: 0o120_777, ..Self::stored(name, target.as_bytes()) }
    }

    pub fn streamed(mut self, descriptor: Descriptor) -> Self {
        self.flags |= 8;
        self.streamed = Some(descriptor);
        self
    }

    pub fn raw_name(mut self, name: &[u8]) -> Self {
        self.name = name.to_vec();
        self
    }

    fn with_data(name: &str, content: &[u8], method: u16, data: Vec<u8>) -> Self {
        Self {
            name: name.as_bytes().to_vec(),
            local_name: None,
            method,
            local_method: None,
            flags: 0,
            crc32: crc32fast::hash(content),
            size: content.len() as u64,
            data,
            compressed_size: None,
            mode: 0o100_644,
            zip64: false,
            streamed: None,
            comment: Vec::new(),
            same_as: None,
        }
    }

    fn compressed_size(&self) -> u64 {
        self.compressed_size.unwrap_or(self.data.len() as u64)
    }
}

pub fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

/// An archive to be written.
#[derive(Debug, Clone, Default)]
pub struct Zip {
    pub entries: Vec<Entry>,
    pub prefix: Vec<u8>,
    /// Add the length of the prefix to all offsets.
    pub adjust_offsets: bool,
    pub comment: Vec<u8>,
    pub zip64_end: bool,
    pub declared_entries: Option<u16>,
}

impl Zip {
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries, ..Self::default() }
    }

    pub fn write(&self) -> Vec<u8> {
        let base = if self.adjust_offsets { 0 } else { self.prefix.len() };
        let mut out = self.prefix.clone();
        let mut offsets = Vec::new();
        for entry in &self.entries {
            if let Some(earlier) = entry.same_as {
                offsets.push(offsets[earlier]);
                continue;
            }
            offsets.push((out.len() - base) as u64);
            write_local(&mut out, entry);
        }
        let directory = (out.len() - base) as u64;
        for (entry, offset) in self.entries.iter().zip(&offsets) {
            write_central(&mut out, entry, *offset);
        }
        let size = (out.len() - base) as u64 - directory;
        self.write_end(&mut out, base as u64, directory, size);
        out
    }

    fn write_end(&self, out: &mut Vec<u8>, base: u64, directory: u64, size: u64) {
        let count = self.entries.len() as u64;
        if self.zip64_end {
            let record = out.len() as u64 - base;
            out.extend_from_slice(b"PK\x06\x06");
            put64(out, 44);
            put16(out, 45);
            put16(out, 45);
            put32(out, 0);
            put32(out, 0);
            for value in [count, count, size, directory] {
                put64(out, value);
            }
            out.extend_from_slice(b"PK\x06\x07");
            put32(out, 0);
            put64(out, record);
            put32(out, 1);
        }
        out.extend_from_slice(b"PK\x05\x06");
        put32(out, 0);
        let declared = self.declared_entries.unwrap_or(count as u16);
        let (declared, size, directory) = if self.zip64_end {
            (u16::MAX, u32::MAX, u32::MAX)
        } else {
            (declared, size as u32, directory as u32)
        };
        put16(out, declared);
        put16(out, declared);
        put32(out, size);
        put32(out, directory);
        put16(out, self.comment.len() as u16);
        out.extend_from_slice(&self.comment);
    }
}

fn write_local(out: &mut Vec<u8>, entry: &Entry) {
    let name = entry.local_name.as_ref().unwrap_or(&entry.name);
    let streamed = entry.streamed.is_some();
    out.extend_from_slice(b"PK\x03\x04");
    put16(out, 20);
    put16(out, entry.flags);
    put16(out, entry.local_method.unwrap_or(entry.method));
    put32(out, 0x0021_0000);
    put32(out, if streamed { 0 } else { entry.crc32 });
    let sizes = if streamed { [0, 0] } else { [entry.compressed_size(), entry.size] };
    for size in sizes {
        put32(out, if entry.zip64 { u32::MAX } else { size as u32 });
    }
    put16(out, name.len() as u16);
    put16(out, if entry.zip64 { 20 } else { 0 });
    out.extend_from_slice(name);
    if entry.zip64 {
        put16(out, 1);
        put16(out, 16);
        put64(out, sizes[1]);
        put64(out, sizes[0]);
    }
    out.extend_from_slice(&entry.data);
    match entry.streamed {
        None | Some(Descriptor::Missing) => {}
        Some(kind) => {
            if !matches!(kind, Descriptor::Bare32) {
                out.extend_from_slice(b"PK\x07\x08");
            }
            put32(out, entry.crc32);
            for size in [entry.compressed_size(), entry.size] {
                if matches!(kind, Descriptor::Signed64) { put64(out, size) } else { put32(out, size as u32) }
            }
        }
    }
}

fn write_central(out: &mut Vec<u8>, entry: &Entry, offset: u64) {
    out.extend_from_slice(b"PK\x01\x02");
    put16(out, 0x0314);
    put16(out, 20);
    put16(out, entry.flags);
    put16(out, entry.method);
    put32(out, 0x0021_0000);
    put32(out, entry.crc32);
    for size in [entry.compressed_size(), entry.size] {
        put32(out, if entry.zip64 { u32::MAX } else { size as u32 });
    }
    put16(out, entry.name.len() as u16);
    put16(out, if entry.zip64 { 20 } else { 0 });
    put16(out, entry.comment.len() as u16);
    put32(out, 0);
    put32(out, entry.mode << 16);
    put32(out, offset as u32);
    out.extend_from_slice(&entry.name);
    if entry.zip64 {
        put16(out, 1);
        put16(out, 16);
        put64(out, entry.size);
        put64(out, entry.compressed_size());
    }
    out.extend_from_slice(&entry.comment);
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}
