//! One member as the central directory describes it.

use std::fmt;
use std::ops::Range;

/// Compression method of a member (APPNOTE 4.4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// 0: the bytes themselves.
    Stored,
    /// 8: DEFLATE (RFC 1951).
    Deflate,
    /// 12: bzip2.
    Bzip2,
    /// 14: LZMA with the header of APPNOTE 5.8.8.
    Lzma,
    /// 93: Zstandard (RFC 8878).
    Zstd,
    /// Any other method; such a member cannot be read.
    Other(u16),
}

impl Method {
    /// The method for an APPNOTE number.
    #[must_use]
    pub fn from_code(code: u16) -> Self {
        match code {
            0 => Self::Stored,
            8 => Self::Deflate,
            12 => Self::Bzip2,
            14 => Self::Lzma,
            93 => Self::Zstd,
            other => Self::Other(other),
        }
    }

    /// The APPNOTE number.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Self::Stored => 0,
            Self::Deflate => 8,
            Self::Bzip2 => 12,
            Self::Lzma => 14,
            Self::Zstd => 93,
            Self::Other(code) => code,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored => f.write_str("stored"),
            Self::Deflate => f.write_str("deflate"),
            Self::Bzip2 => f.write_str("bzip2"),
            Self::Lzma => f.write_str("lzma"),
            Self::Zstd => f.write_str("zstd"),
            Self::Other(code) => write!(f, "method {code}"),
        }
    }
}

/// What a member becomes when it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberKind {
    /// A regular file.
    File,
    /// A directory: the name ends in `/`.
    Directory,
    /// A symbolic link: the Unix mode says `S_IFLNK`; the content is the target. Installers write such a
    /// member as a small text file, so that the link is lost.
    Symlink,
}

/// One entry of the central directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Position in the central directory, from 0; also the index in [`Archive::members`](super::Archive::members).
    pub index: usize,
    /// The name as text; bytes that are not UTF-8 are written `\xNN`.
    pub name: String,
    /// The name's bytes as stored.
    pub raw_name: Vec<u8>,
    /// Whether the stored bytes are valid UTF-8, that is whether `name` is exact.
    pub name_is_utf8: bool,
    /// Declared uncompressed size in bytes.
    pub size: u64,
    /// Declared compressed size in bytes.
    pub compressed_size: u64,
    /// Declared CRC-32 of the uncompressed bytes.
    pub crc32: u32,
    /// Compression method.
    pub method: Method,
    /// `st_mode` from the upper half of the external attributes, when it is not zero. Like Python's
    /// `zipfile` and the installers built on it, this does not ask which system made the entry.
    pub unix_mode: Option<u32>,
    /// File, directory or symbolic link.
    pub kind: MemberKind,
    /// General-purpose flag bit 0: the data is encrypted.
    pub encrypted: bool,
    /// Offset of the local header in the file, prefix data included.
    pub local_header_offset: u64,
    /// Offset of this entry in the central directory.
    pub directory_offset: u64,
    /// Where the compressed data lies in the file; `None` if the local header or the data is not there.
    pub(crate) data: Option<Range<usize>>,
    /// General-purpose flags of the central directory.
    pub(super) flags: u16,
    /// Why the data will not be read although it could be located.
    pub(super) refusal: Option<Refusal>,
}

impl Member {
    /// Offset of the compressed data in the file; `None` if the local header or the data is out of bounds.
    #[must_use]
    pub fn data_offset(&self) -> Option<usize> {
        self.data.as_ref().map(|range| range.start)
    }

    /// Whether the permission bits grant execution to anybody.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.unix_mode.is_some_and(|mode| mode & 0o111 != 0)
    }
}

/// A reason, known when the archive is opened, not to read a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Its bytes also belong to another member or to the central directory.
    Overlap,
    /// Its declared size is above the limit.
    TooLarge,
    /// Its declared ratio is above the limit.
    Ratio,
    /// The members before it have used up the total.
    Total,
}

/// Text for a stored name: UTF-8 is kept, any other byte becomes `\xNN`. The flag says if all was UTF-8.
pub(super) fn decode_name(raw: &[u8]) -> (String, bool) {
    use fmt::Write as _;
    if let Ok(text) = std::str::from_utf8(raw) {
        return (text.to_owned(), true);
    }
    let mut text = String::with_capacity(raw.len());
    for chunk in raw.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    (text, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_escaped() {
        assert_eq!(decode_name(b"m\xff\xc3\xa9d.so"), ("m\\xff\u{e9}d.so".to_owned(), false));
        assert_eq!(decode_name("m\u{e9}d.so".as_bytes()), ("m\u{e9}d.so".to_owned(), true));
    }

    #[test]
    fn method_codes_round_trip() {
        for code in 0..=100 {
            assert_eq!(Method::from_code(code).code(), code);
        }
    }
}
