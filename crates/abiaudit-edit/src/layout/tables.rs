//! Tables, in their places or in the new ones.

use super::arrangement::Arrangement;
use super::patches::Patches;
use super::tail::Tail;
use crate::abi::{DT_MIPS_RLD_MAP_REL, DT_STRSZ};
use crate::contents::Contents;
use crate::contents::Value;
use crate::table::Extent;
use crate::table::Table;
use crate::units::UnitKind;

impl Arrangement<'_, '_> {
    pub(super) fn place_of(&self, places: &[Option<Extent>], table: Table) -> Option<Extent> {
        let index = self.units.iter().position(|unit| unit.kind == UnitKind::Table(table))?;
        let unit = &self.units[index];
        let stays = Extent { size: unit.size(), ..unit.extent };
        Some(places.get(index).copied().flatten().unwrap_or(stays))
    }

    /// The dynamic section with new addresses, as large as its unit.
    pub(super) fn encode_dynamic(&self, after: &Contents, places: &[Option<Extent>]) -> Vec<u8> {
        let Some(own) = self.place_of(places, Table::Dynamic) else { return Vec::new() };
        let (encoding, word) = (self.image.encoding, self.image.encoding.word_size());
        let mut bytes = Vec::new();
        for (index, entry) in after.entries.iter().enumerate() {
            let table = Table::ALL.into_iter().find(|table| table.tag() == Some(entry.tag));
            let value = match (&entry.value, table) {
                (Value::Text(text), _) => u64::from(self.encoded.strings.place(text)),
                (Value::Number(_), Some(table)) if self.place_of(places, table).is_some() => {
                    self.place_of(places, table).map_or(0, |place| place.address)
                }
                (Value::Number(_), _) if entry.tag == DT_STRSZ => self.strings_size(),
                (Value::Number(value), _) if entry.tag == DT_MIPS_RLD_MAP_REL => {
                    value.wrapping_sub(own.address + (index * 2 * word) as u64)
                }
                (Value::Number(value), _) => *value,
            };
            encoding.push(&mut bytes, word, entry.tag);
            encoding.push(&mut bytes, word, value);
        }
        bytes.resize(bytes.len().max(own.size as usize), 0);
        bytes
    }

    /// `DT_STRSZ`: what the table has, not what its section has.
    pub(super) fn strings_size(&self) -> u64 {
        let unit = self.units.iter().find(|unit| unit.kind == UnitKind::Table(Table::DynamicStrings));
        let changed = unit.and_then(|unit| unit.content.as_ref()).map(|content| content.len() as u64);
        changed.or_else(|| self.image.dynamic_value(DT_STRSZ)).unwrap_or(0)
    }

    pub(super) fn put_units(&self, patches: &mut Patches, tail: &mut Tail, dynamic: Vec<u8>) {
        let mut dynamic = Some(dynamic);
        for (unit, moved) in self.units.iter().zip(&tail.places) {
            let content = match unit.kind {
                UnitKind::Table(Table::Dynamic) => dynamic.take(),
                UnitKind::Table(Table::DynamicSymbols) => self.shifted_symbols(unit, &tail.places),
                _ => unit.content.clone(),
            };
            match (moved, content) {
                (Some(to), content) => {
                    let old = || self.image.slice("a table", unit.extent.offset, unit.extent.size);
                    let bytes = content.unwrap_or_else(|| old().unwrap_or_default().to_vec());
                    let begin = (to.offset - tail.begin) as usize;
                    if let Some(room) = tail.bytes.get_mut(begin..begin + bytes.len()) {
                        room.copy_from_slice(&bytes);
                    }
                }
                (None, Some(mut content)) => {
                    content.resize(unit.extent.size as usize, 0);
                    patches.put(unit.extent.offset, content);
                }
                (None, None) => {}
            }
        }
    }
}
