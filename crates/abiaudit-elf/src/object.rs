//! [`Object`]: all facts of one file, and the order in which they are read.

use std::ops::Range;

use object::{Endianness, elf};

use crate::dynamic::{self, Dynamic, Pointers};
use crate::error::{Fault, ParseError, Problem};
use crate::hash::{self, GnuHash};
use crate::identity::{Class, Endian, Identity, ObjectType};
use crate::image::Image;
use crate::name::Name;
use crate::notes::{self, Notes};
use crate::raw::Elf;
use crate::relocations::{self, Relocations, Table};
use crate::sections::{self, Sections, Symtab};
use crate::segments::{Segment, SegmentType, Segments};
use crate::strings::StringTable;
use crate::symbols::{self, Symbol, Symbols};
use crate::versions::{self, SymbolVersion, Versions};

/// What one ELF file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Class, byte order, machine, type.
    pub identity: Identity,
    /// Program headers.
    pub segments: Segments,
    /// `PT_INTERP`: the loader that a program asks for.
    pub interpreter: Option<Name>,
    /// Dynamic entries.
    pub dynamic: Dynamic,
    /// Dynamic symbols.
    pub symbols: Symbols,
    /// Version tables.
    pub versions: Versions,
    /// Relocation counts; which symbols they use stands with the symbols.
    pub relocations: Relocations,
    /// Notes.
    pub notes: Notes,
    /// Section names and compiler comments, where there are section headers.
    pub sections: Sections,
    /// `.symtab`, if it was asked for.
    pub symtab: Symtab,
    /// True for split debug information: the tables that the loader would read have no bytes (`SHT_NOBITS`).
    pub debug_only: bool,
    /// Size of the file in bytes.
    pub size: u64,
    /// Odd things that leave the rest standing.
    pub problems: Vec<Problem>,
}

/// What to read beyond what the loader reads.
#[derive(Debug, Clone, Default)]
pub struct Wants {
    /// Read `.symtab`, which can be as large as the code.
    pub symtab: bool,
}

/// The outcome of [`Object::parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// All facts were within reach.
    Complete(Box<Object>),
    /// These byte ranges of the file are needed too. Files made by a linker need at most one more pass; a hostile
    /// one can ask for a little more every time, so whoever streams again bounds the passes and their sum.
    Missing(Vec<Range<u64>>),
}

impl Object {
    /// Reads all facts from the bytes that `image` holds.
    ///
    /// # Errors
    /// [`ParseError`] when the file cannot be what it claims. Irregularities that a loader would not notice, or
    /// that leave the other facts standing, become [`Object::problems`].
    pub fn parse(image: &Image<'_>, wants: &Wants) -> Result<Parsed, ParseError> {
        match parse_any(image, wants) {
            Ok(object) => Ok(Parsed::Complete(Box::new(object))),
            Err(Fault::Missing(ranges)) => Ok(Parsed::Missing(ranges)),
            Err(Fault::Bad(error)) => Err(error),
        }
    }

    /// Reads all facts of a file that is in memory as a whole.
    ///
    /// # Errors
    /// As [`Object::parse`].
    pub fn from_bytes(bytes: &[u8], wants: &Wants) -> Result<Self, ParseError> {
        match Self::parse(&Image::whole(bytes), wants)? {
            Parsed::Complete(object) => Ok(*object),
            Parsed::Missing(ranges) => Err(ParseError::Malformed {
                what: "file",
                found: format!("ranges {ranges:?} not in the file"),
                expected: "a whole file",
            }),
        }
    }

