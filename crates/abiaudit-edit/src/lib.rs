//! An ELF editor that cannot corrupt: a plan, its layout, the write, and the proof that nothing else changed.
//!
//! An [`EditPlan`] is data: a list of [`Edit`]s. [`EditPlan::lay_out`] decides, for one file, which bytes change
//! ([`Layout`], printable, the same for the same input). [`edit`] lays out, applies in memory and verifies;
//! [`edit_file`] does the same on a file of any size by writing only what differs. Nothing is handed out that
//! [`verify`] has not passed: it computes what the file must say from the original and the plan alone, and reads the
//! result with two readers that share no code.
//!
//! ```no_run
//! use abiaudit_edit::{Edit, EditPlan, Options, Place, SearchPathKind, edit};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bytes = std::fs::read("libfoo.so")?;
//! let plan = EditPlan::new([
//!     Edit::SetSoname { soname: "libfoo-1a2b3c4d.so".into() },
//!     Edit::SetSearchPath { kind: SearchPathKind::Runpath, path: "$ORIGIN".into() },
//!     Edit::ReplaceNeeded { from: "libbar.so.1".into(), to: "libbar-5e6f.so.1".into() },
//! ]);
//! let edited = edit(&bytes, &plan, &Options::default())?;
//! std::fs::write("libfoo-1a2b3c4d.so", &edited.bytes)?;
//! # Ok(()) }
//! ```
//!
//! The truth about a file is what the dynamic loader reads: program headers and the dynamic section. Section headers are
//! adapted where they agree with it, and ignored where they do not. What cannot be done without risk is a
//! [`Refusal`] with a code. ELF32 and ELF64, both byte orders, any machine.

mod abi;
mod apply;
mod contents;
mod edits;
mod encode;
mod encoding;
mod error;
mod file;
mod hash;
mod headers;
mod image;
mod layout;
mod plan;
mod refusal;
mod relocations;
mod strings;
mod strip;
mod symbols;
mod table;
mod text;
mod units;
mod verify;
mod versions;

use std::borrow::Cow;

pub use encoding::Encoding;
pub use error::EditError;
pub use file::{EditedFile, edit_file};
pub use image::ElfImage;
pub use layout::{Layout, Move, NewSegment, Options, Warning, Write};
pub use plan::{
    Binding, DebugLink, Edit, EditPlan, Place, RequiredVersion, SearchPathKind, StripLevel, SymbolName,
    Visibility,
};
pub use refusal::Refusal;
pub use strip::{Stripped, debug_file, debug_link, strip};
pub use table::{Extent, Table};
pub use units::UnitKind;
pub use verify::{Invariant, Violation, verify};

/// An edited and verified file.
#[derive(Debug, Clone)]
pub struct Edited {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// What was done.
    pub layout: Layout,
    /// Names of the sections that were stripped.
    pub stripped: Vec<String>,
}

impl Edited {
    /// Whether the plan found anything to do.
    pub fn is_changed(&self) -> bool {
        !self.layout.is_empty() || !self.stripped.is_empty()
    }
}

/// Carries a plan out in memory, and verifies the result.
///
/// # Errors
/// [`EditError::Refused`] if the plan cannot be carried out without risk, with the reason; [`EditError::Malformed`] if
/// the file contradicts itself; [`EditError::Unverified`] if the result was wrong, which is a fault of this crate.
pub fn edit(bytes: &[u8], plan: &EditPlan, options: &Options) -> Result<Edited, EditError> {
    let (bytes, stripped) = strip_first(bytes, plan)?;
    let layout = plan.lay_out(&ElfImage::parse(&bytes)?, options)?;
    if layout.is_empty() {
        return Ok(Edited { bytes: bytes.into_owned(), layout, stripped });
    }
    let edited = layout.apply(&bytes);
    require_verified(&bytes, &edited, plan, &layout)?;
    Ok(Edited { bytes: edited, layout, stripped })
}

/// Carries out [`Edit::Strip`], if the plan has it, and names the sections that went.
fn strip_first<'b>(bytes: &'b [u8], plan: &EditPlan) -> Result<(Cow<'b, [u8]>, Vec<String>), EditError> {
    let mut current = Cow::Borrowed(bytes);
    let mut removed = Vec::new();
    for edit in &plan.edits {
        if let Edit::Strip { level, debug_link } = edit {
            let stripped = strip(&current, *level, debug_link.as_ref())?;
            removed.extend(stripped.removed);
            current = Cow::Owned(stripped.bytes);
        }
    }
    Ok((current, removed))
}

pub(crate) fn require_verified(
    before: &[u8],
    after: &[u8],
    plan: &EditPlan,
    layout: &Layout,
) -> Result<(), EditError> {
    let violations = verify(before, after, plan, layout)?;
    if violations.is_empty() { Ok(()) } else { Err(EditError::Unverified(violations)) }
}
