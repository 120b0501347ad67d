//! Symbol versions: what is needed from which library, and what is defined (gABI supplement "Symbol
//! Versioning", glibc elf/dl-version.c).

use object::{Endianness, elf};

use crate::error::Fault;
use crate::image::Image;
use crate::name::Name;
use crate::strings::StringTable;

/// The versions that one `DT_VERNEED` entry wants from one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionNeed {
    /// `vn_file`: the library, as it stands in `DT_NEEDED` too.
    pub library: Name,
    /// `vn_aux` chain.
    pub versions: Vec<NeededVersion>,
}

/// One version that is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededVersion {
    /// `vna_name`, such as `GLIBC_2.17`.
    pub name: Name,
    /// `vna_other`: the index that symbols use.
    pub index: u16,
    /// `VER_FLG_WEAK`: ld.so only warns when the library lacks it.
    pub weak: bool,
    /// `vna_hash`, which ld.so compares before the name.
    pub hash: u32,
}

/// One `DT_VERDEF` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionDefinition {
    /// First `vda_name`: the version itself.
    pub name: Name,
    /// Further names: the versions it succeeds.
    pub parents: Vec<Name>,
    /// `vd_ndx`
    pub index: u16,
    /// `VER_FLG_BASE`: the name of the file, not a version.
    pub base: bool,
    /// `VER_FLG_WEAK`
    pub weak: bool,
}

/// A version that is defined, in [`SymbolVersion`].
pub type DefinedVersion = VersionDefinition;

/// What a symbol's version index stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolVersion<'a> {
    /// No version: index 0 (local) or 1 (global), or no version table.
    Unversioned,
    /// Wanted from a library.
    Needed(&'a VersionNeed, &'a NeededVersion),
    /// Defined here; `hidden` definitions satisfy only references with exactly this version.
    Defined(&'a DefinedVersion, bool),
    /// An index that neither table has.
    Unknown(u16),
}

/// Both version tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions {
    /// `DT_VERNEED`
    pub needs: Vec<VersionNeed>,
    /// `DT_VERDEF`
    pub definitions: Vec<VersionDefinition>,
    /// `DT_VERSYM` is there: symbols have versions at all.
    pub present: bool,
    /// Index to table entry, so that asking for a symbol's version costs one look-up.
    by_index: Vec<Slot>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Slot {
    #[default]
    Free,
    Need(u32, u32),
    Definition(u32),
}

const HIDDEN: u16 = 0x8000;

impl Versions {
    /// What the `DT_VERSYM` value of a symbol stands for.
    pub fn of(&self, versym: u16) -> SymbolVersion<'_> {
        let index = versym & !HIDDEN;
        if index <= 1 {
            return SymbolVersion::Unversioned;
        }
        let slot = self.by_index.get(usize::from(index)).copied().unwrap_or_default();
        let found = match slot {
            Slot::Free => None,
            Slot::Need(file, version) => self
                .needs
                .get(file as usize)
                .and_then(|need| need.versions.get(version as usize).map(|v| SymbolVersion::Needed(need, v))),
            Slot::Definition(i) => {
                self.definitions.get(i as usize).map(|d| SymbolVersion::Defined(d, versym & HIDDEN != 0))
            }
        };
        found.unwrap_or(SymbolVersion::Unknown(index))
    }

    /// Where two records have one index the later one counts, definitions after needs, as in
    /// `_dl_check_map_versions` (glibc elf/dl-version.c).
    pub(crate) fn new(needs: Vec<VersionNeed>, definitions: Vec<VersionDefinition>, present: bool) -> Self {
        let mut by_index: Vec<Slot> = Vec::new();
        let mut set = |index: u16, slot| {
            let index = usize::from(index & !HIDDEN);
            if by_index.len() <= index {
                by_index.resize(index + 1, Slot::Free);
            }
            by_index[index] = slot;
        };
        for (i, need) in needs.iter().enumerate() {
            for (j, version) in need.versions.iter().enumerate() {
                set(version.index, Slot::Need(i as u32, j as u32));
            }
        }
        for (i, definition) in definitions.iter().enumerate().filter(|(_, d)| !d.base) {
            set(definition.index, Slot::Definition(i as u32));
        }
        Self { needs, definitions, present, by_index }
    }
}

/// A chain of version records: each says how far the next one is. ld.so walks until that is 0 and looks at none of
/// the counts (glibc elf/dl-version.c), so neither does this. Offsets only grow, so a chain cannot be a cycle, but a
/// hostile file can make records overlap; [`Reader::record`] bounds their sum.
struct Chain(Option<u64>);

impl Chain {
    fn new(at: u64) -> Self {
        Self(Some(at))
    }

