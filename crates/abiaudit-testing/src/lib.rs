//! Wheels for tests: no compiler, no packaging tool, every byte under the test's control. Nothing but tests may
//! depend on this crate.
//!
//! ```
//! use abiaudit_testing::{Arch, ElfWriter, TestWheel};
//!
//! let module = ElfWriter::new(Arch::X86_64).needed("libc.so.6").define("PyInit_mod");
//! let wheel = TestWheel::new("pkg", "1.0", "cp312-cp312-manylinux_2_28_x86_64")
//!     .requires("torch>=2")
//!     .elf("pkg/mod.so", &module)
//!     .file("pkg/__init__.py", "")
//!     .unlisted("pkg/__init__.py");
//! let bytes = wheel.bytes();
//! assert!(bytes.starts_with(b"PK"));
//! ```

mod wheel;
mod zip;

pub use abiaudit_elf::test_support::{Arch, Built, ElfWriter, HashStyle, SegmentSpec, SymbolSpec};
pub use wheel::TestWheel;
pub use zip::{Entry, Zip};
