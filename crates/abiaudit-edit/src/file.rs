//! Editing files on disk.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use memmap2::Mmap;

use crate::error::EditError;
use crate::image::ElfImage;
use crate::layout::{Layout, Options};
use crate::plan::{Edit, EditPlan};

/// What was done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedFile {
    /// What the plan changed, after strip.
    pub layout: Layout,
    /// Names of the sections that were stripped.
    pub stripped: Vec<String>,
}

/// Carries a plan out on a file, and gives the verified result the name `target`, which may be the input's own.
///
/// The result is written beside the target and renamed, so that the target is the old file or the new one, whatever
/// happens. It has the mode of the input. Nothing is written if the plan finds nothing to do and input and target are the
/// same.
///
/// # Errors
/// As [`crate::edit`], and [`EditError::Io`].
pub fn edit_file(
    input: &Path,
    target: &Path,
    plan: &EditPlan,
    options: &Options,
) -> Result<EditedFile, EditError> {
    let reading = || EditError::io(format!("read {}", input.display()));
    let mut original = File::open(input).map_err(reading())?;
    let before = map(&original).map_err(reading())?;
    if plan.edits.iter().any(|edit| matches!(edit, Edit::Strip { .. })) {
        return edit_and_replace(&before, &original, target, plan, *options);
    }
    let layout = plan.lay_out(&ElfImage::parse(&before)?, options)?;
    if layout.is_empty() && is_same_file(input, target) {
        return Ok(EditedFile { layout, stripped: Vec::new() });
    }
    let writing = || EditError::io(format!("write {}", target.display()));
    let copy = layout.apply_to_file(&mut original, target)?;
    let after = map(copy.as_file()).map_err(writing())?;
    if !layout.is_empty() {
        crate::require_verified(&before, &after, plan, &layout)?;
    }
    drop(after);
    crate::apply::finish(copy, &original, target)?;
    Ok(EditedFile { layout, stripped: Vec::new() })
}

/// Strip moves everything: the file is written as a whole.
fn edit_and_replace(
    before: &[u8],
    original: &File,
    target: &Path,
    plan: &EditPlan,
    options: Options,
) -> Result<EditedFile, EditError> {
    let writing = || EditError::io(format!("write {}", target.display()));
    let edited = crate::edit(before, plan, &options)?;
    let mut file = crate::apply::beside(target)?;
    file.write_all(&edited.bytes).map_err(writing())?;
    crate::apply::finish(file, original, target)?;
    Ok(EditedFile { layout: edited.layout, stripped: edited.stripped })
}

fn is_same_file(input: &Path, target: &Path) -> bool {
    matches!((input.canonicalize(), target.canonicalize()), (Ok(input), Ok(target)) if input == target)
}

/// Maps a file for reading. If another process truncates it meanwhile, the kernel ends this one with SIGBUS.
fn map(file: &File) -> std::io::Result<Mmap> {
    #[allow(unsafe_code, reason = "the memory map")]
    let map = unsafe { Mmap::map(file)? };
    Ok(map)
}
