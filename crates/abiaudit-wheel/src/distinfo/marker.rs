//! Environment markers (dependency specifiers, once PEP 508): a small parser and evaluator.
//!
//! pep508_rs 0.9.2 keeps markers as decision diagrams behind one global lock; hostile text makes it panic with
//! the lock held, which poisons it for all later wheels, and a line of 4 KB can ask for 2^50 nodes. This evaluator
//! is linear in the length of the marker and has no state.

use pep440_rs::{Version, VersionSpecifier};

use crate::name::normalize_name;

/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 32;

/// A marker, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    /// At least one holds.
    Or(Vec<Marker>),
    /// All hold.
    And(Vec<Marker>),
    /// One comparison.
    Compare {
        /// Left side.
        left: Operand,
        /// `==`, `in`, `not in`, ...
        operator: &'static str,
        /// Right side.
        right: Operand,
    },
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A variable of the environment, by its current name.
    Variable(&'static str),
    /// A quoted text.
    Literal(String),
}

/// The variables; those of PEP 345 with a dot are other names of the same.
const VARIABLES: [(&str, &str); 17] = [
    ("python_full_version", "python_full_version"),
    ("python_version", "python_version"),
    ("os_name", "os_name"),
    ("os.name", "os_name"),
    ("sys_platform", "sys_platform"),
    ("sys.platform", "sys_platform"),
    ("platform_machine", "platform_machine"),
    ("platform.machine", "platform_machine"),
    ("platform_python_implementation", "platform_python_implementation"),
    ("platform.python_implementation", "platform_python_implementation"),
    ("python_implementation", "platform_python_implementation"),
    ("platform_release", "platform_release"),
    ("platform_system", "platform_system"),
    ("platform_version", "platform_version"),
    ("implementation_name", "implementation_name"),
    ("implementation_version", "implementation_version"),
    ("extra", "extra"),
];

/// The variables that are compared as versions.
const VERSION_VARIABLES: [&str; 3] = ["python_full_version", "python_version", "implementation_version"];

/// Longer operators come before their beginnings.
const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

impl Marker {
    /// Reads a marker; `None` if it does not follow the grammar or is nested too deeply.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser { rest: text };
        let marker = parser.or(0)?;
        parser.skip_whitespace();
        parser.rest.is_empty().then_some(marker)
    }

    /// Whether the marker holds, for a value of each variable.
    pub(super) fn holds<'a>(&'a self, value: &dyn Fn(&'static str) -> &'a str) -> bool {
        match self {
            Self::Or(markers) => markers.iter().any(|marker| marker.holds(value)),
            Self::And(markers) => markers.iter().all(|marker| marker.holds(value)),
            Self::Compare { left, operator, right } => {
                let text = |operand: &'a Operand| match operand {
                    Operand::Variable(name) => value(name),
                    Operand::Literal(text) => text.as_str(),
                };
                let names = [left, right].map(|operand| match operand {
                    Operand::Variable(name) => Some(*name),
                    Operand::Literal(_) => None,
                });
                compare(names, text(left), operator, text(right))
            }
        }
    }
}

/// As the reference implementation (`packaging.markers`): extras by normalised name, version variables as
/// versions if the other side is one, everything else as text.
fn compare(names: [Option<&str>; 2], left: &str, operator: &str, right: &str) -> bool {
    let mut names = names.into_iter().flatten();
    if names.clone().any(|name| name == "extra") {
        let (left, right) = (normalize_name(left), normalize_name(right));
        return compare_text(&left, operator, &right);
    }
    if names.any(|name| VERSION_VARIABLES.contains(&name))
        && let (Ok(version), Ok(specifier)) =
            (left.parse::<Version>(), format!("{operator}{right}").parse::<VersionSpecifier>())
    {
        return specifier.contains(&version);
    }
    compare_text(left, operator, right)
}

