//! The libraries of glibc.
//!
//! # What the table says, and how it was made
//! The source is a merge of glibc's `abilist` files of every release since 2.23 (ziglang/libc-abi-tools): a
//! triple (library, symbol, version) is in it only if it was new in the list of the release of that
//! version, or stands in the list of 2.23 (for a younger architecture: in its first list). So a triple
//! exists *since the release that its version names*. What the merge drops on purpose is the second life of
//! a symbol that moves: `pthread_create@GLIBC_2.2.5` of libpthread also stands in libc from 2.34 on, as a
//! compatibility definition. The table puts these back by two rules:
//!
//! * A symbol with version V in library A moved to library B if a dump of a real glibc shows V in B too. B
//!   has it since the release of the symbol's next version in B (`pthread_create@GLIBC_2.34`); without one,
//!   and if A is of those that 2.34 emptied into libc, since 2.34 at latest. A lost it then, if later dumps
//!   do not show it there.
//! * What the dumps (2.31, 2.36, 2.41, 2.43) have and this does not explain begins with the first dump that
//!   has it; what they lack ends with the first dump that lacks it. Both are marked as not exact.
//!
//! With that the table agrees with all those dumps, on every architecture, in every symbol and version
//! (`policies/symbols/SUMMARY.md` counts them).
//!
//! # Limits
//! * Moves and removals before 2.23 are not seen, unless they brought a new version (`clock_gettime`,
//!   2.17). An object that once took `scalbln` from libc (auditwheel #272) is told that libm has it, not
//!   until when libc had.
//! * A forwarder that libpthread had beside libc's own symbol (`write`) is said to end with 2.34 at latest;
//!   some went in 2.32 or 2.33.
//! * Left out: `GLIBC_PRIVATE` symbols, the `__lib*_version_placeholder` symbols, the absolute symbols that
//!   carry the names of the nodes, and the four unwinder symbols at `GCC_3.0` that libc has on i686 and
//!   s390x.
//! * Libraries outside the merge (libmvec, libanl, libnsl) come from the dumps alone.
//! * Whether a version is the default is known of the dumped releases; for what no dump has it is taken to
//!   be the newest version of the symbol in its library.

use super::{Export, Pool, Release, all_exports, exports};
use crate::Arch;

pub(super) const POOL: Pool = Pool::new(include_bytes!("../../../../policies/symbols/glibc.bin"));

/// The exports of glibc on one architecture.
#[derive(Debug, Clone, Copy)]
pub struct GlibcTable {
    bit: u16,
}

/// Does a release have a symbol?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It has.
    Yes,
    /// No release of glibc known to the table exports a symbol of this name to others.
    NoSuchSymbol,
    /// The symbol exists, but never at this version (a private one, or one of another architecture).
    NoSuchVersion,
    /// It came later.
    TooNew {
        /// The first release that has it.
        since: Release,
    },
    /// The library that was asked for had it or gets it in other releases; in this one another library has
    /// it.
    MovedTo {
        /// The library that has it.
        library: &'static str,
        /// Since which release that library has it, where known.
        at: Option<Release>,
    },
    /// The library that was asked for never has it; another library does.
    OtherLibrary {
        /// The library that has it.
        library: &'static str,
    },
    /// It is gone.
    Removed {
        /// The first release without it.
        at: Release,
    },
}

/// The table of an architecture; `None` if the source has no list for it, in which case nothing is known.
pub fn glibc(arch: Arch) -> Option<GlibcTable> {
    Some(GlibcTable { bit: POOL.arch_bit(arch.tag())? })
}

impl GlibcTable {
    /// Everything known of a symbol: each library and version, oldest first within a library.
    pub fn versions_of(&self, symbol: &str) -> Vec<Export> {
        exports(POOL, self.bit, symbol)
    }

    /// Every symbol with its exports, sorted by name. Reads the whole table.
    pub fn symbols(&self) -> impl Iterator<Item = (String, Vec<Export>)> {
        all_exports(POOL, self.bit)
    }

