//! What was found in one input.

use abiaudit_detect::Markers;
use abiaudit_elf::Object;
use abiaudit_wheel::archive::ArchiveProblem;
use abiaudit_wheel::{DistInfo, WheelName};

use crate::content::Content;

/// What kind of input it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    /// A `.whl` file.
    Wheel,
    /// An unpacked wheel or one installed distribution.
    Distribution,
    /// A directory of files that no dist-info describes.
    Directory,
    /// One ELF file.
    File,
}

/// One input, read.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The path as it was given.
    pub path: String,
    /// What it is.
    pub kind: SubjectKind,
    /// Size of the wheel or file in bytes; of a directory the sum of its files.
    pub size: u64,
    /// SHA-256 of the wheel or file itself, if it was asked for; a directory has none.
    pub sha256: Option<[u8; 32]>,
    /// The wheel's file name, taken apart.
    pub file_name: Option<WheelName>,
    /// What the wheel says about itself.
    pub dist_info: Option<DistInfo>,
    /// What is wrong with the archive; indexes are those of `archive_names`.
    pub archive_problems: Vec<ArchiveProblem>,
    /// Names of all archive entries in the order of the central directory, directories and duplicates too.
    pub archive_names: Vec<String>,
    /// All files, sorted by name (duplicates keep the order of the archive). Directories are left out.
    pub members: Vec<Member>,
}

/// One file of the input.
#[derive(Debug, Clone)]
pub struct Member {
    /// Path within the wheel or directory, with `/`.
    pub name: String,
    /// Where an installer puts it, as an absolute path of an imagined environment: what the loader sees.
    pub installed: String,
    /// Size in bytes.
    pub size: u64,
    /// Size in the archive in bytes; equal to `size` outside of one.
    pub compressed_size: u64,
    /// Any execute permission bit is set.
    pub executable: bool,
    /// SHA-256 of the content; absent for what could not be read and for symbolic links.
    pub sha256: Option<[u8; 32]>,
    /// What it is.
    pub content: Content,
    /// Texts in an ELF file that speak for a runtime: half of what [`abiaudit_detect::detect`] goes by.
    pub markers: Markers,
}

impl Subject {
    /// ELF members that could be read, with their facts.
    pub fn objects(&self) -> impl Iterator<Item = (&Member, &Object)> {
        self.members.iter().filter_map(|member| Some((member, member.object()?)))
    }

    /// Name and version: of the file name, else of METADATA.
    pub fn name_and_version(&self) -> Option<(String, String)> {
        if let Some(name) = &self.file_name {
            return Some((name.name.clone(), name.version_text.clone()));
        }
        let metadata = self.dist_info.as_ref()?.metadata.as_ref()?;
        Some((metadata.name.clone()?, metadata.version_text.clone()?))
    }
}

impl Member {
    /// The facts, if it is an ELF file that could be read.
    pub fn object(&self) -> Option<&Object> {
        match &self.content {
            Content::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The last component of the name.
    pub fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}
