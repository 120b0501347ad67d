//! What the rules on runtimes (ABI2xx, ABI3xx) ask of an audit: who shares a process with whom.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_detect::Carriage;
use abiaudit_elf::Name;
use abiaudit_loader::search::{Need, Outcome};
use abiaudit_policy::Libc;

use crate::audit::{Audit, AuditObject, Role};

/// Objects that come into processes which other wheels share. A program has its own, and its own runtimes.
pub(crate) fn shared<'s, 'a>(audit: &'s Audit<'a>) -> impl Iterator<Item = (usize, &'s AuditObject<'a>)> {
    audit.counted().filter(|(_, entry)| entry.role != Role::Program)
}

/// The C library of an object; where it does not tell, that of the platform.
pub(crate) fn libc_of(audit: &Audit<'_>, entry: &AuditObject<'_>) -> Libc {
    entry.libc.or(audit.platform.map(|platform| platform.libc)).unwrap_or(Libc::Glibc)
}

/// What is loaded together, once for each root of the input that is no program, in load order.
pub(crate) fn scopes<'s>(audit: &'s Audit<'_>) -> impl Iterator<Item = Vec<usize>> + 's {
    let is_program = |root: &usize| audit.objects.get(*root).is_none_or(|o| o.role == Role::Program);
    let roots = audit.resolution.roots.iter().copied().filter(move |root| !is_program(root));
    roots.map(|root| audit.resolution.closure(root).collect())
}

/// The objects that some other object of the input loads into a process that is not a program's own.
pub(crate) fn loaded_by_others(audit: &Audit<'_>) -> BTreeSet<usize> {
    scopes(audit).flat_map(|scope| scope.into_iter().skip(1)).collect()
}

/// The name by which the loader knows an object: its soname, else its file name.
pub(crate) fn loader_name(entry: &AuditObject<'_>) -> String {
    let soname = entry.object.dynamic.soname.as_ref().map(Name::to_text);
    soname.unwrap_or_else(|| entry.member.base_name().to_owned())
}

/// An object brings the runtime itself, rather than needing somebody else's.
pub(crate) fn is_carried(carriage: Carriage) -> bool {
    matches!(carriage, Carriage::Library | Carriage::Exports | Carriage::Static)
}

/// The need of an object for this name, if no object of the input serves it.
pub(crate) fn need_from_outside<'s>(audit: &'s Audit<'_>, object: usize, name: &str) -> Option<&'s Need> {
    let mut needs = audit.resolution.needs_of(object).iter();
    needs.find(|need| need.name == name && need.outcome == Outcome::External)
}

/// Pairs of these objects that are loaded together, and the first scope in which they are: its root. The first of a pair
/// comes first in that scope. Each pair is given once, in the order of the objects.
pub(crate) fn pairs_in_scopes(
    audit: &Audit<'_>,
    candidates: &BTreeSet<usize>,
) -> BTreeMap<(usize, usize), LoadedTogether> {
    let mut pairs = BTreeMap::new();
    if candidates.len() < 2 {
        return pairs;
    }
    for scope in scopes(audit) {
        let Some(&root) = scope.first() else { continue };
        let present: Vec<usize> = scope.into_iter().filter(|object| candidates.contains(object)).collect();
        for (position, &first) in present.iter().enumerate() {
            for &second in present.iter().skip(position + 1) {
                let key = (first.min(second), first.max(second));
                pairs.entry(key).or_insert(LoadedTogether { root, first, second });
            }
        }
    }
    pairs
}

/// Two objects of one scope.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadedTogether {
    /// What brings both in.
    pub(crate) root: usize,
    /// Comes first: with a name that both export, it serves.
    pub(crate) first: usize,
    /// Comes later.
    pub(crate) second: usize,
}
