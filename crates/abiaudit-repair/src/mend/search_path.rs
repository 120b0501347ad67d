//! Search paths of the build machine become paths relative to the object.

use abiaudit_edit::{Edit, SearchPathKind};
use abiaudit_loader::search::{EntryKind, Outcome, PathTag};
use abiaudit_rules::Audit;
use abiaudit_scan::SITE_PACKAGES;

use crate::names::origin_to;

/// Takes entries out that do not start from `$ORIGIN`, and adds the directories of what the object needs and the wheel
/// has, where no entry leads there. Nothing if all entries are relative to the object.
pub(super) fn relative(audit: &Audit<'_>, index: usize) -> Vec<Edit> {
    let entries: Vec<_> =
        audit.resolution.search_paths(index).into_iter().filter(|entry| entry.effective).collect();
    let Some(first) = entries.first() else { return Vec::new() };
    if entries.iter().all(|entry| entry.kind == EntryKind::Origin) {
        return Vec::new();
    }
    let kind = if first.tag == PathTag::Rpath { SearchPathKind::Rpath } else { SearchPathKind::Runpath };
    let mut path: Vec<String> = Vec::new();
    let kept = entries.into_iter().filter(|entry| entry.kind == EntryKind::Origin).map(|entry| entry.raw);
    for entry in kept.chain(directories(audit, index)) {
        if !path.contains(&entry) {
            path.push(entry);
        }
    }
    match path.as_slice() {
        [] => vec![Edit::RemoveSearchPath],
        path => vec![Edit::SetSearchPath { kind, path: path.join(":") }],
    }
}

/// `$ORIGIN/...` for each library of the wheel that the object needs and the loader does not find.
fn directories(audit: &Audit<'_>, index: usize) -> Vec<String> {
    let Some(from) = directory(audit, index) else { return Vec::new() };
    let unreachable = audit.resolution.needs_of(index).iter().filter_map(|need| match &need.outcome {
        Outcome::Unreachable { present } => present.first().copied(),
        _ => None,
    });
    unreachable.filter_map(|member| Some(origin_to(&from, &directory(audit, member)?))).collect()
}

/// The directory of a member, relative to site-packages; `None` if it is installed elsewhere.
fn directory(audit: &Audit<'_>, index: usize) -> Option<String> {
    let installed = &audit.objects.get(index)?.member.installed;
    let inside = installed.strip_prefix(SITE_PACKAGES)?.trim_start_matches('/');
    Some(inside.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned())
}
