//! What can go wrong while a toolchain is made, checked or used.

use std::io;
use std::path::PathBuf;

/// A failure, with the place and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried: `read`, `write`, `rename`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not of the format that it should have.
    #[error("{}: {what}: {found}", path.display())]
    Malformed {
        /// The file; `archive(member)` for a member of an archive.
        path: PathBuf,
        /// The structure that was read.
        what: &'static str,
        /// What was found in its place.
        found: String,
    },
    /// No toolchain can be made for this target.
    #[error("no toolchain for {target}: {reason}")]
    Target {
        /// The tag that was asked for.
        target: String,
        /// Why not.
        reason: String,
    },
    /// The compiler cannot be run, or lacks a file that is needed.
    #[error("compiler {compiler}: {problem}")]
    Compiler {
        /// The program as it was given.
        compiler: String,
        /// What is missing, and what to install.
        problem: String,
    },
    /// A program that was run failed.
    #[error("{command} failed ({status}):\n{stderr}")]
    Program {
        /// The command as a person would type it.
        command: String,
        /// The exit status.
        status: String,
        /// What it printed on standard error.
        stderr: String,
    },
    /// The toolchain that was made does not pass its own checks, so it was not put in place.
    #[error("the new toolchain fails its own checks, and was not put in place:\n{}", problems.join("\n"))]
    Unsound {
        /// One line for each failed check.
        problems: Vec<String>,
    },
    /// The output directory holds something that is not a toolchain of ours.
    #[error("{} exists and is no toolchain that abiaudit made; give another directory", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// A link was refused.
    #[error("{0}")]
    Link(String),
}

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// Reads a whole file.
pub(crate) fn read(path: &std::path::Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::File { action: "read", path: path.to_owned(), source })
}

/// Writes a whole file.
pub(crate) fn write(path: &std::path::Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, bytes).map_err(|source| Error::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}
