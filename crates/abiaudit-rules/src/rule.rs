//! What a rule is. A rule is one file: its head comment is its documentation.

use crate::audit::Audit;
use crate::finding::{Severity, Sink};

/// One rule. Its documentation is the head comment (`//!`) of its file, in fixed headings.
pub struct Rule {
    /// For ever the same, such as `ABI101`.
    pub id: &'static str,
    /// For people, such as `symbol-too-new`.
    pub name: &'static str,
    /// What its findings weigh unless configured otherwise.
    pub severity: Severity,
    /// The source of the rule's file.
    pub source: &'static str,
    /// Looks at the audit and reports.
    pub check: fn(&Audit<'_>, &mut Sink),
}

impl Rule {
    /// The head comment as Markdown.
    pub fn documentation(&self) -> String {
        let lines = self.source.lines().take_while(|line| line.starts_with("//!"));
        let text: Vec<&str> = lines.map(|line| line[3..].strip_prefix(' ').unwrap_or(&line[3..])).collect();
        text.join("\n")
    }

    /// The first sentence of the documentation.
    pub fn summary(&self) -> String {
        let first = self.documentation().split("\n\n").next().unwrap_or_default().replace('\n', " ");
        first.trim_end_matches('.').to_owned()
    }

    /// `1` for ABI1xx and so on.
    pub fn family(&self) -> char {
        self.id.chars().nth(3).unwrap_or('0')
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.id, self.name)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Defines the `RULE` of a rule file, which must have a function `check`.
macro_rules! rule {
    ($id:literal, $name:literal, $severity:ident, $file:literal) => {
        /// The rule of this file.
        pub static RULE: crate::rule::Rule = crate::rule::Rule {
            id: $id,
            name: $name,
            severity: crate::finding::Severity::$severity,
            source: include_str!($file),
            check,
        };
    };
}
pub(crate) use rule;
