//! Places in `.dynstr` for new strings: a string or the end of one that is there already, bytes that nothing refers to
//! any more, or the end of the table, which then has to move.

use std::collections::BTreeMap;

use crate::abi::{SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_VERDEF, SHT_GNU_VERNEED, SHT_STRTAB};
use crate::contents::{Contents, Value};
use crate::image::ElfImage;
use crate::refusal::Refusal;
use crate::table::Table;
use crate::text::Text;

/// The table as it will be, and where its new strings are.
#[derive(Debug)]
pub(crate) struct StringTable {
    pub bytes: Vec<u8>,
    places: BTreeMap<Vec<u8>, u32>,
}

impl StringTable {
    /// Finds a place for each string of the contents that is not in the original table.
    pub(crate) fn new(image: &ElfImage, original: &[u8], contents: &Contents) -> Result<Self, Refusal> {
        let mut table = Self { bytes: original.to_vec(), places: BTreeMap::new() };
        let texts = texts(contents);
        let mut wanted: Vec<&[u8]> = Vec::new();
        for text in texts.iter().filter(|text| text.original().is_none()) {
            let bytes = text.bytes();
            if table.places.contains_key(bytes) || wanted.contains(&bytes) {
                continue;
            }
            match find(original, bytes) {
                Some(place) => drop(table.places.insert(bytes.to_vec(), place)),
                None => wanted.push(bytes),
            }
        }
        if !wanted.is_empty() && !table.fill_holes(image, &texts, &wanted) {
            table.append(&wanted)?;
        }
        Ok(table)
    }

    /// Offset of a string.
    pub(crate) fn place(&self, text: &Text) -> u32 {
        text.original().or_else(|| self.places.get(text.bytes()).copied()).unwrap_or(0)
    }

    /// Writes all strings over bytes that nothing refers to, or none of them.
    fn fill_holes(&mut self, image: &ElfImage, texts: &[&Text], wanted: &[&[u8]]) -> bool {
        if !are_users_known(image) {
            return false;
        }
        let mut holes = self.holes(texts);
        let mut places = Vec::new();
        // The longest first, each into the smallest hole that takes it.
        let mut longest_first = wanted.to_vec();
        longest_first.sort_by_key(|bytes| std::cmp::Reverse(bytes.len()));
        for bytes in longest_first {
            let size = bytes.len() + 1;
            let fitting =
                holes.iter_mut().filter(|hole| hole.len() >= size).min_by_key(|hole| hole.end - hole.start);
            let Some(hole) = fitting else { return false };
            places.push((bytes, hole.start));
            hole.start += size;
        }
        for (bytes, start) in places {
            if let Some(room) = self.bytes.get_mut(start..=start + bytes.len()) {
                room[..bytes.len()].copy_from_slice(bytes);
                room[bytes.len()] = 0;
            }
            self.places.insert(bytes.to_vec(), start as u32);
        }
        true
    }

    /// Ranges of bytes that no string covers. The first byte is the empty string's.
    fn holes(&self, texts: &[&Text]) -> Vec<std::ops::Range<usize>> {
        let known = texts.iter().filter_map(|text| Some((text.original()? as usize, text.bytes().len())));
        let reused = self.places.iter().map(|(bytes, place)| (*place as usize, bytes.len()));
        let mut used: Vec<(usize, usize)> = known.chain(reused).map(|(at, len)| (at, at + len + 1)).collect();
        used.push((0, 1));
        used.sort_unstable();
        let (mut holes, mut end) = (Vec::new(), 0);
        for (begin, next) in used {
            if begin > end {
                holes.push(end..begin);
            }
            end = end.max(next);
        }
        if end < self.bytes.len() {
            holes.push(end..self.bytes.len());
        }
        holes
    }

    fn append(&mut self, wanted: &[&[u8]]) -> Result<(), Refusal> {
        // A table that does not end with a zero would lend its last string our first bytes.
        if self.bytes.last().is_none_or(|last| *last != 0) {
            self.bytes.push(0);
        }
        for bytes in wanted {
            let place = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            self.bytes.push(0);
            let place = u32::try_from(place).map_err(|_| Refusal::StringTableTooLarge(place as u64))?;
            self.places.insert(bytes.to_vec(), place);
        }
        Ok(())
    }
}

/// All strings of the contents.
fn texts<'c, 'a>(contents: &'c Contents<'a>) -> Vec<&'c Text<'a>> {
    let entries = contents.entries.iter().filter_map(|entry| match &entry.value {
        Value::Text(text) => Some(text),
        Value::Number(_) => None,
    });
    let needs = contents.needs.iter();
    let needs =
        needs.flat_map(|need| std::iter::once(&need.file).chain(need.versions.iter().map(|v| &v.name)));
    let definitions = contents.definitions.iter().flat_map(|definition| &definition.names);
    entries
        .chain(needs)
        .chain(definitions)
        .chain(contents.symbols.iter().map(|symbol| &symbol.name))
        .collect()
}

/// Offset of a string in a table, be it the end of a longer one.
fn find(table: &[u8], string: &[u8]) -> Option<u32> {
    let mut needle = string.to_vec();
    needle.push(0);
    memchr::memmem::find(table, &needle).and_then(|place| u32::try_from(place).ok())
}

/// Whether nothing but what [`Contents`] knows can refer to `.dynstr`.
fn are_users_known(image: &ElfImage) -> bool {
    let entries = image.dynamic.as_ref().map(|dynamic| dynamic.entries.as_slice()).unwrap_or_default();
    if !entries.iter().all(|entry| is_known_tag(entry.tag)) {
        return false;
    }
    let Some(address) = image.dynamic_value(Table::DynamicStrings.tag().unwrap_or_default()) else {
        return false;
    };
    let Some(strings) = image.section_at(address, SHT_STRTAB) else { return image.sections.is_empty() };
    let is_known = |kind| matches!(kind, SHT_DYNSYM | SHT_DYNAMIC | SHT_GNU_VERNEED | SHT_GNU_VERDEF);
    let mut users = image.sections.iter().filter(|section| section.link as usize == strings);
    image.header.shstrndx as usize != strings && users.all(|section| is_known(section.kind))
}

/// Tags of which it is known whether they are strings: those of the gABI, of Sun and GNU, and of processors, among which
/// only `DT_MIPS_IVERSION` is one.
fn is_known_tag(tag: u64) -> bool {
    const DT_MIPS_IVERSION: u64 = 0x7000_0004;
    tag != DT_MIPS_IVERSION
        && matches!(tag, 0..=0x25 | 0x6fff_fd00..=0x6fff_feff | 0x6fff_fff0..=0x6fff_ffff | 0x7000_0000..=0x7fff_ffff)
}
