//! A relocatable file (`ET_REL`, gABI chapter 4), taken apart so that parts of it can be left out, and written again.
//!
//! Only what GCC writes for x86_64 and aarch64 is understood: 64-bit, little-endian, relocations with addends. Anything
//! else is an error, never a guess.

mod eh_frame;
mod live;
mod write;

use std::fmt;
use std::path::{Path, PathBuf};

use object::elf;
use object::read::elf::{FileHeader as _, Rela as _, SectionHeader as _, Sym as _};
use object::{Endianness, SectionIndex};

use crate::error::{Error, Result};

pub(crate) use live::Live;

type Header = elf::FileHeader64<Endianness>;
type SectionHeader = elf::SectionHeader64<Endianness>;
type Sections<'data> = object::read::elf::SectionTable<'data, Header>;
type SymbolTable<'data> = object::read::elf::SymbolTable<'data, Header>;

/// A relocatable file.
#[derive(Debug, Clone)]
pub(crate) struct Relocatable {
    /// Where it came from, for errors.
    pub origin: PathBuf,
    pub machine: elf::Machine,
    pub os_abi: elf::OsAbi,
    pub flags: elf::FileFlags,
    /// Sections with content; tables of symbols, strings, relocations and groups are made anew when it is written.
    pub sections: Vec<Section>,
    /// Without the null symbol; local ones first.
    pub symbols: Vec<Symbol>,
    /// `SHT_GROUP`
    pub groups: Vec<Group>,
}

/// A section.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub name: Vec<u8>,
    pub kind: elf::SectionType,
    pub flags: elf::SectionFlags,
    pub align: u64,
    pub entry_size: u64,
    /// Empty for `SHT_NOBITS`.
    pub data: Vec<u8>,
    /// Bytes in memory.
    pub size: u64,
    pub relocations: Vec<Relocation>,
    /// The section that this one is about (`SHF_LINK_ORDER`).
    pub about: Option<usize>,
}

/// A symbol.
#[derive(Debug, Clone)]
pub(crate) struct Symbol {
    pub name: Vec<u8>,
    pub binding: elf::SymbolBind,
    pub kind: elf::SymbolType,
    pub visibility: elf::SymbolVisibility,
    pub place: Place,
    pub value: u64,
    pub size: u64,
}

/// Where a symbol is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Undefined,
    Absolute,
    Section(usize),
}

/// A relocation. What it does does not matter here, only to which symbol it refers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relocation {
    pub offset: u64,
    pub symbol: Option<usize>,
    pub kind: elf::RelocationType,
    pub addend: i64,
}

/// Sections that a linker keeps or drops together, by the name of the signature symbol.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub flags: u32,
    pub signature: usize,
    pub sections: Vec<usize>,
}

impl Section {
    /// Can the program write to it once it runs? What only the dynamic loader writes to (`.data.rel.ro`, and the
    /// pointers to personality routines) is no state.
    pub fn is_state(&self) -> bool {
        let is_init = matches!(self.kind, elf::SHT_INIT_ARRAY | elf::SHT_FINI_ARRAY | elf::SHT_PREINIT_ARRAY);
        self.flags.0 & elf::SHF_WRITE.0 != 0
            && self.size > 0
            && !is_init
            && !self.name.starts_with(b".data.rel.ro")
            && !self.name.starts_with(b".data.rel.local.DW.ref.")
            && !self.name.starts_with(b".data.DW.ref.")
    }
}

impl Symbol {
    pub fn is_global(&self) -> bool {
        self.binding != elf::STB_LOCAL
    }

    /// A definition that other files can refer to.
    pub fn is_definition(&self) -> bool {
        self.is_global() && self.place != Place::Undefined
    }

    /// Makes a reference of a definition. A weak definition must become a strong reference, or the linker would not
    /// mind if nobody defined it.
    pub fn undefine(&mut self) {
        self.place = Place::Undefined;
        self.binding = elf::STB_GLOBAL;
        self.visibility = elf::STV_DEFAULT;
        self.value = 0;
        self.size = 0;
        if self.kind != elf::STT_TLS {
            self.kind = elf::STT_NOTYPE;
        }
    }

    pub fn name_text(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }
}

impl Relocatable {
    /// Reads a file; `None` if it has no symbol table, and so nothing to link with.
    pub fn parse(origin: &Path, data: &[u8]) -> Result<Option<Self>> {
        Reader { origin, data }.read()
    }

    /// The definitions that other files can refer to.
    pub fn definitions(&self) -> impl Iterator<Item = (usize, &Symbol)> {
        self.symbols.iter().enumerate().filter(|(_, symbol)| symbol.is_definition())
    }
}

struct Reader<'a> {
    origin: &'a Path,
    data: &'a [u8],
}

impl<'a> Reader<'a> {
    fn malformed(&self, what: &'static str, found: impl fmt::Display) -> Error {
        Error::Malformed { path: self.origin.to_owned(), what, found: found.to_string() }
    }

