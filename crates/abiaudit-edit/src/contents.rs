//! What the dynamic section and its tables say, in strings and symbols instead of offsets: what edits are about, and
//! what must be the same before and after, but for them.

use crate::abi::{
    DT_AUDIT, DT_AUXILIARY, DT_CONFIG, DT_DEPAUDIT, DT_FILTER, DT_MIPS_RLD_MAP_REL, DT_NEEDED, DT_RPATH,
    DT_RUNPATH, DT_SONAME, DT_VERDEFNUM, DT_VERNEEDNUM, DT_VERSYM, PT_GNU_STACK, PT_INTERP, VER_NDX_GLOBAL,
    VERSYM_HIDDEN,
};
use crate::error::EditError;
use crate::image::ElfImage;
use crate::symbols::RawSymbol;
use crate::table::Table;
use crate::text::Text;
use crate::versions::{VersionDefinition, VersionNeed, read_definitions, read_needs};

/// All that edits can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents<'a> {
    pub entries: Vec<Entry<'a>>,
    pub symbols: Vec<Symbol<'a>>,
    pub needs: Vec<VersionNeed<'a>>,
    pub definitions: Vec<VersionDefinition<'a>>,
    /// Whether the file has `.gnu.version`.
    pub has_versions: bool,
    /// Path in `PT_INTERP`, without its final zero.
    pub interpreter: Option<Vec<u8>>,
    /// `p_flags` of `PT_GNU_STACK`.
    pub stack_flags: Option<u32>,
}

/// One entry of the dynamic section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub tag: u64,
    pub value: Value<'a>,
}

/// Value of a dynamic entry; that of `DT_MIPS_RLD_MAP_REL` as the address that it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Text(Text<'a>),
    Number(u64),
}

/// One dynamic symbol. `raw.name` is its offset in the original string table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol<'a> {
    pub name: Text<'a>,
    pub raw: RawSymbol,
    /// Its entry in `.gnu.version`.
    pub version: u16,
    pub in_gnu_hash: bool,
    pub in_sysv_hash: bool,
}

impl Symbol<'_> {
    /// Index of its version without the hidden bit.
    pub(crate) fn version_index(&self) -> u16 {
        self.version & !VERSYM_HIDDEN
    }
}

/// Tags whose value is an offset into `.dynstr` (gABI chapter 5, and the GNU and Sun additions in elf.h).
pub(crate) fn is_text_tag(tag: u64) -> bool {
    matches!(
        tag,
        DT_NEEDED
            | DT_SONAME
            | DT_RPATH
            | DT_RUNPATH
            | DT_AUXILIARY
            | DT_FILTER
            | DT_CONFIG
            | DT_DEPAUDIT
            | DT_AUDIT
    )
}

impl<'a> Contents<'a> {
    pub(crate) fn read(image: &ElfImage<'a>) -> Result<Self, EditError> {
        let strings = image.table_bytes(Table::DynamicStrings)?;
        let text = |offset: u32| Text::read(strings, offset);
        let (bytes, count) = image.version_table(Table::VersionNeeds, DT_VERNEEDNUM)?;
        let needs = read_needs(image.encoding, bytes, count, &text);
        let (bytes, count) = image.version_table(Table::VersionDefinitions, DT_VERDEFNUM)?;
        let definitions = read_definitions(image.encoding, bytes, count, &text);
        let stack = image.segments.iter().find(|s| s.kind == PT_GNU_STACK);
        Ok(Self {
            entries: read_entries(image, &text)?,
            symbols: read_symbols(image, &text)?,
            needs: needs.ok_or_else(|| broken_names(Table::VersionNeeds))?.0,
            definitions: definitions.ok_or_else(|| broken_names(Table::VersionDefinitions))?.0,
            has_versions: image.dynamic_value(DT_VERSYM).is_some(),
            interpreter: read_interpreter(image)?,
            stack_flags: stack.map(|segment| segment.flags),
        })
    }

