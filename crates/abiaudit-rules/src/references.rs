//! Strong references without a version that nothing loaded with the object defines: the system has to serve them.
//!
//! Weak references are left out, since a loader leaves those at zero, and so are names of the Python C API, which
//! the interpreter serves. On musl, whose libraries have no versions, nearly everything is such a reference.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use abiaudit_elf::{Symbol, SymbolVersion};
use abiaudit_loader::search::Outcome;
use abiaudit_policy::symbols::Export;

use crate::audit::{Audit, Role};
use crate::platform::Platform;
use crate::python;
use crate::symbol_tables;

/// A reference that no object of its scope defines.
#[derive(Debug, Clone)]
pub struct OpenReference {
    /// The object that has it.
    pub object: usize,
    /// The symbol as in the file.
    pub symbol: String,
    /// Who could serve it.
    pub outlook: Outlook,
}

/// Who could serve a reference.
#[derive(Debug, Clone)]
pub enum Outlook {
    /// These exports of system libraries that are loaded with the object.
    System(Vec<Export>),
    /// Only these objects of the input, which are not loaded with it.
    Elsewhere(Vec<usize>),
    /// Nobody, and every library that is loaded with it is known by its symbols. What other system libraries
    /// export under that name is listed.
    Nobody(Vec<Export>),
}

/// Libraries that the interpreter itself is linked with, so that an extension finds them loaded (CPython's
/// `configure.ac`: `LIBM`, `LIBS`); a program has only what it asks for.
pub const INTERPRETER_LIBRARIES: [&str; 5] =
    ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libutil.so.1"];

/// Symbols that linkers make up.
const LINKER_MADE: [&str; 8] = [
    "_GLOBAL_OFFSET_TABLE_",
    "_DYNAMIC",
    "_PROCEDURE_LINKAGE_TABLE_",
    "__dso_handle",
    "_end",
    "_edata",
    "__bss_start",
    ".TOC.",
];

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
    /// Everything that is loaded with `object` by the first root that brings it. A need that is found only if
    /// something was imported first is taken to be found.
    pub(crate) fn of(audit: &Audit<'_>, object: usize, platform: Platform) -> Self {
        let mut members = audit.scope_of(object);
        let root = members.first().copied().unwrap_or(object);
        let mut seen: BTreeSet<usize> = members.iter().copied().collect();
        let mut brought = BTreeSet::new();
        let mut scope = Self { known: true, ..Self::default() };
        let mut next = 0;
        while let Some(&member) = members.get(next) {
            next += 1;
            for need in audit.resolution.needs_of(member) {
                match &need.outcome {
                    Outcome::External | Outcome::Libc => {
                        if !scope.outside.contains(&need.name) {
                            scope.known &= symbol_tables::covers(platform, &need.name);
                            scope.outside.insert(need.name.clone());
                        }
                    }
                    Outcome::Unreachable { present } => {
                        // Objects with one root bring the same.
                        let fresh = present.iter().filter(|&&p| brought.insert(audit.root_of(p)));
                        let fresh = fresh.flat_map(|&p| audit.scope_of(p));
                        members.extend(fresh.filter(|&m| seen.insert(m)));
                    }
                    Outcome::Found { .. } | Outcome::NotAName => {}
                }
            }
        }
        let is_program = audit.objects.get(root).is_some_and(|o| o.role == Role::Program);
        let always = if is_program { &INTERPRETER_LIBRARIES[..1] } else { &INTERPRETER_LIBRARIES[..] };
        scope.outside.extend(always.iter().map(|&name| name.to_owned()));
        scope.members = members;
        scope
    }

    fn defines(&self, audit: &Audit<'_>, name: &[u8]) -> bool {
        let of =
            |&m: &usize| audit.objects.get(m).is_some_and(|o| !o.object.symbols.definitions(name).is_empty());
        self.members.iter().any(of)
    }
}

/// Bound on look-ups of names in objects. Real wheels take below a tenth of it; a set of objects that is made to be
/// slow is not looked at to its end.
const LOOKUPS_MAX: usize = 20_000_000;