    /// The version that a symbol's index stands for.
    pub fn version_of(&self, symbol: &Symbol) -> SymbolVersion<'_> {
        self.versions.of(symbol.version)
    }

    /// A program rather than a library: it has fixed addresses, says so (`DF_1_PIE`), or names an interpreter
    /// and no soname. (libc.so.6 and other libraries can be run too: they have a soname.)
    pub fn is_program(&self) -> bool {
        match self.identity.object_type {
            ObjectType::Executable => true,
            ObjectType::Shared => {
                self.dynamic.pie() || (self.interpreter.is_some() && self.dynamic.soname.is_none())
            }
            _ => false,
        }
    }

    /// `PT_GNU_STACK` asks for an executable stack.
    pub fn executable_stack(&self) -> bool {
        self.segments.first(SegmentType::GnuStack).is_some_and(Segment::is_executable)
    }

    /// `PT_LOAD` segments without a section in them, by the section headers; none if there are no headers. binutils' `strip`
    /// and `objcopy` rewrite such a segment so that the loader refuses the file (auditwheel #716).
    pub fn empty_loads(&self) -> Vec<&Segment> {
        let sections: Vec<_> =
            self.sections.headers.iter().filter(|section| section.takes_memory()).collect();
        if sections.is_empty() {
            return Vec::new();
        }
        let is_empty = |load: &&Segment| {
            let end = load.address.saturating_add(load.memory_size);
            load.memory_size > 0 && !sections.iter().any(|s| s.address >= load.address && s.address < end)
        };
        self.segments.loads().filter(is_empty).collect()
    }

    /// `PT_TLS`: size in bytes and alignment of the thread-local block.
    pub fn tls(&self) -> Option<(u64, u64)> {
        self.segments.first(SegmentType::Tls).map(|s| (s.memory_size, s.align))
    }
}

fn parse_any(image: &Image<'_>, wants: &Wants) -> Result<Object, Fault> {
    const IDENT: u64 = 16;
    let magic = image.bytes("ELF magic", 0, image.size().min(4))?;
    if magic != b"\x7fELF" {
        return Err(ParseError::NotElf.into());
    }
    let ident = image.bytes("e_ident", 0, IDENT)?;
    let (class, data, version) = (ident[4], ident[5], ident[6]);
    let endian = match data {
        1 => Endianness::Little,
        2 => Endianness::Big,
        value => return Err(ParseError::BadIdent { field: "EI_DATA", value }.into()),
    };
    if version != 1 {
        return Err(ParseError::BadIdent { field: "EI_VERSION", value: version }.into());
    }
    match class {
        1 => parse::<elf::FileHeader32<Endianness>>(image, wants, endian),
        2 => parse::<elf::FileHeader64<Endianness>>(image, wants, endian),
        value => Err(ParseError::BadIdent { field: "EI_CLASS", value }.into()),
    }
}

fn parse<E: Elf>(image: &Image<'_>, wants: &Wants, endian: Endianness) -> Result<Object, Fault> {
    let header = image.read::<E>("ELF header", 0)?;
    let identity = identity(header, endian);
    let segments = Segments::read(image, header, endian)?;
    image.require(parts_read_whole(header, &segments, endian))?;
    let mut problems = segments.problems(image.size());
    let sections = sections::read(image, header, endian, &mut problems)?;
    let notes = notes::read(image, &segments, &identity, endian, &mut problems)?;
    let symtab = if wants.symtab {
        sections::read_symtab::<E>(image, &sections, endian, &mut problems)?
    } else {
        Symtab::default()
    };
    let says_nobits = says_nobits(&identity, &sections);
    let (loaded, debug_only) = match read_loaded::<E>(&identity, &segments, image, endian) {
        Err(Fault::Bad(_)) if says_nobits => (Loaded::default(), true),
        Ok(loaded) if says_nobits && !loaded.has_tables() => (Loaded::default(), true),
        Ok(loaded) => (loaded, false),
        Err(fault) => return Err(fault),
    };
    if says_nobits && !debug_only {
        let detail = "section headers say that the tables have no bytes, but the loader would find them";
        problems.push(Problem { what: "section headers", detail: detail.to_owned() });
    }
    problems.extend(loaded.problems);
    Ok(Object {
        identity,
        segments,
        interpreter: loaded.interpreter,
        dynamic: loaded.dynamic,
        symbols: loaded.symbols,
        versions: loaded.versions,
        relocations: loaded.relocations,
        notes,
        sections,
        symtab,
        debug_only,
        size: image.size(),
        problems,
    })
}

