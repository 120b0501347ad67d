//! Edits of one file in memory.

use abiaudit_edit::{EditError, EditPlan, Options};

/// Carries a plan out; the editor verifies the result.
pub(crate) fn apply(content: Vec<u8>, plan: &EditPlan) -> Result<Vec<u8>, EditError> {
    let edited = abiaudit_edit::edit(&content, plan, &Options::default())?;
    drop(content);
    Ok(edited.bytes)
}
