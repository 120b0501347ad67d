//! Archives that the wheel builder cannot write: it is honest about sizes and has no zip64 (APPNOTE 4.3.14, 4.5.3).

use std::io::Write;

use abiaudit_testing::Entry;
use flate2::{Compress, Compression, FlushCompress};

/// Rewrites an archive of the wheel builder with zip64 fields on every member and a zip64 end record. The member
/// `declared.0` claims to have `declared.1` bytes.
pub fn zip64(archive: &[u8], declared: Option<(&str, u64)>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    let members = members(archive);
    for member in &members {
        let size = match declared {
            Some((name, size)) if name.as_bytes() == member.name => size,
            _ => u64::from(member.size),
        };
        let offset = out.len() as u64;
        let compressed = member.data.len() as u64;
        let mut extra = vec![1, 0, 16, 0];
        extra.extend(size.to_le_bytes());
        extra.extend(compressed.to_le_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(header(member));
        out.extend(20_u16.to_le_bytes());
        out.extend(member.name);
        out.extend(&extra);
        out.extend(member.data);
        extra[2] = 24;
        extra.extend(offset.to_le_bytes());
        directory.extend(b"PK\x01\x02\x2d\x03");
        directory.extend(header(member));
        directory.extend(28_u16.to_le_bytes());
        directory.extend([0; 6]);
        directory.extend(member.external);
        directory.extend(u32::MAX.to_le_bytes());
        directory.extend(member.name);
        directory.extend(&extra);
    }
    let start = out.len() as u64;
    out.extend(&directory);
    let end = out.len() as u64;
    let count = members.len() as u64;
    // Zip64 end record, its locator, end record.
    out.extend(b"PK\x06\x06");
    out.extend(44_u64.to_le_bytes());
    out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for value in [count, count, end - start, start] {
        out.extend(value.to_le_bytes());
    }
    out.extend(b"PK\x06\x07\0\0\0\0");
    out.extend(end.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([0xff; 12]);
    out.extend([0, 0]);
    out
}

/// A member as it stands in an archive of the wheel builder.
struct Member<'a> {
    /// From the flags to the CRC-32: what local and central header share before the sizes.
    common: &'a [u8],
    size: u32,
    name: &'a [u8],
    data: &'a [u8],
    /// External attributes.
    external: &'a [u8],
}

/// Version needed, flags, method, time, CRC-32, sizes that say "see the extra field", length of the name.
fn header(member: &Member<'_>) -> Vec<u8> {
    let mut out = vec![45, 0];
    out.extend(member.common);
    out.extend([0xff; 8]);
    out.extend(u16::try_from(member.name.len()).expect("a short name").to_le_bytes());
    out
}

fn members(archive: &[u8]) -> Vec<Member<'_>> {
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([archive[at], archive[at + 1]]));
    let u32_at = |at: usize| u32::from_le_bytes(archive[at..at + 4].try_into().expect("4 bytes"));
    // No comment, nothing after the end record.
    let end = archive.len() - 22;
    let mut at = u32_at(end + 16) as usize;
    let mut members = Vec::new();
    for _ in 0..u16_at(end + 10) {
        let length = u16_at(at + 28);
        let local = u32_at(at + 42) as usize;
        let data = local + 30 + u16_at(local + 26) + u16_at(local + 28);
        members.push(Member {
            common: &archive[at + 8..at + 20],
            size: u32_at(at + 24),
            name: &archive[at + 46..at + 46 + length],
            data: &archive[data..data + u32_at(at + 20) as usize],
            external: &archive[at + 38..at + 42],
        });
        at += 46 + length;
    }
    members
}

/// Turns an entry into `head` followed by `mebibytes` of zeros, deflated a thousandfold.
pub fn bomb(entry: &mut Entry, head: &[u8], mebibytes: u32) {
    let mut compress = Compress::new(Compression::best(), false);
    let mut block = |content: &[u8], flush| {
        let mut out = Vec::with_capacity(content.len() + 1024);
        compress.compress_vec(content, &mut out, flush).expect("deflate");
        out
    };
    let zeros = vec![0; 1 << 20];
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    let mut data = block(head, FlushCompress::Full);
    // A full flush forgets what was before, so that the same bytes can stand there again and again.
    let again = block(&zeros, FlushCompress::Full);
    let mut zero_hash = crc32fast::Hasher::new();
    zero_hash.update(&zeros);
    for _ in 0..mebibytes {
        data.extend_from_slice(&again);
        hasher.combine(&zero_hash);
    }
    data.extend(block(&[], FlushCompress::Finish));
    entry.method = 8;
    entry.data = data;
    entry.size = u32::try_from(head.len()).expect("a short head") + (mebibytes << 20);
    entry.crc32 = hasher.finalize();
}

/// Method 12.
pub fn bzip2(entry: &mut Entry, content: &[u8]) {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(content).expect("writing to memory");
    entry.data = encoder.finish().expect("writing to memory");
    entry.method = 12;
}

/// Method 14: version of the encoder, length of the properties, properties, stream (APPNOTE 5.8.8).
pub fn lzma(entry: &mut Entry, content: &[u8]) {
    let mut alone = Vec::new();
    lzma_rs::lzma_compress(&mut &*content, &mut alone).expect("writing to memory");
    let (properties, rest) = alone.split_at(5);
    let stream = &rest[8..];
    entry.data = [&[9, 20, 5, 0], properties, stream].concat();
    entry.method = 14;
    // Bit 1: the stream has an end marker, as this encoder writes it.
    entry.flags |= 2;
}

/// Method 93: one frame with one raw block (RFC 8878).
pub fn zstd(entry: &mut Entry, content: &[u8]) {
    let size = u32::try_from(content.len()).expect("a small file");
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend(size.to_le_bytes());
    // Last block, raw, size.
    frame.extend(&((size << 3) | 1).to_le_bytes()[..3]);
    frame.extend(content);
    entry.data = frame;
    entry.method = 93;
}