/// What the headers point to and is read as it is: asked for at once, so that one more pass brings all of it.
fn parts_read_whole<E: Elf>(
    header: &E,
    segments: &Segments,
    endian: Endianness,
) -> impl Iterator<Item = Range<u64>> {
    let notes = notes::segments(segments).take(16).filter(|s| s.file_size <= notes::ALL_NOTES);
    let others = [segments.dynamic(), segments.first(SegmentType::Interp)];
    let sections = sections::table(header, endian);
    notes.chain(others.into_iter().flatten()).map(Segment::file_range).chain(sections)
}

fn identity<E: Elf>(header: &E, endian: Endianness) -> Identity {
    let ident = header.e_ident();
    Identity {
        class: if E::is_type_64_sized() { Class::Elf64 } else { Class::Elf32 },
        endian: if endian == Endianness::Little { Endian::Little } else { Endian::Big },
        os_abi: ident.os_abi.0,
        abi_version: ident.abi_version,
        object_type: ObjectType::new(header.e_type(endian).0),
        machine: header.e_machine(endian).0,
        flags: header.e_flags(endian).0,
        entry: header.e_entry(endian).into(),
    }
}

/// `objcopy --only-keep-debug` and `eu-strip -f` keep all headers but turn what is loaded into `SHT_NOBITS`, so
/// the program headers may point at bytes that are something else. A file that says so is taken for debug
/// information only if the loader would find nothing in it either.
fn says_nobits(identity: &Identity, sections: &Sections) -> bool {
    let table = |s: &&sections::Section| {
        s.is_alloc() && matches!(s.name.as_bytes(), b".dynsym" | b".dynstr" | b".dynamic" | b".text")
    };
    let mut tables = sections.headers.iter().filter(table).peekable();
    let linked = matches!(identity.object_type, ObjectType::Executable | ObjectType::Shared);
    linked && tables.peek().is_some() && tables.all(sections::Section::is_nobits)
}

/// What the loader reads.
#[derive(Default)]
struct Loaded {
    interpreter: Option<Name>,
    dynamic: Dynamic,
    versions: Versions,
    symbols: Symbols,
    relocations: Relocations,
    problems: Vec<Problem>,
}

impl Loaded {
    /// There is a dynamic section that points to strings.
    fn has_tables(&self) -> bool {
        self.dynamic.entries.iter().any(|&(tag, _)| tag == elf::DT_STRTAB.0)
    }
}

fn read_loaded<E: Elf>(
    identity: &Identity,
    segments: &Segments,
    image: &Image<'_>,
    endian: Endianness,
) -> Result<Loaded, Fault> {
    let mut problems = Vec::new();
    let interpreter = interpreter(image, segments)?;
    let Some((entries, pointers)) = dynamic::read_entries::<E>(image, segments, endian, &mut problems)?
    else {
        return Ok(Loaded { interpreter, problems, ..Loaded::default() });
    };
    let layout = Layout::locate::<E>(identity, segments, &pointers)?;
    layout.check(image)?;
    problems.extend(unread::<E>(identity, &pointers));
    match read_tables::<E>(identity, image, &layout, entries, endian) {
        Ok(tables) => {
            problems.extend(tables.problems);
            Ok(Loaded { interpreter, problems, ..tables })
        }
        Err(Fault::Missing(ranges)) => Err(Fault::Missing(layout.with_other_tables(image, ranges))),
        Err(bad) => Err(bad),
    }
}

fn read_tables<E: Elf>(
    identity: &Identity,
    image: &Image<'_>,
    layout: &Layout,
    entries: Vec<(i64, u64)>,
    endian: Endianness,
) -> Result<Loaded, Fault> {
    let mut problems = Vec::new();
    let bytes = match &layout.strings {
        Some(range) => image.bytes(".dynstr", range.start, range.end - range.start)?,
        None => &[],
    };
    let strings = StringTable::new(bytes);
    let dynamic = dynamic::resolve(entries, word_size::<E>(), &strings)?;
    let versions = read_versions(image, layout, endian, &strings, &mut problems)?;
    let (symbols, relocations) = read_symbols::<E>(identity, image, layout, endian, bytes, &mut problems)?;
    Ok(Loaded { interpreter: None, dynamic, versions, symbols, relocations, problems })
}

