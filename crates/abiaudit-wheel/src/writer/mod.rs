//! Writing a wheel that differs from another one in some members.
//!
//! ```text
//! WheelWriter   copies members raw, replaces, adds; finish() writes RECORD, the directory and the end records
//! with_tags     WHEEL with other tags
//! ```
//!
//! * What is copied keeps its bytes: compressed data, local header, data descriptor, and every field of its directory entry
//!   but the offset.
//! * What is written anew is deflated ([`deflate`]), with the timestamp of `SOURCE_DATE_EPOCH` or one of the input's: nothing
//!   depends on the clock, the umask or the number of threads.
//! * RECORD comes last and lists what was written.
//! * An archive that readers may understand in different ways is refused: copied, it would stay so.

mod deflate;
mod error;
mod header;
mod record;
mod time;
mod wheel_file;

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom, Write};

use sha2::{Digest, Sha256};

pub use error::WriteError;
pub use time::DosTime;
pub use wheel_file::with_tags;

use crate::archive::{Archive, Member, MemberKind, Method};
use header::{Entry, FLAG_DATA_DESCRIPTOR, WIDE};
use record::Row;

/// How members are written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// DEFLATE level, 0 (stored) to 9.
    pub level: u32,
    /// Timestamp of all that is written anew; without one, replaced members keep theirs and added ones get that of WHEEL.
    pub time: Option<DosTime>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { level: 6, time: None }
    }
}

/// Copied members are written in pieces of so many bytes, so that little of the input is in memory.
const PIECE: usize = 4 << 20;

/// Permission bits of an added file that is run or loaded.
pub const MODE_PROGRAM: u32 = 0o100_755;
/// Permission bits of any other added file.
pub const MODE_FILE: u32 = 0o100_644;

/// Writes a wheel, member by member, from another one.
pub struct WheelWriter<'a, W> {
    archive: &'a Archive,
    output: W,
    options: WriteOptions,
    position: u64,
    entries: Vec<Entry>,
    rows: Vec<Row>,
    names: BTreeSet<String>,
    /// Timestamp of added members.
    time: DosTime,
    dist_info: String,
}

/// What was written of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
    /// Size of the content in bytes.
    pub size: u64,
}

impl<'a, W: Write + Seek> WheelWriter<'a, W> {
    /// Begins at the start of `output`, which is empty. `dist_info` is the name of the dist-info directory.
    ///
    /// # Errors
    /// [`WriteError::Structure`] if the archive is one that readers may understand in different ways.
    pub fn new(
        archive: &'a Archive,
        dist_info: &str,
        output: W,
        options: WriteOptions,
    ) -> Result<Self, WriteError> {
        check(archive)?;
        let wheel = archive.member(&format!("{dist_info}/WHEEL"));
        let time = options.time.or_else(|| Some(directory_entry(archive, wheel?).ok()?.time));
        Ok(Self {
            archive,
            output,
            options,
            position: 0,
            entries: Vec::new(),
            rows: Vec::new(),
            names: BTreeSet::new(),
            time: time.unwrap_or(DosTime::EPOCH),
            dist_info: dist_info.to_owned(),
        })
    }

