//! Facet ids that two copies of libstdc++ number.
//!
//! Each standard facet has a static `id`, and a locale keeps its facets in a table that the ids index. An id gets its
//! index on first use from a counter, `std::locale::id::_S_refcount`, which `std::locale::id::_M_id` increments. Ids of
//! class templates are `STB_GNU_UNIQUE`: one for the process. The counter, and the ids of `ctype` and `codecvt`, are
//! ordinary symbols: one for each copy. So a copy that finds some ids numbered by another, and numbers the rest itself from
//! 0, gives indices that are taken. All ids from one copy do no harm, whichever it is.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_loader::binding::ObjectId;
use abiaudit_policy::symbols::{self, GccLibrary, Release};

use super::Collision;
use super::bound::{Bound, Reference};

/// `std::locale::id::_M_id() const`
const M_ID: &str = "_ZNKSt6locale2id5_M_idEv";
/// `std::locale::id::_S_refcount`
const COUNTER: &str = "_ZNSt6locale2id11_S_refcountE";
pub(super) const NUMBERING: &[&str] = &[M_ID, COUNTER];
/// `std::ctype<char>::id`, an ordinary symbol: each copy has it.
const CTYPE: &str = "_ZNSt5ctypeIcE2idE";
/// The first release whose library initialises the standard streams.
const STREAMS_IN_LIBRARY: Release = Release::new(13, 0);
/// Bound on a chain of copies that each use the next one's function.
const CHAIN_MAX: usize = 8;

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    let Some(libstdcxx) = symbols::libstdcxx(bound.site.platform.arch) else { return Vec::new() };
    let mut found = BTreeMap::new();
    for (user, ids) in ids_by_user(bound, libstdcxx) {
        let ids = with_unseen(bound, user, ids);
        let Some(collision) = judge(bound, user, &ids).filter(|collision| are_both_started(bound, collision))
        else {
            continue;
        };
        // Whoever else uses the same two copies comes to the same harm.
        if let Collision::Facets { ids, numbering, .. } = collision {
            found.entry((ids.min(numbering), ids.max(numbering))).or_insert(collision);
        }
    }
    found.into_values().collect()
}

/// Who serves whom with the ids of libstdc++'s own facets. Programs instantiate facets of their own iterators, too
/// (`num_put<char, X>`): these are not libstdc++'s.
fn ids_by_user<'p>(
    bound: &Bound<'p>,
    libstdcxx: GccLibrary,
) -> BTreeMap<ObjectId, Vec<(&'p str, Reference)>> {
    let mut users = BTreeMap::<_, Vec<_>>::new();
    for (name, references) in bound.names() {
        let Some(name) = std::str::from_utf8(name).ok().filter(|name| name.ends_with("E2idE")) else {
            continue;
        };
        if libstdcxx.node_of(name).is_none() {
            continue;
        }
        for reference in references {
            users.entry(reference.from).or_default().push((name, *reference));
        }
    }
    users
}

/// An id of its own that a copy refers to without the loader: it is linked with `-Bsymbolic`, or hides it.
fn with_unseen<'p>(
    bound: &Bound<'_>,
    user: ObjectId,
    mut ids: Vec<(&'p str, Reference)>,
) -> Vec<(&'p str, Reference)> {
    let is_copy = ids.iter().any(|(_, reference)| reference.own);
    if is_copy && bound.reference(user, CTYPE).is_none() {
        ids.push((CTYPE, Reference { from: user, own: true, provider: Some(user) }));
    }
    ids
}

/// Two ids of one user that different counters number.
fn judge(bound: &Bound<'_>, user: ObjectId, ids: &[(&str, Reference)]) -> Option<Collision> {
    let mut counters = BTreeMap::<ObjectId, Option<ObjectId>>::new();
    let owners: BTreeSet<ObjectId> = ids.iter().filter_map(|(_, reference)| reference.provider).collect();
    if owners.len() < 2 {
        return None;
    }
    for owner in owners {
        counters.insert(owner, counter_of(bound, owner));
    }
    let numbered = |(name, reference): &(&str, Reference)| {
        let owner = reference.provider?;
        let counter = (*counters.get(&owner)?)?;
        Some((name.to_string(), owner, counter))
    };
    // What the user numbers itself, or else what stands first.
    let numbered: Vec<_> = ids.iter().filter_map(numbered).collect();
    let home = counter_of(bound, user);
    let own = numbered.iter().find(|(_, _, counter)| Some(*counter) == home).or(numbered.first())?;
    let shared = numbered.iter().find(|(_, _, counter)| *counter != own.2)?;
    Some(Collision::Facets {
        victim: user,
        ids: shared.1,
        numbering: own.2,
        shared: shared.0.clone(),
        own: own.0.clone(),
    })
}

/// Both copies number their ids. The libstdc++ of the system does so when somebody uses its streams or locales; since GCC
/// 13 it initialises the standard streams itself (src/c++98/ios_init.cc, `init_priority`), so that being loaded is enough.
fn are_both_started(bound: &Bound<'_>, collision: &Collision) -> bool {
    let Collision::Facets { ids, numbering, .. } = collision else { return true };
    let is_started = |copy: &ObjectId| {
        let starts_itself = matches!(copy, ObjectId::File(_)) || bound.base.gcc >= STREAMS_IN_LIBRARY;
        starts_itself || bound.files().any(|(user, _)| uses_locales_of(bound, user, *copy))
    };
    [ids, numbering].into_iter().all(is_started)
}

/// Whether a copy serves an object with members of the locale or of streams, be it instead of the object's own.
fn uses_locales_of(bound: &Bound<'_>, object: ObjectId, copy: ObjectId) -> bool {
    let ObjectId::File(file) = object else { return false };
    bound.process.bindings.of(file).iter().any(|binding| {
        binding.provider.object() == Some(copy) && bound.name_of(binding).is_some_and(is_of_locale)
    })
}

fn is_of_locale(name: &[u8]) -> bool {
    [&b"_ZNSt6locale"[..], b"_ZNKSt6locale", b"_ZNSt8ios_base"].iter().any(|start| name.starts_with(start))
}

/// Whose counter numbers the ids that an object uses or defines: the counter of the `_M_id` that it calls.
fn counter_of(bound: &Bound<'_>, object: ObjectId) -> Option<ObjectId> {
    let mut code = object;
    for _ in 0..CHAIN_MAX {
        let next = match bound.reference(code, M_ID) {
            Some(reference) => reference.provider?,
            None if bound.defines(code, M_ID) || bound.defines(code, COUNTER) => code,
            None => libstdcxx_of(bound, code).unwrap_or(code),
        };
        if next == code {
            return match bound.reference(code, COUNTER) {
                Some(reference) => reference.provider,
                None => Some(code),
            };
        }
        code = next;
    }
    None
}

/// Whose libstdc++ an object uses that has none of its own: who serves its references to the locale's members.
fn libstdcxx_of(bound: &Bound<'_>, object: ObjectId) -> Option<ObjectId> {
    let ObjectId::File(file) = object else { return None };
    let bindings = bound.process.bindings.of(file).iter().filter(|binding| !binding.own_definition);
    let mut providers = bindings.filter_map(|binding| {
        let name = bound.name_of(binding)?;
        let provider = binding.provider.object()?;
        (is_of_locale(name) && bound.defines(provider, M_ID)).then_some(provider)
    });
    providers.next()
}
