//! The list of inputs.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Replaces `-` by the paths on standard input (one a line, or separated by NUL bytes if there are any), and a directory
/// of wheels by these.
pub fn expand(inputs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut from_stdin = false;
    for input in inputs {
        if input.as_os_str() != "-" {
            paths.push(input.clone());
        } else if !std::mem::replace(&mut from_stdin, true) {
            let mut list = Vec::new();
            std::io::stdin().read_to_end(&mut list).context("cannot read the list on standard input")?;
            for entry in entries(&list).filter(|entry| !entry.is_empty()) {
                paths.push(path(entry)?);
            }
        }
    }
    if paths.is_empty() {
        bail!("the list on standard input is empty");
    }
    Ok(paths.into_iter().flat_map(|path| wheels_in(&path).unwrap_or_else(|| vec![path])).collect())
}

/// The wheels of a directory like `dist`, in the order of their names. `None` for an unpacked wheel or a site-packages,
/// which may carry a wheel among its files, for a directory without wheels or that cannot be read, and for what is none.
fn wheels_in(path: &Path) -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(path).ok()?.map(|entry| entry.map(|entry| entry.path()));
    let entries: Vec<PathBuf> = entries.collect::<Result<_, _>>().ok()?;
    let ends = |path: &PathBuf, end: &str| path.extension().is_some_and(|extension| extension == end);
    if entries.iter().any(|entry| ends(entry, "dist-info") && entry.is_dir()) {
        return None;
    }
    let mut wheels: Vec<PathBuf> = entries.into_iter().filter(|entry| ends(entry, "whl")).collect();
    wheels.sort();
    (!wheels.is_empty()).then_some(wheels)
}

/// A list with NUL bytes (`find -print0`) has any other byte in its names; one of lines may come from Windows.
fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let separator = if list.contains(&0) { 0 } else { b'\n' };
    list.split(move |&byte| byte == separator).map(move |entry| match entry {
        [line @ .., b'\r'] if separator == b'\n' => line,
        entry => entry,
    })
}

/// File names are bytes.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "fails elsewhere")]
fn path(entry: &[u8]) -> anyhow::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(entry)))
}

#[cfg(not(unix))]
fn path(entry: &[u8]) -> anyhow::Result<PathBuf> {
    Ok(PathBuf::from(std::str::from_utf8(entry).context("the list on standard input is not UTF-8")?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_or_nul() {
        let list = |bytes| entries(bytes).collect::<Vec<&[u8]>>();
        assert_eq!(list(b"a b\r\nc\xff\n"), [&b"a b"[..], b"c\xff", b""]);
        assert_eq!(list(b"a\nb\r\0\xfe\0"), [&b"a\nb\r"[..], b"\xfe", b""]);
    }

    #[test]
    fn a_directory_of_wheels_stands_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["b-1-py3-none-any.whl", "a-1-py3-none-any.whl", "a-1.tar.gz"] {
            fs::write(at(name), "").unwrap();
        }
        let wheels = [at("a-1-py3-none-any.whl"), at("b-1-py3-none-any.whl")];
        assert_eq!(expand(&[folder.path().to_owned()]).unwrap(), wheels);
        fs::create_dir(at("a-1.dist-info")).unwrap();
        assert_eq!(expand(&[folder.path().to_owned()]).unwrap(), [folder.path()], "a site-packages");
    }

    #[test]
    fn a_directory_without_wheels_is_an_input_itself() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(expand(&[folder.path().to_owned()]).unwrap(), [folder.path()]);
    }
}
