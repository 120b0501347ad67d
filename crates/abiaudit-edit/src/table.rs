//! The tables that the dynamic section points to.

use std::fmt;

use serde::Serialize;

use crate::abi::{
    DT_GNU_HASH, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM, SHT_DYNAMIC, SHT_DYNSYM,
    SHT_GNU_HASH, SHT_GNU_VERDEF, SHT_GNU_VERNEED, SHT_GNU_VERSYM, SHT_HASH, SHT_STRTAB,
};

/// A table that the loader finds through a dynamic tag (or, for the dynamic section, through its segment), and
/// nothing else does: it can be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Table {
    /// `.dynstr`
    DynamicStrings,
    /// `.dynsym`
    DynamicSymbols,
    /// `.hash`
    SysvHash,
    /// `.gnu.hash`
    GnuHash,
    /// `.gnu.version`
    VersionSymbols,
    /// `.gnu.version_r`
    VersionNeeds,
    /// `.gnu.version_d`
    VersionDefinitions,
    /// `.dynamic`
    Dynamic,
}

impl Table {
    pub(crate) const ALL: [Self; 8] = [
        Self::DynamicStrings,
        Self::DynamicSymbols,
        Self::SysvHash,
        Self::GnuHash,
        Self::VersionSymbols,
        Self::VersionNeeds,
        Self::VersionDefinitions,
        Self::Dynamic,
    ];

    /// The customary name of the section.
    pub fn name(self) -> &'static str {
        match self {
            Self::DynamicStrings => ".dynstr",
            Self::DynamicSymbols => ".dynsym",
            Self::SysvHash => ".hash",
            Self::GnuHash => ".gnu.hash",
            Self::VersionSymbols => ".gnu.version",
            Self::VersionNeeds => ".gnu.version_r",
            Self::VersionDefinitions => ".gnu.version_d",
            Self::Dynamic => ".dynamic",
        }
    }

    /// The tag whose value is its address; none for the dynamic section itself.
    pub(crate) fn tag(self) -> Option<u64> {
        Some(match self {
            Self::DynamicStrings => DT_STRTAB,
            Self::DynamicSymbols => DT_SYMTAB,
            Self::SysvHash => DT_HASH,
            Self::GnuHash => DT_GNU_HASH,
            Self::VersionSymbols => DT_VERSYM,
            Self::VersionNeeds => DT_VERNEED,
            Self::VersionDefinitions => DT_VERDEF,
            Self::Dynamic => return None,
        })
    }

    /// `sh_type` of its section.
    pub(crate) fn section_kind(self) -> u32 {
        match self {
            Self::DynamicStrings => SHT_STRTAB,
            Self::DynamicSymbols => SHT_DYNSYM,
            Self::SysvHash => SHT_HASH,
            Self::GnuHash => SHT_GNU_HASH,
            Self::VersionSymbols => SHT_GNU_VERSYM,
            Self::VersionNeeds => SHT_GNU_VERNEED,
            Self::VersionDefinitions => SHT_GNU_VERDEF,
            Self::Dynamic => SHT_DYNAMIC,
        }
    }

    /// Alignment in bytes that readers of the table count on.
    pub(crate) fn alignment(self, word: u64) -> u64 {
        match self {
            Self::DynamicStrings => 1,
            Self::VersionSymbols => 2,
            Self::VersionNeeds | Self::VersionDefinitions => 4,
            // An entry of the hash table can be as wide as a word.
            Self::DynamicSymbols | Self::SysvHash | Self::GnuHash | Self::Dynamic => word,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A place in memory and in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Extent {
    /// Virtual address.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

impl Extent {
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}
