//! The list of inputs.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, bail};

/// Replaces `-` by the paths on standard input: one a line, or separated by NUL bytes if there are any.
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
    Ok(paths)
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
    use super::entries;

    #[test]
    fn lines_or_nul() {
        let list = |bytes| entries(bytes).collect::<Vec<&[u8]>>();
        assert_eq!(list(b"a b\r\nc\xff\n"), [&b"a b"[..], b"c\xff", b""]);
        assert_eq!(list(b"a\nb\r\0\xfe\0"), [&b"a\nb\r"[..], b"\xfe", b""]);
    }
}
