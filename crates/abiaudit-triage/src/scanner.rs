//! One pass over a text: its lines against the messages of the table, its stacks against the predicates.

use std::collections::{BTreeMap, VecDeque};
use std::io::BufRead;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

use crate::diagnosis::{Diagnosis, Recognised};
use crate::signature::{Certainty, NameTest, Sign};
use crate::signatures::SIGNATURES;
use crate::stack::{Frame, Stack, Stacks};
use crate::text::{Error, Line, Lines};

/// Lines that a wrapped message may span.
const WINDOW: usize = 3;
/// Files that are told apart for one signature.
const MAX_FILES: usize = 16;

/// Reads a text to its end and names what is known of it. Memory is bounded by the longest line looked at
/// ([`MAX_LINE`](crate::MAX_LINE)) and the deepest stack (1,024 frames), not by the text.
pub fn triage(text: impl BufRead) -> Result<Diagnosis, Error> {
    let mut lines = Lines::new(text);
    let mut scanner = Scanner::default();
    let mut stacks = Stacks::new();
    while let Some(pieces) = lines.next_pieces()? {
        for line in pieces {
            if let Some(stack) = stacks.push(&line) {
                scanner.stack(&stack);
            }
            scanner.line(line);
        }
    }
    if let Some(stack) = stacks.end() {
        scanner.stack(&stack);
    }
    Ok(Diagnosis { lines: lines.count(), shortened_lines: lines.shortened, recognised: scanner.finish() })
}

/// What a pattern is for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// Makes the signature with this index.
    Makes(usize),
    /// Adds to the signature with this index.
    Adds(usize),
    /// Finds a missing symbol in the group `symbol`.
    Symbol,
    /// Finds a missing library in the group `library`.
    Library,
}

/// The patterns of all signatures.
struct Patterns {
    set: RegexSet,
    each: Vec<(Regex, Purpose)>,
}

/// How loaders say that a symbol is missing: glibc (elf/dl-lookup.c), musl (ldso/dynlink.c).
const SYMBOL_MESSAGES: &[&str] = &[
    r"(?:(?P<required_by>[^ :']+): )?undefined symbol: (?P<symbol>[A-Za-z0-9_.$]+)(?:, version (?P<version>[A-Za-z0-9_.]+))?",
    r"symbol (?P<symbol>[A-Za-z0-9_.$]+),? version (?P<version>[A-Za-z0-9_.]+) not defined in file (?P<library>[^ ]+) with link time reference",
    r"Error relocating (?P<required_by>[^ :]+): (?P<symbol>[A-Za-z0-9_.$]+): symbol not found",
];

/// How loaders say that a library is missing: glibc (elf/dl-load.c), musl (ldso/dynlink.c).
const LIBRARY_MESSAGES: &[&str] = &[
    r#"(?P<library>[^ :'"]+): cannot open shared object file"#,
    r"Error loading shared library (?P<library>[^ :]+): No such file or directory(?: \(needed by (?P<required_by>[^ )]+)\))?",
];

static PATTERNS: LazyLock<Result<Patterns, regex::Error>> = LazyLock::new(Patterns::compile);

impl Patterns {
    fn compile() -> Result<Self, regex::Error> {
        let mut sources: Vec<(String, Purpose)> = Vec::new();
        for (index, signature) in SIGNATURES.iter().enumerate() {
            if let Sign::Message { any, also } = &signature.sign {
                sources.extend(any.iter().map(|p| (stretch(p), Purpose::Makes(index))));
                sources.extend(also.iter().map(|p| (stretch(p), Purpose::Adds(index))));
            }
        }
        sources.extend(SYMBOL_MESSAGES.iter().map(|p| (stretch(p), Purpose::Symbol)));
        sources.extend(LIBRARY_MESSAGES.iter().map(|p| (stretch(p), Purpose::Library)));
        let set = RegexSet::new(sources.iter().map(|(source, _)| source))?;
        let each = sources.into_iter().map(|(source, purpose)| Ok((Regex::new(&source)?, purpose)));
        Ok(Self { set, each: each.collect::<Result<_, regex::Error>>()? })
    }
}

