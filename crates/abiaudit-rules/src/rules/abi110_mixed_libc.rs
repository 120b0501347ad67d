//! An object was linked against the other C library than the tag names.
//!
//! ## What it does
//! Tells glibc from musl objects by the loader that they ask for and the C library that they NEED, and compares with
//! each claimed tag. Static programs belong to neither.
//!
//! ## Why is this bad?
//! `libc.musl-x86_64.so.1: cannot open shared object file` on a glibc system, or `Error loading shared library
//! ld-linux-x86-64.so.2` on Alpine; a program ends with `No such file or directory`.
//!
//! ## Example
//! A binary of an npm or Rust tool for musl that was copied into the manylinux wheel.
//!
//! ## How to mend it
//! Build it for the tag's C library, link it statically, or leave it out.
//!
//! ## References
//! PEP 600; PEP 656.

use abiaudit_policy::Libc;
use abiaudit_wheel::PlatformTag;

use crate::audit::{Audit, Role};
use crate::finding::{Severity, Sink};

super::rule!("ABI110", "mixed-libc", Error, "abi110_mixed_libc.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for claim in &audit.claims {
        let claimed = match claim.tag {
            PlatformTag::Manylinux { .. } => Libc::Glibc,
            PlatformTag::Musllinux { .. } => Libc::Musl,
            _ => continue,
        };
        for (_, entry) in audit.counted() {
            let Some(libc) = entry.libc.filter(|libc| *libc != claimed) else { continue };
            // Some packages carry a build for each C library and choose at run time; an extension cannot.
            let severity = match entry.role {
                Role::Extension(_) => Severity::Error,
                _ if both(audit) => Severity::Info,
                _ => Severity::Error,
            };
            sink.member(&entry.member.name, format!("is linked against {libc}, under the tag {}", claim.tag))
                .severity(severity)
                .help(format!("build it for {claimed}, link it statically, or leave it out"));
        }
    }
}

/// There are programs or libraries of both kinds.
fn both(audit: &Audit<'_>) -> bool {
    let plain =
        |libc| audit.counted().any(|(_, o)| o.libc == Some(libc) && !matches!(o.role, Role::Extension(_)));
    plain(Libc::Glibc) && plain(Libc::Musl)
}
