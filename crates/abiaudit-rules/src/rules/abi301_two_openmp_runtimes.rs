//! Two OpenMP runtimes come into one process.
//!
//! ## What it does
//! Looks at the OpenMP runtimes that the input's objects bring, or need from elsewhere, and tells them apart as the loader
//! does, by soname. libomp together with libiomp5 is an error if one import loads both, a warning if it takes two imports
//! or if one of them shows only as texts in a file. Two libgomp of different sonames are a warning, libgomp beside LLVM's
//! or Intel's an info. Runtimes that nothing loads, stubs, and what programs load for themselves are left alone.
//!
//! ## Why is this bad?
//! libomp and libiomp5 are the same code: the second to start finds the first and ends the process with `OMP: Error #15`.
//! Two libgomp each have their own pool of threads: together they use twice the processors, `omp_set_num_threads`
//! reaches one of them, and each has its own trouble after `fork`. libgomp beside the others is not known to fail.
//!
//! ## Example
//! A wheel whose modules are built with clang (libomp) and that vendors MKL with libiomp5.
//!
//! ## How to mend it
//! Build all parts with one compiler's OpenMP, or link all against the same library and vendor it once.
//!
//! ## References
//! LLVM OpenMP, kmp_runtime.cpp (`__kmp_register_library_startup`); threadpoolctl, multiple_openmp.md, #41; pytorch
//! #98836; scikit-learn #19272.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_detect::{Carriage, OpenMpFamily};

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::runtimes;

super::rule!("ABI301", "two-openmp-runtimes", Error, "abi301_two_openmp_runtimes.rs");

/// One OpenMP runtime of the input, as the loader tells them apart.
#[derive(Debug, Default)]
pub(super) struct Provider {
    /// Objects that bring it; if it comes from outside, those that need it.
    pub(super) objects: BTreeSet<usize>,
    /// It is not in the input.
    pub(super) outside: bool,
    /// Symbols or sonames say so, not texts alone.
    proved: bool,
}

/// The runtimes of an input by family and name.
pub(super) fn providers(audit: &Audit<'_>) -> BTreeMap<(OpenMpFamily, String), Provider> {
    let loaded = runtimes::loaded_by_others(audit);
    let mut providers: BTreeMap<(OpenMpFamily, String), Provider> = BTreeMap::new();
    for (object, entry) in runtimes::shared(audit) {
        for openmp in entry.carries.openmp.iter().filter(|openmp| openmp.family != OpenMpFamily::Stubs) {
            let name = match (openmp.carriage, &openmp.soname) {
                (Carriage::Library, _) if loaded.contains(&object) => runtimes::loader_name(entry),
                (Carriage::Exports | Carriage::Static, _) => runtimes::loader_name(entry),
                (Carriage::Needs, Some(soname))
                    if runtimes::need_from_outside(audit, object, soname).is_some() =>
                {
                    soname.clone()
                }
                _ => continue,
            };
            let provider = providers.entry((openmp.family, name)).or_default();
            provider.objects.insert(object);
            provider.outside |= openmp.carriage == Carriage::Needs;
            provider.proved |= openmp.carriage != Carriage::Static;
        }
    }
    providers
}

/// The first scope that has both, by its root.
pub(super) fn common_root(audit: &Audit<'_>, one: &Provider, other: &Provider) -> Option<usize> {
    let has = |scope: &[usize], provider: &Provider| scope.iter().any(|o| provider.objects.contains(o));
    let scope = runtimes::scopes(audit).find(|scope| has(scope, one) && has(scope, other))?;
    scope.first().copied()
}

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let providers: Vec<_> = providers(audit).into_iter().collect();
    for (position, ((family, name), one)) in providers.iter().enumerate() {
        for ((other_family, other_name), other) in providers.iter().skip(position + 1) {
            let both_gomp = *family == OpenMpFamily::Libgomp && *other_family == OpenMpFamily::Libgomp;
            // A libgomp of the system beside a vendored one is ABI302's.
            if name == other_name || (both_gomp && one.outside != other.outside) {
                continue;
            }
            let root = common_root(audit, one, other);
            let proved = one.proved && other.proved && root.is_some();
            let (severity, harm) = judge(*family, *other_family, proved);
            let when = match root {
                Some(root) => format!("{} loads both", audit.member_name(root)),
                None => "different modules load them".to_owned(),
            };
            let evidence = [(name, one), (other_name, other)].into_iter().filter_map(|(name, provider)| {
                let verb = if provider.outside { "needs it" } else { "brings it" };
                let object = provider.objects.first()?;
                Some(Evidence::member(audit.member_name(*object)).with_library(name).with_note(verb))
            });
            let (family, other_family) = (family.as_str(), other_family.as_str());
            let message = format!("has {family} ({name}) and {other_family} ({other_name}): {harm}; {when}");
            sink.whole(message)
                .severity(severity)
                .help("build all parts with one compiler's OpenMP and vendor its library once")
                .evidence(evidence);
        }
    }
}

