//! Two libraries with plain BLAS names come into one scope.
//!
//! ## What it does
//! Reports pairs of objects which one import loads and which both export `dgemm_`, `dgesv_` or `cblas_dgemm` under just
//! that name; and, in a simulated process (`check` with `--with`, `--import` or `--trace`), calls of one distribution's that
//! another's library serves. Builds that rename the functions (`scipy_dgemm_`, `dgemm_64_`) cannot collide, `xerbla_` is meant to be
//! replaced, and the parts of MKL are made to export the same.
//!
//! ## Why is this bad?
//! All callers, inside the second library too, get the functions of the one that is loaded first. If the two differ in
//! the width of integers, in how they return complex numbers or in what they need to have set up, results are wrong or
//! the process crashes.
//!
//! ## Example
//! A module that needs a vendored `libopenblas-1a2b3c4d.so` and a library that was linked with another OpenBLAS and exports
//! it.
//!
//! ## How to mend it
//! Keep one of them. Or hide the names of the one that is linked in (`-Wl,--exclude-libs,ALL`, a version script with
//! `local: *`), or build OpenBLAS with `SYMBOLPREFIX`.
//!
//! ## References
//! OpenBLAS, Makefile.rule (`SYMBOLPREFIX`, `SYMBOLSUFFIX`); threadpoolctl.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_detect::BlasFamily;
use abiaudit_process::Collision;

use crate::audit::{Audit, AuditObject};
use crate::finding::{Evidence, Sink};
use crate::runtimes;
use crate::together::Meeting;

super::rule!("ABI305", "unprefixed-blas", Warning, "abi305_unprefixed_blas.rs");

const HELP: &str = "keep one BLAS, or hide the names of the one that is linked in (-Wl,--exclude-libs,ALL)";

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let exporters: BTreeMap<usize, Exporter<'_>> =
        runtimes::shared(audit).filter_map(|(object, entry)| Some((object, exporter(entry)?))).collect();
    let candidates: BTreeSet<usize> = exporters.keys().copied().collect();
    for pair in runtimes::pairs_in_scopes(audit, &candidates).into_values() {
        let (Some(first), Some(second)) = (exporters.get(&pair.first), exporters.get(&pair.second)) else {
            continue;
        };
        let common: Vec<&str> = first.symbols.intersection(&second.symbols).copied().collect();
        let Some(symbol) = common.first() else { continue };
        if first.family == BlasFamily::Mkl && second.family == BlasFamily::Mkl {
            continue;
        }
        let message = format!(
            "exports {symbol} ({}), and so does {} ({}): when {} is loaded, the latter serves all callers",
            second.family.as_str(),
            audit.member_name(pair.first),
            first.family.as_str(),
            audit.member_name(pair.root),
        );
        sink.member(audit.member_name(pair.second), message)
            .help(HELP)
            .evidence(common.iter().map(|symbol| Evidence::symbol(*symbol)));
    }
    for meeting in audit.beside.meetings.iter().filter(|meeting| meeting.distributions() > 1) {
        across(meeting, sink);
    }
}

/// In a simulated process another distribution's library serves.
fn across(meeting: &Meeting, sink: &mut Sink) {
    let Collision::Blas { user, meant, provider, symbols } = &meeting.collision else { return };
    let Some(symbol) = symbols.first() else { return };
    let message = format!(
        "{} calls {symbol} and gets that of {} instead of that of {}, {}",
        meeting.name(*user),
        meeting.name(*provider),
        meeting.name(*meant),
        meeting.when
    );
    sink.member(&meeting.member, message)
        .help(meeting.help(HELP))
        .evidence(symbols.iter().map(Evidence::symbol))
        .evidence(meeting.evidence(&[(*provider, "serves"), (*meant, "was meant"), (*user, "calls")]));
}

/// What an object exports under plain names.
struct Exporter<'a> {
    family: BlasFamily,
    symbols: BTreeSet<&'a str>,
}

fn exporter<'e>(entry: &'e AuditObject<'_>) -> Option<Exporter<'e>> {
    entry.carries.blas.iter().filter(|blas| runtimes::is_carried(blas.carriage)).find_map(|blas| {
        let plain = blas.interfaces.iter().filter(|interface| interface.is_plain());
        let symbols = plain.flat_map(|interface| &interface.symbols).map(String::as_str);
        let symbols: BTreeSet<&str> = symbols.filter(|symbol| !symbol.contains("xerbla")).collect();
        (!symbols.is_empty()).then_some(Exporter { family: blas.family, symbols })
    })
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

    fn module(needed: &[&str]) -> ElfWriter {
        let module = ElfWriter::new(Arch::X86_64).define("PyInit_m").rpath("$ORIGIN");
        needed.iter().fold(module, ElfWriter::needed)
    }

    fn library(soname: &str, symbols: &[&str]) -> ElfWriter {
        let library = ElfWriter::new(Arch::X86_64).soname(soname);
        symbols.iter().fold(library, ElfWriter::define)
    }

    /// One module that loads two libraries, which export these.
    fn messages(one: &[&str], other: &[&str]) -> Vec<String> {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module(&["libone.so", "libother.so"]))
            .elf("p/libone.so", &library("libone.so", one))
            .elf("p/libother.so", &library("libother.so", other));
        findings("ABI305", &wheel).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn two_exporters_in_one_scope() {
        let found = messages(&["dgemm_", "cblas_dgemm"], &["dgemm_"]);
        assert_eq!(
            found,
            [
                "exports dgemm_ (BLAS), and so does p/libone.so (BLAS): when p/m.so is loaded, the latter serves all callers"
            ]
        );
    }

    #[test]
    fn silent_about_other_spellings_and_other_routines() {
        assert!(messages(&["dgemm_"], &["scipy_dgemm_"]).is_empty());
        assert!(messages(&["dgemm_"], &["dgemm_64_"]).is_empty());
        // netlib: BLAS and LAPACK are two libraries, and both have xerbla_.
        assert!(messages(&["dgemm_", "xerbla_"], &["dgesv_", "xerbla_"]).is_empty());
    }

    #[test]
    fn silent_where_they_do_not_meet() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module(&["libone.so"]))
            .elf("p/n.so", &module(&["libother.so"]))
            .elf("p/libone.so", &library("libone.so", &["dgemm_"]))
            .elf("p/libother.so", &library("libother.so", &["dgemm_"]));
        assert!(findings("ABI305", &wheel).is_empty());
    }
}
