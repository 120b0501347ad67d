//! The import statements that run when a module is imported.

use super::tokens::{Line, Token, lines};

/// An import statement that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Line, from 1.
    pub line: u32,
    /// What it imports.
    pub import: Import,
    /// The `try` whose body it is in, the innermost one; numbered by source order.
    pub within: Option<u32>,
    /// The `try`s that must have failed for it to run: it is in an `except` branch of each.
    pub only_if_failed: Vec<u32>,
}

/// What a statement imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Import {
    /// `import a.b, c`
    Modules(Vec<String>),
    /// `from ..a import b, c`
    From {
        /// Number of leading dots.
        level: usize,
        /// Dotted name after the dots; may be empty.
        module: String,
        /// Names; `*` is one.
        names: Vec<String>,
    },
}

/// The import statements of a source that run when it is imported on Linux, in order.
pub fn imports(source: &str) -> Vec<Statement> {
    let mut scanner = Scanner::default();
    for line in lines(source) {
        scanner.line(&line);
    }
    scanner.statements
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// Runs, or may run.
    Runs,
    /// Does not run at import.
    Skipped,
    Try(u32),
    Except(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Yes,
    No,
    Unknown,
}

#[derive(Default)]
struct Scanner {
    statements: Vec<Statement>,
    /// Open blocks with the indentation of their headers.
    blocks: Vec<(usize, Block)>,
    tries: u32,
    /// What decides how an `else`, `elif`, `except` goes on at an indentation.
    chains: Vec<(usize, Chain)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chain {
    /// An `if`; whether one of its conditions is sure to hold.
    If(bool),
    Try(u32),
    Other,
}

impl Scanner {
    fn line(&mut self, line: &Line) {
        self.blocks.retain(|(indent, _)| *indent < line.indent);
        self.chains.retain(|(indent, _)| *indent <= line.indent);
        let mut rest = line.tokens.as_slice();
        let mut opened = 0;
        // `if a: import b` is a header and its body.
        while let Some((block, body)) = self.header(line.indent, rest) {
            self.blocks.push((line.indent, block));
            opened += 1;
            rest = body;
        }
        let is_reached = !self.blocks.iter().any(|(_, block)| *block == Block::Skipped);
        if is_reached {
            for statement in rest.split(|token| *token == Token::Mark(';')) {
                self.statement(line.number, statement);
            }
        }
        if !rest.is_empty() && opened > 0 {
            self.blocks.truncate(self.blocks.len() - opened);
        }
    }

    /// The block that a compound statement's header opens, and what follows its colon.
    fn header<'t>(&mut self, indent: usize, tokens: &'t [Token]) -> Option<(Block, &'t [Token])> {
        let (first, rest) = tokens.split_first()?;
        let Token::Word(keyword) = first else { return None };
        let (keyword, rest) = match (keyword.as_str(), rest.split_first()) {
            ("async", Some((Token::Word(next), rest))) => (next.as_str(), rest),
            (keyword, _) => (keyword, rest),
        };
        let known = matches!(
            keyword,
            "def"
                | "class"
                | "if"
                | "elif"
                | "else"
                | "try"
                | "except"
                | "finally"
                | "with"
                | "for"
                | "while"
        );
        if !known {
            return None;
        }
        let colon = colon(rest)?;
        let (condition, body) = (rest.get(..colon)?, rest.get(colon + 1..)?);
        Some((self.block(indent, keyword, condition), body))
    }

    fn block(&mut self, indent: usize, keyword: &str, condition: &[Token]) -> Block {
        let chain = self.chains.iter().rposition(|(at, _)| *at == indent);
        let before = chain.and_then(|at| self.chains.get(at)).map_or(Chain::Other, |(_, chain)| *chain);
        let (block, after) = match (keyword, before) {
            ("def", _) => (Block::Skipped, Chain::Other),
            ("if", _) => branch(truth(condition), false),
            ("elif", Chain::If(decided)) => branch(truth(condition), decided),
            ("else", Chain::If(decided)) => branch(Truth::Unknown, decided),
            ("try", _) => {
                let number = self.tries;
                self.tries += 1;
                (Block::Try(number), Chain::Try(number))
            }
            ("except", Chain::Try(number)) => (Block::Except(number), before),
            // The branches `else` and `finally` of a `try` run after it; a loop's `else` too.
            (_, before @ Chain::Try(_)) if matches!(keyword, "else" | "finally") => (Block::Runs, before),
            _ => (Block::Runs, Chain::Other),
        };
        self.chains.retain(|(at, _)| *at < indent);
        self.chains.push((indent, after));
        block
    }

    fn statement(&mut self, line: u32, tokens: &[Token]) {
        let Some(import) = import(tokens) else { return };
        let within = self.blocks.iter().rev().find_map(|(_, block)| match block {
            Block::Try(number) => Some(*number),
            _ => None,
        });
        let failed = self.blocks.iter().filter_map(|(_, block)| match block {
            Block::Except(number) => Some(*number),
            _ => None,
        });
        let only_if_failed = failed.collect();
        self.statements.push(Statement { line, import, within, only_if_failed });
    }
}

/// The block of a branch whose condition is this, and how its chain goes on; `decided`: an earlier branch was taken.
fn branch(condition: Truth, decided: bool) -> (Block, Chain) {
    let block = if decided || condition == Truth::No { Block::Skipped } else { Block::Runs };
    (block, Chain::If(decided || condition == Truth::Yes))
}

/// Position of the colon that ends a header: outside brackets, and not a lambda's.
fn colon(tokens: &[Token]) -> Option<usize> {
    let (mut depth, mut lambdas) = (0_usize, 0_usize);
    for (position, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Word(word) if word == "lambda" && depth == 0 => lambdas += 1,
            // `:=` is no colon.
            Token::Mark(':') if depth == 0 && tokens.get(position + 1) != Some(&Token::Mark('=')) => {
                if lambdas == 0 {
                    return Some(position);
                }
                lambdas -= 1;
            }
            _ => {}
        }
    }
    None
}

