//! Symbol tables: which library exports which symbol at which version, since which release.
//!
//! A version node is only half of an answer. The tables say which symbols exactly a target lacks, and they
//! are the only answer for a reference without a version, for a symbol that moved between libraries and for
//! musl, which has no versions at all. They are dumps of real libraries and glibc's own ABI lists, made by
//! `cargo xtask gen-policies`; `policies/symbols/SOURCES.md` says from what, and how far they reach.
//!
//! ```
//! use abiaudit_policy::symbols::{self, Presence, Release};
//! use abiaudit_policy::Arch;
//!
//! let glibc = symbols::glibc(Arch::X86_64).unwrap();
//! let centos7 = Release::new(2, 17);
//! assert_eq!(glibc.provides("memcpy", Some("GLIBC_2.14"), centos7, None), Presence::Yes);
//! assert_eq!(
//!     glibc.provides("arc4random", None, centos7, None),
//!     Presence::TooNew { since: Release::new(2, 36) },
//! );
//! ```

mod gcc;
mod glibc;
mod musl;
pub mod pool;
mod release;
mod zlib;

pub use gcc::{GccLibrary, gcc_release_of, libatomic, libgcc, libstdcxx};
pub use glibc::{GlibcTable, Presence, glibc};
pub use musl::{MuslPresence, MuslTable, musl};
pub use pool::Kind;
pub use release::{BadRelease, Release};
pub use zlib::{ZlibTable, libz};

use pool::{FLAG_DEFAULT, FLAG_SINCE_AT_LATEST, FLAG_UNTIL_AT_LATEST, Pool, Record};

/// The tables in use, with the name of each file under `policies/symbols`.
pub const TABLES: [(&str, Pool); 4] =
    [("glibc.bin", glibc::POOL), ("gcc.bin", gcc::POOL), ("musl.bin", musl::POOL), ("zlib.bin", zlib::POOL)];

/// A symbol that a library exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// The soname of the library.
    pub library: &'static str,
    /// The version node (`GLIBC_2.14`); `None` if the library does not version the symbol.
    pub version: Option<&'static str>,
    /// Does the linker take this version for a new reference (`symbol@@VERSION`), in the newest release
    /// examined that has it?
    pub default: bool,
    /// The release that introduced it into this library; `None` if that is not known.
    pub since: Option<Release>,
    /// Is `since` exact? If not, it is the oldest release that was examined and has the symbol, after an
    /// older one that lacks it or as the oldest examined at all.
    pub since_exact: bool,
    /// The first release whose library does not have it any more.
    pub until: Option<Release>,
    /// Is `until` exact? If not, it is the oldest release examined that lacks the symbol.
    pub until_exact: bool,
    /// What the symbol is.
    pub kind: Kind,
    /// Bytes of an object where the source says so, else 0. A copy relocation copies so many.
    pub size: u32,
}

impl Export {
    fn new(pool: Pool, record: Record) -> Option<Self> {
        let version = pool.version(record.version)?;
        Some(Self {
            library: pool.library(record.library)?,
            version: (!version.is_empty()).then_some(version),
            default: record.flags & FLAG_DEFAULT != 0,
            since: pool.release(record.since),
            since_exact: record.flags & FLAG_SINCE_AT_LATEST == 0,
            until: pool.release(record.until),
            until_exact: record.flags & FLAG_UNTIL_AT_LATEST == 0,
            kind: record.kind,
            size: record.size,
        })
    }

    /// Does the release have it? A symbol of which the beginning is unknown counts as there.
    pub fn is_in(&self, release: Release) -> bool {
        self.since.is_none_or(|since| since <= release) && self.until.is_none_or(|until| release < until)
    }
}

/// The exports of a symbol on the architecture with the bit `arch`, in the order of the table: by library,
/// then by age.
pub(crate) fn exports(pool: Pool, arch: u16, symbol: &str) -> Vec<Export> {
    pool.records(symbol)
        .filter(|record| record.archs & arch != 0)
        .filter_map(|record| Export::new(pool, record))
        .collect()
}

/// Every symbol that some library exports on the architecture with the bit `arch`. Reads the whole table.
fn all_exports(pool: Pool, arch: u16) -> impl Iterator<Item = (String, Vec<Export>)> {
    pool.symbols().filter_map(move |(name, records)| {
        let exports: Vec<_> = records
            .filter(|record| record.archs & arch != 0)
            .filter_map(|record| Export::new(pool, record))
            .collect();
        (!exports.is_empty()).then_some((name, exports))
    })
}

#[cfg(test)]
mod tests {
    use super::pool::{HEADER_LEN, MAGIC};
    use super::*;

    /// What the readers do not check at run time: the committed tables are whole, sorted, and every index
    /// in them means something.
    #[test]
    fn the_committed_tables_are_well_formed() {
        for (name, pool) in TABLES {
            let bytes = pool.bytes();
            assert_eq!(bytes.first_chunk(), Some(&MAGIC), "{name}");
            assert!(bytes.len() > HEADER_LEN, "{name}");
            let names: Vec<String> = pool.symbols().map(|(symbol, _)| symbol).collect();
            assert_eq!(names.len(), pool.symbol_count(), "{name}");
            assert!(names.len() > 50, "{name}: {}", names.len());
            assert!(names.is_sorted_by(|a, b| a.as_bytes() < b.as_bytes()), "{name}");
            let releases: Vec<_> = pool.releases().collect();
            assert!(releases.is_sorted_by(|a, b| a < b), "{name}");
            let archs = pool.archs().fold(0_u16, |bits, arch| bits | pool.arch_bit(arch).unwrap());
            for (symbol, records) in pool.symbols() {
                let found: Vec<_> = pool.records(&symbol).collect();
                assert_eq!(found, records.collect::<Vec<_>>(), "{name}: {symbol} is found");
                assert!(!found.is_empty(), "{name}: {symbol}");
                for record in found {
                    assert!(record.archs != 0 && record.archs & !archs == 0, "{name}: {symbol}");
                    assert!(Export::new(pool, record).is_some(), "{name}: {symbol}");
                    assert!(record.since == pool::NONE || pool.release(record.since).is_some());
                    assert!(record.until == pool::NONE || pool.release(record.until).is_some());
                    let (since, until) = (pool.release(record.since), pool.release(record.until));
                    assert!(since.zip(until).is_none_or(|(since, until)| since < until), "{name}: {symbol}");
                }
            }
        }
    }

    #[test]
    fn names_that_are_in_no_table_are_not_found() {
        for (name, pool) in TABLES {
            for symbol in ["", "\0", "\u{7f}", "no_such_symbol_anywhere", "memcp", "memcpyy", "~~~~"] {
                assert_eq!(pool.records(symbol).count(), 0, "{name}: {symbol:?}");
            }
        }
    }

    #[test]
    fn architectures_without_a_list_are_unknown() {
        use crate::Arch;
        assert!(glibc(Arch::Ppc64).is_none(), "the source has no list of big-endian PowerPC");
        assert!(libstdcxx(Arch::Ppc64).is_none());
        assert!(musl(Arch::Loongarch64).is_none());
    }
}
