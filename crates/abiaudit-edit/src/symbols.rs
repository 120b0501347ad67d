//! `.dynsym` and `.symtab` entries (gABI chapter 5).

use crate::abi::{SHN_UNDEF, STB_LOCAL};
use crate::encoding::Encoding;

/// `Elf32_Sym` or `Elf64_Sym`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RawSymbol {
    pub name: u32,
    pub info: u8,
    pub other: u8,
    pub shndx: u16,
    pub value: u64,
    pub size: u64,
}

impl Encoding {
    pub(crate) fn symbol_size(self) -> u64 {
        self.by_class(16, 24)
    }
    /// Offset of `st_value` in a symbol.
    pub(crate) fn symbol_value_at(self) -> usize {
        self.by_class(4, 8)
    }
}

impl RawSymbol {
    pub(crate) fn read(encoding: Encoding, bytes: &[u8], at: usize) -> Option<Self> {
        let (info, value, size) = encoding.by_class((12, 4, 8), (4, 8, 16));
        let entry = bytes.get(at..at.checked_add(encoding.symbol_size() as usize)?)?;
        Some(Self {
            name: encoding.u32(entry, 0)?,
            info: *entry.get(info)?,
            other: *entry.get(info + 1)?,
            shndx: encoding.u16(entry, info + 2)?,
            value: encoding.word(entry, value)?,
            size: encoding.word(entry, size)?,
        })
    }

    pub(crate) fn push(&self, encoding: Encoding, bytes: &mut Vec<u8>) {
        let word = encoding.word_size();
        encoding.push(bytes, 4, u64::from(self.name));
        let tail = |bytes: &mut Vec<u8>| {
            bytes.extend([self.info, self.other]);
            encoding.push(bytes, 2, u64::from(self.shndx));
        };
        if encoding.is_64 {
            tail(bytes);
        }
        encoding.push(bytes, word, self.value);
        encoding.push(bytes, word, self.size);
        if !encoding.is_64 {
            tail(bytes);
        }
    }

    /// `STB_*`.
    pub(crate) fn binding(&self) -> u8 {
        self.info >> 4
    }

    /// Sets `STB_*`.
    pub(crate) fn set_binding(&mut self, binding: u8) {
        self.info = (binding << 4) | (self.info & 15);
    }

    /// Sets `STV_*`.
    pub(crate) fn set_visibility(&mut self, visibility: u8) {
        self.other = (self.other & !3) | (visibility & 3);
    }

    pub(crate) fn is_local(&self) -> bool {
        self.binding() == STB_LOCAL
    }

    pub(crate) fn is_undefined(&self) -> bool {
        self.shndx == SHN_UNDEF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_written_as_they_are_read() {
        let symbol = RawSymbol { name: 1, info: 0x12, other: 3, shndx: 4, value: 5, size: 6 };
        for is_64 in [false, true] {
            let encoding = Encoding { is_64, is_big_endian: !is_64 };
            let mut bytes = Vec::new();
            symbol.push(encoding, &mut bytes);
            assert_eq!(bytes.len() as u64, encoding.symbol_size());
            assert_eq!(RawSymbol::read(encoding, &bytes, 0), Some(symbol));
        }
    }

    #[test]
    fn binding_and_visibility_leave_the_rest() {
        let mut symbol = RawSymbol { name: 0, info: 0xa1, other: 0x60, shndx: 1, value: 0, size: 0 };
        symbol.set_binding(2);
        symbol.set_visibility(2);
        assert_eq!((symbol.info, symbol.other), (0x21, 0x62));
    }
}
