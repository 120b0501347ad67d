//! Symbol binding: the static counterpart of `LD_DEBUG=bindings`.
//!
//! [`Process::run`] plays a [`Scenario`] (a program, what it preloads, and every `dlopen` in order) over a set of
//! files and says for each reference of each object that gets loaded which definition the loader binds it to.
//!
//! # glibc (`elf/dl-lookup.c`, `elf/dl-open.c`, `elf/dl-object.c`, `elf/dl-load.c`, `elf/dl-reloc.c`)
//! * The global scope is the program, the preloaded libraries and all that they need, breadth first.
//! * `dlopen` of R loads what R needs, breadth first. Every object that this loads looks through the global scope, then
//!   through the list of R: not through its own needs, so what R pulls in before can stand in the way. An object with
//!   `DF_SYMBOLIC` looks into itself first. `RTLD_GLOBAL` appends the list of R to the global scope after relocation,
//!   for what is loaded later.
//! * The first definition wins, weak or not. Undefined symbols, symbols without a value (but TLS and absolute ones) and
//!   hidden ones are no definitions.
//! * A reference with a version takes that version, or a definition without a version that is not marked hidden, or
//!   anything from an object without `DT_VERSYM`. A reference without a version takes index 1 or 2 of the version
//!   table, or the only default version.
//! * If the definition is `STB_GNU_UNIQUE`, the first definition of that name that any lookup found in the process is
//!   taken, whatever the scope.
//! * Protected symbols bind to their own object once any definition is found; hidden ones without a look-up.
//! * A COPY relocation looks past the program for what to copy; references of others find the program's copy first.
//!
//! Compared with `LD_DEBUG=bindings` of glibc 2.36 on real packages by `cargo xtask bindings`, and on small processes by
//! `tests/processes.rs`.
//!
//! # musl (`ldso/dynlink.c`: `find_sym2`, `do_relocs`, `dlopen`)
//! * The same lists in the same order: while `dlopen` relocates, the list of R is appended to the global one and is
//!   taken off again if the mode is not `RTLD_GLOBAL`.
//! * Versions are not compared; definitions with the hidden bit in `DT_VERSYM` are not seen.
//! * No `STB_GNU_UNIQUE`, no `DF_SYMBOLIC`, no visibility: hidden definitions serve others, and references to hidden
//!   and protected symbols are looked up like any other.
//!
//! Compared with musl 1.2.3 on small processes only (`tests/processes.rs`), not on real packages.
//!
//! # Not modelled
//! * Lazy binding after later `dlopen`s: each object is bound as a whole when it is loaded, which is what Python asks
//!   for (`RTLD_NOW`). `dlsym` look-ups are not part of a file.
//! * `RTLD_DEEPBIND`, `dlmopen`, `dlclose`, auditing, `LD_DYNAMIC_WEAK`.
//! * Programs with fixed addresses whose undefined functions have a value (canonical PLT entries).
//! * Protected data that a program copied, on the processors where glibc knows of that
//!   (`ELF_RTYPE_CLASS_EXTERN_PROTECTED_DATA`).
//! * Names in `64` that musl 1.2.4 and later serves though it does not export them (`get_lfs64`).
//! * A `dlopen` that fails is undone by the loader. Here what could be loaded stays, and what was missing is said
//!   ([`Process::missing`], [`Bindings::unresolved`]).
//! * Machines whose relocations are not read (MIPS) have no bindings.

mod bindings;
mod process;
mod relocation;
mod rules;
mod simulation;

use crate::search::{Libc, Library};

pub use bindings::{Binding, Bindings, Provider, SystemBinding, Via};
pub use process::{Interposition, InterpositionKind, Load, Missing, Process};

/// A file that the process may load.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Where it is and what it says.
    pub library: Library<'a>,
    /// Which distribution it belongs to: equal for all files of one wheel, and for all files of the system.
    pub group: u32,
}

/// A library of the system that is known by its tables, not as a file.
///
/// What *it* binds to is known as far as it says ([`SystemLibrary::references`]).
pub trait SystemLibrary {
    /// `DT_SONAME`, such as `libc.so.6`.
    fn soname(&self) -> &str;

    /// Sonames of what it needs, in order.
    fn needed(&self) -> Vec<String>;

    /// Whether a reference to `symbol` finds a definition here; `version` is what the reference asks for. A reference
    /// without a version finds the base or the default version.
    fn provides(&self, symbol: &[u8], version: Option<&[u8]>) -> Option<Provided>;

    /// References that the library itself makes through the loader, to its own exports too, in a fixed order: each is
    /// bound when the library is relocated ([`Process::system_bindings`]).
    fn references(&self) -> Vec<SystemReference<'_>> {
        Vec::new()
    }
}

/// A reference of a library of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemReference<'a> {
    /// Name of the symbol.
    pub symbol: &'a str,
    /// The version that it asks for.
    pub version: Option<&'a str>,
}

/// How a system library defines a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provided {
    /// `STB_GLOBAL` or `STB_WEAK`.
    Ordinary,
    /// `STB_GNU_UNIQUE`. Unless its references are known ([`SystemLibrary::references`]), the library is taken to refer
    /// to it itself and to find its own definition, which counts from when the library is loaded.
    Unique,
}

/// A process to simulate. Indexes into `files` and `system` are positions in these slices.
#[derive(Clone, Copy)]
pub struct Scenario<'a> {
    /// Whose loader it is.
    pub libc: Libc,
    /// All files that could be loaded. Paths are absolute, normal and distinct.
    pub files: &'a [File<'a>],
    /// Libraries of the system that are not among the files. They are found where nothing else is.
    pub system: &'a [&'a dyn SystemLibrary],
    /// Where the loader looks last, in order: what its cache lists, and its default directories.
    pub default_directories: &'a [&'a str],
    /// What was started.
    pub program: Program<'a>,
    /// `LD_PRELOAD`, in order.
    pub preload: &'a [Target<'a>],
    /// What happens then, in order.
    pub events: &'a [Event<'a>],
}

/// What was started.
#[derive(Debug, Clone, Copy)]
pub enum Program<'a> {
    /// One of the files, loaded with all that it needs.
    File(usize),
    /// These libraries of the system, in the order of the global scope, and all that they need. The first stands for
    /// the program itself.
    Described(&'a [usize]),
}

/// What to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// One of the files, by its path.
    File(usize),
    /// A name without a slash, to be searched for.
    Name(&'a str),
}

/// What happens in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// `dlopen` with `RTLD_NOW`. Python imports an extension module by path and with `RTLD_LOCAL`.
    Dlopen {
        /// What is opened.
        target: Target<'a>,
        /// `RTLD_GLOBAL`
        global: bool,
        /// The file whose code calls: its search paths count for a [`Target::Name`]. `None` is the program.
        caller: Option<usize>,
    },
}

/// An object in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectId {
    /// One of the files.
    File(u32),
    /// One of the libraries of the system.
    System(u32),
}
