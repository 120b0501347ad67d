//! `std::call_once` between two copies of libstdc++.
//!
//! `std::call_once` stores what to call in the thread-local variables `std::__once_call` and `std::__once_callable` and
//! has `pthread_once` run `__once_proxy`, which reads them (libstdc++, src/c++11/mutex.cc). If the proxy is another
//! copy's, it reads that copy's variables, and calls address 0. A version script that hides `std::*` hides the variables
//! and not the proxy, whose name has C linkage.

use abiaudit_loader::binding::ObjectId;

use super::Collision;
use super::bound::Bound;

pub(super) const PROXY: &str = "__once_proxy";
/// `std::__once_call` and `std::__once_callable`
pub(super) const VARIABLES: [&str; 2] = ["_ZSt11__once_call", "_ZSt15__once_callable"];

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    let mut found = Vec::new();
    for reference in bound.references(PROXY) {
        let (user, Some(proxy)) = (reference.from, reference.provider) else { continue };
        let split = VARIABLES.iter().find_map(|variable| {
            let (set, read) = (used_by(bound, user, variable)?, used_by(bound, proxy, variable)?);
            (set != read).then_some(set)
        });
        found.extend(split.map(|variable| Collision::Once { user, proxy, variable }));
    }
    found
}

/// Whose variable the code of an object uses. Without a reference it is its own, hidden one.
fn used_by(bound: &Bound<'_>, code: ObjectId, variable: &str) -> Option<ObjectId> {
    match bound.reference(code, variable) {
        Some(reference) => reference.provider,
        None => Some(code),
    }
}
