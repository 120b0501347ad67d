//! It works only if something else was imported first.
//!
//! ## What it does
//! Reports a NEEDED library of the wheel that no search path reaches but that another module of the wheel may have
//! loaded before: then its soname answers. Names those modules. For information it also names symbols that only
//! objects outside of what is loaded together define.
//!
//! ## Why is this bad?
//! `ImportError: libtriton.so: cannot open shared object file` when the module is imported or opened on its own, in
//! another order, or by a tool that inspects it.
//!
//! ## Example
//! A plugin of triton needs `libtriton.so` without a path: it is found since `import triton` has loaded it.
//!
//! ## How to mend it
//! Give the module a `DT_RUNPATH` that leads there (`$ORIGIN/...`), or keep the order on purpose and ignore this with a
//! reason.
//!
//! ## References
//! glibc elf/dl-load.c (`_dl_map_object`: names of what is loaded come first).

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_loader::search::{Need, Outcome};

use crate::audit::{Audit, Role};
use crate::demangle::demangle;
use crate::finding::{Evidence, Severity, Sink};
use crate::references::Outlook;
use crate::rules::and_more;

super::rule!("ABI406", "needs-preload", Warning, "abi406_needs_preload.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    libraries(audit, sink);
    symbols(audit, sink);
}

fn libraries(audit: &Audit<'_>, sink: &mut Sink) {
    let mut by_object: BTreeMap<usize, Vec<&Need>> = BTreeMap::new();
    for need in &audit.resolution.needs {
        let counts = audit.objects.get(need.from).is_some_and(|o| o.counts);
        if counts && matches!(need.outcome, Outcome::Unreachable { .. }) && audit.may_be_preloaded(need) {
            by_object.entry(need.from).or_default().push(need);
        }
    }
    for (object, needs) in by_object {
        let names = needs.iter().map(|n| n.name.as_str()).collect::<Vec<_>>().join(", ");
        let sometimes =
            if needs.iter().all(|n| n.found_in_some_root) { " in every order of imports" } else { "" };
        let helpers = needs.iter().flat_map(|need| {
            let roots = audit.resolution.preload_candidates(need);
            roots.into_iter().take(5).map(|root| {
                Evidence::member(audit.member_name(root))
                    .with_note(format!("brings {} once it is loaded", need.name))
            })
        });
        sink.member(audit.member_name(object), format!("does not find {names} by itself{sometimes}"))
            .help("give it a DT_RUNPATH that leads there, or keep the order of imports on purpose")
            .evidence(helpers);
    }
}

/// Only of what an extension loads: a library that Python code opens by itself may well be meant to find more there.
fn symbols(audit: &Audit<'_>, sink: &mut Sink) {
    let mut by_object: BTreeMap<usize, (Vec<&str>, BTreeSet<usize>)> = BTreeMap::new();
    for reference in &audit.open_references {
        let Outlook::Elsewhere(definers) = &reference.outlook else { continue };
        let root = audit.objects.get(audit.root_of(reference.object));
        if !root.is_some_and(|o| matches!(o.role, Role::Extension(_))) {
            continue;
        }
        let (symbols, members) = by_object.entry(reference.object).or_default();
        symbols.push(&reference.symbol);
        members.extend(definers);
    }
    for (object, (symbols, definers)) in by_object {
        let first = symbols.first().map(|s| demangle(s)).unwrap_or_default();
        let symbols = and_more(&first, symbols.len().saturating_sub(1));
        let message = format!("has {symbols} only from an object that it does not need");
        let names =
            definers.iter().take(5).map(|&d| Evidence::member(audit.member_name(d)).with_note("defines it"));
        sink.member(audit.member_name(object), message)
            .severity(Severity::Info)
            .help("link what defines it, or load that with RTLD_GLOBAL first, on purpose")
            .evidence(names);
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::{TAGS, findings, module};

    fn core() -> ElfWriter {
        module().soname("libcore.so").define("PyInit_core").define("core_call")
    }

    #[test]
    fn names_what_has_to_be_loaded_first() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/core.so", &core())
            .elf("p/plugins/m.so", &module().needed("libcore.so"));
        let found = findings("ABI4", &wheel);
        assert_eq!(found.iter().map(|f| f.rule.id).collect::<Vec<_>>(), ["ABI406"]);
        assert_eq!(found[0].severity, Severity::Warning);
        assert_eq!(found[0].message, "does not find libcore.so by itself");
        assert_eq!(found[0].evidence[0].member.as_deref(), Some("p/core.so"));
    }

    #[test]
    fn symbols_of_an_object_that_is_not_needed_are_information() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/core.so", &core())
            .elf("p/m.so", &module().undefined("core_call"));
        let found = findings("ABI4", &wheel);
        assert_eq!(found.iter().map(|f| f.rule.id).collect::<Vec<_>>(), ["ABI406"]);
        assert_eq!(found[0].severity, Severity::Info);
    }

    #[test]
    fn silent_with_a_path() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/libcore.so", &core())
            .elf("p/m.so", &module().needed("libcore.so").undefined("core_call").runpath("$ORIGIN"));
        assert!(findings("ABI4", &wheel).is_empty());
    }
}
