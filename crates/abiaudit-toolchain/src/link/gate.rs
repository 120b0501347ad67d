//! What a linker lets pass and the target's loader does not.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use abiaudit_elf::{Image, Object, Parsed, SymbolVersion, Wants};
use abiaudit_policy::{NodeVerdict, PolicySet, Target};

use crate::archive;
use crate::environment::{OLD_STRINGS, needs_old_strings};
use crate::error::{Error, Result, read};
use crate::manifest::Manifest;
use crate::nonshared::NEW_STRING_ABI;
use crate::relocatable::{Place, Relocatable};

/// Checks a shared library or an executable that was linked: it needs no version that the target lacks, no symbol that
/// was refused (a linker leaves undefined symbols in shared libraries and says nothing), and no packed relocations.
/// `arguments` are those of the link, to say which object needs a refused symbol.
pub fn check_output(output: &Path, arguments: &[OsString], manifest: &Manifest) -> Result<()> {
    let target = PolicySet::builtin()
        .target(&manifest.target)
        .map_err(|error| Error::Target { target: manifest.target.clone(), reason: error.to_string() })?;
    let object = read_object(output)?;
    let mut problems = too_new(&object, &target);
    problems.extend(refused(&object, arguments, manifest));
    if object.dynamic.relr {
        problems.push("relative relocations are packed (DT_RELR)".to_owned());
    }
    let needs = |soname: &str| object.dynamic.needed.iter().any(|name| *name == soname);
    if manifest.has_libpthread() && needs("libstdc++.so.6") && !needs("libpthread.so.0") {
        problems.push(
            "it needs libstdc++.so.6 and not libpthread.so.0: std::thread would jump to address 0".to_owned(),
        );
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Link(format!(
        "{} would not load on {}:\n  {}",
        output.display(),
        manifest.target,
        problems.join("\n  ")
    )))
}

/// Checks what goes into a link for a target that has only the old `std::string`: an object compiled for the new one would
/// link, and find its facets in no locale (`std::bad_cast`).
pub(super) fn check_inputs(arguments: &[OsString], manifest: &Manifest) -> Result<()> {
    if !needs_old_strings(manifest) {
        return Ok(());
    }
    for path in arguments.iter().map(PathBuf::from) {
        if path.extension().is_none_or(|extension| extension != "o") {
            continue;
        }
        let Some(file) = read(&path).ok().and_then(|bytes| Relocatable::parse(&path, &bytes).ok().flatten())
        else {
            continue;
        };
        let is_new = |name: &String| name.contains("__cxx11") || name.contains("B5cxx11");
        if let Some(name) = file.symbols.iter().map(crate::relocatable::Symbol::name_text).find(is_new) {
            return Err(Error::Link(format!(
                "{} is compiled for the new std::string ({name}), which {} has not (GLIBCXX_{NEW_STRING_ABI}); compile \
                 everything with {OLD_STRINGS}",
                path.display(),
                manifest.target
            )));
        }
    }
    Ok(())
}

/// Version nodes that the target has not, with the symbols that need them.
pub(crate) fn too_new(object: &Object, target: &Target) -> Vec<String> {
    let mut nodes: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for need in &object.versions.needs {
        for version in need.versions.iter().filter(|version| !version.weak) {
            let name = version.name.to_text();
            if matches!(target.allows_node(&name), NodeVerdict::TooNew { .. } | NodeVerdict::Unknown)
                && !crate::version::admits(target, &name)
            {
                nodes.insert((name, need.library.to_text()), BTreeSet::new());
            }
        }
    }
    for symbol in object.symbols.undefined() {
        if let SymbolVersion::Needed(need, version) = object.version_of(symbol)
            && let Some(symbols) = nodes.get_mut(&(version.name.to_text(), need.library.to_text()))
        {
            symbols.insert(object.symbols.name_text(symbol));
        }
    }
    let line = |((node, library), symbols): ((String, String), BTreeSet<String>)| {
        format!("needs {node} of {library} ({})", symbols.into_iter().collect::<Vec<_>>().join(", "))
    };
    nodes.into_iter().map(line).collect()
}

/// Strong references to symbols that nothing of the target has.
fn refused(object: &Object, arguments: &[OsString], manifest: &Manifest) -> Vec<String> {
    let unversioned = object
        .symbols
        .undefined()
        .filter(|symbol| !symbol.is_weak() && object.version_of(symbol) == SymbolVersion::Unversioned)
        .map(|symbol| object.symbols.name_text(symbol));
    let refused: Vec<(String, &String)> =
        unversioned.filter_map(|name| manifest.refused.get(&name).map(|reason| (name, reason))).collect();
    if refused.is_empty() {
        return Vec::new();
    }
    let users = users(arguments, &refused.iter().map(|(name, _)| name.as_str()).collect());
    refused
        .into_iter()
        .map(|(name, reason)| {
            let by = users
                .get(&name)
                .map_or_else(String::new, |files| format!(", needed by {}", files.join(", ")));
            format!("{name}{by}: {reason}")
        })
        .collect()
}

/// Which of the files of a link refer to these symbols. Files that cannot be read are passed over: this only helps to
/// find the place.
fn users(arguments: &[OsString], names: &BTreeSet<&str>) -> BTreeMap<String, Vec<String>> {
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in arguments.iter().map(PathBuf::from) {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let Some(bytes) = extension.filter(|e| ["o", "a", "lo"].contains(e)).and_then(|_| read(&path).ok())
        else {
            continue;
        };
        let members = if extension == Some("a") {
            archive::members(&path, &bytes).unwrap_or_default()
        } else {
            vec![(String::new(), &bytes[..])]
        };
        for (member, data) in members {
            let origin = if member.is_empty() { path.clone() } else { archive::member_path(&path, &member) };
            let Ok(Some(file)) = Relocatable::parse(&origin, data) else { continue };
            for symbol in file.symbols.iter().filter(|symbol| symbol.place == Place::Undefined) {
                let name = symbol.name_text();
                if names.contains(name.as_str()) {
                    users.entry(name).or_default().push(origin.display().to_string());
                }
            }
        }
    }
    users
}

/// Reads what the loader would read, and no more: a library may be large.
pub(crate) fn read_object(path: &Path) -> Result<Object> {
    const PASSES: usize = 64;
    let failed = |source| Error::File { action: "read", path: path.to_owned(), source };
    let malformed = |found: String| Error::Malformed { path: path.to_owned(), what: "linked file", found };
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut image = Image::empty(size);
    for _ in 0..PASSES {
        match Object::parse(&image, &Wants::default()).map_err(|error| malformed(error.to_string()))? {
            Parsed::Complete(object) => return Ok(*object),
            Parsed::Missing(ranges) => {
                for range in ranges {
                    let length = range.end.min(size).saturating_sub(range.start);
                    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
                    file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
                    file.read_exact(&mut bytes).map_err(failed)?;
                    image.insert(range.start, bytes);
                }
            }
        }
    }
    Err(malformed("its tables lead on and on".to_owned()))
}
