//! musl's one library.
//!
//! musl has no symbol versions: the name is all, and a name that the running musl lacks ends the load (or,
//! bound lazily, the call). The rows are the dynamic symbols of Debian's builds of musl 1.2.2, 1.2.3, 1.2.5
//! and 1.2.6; not every architecture was examined at each. Of releases before 1.2.2 nothing is said: a
//! symbol that the oldest build has is given as "1.2.2 at latest".
//!
//! musl 1.2.4 dropped the `64` names (`fopen64`) from its symbol table, but its loader still binds them to
//! the plain names (`ldso/dynlink.c`), so the table keeps them.

use super::{Export, Pool, Release, all_exports, exports};
use crate::Arch;

pub(super) const POOL: Pool = Pool::new(include_bytes!("../../../../policies/symbols/musl.bin"));

/// The exports of musl's `libc.so` on one architecture.
#[derive(Debug, Clone, Copy)]
pub struct MuslTable {
    bit: u16,
    oldest: Release,
}

/// Does a release of musl have a symbol?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MuslPresence {
    /// It has.
    Yes,
    /// No examined build has it.
    NoSuchSymbol,
    /// It came later: an examined build that is not older than the release lacks it, or the date is exact.
    TooNew {
        /// The first release that is known to have it.
        since: Release,
    },
    /// It is gone.
    Removed {
        /// The first release that is known to lack it.
        at: Release,
    },
    /// Later builds have it; nothing that was examined tells whether this release had it already.
    Unknown {
        /// The first release that is known to have it.
        seen_in: Release,
    },
}

/// The table of an architecture; `None` if none of its builds was examined, in which case nothing is known.
pub fn musl(arch: Arch) -> Option<MuslTable> {
    let bit = POOL.arch_bit(arch.tag())?;
    // Every build has `malloc`, so its row begins with the oldest build of the architecture.
    let oldest = exports(POOL, bit, "malloc").first()?.since?;
    Some(MuslTable { bit, oldest })
}

impl MuslTable {
    /// The rows of a symbol: since when, and whether that is exact; empty if musl does not export it.
    pub fn exports(&self, symbol: &str) -> Vec<Export> {
        exports(POOL, self.bit, symbol)
    }

    /// Does some examined release of musl export the symbol?
    pub fn contains(&self, symbol: &str) -> bool {
        !self.exports(symbol).is_empty()
    }

    /// Does `release` export the symbol?
    ///
    /// `musllinux_1_2` promises 1.2.0, older than every build examined, so most answers for it are
    /// [`Unknown`](MuslPresence::Unknown); ask for [`oldest_release`](Self::oldest_release) instead, if a
    /// symbol that 1.2.1 or 1.2.2 brought may pass.
    pub fn provides(&self, symbol: &str, release: Release) -> MuslPresence {
        let rows = self.exports(symbol);
        let Some(row) = rows.first() else { return MuslPresence::NoSuchSymbol };
        if rows.iter().any(|row| row.is_in(release)) {
            return MuslPresence::Yes;
        }
        match (row.since, row.until) {
            // Not exact, but not of the oldest build: that one lacks it, and so do all before.
            (Some(since), _)
                if release < since && (row.since_exact || release <= self.oldest && since > self.oldest) =>
            {
                MuslPresence::TooNew { since }
            }
            (Some(seen_in), _) if release < seen_in => MuslPresence::Unknown { seen_in },
            (_, Some(at)) => MuslPresence::Removed { at },
            // Unreachable: a row without dates is in every release.
            (_, None) => MuslPresence::NoSuchSymbol,
        }
    }

    /// Every symbol, sorted by name. Reads the whole table.
    pub fn symbols(&self) -> impl Iterator<Item = (String, Vec<Export>)> {
        all_exports(POOL, self.bit)
    }

    /// The oldest release of which a build for this architecture was examined.
    pub fn oldest_release(&self) -> Release {
        self.oldest
    }

    /// The newest release that was examined, on any architecture.
    pub fn newest_release(&self) -> Release {
        POOL.releases().last().unwrap_or(Release::new(0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Arch; 7] =
        [Arch::X86_64, Arch::I686, Arch::Aarch64, Arch::Armv7l, Arch::Ppc64le, Arch::S390x, Arch::Riscv64];

    #[test]
    fn musl_has_what_posix_asks_and_not_what_only_glibc_has() {
        for arch in ALL {
            let musl = musl(arch).unwrap();
            for symbol in
                ["memcpy", "pthread_create", "dlopen", "sqrt", "__libc_start_main", "__errno_location"]
            {
                assert!(musl.contains(symbol), "{symbol} {arch}");
            }
            for symbol in
                ["__memcpy_chk", "gnu_get_libc_version", "__isoc23_strtol", "arc4random", "backtrace"]
            {
                assert!(!musl.contains(symbol), "{symbol} {arch}");
            }
        }
    }

    #[test]
    fn what_came_between_two_builds_has_a_release() {
        let row = musl(Arch::X86_64).unwrap().exports("qsort_r")[0];
        assert_eq!((row.since, row.since_exact), (Some(Release::with_patch(1, 2, 3)), true));
        let row = musl(Arch::X86_64).unwrap().exports("statx")[0];
        assert_eq!((row.since, row.since_exact), (Some(Release::with_patch(1, 2, 5)), false));
        let row = musl(Arch::X86_64).unwrap().exports("memcpy")[0];
        assert_eq!((row.since, row.since_exact), (Some(Release::with_patch(1, 2, 2)), false));
    }

    #[test]
    fn what_no_build_tells_is_unknown() {
        let (old, new) = (Release::new(1, 2), Release::with_patch(1, 2, 5));
        let x86_64 = musl(Arch::X86_64).unwrap();
        assert_eq!(x86_64.oldest_release(), Release::with_patch(1, 2, 2));
        assert_eq!(x86_64.provides("memcpy", new), MuslPresence::Yes);
        assert_eq!(
            x86_64.provides("memcpy", old),
            MuslPresence::Unknown { seen_in: Release::with_patch(1, 2, 2) }
        );
        assert_eq!(x86_64.provides("statx", old), MuslPresence::TooNew { since: new });
        assert_eq!(
            x86_64.provides("statx", Release::with_patch(1, 2, 4)),
            MuslPresence::Unknown { seen_in: new }
        );
        assert_eq!(x86_64.provides("backtrace", new), MuslPresence::NoSuchSymbol);
        // On s390x no build before 1.2.5 was examined.
        let s390x = musl(Arch::S390x).unwrap();
        assert_eq!(s390x.provides("statx", old), MuslPresence::Unknown { seen_in: new });
    }

    #[test]
    fn large_file_names_stay() {
        let row = musl(Arch::X86_64).unwrap().exports("fopen64")[0];
        assert_eq!(row.until, None);
    }

    #[test]
    fn thirty_two_bit_architectures_have_the_64_bit_time_names() {
        assert!(musl(Arch::I686).unwrap().contains("__clock_gettime64"));
        assert!(!musl(Arch::X86_64).unwrap().contains("__clock_gettime64"));
    }
}
