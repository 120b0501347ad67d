//! String tables: NUL-terminated strings addressed by offset.

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
/// All sonames, search paths and version names of one file together, with what each costs beyond its bytes.
const ALL_NAMES: usize = 32 << 20;
/// What a [`Name`] costs beyond its bytes: the `Vec` and the rounding of the allocator.
const COST_OF_A_NAME: usize = 64;

impl<'a> StringTable<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, budget: Cell::new(ALL_NAMES) }
    }

    /// The string at `offset`, for the entry that `what` names.
    pub(crate) fn name(&self, what: &'static str, offset: u64) -> Result<Name, ParseError> {
        let size = self.bytes.len() as u64;
        let outside = ParseError::BadString { what, offset, size };
        let rest = usize::try_from(offset).ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default();
        if rest.is_empty() {
            return Err(outside);
        }
        let window = rest.get(..=LONGEST_NAME).unwrap_or(rest);
        let Some(end) = memchr::memchr(0, window) else {
            // Not terminated at all, or too far away to be a name.
            return Err(if window.len() == rest.len() { outside } else { too_long(what, offset) });
        };
        let left = self.budget.get().checked_sub(end + COST_OF_A_NAME);
        self.budget.set(left.ok_or_else(|| ParseError::Malformed {
            what,
            found: format!("more than {ALL_NAMES} bytes of names"),
            expected: "names that fit memory",
        })?);
        Ok(Name::from(&window[..end]))
    }
}

fn too_long(what: &'static str, offset: u64) -> ParseError {
    let found = format!("a name of more than {LONGEST_NAME} bytes at string offset {offset:#x}");
    ParseError::Malformed { what, found, expected: "names of sensible length" }
}

/// The part of a string table in which every string has an end: up to the last NUL.
pub(crate) fn terminated(strings: &[u8]) -> &[u8] {
    let end = memchr::memrchr(0, strings).map_or(0, |last| last + 1);
    &strings[..end]
}

/// The NUL-terminated string at `offset`. Costs the length of the string if the table is [`terminated`].
pub(crate) fn string_at(strings: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let end = memchr::memchr(0, rest)?;
    rest.get(..end)
}

/// The string at `offset` if it is shorter than `limit`; looks at no more bytes than that.
pub(crate) fn short_string_at(strings: &[u8], offset: u64, limit: usize) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let window = rest.get(..limit).unwrap_or(rest);
    string_at(window, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_inside_the_table() {
        let table = StringTable::new(b"\0libc.so.6\0open");
        assert_eq!(table.name("x", 1).unwrap(), "libc.so.6");
        assert_eq!(table.name("x", 0).unwrap(), "");
        assert!(matches!(table.name("x", 11), Err(ParseError::BadString { offset: 11, size: 15, .. })));
        assert!(matches!(table.name("x", 15), Err(ParseError::BadString { .. })));
        assert!(matches!(table.name("x", u64::MAX), Err(ParseError::BadString { .. })));
        assert_eq!(terminated(b"\0a\0open"), b"\0a\0");
        assert_eq!(terminated(b"open"), b"");
        assert_eq!(short_string_at(b"abc\0", 0, 4), Some(&b"abc"[..]));
        assert_eq!(short_string_at(b"abc\0", 0, 3), None);
    }

    #[test]
    fn many_names_from_one_string_are_refused() {
        let mut bytes = vec![b'a'; LONGEST_NAME];
        bytes.push(0);
        let table = StringTable::new(&bytes);
        let refused = (0..10_000usize).find(|_| table.name("x", 0).is_err());
        assert_eq!(refused, Some(ALL_NAMES / (LONGEST_NAME + COST_OF_A_NAME)));
        bytes.insert(0, b'a');
        assert!(matches!(StringTable::new(&bytes).name("x", 0), Err(ParseError::Malformed { .. })));
    }
}
