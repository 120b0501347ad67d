//! What cures one object without its object files: as an edit plan, or the reason why it cannot be done.
//!
//! ```text
//! code      what instructions refer to, decoded
//! direct    which references to a symbol the loader will never see, because the linker settled them
//! ```

pub mod code;
pub mod direct;
