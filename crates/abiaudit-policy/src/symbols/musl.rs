//! musl's one library.
//!
//! musl has no symbol versions: the name is all, and a name that the running musl lacks ends the load (or, bound
//! lazily, the call). The rows are the dynamic symbols of Debian's builds of musl 1.2.2, 1.2.3, 1.2.5 and 1.2.6; not
//! every architecture was examined at each. Of releases before 1.2.2 nothing is said: a symbol that the oldest build
//! has is given as "1.2.2 at latest".
//!
//! musl 1.2.4 dropped the `64` names (`fopen64`) from its symbol table, but its loader still binds them to the plain
//! names (`ldso/dynlink.c`), so the table keeps them.

use super::{Export, Pool, Release, all_exports, exports};
use crate::Arch;

pub(super) const POOL: Pool = Pool::new(include_bytes!("../../../../policies/symbols/musl.bin"));

/// The exports of musl's `libc.so` on one architecture.
#[derive(Debug, Clone, Copy)]
pub struct MuslTable {
    bit: u16,
}

/// The table of an architecture; `None` if none of its builds was examined, in which case nothing is known.
pub fn musl(arch: Arch) -> Option<MuslTable> {
    Some(MuslTable { bit: POOL.arch_bit(arch.tag())? })
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

    /// Every symbol, sorted by name. Reads the whole table.
    pub fn symbols(&self) -> impl Iterator<Item = (String, Vec<Export>)> {
        all_exports(POOL, self.bit)
    }

    /// The oldest release that was examined, on any architecture.
    pub fn oldest_release(&self) -> Release {
        POOL.releases().next().unwrap_or(Release::new(0, 0))
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