/// What Linux makes of a condition.
fn truth(tokens: &[Token]) -> Truth {
    // Parts within parts that are looked into: conditions that are made to be deep stay unknown.
    const DEPTH: usize = 16;
    truth_within(tokens, DEPTH)
}

fn truth_within(tokens: &[Token], depth: usize) -> Truth {
    let Some(depth) = depth.checked_sub(1) else { return Truth::Unknown };
    let truth = |tokens| truth_within(tokens, depth);
    if let Some((left, right)) = split_at(tokens, "or") {
        return match (truth(left), truth(right)) {
            (Truth::Yes, _) | (_, Truth::Yes) => Truth::Yes,
            (Truth::No, Truth::No) => Truth::No,
            _ => Truth::Unknown,
        };
    }
    if let Some((left, right)) = split_at(tokens, "and") {
        return match (truth(left), truth(right)) {
            (Truth::No, _) | (_, Truth::No) => Truth::No,
            (Truth::Yes, Truth::Yes) => Truth::Yes,
            _ => Truth::Unknown,
        };
    }
    match tokens {
        [Token::Word(not), rest @ ..] if not == "not" => match truth(rest) {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            Truth::Unknown => Truth::Unknown,
        },
        [Token::Mark('('), inner @ .., Token::Mark(')')] if !inner.contains(&Token::Mark('(')) => {
            truth(inner)
        }
        [head @ .., Token::Mark('='), Token::Mark('='), Token::Text(text)] => fact(head, text),
        [head @ .., Token::Mark('!'), Token::Mark('='), Token::Text(text)] => match fact(head, text) {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            Truth::Unknown => Truth::Unknown,
        },
        [
            head @ ..,
            Token::Mark('.'),
            Token::Word(method),
            Token::Mark('('),
            Token::Text(text),
            Token::Mark(')'),
        ] if method == "startswith" && spelled(head) == "sys.platform" => {
            if "linux".starts_with(text.as_str()) { Truth::Yes } else { Truth::No }
        }
        _ => match spelled(tokens).as_str() {
            "TYPE_CHECKING" | "typing.TYPE_CHECKING" | "t.TYPE_CHECKING" | "False" | "0" => Truth::No,
            "True" | "1" => Truth::Yes,
            _ => Truth::Unknown,
        },
    }
}

