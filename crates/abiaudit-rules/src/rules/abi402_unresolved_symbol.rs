//! A symbol is referred to that nothing has.
//!
//! ## What it does
//! Looks at strong references without a version that no object loaded with theirs defines, nor any system library
//! that is loaded with it, nor any other object of the wheel. It is silent as soon as one library in scope is not
//! known by its symbols, for names of the Python C API, and for what no relocation uses.
//!
//! ## Why is this bad?
//! `ImportError: ...: undefined symbol: ucnv_open`, at import or at the first call.
//!
//! ## Example
//! The link line lacked `-licuuc`: a shared library links without it, and a check of NEEDED libraries sees nothing.
//!
//! ## How to mend it
//! Link the library that defines it; build with `-Wl,-z,defs` (for extension modules: `-Wl,--unresolved-symbols` with
//! care, since Python's own symbols stay open).
//!
//! ## References
//! auditwheel #431, #23; ld(1) `-z defs`.

use std::collections::BTreeMap;

use abiaudit_policy::Libc;

use crate::audit::{Audit, Role};
use crate::demangle::demangle;
use crate::finding::{Evidence, Severity, Sink};
use crate::references::Outlook;
use crate::symbol_tables;

super::rule!("ABI402", "unresolved-symbol", Error, "abi402_unresolved_symbol.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(platform) = audit.platform else { return };
    let mut by_object: BTreeMap<usize, Vec<Evidence>> = BTreeMap::new();
    for reference in &audit.open_references {
        let Outlook::Nobody(known) = &reference.outlook else { continue };
        // What only glibc has is ABI102's.
        if platform.libc == Libc::Musl
            && !symbol_tables::glibc_exports(platform, &reference.symbol).is_empty()
        {
            continue;
        }
        let mut evidence = Evidence::symbol(reference.symbol.clone());
        if let Some(export) = known.iter().find(|e| e.until.is_none()) {
            evidence = evidence.with_note(format!("{} has it, which is not NEEDED", export.library));
        }
        by_object.entry(reference.object).or_default().push(evidence);
    }
    for (object, evidence) in by_object {
        let extension = audit.objects.get(object).is_some_and(|o| matches!(o.role, Role::Extension(_)));
        let symbol = evidence.first().and_then(|e| e.symbol.as_deref()).map(demangle).unwrap_or_default();
        let more = match evidence.len() - 1 {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        sink.member(audit.member_name(object), format!("nothing that is loaded with it has {symbol}{more}"))
            .severity(if extension { Severity::Error } else { Severity::Warning })
            .help("link the library that defines it; -Wl,-z,defs finds this at build time")
            .evidence(evidence);
    }
}
