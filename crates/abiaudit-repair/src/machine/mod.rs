//! The build machine: where its loader finds libraries.
//!
//! Repair is the one command that looks at the machine, since that is where the libraries are that a wheel was linked with.
//! A sysroot ([`Root`]) stands in for it, so that a wheel of another architecture can be repaired.

mod cache;
mod library;
mod root;
mod search;

pub use library::{Library, Source};
pub use root::Root;
pub use search::{LibraryPaths, NotFound, Request, Searcher};