fn word_size<E: Elf>() -> u64 {
    if E::is_type_64_sized() { 8 } else { 4 }
}

/// What is there but not read, and entry sizes that are not the ones the loader goes by.
fn unread<E: Elf>(identity: &Identity, pointers: &Pointers) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem = |what, detail: String| problems.push(Problem { what, detail });
    if identity.is_mips() {
        problem("machine", "MIPS relocations and GOT are not read".to_owned());
    }
    // Android's packed relocations (bionic linker/linker_reloc_iterators.h); glibc and musl ignore them.
    let packed = [("DT_ANDROID_REL", elf::DT_ANDROID_REL), ("DT_ANDROID_RELA", elf::DT_ANDROID_RELA)];
    for (what, _) in packed.into_iter().filter(|&(_, tag)| pointers.get(tag).is_some()) {
        problem(what, "packed relocations, which only Android's loader knows, are not read".to_owned());
    }
    let entry_sizes = [
        ("DT_SYMENT", elf::DT_SYMENT, size_of::<E::Sym>()),
        ("DT_RELAENT", elf::DT_RELAENT, size_of::<E::Rela>()),
        ("DT_RELENT", elf::DT_RELENT, size_of::<E::Rel>()),
    ];
    for (what, tag, expected) in entry_sizes {
        if let Some(found) = pointers.get(tag).filter(|&found| found != expected as u64) {
            problem(what, format!("{found}, but entries have {expected} bytes"));
        }
    }
    problems
}

fn interpreter(image: &Image<'_>, segments: &Segments) -> Result<Option<Name>, Fault> {
    const PATH_MAX: u64 = 4096;
    let Some(segment) = segments.first(SegmentType::Interp) else { return Ok(None) };
    let bytes = image.bytes("PT_INTERP", segment.offset, segment.file_size.min(PATH_MAX))?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    Ok(Some(bytes[..end].into()))
}

/// Where in the file the tables of the dynamic section are.
struct Layout {
    strings: Option<Range<u64>>,
    symbols: Option<u64>,
    hash: Option<u64>,
    gnu_hash: Option<u64>,
    versym: Option<u64>,
    /// With the number of entries that `DT_VERNEEDNUM` gives, if it is there.
    verneed: Option<(u64, Option<u64>)>,
    verdef: Option<(u64, Option<u64>)>,
    relocations: Vec<Table>,
    relr: Option<Range<u64>>,
}

impl Layout {
    fn locate<E: Elf>(
        identity: &Identity,
        segments: &Segments,
        pointers: &Pointers,
    ) -> Result<Self, ParseError> {
        let at = |what, tag| pointers.get(tag).map(|address| segments.offset_of(what, address)).transpose();
        let relocations = relocations::tables::<E>(identity, segments, pointers)?;
        let counted = |what, tag, count_tag| -> Result<Option<(u64, Option<u64>)>, ParseError> {
            Ok(at(what, tag)?.map(|offset| (offset, pointers.get(count_tag))))
        };
        Ok(Self {
            strings: pointers.strings(segments)?,
            symbols: at("DT_SYMTAB", elf::DT_SYMTAB)?,
            hash: at("DT_HASH", elf::DT_HASH)?,
            gnu_hash: at("DT_GNU_HASH", elf::DT_GNU_HASH)?,
            versym: at("DT_VERSYM", elf::DT_VERSYM)?,
            verneed: counted("DT_VERNEED", elf::DT_VERNEED, elf::DT_VERNEEDNUM)?,
            verdef: counted("DT_VERDEF", elf::DT_VERDEF, elf::DT_VERDEFNUM)?,
            relocations,
            relr: pointers.sized(segments, "DT_RELR", elf::DT_RELR, elf::DT_RELRSZ)?,
        })
    }

