//! A library is in the wheel, but the loader will not find it.
//!
//! ## What it does
//! Follows the loader's own rules (`DT_RPATH` of the whole chain of loaders, `DT_RUNPATH` only of the object itself)
//! for each NEEDED library, and reports one that has a file in the wheel and no path that leads there, where no other
//! part of the wheel could have loaded it first (that is ABI406) or a program needs it, which has nobody to help it.
//!
//! ## Why is this bad?
//! `ImportError: libb.so: cannot open shared object file: No such file or directory`, although the file was installed.
//!
//! ## Example
//! An extension has `DT_RUNPATH $ORIGIN/libs` and needs `liba.so`; that one needs `libb.so` beside it and has no path of
//! its own. With `DT_RPATH` it would be found: that is inherited.
//!
//! ## How to mend it
//! Give the object that needs it `DT_RUNPATH $ORIGIN` (or the way to the directory), or link with
//! `-Wl,--disable-new-dtags`.
//!
//! ## References
//! ld.so(8); glibc elf/dl-load.c; auditwheel #531, #562 and its RUNPATH handling.

use abiaudit_loader::search::{Need, Outcome};

use crate::audit::{Audit, Role};
use crate::finding::{Evidence, Sink};

super::rule!("ABI401", "unresolved-library", Error, "abi401_unresolved_library.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for need in audit.resolution.needs.iter().filter(|n| audit.objects.get(n.from).is_some_and(|o| o.counts))
    {
        let Outcome::Unreachable { present } = &need.outcome else { continue };
        if is_helped(audit, need) {
            continue;
        }
        let message = match need.blocked_by {
            Some(blocking) => {
                format!("needs {}, but {} cannot be loaded", need.name, audit.member_name(blocking))
            }
            None => format!("needs {}, which is in the wheel where the loader does not look", need.name),
        };
        let mut evidence: Vec<Evidence> = present
            .iter()
            .map(|&p| Evidence::member(audit.member_name(p)).with_library(&need.name).with_note("is here"))
            .collect();
        evidence.push(Evidence::note(paths(audit, need)));
        sink.member(audit.member_name(need.from), message)
            .help("give it DT_RUNPATH ($ORIGIN and the way from there), or let its users have DT_RPATH, which is inherited")
            .evidence(evidence);
    }
}

/// Something else in the wheel can have loaded the library before, and nothing says that this runs alone.
pub(super) fn is_helped(audit: &Audit<'_>, need: &Need) -> bool {
    let is_program = |o: usize| audit.objects.get(o).is_some_and(|o| o.role == Role::Program);
    let candidates = || audit.resolution.preload_candidates(need);
    !is_program(need.from) && !is_program(need.root) && candidates().iter().any(|&root| !is_program(root))
}

fn paths(audit: &Audit<'_>, need: &Need) -> String {
    let entries = audit.resolution.search_paths(need.from);
    let own = entries.iter().map(|e| e.raw.as_str()).collect::<Vec<_>>().join(":");
    let chain: Vec<&str> = need.chain.iter().map(|&o| audit.member_name(o)).collect();
    let own =
        if own.is_empty() { "no search path of its own".to_owned() } else { format!("its path is {own:?}") };
    if chain.len() > 1 { format!("{own}; loaded by {}", chain.join(" -> ")) } else { own }
}
