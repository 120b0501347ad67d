//! Static thread-local storage: what all objects of the process ask for together.

use abiaudit_detect::Replaces;
use abiaudit_loader::binding::ObjectId;
use abiaudit_policy::Libc;

use super::Collision;
use super::bound::Bound;

/// Bytes that glibc keeps for objects which are loaded later (elf/dl-tls.c, `_dl_tls_static_surplus_init`: 1664 with the
/// default tunables; `TLS_STATIC_SURPLUS` before 2.32).
const SURPLUS: u64 = 1664;

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    if bound.site.platform.libc != Libc::Glibc {
        return Vec::new();
    }
    let initial = bound.initial();
    let later = bound.files().filter(|(object, _)| !initial.contains(object));
    let blocks = later.filter_map(|(object, file)| {
        let (size, align) = file.object.tls().filter(|_| file.object.dynamic.static_tls())?;
        let size = size.checked_next_multiple_of(align.max(1)).unwrap_or(size);
        (!is_for_preload(bound, object)).then_some((object, size))
    });
    let objects: Vec<(ObjectId, u64)> = blocks.collect();
    let bytes = objects.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
    if bytes > SURPLUS { vec![Collision::StaticTls { bytes, objects }] } else { Vec::new() }
}

/// An allocator that is opened and that nothing needs is meant for `LD_PRELOAD` (jemalloc in ray): the loader makes room
/// for what is there at the start.
fn is_for_preload(bound: &Bound<'_>, object: ObjectId) -> bool {
    let opened = bound.process.loads.iter().any(|load| load.object == object && load.loader.is_none());
    opened
        && bound.carries(object).is_some_and(|carries| {
            carries.allocators.iter().any(|allocator| allocator.replaces == Replaces::Malloc)
        })
}
