//! References to symbols of glibc that are newer than the target become references to an older version of the same symbol.
//!
//! glibc gives a symbol a new version when it changes, or moves to another library: with 2.34 all of libpthread, libdl and
//! their like went into libc.so.6, and `pthread_create@GLIBC_2.34` is the function that was `pthread_create@GLIBC_2.2.5`.
//! What a new version changed is small where the symbol has one at all (`memcpy` that may not overlap, `pow` without error
//! handling of SVID), and a program that was linked on the target would have got the old one.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_edit::{Edit, Place, SymbolName};
use abiaudit_elf::{Object, SymbolVersion};
use abiaudit_policy::symbols::{Kind, Release, glibc};
use abiaudit_policy::{Libc, NodeVerdict, Target};

/// `__libc_start_main` of 2.34 runs the initialisers of the program; the older ones want to be given a function for it,
/// which programs linked later do not have.
const DIFFERENT: [&str; 1] = ["__libc_start_main"];

/// Edits that let an object take the newest version that the target has. Symbols without one are left.
pub(super) fn older_versions(object: &Object, target: &Target) -> Vec<Edit> {
    let (Libc::Glibc, Some((major, minor))) = (target.libc(), target.glibc_version()) else {
        return Vec::new();
    };
    let (Some(table), Ok(release)) = (glibc(target.arch()), format!("{major}.{minor}").parse::<Release>())
    else {
        return Vec::new();
    };
    let mut older: BTreeMap<(&str, &str), Vec<SymbolName>> = BTreeMap::new();
    for symbol in object.symbols.undefined() {
        let SymbolVersion::Needed(need, version) = object.version_of(symbol) else { continue };
        let (library, node) = (need.library.to_string(), version.name.to_string());
        let name = object.symbols.name_text(symbol);
        let is_new = matches!(target.allows_node(&node), NodeVerdict::TooNew { .. });
        if !is_new || !table.has_library(&library) || DIFFERENT.contains(&name.as_str()) {
            continue;
        }
        let exports = table.versions_of(&name);
        let candidates = exports.iter().filter(|export| {
            let allowed = export.version.is_some_and(|node| target.allows_node(node) == NodeVerdict::Allowed);
            allowed && export.is_in(release) && matches!(export.kind, Kind::Function)
        });
        // The newest: versions of one symbol are in the order of their age.
        let newest = candidates.max_by_key(|export| (export.since, export.default));
        if let Some((library, node)) = newest.and_then(|export| Some((export.library, export.version?))) {
            let name = SymbolName { name, version: Some(version.name.to_string()) };
            older.entry((library, node)).or_default().push(name);
        }
    }
    let libraries: BTreeSet<&str> = older.keys().map(|(library, _)| *library).collect();
    let needed = |library: &str| object.dynamic.needed.iter().any(|name| *name == *library);
    let add = libraries.into_iter().filter(|library| !needed(library));
    let add = add.map(|library| Edit::AddNeeded { library: library.to_owned(), place: Place::First });
    let assign = older.into_iter().map(|((library, node), symbols)| Edit::AssignVersion {
        symbols,
        library: library.to_owned(),
        version: node.to_owned(),
    });
    add.chain(assign).collect()
}
