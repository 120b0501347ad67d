//! Allocators that take the place of the process's own.

use abiaudit_elf::Binding;

use crate::cxx::{CxxClass, CxxRuntime};
use crate::data::{Kind, family_of};
use crate::evidence::Evidence;
use crate::itanium;
use crate::markers::Speaks;
use crate::object_facts::{ObjectFacts, Tally};

/// What is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Replaces {
    /// `malloc` and `free` of the C library.
    Malloc,
    /// C++'s `operator new` and `operator delete`.
    OperatorNew,
}

/// Exported definitions of an allocator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocator {
    /// What they replace, for objects that come later in a scope.
    pub replaces: Replaces,
    /// Whose allocator it is (`jemalloc`), if that shows.
    pub name: Option<&'static str>,
    /// What that rests on.
    pub evidence: Vec<Evidence>,
}

pub(crate) fn detect(facts: &ObjectFacts<'_>, cxx: &CxxRuntime) -> Vec<Allocator> {
    let (mut malloc, mut new) = (Tally::default(), Tally::default());
    for (symbol, name) in facts.exports() {
        let strong = symbol.binding() == Binding::Global;
        match name {
            b"malloc" | b"free" | b"calloc" | b"realloc" => malloc.add(&String::from_utf8_lossy(name)),
            _ if strong && itanium::is_allocation_operator(name) => new.add(&String::from_utf8_lossy(name)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    let name = maker(facts);
    let mut push = |replaces, tally: &Tally, what| {
        let mut evidence: Vec<Evidence> = tally.exported(what).into_iter().collect();
        evidence.extend(facts.texts(Speaks::Jemalloc));
        all.push(Allocator { replaces, name, evidence });
    };
    // One of them alone is a wrapper that hands on.
    if malloc.examples.iter().any(|n| n == "malloc") && malloc.examples.iter().any(|n| n == "free") {
        push(Replaces::Malloc, &malloc, "allocation functions of C");
    }
    // A whole libstdc++ brings its own. Deleters alone come from nonshared archives: sized ones are newer than GCC 4.8.
    let own_library = matches!(cxx.class, CxxClass::Full | CxxClass::FullAndNeeded | CxxClass::Vendored);
    if replaces_new(facts) && !own_library {
        push(Replaces::OperatorNew, &new, "operators new and delete");
    }
    all
}

/// Does the object export a plain `operator new`, for whichever `size_t`?
pub(crate) fn replaces_new(facts: &ObjectFacts<'_>) -> bool {
    facts.defines("_Znwm") || facts.defines("_Znwj")
}

/// Whose allocator it is: by soname, by functions that only it exports, by its messages.
fn maker(facts: &ObjectFacts<'_>) -> Option<&'static str> {
    let by_soname = facts.soname.as_deref().and_then(|soname| family_of(soname, Kind::Allocator));
    let by_function = || {
        [
            ("mallctl", "jemalloc"),
            ("je_mallctl", "jemalloc"),
            ("mi_malloc", "mimalloc"),
            ("tc_malloc", "tcmalloc"),
            ("MallocExtension_GetAllocatedSize", "tcmalloc"),
            ("scalable_malloc", "tbbmalloc"),
        ]
        .into_iter()
        .find(|(function, _)| facts.defines(function))
        .map(|(_, name)| name)
    };
    let by_text = || facts.found(Speaks::Jemalloc).next().map(|_| "jemalloc");
    by_soname.or_else(by_function).or_else(by_text)
}
