//! The answer.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::signature::{Certainty, Signature};

/// Lines of evidence that are kept for a signature.
const MAX_EVIDENCE: usize = 16;
/// Different values that are kept for a detail.
const MAX_VALUES: usize = 512;
/// Characters of a line of evidence or of a detail that are kept.
const MAX_TEXT: usize = 4096;

/// What a text shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Lines of the text.
    pub lines: u64,
    /// Lines that were longer than [`MAX_LINE`](crate::MAX_LINE) and looked at in part.
    pub shortened_lines: u64,
    /// Signatures in the order in which they first show; those that prove a cause before those that hint at one.
    pub recognised: Vec<Recognised>,
}

/// A signature that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recognised {
    /// [`Signature::id`]
    pub id: &'static str,
    /// [`Signature::name`]
    pub name: &'static str,
    /// [`Signature::certainty`]
    pub certainty: Certainty,
    /// [`Signature::meaning`]
    pub meaning: &'static str,
    /// How often it was seen.
    pub occurrences: u64,
    /// Lines that show it, in their order; the first 16.
    pub evidence: Vec<Evidence>,
    /// What the lines name: `symbol`, `version`, `library`, `required_by` and so on, in their order; at most 512
    /// values each.
    pub details: BTreeMap<String, Vec<String>>,
    /// Rules that find the cause in wheels.
    pub checks: Vec<CheckAdvice>,
    /// [`Signature::mend`]
    pub mend: &'static str,
    /// [`Signature::references`]
    pub references: Vec<&'static str>,
}

/// A line of the input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Evidence {
    /// Number, from 1.
    pub line: u64,
    /// Text, cleaned of colours and CI prefixes; a frame that was wrapped is one text.
    pub text: String,
}

/// A rule to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CheckAdvice {
    /// Such as `ABI101`.
    pub rule: &'static str,
    /// What a finding of it says about this failure.
    pub shows: &'static str,
}

impl Recognised {
    pub(crate) fn new(signature: &'static Signature) -> Self {
        Self {
            id: signature.id,
            name: signature.name,
            certainty: signature.certainty,
            meaning: signature.meaning,
            occurrences: 0,
            evidence: Vec::new(),
            details: BTreeMap::new(),
            checks: signature
                .checks
                .iter()
                .map(|check| CheckAdvice { rule: check.rule, shows: check.shows })
                .collect(),
            mend: signature.mend,
            references: signature.references.to_vec(),
        }
    }

    /// Keeps a line.
    pub(crate) fn show(&mut self, line: u64, text: &str) {
        if self.evidence.len() < MAX_EVIDENCE && self.evidence.iter().all(|known| known.line != line) {
            let text = text.trim_start().chars().take(MAX_TEXT).collect();
            self.evidence.push(Evidence { line, text });
        }
    }

    /// Keeps details; a comma and a blank separate several.
    pub(crate) fn detail(&mut self, key: &str, values: &str) {
        let known = self.details.entry(key.to_owned()).or_default();
        for value in values.split(", ") {
            let value: String = value.trim().chars().take(MAX_TEXT).collect();
            if known.len() < MAX_VALUES && !known.contains(&value) {
                known.push(value);
            }
        }
    }
}
