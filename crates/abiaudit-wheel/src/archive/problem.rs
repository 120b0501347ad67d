//! What is wrong with an archive that can nevertheless be read.

use super::member::Method;

/// A defect of the archive's structure. Members are named by their index in
/// [`Archive::members`](super::Archive::members).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveProblem {
    /// Several members have the same name once empty and `.` components are dropped: which one is
    /// installed depends on the installer.
    DuplicateMember {
        /// The normalised name.
        name: String,
        /// The members, in directory order; at least two.
        members: Vec<usize>,
    },
    /// The members' bytes (local header and data) overlap, as in the zip bombs of David Fifield ("A better
    /// zip bomb", WOOT 2019). Found from offsets, without inflating. These members cannot be read.
    OverlappingMembers {
        /// The members, by offset; one is possible if it runs into the central directory.
        members: Vec<usize>,
        /// Whether they run into the central directory.
        into_directory: bool,
    },
    /// The name is not one that an installer can safely turn into a path.
    UnsafeName {
        /// The member.
        member: usize,
        /// What is wrong with the name.
        reason: NameDefect,
    },
    /// One member is a file, another wants a directory of the same name.
    FileDirectoryClash {
        /// The file.
        file: usize,
        /// A member below that name, or the directory itself.
        directory: usize,
    },
    /// The member is a symbolic link.
    Symlink {
        /// The member.
        member: usize,
        /// Where it points (at most 4,096 bytes; bytes that are not UTF-8 as `\xNN`); `None` if unreadable.
        target: Option<String>,
    },
    /// The member is encrypted.
    Encrypted {
        /// The member.
        member: usize,
    },
    /// The member's compression is not one that this crate reads.
    UnsupportedMethod {
        /// The member.
        member: usize,
        /// The method.
        method: Method,
    },
    /// The local header or the data descriptor contradicts the central directory.
    HeaderMismatch {
        /// The member.
        member: usize,
        /// Each contradiction.
        fields: Vec<HeaderField>,
    },
    /// The local header or the data is outside the file, or there is no local header at that offset.
    NoLocalHeader {
        /// The member.
        member: usize,
        /// Where it should be.
        offset: u64,
    },
    /// The declared sizes cannot both be true: stored data of another size, or more than DEFLATE's 1032:1.
    SizeLie {
        /// The member.
        member: usize,
        /// Declared uncompressed size.
        size: u64,
        /// Declared compressed size.
        compressed_size: u64,
    },
    /// The declared uncompressed size is above [`Limits::max_member_size`](crate::Limits::max_member_size).
    TooLarge {
        /// The member.
        member: usize,
        /// Declared size.
        size: u64,
    },
    /// The ratio is above [`Limits::max_ratio`](crate::Limits::max_ratio).
    BombRatio {
        /// The member.
        member: usize,
        /// Uncompressed to compressed size, rounded down.
        ratio: u64,
    },
    /// From this member on the sizes exceed [`Limits::max_total_size`](crate::Limits::max_total_size).
    TotalTooLarge {
        /// First member that is refused.
        member: usize,
    },
    /// Bytes before the first member (a self-extractor's program, or something hidden).
    PrefixData {
        /// How many.
        bytes: u64,
    },
    /// The end record declares another number of entries than the directory has (modulo 65,536).
    EntryCount {
        /// Declared.
        declared: u64,
        /// Found.
        found: u64,
    },
    /// Bytes after the last directory entry that are no entry.
    DirectoryTrailer {
        /// Where they begin.
        offset: u64,
    },
    /// Bytes after the end record and its comment.
    TrailingData {
        /// How many.
        bytes: u64,
    },
}

/// Why a name is unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameDefect {
    /// Begins with `/`.
    Absolute,
    /// Has a `..` component.
    ParentTraversal,
    /// Contains a backslash, which is a separator on Windows.
    Backslash,
    /// Begins with a drive letter (`C:`).
    DriveLetter,
    /// Is not UTF-8.
    NotUtf8,
    /// Has no component at all (empty, `/`, `.`).
    Empty,
    /// Contains a character below U+0020, or U+007F. NUL ends the name for some readers.
    ControlCharacter,
    /// Has a component of more than 255 bytes, which most file systems refuse.
    ComponentTooLong,
}

/// A field in which local header or data descriptor and central directory differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderField {
    /// Another name in the local header.
    Name {
        /// The local one, decoded like [`Member::name`](super::Member::name).
        local: String,
    },
    /// Another compression method.
    Method {
        /// The local one.
        local: Method,
    },
    /// Encrypted in one, not in the other.
    Encryption {
        /// What the local header says.
        local: bool,
    },
    /// Another compressed size.
    CompressedSize {
        /// The local one.
        local: u64,
    },
    /// Another uncompressed size.
    Size {
        /// The local one.
        local: u64,
    },
    /// Another CRC-32.
    Crc32 {
        /// The local one.
        local: u32,
    },
    /// Flag bit 3 promises a data descriptor, and what follows the data is not one with the central
    /// directory's CRC-32 and sizes (APPNOTE 4.3.9; with or without signature, 32 or 64 bits).
    DataDescriptor,
}