    /// The texts of all entries with a tag.
    pub(crate) fn texts(&self, tag: u64) -> impl Iterator<Item = &Text<'a>> {
        self.entries.iter().filter_map(move |entry| match &entry.value {
            Value::Text(text) if entry.tag == tag => Some(text),
            _ => None,
        })
    }

    pub(crate) fn has_needed(&self, library: &str) -> bool {
        self.texts(DT_NEEDED).any(|text| text.is(library))
    }

    /// Library and version that a version index of an undefined symbol means.
    pub(crate) fn needed_version(&self, index: u16) -> Option<(&Text<'a>, &Text<'a>)> {
        let of = |need: &'_ VersionNeed<'a>| {
            need.versions.iter().position(|version| version.index & !VERSYM_HIDDEN == index)
        };
        let (need, position) = self.needs.iter().find_map(|need| Some((need, of(need)?)))?;
        Some((&need.file, &need.versions.get(position)?.name))
    }

    /// Name of the version of a symbol, if it has one.
    pub(crate) fn version_name(&self, symbol: &Symbol<'a>) -> Option<&Text<'a>> {
        let index = symbol.version_index();
        if !self.has_versions || index <= VER_NDX_GLOBAL {
            return None;
        }
        let definition = self.definitions.iter().find(|definition| definition.index == index);
        let defined = definition.and_then(|definition| definition.names.first());
        defined.or_else(|| self.needed_version(index).map(|(_, version)| version))
    }
}

fn read_entries<'a>(
    image: &ElfImage<'a>,
    text: &dyn Fn(u32) -> Option<Text<'a>>,
) -> Result<Vec<Entry<'a>>, EditError> {
    let entries = image.dynamic.as_ref().map(|dynamic| dynamic.entries.as_slice()).unwrap_or_default();
    let value = |index: usize, tag: u64, value: u64| match tag {
        tag if is_text_tag(tag) => text(u32::try_from(value).ok()?).map(Value::Text),
        DT_MIPS_RLD_MAP_REL => Some(Value::Number(value.wrapping_add(image.entry_address(index)))),
        _ => Some(Value::Number(value)),
    };
    let entries = entries.iter().enumerate().map(|(index, entry)| {
        let value = value(index, entry.tag, entry.value).ok_or_else(|| broken_names(Table::Dynamic))?;
        Ok(Entry { tag: entry.tag, value })
    });
    entries.collect()
}

fn read_symbols<'a>(
    image: &ElfImage<'a>,
    text: &dyn Fn(u32) -> Option<Text<'a>>,
) -> Result<Vec<Symbol<'a>>, EditError> {
    let bytes = image.table_bytes(Table::DynamicSymbols)?;
    let versions = image.table_bytes(Table::VersionSymbols)?;
    let linked = image.sysv_hash.as_ref().map(crate::hash::SysvHash::linked).unwrap_or_default();
    let gnu_first = match &image.gnu_hash {
        Some(hash) if !hash.chains.is_empty() => hash.first_symbol as usize,
        _ => usize::MAX,
    };
    let size = image.encoding.symbol_size() as usize;
    let symbol = |index: usize| {
        let raw = RawSymbol::read(image.encoding, bytes, index * size)?;
        Some(Symbol {
            name: text(raw.name)?,
            raw,
            version: image.encoding.u16(versions, index * 2).unwrap_or(VER_NDX_GLOBAL),
            in_gnu_hash: index >= gnu_first,
            in_sysv_hash: linked.get(index).copied().unwrap_or(false),
        })
    };
    let count = bytes.len() / size;
    (0..count).map(|index| symbol(index).ok_or_else(|| broken_names(Table::DynamicSymbols))).collect()
}

fn read_interpreter(image: &ElfImage) -> Result<Option<Vec<u8>>, EditError> {
    let Some(segment) = image.segments.iter().find(|s| s.kind == PT_INTERP) else { return Ok(None) };
    let bytes = image.slice("the program interpreter", segment.offset, segment.filesz)?;
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    Ok(Some(bytes.get(..end).unwrap_or_default().to_vec()))
}

fn broken_names(table: Table) -> EditError {
    EditError::malformed(
        table.name(),
        0,
        "a chain or a name that leaves its table",
        "records and names inside their tables",
    )
}
