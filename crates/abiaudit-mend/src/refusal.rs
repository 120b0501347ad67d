//! Why an object cannot be cured.

use crate::code::UnknownMachine;

/// Why one way to cure an object is closed. The texts are for the people who have to decide what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is nothing to cure.
    #[error("it exports no libstdc++ of its own")]
    NothingToCure,
    /// musl, which has no unique symbols, and no libstdc++ that a system promises.
    #[error("it is not for glibc: no system promises a libstdc++.so.6 there")]
    NotGlibc,
    /// No list says what the target's libstdc++ has.
    #[error("what libstdc++.so.6 has on {arch} is not known")]
    UnknownLibrary {
        /// The architecture.
        arch: String,
    },
    /// `DF_SYMBOLIC`: the loader looks into the object itself first, whatever the symbol table of others says.
    #[error(
        "it was linked with -Bsymbolic: it is bound to its own copy, and only linking it again changes that"
    )]
    Symbolic,
    /// A part of the copy is hidden. What is hidden cannot be given up, and what is visible must not go alone.
    #[error(
        "only a part of its libstdc++ is exported ({example} is not): the rest would go on with a copy of its own"
    )]
    PartlyHidden {
        /// A symbol of the hidden part, mangled.
        example: String,
    },
    /// The linker settled references.
    #[error("{count} references to its own libstdc++ were settled by the linker, as in {example}")]
    DirectBindings {
        /// How many.
        count: usize,
        /// One of them.
        example: String,
    },
    /// It has its own `operator new`, on purpose.
    #[error(
        "it replaces the allocator ({symbol}): which definitions are those of its libstdc++ cannot be told"
    )]
    ReplacesAllocator {
        /// One of the symbols.
        symbol: String,
    },
    /// Exceptions that leave a copy with an unwinder of its own end the process.
    #[error(
        "it has an unwinder of its own (-static-libgcc): an exception that crosses to or from it ends the process"
    )]
    PrivateUnwinder,
    /// Another object uses what would have to be hidden.
    #[error("{by} uses {symbol} of its libstdc++, which hiding would take away")]
    UsedBySibling {
        /// The symbol, mangled.
        symbol: String,
        /// The member that uses it.
        by: String,
    },
    /// Hiding is of no use to a program.
    #[error("it is a program, not a library")]
    Program,
    /// Its code cannot be decoded.
    #[error(transparent)]
    UnknownMachine(#[from] UnknownMachine),
    /// Its relocations cannot be read.
    #[error(transparent)]
    Unreadable(#[from] abiaudit_elf::ParseError),
}
