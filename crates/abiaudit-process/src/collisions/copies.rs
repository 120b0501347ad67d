//! Runtime libraries that are loaded twice, and parts of a newer libstdc++ that the whole process sees.

use std::collections::BTreeMap;

use abiaudit_detect::{CxxClass, Exposure};
use abiaudit_loader::binding::ObjectId;

use super::Collision;
use super::bound::Bound;

/// Libraries that wheels bring copies of, and whose copies keep state of their own (open units, for one).
const FAMILIES: [&str; 2] = ["libgfortran", "libquadmath"];

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    let mut found = duplicates(bound);
    found.extend(partial(bound));
    found
}

fn duplicates(bound: &Bound<'_>) -> Vec<Collision> {
    let mut copies = BTreeMap::<&'static str, Vec<ObjectId>>::new();
    for load in &bound.process.loads {
        let stem = bound.stem(load.object);
        if let Some(family) = FAMILIES.into_iter().find(|family| *family == stem) {
            copies.entry(family).or_default().push(load.object);
        }
    }
    copies.retain(|_, objects| objects.len() > 1);
    copies.into_iter().map(|(family, objects)| Collision::DuplicateRuntime { family, objects }).collect()
}

/// Objects in the global scope that export what a split toolchain linked in.
fn partial(bound: &Bound<'_>) -> Vec<Collision> {
    let global = bound.process.global.iter().copied();
    let exporting = global.filter_map(|object| {
        let cxx = &bound.carries(object)?.cxx;
        if cxx.class != CxxClass::Partial || cxx.exposure == Exposure::Hidden {
            return None;
        }
        let newer = cxx.exported.iter().filter(|definition| !definition.base);
        let mut symbols: Vec<String> = newer.map(|definition| definition.name.clone()).collect();
        symbols.sort();
        (!symbols.is_empty()).then_some(Collision::PartialInGlobalScope { object, symbols })
    });
    exporting.collect()
}
