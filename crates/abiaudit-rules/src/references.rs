//! Strong references without a version that nothing loaded with the object defines: the system has to serve them.
//!
//! Weak references are left out, since a loader leaves those at zero, and so are names of the Python C API, which
//! the interpreter serves. On musl, whose libraries have no versions, nearly everything is such a reference.

use std::collections::HashMap;

use abiaudit_elf::{Symbol, SymbolVersion};
use abiaudit_policy::symbols::Export;

use crate::audit::Audit;
use crate::scopes::{Scope, Scopes};
use crate::{python, symbol_tables};

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

/// Bound on look-ups of names in objects. Real wheels take below a tenth of it; a set of objects that is made to be
/// slow is not looked at to its end.
const LOOKUPS_MAX: usize = 20_000_000;

/// The references, and whether all were looked at.
pub(crate) fn open_references(audit: &Audit<'_>) -> (Vec<OpenReference>, bool) {
    let Some(platform) = audit.platform else { return (Vec::new(), true) };
    let mut lookups = 0_usize;
    let mut complete = true;
    let scopes = Scopes::new(audit, platform);
    let mut open = Vec::new();
    let mut exports: HashMap<String, Vec<Export>> = HashMap::new();
    // One scope at a time: all of them would fill the memory.
    let mut counted: Vec<_> =
        audit.counted().map(|(index, entry)| (audit.root_of(index), index, entry)).collect();
    counted.sort_by_key(|(root, index, _)| (*root, *index));
    let mut latest: Option<(usize, Scope)> = None;
    for (root, index, entry) in counted {
        let object = entry.object;
        let mut wanted = object.symbols.undefined().filter(|s| is_wanted(object, s)).peekable();
        if wanted.peek().is_none() {
            continue;
        }
        let (_, scope) = match latest.take() {
            Some(known) if known.0 == root => latest.insert(known),
            _ => latest.insert((root, scopes.of(index))),
        };
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
    open.sort_by_key(|reference: &OpenReference| reference.object);
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
