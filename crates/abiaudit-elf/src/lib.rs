//! What one ELF file says, read once, bounded, and from what the dynamic loader reads.
//!
//! [`Object`] is the model: identity, segments, dynamic entries, dynamic symbols with their versions and
//! relocations, notes, and (where section headers exist) section names and compiler comments. The truth is
//! the program headers and `PT_DYNAMIC`; section headers are decoration that a loader never looks at, so a
//! file without them gives the same facts, and one that lies in them is not believed.
//!
//! Members of a wheel are deflated, so a file arrives as a stream. [`Collector`] watches the stream and keeps
//! only the byte ranges that facts come from; [`Object::parse`] reads them, or says which ranges it still
//! needs. A member of any size costs little memory:
//!
//! ```
//! use abiaudit_elf::{Collector, Object, Parsed, Wants};
//! # fn chunks() -> Vec<Vec<u8>> { vec![b"\x7fELF".to_vec()] }
//! # let size = 4;
//! let mut collector = Collector::new(size);
//! for chunk in chunks() {
//!     collector.push(&chunk);
//! }
//! match Object::parse(&collector.finish(), &Wants::default()) {
//!     Ok(Parsed::Complete(object)) => println!("{:?}", object.dynamic.needed),
//!     Ok(Parsed::Missing(ranges)) => println!("stream again and keep {ranges:?}"),
//!     Err(error) => println!("not an ELF file that can be read: {error}"),
//! }
//! ```
//!
//! Every offset, count and size comes from an untrusted file: reads are checked, arithmetic is checked, and
//! every loop and allocation is bounded by the size of the file.

mod collector;
mod dynamic;
mod error;
mod fixups;
mod hash;
mod identity;
mod image;
mod kind;
mod name;
mod notes;
mod object;
mod raw;
mod relocations;
mod sections;
mod segments;
mod strings;
mod symbols;
#[cfg(feature = "test-support")]
pub mod test_support;
mod versions;

pub use collector::Collector;
pub use dynamic::Dynamic;
pub use error::{ParseError, Problem};
pub use fixups::{Fixup, FixupKind, fixups};
pub use hash::{GnuHash, gnu_hash, sysv_hash};
pub use identity::{Class, Endian, Identity, ObjectType};
pub use image::Image;
pub use kind::FileKind;
pub use name::Name;
pub use notes::{AbiTag, IsaLevel, Notes};
pub use object::{Object, Parsed, Wants};
pub use relocations::{RelocationUse, Relocations};
pub use sections::{Section, Sections, Symtab, SymtabEntry};
pub use segments::{Segment, SegmentType, Segments};
pub use symbols::{Binding, Symbol, SymbolType, Symbols, Visibility};
pub use versions::{DefinedVersion, NeededVersion, SymbolVersion, VersionDefinition, VersionNeed, Versions};
