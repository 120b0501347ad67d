//! Reading a single ELF file, and mapping files.

use std::fs::File;
use std::path::Path;

use abiaudit_detect::Markers;
use abiaudit_elf::{FileKind, Object, Wants};
use memmap2::Mmap;
use sha2::{Digest, Sha256};

use crate::content::Content;
use crate::error::ScanError;
use crate::subject::{Member, Subject, SubjectKind};
use crate::{Options, installed};

pub(crate) fn scan(path: &Path, options: &Options<'_>) -> Result<Subject, ScanError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let installed = installed::of_record_path(&name);
    let member = read(path, name, installed, options).map_err(|source| ScanError::io(path, source))?;
    let found = match &member.content {
        Content::Object(_) | Content::BrokenElf(_) => None,
        Content::Other(FileKind::Zip) => Some("a zip archive whose name does not end in .whl"),
        Content::Other(FileKind::MachO) => Some("a Mach-O file"),
        Content::Other(FileKind::Pe) => Some("a Windows PE file"),
        Content::Other(FileKind::StaticArchive) => Some("a static library"),
        Content::Other(FileKind::LinkerScript) => Some("a linker script"),
        Content::Other(FileKind::Empty) => Some("an empty file"),
        _ => Some("neither a zip archive nor an ELF file"),
    };
    if let Some(found) = found {
        return Err(ScanError::UnknownKind { path: path.to_owned(), found });
    }
    Ok(Subject {
        path: path.to_string_lossy().into_owned(),
        kind: SubjectKind::File,
        size: member.size,
        sha256: member.sha256,
        file_name: None,
        dist_info: None,
        archive_problems: Vec::new(),
        archive_names: Vec::new(),
        members: vec![member],
    })
}

/// Reads a file of the file system.
pub(crate) fn read(
    path: &Path,
    name: String,
    installed: String,
    options: &Options<'_>,
) -> std::io::Result<Member> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let map = map(&file, metadata.len())?;
    let bytes: &[u8] = map.as_deref().unwrap_or_default();
    let content = match FileKind::sniff(&name, &bytes[..bytes.len().min(FileKind::SNIFF_LEN)]) {
        FileKind::Elf => match Object::from_bytes(bytes, &Wants::default()) {
            Ok(object) => Content::Object(Box::new(object)),
            Err(error) => Content::BrokenElf(error),
        },
        other => Content::Other(other),
    };
    let is_elf = matches!(content, Content::Object(_) | Content::BrokenElf(_));
    let markers = if is_elf { Markers::of_bytes(bytes) } else { Markers::default() };
    if let Some(progress) = options.progress {
        progress(metadata.len());
    }
    Ok(Member {
        name,
        installed,
        size: metadata.len(),
        compressed_size: metadata.len(),
        executable: is_executable(&metadata),
        sha256: Some(Sha256::digest(bytes).into()),
        content,
        markers,
    })
}

/// Maps a file; an empty one cannot be mapped.
fn map(file: &File, size: u64) -> std::io::Result<Option<Mmap>> {
    if size == 0 {
        return Ok(None);
    }
    // SAFETY: the map is private and read-only. If another process truncates the file while it is read, the
    // kernel ends this process with SIGBUS, which docs/architecture.md states; no memory rule of Rust depends on
    // the bytes keeping their values, since each is copied out once through checked reads.
    #[allow(unsafe_code, reason = "the memory map")]
    let map = unsafe { Mmap::map(file)? };
    Ok(Some(map))
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &std::fs::Metadata) -> bool {
    false
}