    /// Does `release` export `symbol`, at `version` (any if `None`), from `library` (any soname if `None`)?
    ///
    /// A release newer than [`newest_release`](Self::newest_release) is answered as that one.
    pub fn provides(
        &self,
        symbol: &str,
        version: Option<&str>,
        release: Release,
        library: Option<&str>,
    ) -> Presence {
        let all = self.versions_of(symbol);
        if all.is_empty() {
            return Presence::NoSuchSymbol;
        }
        let rows: Vec<&Export> =
            all.iter().filter(|row| version.is_none_or(|version| row.version == Some(version))).collect();
        if rows.is_empty() {
            return Presence::NoSuchVersion;
        }
        let asked = |row: &&&Export| library.is_none_or(|library| row.library == library);
        if rows.iter().filter(asked).any(|row| row.is_in(release)) {
            return Presence::Yes;
        }
        if let Some(row) = rows.iter().find(|row| row.is_in(release)) {
            return if rows.iter().any(|row| asked(&row)) {
                Presence::MovedTo { library: row.library, at: row.since }
            } else {
                Presence::OtherLibrary { library: row.library }
            };
        }
        let coming = rows.iter().filter_map(|row| row.since).filter(|since| *since > release).min();
        let gone = rows.iter().filter_map(|row| row.until).filter(|until| *until <= release).max();
        match (coming, gone) {
            (Some(since), _) => Presence::TooNew { since },
            (None, Some(at)) => Presence::Removed { at },
            // Unreachable with a sound table: a row that is not in a release begins later or has ended.
            (None, None) => Presence::NoSuchVersion,
        }
    }

    /// Is the soname one of those the table lists?
    pub fn has_library(&self, soname: &str) -> bool {
        POOL.libraries().any(|library| library == soname)
    }

    /// The newest release that the table knows.
    pub fn newest_release(&self) -> Release {
        POOL.releases().last().unwrap_or(Release::new(0, 0))
    }

