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

use abiaudit_detect::stem;
use abiaudit_loader::binding::ObjectId;
use abiaudit_process::Collision;

use super::abi201_exported_cxx_runtime::HIDE;
use crate::audit::Audit;
use crate::finding::{Evidence, Sink};
use crate::together::Meeting;

super::rule!("ABI208", "cxx-runtimes-collide", Error, "abi208_cxx_runtimes_collide.rs");

const LEAVE_OUT: &str = "leave the vendored libstdc++ out, and build on a split toolchain or against the oldest one that the tag promises";

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for meeting in &audit.beside.meetings {
        let Collision::Facets { victim, ids, numbering, shared, own } = &meeting.collision else { continue };
        let message = format!(
            "two libstdc++, {} and {}, number the same locale facets: streams of the one that is used second print \
             nothing or crash, {}",
            meeting.name(*ids),
            meeting.name(*numbering),
            meeting.when
        );
        let symbols = [(shared, *ids), (own, *numbering)]
            .map(|(id, by)| Evidence::symbol(id).with_note(format!("numbered by {}", meeting.name(by))));
        let vendored = [*ids, *numbering].into_iter().any(|copy| is_vendored(meeting, copy));
        let about = [
            (*ids, "its ids serve the process"),
            (*numbering, "numbers the rest"),
            (*victim, "its facets are mixed up"),
        ];
        sink.member(&meeting.member, message)
            .help(meeting.help(if vendored { LEAVE_OUT } else { HIDE }))
            .evidence(symbols)
            .evidence(meeting.evidence(&about));
    }
}

/// A libstdc++ of a distribution.
fn is_vendored(meeting: &Meeting, object: ObjectId) -> bool {
    let party = meeting.party(object).filter(|party| party.distribution.is_some());
    let file = party.and_then(|party| party.path.rsplit('/').next());
    file.is_some_and(|file| stem(file) == "libstdc++")
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::finding::Severity;
    use crate::testing::{Compiler, findings_together};

    const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

    fn wheel(name: &str, module: &[u8]) -> TestWheel {
        TestWheel::new(name, "1", TAGS).file(&format!("{name}/m.so"), module)
    }

    #[test]
    fn an_exported_copy_beside_the_systems() {
        let Some(compiler) = Compiler::new() else { return };
        let user = compiler.module(&[]);
        let pair = |flags: &[&str]| {
            [wheel("copy", &compiler.module(&[&["-static-libstdc++"], flags].concat())), wheel("user", &user)]
        };
        let found = findings_together("ABI208", &pair(&[]), false);
        let [(0, finding)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(finding.member.as_deref(), Some("copy/m.so"));
        assert_eq!(
            finding.message,
            "two libstdc++, copy/m.so and the system's libstdc++.so.6, number the same locale facets: streams of the \
             one that is used second print nothing or crash, in either order of copy 1 and user 1"
        );
        assert!(finding.help.as_deref().is_some_and(|help| help.contains("--exclude-libs")));
        assert!(finding.evidence.iter().any(|evidence| evidence.symbol.is_some()));
        // The first of the global scope serves all.
        assert!(findings_together("ABI208", &pair(&[]), true).is_empty());
        assert!(findings_together("ABI208", &pair(&["-Wl,--exclude-libs,ALL"]), false).is_empty());
        let script = compiler.version_script("{ global: PyInit_*; local: *; };");
        assert!(findings_together("ABI208", &pair(&[&script]), false).is_empty());
    }

    /// With everything global, `-Bsymbolic` makes the difference: only the order that has the copy second breaks.
    #[test]
    fn the_order_that_bites_is_named() {
        let Some(compiler) = Compiler::new() else { return };
        let symbolic = compiler.module(&["-static-libstdc++", "-Wl,-Bsymbolic"]);
        let pair = [wheel("copy", &symbolic), wheel("user", &compiler.module(&[]))];
        let found = findings_together("ABI208", &pair, true);
        let [(0, finding)] = &found[..] else { panic!("{found:?}") };
        assert!(finding.message.ends_with("when user 1 is imported before copy 1"), "{}", finding.message);
    }
}
