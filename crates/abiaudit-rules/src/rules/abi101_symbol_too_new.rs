//! A symbol is newer than the tag's systems have.
//!
//! ## What it does
//! For every platform tag that the wheel claims, looks at each symbol version that its objects need from a system
//! library and reports those that the oldest system of the tag lacks; with each the object, the library, and since
//! when it exists. References without a version count too: they need the symbol itself to be there.
//!
//! ## Why is this bad?
//! The loader refuses the file: ``ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ...)``.
//! A reference without a version fails later, with `undefined symbol`.
//!
//! ## Example
//! A wheel tagged `manylinux_2_28` whose extension was built on Ubuntu 22.04 and calls `pthread_create@GLIBC_2.34`.
//!
//! ## How to mend it
//! Build in an image whose libraries are as old as the tag, or link through the split toolchain
//! (`abiaudit toolchain create`), which keeps new C++ code on old systems; or give the wheel the tag that it honours.
//!
//! ## References
//! PEP 600; glibc elf/dl-version.c; auditwheel #36, #354 (which symbol is it?).

use std::collections::BTreeMap;

use crate::audit::Audit;
use crate::blockers::{SymbolBlocker, SymbolReason};
use crate::demangle::demangle;
use crate::finding::{Evidence, Sink};
use crate::symbol_tables::since;

super::rule!("ABI101", "symbol-too-new", Error, "abi101_symbol_too_new.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    for claim in &verdict.claims {
        let mut by_object: BTreeMap<usize, Vec<&SymbolBlocker>> = BTreeMap::new();
        for blocker in claim.blockers.symbols.iter().filter(|b| b.reason != SymbolReason::NoSuchNode) {
            by_object.entry(blocker.object).or_default().push(blocker);
        }
        for (object, mut blockers) in by_object {
            // The newest demand first: it decides which tag is honest.
            blockers.sort_by(|a, b| newest_first(a, b));
            let message = message(&claim.tag, &blockers);
            sink.member(audit.member_name(object), message)
                .help(help(&claim.tag, &blockers))
                .evidence(blockers.into_iter().map(evidence));
        }
    }
}

fn newest_first(a: &SymbolBlocker, b: &SymbolBlocker) -> std::cmp::Ordering {
    let key = |s: &SymbolBlocker| s.node.split_once('_').map(|(f, v)| (f.to_owned(), v.to_owned()));
    let (Some((family_a, a_version)), Some((family_b, b_version))) = (key(a), key(b)) else {
        return a.cmp(b);
    };
    let newer = abiaudit_policy::compare_versions(&b_version, &a_version);
    family_a
        .cmp(&family_b)
        .then(newer.unwrap_or(std::cmp::Ordering::Equal))
        .then_with(|| a.symbol.cmp(&b.symbol))
}

fn message(tag: &str, blockers: &[&SymbolBlocker]) -> String {
    let first = blockers[0];
    let ceiling = match &first.ceiling {
        Some(ceiling) => format!("{tag} ends at {ceiling}"),
        None => format!("{tag} has none of that family"),
    };
    let what = match &first.symbol {
        Some(symbol) => format!("{} needs {}", demangle(symbol), first.node),
        None => format!("needs {}", first.node),
    };
    let more = match blockers.len() - 1 {
        0 => String::new(),
        1 => ", and 1 more symbol".to_owned(),
        n => format!(", and {n} more symbols"),
    };
    format!("{what} from {}; {ceiling}{more}", first.library)
}

fn help(tag: &str, blockers: &[&SymbolBlocker]) -> String {
    let cxx = |b: &&&SymbolBlocker| b.node.starts_with("GLIBCXX_") || b.node.starts_with("CXXABI_");
    if blockers.iter().any(|b| cxx(&b)) {
        format!(
            "link through the split toolchain (abiaudit toolchain create --target {tag}), build in an image as old as the tag, or retag"
        )
    } else {
        "build in an image as old as the tag, or give the wheel the tag that it honours".to_owned()
    }
}

fn evidence(blocker: &SymbolBlocker) -> Evidence {
    let mut notes: Vec<String> = since(&blocker.node).into_iter().collect();
    if blocker.reason == SymbolReason::Unversioned {
        notes.push("reference without a version".to_owned());
    }
    Evidence {
        symbol: blocker.symbol.clone(),
        version: Some(blocker.node.clone()),
        library: Some(blocker.library.clone()),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        member: None,
    }
}