/// The references, and whether all were looked at.
pub(crate) fn open_references(audit: &Audit<'_>) -> (Vec<OpenReference>, bool) {
    let Some(platform) = audit.platform else { return (Vec::new(), true) };
    let mut lookups = 0_usize;
    let mut complete = true;
    let mut scopes: BTreeMap<usize, Scope> = BTreeMap::new();
    let mut open = Vec::new();
    let mut exports: HashMap<String, Vec<Export>> = HashMap::new();
    for (index, entry) in audit.counted() {
        let object = entry.object;
        let mut wanted = object.symbols.undefined().filter(|s| is_wanted(object, s)).peekable();
        if wanted.peek().is_none() {
            continue;
        }
        let root = audit.root_of(index);
        let scope = scopes.entry(root).or_insert_with(|| Scope::of(audit, index, platform));
        for symbol in wanted {
            lookups = lookups.saturating_add(scope.members.len());
            if lookups > LOOKUPS_MAX {
                complete = false;
                break;
            }
            let name = object.symbols.name(symbol);
            if scope.defines(audit, name) {
                continue;
            }
            let text = object.symbols.name_text(symbol);
            let all = exports
                .entry(text.clone())
                .or_insert_with(|| symbol_tables::exports(platform, &text))
                .clone();
            let outlook = match symbol_tables::in_libraries(platform, &all, &scope.outside) {
                served if !served.is_empty() => Outlook::System(served),
                _ if !scope.known || symbol.uses.is_empty() || LINKER_MADE.contains(&text.as_str()) => {
                    continue;
                }
                _ => Outlook::Nobody(all),
            };
            open.push(OpenReference { object: index, symbol: text, outlook });
        }
    }
    look_elsewhere(audit, &mut open);
    (open, complete)
}

fn is_wanted(object: &abiaudit_elf::Object, symbol: &Symbol) -> bool {
    !symbol.is_weak()
        && matches!(object.version_of(symbol), SymbolVersion::Unversioned)
        && !python::is_api(object.symbols.name(symbol))
}

/// Asks the rest of the input for what nobody has. What some root loads together with the reference is no
/// open reference at all.
fn look_elsewhere(audit: &Audit<'_>, open: &mut Vec<OpenReference>) {
    let is_nobody = |r: &&OpenReference| matches!(r.outlook, Outlook::Nobody(_));
    let mut definers: HashMap<String, Vec<usize>> =
        open.iter().filter(is_nobody).map(|r| (r.symbol.clone(), Vec::new())).collect();
    if definers.is_empty() {
        return;
    }
    for (index, entry) in audit.objects.iter().enumerate().filter(|(_, o)| o.counts) {
        for symbol in entry.object.symbols.exported() {
            if let Ok(name) = std::str::from_utf8(entry.object.symbols.name(symbol))
                && let Some(list) = definers.get_mut(name)
                && list.last() != Some(&index)
            {
                list.push(index);
            }
        }
    }
    let roots = roots_of(audit);
    open.retain_mut(|reference| {
        let Outlook::Nobody(_) = reference.outlook else { return true };
        let Some(found) = definers.get(&reference.symbol).filter(|d| !d.is_empty()) else { return true };
        let own = roots.get(reference.object).map_or(&[][..], Vec::as_slice);
        let together =
            |d: &usize| roots.get(*d).is_some_and(|r| r.iter().any(|x| own.binary_search(x).is_ok()));
        if found.iter().any(together) {
            return false;
        }
        reference.outlook = Outlook::Elsewhere(found.clone());
        true
    });
}

/// Per object the roots that load it, ascending.
fn roots_of(audit: &Audit<'_>) -> Vec<Vec<usize>> {
    let mut roots = vec![Vec::new(); audit.objects.len()];
    let mut order = audit.resolution.roots.clone();
    order.sort_unstable();
    for root in order {
        for member in audit.resolution.closure(root) {
            if let Some(list) = roots.get_mut(member) {
                list.push(root);
            }
        }
    }
    roots
}