/// Lets each blank outside of brackets match any number of blanks, none included.
fn stretch(pattern: &str) -> String {
    let mut stretched = String::with_capacity(pattern.len() * 2);
    let (mut in_class, mut escaped) = (false, false);
    for character in pattern.chars() {
        stretched.push(character);
        match character {
            _ if escaped => {}
            '[' => in_class = true,
            ']' => in_class = false,
            ' ' if !in_class => stretched.push('*'),
            _ => {}
        }
        escaped = character == '\\' && !escaped;
    }
    stretched
}

/// A line and the patterns that matched it alone.
struct Seen {
    line: Line,
    alone: Vec<usize>,
}

/// What was seen so far.
#[derive(Default)]
struct Scanner {
    found: BTreeMap<usize, Recognised>,
    window: VecDeque<Seen>,
    /// For [`Sign::TwoFiles`]: for each file the first frame out of it.
    files: BTreeMap<usize, BTreeMap<String, (u64, String)>>,
}

impl Scanner {
    fn line(&mut self, line: Line) {
        let Ok(patterns) = PATTERNS.as_ref() else { return };
        let mut alone = Vec::new();
        for index in patterns.set.matches(&line.text) {
            let Some((regex, purpose)) = patterns.each.get(index) else { continue };
            for captures in regex.captures_iter(&line.text) {
                self.message(*purpose, regex, &captures, &[&line]);
            }
            alone.push(index);
        }
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(Seen { line, alone });
        for length in 2..=self.window.len() {
            self.wrapped(patterns, length);
        }
    }

    /// Looks for messages that begin in the first and end in the last of the last `length` lines.
    fn wrapped(&mut self, patterns: &Patterns, length: usize) {
        let seen: Vec<&Seen> = self.window.iter().skip(self.window.len() - length).collect();
        let pieces: Vec<&str> = seen.iter().map(|seen| seen.line.text.trim_start()).collect();
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return };
        if pieces.iter().any(|piece| piece.is_empty()) {
            return;
        }
        let text = pieces.concat();
        let (first_end, last_start) = (first.len(), text.len() - last.len());
        let mut matches = Vec::new();
        for index in patterns.set.matches(&text) {
            if let Some((regex, purpose)) = patterns.each.get(index)
                && !seen.iter().any(|seen| seen.alone.contains(&index))
            {
                let spans = |c: &Captures<'_>| {
                    c.get(0).is_some_and(|whole| whole.start() < first_end && whole.end() > last_start)
                };
                matches.extend(regex.captures_iter(&text).filter(spans).map(|c| (index, *purpose, regex, c)));
            }
        }
        let lines: Vec<Line> = seen.iter().map(|seen| seen.line.clone()).collect();
        let lines: Vec<&Line> = lines.iter().collect();
        let matched: Vec<usize> = matches.iter().map(|(index, ..)| *index).collect();
        for (_, purpose, regex, captures) in matches {
            self.message(purpose, regex, &captures, &lines);
        }
        // A longer window must not see it again.
        if let Some(last) = self.window.back_mut() {
            last.alone.extend(matched);
        }
    }

    fn message(&mut self, purpose: Purpose, regex: &Regex, captures: &Captures<'_>, lines: &[&Line]) {
        let index = match purpose {
            Purpose::Makes(index) => Some(index),
            Purpose::Adds(index) => Some(index).filter(|index| self.found.contains_key(index)),
            Purpose::Symbol => {
                captures.name("symbol").and_then(|symbol| kind_of(symbol.as_str(), symbol_test))
            }
            Purpose::Library => {
                captures.name("library").and_then(|name| kind_of(name.as_str(), library_test))
            }
        };
        let Some(index) = index else { return };
        let Some(found) = self.entry(index) else { return };
        found.occurrences += u64::from(!matches!(purpose, Purpose::Adds(_)));
        for line in lines {
            found.show(line.number, &line.text);
        }
        for name in regex.capture_names().flatten() {
            if let Some(value) = captures.name(name) {
                found.detail(name, value.as_str());
            }
        }
    }

    fn stack(&mut self, stack: &Stack) {
        for (index, signature) in SIGNATURES.iter().enumerate() {
            match signature.sign {
                Sign::Stack(sees) => {
                    if let Some(sighting) = sees(stack)
                        && let Some(found) = self.entry(index)
                    {
                        found.occurrences += 1;
                        for frame in sighting.frames.iter().filter_map(|&at| stack.frames.get(at)) {
                            show_frame(found, frame);
                        }
                        for (key, value) in &sighting.details {
                            found.detail(key, value);
                        }
                    }
                }
                Sign::TwoFiles(is_one) => self.note_files(index, is_one, stack),
                _ => {}
            }
        }
    }

    fn note_files(&mut self, index: usize, is_one: fn(&Frame) -> bool, stack: &Stack) {
        let files = self.files.entry(index).or_default();
        for frame in stack.frames.iter().filter(|frame| is_one(frame)) {
            let Some(file) = &frame.file else { continue };
            if files.len() < MAX_FILES {
                files.entry(plain_path(file)).or_insert_with(|| (frame.first, frame_text(frame)));
            }
        }
    }

    fn entry(&mut self, index: usize) -> Option<&mut Recognised> {
        let signature = SIGNATURES.get(index)?;
        Some(self.found.entry(index).or_insert_with(|| Recognised::new(signature)))
    }

    fn finish(mut self) -> Vec<Recognised> {
        for (index, files) in std::mem::take(&mut self.files) {
            if files.len() < 2 {
                continue;
            }
            let Some(found) = self.entry(index) else { continue };
            found.occurrences += 1;
            for (file, (line, text)) in &files {
                found.show(*line, text);
                found.detail("library", file);
            }
        }
        let mut all: Vec<Recognised> = self.found.into_values().collect();
        for found in &mut all {
            found.evidence.sort();
        }
        let rank = |certainty| match certainty {
            Certainty::Certain => 0,
            Certainty::Likely => 1,
            Certainty::Hint => 2,
        };
        all.sort_by_key(|found| (rank(found.certainty), found.evidence.first().map(|e| e.line), found.id));
        all
    }
}