    fn step(&mut self, next: u32) {
        self.0 = if next == 0 { None } else { self.0.and_then(|at| at.checked_add(next.into())) };
    }
}

/// What reading a version table needs.
pub(crate) struct Reader<'a> {
    pub(crate) image: &'a Image<'a>,
    pub(crate) endian: Endianness,
    pub(crate) strings: &'a StringTable<'a>,
    /// How many more records may be read: as many as fit the file without overlap, and several times what the 15
    /// bits of a version index can tell apart.
    records_left: u64,
    /// The first entry whose count (`vn_cnt`, `vd_cnt`) is not the length of its chain: what it says, what there is.
    pub(crate) wrong_count: Option<(&'static str, usize, usize)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(image: &'a Image<'a>, endian: Endianness, strings: &'a StringTable<'a>) -> Self {
        const SMALLEST_RECORD: u64 = 8;
        const MOST_RECORDS: u64 = 1 << 18;
        let records_left = (image.size() / SMALLEST_RECORD).min(MOST_RECORDS);
        Self { image, endian, strings, records_left, wrong_count: None }
    }

    fn record<T: object::pod::Pod>(&mut self, what: &'static str, at: u64) -> Result<&'a T, Fault> {
        self.records_left = self.records_left.checked_sub(1).ok_or_else(|| {
            Fault::malformed(what, "more records than fit the file", "records that do not overlap")
        })?;
        self.image.read::<T>(what, at)
    }

    fn check_count(&mut self, what: &'static str, said: u16, found: usize) {
        if usize::from(said) != found {
            self.wrong_count.get_or_insert((what, said.into(), found));
        }
    }

    /// Reads `DT_VERNEED`.
    pub(crate) fn needs(&mut self, offset: u64) -> Result<Vec<VersionNeed>, Fault> {
        let endian = self.endian;
        let mut needs = Vec::new();
        let mut files = Chain::new(offset);
        while let Some(at) = files.0 {
            let need = self.record::<elf::Verneed<Endianness>>("DT_VERNEED", at)?;
            let library = self.strings.name("vn_file", need.vn_file.get(endian).into())?;
            let aux_at = at.saturating_add(need.vn_aux.get(endian).into());
            let versions = self.needed_versions(aux_at)?;
            self.check_count("vn_cnt", need.vn_cnt.get(endian), versions.len());
            needs.push(VersionNeed { library, versions });
            files.step(need.vn_next.get(endian));
        }
        Ok(needs)
    }

    fn needed_versions(&mut self, offset: u64) -> Result<Vec<NeededVersion>, Fault> {
        let endian = self.endian;
        let mut versions = Vec::new();
        let mut chain = Chain::new(offset);
        while let Some(at) = chain.0 {
            let aux = self.record::<elf::Vernaux<Endianness>>("vernaux", at)?;
            versions.push(NeededVersion {
                name: self.strings.name("vna_name", aux.vna_name.get(endian).into())?,
                index: aux.vna_other.get(endian).0,
                weak: aux.vna_flags.get(endian).0 & elf::VER_FLG_WEAK.0 != 0,
                hash: aux.vna_hash.get(endian),
            });
            chain.step(aux.vna_next.get(endian));
        }
        Ok(versions)
    }

    /// Reads `DT_VERDEF`.
    pub(crate) fn definitions(&mut self, offset: u64) -> Result<Vec<VersionDefinition>, Fault> {
        let endian = self.endian;
        let mut definitions = Vec::new();
        let mut chain = Chain::new(offset);
        while let Some(at) = chain.0 {
            let def = self.record::<elf::Verdef<Endianness>>("DT_VERDEF", at)?;
            let aux_at = at.saturating_add(def.vd_aux.get(endian).into());
            let names = self.definition_names(aux_at)?;
            self.check_count("vd_cnt", def.vd_cnt.get(endian), names.len());
            let mut names = names.into_iter();
            let flags = def.vd_flags.get(endian).0;
            definitions.push(VersionDefinition {
                name: names.next().unwrap_or_default(),
                parents: names.collect(),
                index: def.vd_ndx.get(endian).0,
                base: flags & elf::VER_FLG_BASE.0 != 0,
                weak: flags & elf::VER_FLG_WEAK.0 != 0,
            });
            chain.step(def.vd_next.get(endian));
        }
        Ok(definitions)
    }

    fn definition_names(&mut self, offset: u64) -> Result<Vec<Name>, Fault> {
        let mut names = Vec::new();
        let mut chain = Chain::new(offset);
        while let Some(at) = chain.0 {
            let aux = self.record::<elf::Verdaux<Endianness>>("verdaux", at)?;
            names.push(self.strings.name("vda_name", aux.vda_name.get(self.endian).into())?);
            chain.step(aux.vda_next.get(self.endian));
        }
        Ok(names)
    }
}
