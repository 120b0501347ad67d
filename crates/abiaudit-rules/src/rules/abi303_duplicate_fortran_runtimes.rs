//! Two copies of a Fortran runtime are in the wheel.
//!
//! ## What it does
//! Tells of two libgfortran, or two libquadmath, of different sonames that the input's objects load, or that a simulated
//! process (`check` with `--with`, `--import` or `--trace`) loads from several distributions.
//!
//! ## Why is this bad?
//! Mostly it is only size. Where both come into one process, functions of the second are served by the first, and each
//! has its own units: what one wrote and did not flush the other does not know. With different major versions the
//! layouts differ too.
//!
//! ## Example
//! scipy 1.18.1 has its own libgfortran and the one that came with the scipy-openblas wheel, which was vendored a second
//! time (`libgfortran-040039e1-0352e75f.so.5.0.0`).
//!
//! ## How to mend it
//! Have both parts use one compiler's runtime, and vendor it once.
//!
//! ## References
//! GCC, libgfortran/io/unit.c (the table of units is a variable of the library).

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_detect::{Carriage, FortranFamily};
use abiaudit_process::Collision;

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};
use crate::runtimes;
use crate::together::Meeting;

super::rule!("ABI303", "duplicate-fortran-runtimes", Info, "abi303_duplicate_fortran_runtimes.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let loaded = runtimes::loaded_by_others(audit);
    let mut copies: BTreeMap<FortranFamily, BTreeMap<String, usize>> = BTreeMap::new();
    for (object, entry) in runtimes::shared(audit).filter(|(object, _)| loaded.contains(object)) {
        for fortran in entry.carries.fortran.iter().filter(|f| f.carriage == Carriage::Library) {
            let names = copies.entry(fortran.family).or_default();
            names.entry(runtimes::loader_name(entry)).or_insert(object);
        }
    }
    for (family, names) in copies.iter().filter(|(_, names)| names.len() > 1) {
        let objects: BTreeSet<usize> = names.values().copied().collect();
        let pairs = runtimes::pairs_in_scopes(audit, &objects);
        let when = pairs.values().next().map_or_else(
            || "different modules load them".to_owned(),
            |pair| {
                format!(
                    "{} loads both, and {} serves",
                    audit.member_name(pair.root),
                    audit.member_name(pair.first)
                )
            },
        );
        let list: Vec<&str> = names.keys().map(String::as_str).collect();
        let message =
            format!("has {} copies of {}: {}; {when}", names.len(), family.as_str(), list.join(", "));
        let evidence = names
            .iter()
            .map(|(name, object)| Evidence::member(audit.member_name(*object)).with_library(name));
        sink.whole(message)
            .help("have all parts use one compiler's runtime, and vendor it once")
            .evidence(evidence);
    }
    for meeting in audit.beside.meetings.iter().filter(|meeting| meeting.distributions() > 1) {
        across(meeting, sink);
    }
}

/// Copies of several distributions in a simulated process.
fn across(meeting: &Meeting, sink: &mut Sink) {
    let Collision::DuplicateRuntime { family, objects } = &meeting.collision else { return };
    let names: Vec<String> = objects.iter().map(|object| meeting.name(*object)).collect();
    let message =
        format!("{} copies of {family} are loaded, {}: {}", names.len(), meeting.when, names.join(", "));
    let about: Vec<_> = objects.iter().map(|object| (*object, "a copy")).collect();
    sink.member(&meeting.member, message)
        .help("nothing is broken; each copy has units of its own")
        .evidence(meeting.evidence(&about));
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

    /// A module that needs these, and has them beside it.
    fn wheel(libraries: &[&str]) -> TestWheel {
        let module = ElfWriter::new(Arch::X86_64).define("PyInit_m").rpath("$ORIGIN");
        let module = libraries.iter().fold(module, ElfWriter::needed);
        libraries.iter().fold(TestWheel::new("p", "1", TAGS).elf("p/m.so", &module), |wheel, name| {
            wheel.elf(&format!("p/{name}"), &ElfWriter::new(Arch::X86_64).soname(name))
        })
    }

    #[test]
    fn two_sonames_of_one_family() {
        let found =
            findings("ABI303", &wheel(&["libgfortran-1a2b3c4d.so.5", "libgfortran-040039e1-0352e75f.so.5"]));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("p/m.so loads both"), "{}", found[0].message);
    }

    #[test]
    fn silent_about_one_of_each_and_about_what_nobody_loads() {
        let one = wheel(&["libgfortran-1a2b3c4d.so.5", "libquadmath-1a2b3c4d.so.0"]);
        let one = one.elf("p/libgfortran.so.5", &ElfWriter::new(Arch::X86_64).soname("libgfortran.so.5"));
        assert!(findings("ABI303", &one).is_empty());
    }
}