/// Whether something that is known on Linux equals a text.
fn fact(tokens: &[Token], text: &str) -> Truth {
    let known = match spelled(tokens).as_str() {
        "sys.platform" => "linux",
        "os.name" => "posix",
        "platform.system()" => "Linux",
        // A module that is imported is not the main one.
        "__name__" if text == "__main__" => return Truth::No,
        _ => return Truth::Unknown,
    };
    if known == text { Truth::Yes } else { Truth::No }
}

/// Left and right of the first such word outside brackets.
fn split_at<'t>(tokens: &'t [Token], word: &str) -> Option<(&'t [Token], &'t [Token])> {
    let mut depth = 0_usize;
    for (position, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Word(this) if this == word && depth == 0 => {
                return Some((tokens.get(..position)?, tokens.get(position + 1..)?));
            }
            _ => {}
        }
    }
    None
}

/// Tokens without blanks; strings make it a text that equals no name.
fn spelled(tokens: &[Token]) -> String {
    let mut text = String::new();
    for token in tokens {
        match token {
            Token::Word(word) => text.push_str(word),
            Token::Mark(mark) => text.push(*mark),
            Token::Text(_) => text.push('"'),
        }
    }
    text
}

fn import(tokens: &[Token]) -> Option<Import> {
    let (Token::Word(keyword), rest) = tokens.split_first()? else { return None };
    match keyword.as_str() {
        "import" => {
            let modules: Vec<String> =
                rest.split(|token| *token == Token::Mark(',')).filter_map(dotted_name).collect();
            (!modules.is_empty()).then_some(Import::Modules(modules))
        }
        "from" => from(rest),
        _ => None,
    }
}

fn from(tokens: &[Token]) -> Option<Import> {
    let is_import = |token: &Token| matches!(token, Token::Word(word) if word == "import");
    let at = tokens.iter().position(is_import)?;
    let (head, names) = (tokens.get(..at)?, tokens.get(at + 1..)?);
    let level = head.iter().take_while(|token| **token == Token::Mark('.')).count();
    let module = head.get(level..)?;
    let module = if module.is_empty() { String::new() } else { dotted_name(module)? };
    let name = |tokens: &[Token]| {
        tokens.iter().find_map(|token| match token {
            Token::Word(word) => Some(word.clone()),
            Token::Mark('*') => Some("*".to_owned()),
            _ => None,
        })
    };
    let names: Vec<String> = names.split(|token| *token == Token::Mark(',')).filter_map(name).collect();
    ((level > 0 || !module.is_empty()) && !names.is_empty()).then_some(Import::From { level, module, names })
}

