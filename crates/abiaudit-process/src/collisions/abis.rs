//! GNU's and LLVM's C++ runtime serving one object.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_loader::binding::ObjectId;

use super::Collision;
use super::bound::Bound;

/// What both runtimes export and what keeps state or layouts of its own behind it.
pub(super) const EXCEPTIONS: [&str; 9] = [
    "__cxa_throw",
    "__cxa_rethrow",
    "__cxa_begin_catch",
    "__cxa_end_catch",
    "__cxa_allocate_exception",
    "__cxa_free_exception",
    "__cxa_get_globals",
    "__gxx_personality_v0",
    "_ZTISt9exception",
];

/// Whose C++ runtime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Abi {
    Gnu,
    Llvm,
}

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    let mut providers = BTreeSet::new();
    for symbol in EXCEPTIONS {
        providers.extend(bound.references(symbol).iter().filter_map(|reference| reference.provider));
    }
    let abis: BTreeMap<ObjectId, Abi> = providers
        .into_iter()
        .filter_map(|provider| Some((provider, abi_of_provider(bound, provider)?)))
        .collect();
    if !abis.values().any(|abi| *abi == Abi::Llvm) {
        return Vec::new();
    }
    let mut users = BTreeMap::<ObjectId, Option<Abi>>::new();
    let mut mixed = BTreeMap::<(ObjectId, ObjectId), Vec<String>>::new();
    for symbol in EXCEPTIONS {
        for reference in bound.references(symbol) {
            let Some(provider) = reference.provider.filter(|provider| *provider != reference.from) else {
                continue;
            };
            let abi = *users.entry(reference.from).or_insert_with(|| abi_of_user(bound, reference.from));
            if let (Some(used), Some(served)) = (abi, abis.get(&provider))
                && used != *served
            {
                mixed.entry((reference.from, provider)).or_default().push(symbol.to_owned());
            }
        }
    }
    let collision = |((user, provider), mut symbols): (_, Vec<String>)| {
        symbols.sort();
        let user_is_gnu = users.get(&user).is_some_and(|abi| *abi == Some(Abi::Gnu));
        Collision::CxxAbis { user, provider, symbols, user_is_gnu }
    };
    mixed.into_iter().map(collision).collect()
}

/// Whose runtime the provider of an exception function is. libc++abi has no function that tells, but the mangled names of
/// its neighbours do.
fn abi_of_provider(bound: &Bound<'_>, provider: ObjectId) -> Option<Abi> {
    let stem = bound.stem(provider);
    if stem == "libc++" || stem == "libc++abi" {
        return Some(Abi::Llvm);
    }
    if stem == "libstdc++" {
        return Some(Abi::Gnu);
    }
    abi_of_user(bound, provider)
}

/// Whose runtime an object is built for: of which its symbols speak.
fn abi_of_user(bound: &Bound<'_>, object: ObjectId) -> Option<Abi> {
    /// Inline namespaces of LLVM's library: LLVM's own, Android's, Yandex's, Chromium's.
    const LLVM: [&str; 4] = ["St3__1", "St6__ndk1", "St4__y1", "St4__Cr"];
    /// GNU's own: the string of the C++11 ABI, error categories, its helper namespace; what old code has too.
    const GNU: [&str; 4] = ["St7__cxx11", "St3_V2", "_ZNSs", "_ZNSt8ios_base4InitC1Ev"];
    let Some(file) = bound.file(object) else {
        return (bound.stem(object) == "libstdc++").then_some(Abi::Gnu);
    };
    let symbols = &file.object.symbols;
    let mut abi = None;
    for symbol in symbols.iter() {
        let Ok(name) = std::str::from_utf8(symbols.name(symbol)) else { continue };
        if !name.starts_with("_Z") {
            continue;
        }
        if LLVM.iter().any(|part| name.contains(part)) {
            return Some(Abi::Llvm);
        }
        if GNU.iter().any(|part| name.contains(part)) {
            abi = Some(Abi::Gnu);
        }
    }
    let needs_gnu = || {
        let mut needed = file.object.dynamic.needed.iter().map(abiaudit_elf::Name::to_text);
        needed.any(|name| abiaudit_detect::stem(&name) == "libstdc++")
    };
    abi.or_else(|| needs_gnu().then_some(Abi::Gnu))
}
