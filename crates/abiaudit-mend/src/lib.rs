//! What cures one object without its object files: as an edit plan, or the reason why it cannot be done.
//!
//! An exported static libstdc++ breaks streams, locales and `std::call_once` next to any other libstdc++ in the process
//! (ABI201, ABI203). Where the module cannot be built again, its dynamic symbols can be changed so that the process has one
//! copy again, or so that the copies do not meet:
//!
//! ```text
//! copy      which definitions of an object are those of its libstdc++, and which the target's library has too
//! share     they become references: the process's libstdc++ serves, what the target lacks stays, hidden
//! hide      every export but the entry points becomes hidden, as --exclude-libs would have done
//! demote    STB_GNU_UNIQUE becomes weak, so that each copy numbers its own facets
//! cure      the best of the three that can be proved to work
//! direct    the proof: references that the linker settled, which no symbol table can redirect
//! code      what instructions refer to, decoded
//! ```

pub mod code;
mod copy;
mod cure;
mod demote;
pub mod direct;
mod hide;
mod refusal;
mod share;

pub use copy::RuntimeCopy;
pub use cure::{Cure, Method, Patient, cure};
pub use refusal::Refusal;
