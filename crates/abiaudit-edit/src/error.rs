//! Why a file was not edited.

use std::io;

use crate::refusal::Refusal;
use crate::verify::Violation;

/// Why an edit did not happen. The input is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The bytes do not begin as an ELF file does.
    #[error("not an ELF file")]
    NotElf,
    /// A structure is outside of the file, or contradicts another one.
    #[error("{what} at offset {offset:#x}: {found}; expected {expected}")]
    Malformed {
        /// The structure, in the words of the gABI.
        what: &'static str,
        /// Where it is or would be in the file.
        offset: u64,
        /// What was found there.
        found: String,
        /// What a loader needs there.
        expected: &'static str,
    },
    /// The file is understood, but the plan cannot be carried out on it without risk.
    #[error("{0} [{code}]", code = .0.code())]
    Refused(#[from] Refusal),
    /// The result was made and then found to be wrong; it was thrown away. This is a fault of the editor.
    #[error("the edited file failed verification: {}", join(.0))]
    Unverified(Vec<Violation>),
    /// The file could not be read or written.
    #[error("cannot {action}")]
    Io {
        /// What was being done, to which path.
        action: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl EditError {
    pub(crate) fn malformed(
        what: &'static str,
        offset: u64,
        found: impl Into<String>,
        expected: &'static str,
    ) -> Self {
        Self::Malformed { what, offset, found: found.into(), expected }
    }

    pub(crate) fn outside(what: &'static str, offset: u64) -> Self {
        Self::malformed(what, offset, "it ends beyond the end of the file", "a structure inside the file")
    }

    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }
}

fn join(violations: &[Violation]) -> String {
    let lines: Vec<String> = violations.iter().take(8).map(ToString::to_string).collect();
    lines.join("; ")
}
