//! Every symbol that could be found is found, by the path that the loader takes.

use super::{Case, Invariant, Violation};

pub(super) fn check(case: &Case, violations: &mut Vec<Violation>) {
    let image = case.after;
    for (index, symbol) in case.found.symbols.iter().enumerate() {
        let (name, at) = (symbol.name.bytes(), index as u32);
        let is_lost_by_gnu = symbol.in_gnu_hash
            && image.gnu_hash.as_ref().is_some_and(|hash| !hash.finds(image.encoding, name, at));
        let is_lost_by_sysv =
            symbol.in_sysv_hash && image.sysv_hash.as_ref().is_some_and(|hash| !hash.finds(name, at));
        if (is_lost_by_gnu || is_lost_by_sysv) && !was_lost(case, name) {
            let detail = format!("{} cannot be found", symbol.name.display());
            violations.push(Violation::new(Invariant::Hash, detail));
            return;
        }
    }
}

/// A table that never found a symbol is not our work.
fn was_lost(case: &Case, name: &[u8]) -> bool {
    let image = case.before;
    let mut symbols = case.original.symbols.iter().enumerate().filter(|(_, s)| s.name.bytes() == name);
    symbols.any(|(index, symbol)| {
        let at = index as u32;
        let gnu = image.gnu_hash.as_ref().is_none_or(|hash| hash.finds(image.encoding, name, at));
        let sysv = image.sysv_hash.as_ref().is_none_or(|hash| hash.finds(name, at));
        (symbol.in_gnu_hash && !gnu) || (symbol.in_sysv_hash && !sysv)
    })
}
