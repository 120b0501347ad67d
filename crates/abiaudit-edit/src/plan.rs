//! What is to be done to a file, as data.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Edits, carried out in order, written at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditPlan {
    /// The edits.
    pub edits: Vec<Edit>,
}

impl EditPlan {
    /// A plan of these edits.
    pub fn new(edits: impl IntoIterator<Item = Edit>) -> Self {
        Self { edits: edits.into_iter().collect() }
    }

    /// Adds an edit at the end.
    pub fn push(&mut self, edit: Edit) {
        self.edits.push(edit);
    }
}

/// One line for each edit.
impl fmt::Display for EditPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.edits.iter().try_for_each(|edit| writeln!(f, "{edit}"))
    }
}

/// One edit. An edit that finds its wish fulfilled changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "kebab-case")]
pub enum Edit {
    /// Adds a `DT_NEEDED`, unless there is one.
    AddNeeded {
        /// The library's SONAME.
        library: String,
        /// Where in the order of needed libraries.
        #[serde(default)]
        place: Place,
    },
    /// Removes every `DT_NEEDED` of a name, and with it the version needs of that library: a reference to a version of
    /// a library that is not needed stops glibc with a failed assertion (`_dl_check_map_versions`).
    RemoveNeeded {
        /// The library's SONAME.
        library: String,
    },
    /// Renames a `DT_NEEDED` and the version needs of that library.
    ReplaceNeeded {
        /// The name until now.
        from: String,
        /// The name to be.
        to: String,
    },
    /// Puts needed libraries first in this order; the others follow in theirs.
    OrderNeeded {
        /// SONAMEs.
        libraries: Vec<String>,
    },
    /// Sets `DT_SONAME`.
    SetSoname {
        /// The name.
        soname: String,
    },
    /// Removes `DT_SONAME`.
    RemoveSoname,
    /// Sets `DT_RUNPATH` or `DT_RPATH`, and removes the other one.
    SetSearchPath {
        /// Which of the two.
        kind: SearchPathKind,
        /// Directories, separated by colons.
        path: String,
    },
    /// Removes `DT_RUNPATH` and `DT_RPATH`.
    RemoveSearchPath,
    /// Makes the search path that there is a `DT_RUNPATH` or `DT_RPATH`. If there are both, `DT_RUNPATH` is what the
    /// loader obeys, and stays.
    ConvertSearchPath {
        /// Which of the two.
        to: SearchPathKind,
    },
    /// Renames the library of version needs only, not the `DT_NEEDED`.
    RenameVersionFile {
        /// The name until now.
        from: String,
        /// The name to be.
        to: String,
    },
    /// Renames a needed version.
    RenameVersion {
        /// The library of the version need.
        library: String,
        /// The version until now.
        from: String,
        /// The version to be.
        to: String,
    },
    /// Removes a needed version; symbols that had it refer to their name without version.
    RemoveVersion {
        /// The library of the version need.
        library: String,
        /// The version.
        version: String,
    },
    /// Lets undefined symbols refer to a version of a library.
    AssignVersion {
        /// The symbols.
        symbols: Vec<SymbolName>,
        /// The library, which must be needed.
        library: String,
        /// The version.
        version: String,
    },
    /// Renames a dynamic symbol.
    RenameSymbol {
        /// The symbol.
        from: SymbolName,
        /// Its new name.
        to: String,
    },
    /// Makes every `STB_GNU_UNIQUE` symbol an ordinary one.
    DemoteUnique {
        /// What they become.
        to: Binding,
    },
    /// Sets the binding of dynamic symbols.
    SetBinding {
        /// The symbols.
        symbols: Vec<SymbolName>,
        /// Their binding.
        binding: Binding,
    },
    /// Sets the visibility of dynamic symbols, and leaves them in the hash tables.
    SetVisibility {
        /// The symbols.
        symbols: Vec<SymbolName>,
        /// Their visibility.
        visibility: Visibility,
    },
    /// Makes definitions hidden and takes them out of the hash tables: no other object can bind to them, and this one
    /// binds to itself.
    Hide {
        /// The symbols.
        symbols: Vec<SymbolName>,
    },
    /// Makes definitions undefined, so that references bind to another object's.
    Undefine {
        /// The symbols.
        symbols: Vec<SymbolName>,
        /// The version that the references name; without one they name none.
        version: Option<RequiredVersion>,
    },
    /// Takes `PF_X` from `PT_GNU_STACK`, which is added if it is missing.
    ClearExecutableStack,
    /// Sets and clears bits of `DT_FLAGS`.
    SetFlags {
        /// Bits to set.
        set: u64,
        /// Bits to clear.
        clear: u64,
    },
    /// Sets and clears bits of `DT_FLAGS_1`.
    SetFlags1 {
        /// Bits to set.
        set: u64,
        /// Bits to clear.
        clear: u64,
    },
    /// Sets the program interpreter.
    SetInterpreter {
        /// Its path.
        path: String,
    },
    /// Drops `PT_LOAD` segments that no allocated section lies in. Every other edit that changes a file does so too.
    Heal,
    /// Removes sections that are not loaded. It is carried out before the other edits.
    Strip {
        /// What goes.
        level: StripLevel,
        /// A section `.gnu_debuglink` that says where the debug information went.
        #[serde(default)]
        debug_link: Option<DebugLink>,
    },
}

/// Where a needed library is added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Before the others: its symbols come first.
    First,
    /// Behind the others.
    #[default]
    Last,
}

