//! Things of which there should be one in a process, and which are there twice without harm.

use std::collections::BTreeSet;

use abiaudit_loader::binding::ObjectId;

use super::Collision;
use super::bound::Bound;

/// Mangled name, and what it is called.
pub(super) const STATE: [(&str, &str); 3] = [
    ("_ZSt4cout", "std::cout"),
    ("_ZNSt3_V216generic_categoryEv", "std::generic_category()"),
    ("_ZNSt6locale7classicEv", "std::locale::classic()"),
];

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    let duplicated = STATE.iter().filter_map(|(symbol, _)| {
        let references = bound.references(symbol).iter();
        let providers: BTreeSet<ObjectId> = references.filter_map(|reference| reference.provider).collect();
        let mut providers: Vec<ObjectId> = providers.into_iter().collect();
        providers.sort_by_key(|provider| bound.number(*provider));
        (providers.len() > 1).then(|| Collision::StateDuplicated { symbol: (*symbol).to_owned(), providers })
    });
    duplicated.collect()
}