    /// The words of `DT_RELR` name no symbols, so they are not read and only their number is a fact.
    fn check(&self, image: &Image<'_>) -> Result<(), ParseError> {
        match &self.relr {
            Some(relr) if relr.end > image.size() => Err(ParseError::Truncated {
                what: "DT_RELR",
                offset: relr.start,
                size: relr.end - relr.start,
                file_size: image.size(),
            }),
            _ => Ok(()),
        }
    }

    /// Adds to `missing` all other tables that are not held either, so that one more pass over a stream is enough.
    /// Tables without a known size are asked for from their start to the next table.
    fn with_other_tables(&self, image: &Image<'_>, mut missing: Vec<Range<u64>>) -> Vec<Range<u64>> {
        const LARGEST: u64 = 64 << 20;
        let open = [self.symbols, self.hash, self.gnu_hash, self.versym];
        let open = open.into_iter().chain([self.verneed.map(|v| v.0), self.verdef.map(|v| v.0)]).flatten();
        let until_next = open.map(|start| {
            let end = self.table_after(start).unwrap_or(u64::MAX).min(image.size());
            start..end.min(start.saturating_add(LARGEST))
        });
        // How much of a table is needed is known only when it is read; of one that is held, that is all so far.
        let unseen = until_next.filter(|range| image.get(range.start..range.start + 1).is_none());
        let sized = self.strings.clone().into_iter().chain(self.relocations.iter().map(Table::range));
        let unheld = sized.filter(|range| range.end <= image.size() && image.get(range.clone()).is_none());
        let others: Vec<_> = unseen.chain(unheld).filter(|range| !missing.contains(range)).collect();
        missing.extend(others.into_iter().filter(|range| !range.is_empty()));
        missing
    }

    /// How many symbols fit between `.dynsym` and the next table, and versions between theirs and the next.
    fn room_for_symbols<E: Elf>(&self, symbols_at: u64) -> Option<u64> {
        let room =
            |start: u64, entry: usize| Some(self.table_after(start)?.saturating_sub(start) / entry as u64);
        let symbols = room(symbols_at, size_of::<E::Sym>());
        let versions = self.versym.and_then(|at| room(at, size_of::<u16>()));
        symbols.into_iter().chain(versions).min()
    }

    /// The start of the nearest table behind `offset`.
    fn table_after(&self, offset: u64) -> Option<u64> {
        let starts = [self.symbols, self.hash, self.gnu_hash, self.versym];
        starts
            .into_iter()
            .chain([self.verneed.map(|v| v.0), self.verdef.map(|v| v.0)])
            .chain([self.strings.as_ref().map(|r| r.start), self.relr.as_ref().map(|r| r.start)])
            .flatten()
            .chain(self.relocations.iter().map(|t| t.offset))
            .filter(|&start| start > offset)
            .min()
    }
}

fn read_versions(
    image: &Image<'_>,
    layout: &Layout,
    endian: Endianness,
    strings: &StringTable<'_>,
    problems: &mut Vec<Problem>,
) -> Result<Versions, Fault> {
    let mut reader = versions::Reader::new(image, endian, strings);
    let needs = match layout.verneed {
        Some((offset, _)) => reader.needs(offset)?,
        None => Vec::new(),
    };
    let definitions = match layout.verdef {
        Some((offset, _)) => reader.definitions(offset)?,
        None => Vec::new(),
    };
    let mut wrong = |what, detail| problems.push(Problem { what, detail });
    let counted =
        [("DT_VERNEEDNUM", layout.verneed, needs.len()), ("DT_VERDEFNUM", layout.verdef, definitions.len())];
    for (what, table, found) in counted {
        if let Some((_, Some(said))) = table
            && said != found as u64
        {
            wrong(what, format!("says {said}, the chain has {found}"));
        }
    }
    if let Some((what, said, found)) = reader.wrong_count {
        wrong(what, format!("says {said}, the chain has {found}"));
    }
    Ok(Versions::new(needs, definitions, layout.versym.is_some()))
}

