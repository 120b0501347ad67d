//! A zip archive as a set of members, read from a memory map.
//!
//! The central directory is the truth: it is what installers read. Local headers are compared with it and
//! never believed. Structure: PKWARE APPNOTE 6.3.10.

mod checks;
mod decode;
mod directory;
mod error;
mod member;
mod problem;

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

pub use decode::{ReadOutcome, Scratch, Stop};
pub(crate) use directory::data_descriptor;
pub use error::{ArchiveError, MemberError};
pub use member::{Member, MemberKind, Method};
pub use problem::{ArchiveProblem, HeaderField, NameDefect};

use crate::limits::Limits;
use member::{Refusal, decode_name};

/// Longest symbolic-link target kept: `PATH_MAX` of Linux.
const MAX_LINK_TARGET: usize = 4096;

/// Compressed size in bytes from which a member's pages are given back once it has been read: a system call costs about as
/// much as touching a page again.
const RELEASED_FROM: usize = 64 << 10;

/// Pages of a member that is being read are given back after so many bytes.
const RELEASE_STEP: usize = 8 << 20;

/// An open archive. It is `Sync`: threads share it, each with a [`Scratch`] of its own.
#[derive(Debug)]
pub struct Archive {
    bytes: Bytes,
    members: Vec<Member>,
    problems: Vec<ArchiveProblem>,
    limits: Limits,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    #[cfg(unix)]
    #[expect(unsafe_code, reason = "memory maps are the one place where the workspace allows it")]
    fn release(&self, range: std::ops::Range<usize>) {
        if let Self::Mapped(map) = self {
            // SAFETY: the map is read-only and of a file, so dropped pages are read from the file again; nothing that was
            // written can be lost. That the file may have changed meanwhile is the case for every page that has not been
            // touched yet: see `map`. A failure means that nothing was dropped.
            let _ = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len())
            };
        }
    }

    #[cfg(not(unix))]
    fn release(&self, _range: std::ops::Range<usize>) {}

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Archive {
    /// Opens and maps a file and reads its central directory and local headers.
    ///
    /// # Errors
    /// [`ArchiveError`] if the file cannot be mapped or has no readable central directory. Everything else
    /// that is wrong is in [`Archive::problems`].
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, ArchiveError> {
        let path = path.as_ref();
        let io = |source| ArchiveError::Io { path: path.to_owned(), source };
        // Opening a pipe would wait for a writer, so the kind is asked first.
        let metadata = std::fs::metadata(path).map_err(io)?;
        if !metadata.is_file() {
            return Err(ArchiveError::NotAFile { path: path.to_owned() });
        }
        if metadata.len() == 0 {
            return Err(ArchiveError::Empty);
        }
        let file = File::open(path).map_err(io)?;
        Self::new(Bytes::Mapped(map(&file).map_err(io)?), limits)
    }

    /// Reads an archive held in memory, for instance one nested in another.
    ///
    /// # Errors
    /// As [`Archive::open`].
    pub fn from_bytes(bytes: Vec<u8>, limits: &Limits) -> Result<Self, ArchiveError> {
        Self::new(Bytes::Owned(bytes), limits)
    }

    fn new(bytes: Bytes, limits: &Limits) -> Result<Self, ArchiveError> {
        let directory = directory::read(bytes.as_slice(), limits)?;
        let mut archive =
            Self { bytes, members: directory.members, problems: directory.problems, limits: limits.clone() };
        checks::names(&archive.members, &mut archive.problems);
        checks::overlaps(&mut archive.members, directory.offset, &mut archive.problems);
        checks::sizes(&mut archive.members, limits, &mut archive.problems);
        archive.note_symlinks();
        Ok(archive)
    }

    fn note_symlinks(&mut self) {
        let mut scratch = Scratch::new();
        let links: Vec<ArchiveProblem> = self
            .members
            .iter()
            .filter(|member| member.kind == MemberKind::Symlink)
            .map(|member| {
                let target = self.read_prefix(member, &mut scratch, MAX_LINK_TARGET).ok();
                let target = target.map(|bytes| decode_name(&bytes).0);
                ArchiveProblem::Symlink { member: member.index, target }
            })
            .collect();
        self.problems.extend(links);
    }

    /// The same for a part of [`Archive::as_bytes`]; small ones are left alone.
    pub fn release_slice(&self, part: &[u8]) {
        let base = self.bytes.as_slice().as_ptr().addr();
        let Some(start) = part.as_ptr().addr().checked_sub(base) else { return };
        let inside = start.checked_add(part.len()).is_some_and(|end| end <= self.bytes.as_slice().len());
        if inside && part.len() >= RELEASED_FROM {
            self.bytes.release(start..start + part.len());
        }
    }

    /// The members in central-directory order, duplicates included.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What is wrong with the structure; empty for a clean archive. The order is deterministic.
    #[must_use]
    pub fn problems(&self) -> &[ArchiveProblem] {
        &self.problems
    }

    /// The member of exactly this name; of duplicates the last, as in Python's `zipfile`. A linear
    /// search.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().rev().find(|member| member.name == name)
    }

    /// The whole file as bytes, for instance to hash it.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// The content of a stored, readable member, without a copy; its size and CRC-32 are not verified.
    #[must_use]
    pub fn stored_slice(&self, member: &Member) -> Option<&[u8]> {
        if member.method != Method::Stored || self.check_readable(member).is_err() {
            return None;
        }
        self.compressed(member).filter(|data| data.len() as u64 == member.size)
    }

    /// Streams the content of a member into `sink`, in pieces of at most [`Scratch::CHUNK`] bytes, and
    /// verifies declared size and CRC-32. No more than the declared size is ever produced. A sink that
    /// returns [`Stop`] ends the reading early; then nothing is verified.
    ///
    /// # Errors
    /// [`MemberError`]. What the sink has received by then may be wrong.
    pub fn read(
        &self,
        member: &Member,
        scratch: &mut Scratch,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), Stop>,
    ) -> Result<ReadOutcome, MemberError> {
        self.check_readable(member)?;
        let data = self.compressed(member).ok_or_else(|| Self::out_of_bounds(member))?;
        let start = member.data.as_ref().map_or(0, |data| data.start);
        let mut released = 0;
        let mut consumed = |end: usize| {
            if end.saturating_sub(released) >= RELEASE_STEP {
                self.bytes.release(start + released..start + end);
                released = end;
            }
        };
        let outcome = decode::read(member, data, &self.limits, scratch, sink, &mut consumed);
        self.release(member);
        outcome
    }

    /// Gives the memory back that the mapped bytes of a large member take in this process. They stay in the file cache of the
    /// system, so that reading them again costs little; without this a wheel of a gigabyte takes a gigabyte.
    pub fn release(&self, member: &Member) {
        let Some(data) = member.data.clone().filter(|data| data.len() >= RELEASED_FROM) else { return };
        self.bytes.release(data);
    }

    /// The first `length` bytes of a member, or all of it if it is shorter. Only in the second case are
    /// size and CRC-32 verified.
    ///
    /// # Errors
    /// As [`Archive::read`].
    pub fn read_prefix(
        &self,
        member: &Member,
        scratch: &mut Scratch,
        length: usize,
    ) -> Result<Vec<u8>, MemberError> {
        let mut content = Vec::new();
        self.read(member, scratch, &mut |chunk| {
            let wanted = length.saturating_sub(content.len());
            content.extend_from_slice(chunk.get(..wanted).unwrap_or(chunk));
            if chunk.len() > wanted { Err(Stop) } else { Ok(()) }
        })?;
        Ok(content)
    }

    fn compressed(&self, member: &Member) -> Option<&[u8]> {
        self.bytes.as_slice().get(member.data.clone()?)
    }

    fn check_readable(&self, member: &Member) -> Result<(), MemberError> {
        let name = || member.name.clone();
        let Member { size, compressed_size, .. } = *member;
        if member.data.is_none() {
            return Err(Self::out_of_bounds(member));
        }
        if member.encrypted {
            return Err(MemberError::Encrypted { member: name() });
        }
        if let Method::Other(_) = member.method {
            return Err(MemberError::UnsupportedMethod { member: name(), method: member.method });
        }
        let limits = &self.limits;
        match member.refusal {
            None => Ok(()),
            Some(Refusal::Overlap) => Err(MemberError::Overlap { member: name() }),
            Some(Refusal::TooLarge) => {
                Err(MemberError::TooLarge { member: name(), size, limit: limits.max_member_size })
            }
            Some(Refusal::Ratio) => {
                Err(MemberError::Ratio { member: name(), size, compressed_size, limit: limits.max_ratio })
            }
            Some(Refusal::Total) => {
                Err(MemberError::TotalTooLarge { member: name(), limit: limits.max_total_size })
            }
        }
    }

    fn out_of_bounds(member: &Member) -> MemberError {
        MemberError::OutOfBounds {
            member: member.name.clone(),
            offset: member.local_header_offset,
            compressed_size: member.compressed_size,
        }
    }
}

/// Maps a file read-only.
#[expect(unsafe_code, reason = "memory maps are the one place where the workspace allows it")]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is private to this process and never written. What remains is that somebody truncates
    // the file while it is mapped (SIGBUS) or writes to it, so that bytes change under a `&[u8]`. No code
    // here relies on two reads of the map agreeing for its memory safety: every offset read from it is
    // checked against the length of the map, which does not change.
    unsafe { Mmap::map(file) }
}

#[cfg(test)]
mod tests;
