//! Small parts that the text renderers share: counting, colours, aligned columns.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use crate::escape::{brief, visible};
use crate::model::{Evidence, LadderSymbol, Severity};
use crate::options::RenderOptions;

/// A label wider than this gets a line of its own instead of pushing everybody's details to the right.
const WIDEST_LABEL: usize = 90;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
const UNSURE: Style = AnsiColor::Yellow.on_default().bold();
const PLAIN_NEWS: Style = AnsiColor::Cyan.on_default();

pub(crate) fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => UNSURE,
        Severity::Info => PLAIN_NEWS,
    }
}

/// `text` in `style`, or as it is when colours are off.
pub(crate) fn painted(options: &RenderOptions, style: Style, text: impl Display) -> String {
    if options.color { format!("{style}{text}{style:#}") } else { text.to_string() }
}

/// `1 wheel`, `2 wheels`, `2 libraries`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// The first `most` names, escaped and separated by commas, and how many more there are.
pub(crate) fn joined(names: &[impl AsRef<str>], most: usize) -> String {
    let shown: Vec<_> = names.iter().take(most).map(|name| brief(name.as_ref())).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        hidden => format!("{} and {hidden} more", shown.join(", ")),
    }
}

/// `word` as it may be pasted into a POSIX shell.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,%".contains(c);
    let shown = visible(word);
    if !word.is_empty() && word.chars().all(plain) {
        shown.into_owned()
    } else {
        format!("'{}'", shown.replace('\'', r"'\''"))
    }
}

/// What a line of evidence is about, and what is said about it.
pub(crate) struct Labelled {
    pub(crate) label: String,
    pub(crate) details: String,
}

impl Labelled {
    /// Evidence of a finding about `member`; `all` shows names of any length.
    pub(crate) fn from_evidence(evidence: &Evidence, member: Option<&str>, all: bool) -> Self {
        let Evidence { symbol, demangled, version, since, library, member: own, note } = evidence;
        let named = demangled.as_ref().or(symbol.as_ref());
        let elsewhere = own.as_deref().filter(|own| Some(*own) != member);
        // Without a symbol the library is the subject, without that the member, else the note itself.
        let label = match (named, library, elsewhere) {
            (Some(name), ..) | (None, Some(name), _) => shown(name, all).into_owned(),
            (None, None, Some(member)) => shown(member, all).into_owned(),
            (None, None, None) => String::new(),
        };
        let details = Reference {
            version: version.as_deref(),
            since: since.as_deref(),
            library: library.as_deref().filter(|_| named.is_some()),
            member: elsewhere.filter(|_| named.is_some() || library.is_some()),
            note: note.as_deref(),
        };
        Self { label, details: details.to_text() }
    }

    /// A symbol of the ladder.
    pub(crate) fn from_symbol(symbol: &LadderSymbol, all: bool) -> Self {
        let details = Reference {
            version: symbol.version.as_deref(),
            since: symbol.since.as_deref(),
            library: symbol.library.as_deref(),
            member: Some(&symbol.member),
            note: None,
        };
        let name = symbol.demangled.as_ref().unwrap_or(&symbol.symbol);
        Self { label: shown(name, all).into_owned(), details: details.to_text() }
    }

    /// One line: label and details.
    pub(crate) fn to_line(&self) -> String {
        match (self.label.is_empty(), self.details.is_empty()) {
            (true, _) => self.details.clone(),
            (_, true) => self.label.clone(),
            _ => format!("{}  {}", self.label, self.details),
        }
    }
}

fn shown(name: &str, all: bool) -> Cow<'_, str> {
    if all { visible(name) } else { brief(name) }
}

/// `GLIBCXX_3.4.26 (GCC 9) from libstdc++.so.6 in lib/x.so; note`.
struct Reference<'a> {
    version: Option<&'a str>,
    since: Option<&'a str>,
    library: Option<&'a str>,
    member: Option<&'a str>,
    note: Option<&'a str>,
}

