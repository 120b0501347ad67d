//! Why an archive or a member cannot be read.

use std::io;
use std::path::PathBuf;

use super::member::Method;

/// The archive as a whole cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file could not be opened, inspected or mapped.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path names a directory, a pipe or a device.
    #[error("{path}: expected a regular file", path = path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("the file is empty (0 bytes)")]
    Empty,
    /// No end-of-central-directory record (`PK\5\6`) where APPNOTE 4.3.16 wants it.
    #[error(
        "{}: expected an end-of-central-directory record (PK\\5\\6) between offset {search_start} and the end at \
         {file_size}, found none",
        if *starts_like_zip { "truncated zip file" } else { "not a zip file" }
    )]
    NoEndRecord {
        /// Size of the file.
        file_size: u64,
        /// Offset from which on the record was looked for: the record is followed by a comment of at most
        /// 65,535 bytes and nothing else.
        search_start: u64,
        /// Whether the file begins with a local header (`PK\3\4`): a zip that was cut off.
        starts_like_zip: bool,
    },
    /// The end-of-central-directory record runs past the end of the file, or points past itself.
    #[error("end-of-central-directory record at offset {offset}: {expected}")]
    BadEndRecord {
        /// Offset of the record, or of the last place where one was looked for.
        offset: u64,
        /// What should have been there.
        expected: &'static str,
    },
    /// An entry of the central directory cannot be read.
    #[error("central directory entry {index} at offset {offset}: expected {expected}")]
    BadDirectoryEntry {
        /// Number of the entry, from 0.
        index: usize,
        /// Offset in the file.
        offset: u64,
        /// What should have been there.
        expected: &'static str,
    },
    /// The central directory ends before the number of entries that the end record declares.
    #[error("central directory at offset {offset}: {declared} entries declared, {found} found")]
    MissingEntries {
        /// Offset of the central directory.
        offset: u64,
        /// Entries declared by the end record.
        declared: u64,
        /// Entries read.
        found: u64,
    },
    /// The central directory has more entries than [`Limits::max_members`](crate::Limits::max_members).
    #[error("more than {limit} members")]
    TooManyMembers {
        /// The limit.
        limit: u64,
    },
}

/// A member cannot be read, or is not what the central directory says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// The local header or the data is outside the file.
    #[error(
        "{member}: local header at offset {offset} or its {compressed_size} bytes of data are not in the file"
    )]
    OutOfBounds {
        /// Member name.
        member: String,
        /// Offset of the local header.
        offset: u64,
        /// Declared compressed size.
        compressed_size: u64,
    },
    /// The member is encrypted.
    #[error("{member}: encrypted")]
    Encrypted {
        /// Member name.
        member: String,
    },
    /// The compression method is not one of stored, deflate, bzip2, LZMA, Zstandard.
    #[error("{member}: unsupported compression {method}")]
    UnsupportedMethod {
        /// Member name.
        member: String,
        /// The method.
        method: Method,
    },
    /// The member's bytes also belong to another member or to the central directory.
    #[error("{member}: its data overlaps another member or the central directory")]
    Overlap {
        /// Member name.
        member: String,
    },
    /// The declared size is above [`Limits::max_member_size`](crate::Limits::max_member_size).
    #[error("{member}: declares {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Member name.
        member: String,
        /// Declared size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The ratio is above [`Limits::max_ratio`](crate::Limits::max_ratio).
    #[error("{member}: {compressed_size} bytes declare to become {size}, more than {limit}:1")]
    Ratio {
        /// Member name.
        member: String,
        /// Declared size.
        size: u64,
        /// Declared compressed size.
        compressed_size: u64,
        /// The limit.
        limit: u64,
    },
    /// This member and those before it exceed [`Limits::max_total_size`](crate::Limits::max_total_size).
    #[error("{member}: the archive declares more than {limit} bytes up to this member")]
    TotalTooLarge {
        /// Member name.
        member: String,
        /// The limit.
        limit: u64,
    },
    /// The compressed data cannot be decoded.
    #[error("{member}: corrupt {method} data after {produced} bytes of output: {message}")]
    Corrupt {
        /// Member name.
        member: String,
        /// The method.
        method: Method,
        /// Bytes produced so far.
        produced: u64,
        /// What the decoder said.
        message: String,
    },
    /// The data does not have the declared size.
    #[error("{member}: {expected} bytes declared, found {}{found}", if *more { "at least " } else { "" })]
    SizeMismatch {
        /// Member name.
        member: String,
        /// Declared size.
        expected: u64,
        /// Bytes found.
        found: u64,
        /// Whether decoding was stopped at `found` with more to come.
        more: bool,
    },
    /// The data does not have the declared CRC-32.
    #[error("{member}: CRC-32 {expected:08x} declared, found {found:08x}")]
    CrcMismatch {
        /// Member name.
        member: String,
        /// Declared.
        expected: u32,
        /// Computed.
        found: u32,
    },
}
