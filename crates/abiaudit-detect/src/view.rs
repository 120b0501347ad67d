//! The short form for reports: one line for each runtime.

use crate::allocators::Replaces;
use crate::cxx::{CxxClass, LibCxxLinkage};
use crate::evidence::{Evidence, Exposure};
use crate::unwinder::UnwinderKind;
use crate::{Blas, Carries, OpenMp};

/// A runtime as the JSON report has it (`objects[].runtimes[]`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// Which: `libstdc++`, `libc++`, `unwinder`, `openmp`, `blas`, `fortran`, `allocator`.
    pub kind: &'static str,
    /// How much of it, and whose: `full`, `partial`, `libgomp static`.
    pub class: String,
    /// `exported`, `half-hidden`, `hidden`, or nothing where nothing is carried.
    pub exposure: &'static str,
    /// What says so, one line each, the best first; each begins with its grade.
    pub evidence: Vec<String>,
}

impl Carries {
    /// All that is worth telling of an object, in a fixed order. A C++ library that is only used is told; no C++ is
    /// not.
    pub fn runtimes(&self) -> Vec<Runtime> {
        let mut all = Vec::new();
        all.extend(self.cxx_runtime());
        let unwinder = match self.unwinder.kind {
            UnwinderKind::None => None,
            UnwinderKind::Shared => Some(("shared", Exposure::NotApplicable)),
            UnwinderKind::Private if self.unwinder.exported => Some(("private", Exposure::Exported)),
            UnwinderKind::Private => Some(("private", Exposure::Hidden)),
            UnwinderKind::Library => Some(("library", Exposure::Exported)),
        };
        if let Some((class, exposure)) = unwinder {
            all.push(runtime("unwinder", class.to_owned(), exposure, &self.unwinder.evidence));
        }
        for OpenMp { family, carriage, evidence, .. } in &self.openmp {
            let class = format!("{} {}", family.as_str(), carriage.as_str());
            all.push(runtime("openmp", class, carriage.exposure(), evidence));
        }
        all.extend(self.blas.iter().map(blas_runtime));
        for fortran in &self.fortran {
            let class = format!("{} {}", fortran.family.as_str(), fortran.carriage.as_str());
            all.push(runtime("fortran", class, fortran.carriage.exposure(), &fortran.evidence));
        }
        for allocator in &self.allocators {
            let what = match allocator.replaces {
                Replaces::Malloc => "malloc",
                Replaces::OperatorNew => "operator new",
            };
            let class = allocator.name.map_or(what.to_owned(), |name| format!("{name} as {what}"));
            all.push(runtime("allocator", class, Exposure::Exported, &allocator.evidence));
        }
        all
    }

    fn cxx_runtime(&self) -> Option<Runtime> {
        let cxx = &self.cxx;
        let (kind, class) = match &cxx.class {
            CxxClass::None => return None,
            CxxClass::Dynamic => ("libstdc++", "dynamic".to_owned()),
            CxxClass::Partial => ("libstdc++", "partial".to_owned()),
            CxxClass::Full => ("libstdc++", "full".to_owned()),
            CxxClass::FullAndNeeded => ("libstdc++", "full and needed".to_owned()),
            CxxClass::Minimal => ("libstdc++", "minimal".to_owned()),
            CxxClass::Vendored => ("libstdc++", "library".to_owned()),
            CxxClass::LibCxx { namespace, linkage } => {
                let linkage = match linkage {
                    LibCxxLinkage::Dynamic => "dynamic",
                    LibCxxLinkage::Static => "static",
                    LibCxxLinkage::Library => "library",
                };
                ("libc++", format!("{linkage} (std::{namespace})"))
            }
        };
        Some(runtime(kind, class, cxx.exposure, &cxx.evidence))
    }
}

fn blas_runtime(blas: &Blas) -> Runtime {
    let mut class = format!("{} {}", blas.family.as_str(), blas.carriage.as_str());
    if let Some(config) = &blas.config {
        class = format!("{} {} {}", blas.family.as_str(), config.version, blas.carriage.as_str());
    }
    runtime("blas", class, blas.carriage.exposure(), &blas.evidence)
}

fn runtime(kind: &'static str, class: String, exposure: Exposure, evidence: &[Evidence]) -> Runtime {
    let evidence = evidence.iter().map(Evidence::to_string).collect();
    Runtime { kind, class, exposure: exposure.as_str(), evidence }
}
