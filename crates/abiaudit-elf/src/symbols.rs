//! Dynamic symbols.

use object::Endianness;
use object::read::elf::Sym;

use crate::error::{Fault, ParseError};
use crate::hash::{GnuHash, gnu_hash};
use crate::image::Image;
use crate::raw::Elf;
use crate::relocations::RelocationUse;
use crate::strings::{string_at, terminated};

/// `st_bind`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    /// `STB_LOCAL`
    Local,
    /// `STB_GLOBAL`
    Global,
    /// `STB_WEAK`
    Weak,
    /// `STB_GNU_UNIQUE`: one definition for the whole process, whatever the scope (glibc elf/dl-lookup.c).
    Unique,
    /// Any other value.
    Other(u8),
}

/// `st_type`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolType {
    /// `STT_NOTYPE`: what most undefined symbols have.
    None,
    /// `STT_OBJECT`
    Object,
    /// `STT_FUNC`
    Function,
    /// `STT_TLS`
    Tls,
    /// `STT_GNU_IFUNC`
    Ifunc,
    /// Any other value.
    Other(u8),
}

/// `st_other & 3`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Visibility {
    /// `STV_DEFAULT`
    Default,
    /// `STV_INTERNAL`
    Internal,
    /// `STV_HIDDEN`
    Hidden,
    /// `STV_PROTECTED`
    Protected,
}

/// One entry of `.dynsym`. Its name is an offset into the table's strings: ask [`Symbols::name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    name: u32,
    name_size: u32,
    /// `DT_VERSYM` entry: index with the hidden bit 0x8000; 1 (global) where there is no version table.
    pub version: u16,
    info: u8,
    other: u8,
    /// `st_shndx`; 0 is undefined.
    pub section: u16,
    /// Which relocations refer to it.
    pub uses: RelocationUse,
    /// `st_value`: address, or offset in the TLS block.
    pub value: u64,
    /// `st_size` in bytes.
    pub size: u64,
}

impl Symbol {
    /// `st_shndx == SHN_UNDEF`
    pub fn is_undefined(&self) -> bool {
        self.section == 0
    }

    /// Defined and visible to other objects: not local, not hidden, not internal.
    pub fn is_exported(&self) -> bool {
        self.is_global_definition()
            && matches!(self.visibility(), Visibility::Default | Visibility::Protected)
    }

    /// Defined and not local, whatever its visibility.
    fn is_global_definition(&self) -> bool {
        !self.is_undefined() && self.binding() != Binding::Local
    }

    /// `STB_WEAK`
    pub fn is_weak(&self) -> bool {
        self.binding() == Binding::Weak
    }

    /// `st_bind`
    pub fn binding(&self) -> Binding {
        match self.info >> 4 {
            0 => Binding::Local,
            1 => Binding::Global,
            2 => Binding::Weak,
            10 => Binding::Unique,
            other => Binding::Other(other),
        }
    }

    /// `st_type`
    pub fn symbol_type(&self) -> SymbolType {
        match self.info & 0xf {
            0 => SymbolType::None,
            1 => SymbolType::Object,
            2 => SymbolType::Function,
            6 => SymbolType::Tls,
            10 => SymbolType::Ifunc,
            other => SymbolType::Other(other),
        }
    }

    /// `st_other & 3`
    pub fn visibility(&self) -> Visibility {
        match self.other & 3 {
            1 => Visibility::Internal,
            2 => Visibility::Hidden,
            3 => Visibility::Protected,
            _ => Visibility::Default,
        }
    }
}

/// Equal if the tables are; what was looked up in them before does not count.
impl PartialEq for Symbols {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries && self.strings == other.strings && self.gnu_hash == other.gnu_hash
    }
}

impl Eq for Symbols {}

/// All dynamic symbols but the null symbol 0, with their strings.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    pub(crate) entries: Vec<Symbol>,
    strings: Vec<u8>,
    pub(crate) gnu_hash: Option<GnuHash>,
    by_name: std::sync::OnceLock<Vec<u32>>,
}

impl Symbols {
    /// Measures every name once. Names may share suffixes, but a sum far above the table's size means that a
    /// hostile file points many symbols at one huge string; the symbols whose offset is bad are counted.
    pub(crate) fn new(
        mut entries: Vec<Symbol>,
        strings: &[u8],
        gnu_hash: Option<GnuHash>,
    ) -> Result<(Self, u64), ParseError> {
        let most = (strings.len() as u64 + (1 << 16)).saturating_mul(16);
        let (mut sum, mut bad) = (0u64, 0u64);
        let strings = terminated(strings);
        for symbol in &mut entries {
            match string_at(strings, symbol.name.into()) {
                Some(name) => symbol.name_size = name.len() as u32,
                None => bad += 1,
            }
            sum += u64::from(symbol.name_size);
            if sum > most {
                let found = format!("names of more than {most} bytes from a table of {}", strings.len());
                return Err(ParseError::Malformed {
                    what: ".dynsym",
                    found,
                    expected: "names that share little",
                });
            }
        }
        let symbols =
            Self { entries, strings: strings.to_vec(), gnu_hash, by_name: std::sync::OnceLock::new() };
        Ok((symbols, bad))
    }

