//! What a rule says.

use crate::rule::Rule;

/// How bad a finding is. The order is by weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing fails.
    Info,
    /// Fails for some users, or soon.
    Warning,
    /// Fails, or a promise is not kept.
    Error,
}

impl Severity {
    /// `info`, `warning`, `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that a finding rests on. All parts are optional; names are as in the file, not demangled.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Evidence {
    /// Member that it was seen in, where that differs from the finding's.
    pub member: Option<String>,
    /// Symbol.
    pub symbol: Option<String>,
    /// Version node, such as `GLIBC_2.34`.
    pub version: Option<String>,
    /// Library that should provide it.
    pub library: Option<String>,
    /// Anything else, in words.
    pub note: Option<String>,
}

impl Evidence {
    /// Only words.
    pub fn note(text: impl Into<String>) -> Self {
        Self { note: Some(text.into()), ..Self::default() }
    }

    /// A symbol.
    pub fn symbol(name: impl Into<String>) -> Self {
        Self { symbol: Some(name.into()), ..Self::default() }
    }

    /// Another member.
    pub fn member(name: impl Into<String>) -> Self {
        Self { member: Some(name.into()), ..Self::default() }
    }

    /// Adds words.
    #[must_use]
    pub fn with_note(mut self, text: impl Into<String>) -> Self {
        self.note = Some(text.into());
        self
    }

    /// Adds the version.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Adds the library.
    #[must_use]
    pub fn with_library(mut self, library: impl Into<String>) -> Self {
        self.library = Some(library.into());
        self
    }
}

/// A rule's answer about one member, or about the input as a whole.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad it is; the rule's own severity unless the rule or the configuration changed it.
    pub severity: Severity,
    /// The member; `None` for the input as a whole.
    pub member: Option<String>,
    /// What is wrong, on one line.
    pub message: String,
    /// What mends it.
    pub help: Option<String>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// Set if the configuration ignores it.
    pub suppressed: Option<Suppression>,
}

/// Why a finding does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// The reason that the configuration gives.
    pub reason: String,
    /// Until when, as `YYYY-MM-DD`.
    pub expires: Option<String>,
}

/// Takes the findings of one rule.
#[derive(Debug)]
pub struct Sink {
    rule: &'static Rule,
    findings: Vec<Finding>,
}

impl Sink {
    pub(crate) fn new(rule: &'static Rule) -> Self {
        Self { rule, findings: Vec::new() }
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// A finding about a member.
    pub fn member(&mut self, member: &str, message: impl Into<String>) -> &mut Finding {
        self.add(Some(member.to_owned()), message.into())
    }

    /// A finding about the input as a whole.
    pub fn whole(&mut self, message: impl Into<String>) -> &mut Finding {
        self.add(None, message.into())
    }

    fn add(&mut self, member: Option<String>, message: String) -> &mut Finding {
        self.findings.push(Finding {
            rule: self.rule,
            severity: self.rule.severity,
            member,
            message,
            help: None,
            evidence: Vec::new(),
            suppressed: None,
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }
}

impl Finding {
    /// Sets what mends it.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// Sets another severity than the rule's own.
    pub fn severity(&mut self, severity: Severity) -> &mut Self {
        self.severity = severity;
        self
    }

    /// Adds what it rests on.
    pub fn evidence(&mut self, evidence: impl IntoIterator<Item = Evidence>) -> &mut Self {
        self.evidence.extend(evidence);
        self
    }
}
