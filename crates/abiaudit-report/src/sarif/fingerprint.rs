//! What makes two results of different runs the same result.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::model::Wheel;

/// A digest of `parts` in order, 32 hexadecimal digits. Each part is prefixed by its length, so that parts cannot run
/// into each other.
pub(super) fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let leading = hasher.finalize().iter().take(16).fold(0_u128, |bits, &byte| bits << 8 | u128::from(byte));
    format!("{leading:032x}")
}

/// What stays the same of a wheel from one release to the next: the name, Python and ABI tags, and the architecture.
pub(super) fn wheel_identity(wheel: &Wheel) -> String {
    let mut abis: Vec<&str> =
        wheel.tags.iter().map(|tag| tag.rsplit_once('-').map_or(tag.as_str(), |(abi, _)| abi)).collect();
    abis.sort_unstable();
    abis.dedup();
    let name = wheel.name.as_deref().unwrap_or_else(|| wheel.file_name());
    format!("{name} {} {}", abis.join("."), wheel.arch.as_deref().unwrap_or("any"))
}

/// `member` without what changes from build to build: the content hashes that auditwheel puts into the names of grafted
/// libraries (`libgfortran-040039e1-0352e75f.so.5.0.0`: once for each repair), and the version in `NAME-1.2.dist-info`.
pub(super) fn normalised_member<'a>(member: &'a str, wheel: &Wheel) -> Cow<'a, str> {
    let (directory, file) =
        member.rsplit_once('/').map_or(("", member), |(directory, file)| (directory, file));
    let directory = without_version(directory, wheel);
    let file = without_hashes(file);
    match (&directory, &file) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => Cow::Borrowed(member),
        _ if directory.is_empty() => file,
        _ => Cow::Owned(format!("{directory}/{file}")),
    }
}

fn without_version<'a>(directory: &'a str, wheel: &Wheel) -> Cow<'a, str> {
    let (top, rest) = directory.split_once('/').map_or((directory, None), |(top, rest)| (top, Some(rest)));
    for suffix in [".dist-info", ".data"] {
        let version = wheel.version.as_deref().unwrap_or_default();
        let name = top
            .strip_suffix(suffix)
            .and_then(|stem| stem.strip_suffix(version))
            .and_then(|s| s.strip_suffix('-'));
        if let Some(name) = name {
            return Cow::Owned(match rest {
                Some(rest) => format!("{name}{suffix}/{rest}"),
                None => format!("{name}{suffix}"),
            });
        }
    }
    Cow::Borrowed(directory)
}

/// Removes every `-[0-9a-f]{8}` that stands at the end of the name's stem, before `.so`.
fn without_hashes(file: &str) -> Cow<'_, str> {
    let Some(stem_end) = file.find(".so") else { return Cow::Borrowed(file) };
    let (mut stem, extension) = file.split_at(stem_end);
    while let Some((shorter, hash)) = stem.rsplit_once('-') {
        let is_hash = hash.len() == 8 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hash {
            break;
        }
        stem = shorter;
    }
    if stem.len() == stem_end { Cow::Borrowed(file) } else { Cow::Owned(format!("{stem}{extension}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_hashes_and_versions_only() {
        let wheel = Wheel { version: Some("2.3.5".to_owned()), ..Wheel::default() };
        for (member, expected) in [
            ("n.libs/libgfortran-040039e1-0352e75f.so.5.0.0", "n.libs/libgfortran.so.5.0.0"),
            ("n.libs/libscipy_openblas64_-fdde5778.so", "n.libs/libscipy_openblas64_.so"),
            ("libopenblasp-r0-121ca252.3.30.so", "libopenblasp-r0-121ca252.3.30.so"),
            ("lib/libfoo-12345678x.so", "lib/libfoo-12345678x.so"),
            ("lib/libfoo-ABCDEF01.so", "lib/libfoo-ABCDEF01.so"),
            ("numpy-2.3.5.dist-info/RECORD", "numpy.dist-info/RECORD"),
            ("numpy-2.3.5.data/purelib/x.so", "numpy.data/purelib/x.so"),
            ("other-9.dist-info/RECORD", "other-9.dist-info/RECORD"),
            ("plain.txt", "plain.txt"),
        ] {
            assert_eq!(normalised_member(member, &wheel), expected);
        }
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
        assert_eq!(digest(["ab"]).len(), 32);
    }
}
