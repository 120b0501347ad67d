//! Names of libraries, as linkers and repair tools write them.

/// What a library is called before versions, build variants and hashes: `libgomp` of `libgomp-e985bcbb.so.1.0.0`,
/// `libopenblasp` of `libopenblasp-r0-2eadb500.3.30.so`, `libstdc++` of `libstdc++.so.6`.
pub fn stem(soname: &str) -> &str {
    let base = soname.rsplit('/').next().unwrap_or(soname);
    let end = base.find(['-', '.']).unwrap_or(base.len());
    &base[..end]
}

/// The hash that a repair tool put into the name of a library it copied into a wheel: eight hexadecimal digits of the
/// file's SHA-256 (auditwheel's `copylib`), the last of them where a copy was copied again.
pub fn vendored_hash(soname: &str) -> Option<&str> {
    let base = soname.rsplit('/').next().unwrap_or(soname);
    let is_hash = |part: &&str| part.len() == 8 && part.bytes().all(|b| b.is_ascii_hexdigit());
    base.split(['-', '.']).skip(1).filter(is_hash).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (name, expected, hash) in [
            ("libgomp-e985bcbb.so.1.0.0", "libgomp", Some("e985bcbb")),
            ("libgomp.so.1", "libgomp", None),
            ("libopenblasp-r0-2eadb500.3.30.so", "libopenblasp", Some("2eadb500")),
            ("libgfortran-040039e1-0352e75f.so.5.0.0", "libgfortran", Some("0352e75f")),
            ("libnvjpeg.4a0b5c81.so.13", "libnvjpeg", Some("4a0b5c81")),
            ("torch/lib/libstdc++.so.6", "libstdc++", None),
            ("", "", None),
        ] {
            assert_eq!((stem(name), vendored_hash(name)), (expected, hash), "{name}");
        }
    }
}
