//! Which C++, OpenMP, BLAS and Fortran runtime, unwinder and allocator an ELF object carries, how exposed it is,
//! and how sure that is.
//!
//! [`detect`] is a pure function of an [`Object`] and of the [`Markers`] that were found in
//! the file while it was read. Three ideas hold it together:
//!
//! * **Presence is not danger.** A hidden copy of libstdc++ duplicates state and harms nobody; an exported one breaks
//!   streams in the next object that is loaded. So class and exposure are two answers, and exposure comes from
//!   symbols alone, which is all that the loader sees.
//! * **Evidence has a grade** ([`Grade`]), and each verdict holds the very symbols, texts and offsets that it
//!   rests on. A text alone proves nothing: two translation units of the runtime must bear it out.
//! * **What looks like a runtime and is not** is data too: see `policies/runtimes`.
//!
//! The texts are looked for in the same pass that inflates and hashes a member, with [`MarkerScan`], which knows
//! nothing of ELF and of verdicts.

mod allocators;
mod blas;
mod compilers;
mod cxx;
mod data;
mod evidence;
mod fortran;
pub mod itanium;
mod markers;
mod object_facts;
mod openblas;
mod openmp;
mod producers;
mod soname;
mod unwinder;
mod view;

use abiaudit_elf::Object;

pub use allocators::{Allocator, Replaces};
pub use blas::{Blas, BlasFamily, BlasInterface, Threading};
pub use compilers::{Compiler, CompilerKind};
pub use cxx::{CxxClass, CxxRuntime, ExportedDefinition, LibCxxLinkage, OncePair};
pub use evidence::{Carriage, Evidence, Exposure, Fact, Grade};
pub use fortran::{FortranFamily, FortranRuntime};
pub use markers::{Found, Marker, MarkerScan, Markers, Speaks};
pub use openblas::OpenBlasConfig;
pub use openmp::{OpenMp, OpenMpFamily};
pub use producers::producers;
pub use soname::{stem, vendored_hash};
pub use unwinder::{Unwinder, UnwinderKind};
pub use view::Runtime;

use object_facts::ObjectFacts;

/// All runtimes that one object carries or needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carries {
    /// The C++ standard library.
    pub cxx: CxxRuntime,
    /// The stack unwinder that exceptions use.
    pub unwinder: Unwinder,
    /// OpenMP runtimes, sorted by family.
    pub openmp: Vec<OpenMp>,
    /// BLAS and LAPACK libraries, sorted by family.
    pub blas: Vec<Blas>,
    /// Definitions that replace the process's allocator.
    pub allocators: Vec<Allocator>,
    /// libgfortran and libquadmath.
    pub fortran: Vec<FortranRuntime>,
    /// Who compiled the parts, as far as the file says.
    pub compilers: Vec<Compiler>,
}

/// Says what an object carries.
///
/// `markers` are those of the same file. With `.symtab` in the object ([`abiaudit_elf::Wants::symtab`]) a *hidden*
/// partial libstdc++ is found too; without, such an object counts as [`CxxClass::Dynamic`], which it resembles in all
/// that other objects can notice.
pub fn detect(object: &Object, markers: &Markers) -> Carries {
    let facts = ObjectFacts::new(object, markers);
    let cxx = cxx::detect(&facts);
    let openmp = openmp::detect(&facts);
    Carries {
        unwinder: unwinder::detect(&facts, &cxx),
        allocators: allocators::detect(&facts, &cxx),
        blas: blas::detect(&facts),
        fortran: fortran::detect(&facts),
        compilers: compilers::detect(&facts),
        cxx,
        openmp,
    }
}