    /// The oldest release with this architecture: the one of its oldest version node.
    pub fn oldest_release(&self) -> Option<Release> {
        self.symbols().flat_map(|(_, rows)| rows).filter_map(|row| row.since).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(arch: Arch) -> GlibcTable {
        glibc(arch).unwrap()
    }

    fn row(arch: Arch, symbol: &str, library: &str, version: &str) -> Export {
        let rows = table(arch).versions_of(symbol);
        *rows
            .iter()
            .find(|row| row.library == library && row.version == Some(version))
            .unwrap_or_else(|| panic!("{symbol}@{version} in {library}: {rows:?}"))
    }

    #[test]
    fn memcpy_got_a_second_version_on_x86_64_only() {
        let new = row(Arch::X86_64, "memcpy", "libc.so.6", "GLIBC_2.14");
        assert_eq!((new.since, new.until, new.default), (Some(Release::new(2, 14)), None, true));
        let old = row(Arch::X86_64, "memcpy", "libc.so.6", "GLIBC_2.2.5");
        assert_eq!((old.until, old.default), (None, false));
        let versions: Vec<_> = table(Arch::Aarch64).versions_of("memcpy").iter().map(|r| r.version).collect();
        assert_eq!(versions, [Some("GLIBC_2.17")]);
    }

    #[test]
    fn pthread_create_moved_to_libc() {
        let old = row(Arch::X86_64, "pthread_create", "libpthread.so.0", "GLIBC_2.2.5");
        assert_eq!((old.until, old.default), (Some(Release::new(2, 34)), true));
        let new = row(Arch::X86_64, "pthread_create", "libc.so.6", "GLIBC_2.34");
        assert_eq!((new.since, new.default), (Some(Release::new(2, 34)), true));
        let compat = row(Arch::X86_64, "pthread_create", "libc.so.6", "GLIBC_2.2.5");
        assert_eq!((compat.since, compat.since_exact), (Some(Release::new(2, 34)), true));
        assert!(!compat.default);

        let ask = |release, library| {
            table(Arch::X86_64).provides("pthread_create", Some("GLIBC_2.2.5"), release, Some(library))
        };
        assert_eq!(ask(Release::new(2, 17), "libpthread.so.0"), Presence::Yes);
        assert_eq!(ask(Release::new(2, 36), "libc.so.6"), Presence::Yes);
        assert_eq!(
            ask(Release::new(2, 36), "libpthread.so.0"),
            Presence::MovedTo { library: "libc.so.6", at: Some(Release::new(2, 34)) }
        );
        assert_eq!(
            ask(Release::new(2, 17), "libc.so.6"),
            Presence::MovedTo { library: "libpthread.so.0", at: Some(Release::with_patch(2, 2, 5)) }
        );
    }

    #[test]
    fn pthread_sigmask_moved_two_releases_before_the_rest() {
        let compat = row(Arch::X86_64, "pthread_sigmask", "libc.so.6", "GLIBC_2.2.5");
        assert_eq!(compat.since, Some(Release::new(2, 32)));
        let old = row(Arch::X86_64, "pthread_sigmask", "libpthread.so.0", "GLIBC_2.2.5");
        assert_eq!(old.until, Some(Release::new(2, 32)));
    }

    #[test]
    fn symbols_begin_with_their_release() {
        for (symbol, release) in [
            ("__cxa_thread_atexit_impl", Release::new(2, 18)),
            ("stat", Release::new(2, 33)),
            ("fstat", Release::new(2, 33)),
            ("arc4random", Release::new(2, 36)),
            ("__isoc23_strtol", Release::new(2, 38)),
            ("_dl_find_object", Release::new(2, 35)),
        ] {
            for arch in [Arch::X86_64, Arch::I686, Arch::Aarch64, Arch::S390x] {
                let before = Release::new(release.major, release.minor - 1);
                assert_eq!(
                    table(arch).provides(symbol, None, before, None),
                    Presence::TooNew { since: release },
                    "{symbol} {arch}"
                );
                assert_eq!(
                    table(arch).provides(symbol, None, release, None),
                    Presence::Yes,
                    "{symbol} {arch}"
                );
            }
        }
    }

    /// auditwheel #272: an object that takes it from libc fails on every glibc of the table; the version
    /// alone, which both libraries have, tells nothing.
    #[test]
    fn scalbln_is_in_libm_whoever_once_took_it_from_libc() {
        let table = table(Arch::X86_64);
        let ask =
            |symbol, library| table.provides(symbol, Some("GLIBC_2.2.5"), Release::new(2, 28), Some(library));
        assert_eq!(ask("scalbln", "libc.so.6"), Presence::OtherLibrary { library: "libm.so.6" });
        assert_eq!(ask("scalbln", "libm.so.6"), Presence::Yes);
        assert_eq!((ask("scalbn", "libc.so.6"), ask("scalbn", "libm.so.6")), (Presence::Yes, Presence::Yes));
        // i686 keeps the old definition in libc, for old objects only.
        assert!(!row(Arch::I686, "scalbln", "libc.so.6", "GLIBC_2.1").default);
        assert!(row(Arch::I686, "scalbln", "libm.so.6", "GLIBC_2.1").default);
    }

    #[test]
    fn an_architecture_begins_with_its_first_release() {
        for (arch, release) in [
            (Arch::X86_64, Release::with_patch(2, 2, 5)),
            (Arch::Aarch64, Release::new(2, 17)),
            (Arch::Ppc64le, Release::new(2, 17)),
            (Arch::Armv7l, Release::new(2, 4)),
            (Arch::Riscv64, Release::new(2, 27)),
            (Arch::Loongarch64, Release::new(2, 36)),
        ] {
            assert_eq!(table(arch).oldest_release(), Some(release), "{arch}");
        }
    }

    #[test]
    fn what_nobody_exports_is_said_so() {
        let table = table(Arch::X86_64);
        let now = table.newest_release();
        assert_eq!(table.provides("no_such_symbol", None, now, None), Presence::NoSuchSymbol);
        assert_eq!(table.provides("memcpy", Some("GLIBC_PRIVATE"), now, None), Presence::NoSuchVersion);
        assert_eq!(
            table.provides("sqrt", None, Release::new(2, 17), Some("libc.so.6")),
            Presence::OtherLibrary { library: "libm.so.6" }
        );
        assert!(matches!(table.provides("malloc_get_state", None, now, None), Presence::Removed { .. }));
    }
}
