//! Lines of a text as people see them: without colours, without what CI services put before them, of bounded length.

use std::io::{self, BufRead};
use std::sync::LazyLock;

use regex::Regex;

/// Bytes of a line that are looked at; the rest of a longer line is skipped. The longest lines that matter are
/// faulthandler's lists of extension modules, some 40 bytes a module.
pub const MAX_LINE: usize = 64 * 1024;

/// Bytes at the beginning among which a NUL says that this is not a text.
const SNIFFED: usize = 8 * 1024;

/// Why a text cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source failed.
    #[error("cannot read the text")]
    Io(#[from] io::Error),
    /// A NUL byte at the beginning: a core file, a library, a compressed log, UTF-16.
    #[error("not a text: there is a NUL byte at offset {offset}")]
    NotText {
        /// Offset of the first NUL byte.
        offset: usize,
    },
}

/// One line, or what a carriage return separates in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Number in the input, from 1; newlines count, carriage returns do not.
    pub number: u64,
    /// Without colours, control characters, CI prefixes and trailing blanks.
    pub text: String,
}

/// Reads lines.
pub struct Lines<R> {
    source: R,
    number: u64,
    started: bool,
    /// Lines of which only the first [`MAX_LINE`] bytes were kept.
    pub shortened: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(source: R) -> Self {
        Self { source, number: 0, started: false, shortened: 0 }
    }

    /// Newlines seen so far.
    pub fn count(&self) -> u64 {
        self.number
    }

    /// The pieces of the next line, or nothing at the end.
    pub fn next_pieces(&mut self) -> Result<Option<Vec<Line>>, Error> {
        if !std::mem::replace(&mut self.started, true) {
            let beginning = self.source.fill_buf()?;
            if let Some(offset) = beginning.iter().take(SNIFFED).position(|&byte| byte == 0) {
                return Err(Error::NotText { offset });
            }
        }
        let Some(raw) = self.next_raw()? else { return Ok(None) };
        let number = self.number;
        let pieces = raw.split(|&byte| byte == b'\r').map(|piece| Line { number, text: clean(piece) });
        Ok(Some(pieces.collect()))
    }

    /// The bytes before the next newline, at most [`MAX_LINE`] of them.
    fn next_raw(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut kept = Vec::new();
        let (mut any, mut cut) = (false, false);
        loop {
            let buffer = match self.source.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            any = true;
            let newline = memchr::memchr(b'\n', buffer);
            let piece = &buffer[..newline.unwrap_or(buffer.len())];
            let room = MAX_LINE.saturating_sub(kept.len());
            kept.extend_from_slice(&piece[..piece.len().min(room)]);
            cut |= piece.len() > room;
            let used = piece.len() + usize::from(newline.is_some());
            self.source.consume(used);
            if newline.is_some() {
                break;
            }
        }
        if any {
            self.number += 1;
            self.shortened += u64::from(cut);
        }
        Ok(any.then_some(kept))
    }
}

/// What stands before the text proper: times of GitHub Actions and Jenkins, steps of BuildKit, marks of GitHub
/// Actions, of pytest and of quoting in messages.
static PREFIX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z ?|\[[0-9][0-9TZ:. +-]+\] |#[0-9]+ [0-9]+\.[0-9]+ ",
        r"|##\[[a-z]+\]|E {2,}|> |\| )+"
    ))
    .ok()
});

/// The text of a line as it would show on a terminal that knows no colours.
fn clean(raw: &[u8]) -> String {
    let visible = without_escapes(&String::from_utf8_lossy(raw));
    let prefix = PREFIX.as_ref().and_then(|p| p.find(&visible)).map_or(0, |found| found.end());
    visible[prefix..].trim_end().to_owned()
}

/// Drops escape sequences (ECMA-48: CSI up to its final byte, OSC up to BEL or ST, two-character ones) and control
/// characters; a tabulator becomes a blank.
fn without_escapes(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.next() {
                Some('[') => {
                    characters.by_ref().find(|c| ('@'..='~').contains(c));
                }
                Some(']') => skip_string(&mut characters),
                _ => {}
            },
            '\t' => visible.push(' '),
            c if c.is_control() => {}
            c => visible.push(c),
        }
    }
    visible
}

/// Skips an operating system command, which BEL or `ESC \` ends.
fn skip_string(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(character) = characters.next() {
        let string_terminator = character == '\u{1b}' && characters.next_if_eq(&'\\').is_some();
        if character == '\u{7}' || string_terminator {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    fn lines(text: &[u8]) -> Vec<(u64, String)> {
        let mut lines = Lines::new(text);
        let mut all = Vec::new();
        while let Some(pieces) = lines.next_pieces().expect("readable") {
            all.extend(pieces.into_iter().map(|line| (line.number, line.text)));
        }
        all
    }

    fn shown(text: &str) -> String {
        lines(text.as_bytes()).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn numbers_count_newlines() {
        let expected = [(1, "a".to_owned()), (2, String::new()), (3, "b".to_owned()), (3, "c".to_owned())];
        assert_eq!(lines(b"a\n\nb\rc"), expected);
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn colours_and_prefixes_go() {
        assert_eq!(shown("\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}end"), "red end");
        assert_eq!(shown("2026-01-02T03:04:05.1234567Z E   ImportError: x"), "ImportError: x");
        assert_eq!(shown("#12 45.67 ImportError: x"), "ImportError: x");
        assert_eq!(shown("##[error]ImportError: x"), "ImportError: x");
        assert_eq!(shown("#12  0x45 in f ()"), "#12  0x45 in f ()");
        assert_eq!(shown("\u{1b}[31"), "");
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_is_whole() {
        let long = io::repeat(b'x').take(1 << 30).chain(&b"\nend\n"[..]);
        let mut lines = Lines::new(BufReader::with_capacity(1 << 16, long));
        let first = lines.next_pieces().expect("readable").expect("a line");
        assert_eq!(first[0].text.len(), MAX_LINE);
        let second = lines.next_pieces().expect("readable").expect("a line");
        assert_eq!(second, [Line { number: 2, text: "end".to_owned() }]);
        assert_eq!(lines.shortened, 1);
    }

    #[test]
    fn binaries_are_no_text() {
        let error = Lines::new(&b"\x7fELF\x02\x01\x01\0"[..]).next_pieces().expect_err("a binary");
        assert!(matches!(error, Error::NotText { offset: 7 }), "{error}");
        assert_eq!(shown("\u{fffd}\u{1}x"), "\u{fffd}x");
        assert_eq!(lines(b"\xff\xfe\x80\n").len(), 1);
    }
}
