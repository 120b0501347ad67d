//! Response files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use crate::error::{Error, Result, read};

/// Files in files are followed this deep; drivers write one level.
const DEEPEST: usize = 16;

/// Replaces each `@FILE` by the words of the file, as the linkers do (binutils libiberty/argv.c, `expandargv`). Drivers
/// delete such files when the linker is done.
pub fn expand(arguments: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>> {
    let mut words = Vec::new();
    for argument in arguments {
        push_expanded(argument, 0, &mut words)?;
    }
    Ok(words)
}

fn push_expanded(argument: OsString, depth: usize, words: &mut Vec<OsString>) -> Result<()> {
    let path =
        argument.as_bytes().strip_prefix(b"@").map(|name| Path::new(OsStr::from_bytes(name)).to_owned());
    let Some(path) = path.filter(|path| path.is_file()) else {
        words.push(argument);
        return Ok(());
    };
    if depth == DEEPEST {
        return Err(Error::Link(format!("response files that name each other: {}", path.display())));
    }
    for word in split(&read(&path)?) {
        push_expanded(word, depth + 1, words)?;
    }
    Ok(())
}

/// Splits at white space; single and double quotes hold words together, a backslash takes the next byte as it is
/// (`buildargv` of libiberty).
fn split(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                if let Some(next) = bytes.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            b'\'' | b'"' if quote.is_none() => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            _ if quote == Some(byte) => quote = None,
            _ if quote.is_none() && byte.is_ascii_whitespace() => {
                words.extend(word.take().map(OsString::from_vec));
            }
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_response_file() {
        let words = split(b"-o a\\ b.so \"c d\"'e'\n\t-lfoo '' \\\\x ");
        assert_eq!(words, ["-o", "a b.so", "c de", "-lfoo", "", "\\x"]);
    }

    #[test]
    fn files_are_followed_and_other_words_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let (outer, inner) = (directory.path().join("outer"), directory.path().join("inner"));
        std::fs::write(&inner, "x.o y.o").expect("a file");
        std::fs::write(&outer, format!("-shared @{}", inner.display())).expect("a file");
        let at = |path: &Path| OsString::from(format!("@{}", path.display()));
        let words = expand([at(&outer), "@no such file".into()]).expect("words");
        assert_eq!(words, ["-shared", "x.o", "y.o", "@no such file"]);
        std::fs::write(&inner, format!("@{}", outer.display())).expect("a file");
        assert!(expand([at(&outer)]).is_err(), "a ring");
    }
}
