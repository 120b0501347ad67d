//! A library that can be grafted, and where it is from.

use std::fs;
use std::path::{Path, PathBuf};

use abiaudit_elf::Object;
use abiaudit_scan::{Content, Member};
use abiaudit_wheel::archive::Scratch;
use abiaudit_wheel::{Archive, Limits};

/// Where the bytes of a library are from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Source {
    /// A file of the machine or of the sysroot.
    File {
        /// The path under which the search found it.
        found: PathBuf,
        /// The same without symbolic links.
        path: PathBuf,
    },
    /// A member of another wheel.
    Wheel {
        /// The wheel.
        wheel: PathBuf,
        /// The member.
        member: String,
    },
}

impl Source {
    /// The last component of the true path.
    pub fn file_name(&self) -> String {
        match self {
            Self::File { path, .. } => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Wheel { member, .. } => member.rsplit('/').next().unwrap_or_default().to_owned(),
        }
    }

    /// The bytes, read again.
    ///
    /// # Errors
    /// What the system or the archive says.
    pub fn read(&self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::File { path, .. } => fs::read(path),
            Self::Wheel { wheel, member } => {
                let archive = Archive::open(wheel, &Limits::default()).map_err(std::io::Error::other)?;
                let entry = archive
                    .member(member)
                    .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotFound, "no such member"))?;
                archive.read_prefix(entry, &mut Scratch::new(), usize::MAX).map_err(std::io::Error::other)
            }
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, .. } => write!(f, "{}", path.display()),
            Self::Wheel { wheel, member } => write!(f, "{}:{member}", wheel.display()),
        }
    }
}

/// A library, read.
#[derive(Debug, Clone)]
pub struct Library {
    /// Where it is from.
    pub source: Source,
    /// Facts, hash and markers; the name is the file's.
    pub member: Member,
}

impl Library {
    /// Reads a file; `None` if it is no ELF file that can be read.
    pub fn read(found: &Path, real: &Path) -> Option<Self> {
        let bytes = fs::read(real).ok()?;
        let source = Source::File { found: found.to_owned(), path: real.to_owned() };
        Self::new(source, &bytes)
    }

    /// Reads bytes that are at hand; `None` if they are no ELF file that can be read.
    pub fn new(source: Source, bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(b"\x7fELF") {
            return None;
        }
        let member = abiaudit_scan::member_of(&source.file_name(), true, bytes);
        matches!(member.content, Content::Object(_)).then_some(Self { source, member })
    }

    /// The facts.
    pub fn object(&self) -> Option<&Object> {
        self.member.object()
    }

    /// `DT_SONAME`.
    pub fn soname(&self) -> Option<String> {
        Some(self.object()?.dynamic.soname.as_ref()?.to_text())
    }

    /// SHA-256 of the file.
    pub fn sha256(&self) -> [u8; 32] {
        self.member.sha256.unwrap_or_default()
    }
}