fn read_symbols<E: Elf>(
    identity: &Identity,
    image: &Image<'_>,
    layout: &Layout,
    endian: Endianness,
    strings: &[u8],
    problems: &mut Vec<Problem>,
) -> Result<(Symbols, Relocations), Fault> {
    let Some(offset) = layout.symbols else { return Ok((Symbols::default(), Relocations::default())) };
    let (gnu_hash, count) = symbol_count::<E>(identity, image, layout, offset, endian, problems)?;
    let table = SymbolTable { image, layout, identity, endian, offset };
    let (mut symbols, mut relocations, beyond) = table.read::<E>(count)?;
    if let Some(index) = beyond {
        let detail = format!("symbol {index} is referred to, the hash table covers {count}");
        problems.push(Problem { what: "relocations", detail });
        // The loader takes the symbol that a relocation names without asking a hash table.
        match table.read::<E>(u64::from(index) + 1) {
            Ok(all) => (symbols, relocations, _) = all,
            Err(Fault::Bad(_)) => {}
            Err(missing) => return Err(missing),
        }
    }
    relocations.relr_words = layout.relr.as_ref().map_or(0, |r| (r.end - r.start) / word_size::<E>());
    let (symbols, bad_names) = Symbols::new(symbols, strings, gnu_hash)?;
    if bad_names > 0 {
        let detail = format!("{bad_names} symbols have names outside of .dynstr");
        problems.push(Problem { what: ".dynsym", detail });
    }
    Ok((symbols, relocations))
}

/// Where the symbols and what belongs to them are.
struct SymbolTable<'a> {
    image: &'a Image<'a>,
    layout: &'a Layout,
    identity: &'a Identity,
    endian: Endianness,
    offset: u64,
}

impl SymbolTable<'_> {
    /// The first `count` symbols with versions and uses, and the highest index that relocations name beyond them.
    fn read<E: Elf>(&self, count: u64) -> Result<(Vec<Symbol>, Relocations, Option<u32>), Fault> {
        let &Self { image, layout, identity, endian, offset } = self;
        let mut symbols = symbols::read::<E>(image, offset, count, endian)?;
        if let Some(at) = layout.versym {
            let versions = image.read_slice::<object::U16<Endianness>>("DT_VERSYM", at, count)?;
            for (symbol, version) in symbols.iter_mut().zip(versions.iter().skip(1)) {
                symbol.version = version.get(endian);
            }
        }
        let (relocations, beyond) =
            relocations::mark::<E>(image, &layout.relocations, identity, &mut symbols, endian)?;
        Ok((symbols, relocations, beyond))
    }
}

/// From `DT_HASH` if there is one, else from `DT_GNU_HASH`. An empty GNU table does not cover the undefined
/// symbols, so relocations and the neighbouring tables decide there. Never from section headers.
fn symbol_count<E: Elf>(
    identity: &Identity,
    image: &Image<'_>,
    layout: &Layout,
    symbols_at: u64,
    endian: Endianness,
    problems: &mut Vec<Problem>,
) -> Result<(Option<GnuHash>, u64), Fault> {
    let (table, from_gnu) = match layout.gnu_hash {
        Some(offset) => {
            let (table, count) = hash::read_gnu_hash::<E>(image, offset, endian)?;
            (Some(table), count)
        }
        None => (None, None),
    };
    let from_sysv = match layout.hash {
        Some(offset) => Some(hash::sysv_symbol_count(image, identity, offset, endian)?),
        None => None,
    };
    if let (Some(sysv), Some(gnu)) = (from_sysv, from_gnu)
        && sysv != gnu
    {
        let detail = format!("DT_HASH says {sysv}, DT_GNU_HASH {gnu}");
        problems.push(Problem { what: "symbol count", detail });
    }
    // Where they differ, more is safer: a symbol too many is seen, one too few is overlooked.
    let count = match from_sysv.max(from_gnu) {
        Some(count) => count,
        None => {
            let used = relocations::highest_symbol::<E>(image, &layout.relocations, endian)?;
            let room = layout.room_for_symbols::<E>(symbols_at);
            hash::estimated_symbol_count::<E>(image, symbols_at, room, used)?
        }
    };
    Ok((table, count))
}
