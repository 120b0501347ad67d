//! Why an input cannot be audited at all.

use std::io;
use std::path::{Path, PathBuf};

use abiaudit_wheel::{ArchiveError, WheelNameError};

/// An input of which nothing can be said.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The operating system's word.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A pipe, a socket, a device.
    #[error("{}: neither a regular file nor a directory", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A directory without a file in it: most likely not the one that was meant.
    #[error("{}: the directory is empty", path.display())]
    EmptyDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The file's name is not that of a wheel, so there is no claim to check.
    #[error("{0}")]
    FileName(#[from] WheelNameError),
    /// The archive cannot be opened.
    #[error("{}: {source}", path.display())]
    Archive {
        /// The wheel.
        path: PathBuf,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// Neither a wheel nor ELF.
    #[error("{}: {found}; expected a wheel (.whl), a directory or an ELF file", path.display())]
    UnknownKind {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: &'static str,
    },
}

impl ScanError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// What is wrong, for a line that names the input already.
    pub fn reason(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::NotAFile { .. } => "neither a regular file nor a directory".to_owned(),
            Self::EmptyDirectory { .. } => "the directory is empty".to_owned(),
            Self::FileName(error) => without(&format!("{:?}", error.file_name()), &error.to_string()),
            Self::Archive { path, source } => without(&path.display().to_string(), &source.to_string()),
            Self::UnknownKind { found, .. } => {
                format!("{found}; expected a wheel (.whl), a directory or an ELF file")
            }
        }
    }

    /// A stable word for reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::NotAFile { .. } => "not-a-file",
            Self::EmptyDirectory { .. } => "empty-directory",
            Self::FileName(_) => "file-name",
            Self::Archive { .. } => "archive",
            Self::UnknownKind { .. } => "unknown-kind",
        }
    }
}

/// A message without the name that it begins with.
fn without(name: &str, message: &str) -> String {
    let rest = message.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(message).to_owned()
}
