//! Names of grafted libraries, and relative paths to them.

use std::fmt::Write as _;

/// Where the scan imagines the environment.
pub(crate) const IMAGINED_PREFIX: &str = "/prefix/";

/// The name of a copy: that of the file with the first eight digits of its SHA-256 before the first dot, as auditwheel has
/// it (`libxml2-1b2c3d4e.so.2.9.14`), so that two libraries of one soname never meet in a process. A file whose own name
/// says nothing (a `.debug` file, auditwheel's realpath naming) is called after its soname.
pub(crate) fn grafted_name(file_name: &str, soname: &str, sha256: &[u8; 32]) -> String {
    let telling = file_name.contains(".so") && !file_name.ends_with(".debug");
    let name = if telling { file_name } else { soname };
    let hash = hex(sha256.get(..4).unwrap_or_default());
    let (base, extension) = name.split_once('.').unwrap_or((name, "so"));
    if base.ends_with(&format!("-{hash}")) { name.to_owned() } else { format!("{base}-{hash}.{extension}") }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `$ORIGIN/...` from one directory to another, both relative to site-packages and without `.` and `..`.
pub(crate) fn origin_to(from: &str, to: &str) -> String {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let (from, to) = (parts(from), parts(to));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let ups = std::iter::repeat_n("..".to_owned(), from.len() - common);
    let path: Vec<String> =
        std::iter::once("$ORIGIN".to_owned()).chain(ups).chain(to.into_iter().skip(common)).collect();
    path.join("/")
}

/// The interpreter as a library: `libpython3.12.so.1.0`, with the ABI flags that some builds have.
pub(crate) fn is_libpython(soname: &str) -> bool {
    let Some(rest) = soname.strip_prefix("libpython") else { return false };
    let Some((version, rest)) = rest.split_once(".so") else { return false };
    let digits = version.trim_end_matches(|c: char| c.is_ascii_lowercase());
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let hash = [0x1b, 0x2c, 0x3d, 0x4e].into_iter().chain([0; 28]).collect::<Vec<u8>>();
        let hash: [u8; 32] = hash.try_into().expect("32 bytes");
        for (file, soname, name) in [
            ("libxml2.so.2.9.14", "libxml2.so.2", "libxml2-1b2c3d4e.so.2.9.14"),
            ("libxml2-1b2c3d4e.so.2.9.14", "libxml2.so.2", "libxml2-1b2c3d4e.so.2.9.14"),
            ("libgomp.so.1.0.0-8.5.0-10.el8_6.x86_64.debug", "libgomp.so.1", "libgomp-1b2c3d4e.so.1"),
            ("plugin", "plugin", "plugin-1b2c3d4e.so"),
        ] {
            assert_eq!(grafted_name(file, soname, &hash), name);
        }
    }

    #[test]
    fn paths() {
        assert_eq!(origin_to("", "p.libs"), "$ORIGIN/p.libs");
        assert_eq!(origin_to("p/sub", "p.libs"), "$ORIGIN/../../p.libs");
        assert_eq!(origin_to("p/sub", "p/lib"), "$ORIGIN/../lib");
        assert_eq!(origin_to("p.libs", "p.libs"), "$ORIGIN");
    }

    #[test]
    fn libpython() {
        for yes in [
            "libpython3.12.so.1.0",
            "libpython2.7.so.1.0",
            "libpython3.8m.so.1.0",
            "libpython3.so",
            "libpython3.13t.so.1.0",
        ] {
            assert!(is_libpython(yes), "{yes}");
        }
        for no in ["libpython.so", "libpythonic.so.1", "libpython3.12.so.x", "libpyside6.abi3.so"] {
            assert!(!is_libpython(no), "{no}");
        }
    }
}
