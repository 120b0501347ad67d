//! Values that follow what moved: of symbols, and in the global offset table.

use super::arrangement::Arrangement;
use super::patches::Patches;
use crate::abi::{DT_PLTGOT, SHN_LORESERVE, SHN_UNDEF, SHT_SYMTAB};
use crate::symbols::RawSymbol;
use crate::table::{Extent, Table};
use crate::units::Unit;

impl Arrangement<'_, '_> {
    /// `.dynsym`, if it changes, with the values of symbols that lie in moved sections.
    pub(super) fn shifted_symbols(&self, unit: &Unit, places: &[Option<Extent>]) -> Option<Vec<u8>> {
        let image = self.image;
        let old = || image.slice(".dynsym", unit.extent.offset, unit.extent.size).ok();
        let mut bytes = unit.content.clone().or_else(|| old().map(<[u8]>::to_vec))?;
        let mut is_changed = unit.content.is_some();
        let strings = image.table_bytes(Table::DynamicStrings).unwrap_or_default();
        for at in (0..bytes.len()).step_by(image.encoding.symbol_size() as usize) {
            let Some(symbol) = RawSymbol::read(image.encoding, &bytes, at) else { continue };
            if let Some(value) = self.shifted_value(&symbol, strings, places) {
                let field = at + image.encoding.symbol_value_at();
                image.encoding.put(&mut bytes, field, image.encoding.word_size(), value);
                is_changed = true;
            }
        }
        is_changed.then_some(bytes)
    }

    /// The value of a symbol that lies in a moved section (a section symbol), or of `_DYNAMIC`, whose section number
    /// patchelf leaves wrong.
    fn shifted_value(&self, symbol: &RawSymbol, strings: &[u8], places: &[Option<Extent>]) -> Option<u64> {
        let name = strings.get(symbol.name as usize..).unwrap_or_default();
        if let Some((from, to)) = self.moved_dynamic(places)
            && symbol.value == from.address
            && name.starts_with(b"_DYNAMIC\0")
        {
            return Some(to.address);
        }
        if !self.image.sections_agree || symbol.shndx == SHN_UNDEF || symbol.shndx >= SHN_LORESERVE {
            return None;
        }
        let unit = self.units.iter().position(|unit| unit.sections.contains(&usize::from(symbol.shndx)))?;
        let (from, to) = (self.units.get(unit)?.extent, places.get(unit)?.as_ref()?);
        let inside = symbol.value.checked_sub(from.address).filter(|skip| *skip <= from.size)?;
        Some(to.address + inside)
    }

    /// Symbols of `.symtab` that lie in a moved section move with it.
    pub(super) fn put_symbol_values(&self, patches: &mut Patches, places: &[Option<Extent>]) {
        let image = self.image;
        if !image.sections_agree {
            return;
        }
        let size = image.encoding.symbol_size();
        for section in image.sections.iter().filter(|s| s.kind == SHT_SYMTAB && s.entsize == size) {
            let strings = image.sections.get(section.link as usize);
            let strings =
                strings.and_then(|s| image.slice(".strtab", s.offset, s.size).ok()).unwrap_or_default();
            let Ok(bytes) = image.slice(".symtab", section.offset, section.size) else { continue };
            for at in (0..bytes.len()).step_by(size as usize) {
                let Some(symbol) = RawSymbol::read(image.encoding, bytes, at) else { continue };
                if let Some(value) = self.shifted_value(&symbol, strings, places) {
                    let mut field = Vec::new();
                    image.encoding.push(&mut field, image.encoding.word_size(), value);
                    patches.put(section.offset + (at + image.encoding.symbol_value_at()) as u64, field);
                }
            }
        }
    }

    /// Where the dynamic section was and where it goes, if it moves.
    fn moved_dynamic(&self, places: &[Option<Extent>]) -> Option<(Extent, Extent)> {
        let index = self.units.iter().position(|unit| unit.kind.is_writable())?;
        Some((self.units.get(index)?.extent, (*places.get(index)?)?))
    }

    /// The first word of the global offset table is the address of the dynamic section on most machines (for i386 and
    /// x86-64 the psABI says so).
    pub(super) fn put_global_offset_table(&self, patches: &mut Patches, places: &[Option<Extent>]) {
        let Some((from, to)) = self.moved_dynamic(places) else { return };
        let (encoding, word) = (self.image.encoding, self.image.encoding.word_size());
        let table = self.image.dynamic_value(DT_PLTGOT);
        let offset = table.and_then(|address| self.image.offset_of(address, word as u64));
        let Some(offset) = offset else { return };
        if encoding.word(self.image.bytes, offset as usize) == Some(from.address) {
            let mut field = Vec::new();
            encoding.push(&mut field, word, to.address);
            patches.put(offset, field);
        }
    }
}
