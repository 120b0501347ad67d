//! The stack unwinder: libgcc_s, or a private copy of it (`-static-libgcc`), or LLVM's libunwind.
//!
//! An exception that crosses from an object with one unwinder into an object with another ends the process in
//! `_Unwind_SetGR`: each has its own register table.

use crate::cxx::CxxRuntime;
use crate::data::Kind;
use crate::evidence::{Evidence, Fact, Grade};
use crate::object_facts::ObjectFacts;

/// Whose unwinder an object uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnwinderKind {
    /// Nothing says that it unwinds.
    None,
    /// That of another object.
    Shared,
    /// Its own.
    Private,
    /// It is one: libgcc_s or libunwind by its soname.
    Library,
}

/// What is said of an object's unwinder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwinder {
    /// Whose it is.
    pub kind: UnwinderKind,
    /// It exports `_Unwind_*`, so that other objects can bind to its copy.
    pub exported: bool,
    /// What that rests on, the best first.
    pub evidence: Vec<Evidence>,
}

pub(crate) fn detect(facts: &ObjectFacts<'_>, cxx: &CxxRuntime) -> Unwinder {
    let exports = facts.exports_from(&["_Unwind_"]);
    let references = facts.references_to(&["_Unwind_"]);
    let mut evidence: Vec<Evidence> = Vec::new();
    let own = facts.own_family(Kind::Unwinder);
    evidence.extend(own.map(|(_, soname)| Evidence::new(Grade::A, Fact::Soname(soname.to_owned()))));
    evidence.extend(exports.exported("functions of an unwinder"));
    evidence.extend(references.referred("functions of an unwinder"));
    let needed = facts.needed(Kind::Unwinder);
    evidence.extend(needed.map(|(_, soname)| Evidence::new(Grade::A, Fact::Needed(soname.to_owned()))));
    let kind = if own.is_some() {
        UnwinderKind::Library
    } else if exports.count > 0 {
        UnwinderKind::Private
    } else if references.count > 0 {
        UnwinderKind::Shared
    } else if let Some(more) = silent_copy(facts, cxx) {
        evidence.extend(more);
        UnwinderKind::Private
    } else {
        UnwinderKind::None
    };
    Unwinder { kind, exported: exports.count > 0, evidence }
}

/// A hidden unwinder leaves no symbol of its own. What shows it: code that handles exceptions, no reference to anybody's
/// unwinder, and a way to find the tables of other objects (`dl_iterate_phdr`; `_dl_find_object` since GCC 12 with
/// glibc 2.35), which a static program does not need.
fn silent_copy(facts: &ObjectFacts<'_>, cxx: &CxxRuntime) -> Option<Vec<Evidence>> {
    let handles_exceptions = if cxx.has_own_copy() {
        Evidence::new(Grade::B, Fact::Circumstance("holds a C++ runtime and refers to no unwinder"))
    } else if facts.object.sections.find(".gcc_except_table").is_some() {
        Evidence::new(Grade::C, Fact::Circumstance("has exception tables and refers to no unwinder"))
    } else {
        return None;
    };
    let finds_tables = if facts.refers("dl_iterate_phdr") || facts.refers("_dl_find_object") {
        "looks for exception tables itself (dl_iterate_phdr or _dl_find_object)"
    } else if !facts.object.dynamic.present {
        "is a static program"
    } else {
        return None;
    };
    Some(vec![handles_exceptions, Evidence::new(Grade::C, Fact::Circumstance(finds_tables))])
}
