//! Library search: how each `DT_NEEDED` of a set of objects is found inside that set.
//!
//! The set is what gets installed together, most often the members of one wheel at their installed paths. Every
//! root (a program, a Python extension module, a library that nothing in the set needs) is loaded in a process of
//! its own, breadth first, as the loader does it; the outcome of a need is the worst that any root sees.
//!
//! # glibc (`elf/dl-load.c`, `elf/dl-deps.c`, `elf/get-dynamic-info.h`)
//! A requested name is first compared with the names and `DT_SONAME`s of what is loaded. A name without a slash is
//! then looked for in
//! 1. `DT_RPATH` of the object that needs it, of the object that loaded that one, and so on up to the root, unless
//!    the object that needs it has `DT_RUNPATH`. An ancestor's `DT_RPATH` does not count if that ancestor has
//!    `DT_RUNPATH` too, even an empty one;
//! 2. `LD_LIBRARY_PATH`, which is taken to be empty;
//! 3. `DT_RUNPATH` of the object that needs it, and of no other;
//! 4. the cache and the default directories, which lie outside of the set. `DF_1_NODEFLIB` turns these off
//!    ([`Need::no_default_directories`]). What they have is told by [`System::has`].
//!
//! What the importing program has loaded answers first, and no path is looked at: see [`System::loaded`].
//!
//! Files of another class or machine are passed over; any other file that cannot be loaded (an object file, a
//! program, other byte order) ends the search with an error ([`Need::blocked_by`]). A file that is loaded already
//! under another name is not loaded twice.
//!
//! # musl (`ldso/dynlink.c`, `load_library`)
//! The names of musl itself (`libc.`, `libpthread.`, `librt.`, `libm.`, `libdl.`, `libutil.`, `libxnet.`) never
//! reach a file. Other names are compared with the file names under which a search found what is loaded; `DT_SONAME`
//! plays no part. Then come the search paths of the needing object and of everything up to the root: `DT_RUNPATH`
//! where there is one, else `DT_RPATH`, both inherited. Only `$ORIGIN` is expanded; any other `$` makes musl ignore the whole
//! path. The first file of that name is taken: one that cannot be loaded ends the search.
//!
//! # Not modelled
//! * What the host offers beyond [`System`]: `LD_LIBRARY_PATH`, `LD_PRELOAD`, other entries of the cache.
//! * Files of the set that are not ELF: a linker script on the path would end a search.
//! * `..` is resolved by text: `a/../b` is taken to be `b` whether or not a directory `a` gets installed.
//! * Copies in `glibc-hwcaps` subdirectories serve only some processors: a need is found where every processor
//!   finds it, and the copies are listed beside it ([`Need::hwcaps`]).
//! * `DT_FILTER` and `DT_AUXILIARY` are not followed; a vendored libc that musl would turn away is not recognised.

mod expand;
pub(crate) mod index;
pub(crate) mod loading;
mod resolution;
mod walk;

use abiaudit_elf::Object;

pub use expand::{EntryKind, PathTag, SearchEntry};
pub use resolution::Resolution;

/// One member of the set.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a> {
    /// Where it is installed: absolute, with `/`, without `.` and `..`, and distinct from all other paths of the set.
    pub path: &'a str,
    /// What it says. Two libraries that borrow the same `Object` are one file under two names (a link).
    pub object: &'a Object,
}

/// Whose loader it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Libc {
    /// ld.so of the GNU C library.
    Glibc,
    /// ld-musl.
    Musl,
}

/// What one object asks for with one distinct `DT_NEEDED`, and what became of it. Indexes are positions in the slice
/// that was given to [`resolve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The object that has the entry.
    pub from: usize,
    /// The entry as text.
    pub name: String,
    /// The worst outcome under any root.
    pub outcome: Outcome,
    /// The first root under which that outcome was seen.
    pub root: usize,
    /// Who loaded whom, from `root` to `from` inclusive. Of a chain longer than [`CHAIN_MAX`] the root and the end.
    pub chain: Vec<usize>,
    /// Some root finds it. With an outcome that is not [`Outcome::Found`] this says that it depends on what was
    /// imported first.
    pub found_in_some_root: bool,
    /// The member on which the search ended with an error: it has the right file name but cannot be loaded.
    pub blocked_by: Option<usize>,
    /// `DF_1_NODEFLIB` of the object: system directories are not searched for this either (glibc).
    pub no_default_directories: bool,
    /// Copies in `glibc-hwcaps/*` below the directory where it was found; glibc prefers one that suits the processor.
    pub hwcaps: Vec<usize>,
}

/// What became of a need. Later is worse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A member serves it.
    Found {
        /// That member.
        library: usize,
        /// How it was found.
        by: FoundBy,
    },
    /// The loader serves it itself (musl's own names).
    Libc,
    /// An empty name.
    NotAName,
    /// No member of the same machine has that soname or file name, or the system's answers before one is found.
    External,
    /// Members have that soname or file name, but the loader does not find them.
    Unreachable {
        /// Those members.
        present: Vec<usize>,
    },
}

/// How a member was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBy {
    /// It was loaded before, and its name, soname or file is the one asked for.
    AlreadyLoaded,
    /// By a search path that counts for what the owner loads too: `DT_RPATH`, or with musl any path of an ancestor.
    Rpath {
        /// Whose path it is: the needing object or one of its ancestors.
        owner: usize,
        /// The entry before expansion.
        entry: String,
    },
    /// By the needing object's own `DT_RUNPATH`.
    Runpath {
        /// The entry before expansion.
        entry: String,
    },
    /// The `DT_NEEDED` itself is a path.
    Path,
    /// In one of the loader's default directories. [`resolve`] knows of none, so it never says this.
    DefaultDirectory,
}

/// Longest [`Need::chain`] that is kept.
pub const CHAIN_MAX: usize = 64;

/// What the processes have beside the set (glibc; musl keeps its own names for itself).
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// Sonames of what the interpreter has loaded before it opens a root; a root that is a program starts without.
    pub loaded: &'a [&'a str],
    /// Whether the default directories have a library of that name.
    pub has: &'a dyn Fn(&str) -> bool,
}

/// Finds every need of every member, with nothing known of the system.
///
/// As [`resolve_beside`].
pub fn resolve(libraries: &[Library<'_>], libc: Libc) -> Resolution {
    resolve_beside(libraries, libc, System { loaded: &[], has: &|_| false })
}

/// Finds every need of every member.
///
/// Time and memory are bounded: in a set that is made to be slow, roots whose turn does not come are listed in
/// [`Resolution::unwalked`].
pub fn resolve_beside(libraries: &[Library<'_>], libc: Libc, system: System<'_>) -> Resolution {
    walk::resolve(index::Index::new(libraries, libc, index::Surroundings::default()), system)
}
