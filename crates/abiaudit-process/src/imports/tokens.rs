//! Python source as logical lines of tokens: just enough of the lexical analysis of the language reference (chapter 2)
//! to tell statements from strings and comments.

/// A token. What tells nothing about imports (numbers, operators) is kept as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A name, keyword or number.
    Word(String),
    /// A string, without prefix and quotes, escapes untouched.
    Text(String),
    /// One character of an operator or delimiter.
    Mark(char),
}

/// A logical line: physical lines joined by brackets, strings and backslashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Columns of indentation; a tab goes to the next multiple of eight.
    pub(crate) indent: usize,
    /// Number of the first physical line, from 1.
    pub(crate) number: u32,
    /// Never empty.
    pub(crate) tokens: Vec<Token>,
}

/// Splits a source into logical lines. Anything is accepted: what is no Python gives lines that mean nothing.
pub(crate) fn lines(source: &str) -> Vec<Line> {
    let mut lexer = Lexer {
        rest: source.strip_prefix('\u{feff}').unwrap_or(source),
        number: 1,
        depth: 0,
        line: Line { indent: 0, number: 1, tokens: Vec::new() },
        lines: Vec::new(),
    };
    lexer.run();
    lexer.lines
}

struct Lexer<'s> {
    rest: &'s str,
    number: u32,
    /// Open brackets.
    depth: usize,
    line: Line,
    lines: Vec<Line>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        self.indent();
        while let Some(c) = self.rest.chars().next() {
            match c {
                '\n' => {
                    self.take(1);
                    if self.depth == 0 {
                        self.end_line();
                        self.indent();
                    }
                }
                '#' => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.take(end);
                }
                '\\' if self.rest.starts_with("\\\n") => self.take(2),
                '\\' if self.rest.starts_with("\\\r\n") => self.take(3),
                '"' | '\'' => self.string(),
                c if is_word(c) => self.word(),
                c if c.is_whitespace() => self.take(c.len_utf8()),
                c => {
                    match c {
                        '(' | '[' | '{' => self.depth += 1,
                        ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                        _ => {}
                    }
                    self.take(c.len_utf8());
                    self.push(Token::Mark(c));
                }
            }
        }
        self.end_line();
    }

    /// Goes on by so many bytes and counts the lines in them.
    fn take(&mut self, bytes: usize) {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.number = self.number.saturating_add(taken.bytes().filter(|&b| b == b'\n').count() as u32);
        self.rest = rest;
    }

    fn push(&mut self, token: Token) {
        if self.line.tokens.is_empty() {
            self.line.number = self.number;
        }
        self.line.tokens.push(token);
    }

    fn end_line(&mut self) {
        let tokens = std::mem::take(&mut self.line.tokens);
        if !tokens.is_empty() {
            self.lines.push(Line { tokens, ..self.line });
        }
    }

    fn indent(&mut self) {
        let mut columns = 0;
        while let Some(c @ (' ' | '\t' | '\u{c}')) = self.rest.chars().next() {
            columns = match c {
                ' ' => columns + 1,
                '\t' => (columns / 8 + 1) * 8,
                _ => 0,
            };
            self.take(1);
        }
        self.line.indent = columns;
    }

    fn word(&mut self) {
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let word = self.rest.get(..end).unwrap_or_default();
        let quote = self.rest.get(end..).is_some_and(|rest| rest.starts_with(['"', '\'']));
        let is_prefix = word.len() <= 2 && word.bytes().all(|b| b"rRbBuUfFtT".contains(&b));
        if quote && is_prefix {
            self.take(end);
            self.string();
        } else {
            let word = word.to_owned();
            self.push(Token::Word(word));
            self.take(end);
        }
    }

    /// A string from its opening quote on. In a raw string too a backslash keeps the quote behind it from ending it.
    fn string(&mut self) {
        let quote = if self.rest.starts_with('"') { "\"" } else { "'" };
        let triple = quote.repeat(3);
        let is_long = self.rest.starts_with(&triple);
        let delimiter = if is_long { triple.as_str() } else { quote };
        let start = delimiter.len();
        let (end, closed) = end_of_string(self.rest.get(start..).unwrap_or_default(), delimiter, is_long);
        let text = self.rest.get(start..start + end).unwrap_or_default().to_owned();
        self.push(Token::Text(text));
        self.take(start + end + if closed { delimiter.len() } else { 0 });
    }
}

/// Where a string ends, and whether it is closed: a short one is not closed if its line ends.
fn end_of_string(text: &str, delimiter: &str, is_long: bool) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' if !is_long => return (at, false),
            _ if bytes.get(at..).is_some_and(|rest| rest.starts_with(delimiter.as_bytes())) => {
                return (at, true);
            }
            _ => at += 1,
        }
    }
    (text.len(), false)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && !c.is_whitespace())
}
