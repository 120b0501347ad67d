//! Which extension modules an `import` opens, as far as Python sources say it literally.
//!
//! Seen: import statements at module level, also inside `if`, `try`, `with`, loops and class bodies; conditions that
//! Linux decides (`sys.platform`, `os.name`, `TYPE_CHECKING`) are decided; `except` branches are taken if something
//! that the `try` imports is not in the inputs.
//!
//! Not seen: what functions import, though the module calls them; `importlib.import_module` and `__import__`; names
//! that `__getattr__` imports when they are first used; plug-ins and entry points; what native code imports (a Cython
//! module imports what its `.pyx` imports); modules that Python itself brings.

pub mod follow;
pub mod scan;
mod tokens;

/// The dotted name of the extension module that a path below `site-packages` is, by the suffixes that CPython looks
/// for (`importlib.machinery.EXTENSION_SUFFIXES`: `.cpython-312-x86_64-linux-gnu.so`, `.abi3.so`, `.so`).
pub(crate) fn module_of(path: &str) -> Option<String> {
    let (directory, base) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, suffix) = base.split_once('.')?;
    let is_suffix = suffix == "so"
        || suffix == "abi3.so"
        || (suffix.ends_with(".so") && ["cpython-", "pypy"].iter().any(|tag| suffix.starts_with(tag)));
    let components = || directory.split('/').filter(|part| !part.is_empty()).chain([stem]);
    (is_suffix && !path.starts_with('/') && components().all(is_identifier))
        .then(|| components().collect::<Vec<_>>().join("."))
}

/// ASCII letters, digits and `_`, or anything beyond ASCII.
fn is_identifier(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    text.chars().next().is_some_and(|first| !first.is_ascii_digit()) && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::module_of;

    #[test]
    fn suffixes_of_extension_modules() {
        let cases = [
            ("a/b.cpython-312-x86_64-linux-gnu.so", Some("a.b")),
            ("b.abi3.so", Some("b")),
            ("a/_C.so", Some("a._C")),
            ("a/libx.so.1", None),
            ("a.libs/libx-1.2.so", None),
            ("a/b.py", None),
            ("a/b.cpython-312.pyc", None),
        ];
        for (path, module) in cases {
            assert_eq!(module_of(path).as_deref(), module, "{path}");
        }
    }
}
