//! The dynamic section, found through `PT_DYNAMIC`.

use std::collections::BTreeMap;
use std::ops::Range;

use object::read::elf::Dyn;
use object::{Endianness, elf};

use crate::error::{Fault, ParseError, Problem};
use crate::image::Image;
use crate::name::Name;
use crate::raw::Elf;
use crate::segments::Segments;
use crate::strings::StringTable;

/// What the dynamic entries say (gABI chapter 5, glibc elf/elf.h). Where the loader takes the last of several
/// entries of one tag, so does this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// True if there is a dynamic section at all; a static program or an object file has none.
    pub present: bool,
    /// `DT_NEEDED` in order, duplicates kept.
    pub needed: Vec<Name>,
    /// `DT_SONAME`
    pub soname: Option<Name>,
    /// `DT_RPATH`, unsplit.
    pub rpath: Option<Name>,
    /// `DT_RUNPATH`, unsplit. glibc ignores `DT_RPATH` of an object that has it.
    pub runpath: Option<Name>,
    /// `DT_FILTER` and `DT_AUXILIARY` names.
    pub filters: Vec<Name>,
    /// `DT_FLAGS`
    pub flags: u64,
    /// `DT_FLAGS_1`
    pub flags_1: u64,
    /// `DT_TEXTREL` is there (or `DF_TEXTREL` in the flags).
    pub text_relocations: bool,
    /// `DT_SYMBOLIC` is there (or `DF_SYMBOLIC` in the flags).
    pub symbolic: bool,
    /// `DT_BIND_NOW`, `DF_BIND_NOW` or `DF_1_NOW`.
    pub bind_now: bool,
    /// Number of pointers in `DT_INIT_ARRAY`.
    pub init_array: u64,
    /// Number of pointers in `DT_FINI_ARRAY`.
    pub fini_array: u64,
    /// `DT_INIT` is there.
    pub init: bool,
    /// `DT_FINI` is there.
    pub fini: bool,
    /// `DT_RELR` (or Android's) is there: relative relocations that only newer loaders apply.
    pub relr: bool,
    /// Every entry up to `DT_NULL` as `(tag, value)`.
    pub entries: Vec<(i64, u64)>,
}

/// `DF_STATIC_TLS`: the object asks for room in the static TLS block.
const DF_STATIC_TLS: u64 = 0x10;
/// `DF_1_NODEFLIB`: default directories are not searched for what it needs.
const DF_1_NODEFLIB: u64 = 0x800;
/// `DF_1_PIE`: a position-independent program rather than a library.
const DF_1_PIE: u64 = 0x0800_0000;

impl Dynamic {
    /// `DF_STATIC_TLS`
    pub fn static_tls(&self) -> bool {
        self.flags & DF_STATIC_TLS != 0
    }

    /// `DF_1_NODEFLIB`
    pub fn no_default_libraries(&self) -> bool {
        self.flags_1 & DF_1_NODEFLIB != 0
    }

    /// `DF_1_PIE`
    pub fn pie(&self) -> bool {
        self.flags_1 & DF_1_PIE != 0
    }
}

/// Where the tables are that dynamic entries point to: the addresses as the entries have them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pointers {
    /// The last value of each tag.
    last: BTreeMap<i64, u64>,
}

impl Pointers {
    pub(crate) fn get(&self, tag: elf::DynamicTag) -> Option<u64> {
        self.last.get(&tag.0).copied()
    }

    /// The last value of each tag of `entries`, as [`read_entries`] found it.
    pub(crate) fn of(entries: &[(i64, u64)]) -> Self {
        Self { last: entries.iter().copied().collect() }
    }

    /// Where the table is that one tag points to and another gives the size of; `None` without bytes.
    pub(crate) fn sized(
        &self,
        segments: &Segments,
        what: &'static str,
        tag: elf::DynamicTag,
        size_tag: elf::DynamicTag,
    ) -> Result<Option<Range<u64>>, ParseError> {
        let (Some(address), Some(size @ 1..)) = (self.get(tag), self.get(size_tag)) else { return Ok(None) };
        let offset = segments.offset_of(what, address)?;
        Ok(Some(offset..offset.saturating_add(size)))
    }

    /// The string table: `DT_STRTAB` and `DT_STRSZ`. Without a size the rest of its segment is taken.
    pub(crate) fn strings(&self, segments: &Segments) -> Result<Option<Range<u64>>, ParseError> {
        let Some(address) = self.get(elf::DT_STRTAB) else { return Ok(None) };
        let offset = segments.offset_of(".dynstr (DT_STRTAB)", address)?;
        let size = match self.get(elf::DT_STRSZ) {
            Some(size) => size,
            None => segments.file_content_after(offset),
        };
        Ok(Some(offset..offset.saturating_add(size)))
    }
}

