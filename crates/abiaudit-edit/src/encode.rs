//! Contents back into tables.

use std::collections::BTreeMap;

use crate::abi::{DT_MIPS_GOTSYM, DT_MIPS_XHASH};
use crate::contents::{Contents, Symbol};
use crate::error::EditError;
use crate::image::ElfImage;
use crate::refusal::Refusal;
use crate::relocations;
use crate::strings::StringTable;
use crate::table::Table;
use crate::versions::encode_needs;

/// What the tables will be, but for the dynamic section, which needs the addresses of the others first.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub strings: StringTable,
    /// Tables whose bytes change.
    pub tables: BTreeMap<Table, Vec<u8>>,
    /// For each dynamic symbol its former index, if their order changes.
    pub order: Option<Vec<u32>>,
    /// The number of records of `.gnu.version_r`, if it changes.
    pub needs_count: Option<u32>,
    /// Offset and new bytes of relocation tables, if the order of symbols changes.
    pub relocations: Vec<(u64, Vec<u8>)>,
}

impl Encoded {
    pub(crate) fn new(image: &ElfImage, before: &Contents, after: &Contents) -> Result<Self, EditError> {
        let original = image.table_bytes(Table::DynamicStrings)?;
        let strings = StringTable::new(image, original, after)?;
        let mut encoded = Self {
            strings,
            tables: BTreeMap::new(),
            order: None,
            needs_count: None,
            relocations: Vec::new(),
        };
        if before.needs.len() != after.needs.len() {
            encoded.needs_count = Some(after.needs.len() as u32);
        }
        let strings = std::mem::take(&mut encoded.strings.bytes);
        encoded.add(image, Table::DynamicStrings, strings)?;
        encoded.add_needs(image, before, after)?;
        encoded.order = new_order(image, before, after)?;
        encoded.add_symbols(image, before, after)?;
        if let Some(order) = &encoded.order {
            encoded.relocations = renumber_relocations(image, order)?;
        }
        Ok(encoded)
    }

    /// Keeps the bytes if they are not what the table has.
    fn add(&mut self, image: &ElfImage, table: Table, bytes: Vec<u8>) -> Result<(), EditError> {
        if image.table(table)?.is_some() && image.table_bytes(table)? != bytes {
            self.tables.insert(table, bytes);
        }
        Ok(())
    }

    fn add_needs(&mut self, image: &ElfImage, before: &Contents, after: &Contents) -> Result<(), EditError> {
        let original = image.table_bytes(Table::VersionNeeds)?;
        let is_same_shape = before.needs.len() == after.needs.len()
            && before.needs.iter().zip(&after.needs).all(|(before, after)| {
                let places = |need: &crate::versions::VersionNeed| -> Vec<Option<usize>> {
                    need.versions.iter().map(|version| version.at).collect()
                };
                before.at == after.at && places(before) == places(after)
            });
        let place = |text: &crate::text::Text| self.strings.place(text);
        let bytes = encode_needs(image.encoding, original, &after.needs, is_same_shape, &place);
        self.add(image, Table::VersionNeeds, bytes)
    }

    fn add_symbols(
        &mut self,
        image: &ElfImage,
        before: &Contents,
        after: &Contents,
    ) -> Result<(), EditError> {
        let ordered: Vec<&Symbol> = match &self.order {
            Some(order) => order.iter().filter_map(|&old| after.symbols.get(old as usize)).collect(),
            None => after.symbols.iter().collect(),
        };
        let (mut symbols, mut versions) = (Vec::new(), Vec::new());
        for symbol in &ordered {
            let raw = crate::symbols::RawSymbol { name: self.strings.place(&symbol.name), ..symbol.raw };
            raw.push(image.encoding, &mut symbols);
            image.encoding.push(&mut versions, 2, u64::from(symbol.version));
        }
        self.add(image, Table::DynamicSymbols, symbols)?;
        self.add(image, Table::VersionSymbols, versions)?;
        let pairs = || before.symbols.iter().zip(&after.symbols);
        let is_found_otherwise = self.order.is_some()
            || pairs().any(|(b, a)| a.in_sysv_hash != b.in_sysv_hash || (a.in_sysv_hash && a.name != b.name));
        if let Some(hash) = image.sysv_hash.as_ref().filter(|_| is_found_otherwise) {
            let names = ordered.iter().map(|symbol| symbol.in_sysv_hash.then(|| symbol.name.bytes()));
            self.add(image, Table::SysvHash, hash.rebuilt(names).encode(image.encoding))?;
        }
        // Renamed symbols of a table keep it sorted only by a new order, so that an unchanged order is an unchanged table.
        if let Some(hash) = image.gnu_hash.as_ref().filter(|_| self.order.is_some()) {
            let first = ordered.iter().position(|symbol| symbol.in_gnu_hash).unwrap_or(ordered.len());
            let names: Vec<&[u8]> = ordered[first..].iter().map(|symbol| symbol.name.bytes()).collect();
            if names.is_empty() && image.sysv_hash.is_none() && !image.sections_agree {
                return Err(Refusal::UnknownSymbolCount.into());
            }
            let rebuilt = hash.rebuilt(image.encoding, first as u32, &names);
            self.add(image, Table::GnuHash, rebuilt.encode(image.encoding))?;
        }
        Ok(())
    }
}

/// The order that `DT_GNU_HASH` asks for (symbols that can be found last, by bucket), if the one that there is does not
/// serve any more. As much as possible stays where it is.
fn new_order(image: &ElfImage, before: &Contents, after: &Contents) -> Result<Option<Vec<u32>>, EditError> {
    let Some(hash) = &image.gnu_hash else { return Ok(None) };
    let is_changed = before.symbols.iter().zip(&after.symbols).any(|(before, after)| {
        before.in_gnu_hash != after.in_gnu_hash || (after.in_gnu_hash && before.name != after.name)
    });
    if !is_changed {
        return Ok(None);
    }
    refuse_fixed_order(image)?;
    let mut order: Vec<u32> = (0..after.symbols.len() as u32).collect();
    order.sort_by_key(|&index| match &after.symbols[index as usize] {
        symbol if symbol.in_gnu_hash => (1, hash.bucket_of(symbol.name.bytes())),
        _ => (0, 0),
    });
    Ok(Some(order))
}

fn refuse_fixed_order(image: &ElfImage) -> Result<(), Refusal> {
    const DT_SYMTAB_SHNDX: u64 = 34;
    if image.dynamic_value(DT_MIPS_GOTSYM).is_some() {
        return Err(Refusal::SymbolOrder("DT_MIPS_GOTSYM"));
    }
    if image.dynamic_value(DT_MIPS_XHASH).is_some() {
        return Err(Refusal::SymbolOrder("DT_MIPS_XHASH"));
    }
    if image.dynamic_value(DT_SYMTAB_SHNDX).is_some() {
        return Err(Refusal::SymbolOrder("DT_SYMTAB_SHNDX"));
    }
    if relocations::has_packed_tables(image) {
        return Err(Refusal::UnknownUser("a table of packed relocations".to_owned()));
    }
    Ok(())
}

fn renumber_relocations(image: &ElfImage, order: &[u32]) -> Result<Vec<(u64, Vec<u8>)>, EditError> {
    let mut new_index = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        if let Some(index) = new_index.get_mut(old as usize) {
            *index = new as u32;
        }
    }
    let tables = relocations::tables(image)?;
    tables
        .iter()
        .map(|&table| Ok((table.offset, relocations::renumbered(image, table, &new_index)?)))
        .collect()
}
