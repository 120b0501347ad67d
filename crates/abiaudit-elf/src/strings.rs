//! The string table of dynamic names.

use std::cell::Cell;

use crate::error::ParseError;
use crate::name::Name;

/// `.dynstr`. Names that become owned [`Name`]s are bounded in length and in sum, so that thousands of entries
/// which share one huge string cannot fill the memory.
pub(crate) struct StringTable<'a> {
    bytes: &'a [u8],
    budget: Cell<usize>,
}

/// `PATH_MAX` is 4096; search paths are lists of paths.
const LONGEST_NAME: usize = 1 << 16;
/// All sonames, search paths and version names of one file together.
const ALL_NAMES: usize = 32 << 20;

impl<'a> StringTable<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, budget: Cell::new(ALL_NAMES) }
    }

    /// The string at `offset`, for the entry that `what` names.
    pub(crate) fn name(&self, what: &'static str, offset: u64) -> Result<Name, ParseError> {
        let size = self.bytes.len() as u64;
        let bytes = string_at(self.bytes, offset).ok_or(ParseError::BadString { what, offset, size })?;
        let left = self.budget.get().checked_sub(bytes.len() + 1);
        match left {
            Some(left) if bytes.len() <= LONGEST_NAME => self.budget.set(left),
            _ => {
                let found = format!("a name of {} bytes at string offset {offset:#x}", bytes.len());
                return Err(ParseError::Malformed { what, found, expected: "names of sensible length" });
            }
        }
        Ok(Name::from(bytes))
    }
}

/// The NUL-terminated string at `offset`.
pub(crate) fn string_at(strings: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let end = memchr::memchr(0, rest)?;
    rest.get(..end)
}
