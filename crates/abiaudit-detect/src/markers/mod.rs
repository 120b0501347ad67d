//! Texts in a file that speak for a runtime, and the scan that finds them while the file streams by.
//!
//! This module knows nothing of ELF: it takes bytes and says which texts stood where. Which of them count is for
//! [`detect`](crate::detect) to say, which knows the file's segments.

mod scan;
mod windows;

use crate::data::MARKERS;
use crate::evidence::Grade;

pub use scan::MarkerScan;

/// One `[[marker]]` of `policies/runtimes`.
#[derive(Debug, PartialEq, Eq)]
pub struct Marker {
    /// The bytes that are looked for.
    pub text: &'static str,
    pub(crate) form: Form,
    /// What one find is worth.
    pub grade: Grade,
    /// Which part of which runtime it proves.
    pub speaks_for: Speaks,
    /// The translation unit that brings it.
    pub unit: &'static str,
}

/// How a marker must stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Anywhere within a text; what follows belongs to the find.
    String,
    /// A whole identifier, with NUL behind it.
    Name,
    /// The start of an identifier, the rest of which belongs to the find.
    NameStart,
    /// The end of an identifier, the rest of which belongs to the find.
    NameEnd,
}

/// What a marker proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Speaks {
    /// A whole static libstdc++.
    LibstdcxxFull,
    /// A part of libstdc++ that the nonshared archive of a split toolchain has too.
    LibstdcxxPart,
    /// libsupc++ or libc++abi.
    CxxAbiLibrary,
    /// `locale::facet` of some C++ library; whose, the namespace tells.
    LocaleFacet,
    /// libc++ itself.
    Libcxx,
    /// Code that was compiled with libc++'s headers.
    LibcxxName,
    /// GNU's OpenMP runtime.
    Libgomp,
    /// LLVM's or Intel's OpenMP runtime.
    Libomp,
    /// OpenBLAS.
    Openblas,
    /// Intel's Math Kernel Library.
    Mkl,
    /// GNU's Fortran runtime.
    Libgfortran,
    /// The jemalloc allocator.
    Jemalloc,
    /// Compiled by rustc.
    Rustc,
    /// Linked by Go.
    Go,
}

/// Where one marker was found, with one text around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    index: u16,
    /// The text: from the marker on, or the whole identifier. Cut to a sensible length.
    pub text: String,
    /// Offset in the file, in bytes, of the marker in this text's first occurrence.
    pub offset: u64,
    /// How often the marker stood in this text. Where a marker stands in very many different texts only the first few
    /// are kept, and the count of the last of them is that of all others too.
    pub count: u64,
}

impl Found {
    /// The marker.
    pub fn marker(&self) -> &'static Marker {
        // The scan makes indexes from the table, which has at least one row.
        MARKERS.get(usize::from(self.index)).unwrap_or(&MARKERS[0])
    }
}

/// All markers found in one file, in the order of the table, then of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markers(Vec<Found>);

impl Markers {
    /// All finds.
    pub fn iter(&self) -> impl Iterator<Item = &Found> {
        self.0.iter()
    }

    /// Nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Scans bytes that are in memory as a whole.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut scan = MarkerScan::new();
        scan.push(bytes);
        scan.finish()
    }
}
