//! What is loaded together with an object, by roots.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use abiaudit_loader::search::Outcome;

use crate::audit::{Audit, Role};
use crate::platform::Platform;
use crate::symbol_tables;

/// Libraries that the interpreter itself is linked with, so that an extension finds them loaded (CPython's
/// `configure.ac`: `LIBM`, `LIBS`); a program has only what it asks for.
pub const INTERPRETER_LIBRARIES: [&str; 5] =
    ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libutil.so.1"];

/// What is loaded together.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Objects of the input, those that are taken to be imported before included.
    pub members: Vec<usize>,
    /// Libraries from outside, and those that every process of this kind has.
    pub outside: BTreeSet<String>,
    /// The exports of everything from outside are known.
    pub known: bool,
}

impl Scope {
    pub(crate) fn defines(&self, audit: &Audit<'_>, name: &[u8]) -> bool {
        let of =
            |&m: &usize| audit.objects.get(m).is_some_and(|o| !o.object.symbols.definitions(name).is_empty());
        self.members.iter().any(of)
    }
}

/// Makes scopes. Thousands of roots may each take others to be imported before them, so that what one root loads is
/// gathered once, and the union for a scope is over numbers.
pub(crate) struct Scopes<'a, 's> {
    audit: &'a Audit<'s>,
    platform: Platform,
    groups: RefCell<HashMap<usize, Rc<Group>>>,
    names: RefCell<Names>,
}

/// What one root loads by itself.
struct Group {
    members: Vec<usize>,
    /// Numbers of names.
    outside: Vec<usize>,
    /// Roots that must have been imported before: they bring what no search path leads to.
    brought_by: Vec<usize>,
}

/// Libraries from outside.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, usize>,
    /// The name, and whether its exports are known.
    names: Vec<(String, bool)>,
}

impl<'a, 's> Scopes<'a, 's> {
    pub(crate) fn new(audit: &'a Audit<'s>, platform: Platform) -> Self {
        Self { audit, platform, groups: RefCell::default(), names: RefCell::default() }
    }

    /// Everything that is loaded with `object` by the first root that brings it. A need that is found only if
    /// something was imported first is taken to be found.
    pub(crate) fn of(&self, object: usize) -> Scope {
        let root = self.audit.root_of(object);
        let mut roots = vec![root];
        let mut seen_roots = Marks::default();
        seen_roots.set(root);
        let (mut seen, mut named) = (Marks::default(), Marks::default());
        let mut scope = Scope { known: true, ..Scope::default() };
        let mut outside = Vec::new();
        let mut next = 0;
        while let Some(&root) = roots.get(next) {
            next += 1;
            let group = self.group(root);
            scope.members.extend(group.members.iter().copied().filter(|&member| seen.set(member)));
            outside.extend(group.outside.iter().copied().filter(|&name| named.set(name)));
            roots.extend(group.brought_by.iter().copied().filter(|&root| seen_roots.set(root)));
        }
        let names = self.names.borrow();
        for (name, known) in outside.into_iter().filter_map(|number| names.names.get(number)) {
            scope.known &= known;
            scope.outside.insert(name.clone());
        }
        let is_program = self.audit.objects.get(root).is_some_and(|o| o.role == Role::Program);
        let always = if is_program { &INTERPRETER_LIBRARIES[..1] } else { &INTERPRETER_LIBRARIES[..] };
        scope.outside.extend(always.iter().map(|&name| name.to_owned()));
        scope
    }

    fn group(&self, root: usize) -> Rc<Group> {
        if let Some(group) = self.groups.borrow().get(&root) {
            return Rc::clone(group);
        }
        let group = Rc::new(self.gather(root));
        self.groups.borrow_mut().insert(root, Rc::clone(&group));
        group
    }

    fn gather(&self, root: usize) -> Group {
        let mut members: Vec<usize> = self.audit.resolution.closure(root).collect();
        if members.is_empty() {
            members.push(root);
        }
        let mut names = self.names.borrow_mut();
        let (mut named, mut seen_roots) = (Marks::default(), Marks::default());
        let (mut outside, mut brought_by) = (Vec::new(), Vec::new());
        for need in members.iter().flat_map(|&member| self.audit.resolution.needs_of(member)) {
            match &need.outcome {
                Outcome::External | Outcome::Libc => {
                    let number = names.number(&need.name, self.platform);
                    outside.extend(Some(number).filter(|&number| named.set(number)));
                }
                Outcome::Unreachable { present } => {
                    let roots = present.iter().map(|&object| self.audit.root_of(object));
                    brought_by.extend(roots.filter(|&root| seen_roots.set(root)));
                }
                Outcome::Found { .. } | Outcome::NotAName => {}
            }
        }
        Group { members, outside, brought_by }
    }
}

impl Names {
    fn number(&mut self, name: &str, platform: Platform) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len();
        self.names.push((name.to_owned(), symbol_tables::covers(platform, name)));
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// A set of small numbers.
#[derive(Default)]
struct Marks(Vec<bool>);

impl Marks {
    /// Adds a number; false if it was there.
    fn set(&mut self, number: usize) -> bool {
        if self.0.len() <= number {
            self.0.resize(number + 1, false);
        }
        self.0.get_mut(number).is_some_and(|mark| !std::mem::replace(mark, true))
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use super::Scopes;
    use crate::audit::Audit;
    use crate::settings::Settings;

    /// A ring of modules, each of which lacks a way to the next: all are taken to be loaded with each, once.
    #[test]
    fn what_must_have_been_imported_before_is_in_scope_once() {
        const MODULES: usize = 20;
        let name = |number: usize| format!("libm{}.so", number % MODULES);
        let module = |number: usize| {
            let module = ElfWriter::new(Arch::X86_64).define("PyInit_m").soname(name(number));
            module.needed("libc.so.6").needed(name(number + 1)).needed(format!("libout{}.so", number % 3))
        };
        let wheel = TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64");
        let wheel = (0..MODULES).fold(wheel, |wheel, number| {
            wheel.elf(&format!("p/sub{number}/{}", name(number)), &module(number))
        });
        let directory = tempfile::tempdir().unwrap();
        let options = abiaudit_scan::Options::default();
        let subjects = abiaudit_scan::scan(&wheel.write(directory.path()), &options).unwrap();
        let settings = Settings::default();
        let audit = Audit::new(&subjects[0], &settings);
        let scopes = Scopes::new(&audit, audit.platform.unwrap());
        for object in 0..MODULES {
            let scope = scopes.of(object);
            let mut members = scope.members.clone();
            members.sort_unstable();
            assert_eq!(members, (0..MODULES).collect::<Vec<_>>());
            assert_eq!(scope.members[0], object, "the root comes first");
            assert!(
                ["libout0.so", "libout1.so", "libout2.so", "libm.so.6"]
                    .iter()
                    .all(|l| scope.outside.contains(*l))
            );
            assert!(!scope.known, "nobody knows libout0.so");
        }
    }
}
