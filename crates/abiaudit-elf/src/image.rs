//! The bytes of a file that were kept, addressed by file offset.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Fault, ParseError};

/// A file of which some ranges are known. Reads outside of the file are errors of the file; reads of ranges
/// that were not kept ask for another pass.
#[derive(Debug, Clone)]
pub struct Image<'data> {
    size: u64,
    /// `(start, bytes)`, in any order; they may overlap.
    pieces: Vec<(u64, Cow<'data, [u8]>)>,
}

impl<'data> Image<'data> {
    /// The whole file.
    pub fn whole(bytes: &'data [u8]) -> Self {
        Self { size: bytes.len() as u64, pieces: vec![(0, Cow::Borrowed(bytes))] }
    }

    /// A file of `size` bytes of which nothing is known yet.
    pub fn empty(size: u64) -> Self {
        Self { size, pieces: Vec::new() }
    }

    /// Adds the bytes found at `start`.
    pub fn insert(&mut self, start: u64, bytes: impl Into<Cow<'data, [u8]>>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.pieces.push((start, bytes));
        }
    }

    /// Adds everything that `other` knows of the same file.
    pub fn merge(&mut self, other: Image<'data>) {
        self.pieces.extend(other.pieces);
    }

    /// The size of the file in bytes, of what is known and what is not.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How many bytes are held.
    pub fn kept(&self) -> u64 {
        self.pieces.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// `size` bytes at `offset`, which `what` names in errors.
    pub(crate) fn bytes(&self, what: &'static str, offset: u64, size: u64) -> Result<&[u8], Fault> {
        let end = offset.checked_add(size).filter(|&end| end <= self.size);
        let Some(end) = end else {
            return Err(ParseError::Truncated { what, offset, size, file_size: self.size }.into());
        };
        self.get(offset..end).ok_or_else(|| Fault::Missing(vec![offset..end]))
    }

    /// The bytes of `range` if all of them are held.
    pub(crate) fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        if range.is_empty() {
            return Some(&[]);
        }
        self.pieces.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
            let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
            bytes.get(from..to)
        })
    }

    /// Those of `ranges` that are inside the file and not held; a [`Fault`] that asks for all of them at once.
    pub(crate) fn require(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<(), Fault> {
        let missing: Vec<_> =
            ranges.into_iter().filter(|r| r.end <= self.size && self.get(r.clone()).is_none()).collect();
        if missing.is_empty() { Ok(()) } else { Err(Fault::Missing(missing)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_asks_for_its_range_and_the_end_is_an_error() {
        let mut image = Image::empty(100);
        image.insert(10, vec![1, 2, 3, 4]);
        assert_eq!(image.bytes("x", 11, 2).unwrap(), [2, 3]);
        assert!(matches!(image.bytes("x", 0, 4), Err(Fault::Missing(r)) if r == [0..4]));
        assert!(matches!(image.bytes("x", 99, 2), Err(Fault::Bad(ParseError::Truncated { .. }))));
        assert!(matches!(image.bytes("x", u64::MAX, 2), Err(Fault::Bad(ParseError::Truncated { .. }))));
    }
}
