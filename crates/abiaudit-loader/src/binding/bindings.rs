//! The result: which definition serves which reference.

use std::ops::Range;

use crate::binding::ObjectId;

/// One reference and what it is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The file that refers.
    pub file: u32,
    /// Index of the reference in the file's dynamic symbol table.
    pub symbol: u32,
    /// The reference is to a symbol that the file defines itself.
    pub own_definition: bool,
    /// Who serves it.
    pub provider: Provider,
    /// By which rule.
    pub via: Via,
}

/// One reference of a library of the system and what it is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemBinding {
    /// The library that refers: its position in the scenario.
    pub library: u32,
    /// Position in its [`references`](crate::binding::SystemLibrary::references).
    pub reference: u32,
    /// Who serves it.
    pub provider: Provider,
    /// By which rule.
    pub via: Via,
}

/// What a reference is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// A definition in a file.
    File {
        /// The file.
        file: u32,
        /// Index in its dynamic symbol table.
        symbol: u32,
    },
    /// A library of the system.
    System {
        /// Position in the scenario.
        library: u32,
    },
    /// Nothing has it.
    Unresolved {
        /// A weak reference may stay without: its address is 0. Any other makes loading fail.
        weak: bool,
    },
}

/// The rule that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// The reference is hidden or protected, or the object has `DF_SYMBOLIC` and a definition.
    Itself,
    /// First in the global scope.
    Global,
    /// First in the list of the `dlopen` that loaded the object.
    Local,
    /// `STB_GNU_UNIQUE`: the definition that the process found first.
    Unique,
    /// Nothing found.
    Nothing,
}

impl Provider {
    /// The object that serves.
    pub fn object(self) -> Option<ObjectId> {
        match self {
            Self::File { file, .. } => Some(ObjectId::File(file)),
            Self::System { library } => Some(ObjectId::System(library)),
            Self::Unresolved { .. } => None,
        }
    }
}

/// All bindings of a process: objects in the order of relocation, references in the order of the symbol table.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    all: Vec<Binding>,
    /// Per file.
    ranges: Vec<Range<usize>>,
}

impl Bindings {
    pub(crate) fn new(files: usize) -> Self {
        Self { all: Vec::new(), ranges: vec![0..0; files] }
    }

    /// Adds the bindings of a file, which has none yet.
    pub(crate) fn add(&mut self, file: u32, bindings: impl IntoIterator<Item = Binding>) {
        let start = self.all.len();
        self.all.extend(bindings);
        if let Some(range) = self.ranges.get_mut(file as usize) {
            *range = start..self.all.len();
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Binding> {
        self.all.iter()
    }

    /// How many references there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// No object refers to anything.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The references of one file, by symbol index.
    pub fn of(&self, file: u32) -> &[Binding] {
        let range = self.ranges.get(file as usize).cloned().unwrap_or_default();
        self.all.get(range).unwrap_or_default()
    }

    /// What one reference is bound to.
    pub fn get(&self, file: u32, symbol: u32) -> Option<&Binding> {
        let bindings = self.of(file);
        bindings.get(bindings.binary_search_by_key(&symbol, |binding| binding.symbol).ok()?)
    }

    /// The references that an object serves, its own among them.
    pub fn served_by(&self, object: ObjectId) -> impl Iterator<Item = &Binding> {
        self.all.iter().filter(move |binding| binding.provider.object() == Some(object))
    }

    /// References that nothing serves.
    pub fn unresolved(&self) -> impl Iterator<Item = &Binding> {
        self.all.iter().filter(|binding| matches!(binding.provider, Provider::Unresolved { .. }))
    }
}
