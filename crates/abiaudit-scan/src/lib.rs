//! Reads an input once into a [`Subject`]: a wheel, a directory (an unpacked wheel or an installed
//! `site-packages`), or a single ELF file.
//!
//! Everything that later asks something of the input asks the subject; nothing is inflated or parsed twice.
//! Members are read in parallel, the largest first, and each in one streaming pass that hashes it, tells what
//! kind of file it is, and, if it is ELF, keeps the bytes that its facts come from.

mod content;
mod directory;
mod error;
mod file;
mod installed;
mod reader;
mod subject;
mod wheel;

use std::path::Path;

pub use abiaudit_wheel::Limits;
pub use content::Content;
pub use error::ScanError;
pub use installed::{SITE_PACKAGES, of_member as installed_path};
pub use reader::{ReadError, Reader};
pub use subject::{Member, Subject, SubjectKind};
pub use wheel::{member_of, scan_archive};

/// How to read an input.
#[derive(Default)]
pub struct Options<'a> {
    /// Bounds on what an archive may make the reader do.
    pub limits: Limits,
    /// Hash the wheel as a whole too: [`Subject::sha256`]. Members are always hashed, since RECORD is checked.
    pub digest: bool,
    /// Called with the number of bytes (uncompressed) just read, from any thread.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

/// Reads what is at `path`. A directory that holds several distributions gives one subject for each.
///
/// # Errors
/// [`ScanError`] if nothing can be said of the input at all; what is wrong inside it is part of the subject.
pub fn scan(path: &Path, options: &Options<'_>) -> Result<Vec<Subject>, ScanError> {
    let metadata = std::fs::metadata(path).map_err(|source| ScanError::io(path, source))?;
    if metadata.is_dir() {
        return directory::scan(path, options);
    }
    if !metadata.is_file() {
        return Err(ScanError::NotAFile { path: path.to_owned() });
    }
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("whl")) {
        return wheel::scan(path, options).map(|subject| vec![subject]);
    }
    file::scan(path, options).map(|subject| vec![subject])
}
