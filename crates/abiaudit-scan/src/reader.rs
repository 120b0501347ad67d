//! Reading members of a subject once more, by name. The one pass over an input keeps no content; whoever needs the text
//! of some files opens the input again and pays for it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use abiaudit_wheel::archive::{MemberKind, Scratch};
use abiaudit_wheel::{Archive, Limits};

use crate::error::ScanError;
use crate::subject::{Subject, SubjectKind};

/// Gives the content of members of one input.
pub struct Reader {
    source: Source,
}

enum Source {
    Wheel(Box<Wheel>),
    Directory(PathBuf),
    File(PathBuf),
}

struct Wheel {
    archive: Archive,
    /// Positions of files by name; of duplicates the last, as in Python's `zipfile`.
    positions: HashMap<String, usize>,
    scratch: Scratch,
}

/// Why there is no content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The input has no such file.
    #[error("no such member")]
    Absent,
    /// It is larger than was allowed.
    #[error("larger than {most} bytes")]
    TooLarge {
        /// The bound, in bytes.
        most: u64,
    },
    /// The archive or the system would not give it: why.
    #[error("{0}")]
    Unreadable(String),
}

impl Subject {
    /// Opens the input once more.
    ///
    /// # Errors
    /// [`ScanError`] if it cannot be opened, which means that it has changed since it was scanned.
    pub fn reader(&self, limits: &Limits) -> Result<Reader, ScanError> {
        let path = Path::new(&self.path);
        let source = match self.kind {
            SubjectKind::Wheel => {
                let archive = Archive::open(path, limits)
                    .map_err(|source| ScanError::Archive { path: path.to_owned(), source })?;
                let files = archive.members().iter().enumerate().filter(|(_, m)| m.kind == MemberKind::File);
                let positions = files.map(|(position, member)| (member.name.clone(), position)).collect();
                Source::Wheel(Box::new(Wheel { archive, positions, scratch: Scratch::new() }))
            }
            // The path of a distribution is that of its dist-info directory; its members lie beside that.
            SubjectKind::Distribution if self.has_directory() => {
                Source::Directory(path.parent().unwrap_or(path).to_owned())
            }
            SubjectKind::Distribution | SubjectKind::Directory => Source::Directory(path.to_owned()),
            SubjectKind::File => Source::File(path.to_owned()),
        };
        Ok(Reader { source })
    }

    fn has_directory(&self) -> bool {
        self.dist_info.as_ref().is_some_and(|info| info.directory.is_some())
    }
}

impl Reader {
    /// The content of the member with this name ([`crate::Member::name`]), of at most `most` bytes.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn read(&mut self, name: &str, most: u64) -> Result<Vec<u8>, ReadError> {
        match &mut self.source {
            Source::Wheel(wheel) => wheel.read(name, most),
            Source::Directory(root) => read_file(&root.join(name), most),
            Source::File(path) => read_file(path, most),
        }
    }
}

impl Wheel {
    fn read(&mut self, name: &str, most: u64) -> Result<Vec<u8>, ReadError> {
        let position = self.positions.get(name).ok_or(ReadError::Absent)?;
        let member = self.archive.members().get(*position).ok_or(ReadError::Absent)?;
        if member.size > most {
            return Err(ReadError::TooLarge { most });
        }
        let mut content = Vec::new();
        let outcome = self.archive.read(member, &mut self.scratch, &mut |chunk| {
            content.extend_from_slice(chunk);
            Ok(())
        });
        outcome.map_err(|error| ReadError::Unreadable(error.to_string()))?;
        Ok(content)
    }
}

fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => ReadError::Absent,
        _ => ReadError::Unreadable(error.to_string()),
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(ReadError::Absent);
    }
    let mut content = Vec::new();
    // The file may grow while it is read.
    let file = File::open(path).map_err(unreadable)?;
    file.take(most.saturating_add(1)).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > most { Err(ReadError::TooLarge { most }) } else { Ok(content) }
}
