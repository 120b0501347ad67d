//! BLAS functions under their plain names, served by another library than the one that was meant.

use std::collections::BTreeMap;

use abiaudit_elf::Name;
use abiaudit_loader::binding::ObjectId;

use super::Collision;
use super::bound::Bound;

/// A few functions that every BLAS or LAPACK has; builds that rename them (`scipy_dgemm_`, `dgemm_64_`) cannot collide, and
/// `xerbla_` is meant to be replaced.
const PLAIN: [&[u8]; 10] = [
    b"cblas_ddot",
    b"cblas_dgemm",
    b"cblas_sgemm",
    b"ddot_",
    b"dgemm_",
    b"dgesv_",
    b"dgetrf_",
    b"dsyrk_",
    b"sgemm_",
    b"zdotu_",
];

pub(super) fn is_plain(name: &[u8]) -> bool {
    PLAIN.contains(&name)
}

pub(super) fn find(bound: &Bound<'_>) -> Vec<Collision> {
    let mut found = BTreeMap::<(ObjectId, ObjectId, ObjectId), Vec<String>>::new();
    for (name, references) in bound.names().filter(|(name, _)| is_plain(name)) {
        let name = String::from_utf8_lossy(name).into_owned();
        for reference in references {
            let Some(provider) = reference.provider.filter(|provider| *provider != reference.from) else {
                continue;
            };
            let Some(meant) = meant(bound, reference.from, reference.own, &name) else { continue };
            // The parts of MKL are made to export the same.
            let parts_of_mkl =
                [meant, provider].iter().all(|object| bound.stem(*object).starts_with("libmkl"));
            if meant != provider && !parts_of_mkl {
                found.entry((reference.from, meant, provider)).or_default().push(name.clone());
            }
        }
    }
    let collision = |((user, meant, provider), symbols)| Collision::Blas { user, meant, provider, symbols };
    found.into_iter().map(collision).collect()
}

/// Who was meant: the object itself if it has the function, else the first that it needs and that has it.
fn meant(bound: &Bound<'_>, user: ObjectId, own: bool, name: &str) -> Option<ObjectId> {
    if own {
        return Some(user);
    }
    let needed: Vec<String> = bound.file(user)?.object.dynamic.needed.iter().map(Name::to_text).collect();
    let mut exporters = bound.files().filter(|(_, file)| super::bound::exports(file.object, name));
    let is_needed = |object: ObjectId| needed.contains(&bound.loader_name(object));
    exporters.find(|(object, _)| is_needed(*object)).map(|(object, _)| object)
}