impl Reference<'_> {
    /// The release, unless the version says it already: `GLIBC_2.34` is of glibc 2.34.
    fn news(&self) -> Option<&str> {
        let said = self.version.and_then(|version| version.strip_prefix("GLIBC_"));
        self.since.filter(|since| since.strip_prefix("glibc ") != said || said.is_none())
    }

    fn to_text(&self) -> String {
        let words: Vec<String> = [
            self.version.map(|version| brief(version).into_owned()),
            self.news().map(|since| format!("({})", brief(since))),
            self.library.map(|library| format!("from {}", brief(library))),
            self.member.map(|member| format!("in {}", brief(member))),
        ]
        .into_iter()
        .flatten()
        .collect();
        match (words.is_empty(), self.note) {
            (true, note) => note.map(|note| brief(note).into_owned()).unwrap_or_default(),
            (false, None) => words.join(" "),
            (false, Some(note)) => format!("{}; {}", words.join(" "), brief(note)),
        }
    }
}

/// Writes lines of evidence with their details aligned. Details of a label that is too wide for its column stand below
/// it; nothing is broken or cut.
pub(crate) fn write_labelled(
    lines: &[Labelled],
    indent: usize,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let widest_details = lines.iter().map(|line| line.details.width()).max().unwrap_or(0);
    let room = options.width.map_or(WIDEST_LABEL, |width| {
        // At least half of the terminal goes to the labels before details move below them.
        width.saturating_sub(indent + 2 + widest_details).max(width / 2).min(WIDEST_LABEL)
    });
    let column = lines
        .iter()
        .filter(|line| !line.details.is_empty())
        .map(|line| line.label.width())
        .filter(|width| *width <= room)
        .max()
        .unwrap_or(0);
    for line in lines {
        let Labelled { label, details } = line;
        let padding = column.saturating_sub(label.width());
        match (label.is_empty(), details.is_empty()) {
            (true, _) => writeln!(out, "{:indent$}{details}", "")?,
            (_, true) => writeln!(out, "{:indent$}{label}", "")?,
            _ if label.width() > column => {
                writeln!(out, "{:indent$}{label}", "")?;
                writeln!(out, "{:indent$}  {}", "", painted(options, DIM, details))?;
            }
            _ => writeln!(out, "{:indent$}{label}{:padding$}  {}", "", "", painted(options, DIM, details))?,
        }
    }
    Ok(())
}

/// Writes rows of cells in columns as wide as their widest cell (up to a limit). The last cell is not padded.
pub(crate) fn write_columns(rows: &[Vec<String>], indent: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.width())
            .filter(|width| *width <= WIDEST_LABEL)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 2));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell_only_when_needed() {
        assert_eq!(shell_word("dist/a-1.0+cpu.whl"), "dist/a-1.0+cpu.whl");
        assert_eq!(shell_word("my wheel's.whl"), r"'my wheel'\''s.whl'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn counts_have_plurals() {
        assert_eq!(counted(1, "library"), "1 library");
        assert_eq!(counted(0, "library"), "0 libraries");
        assert_eq!(counted(2, "wheel"), "2 wheels");
    }

    #[test]
    fn wide_labels_do_not_push_the_others() {
        let line = |label: &str| Labelled { label: label.to_owned(), details: "V_1".to_owned() };
        let mut out = Vec::new();
        write_labelled(
            &[line("short"), line(&"x".repeat(100)), line("longer")],
            2,
            &RenderOptions::default(),
            &mut out,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("  short   V_1\n  {}\n    V_1\n  longer  V_1\n", "x".repeat(100)));
    }

    #[test]
    fn narrow_terminals_put_details_below_and_break_nothing() {
        let label = "std::filesystem::path::compare(int, int) const";
        let line =
            Labelled { label: label.to_owned(), details: "GLIBCXX_3.4.26 from libstdc++.so.6".to_owned() };
        let mut out = Vec::new();
        let options = RenderOptions { width: Some(60), ..RenderOptions::default() };
        write_labelled(&[line], 4, &options, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("    {label}\n      GLIBCXX_3.4.26 from libstdc++.so.6\n"));
    }
}
