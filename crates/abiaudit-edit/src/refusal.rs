//! Reasons not to edit a file: each has a code that scripts can test for.

/// A plan that cannot be carried out on a file without risk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The edits concern the dynamic section, and there is none: an object file, a core, or a static program.
    #[error("the file has no dynamic section, so the dynamic loader never reads what this plan would change")]
    NotDynamic,
    /// Program headers would have to move, because what lies behind them cannot.
    #[error(
        "{needed} program headers are needed and there is room for {room}: {blocker} lies behind them and cannot move; \
         with allow_phdr_move the table moves to the end of the file, and the file will not survive strip"
    )]
    ProgramHeadersBlocked {
        /// Program headers that the plan needs.
        needed: u64,
        /// Program headers that fit where they are.
        room: u64,
        /// What lies behind them.
        blocker: String,
    },
    /// More than 65,534 program headers.
    #[error("a file cannot have {0} program headers")]
    TooManyProgramHeaders(usize),
    /// New segments would lie beyond the address space of the class.
    #[error("no address space is left behind the last segment, which ends at {end:#x}")]
    AddressSpaceExhausted {
        /// End of the last segment.
        end: u64,
    },
    /// `.dynstr` would be larger than a 32-bit offset can reach.
    #[error("the dynamic string table would need {0} bytes, and names are found by 32-bit offsets")]
    StringTableTooLarge(u64),
    /// The dynamic string table has users that the editor does not know, and the plan would move or change them.
    #[error("{0} uses the dynamic tables in a way that the editor does not know")]
    UnknownUser(String),
    /// No dynamic symbol of that name (and version).
    #[error("there is no dynamic symbol {0}")]
    SymbolNotFound(String),
    /// The symbol is undefined, and the edit is about definitions; or the other way round.
    #[error("the dynamic symbol {symbol} is {state}")]
    WrongSymbolState {
        /// The symbol.
        symbol: String,
        /// What it is instead.
        state: &'static str,
    },
    /// A version is asked for, and the file has no version tables.
    #[error("the file has no symbol versions, and adding the tables to a file without them is not supported")]
    NoVersionTables,
    /// More version indices than `.gnu.version` can hold.
    #[error("the file has no version index left")]
    TooManyVersions,
    /// A version need names a library that `DT_NEEDED` does not: glibc fails an assertion on such a file.
    #[error("versions of {0} would be needed, and {0} is not among the needed libraries: add it to the plan")]
    VersionNeedWithoutNeeded(String),
    /// The file has no `PT_INTERP`.
    #[error("the file names no program interpreter")]
    NoInterpreter,
    /// An empty name, or a name with a zero byte.
    #[error("{what} {name:?} is empty or has a zero byte in it")]
    BadName {
        /// What it is the name of.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The order given for `DT_NEEDED` is no permutation of the needed libraries.
    #[error("the new order of needed libraries names {0}, which is not needed")]
    UnknownNeeded(String),
    /// A symbol table whose order has a meaning that the editor would destroy.
    #[error(
        "the order of dynamic symbols has a meaning on this machine ({0}), and this plan would change it"
    )]
    SymbolOrder(&'static str),
    /// A dynamic symbol table of which no table says how long it is.
    #[error("nothing says how many dynamic symbols there are")]
    UnknownSymbolCount,
    /// Strip was asked for, and the sections cannot be told apart.
    #[error("{0}; without section headers that can be relied upon nothing can be stripped")]
    NoSections(String),
}

impl Refusal {
    /// A word for scripts, stable over releases.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotDynamic => "not-dynamic",
            Self::ProgramHeadersBlocked { .. } => "program-headers-blocked",
            Self::TooManyProgramHeaders(_) => "too-many-program-headers",
            Self::AddressSpaceExhausted { .. } => "address-space-exhausted",
            Self::StringTableTooLarge(_) => "string-table-too-large",
            Self::UnknownUser(_) => "unknown-user",
            Self::SymbolNotFound(_) => "symbol-not-found",
            Self::WrongSymbolState { .. } => "wrong-symbol-state",
            Self::NoVersionTables => "no-version-tables",
            Self::TooManyVersions => "too-many-versions",
            Self::VersionNeedWithoutNeeded(_) => "version-need-without-needed",
            Self::NoInterpreter => "no-interpreter",
            Self::BadName { .. } => "bad-name",
            Self::UnknownNeeded(_) => "unknown-needed",
            Self::SymbolOrder(_) => "symbol-order",
            Self::UnknownSymbolCount => "unknown-symbol-count",
            Self::NoSections(_) => "no-sections",
        }
    }
}
