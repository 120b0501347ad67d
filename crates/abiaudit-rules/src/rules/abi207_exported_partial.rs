//! Newer parts of libstdc++ are linked in and exported.
//!
//! ## What it does
//! Tells of shared objects that need libstdc++ and export strong definitions of functions which libstdc++ has: what
//! split toolchains (Red Hat's, those of the manylinux images) link in because the oldest promised system lacks it. A warning
//! where a simulated process (`check` with `--with`, `--import` or `--trace`) opens such an object with `RTLD_GLOBAL`.
//!
//! ## Why is this bad?
//! Mostly it is not. Other objects can bind to them, this object can bind to those of another, and libstdc++ itself to
//! either: the functions of one release run on the objects of another. Hidden, they could not. An object that is loaded
//! with `RTLD_GLOBAL` offers them to the whole process.
//!
//! ## Example
//! torch's `libtorch_cpu.so` exports 82 functions of `std::filesystem`; on a newer system libstdc++.so.6 serves them.
//!
//! ## How to mend it
//! Add `-Wl,--exclude-libs,libstdc++_nonshared.a`, or a version script with `local: *`.
//!
//! ## References
//! Red Hat's developer toolset (`libstdc++_nonshared.a`); pytorch #133437.

use abiaudit_detect::{CxxClass, Exposure};
use abiaudit_process::Collision;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::runtimes;
use crate::together::Meeting;

super::rule!("ABI207", "exported-partial", Info, "abi207_exported_partial.rs");

const HIDE_PARTIAL: &str =
    "add -Wl,--exclude-libs,libstdc++_nonshared.a, or a version script with `local: *`";

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in runtimes::shared(audit) {
        let cxx = &entry.carries.cxx;
        if cxx.class != CxxClass::Partial || cxx.exposure == Exposure::Hidden {
            continue;
        }
        let newer: Vec<_> = cxx.exported.iter().filter(|definition| !definition.base).collect();
        let Some(first) = newer.first() else { continue };
        let message = format!(
            "exports {} of libstdc++ that a split toolchain linked in, such as {}: objects of other releases can bind to them",
            super::count(newer.len(), "definition"),
            crate::demangle(&first.name)
        );
        let evidence = newer.iter().take(5).map(|d| Evidence::symbol(&d.name).with_version(d.node));
        sink.member(&entry.member.name, message).help(HIDE_PARTIAL).evidence(evidence);
    }
    for meeting in &audit.beside.meetings {
        global(meeting, sink);
    }
}

/// In a simulated process they come into the global scope, where whatever is loaded later finds them first.
fn global(meeting: &Meeting, sink: &mut Sink) {
    let Collision::PartialInGlobalScope { object, symbols } = &meeting.collision else { return };
    let message = format!(
        "{} is opened with RTLD_GLOBAL and exports {} of libstdc++, which serve all that is loaded later, {}",
        meeting.name(*object),
        super::count(symbols.len(), "definition"),
        meeting.when
    );
    sink.member(&meeting.member, message)
        .severity(Severity::Warning)
        .help(meeting.help(HIDE_PARTIAL))
        .evidence(symbols.iter().take(5).map(Evidence::symbol))
        .evidence(meeting.evidence(&[]));
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, SymbolSpec, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";
    const NEW: &str = "_ZSt28__throw_bad_array_new_lengthv";

    fn module() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libstdc++.so.6").undefined_versioned(
            "__cxa_throw",
            "libstdc++.so.6",
            "CXXABI_1.3",
        )
    }

    fn severities(module: &ElfWriter) -> Vec<Severity> {
        let wheel = TestWheel::new("p", "1", TAGS).elf("p/m.so", module);
        findings("ABI2", &wheel).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn an_exported_part_is_worth_an_info() {
        assert_eq!(severities(&module().define(NEW)), [Severity::Info]);
    }

    /// Traps (a), (b) and (d): weak definitions, operators of an allocator, look-alikes of old nodes.
    #[test]
    fn silent_about_look_alikes() {
        assert!(severities(&module()).is_empty());
        let weak = SymbolSpec { info: 0x22, ..SymbolSpec::function(NEW) };
        assert!(severities(&module().symbol(weak)).is_empty());
        let allocator = ["_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"].iter().fold(module(), ElfWriter::define);
        assert!(severities(&allocator).is_empty());
        assert!(severities(&module().define("_ZNSt14numeric_limitsIhE8is_exactE")).is_empty());
    }
}
