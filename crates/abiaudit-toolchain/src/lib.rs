//! The split toolchain: link with the shared libraries of an old system, and take what is newer from an archive.
//!
//! A wheel built with a new GCC is to use the libstdc++ of the process that loads it, which is that of the system and may
//! be old. So it is linked with stubs of the old shared libraries, and with `libstdc++_nonshared.a`, which has what came
//! later and nothing else, hidden. [`create`] makes both from the compiler's own files, with a linker wrapper
//! ([`link`]) that a build needs no change to use; [`verify`] checks them.

pub mod archive;
mod compiler;
mod create;
mod digest;
pub mod environment;
mod error;
mod library;
pub mod link;
mod manifest;
pub mod mask;
pub mod nonshared;
mod relocatable;
mod scripts;
pub mod shim;
pub mod stub;
mod verify;
mod version;

pub use compiler::Compiler;
pub use create::{LINKERS, Options, create};
pub use error::{Error, Result};
pub use library::{Export, ExportBinding, Library, glibc_libraries};
pub use manifest::{CompilerFacts, InputFile, LinkerFacts, Manifest};
pub use verify::{Check, verify};
