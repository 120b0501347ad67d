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
