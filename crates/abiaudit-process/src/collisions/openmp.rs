//! Two OpenMP runtimes in one process. The loader tells them apart by soname: of two libraries with one name, one is
//! loaded, and there is nothing to say.

use std::collections::BTreeMap;

use abiaudit_detect::{Carriage, OpenMpFamily};
use abiaudit_loader::binding::ObjectId;

use super::bound::Bound;
use super::{Collision, Grade};

/// One that is loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenMpRuntime {
    /// The object.
    pub object: ObjectId,
    /// Whose it is.
    pub family: OpenMpFamily,
    /// The name by which the loader knows it.
    pub name: String,
    /// An object other than itself that it serves; `None` if it serves nobody.
    pub user: Option<ObjectId>,
    /// Symbols or the soname say that it is one, not texts alone.
    pub proved: bool,
}

/// Who uses two OpenMP runtimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenMpUse {
    /// Both serve somebody, or their own object.
    Both,
    /// One of them serves all, the other's users too: this one, which was meant to be served by the other.
    TakenOver {
        /// An object that needs the one and is served by the other.
        user: ObjectId,
    },
    /// At most one of them serves anybody, and nobody was meant to be served by the other.
    One,
}

pub(super) fn grade(first: &OpenMpRuntime, second: &OpenMpRuntime, used: OpenMpUse) -> Grade {
    if used != OpenMpUse::Both {
        return Grade::Duplicated;
    }
    match (is_gnu(first), is_gnu(second)) {
        (false, false) if first.proved && second.proved => Grade::Broken,
        (false, false) => Grade::Differs,
        _ => Grade::Performance,
    }
}

fn is_gnu(runtime: &OpenMpRuntime) -> bool {
    runtime.family == OpenMpFamily::Libgomp
}

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    let runtimes = runtimes(bound);
    if runtimes.len() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (position, first) in runtimes.iter().enumerate() {
        for second in runtimes.iter().skip(position + 1) {
            let used = usage(bound, first, second);
            found.push(Collision::OpenMp { first: first.clone(), second: second.clone(), used });
        }
    }
    found
}

/// All that are loaded, in the order of loading.
fn runtimes(bound: &Bound<'_>) -> Vec<OpenMpRuntime> {
    let mut users = BTreeMap::<ObjectId, ObjectId>::new();
    for (_, references) in bound.names().filter(|(name, _)| is_openmp(name)) {
        for reference in references {
            if let Some(provider) = reference.provider.filter(|provider| *provider != reference.from) {
                users.entry(provider).or_insert(reference.from);
            }
        }
    }
    let mut runtimes = Vec::new();
    for load in &bound.process.loads {
        let object = load.object;
        let Some((family, proved)) = family_of(bound, object) else { continue };
        let name = bound.loader_name(object);
        runtimes.push(OpenMpRuntime { object, family, name, user: users.get(&object).copied(), proved });
    }
    runtimes
}

fn is_openmp(name: &[u8]) -> bool {
    [&b"GOMP_"[..], b"omp_", b"__kmpc_"].iter().any(|start| name.starts_with(start))
}

/// The family of a loaded object that is a runtime or holds one, and whether more than texts say so.
fn family_of(bound: &Bound<'_>, object: ObjectId) -> Option<(OpenMpFamily, bool)> {
    let Some(file) = bound.file(object) else {
        return (bound.stem(object) == "libgomp").then_some((OpenMpFamily::Libgomp, true));
    };
    let exports = |name| super::bound::exports(file.object, name);
    if file.member.markers.is_empty() && !exports("GOMP_parallel") && !exports("__kmpc_fork_call") {
        return None;
    }
    let carries = bound.carries(object)?;
    let real = carries.openmp.iter().filter(|openmp| openmp.family != OpenMpFamily::Stubs);
    let mut carried = real.filter_map(|openmp| match openmp.carriage {
        Carriage::Library | Carriage::Exports => Some((openmp.family, true)),
        Carriage::Static => Some((openmp.family, false)),
        Carriage::Needs | Carriage::Refers => None,
    });
    carried.next()
}

fn usage(bound: &Bound<'_>, first: &OpenMpRuntime, second: &OpenMpRuntime) -> OpenMpUse {
    // A runtime that shows in texts alone serves its own object.
    let is_used = |runtime: &OpenMpRuntime| runtime.user.is_some() || !runtime.proved;
    if is_used(first) && is_used(second) {
        return OpenMpUse::Both;
    }
    let (serving, idle) = if is_used(first) { (first, second) } else { (second, first) };
    let needs_idle = |user: &ObjectId| {
        let needed = bound.file(*user).into_iter().flat_map(|file| &file.object.dynamic.needed);
        needed.map(abiaudit_elf::Name::to_text).any(|name| name == idle.name)
    };
    let of_serving = bound.names().filter(|(name, _)| is_openmp(name)).flat_map(|(_, references)| references);
    let mut users = of_serving.filter(|r| r.provider == Some(serving.object)).map(|r| r.from);
    users.find(needs_idle).map_or(OpenMpUse::One, |user| OpenMpUse::TakenOver { user })
}