    /// In the order of the table, without the null symbol.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Symbol> {
        self.entries.iter()
    }

    /// How many there are, the null symbol not counted.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No symbols at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The symbol at `index` of the table (1 is the first).
    pub fn get(&self, index: u32) -> Option<&Symbol> {
        self.entries.get((index as usize).checked_sub(1)?)
    }

    /// The bytes of a symbol's name; empty where the offset is bad, which [`crate::Object::problems`] says.
    pub fn name(&self, symbol: &Symbol) -> &[u8] {
        let start = symbol.name as usize;
        self.strings.get(start..start + symbol.name_size as usize).unwrap_or_default()
    }

    /// The name as text, bytes that are not UTF-8 escaped.
    pub fn name_text(&self, symbol: &Symbol) -> String {
        crate::name::escape(self.name(symbol))
    }

    /// Undefined symbols, weak ones too.
    pub fn undefined(&self) -> impl Iterator<Item = &Symbol> {
        self.iter().filter(|s| s.is_undefined() && s.name_size != 0)
    }

    /// Exported definitions.
    pub fn exported(&self) -> impl Iterator<Item = &Symbol> {
        self.iter().filter(|s| s.is_exported())
    }

    /// Definitions of `name` that another object could bind to, in table order (several versions of one name).
    /// Looked up through `DT_GNU_HASH` as the loader does, else through an index made at the first call.
    pub fn definitions<'s>(&'s self, name: &'s [u8]) -> Vec<&'s Symbol> {
        let matches = |symbol: &&Symbol| symbol.is_exported() && self.name(symbol) == name;
        if let Some(table) = &self.gnu_hash {
            return table.candidates(gnu_hash(name)).filter_map(|i| self.get(i)).filter(matches).collect();
        }
        self.named(name).filter_map(|i| self.get(i)).filter(matches).collect()
    }

    /// Calls `visit` with index and symbol of every definition of `name` that is not local, hidden ones too (loaders
    /// differ in whether they see these), until it says false. For look-ups of one name in many objects: `hash` is its
    /// [`gnu_hash`], computed once, and nothing is allocated. Returns the number of table entries that were looked at,
    /// so that callers can bound their work in files whose hash chains are made to be long.
    pub fn visit_definitions<'s>(
        &'s self,
        name: &[u8],
        hash: u32,
        mut visit: impl FnMut(u32, &'s Symbol) -> bool,
    ) -> u64 {
        let mut looked_at = 0;
        if let Some(table) = &self.gnu_hash {
            for (index, hash_is_equal) in table.chain(hash) {
                looked_at += 1;
                let symbol = if hash_is_equal { self.get(index) } else { None };
                if let Some(symbol) = symbol.filter(|s| s.is_global_definition() && self.name(s) == name)
                    && !visit(index, symbol)
                {
                    break;
                }
            }
            return looked_at;
        }
        for index in self.named(name) {
            looked_at += 1;
            if self.get(index).is_some_and(|symbol| !visit(index, symbol)) {
                break;
            }
        }
        looked_at
    }

    /// Definitions of a name by the index that is made at the first call, in table order.
    fn named<'s>(&'s self, name: &'s [u8]) -> impl Iterator<Item = u32> + 's {
        let by_name = self.by_name.get_or_init(|| self.sorted_definitions());
        let start = by_name.partition_point(|&i| self.name_at(i) < name);
        by_name.iter().skip(start).copied().take_while(move |&i| self.name_at(i) == name)
    }

    fn name_at(&self, index: u32) -> &[u8] {
        self.get(index).map(|s| self.name(s)).unwrap_or_default()
    }

    fn sorted_definitions(&self) -> Vec<u32> {
        let is_wanted = |i: &u32| self.get(*i).is_some_and(Symbol::is_global_definition);
        let mut index: Vec<u32> = (1..=self.entries.len() as u32).filter(is_wanted).collect();
        index.sort_by(|&a, &b| self.name_at(a).cmp(self.name_at(b)).then(a.cmp(&b)));
        index
    }
}

/// Reads `count` symbols (with the null symbol) and gives those after it; versions and uses come later.
pub(crate) fn read<E: Elf>(
    image: &Image,
    offset: u64,
    count: u64,
    endian: Endianness,
) -> Result<Vec<Symbol>, Fault> {
    let raw = image.read_slice::<E::Sym>(".dynsym", offset, count)?;
    let symbol = |s: &E::Sym| Symbol {
        name: s.st_name(endian),
        name_size: 0,
        version: 1,
        info: s.st_info().0,
        other: s.st_other().0,
        section: s.st_shndx(endian).0,
        uses: RelocationUse::default(),
        value: s.st_value(endian).into(),
        size: s.st_size(endian).into(),
    };
    Ok(raw.iter().skip(1).map(symbol).collect())
}
