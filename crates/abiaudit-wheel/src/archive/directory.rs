//! Central directory and local headers to [`Member`]s.

use rawzip::{ErrorKind, ZipArchive, ZipFileHeaderRecord, ZipSliceArchive};

use super::error::ArchiveError;
use super::member::{Member, MemberKind, Method, decode_name};
use super::problem::{ArchiveProblem, HeaderField};
use crate::limits::Limits;

/// Size of an end-of-central-directory record without its comment (APPNOTE 4.3.16).
const END_RECORD_SIZE: u64 = 22;
/// The comment's length is a 16-bit field, so the record begins at most this far from the end.
const END_RECORD_REACH: u64 = END_RECORD_SIZE + 0xffff;
/// Flag bit 3: CRC-32 and sizes follow the data (APPNOTE 4.4.4).
const FLAG_DATA_DESCRIPTOR: u16 = 1 << 3;
const DATA_DESCRIPTOR_SIGNATURE: [u8; 4] = *b"PK\x07\x08";
const LOCAL_HEADER_SIGNATURE: &[u8] = b"PK\x03\x04";

/// What the central directory and the local headers say.
pub(super) struct Directory {
    pub members: Vec<Member>,
    pub problems: Vec<ArchiveProblem>,
    /// Offset of the first directory entry in the file.
    pub offset: u64,
}

/// Reads the central directory of `bytes` and looks at each local header.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Directory, ArchiveError> {
    let zip = locate(bytes)?;
    let mut directory =
        Directory { members: Vec::new(), problems: Vec::new(), offset: zip.directory_offset() };
    read_entries(&zip, limits, &mut directory)?;
    note_unclaimed_bytes(bytes, &zip, &mut directory);
    Ok(directory)
}

fn locate(bytes: &[u8]) -> Result<ZipSliceArchive<&[u8]>, ArchiveError> {
    if bytes.is_empty() {
        return Err(ArchiveError::Empty);
    }
    let file_size = bytes.len() as u64;
    let search_start = file_size.saturating_sub(END_RECORD_REACH);
    ZipArchive::with_max_search_space(END_RECORD_REACH).locate_in_slice(bytes).map_err(|(_, error)| {
        let offset = error.eocd_offset().unwrap_or(search_start);
        match error.kind() {
            ErrorKind::MissingEndOfCentralDirectory => ArchiveError::NoEndRecord {
                file_size,
                search_start,
                starts_like_zip: bytes.starts_with(LOCAL_HEADER_SIGNATURE),
            },
            ErrorKind::InvalidEndOfCentralDirectory => ArchiveError::BadEndRecord {
                offset,
                expected: "expected the central directory to begin before this record",
            },
            _ => {
                ArchiveError::BadEndRecord { offset, expected: "expected a complete record with its comment" }
            }
        }
    })
}

fn read_entries(
    zip: &ZipSliceArchive<&[u8]>,
    limits: &Limits,
    directory: &mut Directory,
) -> Result<(), ArchiveError> {
    let declared = zip.entries_hint();
    let mut entries = zip.entries();
    let mut next_offset = zip.directory_offset();
    loop {
        let index = directory.members.len();
        let entry = match entries.next_entry() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(_) if index as u64 >= declared => {
                directory.problems.push(ArchiveProblem::DirectoryTrailer { offset: next_offset });
                break;
            }
            Err(error) => {
                let expected = match error.kind() {
                    ErrorKind::InvalidSignature { .. } => "the signature PK\\1\\2",
                    _ => "a complete entry before the end record",
                };
                return Err(ArchiveError::BadDirectoryEntry { index, offset: next_offset, expected });
            }
        };
        if index as u64 >= limits.max_members {
            return Err(ArchiveError::TooManyMembers { limit: limits.max_members });
        }
        next_offset = next_offset.saturating_add(entry_length(&entry));
        let (member, problem) = read_member(zip, &entry, index);
        directory.members.push(member);
        directory.problems.extend(problem);
    }
    let found = directory.members.len() as u64;
    if found < declared {
        return Err(ArchiveError::MissingEntries { offset: zip.directory_offset(), declared, found });
    }
    // Without zip64 records the count is kept modulo 65,536 by common writers.
    if found != declared && found & 0xffff != declared {
        directory.problems.push(ArchiveProblem::EntryCount { declared, found });
    }
    Ok(())
}

/// Length of a directory entry: 46 bytes and three variable fields (APPNOTE 4.3.12).
fn entry_length(entry: &ZipFileHeaderRecord<'_>) -> u64 {
    let extra = entry.extra_fields().remaining_bytes().len();
    (46 + entry.file_path().as_bytes().len() + extra + entry.comment().as_bytes().len()) as u64
}

