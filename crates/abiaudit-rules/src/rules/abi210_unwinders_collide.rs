//! Two stack unwinders meet in one process.
//!
//! ## What it does
//! Looks at a simulated process (`check` with `--with`, `--import` or `--trace`). An error: functions of libgcc_s are
//! served by another unwinder, because what pulled libgcc_s in has that one earlier in its scope. A warning: C++ calls go
//! between an object with an unwinder and a C++ runtime of its own (`-static-libgcc`) and another object.
//!
//! ## Why is this bad?
//! Unwinders keep contexts in layouts of their own. libgcc_s that calls LLVM's `_Unwind_GetIP` reads garbage: from then on
//! every exception in the process crashes, also in modules that have nothing to do with it. A private unwinder harms
//! nobody until an exception passes through an object that has another one: then the process ends in `_Unwind_SetGR`.
//!
//! ## Example
//! A module built with clang's libc++, which needs libunwind.so.1 before libgcc_s.so.1, imported first.
//!
//! ## How to mend it
//! Have libgcc_s come before libunwind among what the module needs, or build with libstdc++. Leave out `-static-libgcc`, or
//! let no exception leave a C interface.
//!
//! ## References
//! GCC, libgcc/unwind-dw2.c (`_Unwind_SetGR`, `init_dwarf_reg_size_table`); duckdb #7909.

use abiaudit_process::Collision;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::together::Meeting;

super::rule!("ABI210", "unwinders-collide", Error, "abi210_unwinders_collide.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for meeting in &audit.beside.meetings {
        interposed(meeting, sink);
        private(meeting, sink);
    }
}

fn interposed(meeting: &Meeting, sink: &mut Sink) {
    let Collision::UnwinderInterposed { unwinder, provider, symbols } = &meeting.collision else { return };
    let message = format!(
        "{} serves {} of {}, which crashes every exception in the process, {}",
        meeting.name(*provider),
        super::count(symbols.len(), "function"),
        meeting.name(*unwinder),
        meeting.when
    );
    let names = symbols.iter().take(5).map(Evidence::symbol);
    sink.member(&meeting.member, message)
        .help(meeting.help(
            "have libgcc_s come before the other unwinder among what is needed, or build with libstdc++",
        ))
        .evidence(names)
        .evidence(meeting.evidence(&[(*provider, "serves"), (*unwinder, "is served")]));
}

fn private(meeting: &Meeting, sink: &mut Sink) {
    let Collision::PrivateUnwinder { object, other, symbol } = &meeting.collision else { return };
    let message = format!(
        "{} has an unwinder of its own, and C++ calls go between it and {}: an exception that crosses ends the process, {}",
        meeting.name(*object),
        meeting.name(*other),
        meeting.when
    );
    sink.member(&meeting.member, message)
        .severity(Severity::Warning)
        .help(
            meeting.help(
                "link libgcc_s dynamically (no -static-libgcc), or let no exception leave a C interface",
            ),
        )
        .evidence([Evidence::symbol(symbol)])
        .evidence(meeting.evidence(&[(*object, "has its own unwinder"), (*other, "calls it or is called")]));
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter};

    use crate::finding::Severity;
    use crate::testing::{calling, findings_together, wheel_named};

    #[test]
    fn what_pulls_libgcc_s_in_has_another_unwinder_first() {
        let llvm = ["_Unwind_SetGR", "_Unwind_SetIP", "_Unwind_Resume"];
        let llvm = llvm.iter().fold(ElfWriter::new(Arch::X86_64).soname("libunwind.so.1"), ElfWriter::define);
        let with = |needed: &[&str]| {
            wheel_named("llvm", &calling(needed, &["_Unwind_Resume"])).elf("llvm/libunwind.so.1", &llvm)
        };
        let user = wheel_named("user", &calling(&["libstdc++.so.6", "libgcc_s.so.1"], &["__cxa_throw"]));
        let found =
            findings_together("ABI210", &[with(&["libunwind.so.1", "libgcc_s.so.1"]), user.clone()], false);
        let [(0, finding)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(
            finding.message,
            "llvm/libunwind.so.1 serves 2 functions of the system's libgcc_s.so.1, which crashes every exception in the \
             process, when llvm 1 is imported"
        );
        let other = [with(&["libgcc_s.so.1", "libunwind.so.1"]), user];
        assert!(findings_together("ABI210", &other, false).is_empty());
    }
}
