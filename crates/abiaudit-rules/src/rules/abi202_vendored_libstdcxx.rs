//! A libstdc++ is in the wheel.
//!
//! ## What it does
//! Reports shared libraries of the input that are libstdc++ by their soname. With glibc a renamed one
//! (`libstdc++-1a2b3c4d.so.6`) that other objects of the input load is an error; one that keeps its name or that nobody
//! loads is a warning. With musl it is an info: no platform tag promises a libstdc++ there, so wheels must bring one.
//! Libraries that only programs of the wheel load are left alone.
//!
//! ## Why is this bad?
//! Under another name the loader takes it for another library and loads both it and the system's. Both export the ids
//! of locale facets as `STB_GNU_UNIQUE`, and these break as with a static copy that is exported (ABI201). Under its own
//! name only one is loaded, whichever comes first: if that is the older, the other's users miss symbols.
//!
//! ## Example
//! `p.libs/libstdc++-1a2b3c4d.so.6` in a `manylinux_2_28` wheel: a repair tool was told that libstdc++ is not part of the
//! system.
//!
//! ## How to mend it
//! Leave it out: every manylinux system has libstdc++.so.6. If a newer one was built against, build on a split toolchain
//! (the manylinux images), or link libstdc++ statically and hide it.
//!
//! ## References
//! PEP 600; auditwheel's policies (libstdc++.so.6 is on every manylinux list and on no musllinux list); glibc,
//! elf/dl-lookup.c.

use abiaudit_detect::CxxClass;
use abiaudit_policy::Libc;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::runtimes;

super::rule!("ABI202", "vendored-libstdcxx", Error, "abi202_vendored_libstdcxx.rs");

/// What manylinux systems call it (PEP 513).
const SYSTEM: &str = "libstdc++.so.6";

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let loaded = runtimes::loaded_by_others(audit);
    for (object, entry) in runtimes::shared(audit).filter(|(_, o)| o.carries.cxx.class == CxxClass::Vendored)
    {
        let soname = runtimes::loader_name(entry);
        let is_used = audit.resolution.users_of(object).next().is_some();
        if is_used && !loaded.contains(&object) {
            continue;
        }
        let (severity, harm) = match runtimes::libc_of(audit, entry) {
            Libc::Musl => {
                (Severity::Info, "every wheel with one adds another copy of its state to the process")
            }
            Libc::Glibc if soname == SYSTEM => {
                (Severity::Warning, "this or the system's serves the process, whichever is loaded first")
            }
            Libc::Glibc if !is_used => {
                (Severity::Warning, "nothing in the wheel loads it; whatever does gets two")
            }
            Libc::Glibc => {
                (Severity::Error, "it and the system's are both loaded, and streams and locales break")
            }
        };
        let users = audit.resolution.users_of(object).take(3);
        let users = users.map(|need| Evidence::member(audit.member_name(need.from)).with_note("needs it"));
        let ids = entry.carries.cxx.unique_facet_ids.iter().take(2);
        let ids = ids.map(|id| Evidence::symbol(id).with_note("one for the process, whoever is loaded"));
        let finding = sink.member(&entry.member.name, format!("is a libstdc++ ({soname}): {harm}"));
        finding.severity(severity).evidence(users.chain(ids));
        if severity > Severity::Info {
            finding.help("leave it out, and build on a split toolchain or against the oldest libstdc++ that the tag promises");
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::{Compiler, findings};

    fn module(needs: &str) -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m").needed(needs).rpath("$ORIGIN/../p.libs")
    }

    fn library(soname: &str) -> ElfWriter {
        ElfWriter::new(Arch::X86_64).soname(soname)
    }

    fn severities(tags: &str, soname: &str, needs: &str) -> Vec<Severity> {
        let wheel = TestWheel::new("p", "1", tags)
            .elf("p/m.so", &module(needs))
            .elf(&format!("p.libs/{soname}"), &library(soname));
        findings("ABI202", &wheel).iter().map(|finding| finding.severity).collect()
    }

    const GLIBC: &str = "cp312-cp312-manylinux_2_28_x86_64";
    const MUSL: &str = "cp312-cp312-musllinux_1_2_x86_64";
    const RENAMED: &str = "libstdc++-1a2b3c4d.so.6";
    const OWN: &str = "libstdc++.so.6";

    #[test]
    fn the_name_and_the_c_library_decide() {
        assert_eq!(severities(GLIBC, RENAMED, RENAMED), [Severity::Error]);
        assert_eq!(severities(GLIBC, RENAMED, OWN), [Severity::Warning]);
        assert_eq!(severities(GLIBC, OWN, OWN), [Severity::Warning]);
        assert_eq!(severities(MUSL, RENAMED, RENAMED), [Severity::Info]);
    }

    #[test]
    fn a_real_one_shows_its_facet_ids() {
        let Some(compiler) = Compiler::new() else { return };
        let renamed = format!("-Wl,-soname,{RENAMED}");
        let library = compiler.module(&["-static-libstdc++", &renamed]);
        let wheel = TestWheel::new("p", "1", GLIBC)
            .elf("p/m.so", &module(RENAMED))
            .file(&format!("p.libs/{RENAMED}"), library);
        let all = findings("ABI202", &wheel);
        assert_eq!(all.len(), 1);
        assert!(all[0].evidence.iter().any(|e| e.symbol.as_ref().is_some_and(|s| s.ends_with("2idE"))));
        assert!(findings("ABI201", &wheel).is_empty(), "one fact, one finding");
    }

    /// A program has a process of its own (nodejs for musl and others).
    #[test]
    fn silent_about_what_only_a_program_loads() {
        let program = ElfWriter::new(Arch::X86_64)
            .interpreter("/lib64/ld-linux-x86-64.so.2")
            .needed(RENAMED)
            .rpath("$ORIGIN/../../p.libs");
        let wheel = TestWheel::new("p", "1", GLIBC)
            .elf("p/bin/tool", &program)
            .elf(&format!("p.libs/{RENAMED}"), &library(RENAMED));
        assert!(findings("ABI202", &wheel).is_empty());
    }
}
