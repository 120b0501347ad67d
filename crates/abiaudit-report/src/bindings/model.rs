//! The bindings of a process as data: the JSON contract `abiaudit.bindings/1`.
//!
//! Names and nesting are stable. Fields may be added within `/1`, never renamed, removed or given another meaning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Tool;

/// Value of [`Bindings::schema`].
pub const SCHEMA: &str = "abiaudit.bindings/1";

/// What `abiaudit bind` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bindings {
    /// Name and version of this format: `abiaudit.bindings/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The program that wrote it.
    pub tool: Tool,
    /// What was given, in order.
    pub inputs: Vec<Input>,
    /// The system that was simulated.
    pub system: System,
    /// One for each order of imports.
    pub runs: Vec<Run>,
    /// References that different orders bind differently; empty with one run.
    pub differences: Vec<Difference>,
}

/// An input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// As it was given.
    pub path: String,
    /// Name and version (`numpy 2.5.5`), or the path: what `distribution` is elsewhere.
    pub distribution: Option<String>,
    /// Given by `--with`.
    pub with: bool,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// The system that was simulated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Architecture, `x86_64`.
    pub arch: String,
    /// `glibc` or `musl`.
    pub libc: String,
    /// Its release.
    pub libc_release: String,
    /// Release of GCC whose runtime libraries are there.
    pub gcc_release: String,
}

/// A simulated process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// What was imported, in order: names of modules; without `--import` distributions, with `--trace` nothing.
    pub order: Vec<String>,
    /// What should be known about how complete this is.
    pub notes: Vec<String>,
    /// What was opened, in order.
    pub opened: Vec<Opened>,
    /// Every object, in the order of loading. Numbers elsewhere are positions in this list.
    pub objects: Vec<Object>,
    /// Number of references that were bound.
    pub references: usize,
    /// Who serves whom, by consumer and provider. Objects that serve themselves are left out.
    pub edges: Vec<Edge>,
    /// References that leave the object or the distribution that they were built for.
    pub unexpected: Vec<Unexpected>,
    /// References that are left out of `unexpected`: within a distribution, to weak or unique definitions or to type
    /// information, which several of its objects define alike.
    pub folded: usize,
    /// Libraries that were asked for and not found.
    pub missing: Vec<Missing>,
    /// Strong references that nothing serves, by object and symbol. Loading fails, unless a library whose exports are
    /// not known has them.
    pub unresolved: Vec<Unresolved>,
    /// The symbols that `--symbol` asked for; `null` if it was not given.
    pub symbols: Option<Vec<Symbol>>,
}

/// A `dlopen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Opened {
    /// The path below site-packages, or the name that was asked for.
    pub name: String,
    /// `RTLD_GLOBAL`
    pub global: bool,
    /// Why.
    pub because: String,
}

/// An object in the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Object {
    /// Its path below site-packages; for a library of the system its soname, `python` for the program.
    pub name: String,
    /// The distribution that it belongs to; `null` for the system.
    pub distribution: Option<String>,
    /// `file`; of the system `python` (its exports are known by how they begin), `table` or `unknown`.
    pub kind: ObjectKind,
    /// The object that needed it first; `null` for the program and for what was opened.
    pub loader: Option<usize>,
    /// Position in `opened` of what loaded it; `null` for what is there from the start.
    pub opened: Option<usize>,
    /// It is in the global scope at the end.
    pub global: bool,
}

/// How much is known of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// A file of an input.
    File,
    /// CPython: it is taken to export names that begin with `Py` or `_Py`.
    Python,
    /// A library of the system whose exports are known.
    Table,
    /// A library of the system whose exports are not known: it serves nothing here.
    Unknown,
}

/// By which rule a definition was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// The reference is protected or hidden, or the object is linked with `-Bsymbolic`.
    Itself,
    /// First in the global scope.
    Global,
    /// First among what the opened object needs.
    Local,
    /// `STB_GNU_UNIQUE`: the first that the process found.
    Unique,
    /// Not found.
    Nothing,
}

/// References of one object that another serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// The consumer.
    pub from: usize,
    /// The provider.
    pub to: usize,
    /// Number of symbols found in the global scope.
    pub global: usize,
    /// Number of symbols found in the local scope.
    pub local: usize,
    /// Number of symbols that are `STB_GNU_UNIQUE`.
    pub unique: usize,
    /// Of all these: number of symbols that the consumer defines too.
    pub overridden: usize,
}

impl Edge {
    /// Number of symbols.
    pub fn symbols(&self) -> usize {
        self.global + self.local + self.unique
    }
}

/// How a reference went astray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Astray {
    /// The object has a definition of its own, and another one serves.
    Overridden,
    /// The provider is none of what the object needs.
    NotNeeded,
}

/// References of one object that one other serves against what it was built for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unexpected {
    /// The consumer.
    pub from: usize,
    /// The provider.
    pub to: usize,
    /// In what way.
    pub kind: Astray,
    /// By which rule.
    pub via: Via,
    /// The provider is of another distribution, or of the system.
    pub leaves_distribution: bool,
    /// The symbols, sorted by name.
    pub symbols: Vec<Name>,
}

/// A symbol's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Name {
    /// As it stands in the symbol table.
    pub symbol: String,
    /// For people, if that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
    /// The version that is asked for or that is defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Name {
    /// For people.
    pub fn shown(&self) -> &str {
        self.demangled.as_deref().unwrap_or(&self.symbol)
    }
}

/// A library that was not found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The name that was asked for.
    pub name: String,
    /// Who needs it; `null` if it was to be opened.
    pub from: Option<usize>,
    /// Distributions that are known to bring it, sorted.
    pub providers: Vec<String>,
}

/// A reference that nothing serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unresolved {
    /// The object.
    pub from: usize,
    /// The symbol.
    #[serde(flatten)]
    pub name: Name,
    /// Libraries that may have it: those that the object can reach and whose exports are not known, or that are
    /// missing.
    pub perhaps: Vec<String>,
}

/// One symbol through all objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Symbol {
    /// As it stands in the symbol table.
    pub symbol: String,
    /// For people, if that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
    /// Files that define and export it, in the order of loading.
    pub definitions: Vec<Definition>,
    /// References to it, in the order of loading.
    pub references: Vec<Reference>,
}

/// A definition of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Definition {
    /// The object.
    pub object: usize,
    /// Its version.
    pub version: Option<String>,
    /// `global`, `weak` or `unique`.
    pub binding: String,
}

/// A reference to a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// The object.
    pub object: usize,
    /// The version that it asks for.
    pub version: Option<String>,
    /// Who serves it; `null` if nothing does.
    pub provider: Option<usize>,
    /// By which rule.
    pub via: Via,
    /// The object defines it too.
    pub own_definition: bool,
}

/// A reference that depends on the order of imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Name of the object.
    pub object: String,
    /// Providers' names in each run, in the order of `runs`; `null`: nothing, or not loaded.
    pub providers: Vec<Option<String>>,
    /// The symbols, sorted by name.
    pub symbols: Vec<Name>,
}
