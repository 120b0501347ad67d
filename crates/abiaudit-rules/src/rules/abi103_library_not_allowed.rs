//! A library is needed that neither the wheel nor the target's systems have.
//!
//! ## What it does
//! For every library that is NEEDED and not in the wheel, asks the claimed tag, then the providers: a distribution
//! that `Requires-Dist` declares, or a device's driver. Reports what remains, with who needs it. Also what the project's
//! own policy wants in the wheel or nowhere. (A distribution that is known but not declared is ABI408's.)
//!
//! ## Why is this bad?
//! `ImportError: libodbc.so.2: cannot open shared object file: No such file or directory` on every machine that is not
//! the build machine.
//!
//! ## Example
//! lightgbm 4.x needs `libgomp.so.1`, which no manylinux policy promises and which minimal images lack.
//!
//! ## How to mend it
//! Copy it into the wheel (`abiaudit repair`), link it statically, or depend on a distribution that brings it. A host
//! library that talks to the user's system (`libOpenCL.so.1`, `libudev.so.1`) stays outside: open it at run time with
//! `dlopen` and tell the user when it is not there.
//!
//! ## References
//! PEP 600; auditwheel #368, #675.

use crate::audit::Audit;
use crate::blockers::{LibraryBlocker, LibraryReason};
use crate::external::Origin;
use crate::finding::{Evidence, Finding, Sink};

super::rule!("ABI103", "library-not-allowed", Error, "abi103_library_not_allowed.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    for claim in &verdict.claims {
        for blocker in &claim.blockers.libraries {
            let soname = &blocker.soname;
            match &blocker.reason {
                LibraryReason::Unreachable { .. } => {}
                LibraryReason::NotPromised => not_promised(audit, &claim.tag, blocker, sink),
                LibraryReason::MustBundle(reason) => {
                    let message = format!("{soname} must come with the wheel: {reason}");
                    let finding = sink.whole(message).help("copy it into the wheel (abiaudit repair)");
                    add_users(audit, blocker, finding);
                }
                LibraryReason::Denied(reason) => {
                    let finding = sink.whole(format!("{soname} must not be used: {reason}"));
                    add_users(audit, blocker, finding.help("build without it"));
                }
            }
        }
    }
}

fn not_promised(audit: &Audit<'_>, tag: &str, blocker: &LibraryBlocker, sink: &mut Sink) {
    let soname = &blocker.soname;
    let origin = audit.externals.iter().find(|e| e.soname == *soname).map(|e| &e.origin);
    let (message, help) = match origin {
        // Other rules' business: ABI408 and the one about libpython.
        Some(Origin::Undeclared(_) | Origin::LibPython) => return,
        Some(Origin::Host(host)) => (
            format!("{soname} belongs to the host and {tag} does not promise it"),
            format!("{}; open it at run time (dlopen) instead of linking, or allow it in the configuration", host.note),
        ),
        _ => (
            format!("{soname} is not in the wheel and {tag} does not promise it"),
            "copy it into the wheel (abiaudit repair), link it statically, or depend on a distribution that has it and \
             declare that as a provider"
                .to_owned(),
        ),
    };
    add_users(audit, blocker, sink.whole(message).help(help));
}

fn add_users(audit: &Audit<'_>, blocker: &LibraryBlocker, finding: &mut Finding) {
    let user = |&object: &usize| {
        Evidence::member(audit.member_name(object)).with_library(blocker.soname.clone()).with_note("needs it")
    };
    finding.evidence(blocker.needed_by.iter().map(user));
}