fn read_member(
    zip: &ZipSliceArchive<&[u8]>,
    entry: &ZipFileHeaderRecord<'_>,
    index: usize,
) -> (Member, Option<ArchiveProblem>) {
    let path = entry.file_path();
    let raw_name = path.as_bytes();
    let (name, name_is_utf8) = decode_name(raw_name);
    let mode = entry.external_attributes() >> 16;
    let mut member = Member {
        index,
        kind: kind(raw_name, mode),
        name,
        raw_name: raw_name.to_vec(),
        name_is_utf8,
        size: entry.uncompressed_size_hint(),
        compressed_size: entry.compressed_size_hint(),
        crc32: entry.crc32(),
        method: Method::from_code(entry.compression_method().as_u16()),
        unix_mode: (mode != 0).then_some(mode),
        encrypted: entry.flags().is_encrypted(),
        local_header_offset: entry.local_header_offset(),
        directory_offset: entry.central_directory_offset(),
        data: None,
        flags: entry.flags().bits(),
        refusal: None,
    };
    let problem = match zip.get_entry(entry.wayfinder()) {
        Ok(local) => {
            let (start, end) = local.compressed_data_range();
            member.data = Some(start as usize..end as usize);
            let after = zip.get_ref().get(end as usize..).unwrap_or_default();
            compare_headers(&member, &local.local_header(), after)
        }
        Err(_) => Some(ArchiveProblem::NoLocalHeader { member: index, offset: member.local_header_offset }),
    };
    (member, problem)
}

fn kind(raw_name: &[u8], mode: u32) -> MemberKind {
    const S_IFMT: u32 = 0o170_000;
    const S_IFLNK: u32 = 0o120_000;
    if raw_name.ends_with(b"/") {
        MemberKind::Directory
    } else if mode & S_IFMT == S_IFLNK {
        MemberKind::Symlink
    } else {
        MemberKind::File
    }
}

fn compare_headers(
    member: &Member,
    local: &rawzip::ZipLocalFileHeader<'_>,
    after_data: &[u8],
) -> Option<ArchiveProblem> {
    let mut fields = Vec::new();
    let local_path = local.file_path();
    if local_path.as_bytes() != member.raw_name {
        fields.push(HeaderField::Name { local: decode_name(local_path.as_bytes()).0 });
    }
    let method = Method::from_code(local.compression_method().as_u16());
    if method != member.method {
        fields.push(HeaderField::Method { local: method });
    }
    let encrypted = local.flags().is_encrypted();
    if encrypted != member.encrypted {
        fields.push(HeaderField::Encryption { local: encrypted });
    }
    // With bit 3 the local fields may be zero, or already be right.
    let streamed = local.flags().bits() & FLAG_DATA_DESCRIPTOR != 0;
    let differs = |local: u64, central: u64| local != central && !(streamed && local == 0);
    if differs(local.compressed_size_hint(), member.compressed_size) {
        fields.push(HeaderField::CompressedSize { local: local.compressed_size_hint() });
    }
    if differs(local.uncompressed_size_hint(), member.size) {
        fields.push(HeaderField::Size { local: local.uncompressed_size_hint() });
    }
    if differs(u64::from(local.crc32()), u64::from(member.crc32)) {
        fields.push(HeaderField::Crc32 { local: local.crc32() });
    }
    if streamed && data_descriptor(after_data, member).is_none() {
        fields.push(HeaderField::DataDescriptor);
    }
    (!fields.is_empty()).then_some(ArchiveProblem::HeaderMismatch { member: member.index, fields })
}

/// Length of the data descriptor at the start of `bytes` that agrees with the central directory, in any of the four
/// layouts in use: the signature is optional (APPNOTE 4.3.9.3), and writers disagree on when sizes are 64
/// bits wide (Python's `zipfile` decides by the local header, which has the zip64 field when streaming).
pub(crate) fn data_descriptor(bytes: &[u8], member: &Member) -> Option<usize> {
    let narrow = [member.compressed_size as u32, member.size as u32];
    let mut short = [0u8; 12];
    let mut long = [0u8; 20];
    short[..4].copy_from_slice(&member.crc32.to_le_bytes());
    short[4..8].copy_from_slice(&narrow[0].to_le_bytes());
    short[8..].copy_from_slice(&narrow[1].to_le_bytes());
    long[..4].copy_from_slice(&member.crc32.to_le_bytes());
    long[4..12].copy_from_slice(&member.compressed_size.to_le_bytes());
    long[12..].copy_from_slice(&member.size.to_le_bytes());
    let fits_short = u32::try_from(member.compressed_size.max(member.size)).is_ok();
    let layout = |bytes: &[u8]| {
        if bytes.starts_with(&long) {
            Some(long.len())
        } else {
            (fits_short && bytes.starts_with(&short)).then_some(short.len())
        }
    };
    let signature = DATA_DESCRIPTOR_SIGNATURE.len();
    layout(bytes).or_else(|| {
        let rest = bytes.strip_prefix(&DATA_DESCRIPTOR_SIGNATURE)?;
        Some(signature + layout(rest)?)
    })
}

fn note_unclaimed_bytes(bytes: &[u8], zip: &ZipSliceArchive<&[u8]>, directory: &mut Directory) {
    let first = directory
        .members
        .iter()
        .filter(|member| member.data.is_some())
        .map(|member| member.local_header_offset)
        .chain([if directory.members.is_empty() { zip.eocd_offset() } else { directory.offset }])
        .min()
        .unwrap_or(0);
    if first > 0 {
        directory.problems.push(ArchiveProblem::PrefixData { bytes: first });
    }
    let trailing = (bytes.len() as u64).saturating_sub(zip.end_offset());
    if trailing > 0 {
        directory.problems.push(ArchiveProblem::TrailingData { bytes: trailing });
    }
}