    fn read(&self) -> Result<Option<Relocatable>> {
        let header = Header::parse(self.data).map_err(|e| self.malformed("ELF header", e))?;
        let endian = header.endian().map_err(|e| self.malformed("ELF header", e))?;
        if endian != Endianness::Little || header.e_type(endian) != elf::ET_REL {
            return Err(self.malformed("ELF header", "no little-endian relocatable file"));
        }
        let sections = header.sections(endian, self.data).map_err(|e| self.malformed("sections", e))?;
        let table = sections.symbols(endian, self.data, elf::SHT_SYMTAB);
        let table = table.map_err(|e| self.malformed("symbol table", e))?;
        if table.is_empty() {
            return Ok(None);
        }
        let mut places = vec![None; sections.len()];
        let mut kept = Vec::new();
        for (index, section) in sections.enumerate() {
            if !is_table(section.sh_type(endian)) {
                places[index.0] = Some(kept.len());
                kept.push(self.section(&sections, section)?);
            }
        }
        let symbols = self.symbols(&table, &places)?;
        let mut file = Relocatable {
            origin: self.origin.to_owned(),
            machine: header.e_machine(endian),
            os_abi: elf::OsAbi(header.e_ident().os_abi.0),
            flags: header.e_flags(endian),
            sections: kept,
            symbols,
            groups: Vec::new(),
        };
        for (index, section) in sections.enumerate() {
            self.attach(&mut file, &places, index, section)?;
        }
        Ok(Some(file))
    }

    fn section(&self, sections: &Sections<'a>, header: &SectionHeader) -> Result<Section> {
        let endian = Endianness::Little;
        let name = sections.section_name(endian, header).map_err(|e| self.malformed("section name", e))?;
        let data = header.data(endian, self.data).map_err(|e| self.malformed("section", e))?;
        Ok(Section {
            name: name.to_vec(),
            kind: header.sh_type(endian),
            // Membership is written with the groups.
            flags: elf::SectionFlags(header.sh_flags(endian).0 & !elf::SHF_GROUP.0),
            align: header.sh_addralign(endian),
            entry_size: header.sh_entsize(endian),
            size: header.sh_size(endian),
            data: data.to_vec(),
            relocations: Vec::new(),
            about: None,
        })
    }

    fn symbols(&self, table: &SymbolTable<'a>, places: &[Option<usize>]) -> Result<Vec<Symbol>> {
        let endian = Endianness::Little;
        let mut symbols = Vec::with_capacity(table.len());
        for (index, symbol) in table.enumerate().skip(1) {
            let name = table.symbol_name(endian, symbol).map_err(|e| self.malformed("symbol name", e))?;
            let place = match symbol.st_shndx(endian) {
                elf::SHN_UNDEF => Place::Undefined,
                elf::SHN_ABS => Place::Absolute,
                elf::SHN_COMMON => return Err(self.malformed("symbol", "a common symbol")),
                _ => {
                    let section = table.symbol_section(endian, symbol, index);
                    let section = section.map_err(|e| self.malformed("symbol", e))?;
                    let place = section.and_then(|SectionIndex(i)| places.get(i).copied().flatten());
                    // A symbol of a table, such as a group: of no use without it.
                    place.map_or(Place::Absolute, Place::Section)
                }
            };
            symbols.push(Symbol {
                name: name.to_vec(),
                binding: symbol.st_bind(),
                kind: symbol.st_type(),
                visibility: symbol.st_visibility(),
                place,
                value: symbol.st_value(endian),
                size: symbol.st_size(endian),
            });
        }
        Ok(symbols)
    }

    /// Relocations, groups and links of one section.
    fn attach(
        &self,
        file: &mut Relocatable,
        places: &[Option<usize>],
        index: SectionIndex,
        header: &SectionHeader,
    ) -> Result<()> {
        let endian = Endianness::Little;
        let place = |index: usize| places.get(index).copied().flatten();
        match header.sh_type(endian) {
            elf::SHT_RELA => {
                let Some(target) = place(header.sh_info(endian) as usize) else { return Ok(()) };
                let rela = header.rela(endian, self.data).map_err(|e| self.malformed("relocations", e))?;
                let (entries, _) = rela.ok_or_else(|| self.malformed("relocations", "none"))?;
                for entry in entries {
                    let symbol = (entry.r_sym(endian, false) as usize).checked_sub(1);
                    if symbol.is_some_and(|symbol| symbol >= file.symbols.len()) {
                        return Err(self.malformed("relocation", "a symbol that is not in the table"));
                    }
                    file.sections[target].relocations.push(Relocation {
                        offset: entry.r_offset(endian),
                        symbol,
                        kind: entry.r_type(endian, false),
                        addend: entry.r_addend(endian),
                    });
                }
            }
            elf::SHT_REL => return Err(self.malformed("relocations", "without addends")),
            elf::SHT_GROUP => {
                let group = header.group(endian, self.data).map_err(|e| self.malformed("group", e))?;
                let (flags, members) = group.ok_or_else(|| self.malformed("group", "none"))?;
                let signature = (header.sh_info(endian) as usize).checked_sub(1);
                let signature = signature.filter(|symbol| *symbol < file.symbols.len());
                let signature = signature.ok_or_else(|| self.malformed("group", "no signature"))?;
                let sections = members.iter().filter_map(|m| place(m.get(endian) as usize)).collect();
                file.groups.push(Group { flags: flags.0, signature, sections });
            }
            _ => {
                if header.sh_flags(endian).0 & elf::SHF_LINK_ORDER.0 != 0
                    && let Some(section) = place(index.0)
                {
                    file.sections[section].about = place(header.sh_link(endian) as usize);
                }
            }
        }
        Ok(())
    }
}

/// Sections that are made anew when a file is written.
fn is_table(kind: elf::SectionType) -> bool {
    matches!(
        kind,
        elf::SHT_NULL
            | elf::SHT_SYMTAB
            | elf::SHT_STRTAB
            | elf::SHT_RELA
            | elf::SHT_REL
            | elf::SHT_GROUP
            | elf::SHT_SYMTAB_SHNDX
    )
}
