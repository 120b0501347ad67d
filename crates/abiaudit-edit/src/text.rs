//! Strings of `.dynstr`, old and new.

use std::borrow::Cow;

/// A string that a table refers to: one that is in `.dynstr`, or one that a plan brings.
#[derive(Debug, Clone)]
pub(crate) struct Text<'a> {
    bytes: Cow<'a, [u8]>,
    original: Option<u32>,
}

/// Strings are the same if their bytes are, wherever they are kept.
impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}
impl Eq for Text<'_> {}

impl<'a> Text<'a> {
    /// The string at an offset of a string table, without its final zero.
    pub(crate) fn read(table: &'a [u8], offset: u32) -> Option<Self> {
        let rest = table.get(offset as usize..)?;
        let end = memchr::memchr(0, rest)?;
        Some(Self { bytes: Cow::Borrowed(rest.get(..end)?), original: Some(offset) })
    }

    pub(crate) fn new(text: &str) -> Self {
        Self { bytes: Cow::Owned(text.as_bytes().to_vec()), original: None }
    }

    /// Takes another value; the same value leaves the place.
    pub(crate) fn set(&mut self, text: &str) {
        if *self.bytes != *text.as_bytes() {
            *self = Self::new(text);
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        *self.bytes == *text.as_bytes()
    }

    /// Its offset in the original `.dynstr`, for a string that was there.
    pub(crate) fn original(&self) -> Option<u32> {
        self.original
    }

    pub(crate) fn display(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}
