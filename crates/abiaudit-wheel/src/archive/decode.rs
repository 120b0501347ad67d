//! Member data to content: the hot loop of the whole program.
//!
//! DEFLATE runs directly on the mapped bytes, into one buffer that stays in the processor's cache while CRC-32
//! and the sink look at it. The other methods are rare and go through their crates' own buffers.

use std::io::{self, Read as _, Write};

use bzip2::{Decompress as Bunzip2, Status as BzStatus};
use flate2::{Decompress as Inflate, FlushDecompress, Status};
use lzma_rs::decompress::{Options as LzmaOptions, UnpackedSize};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::error::MemberError;
use super::member::{Member, Method};
use crate::limits::Limits;

/// Returned by a sink that has seen enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

/// How reading a member ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Bytes handed to the sink.
    pub bytes: u64,
    /// `true`: all was read, and size and CRC-32 are as declared. `false`: the sink stopped.
    pub complete: bool,
    /// Compressed bytes after the end of the stream, which nobody reads; 0 unless something is hidden there.
    pub unused: u64,
}

/// Buffers and decoder states of one thread, used for one member after the other.
pub struct Scratch {
    buffer: Box<[u8]>,
    inflate: Inflate,
    zstd: Option<FrameDecoder>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Bytes handed to a sink at once, at most.
    pub const CHUNK: usize = 128 << 10;

    /// Allocates the buffer and the DEFLATE state.
    #[must_use]
    pub fn new() -> Self {
        Self { buffer: vec![0; Self::CHUNK].into_boxed_slice(), inflate: Inflate::new(false), zstd: None }
    }
}

/// Decodes `data`, the compressed bytes of `member`. `consumed` hears now and then how many of them are no longer needed.
pub(super) fn read(
    member: &Member,
    data: &[u8],
    limits: &Limits,
    scratch: &mut Scratch,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), Stop>,
    consumed: &mut dyn FnMut(usize),
) -> Result<ReadOutcome, MemberError> {
    let mut output = Output { sink, crc: crc32fast::Hasher::new(), produced: 0, declared: member.size };
    let ended = match member.method {
        Method::Stored => store(data, &mut output, consumed),
        Method::Deflate => inflate(data, scratch, &mut output, consumed),
        Method::Bzip2 => bunzip2(data, scratch, &mut output),
        Method::Lzma => unlzma(data, member, limits, &mut output),
        Method::Zstd => unzstd(data, limits, scratch, &mut output),
        Method::Other(_) => {
            return Err(MemberError::UnsupportedMethod {
                member: member.name.clone(),
                method: member.method,
            });
        }
    };
    output.verdict(ended, member)
}

/// Why a decoder loop ended before its stream did.
enum Ended {
    /// The sink had enough.
    Stopped,
    /// The stream holds more than the declared size.
    TooLong,
    /// The stream cannot be decoded.
    Corrupt(String),
}

/// Counts, checks and hands on what a decoder produces.
struct Output<'a> {
    sink: &'a mut dyn FnMut(&[u8]) -> Result<(), Stop>,
    crc: crc32fast::Hasher,
    produced: u64,
    declared: u64,
}

impl Output<'_> {
    fn push(&mut self, chunk: &[u8]) -> Result<(), Ended> {
        let room = self.declared.saturating_sub(self.produced);
        let too_long = chunk.len() as u64 > room;
        let chunk = if too_long { chunk.get(..room as usize).unwrap_or(chunk) } else { chunk };
        if !chunk.is_empty() {
            self.crc.update(chunk);
            self.produced += chunk.len() as u64;
            (self.sink)(chunk).map_err(|Stop| Ended::Stopped)?;
        }
        if too_long { Err(Ended::TooLong) } else { Ok(()) }
    }

    /// `ended` is the number of unused input bytes of a stream that came to its end, or why it did not.
    fn verdict(self, ended: Result<u64, Ended>, member: &Member) -> Result<ReadOutcome, MemberError> {
        let bytes = self.produced;
        let name = || member.name.clone();
        match ended {
            Err(Ended::Stopped) => Ok(ReadOutcome { bytes, complete: false, unused: 0 }),
            Err(Ended::TooLong) => Err(MemberError::SizeMismatch {
                member: name(),
                expected: member.size,
                found: bytes.saturating_add(1),
                more: true,
            }),
            Err(Ended::Corrupt(message)) => {
                Err(MemberError::Corrupt { member: name(), method: member.method, produced: bytes, message })
            }
            Ok(_) if bytes != member.size => Err(MemberError::SizeMismatch {
                member: name(),
                expected: member.size,
                found: bytes,
                more: false,
            }),
            Ok(unused) => {
                let found = self.crc.finalize();
                if found == member.crc32 {
                    Ok(ReadOutcome { bytes, complete: true, unused })
                } else {
                    Err(MemberError::CrcMismatch { member: name(), expected: member.crc32, found })
                }
            }
        }
    }
}

fn store(data: &[u8], output: &mut Output<'_>, consumed: &mut dyn FnMut(usize)) -> Result<u64, Ended> {
    let mut position = 0;
    for chunk in data.chunks(Scratch::CHUNK) {
        output.push(chunk)?;
        position += chunk.len();
        consumed(position);
    }
    Ok(0)
}

