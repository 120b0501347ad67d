//! Two copies of libstdc++ in one process number the same locale facets.
//!
//! ## What it does
//! Looks at a simulated process (`check` with `--with`, `--import` or `--trace`) and reports objects whose references to
//! the ids of locale facets are served by two copies of libstdc++, each with its own counter: a copy that a wheel exports
//! or carries under another name, and another one or the system's. It is computed from the bindings, in the orders that
//! were simulated; copies that are in the process and do not touch each other are not reported.
//!
//! ## Why is this bad?
//! An id gets its number on first use. Ids of class templates are `STB_GNU_UNIQUE`: one for the process; the counter and
//! the ids of `ctype` and `codecvt` exist once for each copy. The copy that comes second finds some ids numbered and
//! gives the same numbers to the others. Streams then find the wrong facet, or none: output stops or is empty,
//! `std::regex` and `imbue` throw `std::bad_cast`, and code of GCC 13 and later crashes in
//! `std::codecvt<...>::do_unshift` below `std::ostream::_M_insert`.
//!
//! ## Example
//! `g++ -shared -static-libstdc++ module.cpp` in one wheel, imported after numpy.
//!
//! ## How to mend it
//! Link libstdc++ dynamically. Where it must be static, hide it: `-Wl,--exclude-libs,ALL`, or a version script
//! `{ global: PyInit_*; local: *; };`. A vendored libstdc++ is left out; build on a split toolchain instead.
//!
//! ## References
//! glibc, elf/dl-lookup.c (`do_lookup_unique`); libstdc++, src/c++98/locale.cc (`locale::id::_M_id`); duckdb #7921;
//! crosstool-ng #2478.

use abiaudit_process::Collision;

use super::abi201_exported_cxx_runtime::HIDE;
use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI208", "cxx-runtimes-collide", Error, "abi208_cxx_runtimes_collide.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for meeting in &audit.beside.meetings {
        let Collision::Facets { victim, ids, numbering, shared, own } = &meeting.collision else { continue };
        let message = format!(
            "two libstdc++ number the locale facets of {}, {} and {}: streams print nothing or crash, {}",
            meeting.name(*victim),
            meeting.name(*ids),
            meeting.name(*numbering),
            meeting.when
        );
        let symbols = [(shared, *ids), (own, *numbering)]
            .map(|(id, by)| Evidence::symbol(id).with_note(format!("numbered by {}", meeting.name(by))));
        sink.member(&meeting.member, message).help(meeting.help(HIDE)).evidence(symbols).evidence(
            meeting.evidence(&[
                (*ids, "its ids serve the process"),
                (*numbering, "numbers the rest"),
                (*victim, "its facets are mixed up"),
            ]),
        );
    }
}