/// `a.b` before `as` or the end.
fn dotted_name(tokens: &[Token]) -> Option<String> {
    // No file system has longer names for a module's file.
    const LONGEST: usize = 1024;
    let mut name = String::new();
    for (position, token) in tokens.iter().enumerate() {
        match (token, position % 2) {
            (Token::Word(word), 0) => name.push_str(word),
            (Token::Mark('.'), 1) => name.push('.'),
            (Token::Word(word), 1) if word == "as" => break,
            _ => return None,
        }
    }
    (!name.is_empty() && !name.ends_with('.') && name.len() <= LONGEST).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements as text, with what decides on them.
    fn scan(source: &str) -> Vec<String> {
        let text = |statement: Statement| {
            let what = match statement.import {
                Import::Modules(modules) => modules.join(","),
                Import::From { level, module, names } => {
                    format!("{}{module}:{}", ".".repeat(level), names.join(","))
                }
            };
            let within = statement.within.map(|number| format!(" try{number}")).unwrap_or_default();
            let failed: Vec<String> =
                statement.only_if_failed.iter().map(|number| format!(" unless{number}")).collect();
            let failed = failed.concat();
            format!("{} {what}{within}{failed}", statement.line)
        };
        imports(source).into_iter().map(text).collect()
    }

    #[test]
    fn forms_of_statements() {
        assert_eq!(scan("import a.b as c, d\n"), ["1 a.b,d"]);
        assert_eq!(
            scan("from . import x, y as z\nfrom ..p.q import *\nfrom.r import s"),
            ["1 .:x,y", "2 ..p.q:*", "3 .r:s"]
        );
        assert_eq!(
            scan("from a import (  # why\n    b,\n\n    c as d,  # c\n)\nimport e"),
            ["1 a:b,c", "6 e"]
        );
        assert_eq!(scan("from a \\\n  import b; import c\r\nimport d\r\n"), ["1 a:b", "1 c", "3 d"]);
        assert_eq!(scan("from ... import x"), ["1 ...:x"]);
        assert_eq!(scan("\u{feff}import a"), ["1 a"]);
    }

    #[test]
    fn strings_and_comments_import_nothing() {
        assert_eq!(scan("'''\nimport a\n'''\n# import b\nx = \"import c; import d\"\nimport e"), ["6 e"]);
        assert_eq!(scan("x = r'\\'; import a'\nimport b"), ["2 b"]);
        assert_eq!(scan("x = f\"{y}\\\nimport a\"\nimport b"), ["3 b"]);
        assert_eq!(scan("x = ['import a',\nimport_b]\nimportant = 1\nx.import_ = 2\nimport c"), ["5 c"]);
        assert_eq!(scan("def f():\n  \"\"\"\nimport a\n  \"\"\"\n\nimport b"), ["6 b"]);
        assert_eq!(scan("x = 'unclosed\nimport a"), ["2 a"]);
    }

    #[test]
    fn functions_run_later_and_classes_at_once() {
        let source = "def f(a: int = (1,\n 2)) -> None:\n    import a\n    if x:\n        import b\nasync def g(): import c\nclass C:\n    import d\n    def m(self):\n        import e\n    import f\nx = lambda: 1\nimport g";
        assert_eq!(scan(source), ["8 d", "11 f", "13 g"]);
    }

    #[test]
    fn branches() {
        assert_eq!(scan("if x: import a\nelse: import b\nimport c"), ["1 a", "2 b", "3 c"]);
        assert_eq!(scan("if TYPE_CHECKING:\n    import a\nelse:\n    import b"), ["4 b"]);
        assert_eq!(scan("if typing.TYPE_CHECKING or x:\n    import a\nimport b"), ["2 a", "3 b"]);
        assert_eq!(
            scan(
                "if sys.platform == 'win32':\n  import a\nelif os.name != 'nt':\n  import b\nelse:\n  import c"
            ),
            ["4 b"]
        );
        assert_eq!(
            scan("if sys.platform.startswith(\"linux\") and not False:\n  import a\nelse:\n  import b"),
            ["2 a"]
        );
        assert_eq!(scan("if __name__ == '__main__':\n\timport a\n"), Vec::<String>::new());
        assert_eq!(scan("if x[1:2] and (y := 3):\n  import a"), ["2 a"]);
        assert_eq!(
            scan("with a as b, c:\n  for x in y:\n    import d\nwhile 1:\n  import e"),
            ["3 d", "5 e"]
        );
    }

    #[test]
    fn a_nested_chain_does_not_decide_the_outer_one() {
        let source = "if x:\n  if TYPE_CHECKING:\n    import a\nelse:\n  import b\nif y:\n  import c";
        assert_eq!(scan(source), ["5 b", "7 c"]);
    }

    #[test]
    fn tries() {
        let source = "try:\n  import a\nexcept ImportError:\n  import b\nelse:\n  import c\nfinally:\n  import d\ntry: import e\nexcept E as x: from f import g";
        assert_eq!(scan(source), ["2 a try0", "4 b unless0", "6 c", "8 d", "9 e try1", "10 f:g unless1"]);
        let nested = "try:\n  try:\n    import a\n  except A:\n    import b\nexcept B:\n  import c";
        assert_eq!(scan(nested), ["3 a try1", "5 b try0 unless1", "7 c unless0"]);
    }

    #[test]
    fn deep_conditions_stay_unknown() {
        for part in ["not ", "x or ", "x and ", "("] {
            let source = format!("if {}y: import a\nimport b", part.repeat(200_000));
            let expected: &[&str] = if part == "(" { &[] } else { &["1 a", "2 b"] };
            assert_eq!(scan(&source), expected, "{part}");
        }
        assert_eq!(scan(&format!("import {}a", "a.".repeat(100_000))), Vec::<String>::new());
        assert_eq!(scan(&"if a: ".repeat(100_000)), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_python_ends() {
        for source in [
            "((((",
            "'''",
            "\\",
            "from",
            "import",
            "from . import",
            "if",
            "if :",
            "try",
            "import .",
            "@",
            "x = {'a': 'b",
        ] {
            assert_eq!(scan(source), Vec::<String>::new(), "{source}");
        }
    }
}