/// The entries as `(tag, value)`, and the table addresses among them.
pub(crate) type Entries = (Vec<(i64, u64)>, Pointers);

/// Reads the entries of `PT_DYNAMIC` up to `DT_NULL`; the names stay offsets until `resolve`.
///
/// ld.so finds them at `p_vaddr` and reads on to `DT_NULL` whatever the segment's size is (glibc elf/get-dynamic-info.h),
/// so `p_offset` and `p_filesz` are not believed where they say something else.
pub(crate) fn read_entries<E: Elf>(
    image: &Image,
    segments: &Segments,
    endian: Endianness,
    problems: &mut Vec<Problem>,
) -> Result<Option<Entries>, Fault> {
    const STEP: u64 = 64;
    let Some(segment) = segments.dynamic() else { return Ok(None) };
    let mut problem = |detail| problems.push(Problem { what: "PT_DYNAMIC", detail });
    let offset = match segments.offset_of("PT_DYNAMIC", segment.address) {
        Ok(offset) if offset != segment.offset => {
            problem(format!("p_offset is {:#x}, its address is at offset {offset:#x}", segment.offset));
            offset
        }
        Ok(offset) => offset,
        Err(error) => {
            problem(error.to_string());
            segment.offset
        }
    };
    let entry_size = size_of::<E::Dyn>() as u64;
    let available = segments.file_content_after(offset).max(segment.file_size) / entry_size;
    let mut count = segment.file_size / entry_size;
    let mut entries: Vec<(i64, u64)> = Vec::new();
    loop {
        let raw = image.read_slice::<E::Dyn>("PT_DYNAMIC", offset, count)?;
        let new = raw.get(entries.len()..).unwrap_or_default();
        let until_null = new.iter().take_while(|entry| entry.tag(endian) != elf::DT_NULL);
        let before = entries.len();
        entries.extend(until_null.map(|entry| (entry.tag(endian).0, entry.val(endian))));
        if entries.len() - before < new.len() {
            break;
        }
        if count >= available {
            problem("no DT_NULL".to_owned());
            break;
        }
        count = count.saturating_add(STEP).min(available);
    }
    if entries.len() as u64 > segment.file_size / entry_size {
        problem(format!(
            "p_filesz is {}, but DT_NULL comes after entry {}",
            segment.file_size,
            entries.len()
        ));
    }
    let last = entries.iter().copied().collect();
    Ok(Some((entries, Pointers { last })))
}

/// Turns entries into facts.
pub(crate) fn resolve(
    entries: Vec<(i64, u64)>,
    word_size: u64,
    strings: &StringTable<'_>,
) -> Result<Dynamic, ParseError> {
    let string = |what, offset| strings.name(what, offset);
    let mut dynamic = Dynamic { present: true, ..Dynamic::default() };
    for &(tag, value) in &entries {
        match elf::DynamicTag(tag) {
            elf::DT_NEEDED => dynamic.needed.push(string("DT_NEEDED", value)?),
            elf::DT_SONAME => dynamic.soname = Some(string("DT_SONAME", value)?),
            elf::DT_RPATH => dynamic.rpath = Some(string("DT_RPATH", value)?),
            elf::DT_RUNPATH => dynamic.runpath = Some(string("DT_RUNPATH", value)?),
            elf::DT_FILTER | elf::DT_AUXILIARY => dynamic.filters.push(string("DT_FILTER", value)?),
            elf::DT_FLAGS => dynamic.flags = value,
            elf::DT_FLAGS_1 => dynamic.flags_1 = value,
            elf::DT_TEXTREL => dynamic.text_relocations = true,
            elf::DT_SYMBOLIC => dynamic.symbolic = true,
            elf::DT_BIND_NOW => dynamic.bind_now = true,
            elf::DT_INIT_ARRAYSZ => dynamic.init_array = value / word_size,
            elf::DT_FINI_ARRAYSZ => dynamic.fini_array = value / word_size,
            elf::DT_INIT => dynamic.init = true,
            elf::DT_FINI => dynamic.fini = true,
            elf::DT_RELR | elf::DT_ANDROID_RELR => dynamic.relr = true,
            _ => {}
        }
    }
    dynamic.symbolic |= dynamic.flags & 2 != 0;
    dynamic.text_relocations |= dynamic.flags & 4 != 0;
    dynamic.bind_now |= dynamic.flags & 8 != 0 || dynamic.flags_1 & 1 != 0;
    dynamic.entries = entries;
    Ok(dynamic)
}
