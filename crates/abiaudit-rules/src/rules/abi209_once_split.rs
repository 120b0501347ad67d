//! `std::call_once` sets the variable of one libstdc++ and runs the code of another.
//!
//! ## What it does
//! Looks at a simulated process (`check` with `--with`, `--import` or `--trace`) and reports objects whose reference to
//! `__once_proxy` is served by a copy of libstdc++ that reads another `std::__once_call` than the one that the object
//! sets.
//!
//! ## Why is this bad?
//! The proxy calls what the variable says, and nobody has set the one that it reads: the process jumps to address 0.
//! `std::async`, `std::future` and parts of libstdc++ use `call_once` too. It takes a copy that exports the proxy and
//! hides the variable (ABI203), and a libstdc++ that comes first in the global scope: by `RTLD_GLOBAL`, which torch uses,
//! by `LD_PRELOAD`, or in the program.
//!
//! ## Example
//! A backtrace that ends in `__pthread_once_slow (init_routine=<__once_proxy>)` and `0x0000000000000000 in ?? ()`.
//!
//! ## How to mend it
//! Hide both halves, with `-Wl,--exclude-libs,ALL` or a version script `{ global: PyInit_*; local: *; };`, or link
//! libstdc++ dynamically.
//!
//! ## References
//! libstdc++, src/c++11/mutex.cc (`__once_proxy`, `__once_call`); glibc, elf/dl-lookup.c.

use abiaudit_process::Collision;

use super::abi201_exported_cxx_runtime::HIDE;
use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI209", "once-split", Error, "abi209_once_split.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for meeting in &audit.beside.meetings {
        let Collision::Once { user, proxy, variable } = &meeting.collision else { continue };
        let message = format!(
            "std::call_once in {} sets the variable of {} and runs the code of {}, which calls address 0, {}",
            meeting.name(*user),
            meeting.name(*variable),
            meeting.name(*proxy),
            meeting.when
        );
        let symbols = [("__once_proxy", *proxy), ("_ZSt11__once_call", *variable)].map(|(symbol, by)| {
            Evidence::symbol(symbol).with_note(format!("served by {}", meeting.name(by)))
        });
        let others = meeting.more.iter().filter_map(|collision| match collision {
            Collision::Once { user, .. } => Some((*user, "calls std::call_once too")),
            _ => None,
        });
        let about: Vec<_> = [(*user, "calls std::call_once")].into_iter().chain(others).collect();
        sink.member(&meeting.member, message)
            .help(meeting.help(HIDE))
            .evidence(symbols)
            .evidence(meeting.evidence(&about));
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::finding::Severity;
    use crate::testing::{Compiler, findings_together};

    const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

    /// What many projects write: hides C++ names, and leaves the proxy, which has C linkage.
    #[test]
    fn a_half_hidden_copy_breaks_in_the_global_scope_alone() {
        let Some(compiler) = Compiler::new() else { return };
        let script = compiler.version_script(
            "{ local: extern \"C++\" { std::*; \"typeinfo for std::*\"; \"vtable for std::*\"; }; };",
        );
        let wheel = |name: &str, module: Vec<u8>| {
            TestWheel::new(name, "1", TAGS).file(&format!("{name}/m.so"), module)
        };
        let pair = [
            wheel("half", compiler.module(&["-static-libstdc++", &script])),
            wheel("user", compiler.module(&[])),
        ];
        assert!(findings_together("ABI209", &pair, false).is_empty());
        let found = findings_together("ABI209", &pair, true);
        assert!(!found.is_empty());
        for (subject, finding) in &found {
            assert_eq!((*subject, finding.severity), (0, Severity::Error));
            assert!(finding.message.contains("calls address 0"), "{}", finding.message);
        }
    }
}
