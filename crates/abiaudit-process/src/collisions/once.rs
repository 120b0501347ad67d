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
        let Some((symbol, variable)) = set_by(bound, user, reference.own) else { continue };
        let read = bound.reference(proxy, symbol).map_or(Some(proxy), |reference| reference.provider);
        if read.is_some_and(|read| read != variable) {
            found.push(Collision::Once { user, proxy, variable });
        }
    }
    found
}

/// Which variable an object sets, and whose that is. An object that has the proxy and no reference to a variable has the
/// variables too, hidden; what has neither uses something older than these variables.
fn set_by(bound: &Bound<'_>, user: ObjectId, has_proxy: bool) -> Option<(&'static str, ObjectId)> {
    let referred = VARIABLES.into_iter().find_map(|variable| {
        let reference = bound.reference(user, variable)?;
        Some((variable, reference.provider?))
    });
    referred.or_else(|| has_proxy.then_some((VARIABLES[0], user)))
}