/// The two kinds of search path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchPathKind {
    /// `DT_RUNPATH`: for this object's own needs, behind `LD_LIBRARY_PATH`.
    Runpath,
    /// `DT_RPATH`: for what its needs need too, before `LD_LIBRARY_PATH`.
    Rpath,
}

/// Symbol bindings that a plan can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// `STB_GLOBAL`
    Global,
    /// `STB_WEAK`
    Weak,
}

/// Symbol visibilities (gABI chapter 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Visibility {
    /// `STV_DEFAULT`
    Default,
    /// `STV_PROTECTED`
    Protected,
    /// `STV_HIDDEN`
    Hidden,
}

/// What strip removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StripLevel {
    /// Debug information: `.debug_*`, `.zdebug_*`, `.gdb_index`, `.stab*`.
    Debug,
    /// That, and the symbol table that the loader does not use (`.symtab`, `.strtab`).
    Symbols,
}

/// What `.gnu_debuglink` says (GDB manual, "Separate Debug Files").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebugLink {
    /// Name of the debug file, without directory.
    pub name: String,
    /// CRC-32 of its content.
    pub crc: u32,
}

/// A version of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredVersion {
    /// SONAME of the library, which must be needed.
    pub library: String,
    /// The version node.
    pub version: String,
}

/// A dynamic symbol by its name, and by its version where the name has several.
///
/// Without a version, all symbols of the name are meant. As text: `name` or `name@version`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct SymbolName {
    /// The name as it is in `.dynstr`.
    pub name: String,
    /// The version, without `@`.
    pub version: Option<String>,
}

impl SymbolName {
    /// All symbols of a name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), version: None }
    }
}

impl From<String> for SymbolName {
    fn from(text: String) -> Self {
        match text.split_once('@') {
            Some((name, version)) if !name.is_empty() => {
                let version = version.trim_start_matches('@').to_owned();
                Self { name: name.to_owned(), version: Some(version) }
            }
            _ => Self { name: text, version: None },
        }
    }
}

impl FromStr for SymbolName {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.to_owned().into())
    }
}

impl From<SymbolName> for String {
    fn from(symbol: SymbolName) -> Self {
        symbol.to_string()
    }
}

impl fmt::Display for SymbolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Display for SearchPathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Runpath => "RUNPATH",
            Self::Rpath => "RPATH",
        })
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddNeeded { library, place: Place::First } => write!(f, "add NEEDED {library} first"),
            Self::AddNeeded { library, place: Place::Last } => write!(f, "add NEEDED {library} last"),
            Self::RemoveNeeded { library } => write!(f, "remove NEEDED {library}"),
            Self::ReplaceNeeded { from, to } => write!(f, "replace NEEDED {from} by {to}"),
            Self::OrderNeeded { libraries } => write!(f, "order NEEDED {}", libraries.join(", ")),
            Self::SetSoname { soname } => write!(f, "set SONAME {soname}"),
            Self::RemoveSoname => write!(f, "remove SONAME"),
            Self::SetSearchPath { kind, path } => write!(f, "set {kind} {path}"),
            Self::RemoveSearchPath => write!(f, "remove RPATH and RUNPATH"),
            Self::ConvertSearchPath { to } => write!(f, "convert the search path to {to}"),
            Self::RenameVersionFile { from, to } => write!(f, "ask {to} for the versions of {from}"),
            Self::RenameVersion { library, from, to } => write!(f, "need {to} of {library} for {from}"),
            Self::RemoveVersion { library, version } => write!(f, "do not need {version} of {library}"),
            Self::AssignVersion { symbols, library, version } => {
                write!(f, "refer to {version} of {library}: {}", Listed(symbols))
            }
            Self::RenameSymbol { from, to } => write!(f, "rename symbol {from} to {to}"),
            Self::DemoteUnique { to } => write!(f, "make unique symbols {to:?}"),
            Self::SetBinding { symbols, binding } => write!(f, "make {binding:?}: {}", Listed(symbols)),
            Self::SetVisibility { symbols, visibility } => {
                write!(f, "make visibility {visibility:?}: {}", Listed(symbols))
            }
            Self::Hide { symbols } => write!(f, "hide {}", Listed(symbols)),
            Self::Undefine { symbols, version: None } => write!(f, "make undefined: {}", Listed(symbols)),
            Self::Undefine { symbols, version: Some(of) } => {
                write!(f, "make undefined ({} of {}): {}", of.version, of.library, Listed(symbols))
            }
            Self::ClearExecutableStack => write!(f, "clear the executable stack"),
            Self::SetFlags { set, clear } => write!(f, "FLAGS: set {set:#x}, clear {clear:#x}"),
            Self::SetFlags1 { set, clear } => write!(f, "FLAGS_1: set {set:#x}, clear {clear:#x}"),
            Self::SetInterpreter { path } => write!(f, "set the interpreter {path}"),
            Self::Heal => write!(f, "drop empty segments"),
            Self::Strip { level: StripLevel::Debug, .. } => write!(f, "strip debug information"),
            Self::Strip { level: StripLevel::Symbols, .. } => {
                write!(f, "strip symbols and debug information")
            }
        }
    }
}

/// A few symbols and how many more.
struct Listed<'a>(&'a [SymbolName]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4;
        for (index, symbol) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{symbol}", if index == 0 { "" } else { ", " })?;
        }
        match self.0.len().checked_sub(SHOWN) {
            Some(more @ 1..) => write!(f, " and {more} more"),
            _ => Ok(()),
        }
    }
}