fn inflate(
    data: &[u8],
    scratch: &mut Scratch,
    output: &mut Output<'_>,
    used: &mut dyn FnMut(usize),
) -> Result<u64, Ended> {
    let Scratch { buffer, inflate, .. } = scratch;
    inflate.reset(false);
    let mut rest = data;
    loop {
        let (consumed_before, produced_before) = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress(rest, buffer, FlushDecompress::None)
            .map_err(|error| Ended::Corrupt(error.to_string()))?;
        let consumed = (inflate.total_in() - consumed_before) as usize;
        let produced = (inflate.total_out() - produced_before) as usize;
        rest = rest.get(consumed..).unwrap_or_default();
        output.push(buffer.get(..produced).unwrap_or_default())?;
        used(data.len() - rest.len());
        match status {
            Status::StreamEnd => return Ok(rest.len() as u64),
            Status::Ok | Status::BufError if consumed == 0 && produced == 0 => return Err(cut_off()),
            Status::Ok | Status::BufError => {}
        }
    }
}

fn bunzip2(data: &[u8], scratch: &mut Scratch, output: &mut Output<'_>) -> Result<u64, Ended> {
    let buffer = &mut scratch.buffer;
    let mut rest = data;
    // A bzip2 file may consist of several streams; Python's decompressor, like ours, reads the first.
    let mut decoder = Bunzip2::new(false);
    loop {
        let (consumed_before, produced_before) = (decoder.total_in(), decoder.total_out());
        let status = decoder.decompress(rest, buffer).map_err(|error| Ended::Corrupt(error.to_string()))?;
        let consumed = (decoder.total_in() - consumed_before) as usize;
        let produced = (decoder.total_out() - produced_before) as usize;
        rest = rest.get(consumed..).unwrap_or_default();
        output.push(buffer.get(..produced).unwrap_or_default())?;
        match status {
            BzStatus::StreamEnd => return Ok(rest.len() as u64),
            BzStatus::MemNeeded => return Err(Ended::Corrupt("out of memory".to_owned())),
            _ if consumed == 0 && produced == 0 => return Err(cut_off()),
            _ => {}
        }
    }
}

/// APPNOTE 5.8.8: two bytes LZMA SDK version, two bytes length of the properties (5), the properties, the raw
/// stream. Flag bit 1 says that the stream has an end marker.
fn unlzma(data: &[u8], member: &Member, limits: &Limits, output: &mut Output<'_>) -> Result<u64, Ended> {
    const FLAG_END_MARKER: u16 = 1 << 1;
    let Some(([_, _, 5, 0], mut rest)) = data.split_first_chunk::<4>() else {
        return Err(Ended::Corrupt("expected an LZMA header with 5 bytes of properties".to_owned()));
    };
    let has_end_marker = member.flags & FLAG_END_MARKER != 0;
    let options = LzmaOptions {
        unpacked_size: UnpackedSize::UseProvided((!has_end_marker).then_some(member.size)),
        memlimit: Some(usize::try_from(limits.max_dictionary).unwrap_or(usize::MAX)),
        allow_incomplete: false,
    };
    let mut writer = SinkWriter { output, ended: None };
    let result = lzma_rs::lzma_decompress_with_options(&mut rest, &mut writer, &options);
    match (writer.ended, result) {
        (Some(ended), _) => Err(ended),
        (None, Err(error)) => Err(Ended::Corrupt(error.to_string())),
        (None, Ok(())) => Ok(rest.len() as u64),
    }
}

/// Lets a decoder that wants an `io::Write` push into an [`Output`].
struct SinkWriter<'a, 'b> {
    output: &'a mut Output<'b>,
    ended: Option<Ended>,
}

impl Write for SinkWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for chunk in bytes.chunks(Scratch::CHUNK) {
            if let Err(ended) = self.output.push(chunk) {
                self.ended = Some(ended);
                return Err(io::ErrorKind::Other.into());
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unzstd(
    data: &[u8],
    limits: &Limits,
    scratch: &mut Scratch,
    output: &mut Output<'_>,
) -> Result<u64, Ended> {
    let Scratch { buffer, zstd, .. } = scratch;
    let decoder = zstd.get_or_insert_with(FrameDecoder::new);
    decoder.set_max_window_size(limits.max_dictionary);
    let mut rest = data;
    // RFC 8878 section 3: a sequence of frames, some of them skippable.
    while !rest.is_empty() {
        if let Some(after) = skippable_frame(rest)? {
            rest = after;
            continue;
        }
        decoder.reset(&mut rest).map_err(|error| Ended::Corrupt(error.to_string()))?;
        while !decoder.is_finished() {
            decoder
                .decode_blocks(&mut rest, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|error| Ended::Corrupt(error.to_string()))?;
            drain(decoder, buffer, output)?;
        }
        drain(decoder, buffer, output)?;
    }
    Ok(0)
}

fn drain(decoder: &mut FrameDecoder, buffer: &mut [u8], output: &mut Output<'_>) -> Result<(), Ended> {
    while decoder.can_collect() > 0 {
        let length = decoder.read(buffer).map_err(|error| Ended::Corrupt(error.to_string()))?;
        if length == 0 {
            break;
        }
        output.push(buffer.get(..length).unwrap_or_default())?;
    }
    Ok(())
}

/// What follows a skippable frame (magic 0x184D2A50 to 0x184D2A5F, 32-bit length); `None` if there is none.
fn skippable_frame(data: &[u8]) -> Result<Option<&[u8]>, Ended> {
    let Some(([0x50..=0x5f, 0x2a, 0x4d, 0x18], rest)) = data.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut_off)?;
    rest.get(u32::from_le_bytes(*length) as usize..).map(Some).ok_or_else(cut_off)
}

fn cut_off() -> Ended {
    Ended::Corrupt("the compressed data ends before its stream does".to_owned())
}
