//! State of the C++ library exists twice in one process.
//!
//! ## What it does
//! Looks at a simulated process (`check` with `--with`, `--import` or `--trace`) and tells of `std::cout`, the classic locale
//! or the generic error category when different objects get them from different copies of libstdc++.
//!
//! ## Why is this bad?
//! By itself it is not: each copy works. But what one sets the other does not see: a redirected or formatted `std::cout`, a
//! global locale; and error codes of the two do not compare equal, since categories are compared by address.
//!
//! ## Example
//! A module with an exported static libstdc++ beside one that uses the system's.
//!
//! ## How to mend it
//! Link libstdc++ dynamically, so that there is one.
//!
//! ## References
//! ISO C++, [syserr.errcat.overview] (identity of categories).

use abiaudit_process::Collision;

use crate::audit::Audit;
use crate::demangle;
use crate::finding::{Evidence, Sink};

super::rule!("ABI211", "cxx-state-duplicated", Info, "abi211_cxx_state_duplicated.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for meeting in &audit.beside.meetings {
        let Collision::StateDuplicated { symbol, providers } = &meeting.collision else { continue };
        let names: Vec<String> = providers.iter().map(|provider| meeting.name(*provider)).collect();
        let message = format!(
            "{} exists {} times, {}: in {}",
            demangle(symbol),
            names.len(),
            meeting.when,
            names.join(", ")
        );
        let about: Vec<_> = providers.iter().map(|provider| (*provider, "has one")).collect();
        sink.member(&meeting.member, message)
            .help(meeting.help("link libstdc++ dynamically, so that there is one"))
            .evidence([Evidence::symbol(symbol)])
            .evidence(meeting.evidence(&about));
    }
}
