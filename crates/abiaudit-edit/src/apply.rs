//! Carrying a layout out: in memory, or on a file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::EditError;
use crate::layout::Layout;

impl Layout {
    /// The edited bytes.
    pub fn apply(&self, original: &[u8]) -> Vec<u8> {
        let mut bytes = original.to_vec();
        bytes.resize(usize::try_from(self.new_size).unwrap_or(bytes.len()), 0);
        for write in &self.writes {
            let begin = usize::try_from(write.offset).unwrap_or(usize::MAX);
            if let Some(room) = begin.checked_add(write.bytes.len()).and_then(|end| bytes.get_mut(begin..end))
            {
                room.copy_from_slice(&write.bytes);
            }
        }
        bytes
    }

    /// Writes a copy of a file with the edits beside the target, which [`finish`] gives its name.
    ///
    /// The copy is the kernel's work where the file system allows it (`copy_file_range`), so that a file of half
    /// a gigabyte with a few changed bytes costs a few bytes.
    pub(crate) fn apply_to_file(
        &self,
        original: &mut File,
        target: &Path,
    ) -> Result<NamedTempFile, EditError> {
        let mut copy = beside(target)?;
        let writing = EditError::io(format!("write {}", target.display()));
        self.write_copy(original, copy.as_file_mut()).map_err(writing)?;
        Ok(copy)
    }

    fn write_copy(&self, original: &mut File, copy: &mut File) -> io::Result<()> {
        original.seek(SeekFrom::Start(0))?;
        io::copy(original, copy)?;
        copy.set_len(self.new_size)?;
        for write in &self.writes {
            copy.seek(SeekFrom::Start(write.offset))?;
            copy.write_all(&write.bytes)?;
        }
        copy.flush()
    }
}

/// A new file in the directory of the target.
pub(crate) fn beside(target: &Path) -> Result<NamedTempFile, EditError> {
    let directory = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let creating = EditError::io(format!("create a file in {}", directory.display()));
    tempfile::Builder::new().prefix(".abiaudit-").tempfile_in(directory).map_err(creating)
}

/// Gives a complete file the mode of the original and the name of the target.
pub(crate) fn finish(file: NamedTempFile, original: &File, target: &Path) -> Result<(), EditError> {
    let writing = || EditError::io(format!("write {}", target.display()));
    let permissions = original.metadata().map_err(writing())?.permissions();
    file.as_file().set_permissions(permissions).map_err(writing())?;
    file.as_file().sync_all().map_err(writing())?;
    file.persist(target).map_err(|error| error.error).map_err(writing())?;
    Ok(())
}
