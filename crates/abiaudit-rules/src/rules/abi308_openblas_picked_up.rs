//! An OpenBLAS is in the wheel that the baseline has not.
//!
//! ## What it does
//! Compares with the wheel that `--baseline` names, if it is one of the same distribution: reports objects that are, hold
//! or need an OpenBLAS when no object of the baseline does. Without `--baseline` it says nothing.
//!
//! ## Why is this bad?
//! Build systems look for a BLAS and take what they find. On a machine that happens to have OpenBLAS, a project that was
//! built without one, or with another, silently changes its results in the last digits, its speed, its threads (OpenBLAS
//! starts a pool as large as the machine) and its size.
//!
//! ## Example
//! A rebuild of a wheel that used its own kernels, on a machine with `libopenblas-dev`.
//!
//! ## How to mend it
//! Switch the search off (`-DWITH_BLAS=OFF`, `USE_BLAS=0` and the like), or build where none is installed. If it is wanted,
//! ignore this rule with the reason.
//!
//! ## References
//! CMake, FindBLAS (`BLA_VENDOR`, "All" by default); pytorch, cmake/Dependencies.cmake (`BLAS`).

use abiaudit_detect::{Blas, BlasFamily, Carriage};

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};
use crate::runtimes;

super::rule!("ABI308", "openblas-picked-up", Warning, "abi308_openblas_picked_up.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(baseline) = audit.beside.baseline.as_ref().filter(|baseline| !baseline.has_openblas) else {
        return;
    };
    let own = audit.distribution();
    if baseline.distribution.as_ref().is_some_and(|other| !own.is_empty() && *other != own) {
        return;
    }
    for (_, entry) in runtimes::shared(audit) {
        let found = entry.carries.blas.iter().find(|blas| blas.family == BlasFamily::OpenBlas);
        let Some(blas) = found else { continue };
        let message = format!("{}, and nothing in {} does", how(blas), baseline.title);
        let evidence = blas.evidence.iter().take(3).map(|evidence| Evidence::note(evidence.to_string()));
        sink.member(&entry.member.name, message)
            .help("switch the build's search for a BLAS off, or build where none is installed")
            .evidence(evidence);
    }
}

fn how(blas: &Blas) -> String {
    let soname = blas.soname.as_deref().unwrap_or("OpenBLAS");
    match blas.carriage {
        Carriage::Library => format!("is an OpenBLAS ({soname})"),
        Carriage::Exports | Carriage::Static => "holds an OpenBLAS".to_owned(),
        Carriage::Needs | Carriage::Refers => format!("needs an OpenBLAS ({soname})"),
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::audit::Audit;
    use crate::baseline::Baseline;
    use crate::settings::Settings;

    fn wheel(name: &str, needed: &str) -> TestWheel {
        let module = ElfWriter::new(Arch::X86_64).define("PyInit_m").needed(needed);
        TestWheel::new(name, "1", "cp312-cp312-manylinux_2_28_x86_64").elf("p/m.so", &module)
    }

    fn messages(wheel: &TestWheel, baseline: Option<&TestWheel>) -> Vec<String> {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
        let scan = |wheel: &TestWheel, folder: &tempfile::TempDir| {
            let path = wheel.write(folder.path());
            abiaudit_scan::scan(&path, &abiaudit_scan::Options::default()).expect("a wheel").remove(0)
        };
        let subject = scan(wheel, &folders[0]);
        let settings = Settings { select: vec!["ABI308".to_owned()], ..Settings::default() };
        let mut audit = Audit::new(&subject, &settings);
        audit.beside.baseline = baseline.map(|baseline| Baseline::of(&scan(baseline, &folders[1])));
        crate::run(&audit).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn ours_needs_one_and_the_baseline_has_none() {
        let ours = wheel("p", "libopenblas.so.0");
        let without = wheel("p", "libm.so.6");
        assert_eq!(
            messages(&ours, Some(&without)),
            ["needs an OpenBLAS (libopenblas.so.0), and nothing in p 1 does"]
        );
    }

    #[test]
    fn silent_without_a_baseline_and_where_it_has_one_too() {
        let ours = wheel("p", "libopenblas.so.0");
        assert!(messages(&ours, None).is_empty());
        assert!(messages(&ours, Some(&wheel("p", "libopenblas-1a2b3c4d.so.0"))).is_empty());
        assert!(messages(&wheel("p", "libm.so.6"), Some(&wheel("p", "libm.so.6"))).is_empty());
        assert!(messages(&ours, Some(&wheel("other", "libm.so.6"))).is_empty(), "another distribution");
    }
}
