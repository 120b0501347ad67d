//! How sure a finding is, and what it rests on.

use std::fmt;

/// How much a fact weighs. The order is that of the letters: `A` is the best and the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// What the loader itself sees: symbols, sonames. Only this can prove danger.
    A,
    /// A text that no other code has. Two translation units must bear it out before presence is claimed.
    B,
    /// A text that other code can have too: names of environment variables, messages.
    C,
    /// Circumstance: compilers, a missing dependency.
    D,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        })
    }
}

/// How much of a runtime other objects in the process can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exposure {
    /// Nothing is carried that could be exposed.
    NotApplicable,
    /// Carried, and nothing of it is among the exported symbols.
    Hidden,
    /// The runtime is split: of two symbols that belong together only one is exported.
    HalfHidden,
    /// Exported: other objects can bind to it, and it to them.
    Exported,
}

impl Exposure {
    /// The word used in reports: `exported`, `half-hidden`, `hidden`, or nothing.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotApplicable => "",
            Self::Hidden => "hidden",
            Self::HalfHidden => "half-hidden",
            Self::Exported => "exported",
        }
    }
}

/// How an object comes to a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carriage {
    /// It is the runtime: its soname says so.
    Library,
    /// It holds the runtime and exports it under another soname.
    Exports,
    /// It holds the runtime and exports nothing of it.
    Static,
    /// It needs the runtime (`DT_NEEDED`).
    Needs,
    /// It refers to symbols of the runtime and does not say who has them.
    Refers,
}

impl Carriage {
    /// The word used in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Exports => "embedded",
            Self::Static => "static",
            Self::Needs => "needed",
            Self::Refers => "undeclared",
        }
    }

    /// How exposed such a runtime is.
    pub const fn exposure(self) -> Exposure {
        match self {
            Self::Library | Self::Exports => Exposure::Exported,
            Self::Static => Exposure::Hidden,
            Self::Needs | Self::Refers => Exposure::NotApplicable,
        }
    }
}

/// One fact with its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// How much it weighs.
    pub grade: Grade,
    /// What was found.
    pub fact: Fact,
}

/// What can be found. `Display` gives the line for a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A text in the file.
    Text {
        /// The text as it stands there, cut to a sensible length.
        text: String,
        /// Offset in the file, in bytes, of its first find.
        offset: u64,
        /// How often it was found.
        count: u64,
        /// The translation unit that brings it.
        unit: &'static str,
    },
    /// Exported definitions.
    Exports {
        /// What they are: `operator new`, `GOMP_*`.
        what: String,
        /// How many.
        count: usize,
        /// The first few by name, in the order of the symbol table.
        examples: Vec<String>,
    },
    /// References to symbols of other objects.
    References {
        /// What they are.
        what: String,
        /// How many.
        count: usize,
        /// The first few by name, in the order of the symbol table.
        examples: Vec<String>,
    },
    /// Local definitions that only `.symtab` shows.
    Locals {
        /// What they are.
        what: String,
        /// How many.
        count: usize,
        /// The first few by name, in the order of the symbol table.
        examples: Vec<String>,
    },
    /// `DT_SONAME`
    Soname(String),
    /// `DT_NEEDED`
    Needed(String),
    /// Something that is missing or stands for itself, as a sentence.
    Circumstance(&'static str),
}

impl Evidence {
    pub(crate) fn new(grade: Grade, fact: Fact) -> Self {
        Self { grade, fact }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.grade, self.fact)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, offset, count, unit } => {
                write!(f, "{text:?} of {unit} at offset {offset:#x}")?;
                if *count > 1 { write!(f, " and {} more", count - 1) } else { Ok(()) }
            }
            Self::Exports { what, count, examples } => symbols(f, "exports", *count, what, examples),
            Self::References { what, count, examples } => symbols(f, "refers to", *count, what, examples),
            Self::Locals { what, count, examples } => symbols(f, ".symtab has", *count, what, examples),
            Self::Soname(name) => write!(f, "soname {name}"),
            Self::Needed(name) => write!(f, "needs {name}"),
            Self::Circumstance(text) => f.write_str(text),
        }
    }
}

fn symbols(
    f: &mut fmt::Formatter<'_>,
    verb: &str,
    count: usize,
    what: &str,
    examples: &[String],
) -> fmt::Result {
    write!(f, "{verb} {count} {what} ({}", examples.join(", "))?;
    f.write_str(if count > examples.len() { ", ...)" } else { ")" })
}