    /// Copies a member as it is. `sha256` is the hash of its content, which must have been read and found whole.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn copy(&mut self, member: &Member, sha256: [u8; 32]) -> Result<(), WriteError> {
        self.claim(&member.name)?;
        let mut entry = directory_entry(self.archive, member)?;
        (entry.size, entry.compressed_size) = (member.size, member.compressed_size);
        entry.offset = self.position;
        let bytes = self.archive.local_bytes(member).ok_or_else(|| WriteError::changed(member))?;
        for piece in bytes.chunks(PIECE) {
            self.put(piece)?;
            self.archive.release_slice(piece);
        }
        self.entries.push(entry);
        if member.kind != MemberKind::Directory {
            self.rows.push(Row { path: member.name.clone(), sha256, size: member.size });
        }
        Ok(())
    }

    /// Writes other content under the name, mode and (unless the options give one) timestamp of a member.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn replace(&mut self, member: &Member, content: &[u8]) -> Result<Written, WriteError> {
        let old = directory_entry(self.archive, member)?;
        let mut entry = Entry::new(&member.name, 0, self.options.time.unwrap_or(old.time));
        (entry.made_by, entry.external_attributes) = (old.made_by, old.external_attributes);
        self.write(entry, &member.name, content)
    }

    /// Writes a file that the input has not.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn add(&mut self, name: &str, mode: u32, content: &[u8]) -> Result<Written, WriteError> {
        let entry = Entry::new(name, mode, self.time);
        self.write(entry, name, content)
    }

    /// Writes RECORD, the central directory and the end records, and gives the output back. Whatever was copied or written
    /// under the name of RECORD or of its signatures would contradict that, so it is an error to have done so.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn finish(mut self) -> Result<W, WriteError> {
        let name = format!("{}/RECORD", self.dist_info);
        let text = record::text(&self.rows, &name);
        match self.archive.member(&name) {
            Some(member) => self.replace(member, &text)?,
            None => self.add(&name, MODE_FILE, &text)?,
        };
        let directory = self.position;
        for entry in std::mem::take(&mut self.entries) {
            let bytes = entry.central();
            self.put(&bytes)?;
            self.entries.push(entry);
        }
        let size = self.position - directory;
        self.put(&header::end_records(self.entries.len() as u64, directory, size))?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn write(&mut self, mut entry: Entry, name: &str, content: &[u8]) -> Result<Written, WriteError> {
        self.claim(name)?;
        if entry.name.len() > usize::from(u16::MAX) {
            return Err(WriteError::NameTooLong { name: name.to_owned() });
        }
        let size = content.len() as u64;
        // DEFLATE never grows a file by more than this (stored blocks of 16 KiB cost 5 bytes, flushes 5 more a MiB).
        let wide = size.saturating_add(size >> 8) >= WIDE.into();
        entry.offset = self.position;
        entry.size = size;
        let stored = self.options.level == 0 || content.is_empty();
        entry.method = if stored { Method::Stored } else { Method::Deflate }.code();
        let placeholder = entry.local(wide);
        self.put(&placeholder)?;

        let (output, level) = (&mut self.output as &mut dyn Write, self.options.level);
        let hash = || {
            let sha256: [u8; 32] = Sha256::digest(content).into();
            (sha256, crc32fast::hash(content))
        };
        let (sha256, crc32, compressed_size) = if stored {
            output.write_all(content)?;
            let (sha256, crc32) = hash();
            (sha256, crc32, size)
        } else {
            let (sha256, crc32) = hash();
            (sha256, crc32, deflate::deflate(content, level, output)?)
        };
        (entry.crc32, entry.compressed_size) = (crc32, compressed_size);
        self.position += compressed_size;
        // The sizes are known now.
        self.output.seek(SeekFrom::Start(entry.offset))?;
        self.output.write_all(&entry.local(wide))?;
        self.output.seek(SeekFrom::Start(self.position))?;
        if !self.is_record(name) {
            self.rows.push(Row { path: name.to_owned(), sha256, size });
        }
        self.entries.push(entry);
        Ok(Written { sha256, size })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.output.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Each name once.
    fn claim(&mut self, name: &str) -> Result<(), WriteError> {
        if self.names.insert(name.to_owned()) {
            Ok(())
        } else {
            Err(WriteError::DuplicateName { name: name.to_owned() })
        }
    }

    fn is_record(&self, name: &str) -> bool {
        name.strip_prefix(&self.dist_info).is_some_and(|rest| rest == "/RECORD")
    }
}

/// Whether an archive can be copied from.
///
/// # Errors
/// [`WriteError::Structure`] if readers may understand it in different ways.
pub fn check(archive: &Archive) -> Result<(), WriteError> {
    match archive.problems().first() {
        Some(problem) => Err(WriteError::structure(archive, problem, archive.problems().len())),
        None => Ok(()),
    }
}

/// Whether the member is RECORD or one of its signatures (PEP 427: `RECORD.jws`, `RECORD.p7s`), which no longer hold once
/// a member has changed.
#[must_use]
pub fn is_record_or_signature(name: &str, dist_info: &str) -> bool {
    let file = name.strip_prefix(dist_info).and_then(|rest| rest.strip_prefix('/'));
    file.is_some_and(|file| matches!(file, "RECORD" | "RECORD.jws" | "RECORD.p7s"))
}

fn directory_entry(archive: &Archive, member: &Member) -> Result<Entry, WriteError> {
    let start = usize::try_from(member.directory_offset).ok();
    let bytes = start.and_then(|start| archive.as_bytes().get(start..));
    let entry = bytes.and_then(Entry::parse).filter(|entry| entry.name == member.raw_name);
    // Room for the zip64 field that the entry may come to need.
    entry
        .filter(|entry| entry.extra.len() <= usize::from(u16::MAX) - 28)
        .ok_or_else(|| WriteError::changed(member))
}

impl Archive {
    /// A member's bytes from its local header to the end of its data, the data descriptor included; `None` if they are not
    /// in the file.
    #[must_use]
    pub fn local_bytes(&self, member: &Member) -> Option<&[u8]> {
        let bytes = self.as_bytes();
        let start = usize::try_from(member.local_header_offset).ok()?;
        let end = member.data.as_ref()?.end;
        let flags = bytes.get(start.checked_add(6)?..)?.first_chunk::<2>()?;
        let streamed = u16::from_le_bytes(*flags) & FLAG_DATA_DESCRIPTOR != 0;
        let descriptor =
            if streamed { crate::archive::data_descriptor(bytes.get(end..)?, member)? } else { 0 };
        bytes.get(start..end.checked_add(descriptor)?)
    }
}

#[cfg(test)]
mod tests;