/// The first signature whose test on a name passes: the table has the special kinds before the general one.
fn kind_of(name: &str, test: fn(&Sign) -> Option<NameTest>) -> Option<usize> {
    SIGNATURES.iter().position(|signature| test(&signature.sign).is_some_and(|passes| passes(name)))
}

fn symbol_test(sign: &Sign) -> Option<NameTest> {
    if let Sign::MissingSymbol(test) = sign { Some(*test) } else { None }
}

fn library_test(sign: &Sign) -> Option<NameTest> {
    if let Sign::MissingLibrary(test) = sign { Some(*test) } else { None }
}

fn show_frame(found: &mut Recognised, frame: &Frame) {
    found.show(frame.first, &frame_text(frame));
}

/// The frame in one line.
fn frame_text(frame: &Frame) -> String {
    let address = frame.address.map(|address| format!("0x{address:x} in ")).unwrap_or_default();
    let file = frame.file.as_ref().map(|file| format!(" from {file}")).unwrap_or_default();
    format!("{address}{}{file}", frame.text)
}

/// A path without `.` and `..`, which the loader leaves in from RPATH; links are not followed.
fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        let removable = parts.last().is_some_and(|last| !last.is_empty() && *last != "..");
        match part {
            "." => {}
            ".." if removable => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        if let Err(error) = PATTERNS.as_ref() {
            panic!("{error}");
        }
    }

    #[test]
    fn blanks_stretch_outside_of_brackets() {
        assert_eq!(stretch(r"a b[^ ]\[ c"), r"a *b[^ ]\[ *c");
    }

    #[test]
    fn paths_are_compared_without_detours() {
        assert_eq!(plain_path("/a/b/../../c.libs/./d.so"), "/c.libs/d.so");
        assert_eq!(plain_path("../a.so"), "../a.so");
        assert_eq!(plain_path("/../a.so"), "/../a.so");
    }
}