fn judge(one: OpenMpFamily, other: OpenMpFamily, proved: bool) -> (Severity, &'static str) {
    use OpenMpFamily::{Libgomp, Libiomp5, Libomp};
    match (one, other) {
        (Libgomp, Libgomp) => (Severity::Warning, "two pools of threads that know nothing of each other"),
        (Libgomp, _) | (_, Libgomp) => {
            (Severity::Info, "two pools of threads; no failure of this pair is known")
        }
        (Libomp, Libiomp5) | (Libiomp5, Libomp) if proved => {
            (Severity::Error, "the second to start ends the process (OMP: Error #15)")
        }
        _ => (Severity::Warning, "in one process the second to start can end it (OMP: Error #15)"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    pub(crate) const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

    pub(crate) fn module(needed: &[&str]) -> ElfWriter {
        let writer = ElfWriter::new(Arch::X86_64).define("PyInit_m").rpath("$ORIGIN/../p.libs");
        needed.iter().fold(writer, ElfWriter::needed)
    }

    /// A library with as many functions of an interface as a runtime has.
    pub(crate) fn runtime(soname: &str, prefix: &str) -> ElfWriter {
        let writer = ElfWriter::new(Arch::X86_64).soname(soname);
        (0..100).fold(writer, |writer, number| writer.define(format!("{prefix}{number}")))
    }

    /// A module that needs these, each of which is in the wheel.
    pub(crate) fn wheel(runtimes: &[&str]) -> TestWheel {
        runtimes.iter().fold(TestWheel::new("p", "1", TAGS).elf("p/m.so", &module(runtimes)), with)
    }

    fn with(wheel: TestWheel, soname: &&str) -> TestWheel {
        let prefix = if soname.starts_with("libgomp") { "GOMP_" } else { "__kmpc_" };
        wheel.elf(&format!("p.libs/{soname}"), &runtime(soname, prefix))
    }

    fn severities(wheel: &TestWheel) -> Vec<Severity> {
        findings("ABI301", wheel).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn pairs_weigh_as_measured() {
        assert_eq!(severities(&wheel(&["libomp-1a2b3c4d.so", "libiomp5.so"])), [Severity::Error]);
        assert_eq!(
            severities(&wheel(&["libgomp-1a2b3c4d.so.1", "libgomp-5a6b7c8d.so.1"])),
            [Severity::Warning]
        );
        assert_eq!(severities(&wheel(&["libgomp-1a2b3c4d.so.1", "libiomp5.so"])), [Severity::Info]);
        assert!(severities(&wheel(&["libgomp-1a2b3c4d.so.1"])).is_empty());
    }

    #[test]
    fn what_comes_from_elsewhere_counts() {
        let wheel = with(TestWheel::new("p", "1", TAGS), &"libomp.so")
            .elf("p/m.so", &module(&["libomp.so", "libiomp5.so"]));
        let found = findings("ABI301", &wheel);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.ends_with("p/m.so loads both"), "{}", found[0].message);
    }

    #[test]
    fn two_imports_are_a_warning() {
        let wheel = ["libomp.so", "libiomp5.so"].iter().fold(TestWheel::new("p", "1", TAGS), with);
        let wheel = wheel.elf("p/m.so", &module(&["libomp.so"])).elf("p/n.so", &module(&["libiomp5.so"]));
        assert_eq!(severities(&wheel), [Severity::Warning]);
    }

    /// Copies of one soname are one runtime, whatever the files are called (torch 1.13.1).
    #[test]
    fn one_soname_is_one_runtime() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module(&["libgomp.so.1"]).rpath("$ORIGIN/one"))
            .elf("p/n.so", &module(&["libgomp.so.1"]).rpath("$ORIGIN/two"))
            .elf("p/one/libgomp.so.1", &runtime("libgomp.so.1", "GOMP_"))
            .elf("p/two/libgomp.so.1", &runtime("libgomp.so.1", "GOMP_"));
        assert!(severities(&wheel).is_empty());
    }

    /// Stubs start no threads, and a library that nobody loads does nothing.
    #[test]
    fn silent_about_stubs_and_alternatives() {
        let wheel = wheel(&["libiomp5.so"])
            .elf("p.libs/libiompstubs5.so", &runtime("libiompstubs5.so", "omp_"))
            .elf("p/m2.so", &module(&["libiompstubs5.so"]))
            .elf("p.libs/libomp.so", &runtime("libomp.so", "__kmpc_"));
        assert!(severities(&wheel).is_empty());
    }
}
