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
    found.extend(split_async(bound));
    found
}

/// The function that `std::call_once` leaves for `__once_proxy` since GCC 11 is an inline one (the lambda's in
/// `std::once_flag::_Prepare_execution`, <mutex>), and reads `std::__once_callable` itself: one for the `_M_join` of
/// `std::async`'s state.
const CALLED: &[u8] = b"_ZZNSt9once_flag18_Prepare_executionC4IZSt9call_onceIMSt6threadFvvEJPS3_EEvRS_OT_DpOT0_EUlvE_EERS8_ENUlvE_4_FUNEv";
/// `std::__future_base::_Async_state_commonV2::_M_complete_async()`, which calls `_M_join`, which sets the variable.
const CALLER: &[u8] = b"_ZNSt13__future_base21_Async_state_commonV217_M_complete_asyncEv";
pub(super) const INLINE: [&[u8]; 2] = [CALLED, CALLER];

/// Objects define these inline functions alike, and one of them serves all that export them. If it serves an object with
/// the function that reads and not with the one that sets, since one of the two hides its inline functions, and the two
/// objects use different variables, what is read was never set.
fn split_async(bound: &Bound<'_>) -> Vec<Collision> {
    let mut found = Vec::new();
    for (_, references) in bound.names().filter(|(name, _)| *name == CALLED) {
        for reference in references {
            let (user, Some(provider)) = (reference.from, reference.provider) else { continue };
            let caller = std::str::from_utf8(CALLER).ok().and_then(|caller| bound.reference(user, caller));
            let is_whole = caller.is_some_and(|caller| caller.provider == Some(provider));
            // Who refers to no variable has a hidden one.
            let used_by =
                |code| bound.reference(code, VARIABLES[1]).map_or(Some(code), |reference| reference.provider);
            if let (Some(set), Some(read)) = (used_by(user), used_by(provider))
                && provider != user
                && !is_whole
                && set != read
            {
                found.push(Collision::Once { user, proxy: provider, variable: set });
            }
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