fn compare_text(left: &str, operator: &str, right: &str) -> bool {
    match operator {
        "==" | "===" => left == right,
        "!=" => left != right,
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        ">=" => left >= right,
        "in" => right.contains(left),
        "not in" => !right.contains(left),
        _ => false,
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn or(&mut self, depth: usize) -> Option<Marker> {
        let mut markers = vec![self.and(depth)?];
        while self.word("or") {
            markers.push(self.and(depth)?);
        }
        if markers.len() == 1 { markers.pop() } else { Some(Marker::Or(markers)) }
    }

    fn and(&mut self, depth: usize) -> Option<Marker> {
        let mut markers = vec![self.term(depth)?];
        while self.word("and") {
            markers.push(self.term(depth)?);
        }
        if markers.len() == 1 { markers.pop() } else { Some(Marker::And(markers)) }
    }

    fn term(&mut self, depth: usize) -> Option<Marker> {
        self.skip_whitespace();
        if let Some(rest) = self.rest.strip_prefix('(') {
            self.rest = rest;
            let inner = (depth < MAX_DEPTH).then(|| self.or(depth + 1))??;
            self.skip_whitespace();
            self.rest = self.rest.strip_prefix(')')?;
            return Some(inner);
        }
        let left = self.operand()?;
        let operator = self.operator()?;
        let right = self.operand()?;
        Some(Marker::Compare { left, operator, right })
    }

    fn operand(&mut self) -> Option<Operand> {
        self.skip_whitespace();
        if let Some(quote @ ('\'' | '"')) = self.rest.chars().next() {
            let (text, rest) = self.rest.get(1..)?.split_once(quote)?;
            self.rest = rest;
            return Some(Operand::Literal(text.to_owned()));
        }
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        VARIABLES.iter().find(|(name, _)| *name == word).map(|(_, name)| Operand::Variable(name))
    }

    fn operator(&mut self) -> Option<&'static str> {
        self.skip_whitespace();
        if let Some(operator) = OPERATORS.iter().find(|operator| self.rest.starts_with(**operator)) {
            self.rest = self.rest.get(operator.len()..)?;
            return Some(operator);
        }
        if self.word("in") {
            return Some("in");
        }
        (self.word("not") && self.word("in")).then_some("not in")
    }

    /// Consumes a keyword if it is next and ends there.
    fn word(&mut self, word: &str) -> bool {
        self.skip_whitespace();
        match self.rest.strip_prefix(word) {
            Some(rest) if !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip_whitespace(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(text: &str) -> bool {
        let marker = Marker::parse(text).unwrap_or_else(|| panic!("{text}"));
        marker.holds(&|name| match name {
            "python_version" => "3.12",
            "python_full_version" => "3.12.1",
            "platform_machine" => "x86_64",
            "extra" => "Test.Extra",
            _ => "linux",
        })
    }

    #[test]
    fn comparisons() {
        let cases = [
            ("python_version >= '3.8'", true),
            ("python_version < '3.8'", false),
            ("python_version > '3.9'", true),
            ("'3.8' <= python_version", true),
            ("python_version == '3.*'", true),
            ("python_version ~= '3.0'", true),
            ("python_version in '3.11 3.12'", true),
            ("python_version not in \"2.7\"", true),
            ("platform_machine == 'x86_64' and sys.platform != 'win32'", true),
            ("extra == 'test_extra'", true),
            ("platform_machine=='arm64'or(os_name=='linux'and(extra!='x'))", true),
            ("os_name == 'a' or os_name == 'b' and os_name == 'linux'", false),
        ];
        for (text, expected) in cases {
            assert_eq!(holds(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_marker_is_refused() {
        let deep = format!("{}os_name == 'x'{}", "(".repeat(1000), ")".repeat(1000));
        for text in [
            "",
            "os_name",
            "os_name ==",
            "os_name == x",
            "y == 'x'",
            "os_name == 'x",
            "(os_name == 'x'",
            &deep,
        ] {
            assert_eq!(Marker::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,40}") {
            let _ = Marker::parse(&text);
        }

        #[test]
        fn any_version_comparison_is_evaluated_without_panic(
            operator in prop::sample::select(vec!["<", "<=", "==", "!=", ">=", ">", "~=", "===", "in", "not in"]),
            key in prop::sample::select(vec!["python_version", "python_full_version", "os_name", "extra"]),
            value in "[0-3ü]{0,2}(\\.[0-2*]{0,2}){0,3}((a|rc|post|\\.dev|\\+x|!)[0-9]?)?",
            swapped: bool,
        ) {
            if swapped {
                holds(&format!("'{value}' {operator} {key}"));
            } else {
                holds(&format!("{key} {operator} '{value}'"));
            }
        }
    }
}
