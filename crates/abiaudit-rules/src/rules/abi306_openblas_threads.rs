//! OpenBLAS with its own threads meets an OpenMP runtime.
//!
//! ## What it does
//! Tells of an OpenBLAS built with POSIX threads that one import loads together with an object that uses OpenMP.
//!
//! ## Why is this bad?
//! Each has a pool as large as the machine. OpenBLAS's idle threads spin while OpenMP's work, and a BLAS call in a parallel
//! region uses more threads than there are processors. Results are right; it is slow.
//!
//! ## Example
//! A module with `#pragma omp parallel` that calls `cblas_dgemm` of a `libopenblasp`.
//!
//! ## How to mend it
//! Build OpenBLAS with `USE_OPENMP=1`, or limit its threads (`openblas_set_num_threads(1)`, threadpoolctl) around parallel
//! regions.
//!
//! ## References
//! OpenBLAS #3187; scikit-learn #28883; threadpoolctl #114.

use std::collections::BTreeSet;

use abiaudit_detect::{Carriage, OpenMp, OpenMpFamily, Threading};

use crate::audit::{Audit, AuditObject};
use crate::finding::{Evidence, Sink};
use crate::runtimes;

super::rule!("ABI306", "openblas-threads", Info, "abi306_openblas_threads.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let pools: BTreeSet<usize> = runtimes::shared(audit)
        .filter(|(_, entry)| has_own_threads(entry))
        .map(|(object, _)| object)
        .collect();
    let mut told = BTreeSet::new();
    for scope in if pools.is_empty() { Vec::new() } else { runtimes::scopes(audit).collect() } {
        let user = scope.iter().find_map(|&object| Some((object, openmp_of(audit.objects.get(object)?)?)));
        let (Some(root), Some((user, openmp))) = (scope.first(), user) else { continue };
        for &object in scope.iter().filter(|object| pools.contains(*object)) {
            if !told.insert(object) {
                continue;
            }
            let message = format!(
                "is an OpenBLAS with threads of its own; {} loads it together with {}, where {} uses {}",
                audit.member_name(*root),
                "an OpenMP runtime",
                audit.member_name(user),
                openmp.family.as_str()
            );
            let name = openmp.soname.as_deref().unwrap_or(openmp.family.as_str());
            sink.member(audit.member_name(object), message)
                .help("build OpenBLAS with USE_OPENMP=1, or limit its threads around parallel regions")
                .evidence([Evidence::member(audit.member_name(user)).with_library(name)]);
        }
    }
}

fn has_own_threads(entry: &AuditObject<'_>) -> bool {
    let mut carried = entry.carries.blas.iter().filter(|blas| runtimes::is_carried(blas.carriage));
    carried.any(|blas| blas.threading == Some(Threading::Pthreads))
}

fn openmp_of<'e>(entry: &'e AuditObject<'_>) -> Option<&'e OpenMp> {
    let real = |openmp: &&OpenMp| openmp.family != OpenMpFamily::Stubs && openmp.carriage != Carriage::Refers;
    entry.carries.openmp.iter().find(real)
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

    fn count(openblas: &str, needed: &[&str]) -> usize {
        let module = ElfWriter::new(Arch::X86_64).define("PyInit_m").rpath("$ORIGIN").needed(openblas);
        let module = needed.iter().fold(module, ElfWriter::needed);
        let library =
            ElfWriter::new(Arch::X86_64).soname(openblas).define("dgemm_").undefined("pthread_create");
        let wheel =
            TestWheel::new("p", "1", TAGS).elf("p/m.so", &module).elf(&format!("p/{openblas}"), &library);
        findings("ABI306", &wheel).len()
    }

    #[test]
    fn both_in_one_scope() {
        assert_eq!(count("libopenblasp-r0-1a2b3c4d.so", &["libgomp.so.1"]), 1);
        assert_eq!(count("libscipy_openblas-1a2b3c4d.so", &["libgomp.so.1"]), 1);
    }

    #[test]
    fn silent_without_openmp_and_where_openblas_uses_it() {
        assert_eq!(count("libopenblasp-r0-1a2b3c4d.so", &["libc.so.6"]), 0);
        assert_eq!(count("libopenblaso-r0-1a2b3c4d.so", &["libgomp.so.1"]), 0);
    }
}
