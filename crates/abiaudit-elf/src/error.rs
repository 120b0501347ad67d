//! What can be wrong with a file: [`ParseError`] when nothing can be said of it, [`Problem`] when the rest
//! still stands.

use std::fmt;

/// Why no [`Object`](crate::Object) can be made of the bytes. Offsets and sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes do not start with `\x7fELF`.
    #[error("not an ELF file")]
    NotElf,
    /// `e_ident` names a class, byte order or version that gABI (chapter 4, ELF identification) does not have.
    #[error("unsupported ELF identification: {field} is {value}")]
    BadIdent {
        /// The field of `e_ident`.
        field: &'static str,
        /// Its value.
        value: u8,
    },
    /// A structure reaches past the end of the file.
    #[error(
        "{what} at offset {offset:#x} with {size} bytes reaches past the end of the file ({file_size} bytes)"
    )]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Where it should start.
        offset: u64,
        /// How long it should be.
        size: u64,
        /// How long the file is.
        file_size: u64,
    },
    /// A size, count or pointer makes no sense.
    #[error("{what}: {found}, expected {expected}")]
    Malformed {
        /// The structure and field.
        what: &'static str,
        /// What the file says.
        found: String,
        /// What it should say.
        expected: &'static str,
    },
    /// An address that no `PT_LOAD` segment backs with file content.
    #[error("{what} is at address {address:#x}, which no PT_LOAD segment backs with file content")]
    Unmapped {
        /// What the address belongs to.
        what: &'static str,
        /// The virtual address.
        address: u64,
    },
    /// A string offset outside of its string table.
    #[error("{what}: string offset {offset:#x} is outside of .dynstr ({size} bytes)")]
    BadString {
        /// Whose string it is.
        what: &'static str,
        /// The offset that is wrong.
        offset: u64,
        /// The size of the string table.
        size: u64,
    },
}

/// Something odd that leaves the other facts standing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The structure.
    pub what: &'static str,
    /// What is odd about it.
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.detail)
    }
}

/// Why a read from an [`Image`](crate::Image) failed: the bytes were not kept, or the file is wrong.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Ranges of the file that were not captured; a further pass over the stream can bring them.
    Missing(Vec<std::ops::Range<u64>>),
    /// The file itself is wrong.
    Bad(ParseError),
}

impl From<ParseError> for Fault {
    fn from(error: ParseError) -> Self {
        Self::Bad(error)
    }
}

impl Fault {
    pub(crate) fn malformed(what: &'static str, found: impl Into<String>, expected: &'static str) -> Self {
        Self::Bad(ParseError::Malformed { what, found: found.into(), expected })
    }
}
