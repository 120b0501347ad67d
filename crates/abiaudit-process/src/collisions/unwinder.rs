//! Two stack unwinders in one process.

use std::collections::BTreeMap;

use abiaudit_detect::{CxxClass, UnwinderKind};
use abiaudit_elf::SymbolType;
use abiaudit_loader::binding::{Binding, ObjectId};

use super::Collision;
use super::bound::Bound;

const GNU: &str = "libgcc_s";

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    let mut found = interposed(bound);
    found.extend(bound.files().filter_map(|(object, _)| private(bound, object)));
    found
}

/// libgcc_s calls its own exported functions through the loader. If the object that pulled it in has another unwinder
/// earlier in its list, that one serves, and reads libgcc_s's contexts as its own: for all who throw with libgcc_s.
fn interposed(bound: &Bound<'_>) -> Vec<Collision> {
    let mut symbols = BTreeMap::<(ObjectId, ObjectId), Vec<String>>::new();
    for (name, references) in bound.names().filter(|(name, _)| name.starts_with(b"_Unwind_")) {
        for reference in references {
            let Some(provider) = reference.provider else { continue };
            let is_own = reference.own && provider != reference.from;
            if is_own && bound.stem(reference.from) == GNU && bound.stem(provider) != GNU {
                let name = String::from_utf8_lossy(name).into_owned();
                symbols.entry((reference.from, provider)).or_default().push(name);
            }
        }
    }
    symbols
        .into_iter()
        .filter(|((unwinder, _), _)| is_used(bound, *unwinder))
        .map(|((unwinder, provider), symbols)| Collision::UnwinderInterposed { unwinder, provider, symbols })
        .collect()
}

/// Somebody throws or resumes with this unwinder. One that was pulled in, and whose would-be users are all served by the
/// other, or have their own, does no harm.
fn is_used(bound: &Bound<'_>, unwinder: ObjectId) -> bool {
    const ENTRANCES: [&str; 3] = ["_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow"];
    let references = ENTRANCES.iter().flat_map(|entrance| bound.references(entrance));
    references.into_iter().any(|reference| reference.from != unwinder && reference.provider == Some(unwinder))
}

/// An exception that passes through an object runs that object's personality function, and with a private unwinder that
/// one's register table, which is set up only when the object throws itself.
fn private(bound: &Bound<'_>, object: ObjectId) -> Option<Collision> {
    let file = bound.file(object)?;
    // What unwinds with somebody else's unwinder refers to it; what unwinds at all has texts of a runtime.
    let refers = file
        .object
        .symbols
        .undefined()
        .any(|symbol| file.object.symbols.name(symbol).starts_with(b"_Unwind_"));
    if refers || file.member.markers.is_empty() {
        return None;
    }
    let carries = bound.carries(object)?;
    let own_runtime = carries.cxx.has_own_copy() && carries.cxx.class != CxxClass::Vendored;
    if carries.unwinder.kind != UnwinderKind::Private || !own_runtime {
        return None;
    }
    let (other, symbol) = crossing(bound, object)?;
    Some(Collision::PrivateUnwinder { object, other, symbol })
}

/// A C++ call from the object to another file or the reverse, by its bindings.
fn crossing(bound: &Bound<'_>, object: ObjectId) -> Option<(ObjectId, String)> {
    let touches = |binding: &&Binding| {
        let from = ObjectId::File(binding.file);
        (from == object) != (binding.provider.object() == Some(object))
    };
    let mut calls = bound.process.bindings.iter().filter(touches).filter_map(|binding| {
        let name = bound.name_of(binding).filter(|name| is_call(name))?;
        let file = bound.site.files.get(binding.file as usize)?;
        let symbol = file.object.symbols.get(binding.symbol)?;
        let is_code = matches!(symbol.symbol_type(), SymbolType::Function | SymbolType::None);
        let from = ObjectId::File(binding.file);
        let other = if from == object { binding.provider.object()? } else { from };
        (is_code && !symbol.is_weak()).then(|| (other, String::from_utf8_lossy(name).into_owned()))
    });
    calls.next()
}

/// A C++ function: no operator new or delete, which do not throw through others' frames, and no table or guard.
fn is_call(name: &[u8]) -> bool {
    const NOT: [&[u8]; 4] = [b"_ZT", b"_ZG", b"_Zn", b"_Zd"];
    name.starts_with(b"_Z") && !NOT.iter().any(|start| name.starts_with(start))
}
