//! Dynamic relocations, reduced to what questions need: which symbols are referred to, and how.

use std::ops::Range;

use object::read::elf::{Rel, Rela};
use object::{Endianness, elf};

use crate::dynamic::Pointers;
use crate::error::{Fault, ParseError};
use crate::identity::Identity;
use crate::image::Image;
use crate::raw::Elf;
use crate::segments::Segments;
use crate::symbols::Symbol;

/// How relocations refer to a symbol, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RelocationUse(u8);

impl RelocationUse {
    /// Through `DT_RELA` or `DT_REL`: data, GOT, TLS.
    pub const DATA: Self = Self(1);
    /// Through `DT_JMPREL`: a PLT slot, bound lazily unless `BIND_NOW`.
    pub const PLT: Self = Self(2);
    /// A COPY relocation: a program keeps its own copy of the variable.
    pub const COPY: Self = Self(4);

    /// No relocation refers to it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// `other` is in the set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Counts of dynamic relocations by table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relocations {
    /// Entries of `DT_RELA` and `DT_REL`.
    pub data: u64,
    /// Entries of `DT_JMPREL`.
    pub plt: u64,
    /// Entries of all these tables that name no symbol: relative ones, mostly.
    pub without_symbol: u64,
    /// COPY relocations.
    pub copy: u64,
    /// Words of `DT_RELR`, each one address or a bitmap of many.
    pub relr_words: u64,
}

/// One table of relocations in the file.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) what: &'static str,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) addends: bool,
    pub(crate) plt: bool,
}

impl Table {
    pub(crate) fn count<E: Elf>(&self) -> u64 {
        let entry = if self.addends { size_of::<E::Rela>() } else { size_of::<E::Rel>() };
        self.size / entry as u64
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size)
    }
}

/// The tables that `DT_RELA`, `DT_REL` and `DT_JMPREL` point to. Those of MIPS are not read: its GOT holds relocations
/// that no table has.
pub(crate) fn tables<E: Elf>(
    identity: &Identity,
    segments: &Segments,
    pointers: &Pointers,
) -> Result<Vec<Table>, ParseError> {
    if identity.is_mips() {
        return Ok(Vec::new());
    }
    let plt_addends = match pointers.get(elf::DT_PLTREL) {
        Some(kind) => i64::try_from(kind) == Ok(elf::DT_RELA.0),
        None => pointers.get(elf::DT_RELA).is_some() || E::is_type_64_sized(),
    };
    let plt = pointers.sized(segments, "DT_JMPREL", elf::DT_JMPREL, elf::DT_PLTRELSZ)?;
    // The size of the data table may cover the PLT's at its end (glibc elf/dynamic-link.h).
    let without_plt = |data: Option<Range<u64>>| match (data, &plt) {
        (Some(d), Some(p)) if p.end == d.end && p.start >= d.start => Some(d.start..p.start),
        (data, _) => data,
    };
    let rela = without_plt(pointers.sized(segments, "DT_RELA", elf::DT_RELA, elf::DT_RELASZ)?);
    let rel = without_plt(pointers.sized(segments, "DT_REL", elf::DT_REL, elf::DT_RELSZ)?);
    let table = |what, range: Option<Range<u64>>, addends, plt| {
        range.map(|r| Table { what, offset: r.start, size: r.end - r.start, addends, plt })
    };
    let all = [
        table("DT_RELA", rela, true, false),
        table("DT_REL", rel, false, false),
        table("DT_JMPREL", plt, plt_addends, true),
    ];
    Ok(all.into_iter().flatten().collect())
}

/// The highest symbol index that any of the tables refers to.
pub(crate) fn highest_symbol<E: Elf>(
    image: &Image,
    tables: &[Table],
    endian: Endianness,
) -> Result<Option<u32>, Fault> {
    let mut highest = None;
    for table in tables {
        each::<E>(image, table, endian, |symbol, _| highest = highest.max(Some(symbol)))?;
    }
    Ok(highest.filter(|&s| s != 0))
}

/// Counts the relocations of all tables and marks the symbols that they refer to. Gives the highest index that no
/// symbol has, if there is one.
pub(crate) fn mark<E: Elf>(
    image: &Image,
    tables: &[Table],
    identity: &Identity,
    symbols: &mut [Symbol],
    endian: Endianness,
) -> Result<(Relocations, Option<u32>), Fault> {
    let copy = copy_type(identity);
    let mut counts = Relocations::default();
    let mut stray = None;
    for table in tables {
        let kind = if table.plt { RelocationUse::PLT } else { RelocationUse::DATA };
        let count = if table.plt { &mut counts.plt } else { &mut counts.data };
        *count += table.count::<E>();
        each::<E>(image, table, endian, |symbol, relocation| {
            let is_copy = Some(relocation) == copy;
            counts.copy += u64::from(is_copy);
            let Some(index) = (symbol as usize).checked_sub(1) else {
                counts.without_symbol += 1;
                return;
            };
            match symbols.get_mut(index) {
                Some(s) => {
                    s.uses.insert(kind);
                    if is_copy {
                        s.uses.insert(RelocationUse::COPY);
                    }
                }
                None => stray = stray.max(Some(symbol)),
            }
        })?;
    }
    Ok((counts, stray))
}

/// Calls `visit` with symbol index and relocation type of every entry.
fn each<E: Elf>(
    image: &Image,
    table: &Table,
    endian: Endianness,
    mut visit: impl FnMut(u32, u32),
) -> Result<(), Fault> {
    if table.addends {
        for entry in image.read_slice::<E::Rela>(table.what, table.offset, table.count::<E>())? {
            visit(entry.r_sym(endian, false), entry.r_type(endian, false).0);
        }
    } else {
        for entry in image.read_slice::<E::Rel>(table.what, table.offset, table.count::<E>())? {
            visit(entry.r_sym(endian), entry.r_type(endian).0);
        }
    }
    Ok(())
}

/// `R_*_COPY` of the machine (each psABI).
fn copy_type(identity: &Identity) -> Option<u32> {
    Some(match elf::Machine(identity.machine) {
        elf::EM_X86_64 | elf::EM_386 => 5,
        elf::EM_AARCH64 => 1024,
        elf::EM_ARM => 20,
        elf::EM_PPC64 | elf::EM_PPC => 19,
        elf::EM_S390 => 9,
        elf::EM_RISCV | elf::EM_LOONGARCH => 4,
        _ => return None,
    })
}
