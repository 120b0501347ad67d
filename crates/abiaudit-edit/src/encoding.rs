//! Class and byte order of a file, and checked reading and writing of its fields.

use serde::Serialize;

/// How fields are encoded: `EI_CLASS` and `EI_DATA` (gABI chapter 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Encoding {
    /// `ELFCLASS64`: words of 8 bytes instead of 4.
    pub is_64: bool,
    /// `ELFDATA2MSB`.
    pub is_big_endian: bool,
}

impl Encoding {
    /// Size of an address or a word (`Elf32_Word`-sized or `Elf64_Xword`-sized fields), in bytes.
    pub(crate) fn word_size(self) -> usize {
        if self.is_64 { 8 } else { 4 }
    }

    /// Chooses by class.
    pub(crate) fn by_class<T>(self, for_32: T, for_64: T) -> T {
        if self.is_64 { for_64 } else { for_32 }
    }

    /// An unsigned field of `size` bytes (1 to 8) at `offset`; `None` if it is not within the bytes.
    pub(crate) fn get(self, bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
        let field = bytes.get(offset..offset.checked_add(size)?)?;
        let fold = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
        Some(if self.is_big_endian { field.iter().fold(0, fold) } else { field.iter().rev().fold(0, fold) })
    }

    pub(crate) fn u16(self, bytes: &[u8], offset: usize) -> Option<u16> {
        self.get(bytes, offset, 2).map(|value| value as u16)
    }

    pub(crate) fn u32(self, bytes: &[u8], offset: usize) -> Option<u32> {
        self.get(bytes, offset, 4).map(|value| value as u32)
    }

    pub(crate) fn word(self, bytes: &[u8], offset: usize) -> Option<u64> {
        self.get(bytes, offset, self.word_size())
    }

    /// Writes an unsigned field. The caller has made the room; a field outside of it is not written.
    pub(crate) fn put(self, bytes: &mut [u8], offset: usize, size: usize, value: u64) {
        let Some(field) = offset.checked_add(size).and_then(|end| bytes.get_mut(offset..end)) else {
            debug_assert!(false, "a field of {size} bytes at {offset} of {}", bytes.len());
            return;
        };
        for (index, byte) in field.iter_mut().enumerate() {
            let place = if self.is_big_endian { size - 1 - index } else { index };
            *byte = (value >> (8 * place)) as u8;
        }
    }

    /// Appends an unsigned field.
    pub(crate) fn push(self, bytes: &mut Vec<u8>, size: usize, value: u64) {
        let offset = bytes.len();
        bytes.resize(offset + size, 0);
        self.put(bytes, offset, size, value);
    }

    /// Whether a value fits an address field.
    pub(crate) fn fits_word(self, value: u64) -> bool {
        self.is_64 || u32::try_from(value).is_ok()
    }
}

/// The next multiple of `alignment` (0 and 1 mean none); `None` beyond 64 bits.
pub(crate) fn align_up(value: u64, alignment: u64) -> Option<u64> {
    if alignment <= 1 {
        return Some(value);
    }
    value.checked_next_multiple_of(alignment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_every_encoding() {
        for is_64 in [false, true] {
            for is_big_endian in [false, true] {
                let encoding = Encoding { is_64, is_big_endian };
                let mut bytes = Vec::new();
                encoding.push(&mut bytes, 2, 0x1234);
                encoding.push(&mut bytes, 4, 0x89ab_cdef);
                encoding.push(&mut bytes, encoding.word_size(), 0x7fff_0001);
                assert_eq!(encoding.u16(&bytes, 0), Some(0x1234));
                assert_eq!(encoding.u32(&bytes, 2), Some(0x89ab_cdef));
                assert_eq!(encoding.word(&bytes, 6), Some(0x7fff_0001));
                assert_eq!(bytes[0], if is_big_endian { 0x12 } else { 0x34 });
                assert_eq!(encoding.word(&bytes, 7), None);
            }
        }
    }
}
