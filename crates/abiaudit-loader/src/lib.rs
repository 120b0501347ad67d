//! What the dynamic loader makes of objects.
//!
//! [`search`] answers how ld.so (glibc) or musl's loader finds each `DT_NEEDED` of a set of objects; [`binding`] answers
//! which definition each symbol reference of a process gets. Nothing here opens a file or looks at the machine it runs
//! on: the same objects give the same answer everywhere.

pub mod binding;
pub mod search;
