//! DEFLATE in blocks that several threads work on, with a result that does not depend on how many there are.
//!
//! Content is cut into blocks of fixed size. Each is compressed by itself, with the 32 KiB before it as its dictionary
//! (RFC 1951 distances reach no further), and ends on a byte boundary: an empty stored block (zlib's `Z_SYNC_FLUSH`) for
//! all but the last. So the blocks put together are one stream, about as small as if one thread had made it.

use std::io::{self, Write};

use flate2::{Compress, Compression, FlushCompress, Status};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Bytes of content in a block.
const BLOCK: usize = 1 << 20;
/// How far back DEFLATE can refer.
const WINDOW: usize = 32 << 10;
/// Blocks that are compressed before any of them is written, which bounds memory.
const BATCH: usize = 32;

/// Writes `content` compressed at `level` (0 to 9) and gives the number of bytes written.
pub(super) fn deflate(content: &[u8], level: u32, output: &mut dyn Write) -> io::Result<u64> {
    let blocks = content.len().div_ceil(BLOCK).max(1);
    let mut written = 0;
    for first in (0..blocks).step_by(BATCH) {
        let batch = first..blocks.min(first + BATCH);
        let compressed: Vec<io::Result<Vec<u8>>> =
            batch.into_par_iter().map(|index| block(content, index, index + 1 == blocks, level)).collect();
        for bytes in compressed {
            let bytes = bytes?;
            output.write_all(&bytes)?;
            written += bytes.len() as u64;
        }
    }
    Ok(written)
}

fn block(content: &[u8], index: usize, last: bool, level: u32) -> io::Result<Vec<u8>> {
    let start = index * BLOCK;
    let mut rest = content.get(start..content.len().min(start + BLOCK)).unwrap_or_default();
    let mut encoder = Compress::new(Compression::new(level), false);
    if let Some(dictionary) = content.get(start.saturating_sub(WINDOW)..start).filter(|d| !d.is_empty()) {
        encoder.set_dictionary(dictionary).map_err(io::Error::other)?;
    }
    let flush = if last { FlushCompress::Finish } else { FlushCompress::Sync };
    let mut output = Vec::with_capacity(rest.len() / 2 + 1024);
    loop {
        let before = encoder.total_in();
        let status = encoder.compress_vec(rest, &mut output, flush).map_err(io::Error::other)?;
        let consumed = usize::try_from(encoder.total_in() - before).unwrap_or(usize::MAX);
        rest = rest.get(consumed..).unwrap_or_default();
        // zlib: a flush is complete when the call returns with room left.
        let has_room = output.len() < output.capacity();
        match status {
            Status::StreamEnd => return Ok(output),
            Status::Ok | Status::BufError if !last && rest.is_empty() && has_room => return Ok(output),
            Status::Ok | Status::BufError => output.reserve(64 << 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Bytes that compress, and refer far back: words of a small vocabulary in an order that never repeats.
    fn text(length: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut bytes = Vec::with_capacity(length + 16);
        while bytes.len() < length {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.extend_from_slice(format!("w{} ", state >> 20).as_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    fn round_trip(content: &[u8], level: u32) -> usize {
        let mut compressed = Vec::new();
        let written = deflate(content, level, &mut compressed).expect("writing to memory");
        assert_eq!(written, compressed.len() as u64);
        let mut back = Vec::new();
        flate2::read::DeflateDecoder::new(compressed.as_slice())
            .read_to_end(&mut back)
            .expect("a valid stream");
        assert!(back == content, "level {level}, {} bytes", content.len());
        compressed.len()
    }

    #[test]
    fn every_length_around_a_block_comes_back() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 17] {
            for level in [0, 1, 6, 9] {
                round_trip(&text(length), level);
            }
        }
    }

    #[test]
    fn blocks_cost_next_to_nothing() {
        let content = text(5 * BLOCK);
        let ours = round_trip(&content, 6);
        let mut one = flate2::write::DeflateEncoder::new(Vec::new(), Compression::new(6));
        one.write_all(&content).expect("writing to memory");
        let one = one.finish().expect("writing to memory").len();
        assert!(ours < one + one / 200, "{ours} against {one}");
    }

    #[test]
    fn the_number_of_threads_does_not_show() {
        let content = text(40 * BLOCK / 8);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| {
                let mut compressed = Vec::new();
                deflate(&content, 6, &mut compressed).expect("writing to memory");
                compressed
            })
        };
        assert!(with(1) == with(3));
    }
}
