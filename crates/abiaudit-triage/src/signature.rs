//! What a signature is: a row that says how a failure shows, what it means and what proves and mends it.

use serde::Serialize;

use crate::stack::{Frame, Sighting, Stack};

/// How much a recognised signature says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The text has one cause.
    Certain,
    /// The text has this cause most of the time.
    Likely,
    /// The text says where to look, not what is wrong.
    Hint,
}

impl Certainty {
    /// In lower case, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Hint => "hint",
        }
    }
}

/// A rule of abiaudit that finds the cause in a wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Such as `ABI101`.
    pub rule: &'static str,
    /// What a finding of the rule says about this failure.
    pub shows: &'static str,
}

/// One known failure.
pub struct Signature {
    /// For ever the same, in words joined by hyphens.
    pub id: &'static str,
    /// For people: what is wrong, in a few words.
    pub name: &'static str,
    /// How much it says.
    pub certainty: Certainty,
    /// What happened, and why it shows like this.
    pub meaning: &'static str,
    /// What proves it on the wheels of the process.
    pub checks: &'static [Check],
    /// What to change.
    pub mend: &'static str,
    /// Where it was reported or is specified: projects with issue numbers, documents.
    pub references: &'static [&'static str],
    /// How it is recognised.
    pub(crate) sign: Sign,
}

/// Whether the name of a symbol or library is of a kind.
pub(crate) type NameTest = fn(&str) -> bool;

/// How a failure shows in a text.
pub(crate) enum Sign {
    /// A message.
    ///
    /// Patterns are regular expressions in which a blank stands for any number of blanks, none included, so that
    /// they match across wrapped lines. Named groups become details.
    Message {
        /// One of them makes the signature.
        any: &'static [&'static str],
        /// They add details to a signature that was seen before.
        also: &'static [&'static str],
    },
    /// The loader misses a symbol of this kind.
    MissingSymbol(NameTest),
    /// The loader misses a library of this kind.
    MissingLibrary(NameTest),
    /// The frames of one stack.
    Stack(fn(&Stack) -> Option<Sighting>),
    /// Frames like this, anywhere in the text, out of two or more files.
    TwoFiles(fn(&Frame) -> bool),
}
