//! A small ELF writer for tests, of this crate and of others: any class, byte order and machine, without a
//! compiler. Behind the feature `test-support`.
//!
//! ```
//! use abiaudit_elf::test_support::{Arch, ElfWriter};
//! use abiaudit_elf::{Object, Wants};
//! let file = ElfWriter::new(Arch::Aarch64)
//!     .soname("liba.so.1")
//!     .needed("libc.so.6")
//!     .define("a")
//!     .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.17")
//!     .build();
//! let object = Object::from_bytes(file.bytes(), &Wants::default()).unwrap();
//! assert_eq!(object.identity.arch(), Some("aarch64"));
//! assert_eq!(object.versions.needs[0].versions[0].name, "GLIBC_2.17");
//! ```
//!
//! The result, [`Built`], knows where its parts are, so that a test can break one of them: see [`Built::put_u32`]
//! and [`Built::dynamic_entry`]. All parts lie in one `PT_LOAD` that maps the file at address 0, so that addresses
//! are file offsets. The files are meant to be read, not run: there is no code.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf;

use crate::hash::{gnu_hash, sysv_hash};
use crate::{Class, Endian};

/// Architectures that wheels have tags for, and one whose dynamic section is unlike the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Arch {
    X86_64,
    I686,
    Aarch64,
    Armv7l,
    Ppc64le,
    S390x,
    Riscv64,
    Loongarch64,
    Mips64,
}

impl Arch {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::X86_64,
        Self::I686,
        Self::Aarch64,
        Self::Armv7l,
        Self::Ppc64le,
        Self::S390x,
        Self::Riscv64,
        Self::Loongarch64,
        Self::Mips64,
    ];

    fn machine(self) -> u16 {
        match self {
            Self::X86_64 => elf::EM_X86_64.0,
            Self::I686 => elf::EM_386.0,
            Self::Aarch64 => elf::EM_AARCH64.0,
            Self::Armv7l => elf::EM_ARM.0,
            Self::Ppc64le => elf::EM_PPC64.0,
            Self::S390x => elf::EM_S390.0,
            Self::Riscv64 => elf::EM_RISCV.0,
            Self::Loongarch64 => elf::EM_LOONGARCH.0,
            Self::Mips64 => elf::EM_MIPS.0,
        }
    }

    fn class(self) -> Class {
        if matches!(self, Self::I686 | Self::Armv7l) { Class::Elf32 } else { Class::Elf64 }
    }

    fn endian(self) -> Endian {
        if matches!(self, Self::S390x | Self::Mips64) { Endian::Big } else { Endian::Little }
    }

    /// `EF_ARM_EABI_VER5 | EF_ARM_ABI_FLOAT_HARD`, `EF_PPC64_ABI` 2, and nothing elsewhere.
    fn flags(self) -> u32 {
        match self {
            Self::Armv7l => 0x0500_0400,
            Self::Ppc64le => 2,
            _ => 0,
        }
    }

    /// `R_*_JUMP_SLOT` (each psABI).
    fn jump_slot(self) -> u32 {
        match self {
            Self::X86_64 | Self::I686 => 7,
            Self::Aarch64 => 1026,
            Self::Armv7l => 22,
            Self::Ppc64le => 21,
            Self::S390x => 11,
            Self::Riscv64 | Self::Loongarch64 => 5,
            Self::Mips64 => 127,
        }
    }

    /// 32-bit x86 and ARM have `DT_REL`, the others `DT_RELA`.
    fn addends(self) -> bool {
        !matches!(self, Self::I686 | Self::Armv7l)
    }
}

/// Which hash tables to write (`ld --hash-style`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum HashStyle {
    None,
    Sysv,
    Gnu,
    Both,
}

/// One dynamic symbol to write. [`ElfWriter::define`] and its like make the common ones.
#[derive(Debug, Clone)]
pub struct SymbolSpec {
    /// Bytes without the NUL.
    pub name: Vec<u8>,
    /// `st_info`: bind << 4 | type.
    pub info: u8,
    /// `st_other`: visibility.
    pub other: u8,
    /// `st_shndx`; 0 is undefined.
    pub section: u16,
    /// `st_value`
    pub value: u64,
    /// `st_size` in bytes.
    pub size: u64,
    /// `DT_VERSYM` entry: see [`ElfWriter::need_version`] and [`ElfWriter::define_version`] for indexes.
    pub version: u16,
}

impl SymbolSpec {
    /// A global function, defined at an address that is in no segment.
    pub fn function(name: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref().to_vec();
        Self { name, info: 0x12, other: 0, section: 1, value: 0x40, size: 8, version: 1 }
    }

    /// An undefined global symbol without type, as compilers write them.
    pub fn undefined(name: impl AsRef<[u8]>) -> Self {
        Self { info: 0x10, section: 0, value: 0, size: 0, ..Self::function(name) }
    }
}

/// One more program header to write, as it is given (gABI chapter 5).
#[derive(Debug, Clone)]
pub struct SegmentSpec {
    /// `p_type`
    pub segment_type: u32,
    /// `p_flags`: 1 executable, 2 writable, 4 readable.
    pub flags: u32,
    /// `p_offset`
    pub offset: u64,
    /// `p_vaddr`
    pub address: u64,
    /// `p_filesz`
    pub file_size: u64,
    /// `p_memsz`
    pub memory_size: u64,
    /// `p_align`
    pub align: u64,
}

/// One more section to write; an allocated one lies in the `PT_LOAD`, another behind it.
#[derive(Debug, Clone)]
struct SectionSpec {
    name: &'static str,
    section_type: u32,
    flags: u64,
    content: Vec<u8>,
}

/// Name and index.
type Version = (Vec<u8>, u16);

/// Collects what an ELF file shall say, then [`build`](Self::build)s it.
#[derive(Debug, Clone)]
pub struct ElfWriter {
    arch: Arch,
    class: Class,
    endian: Endian,
    machine: u16,
    flags: u32,
    object_type: u16,
    needed: Vec<Vec<u8>>,
    soname: Option<Vec<u8>>,
    rpath: Option<Vec<u8>>,
    runpath: Option<Vec<u8>>,
    needs: Vec<(Vec<u8>, Vec<Version>)>,
    definitions: Vec<Version>,
    next_version: u16,
    symbols: Vec<SymbolSpec>,
    interpreter: Option<Vec<u8>>,
    notes: Vec<u8>,
    dynamic: Vec<(i64, u64)>,
    stack: Option<u32>,
    tls: Option<(u64, u64)>,
    load_flags: u32,
    load_align: u64,
    segments: Vec<SegmentSpec>,
    hash: HashStyle,
    sections: bool,
    comment: Option<Vec<u8>>,
    extra_sections: Vec<SectionSpec>,
}

impl ElfWriter {
    /// A shared library with nothing in it, with section headers and a System V hash table.
    pub fn new(arch: Arch) -> Self {
        Self {
            arch,
            class: arch.class(),
            endian: arch.endian(),
            machine: arch.machine(),
            flags: arch.flags(),
            object_type: elf::ET_DYN.0,
            needed: Vec::new(),
            soname: None,
            rpath: None,
            runpath: None,
            needs: Vec::new(),
            definitions: Vec::new(),
            next_version: 2,
            symbols: Vec::new(),
            interpreter: None,
            notes: Vec::new(),
            dynamic: Vec::new(),
            stack: Some(6),
            tls: None,
            load_flags: 6,
            load_align: 0x10000,
            segments: Vec::new(),
            hash: HashStyle::Sysv,
            sections: true,
            comment: None,
            extra_sections: Vec::new(),
        }
    }

    /// Another class than the architecture's.
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Another byte order than the architecture's.
    #[must_use]
    pub fn endian(mut self, endian: Endian) -> Self {
        self.endian = endian;
        self
    }

    /// `e_machine`
    #[must_use]
    pub fn machine(mut self, machine: u16) -> Self {
        self.machine = machine;
        self
    }

    /// `e_flags`
    #[must_use]
    pub fn flags(mut self, flags: u32) -> Self {
        self.flags = flags;
        self
    }

    /// `e_type`: 1 object file, 2 fixed program, 3 library. The rest of the file stays as it is.
    #[must_use]
    pub fn object_type(mut self, object_type: u16) -> Self {
        self.object_type = object_type;
        self
    }

    /// Adds a `DT_NEEDED`.
    #[must_use]
    pub fn needed(mut self, name: impl AsRef<[u8]>) -> Self {
        self.needed.push(name.as_ref().to_vec());
        self
    }

    /// `DT_SONAME`
    #[must_use]
    pub fn soname(mut self, name: impl AsRef<[u8]>) -> Self {
        self.soname = Some(name.as_ref().to_vec());
        self
    }

    /// `DT_RPATH`
    #[must_use]
    pub fn rpath(mut self, path: impl AsRef<[u8]>) -> Self {
        self.rpath = Some(path.as_ref().to_vec());
        self
    }

    /// `DT_RUNPATH`
    #[must_use]
    pub fn runpath(mut self, path: impl AsRef<[u8]>) -> Self {
        self.runpath = Some(path.as_ref().to_vec());
        self
    }

    /// Adds a version to `DT_VERNEED` (once) and gives the index that symbols use for it.
    pub fn need_version(&mut self, library: impl AsRef<[u8]>, version: impl AsRef<[u8]>) -> u16 {
        let (library, version) = (library.as_ref(), version.as_ref());
        if !self.needs.iter().any(|(name, _)| name == library) {
            self.needs.push((library.to_vec(), Vec::new()));
        }
        let next = &mut self.next_version;
        for (name, versions) in &mut self.needs {
            if name == library {
                if let Some((_, index)) = versions.iter().find(|(name, _)| name == version) {
                    return *index;
                }
                versions.push((version.to_vec(), *next));
                *next += 1;
            }
        }
        *next - 1
    }

    /// Adds a version to `DT_VERDEF` (once) and gives the index that symbols use for it.
    pub fn define_version(&mut self, version: impl AsRef<[u8]>) -> u16 {
        let version = version.as_ref();
        if let Some((_, index)) = self.definitions.iter().find(|(name, _)| name == version) {
            return *index;
        }
        let index = self.next_version;
        self.definitions.push((version.to_vec(), index));
        self.next_version += 1;
        index
    }

    /// Adds a symbol as it is given.
    #[must_use]
    pub fn symbol(mut self, symbol: SymbolSpec) -> Self {
        self.symbols.push(symbol);
        self
    }

    /// Adds a global function.
    #[must_use]
    pub fn define(self, name: impl AsRef<[u8]>) -> Self {
        self.symbol(SymbolSpec::function(name))
    }

    /// Adds a global function with the default version `version` (`name@@version`).
    #[must_use]
    pub fn define_versioned(mut self, name: impl AsRef<[u8]>, version: impl AsRef<[u8]>) -> Self {
        let version = self.define_version(version);
        self.symbol(SymbolSpec { version, ..SymbolSpec::function(name) })
    }

    /// Adds a reference without a version.
    #[must_use]
    pub fn undefined(self, name: impl AsRef<[u8]>) -> Self {
        self.symbol(SymbolSpec::undefined(name))
    }

    /// Adds a reference to `name@version` of `library`. It does not add the `DT_NEEDED`.
    #[must_use]
    pub fn undefined_versioned(
        mut self,
        name: impl AsRef<[u8]>,
        library: impl AsRef<[u8]>,
        version: impl AsRef<[u8]>,
    ) -> Self {
        let version = self.need_version(library, version);
        self.symbol(SymbolSpec { version, ..SymbolSpec::undefined(name) })
    }

    /// `PT_INTERP`
    #[must_use]
    pub fn interpreter(mut self, path: impl AsRef<[u8]>) -> Self {
        self.interpreter = Some(path.as_ref().to_vec());
        self
    }

    /// Adds a note; `name` without its NUL. All notes lie in one `PT_NOTE` with the alignment of the class's word.
    #[must_use]
    pub fn note(mut self, name: &str, note_type: u32, desc: &[u8]) -> Self {
        let mut out = self.bytes();
        let align = out.word_size();
        out.u32(name.len() as u32 + 1);
        out.u32(desc.len() as u32);
        out.u32(note_type);
        out.raw(name.as_bytes());
        out.raw(b"\0");
        out.align(align);
        out.raw(desc);
        out.align(align);
        self.notes.extend(out.data);
        self
    }

    /// `NT_GNU_BUILD_ID`
    #[must_use]
    pub fn build_id(self, id: &[u8]) -> Self {
        self.note("GNU", elf::NT_GNU_BUILD_ID.0, id)
    }

    /// A GNU property of 4 bytes, such as `GNU_PROPERTY_X86_ISA_1_NEEDED` (0xc0008002).
    #[must_use]
    pub fn property(self, property: u32, value: u32) -> Self {
        let mut out = self.bytes();
        out.u32(property);
        out.u32(4);
        out.u32(value);
        out.align(out.word_size());
        self.note("GNU", elf::NT_GNU_PROPERTY_TYPE_0.0, &out.data)
    }

    /// Adds a dynamic entry before `DT_NULL`.
    #[must_use]
    pub fn dynamic(mut self, tag: i64, value: u64) -> Self {
        self.dynamic.push((tag, value));
        self
    }

    /// `PT_GNU_STACK` with these `p_flags`: 6 is what compilers and this writer have, 7 asks for an executable
    /// stack.
    #[must_use]
    pub fn stack(mut self, flags: u32) -> Self {
        self.stack = Some(flags);
        self
    }

    /// No `PT_GNU_STACK`.
    #[must_use]
    pub fn without_stack(mut self) -> Self {
        self.stack = None;
        self
    }

    /// `PT_TLS` with this size and alignment in bytes.
    #[must_use]
    pub fn tls(mut self, size: u64, align: u64) -> Self {
        self.tls = Some((size, align));
        self
    }

    /// `p_flags` of the one `PT_LOAD`; without it the segment is readable and writable.
    #[must_use]
    pub fn load_flags(mut self, flags: u32) -> Self {
        self.load_flags = flags;
        self
    }

    /// `p_align` of the one `PT_LOAD`; without it 64 KiB, which every page size divides.
    #[must_use]
    pub fn load_align(mut self, align: u64) -> Self {
        self.load_align = align;
        self
    }

    /// Adds a program header after the others.
    #[must_use]
    pub fn segment(mut self, segment: SegmentSpec) -> Self {
        self.segments.push(segment);
        self
    }

    /// Adds a section with these bytes: `section_type` 1 is `SHT_PROGBITS`; of `flags`, 2 is `SHF_ALLOC`. Only
    /// with section headers.
    #[must_use]
    pub fn section(
        mut self,
        name: &'static str,
        section_type: u32,
        flags: u64,
        content: impl AsRef<[u8]>,
    ) -> Self {
        self.extra_sections.push(SectionSpec {
            name,
            section_type,
            flags,
            content: content.as_ref().to_vec(),
        });
        self
    }

    /// Which hash tables to write.
    #[must_use]
    pub fn hash_style(mut self, style: HashStyle) -> Self {
        self.hash = style;
        self
    }

    /// Whether to write section headers.
    #[must_use]
    pub fn sections(mut self, sections: bool) -> Self {
        self.sections = sections;
        self
    }

    /// `.comment`, as the compiler writes it; only with section headers.
    #[must_use]
    pub fn comment(mut self, text: impl AsRef<[u8]>) -> Self {
        self.comment = Some(text.as_ref().to_vec());
        self
    }

    /// Writes the file.
    pub fn build(&self) -> Built {
        Assembly::new(self).finish()
    }

    fn bytes(&self) -> Bytes {
        Bytes { class: self.class, endian: self.endian, data: Vec::new() }
    }
}

/// A file that was written, and where its parts are.
#[derive(Debug, Clone)]
pub struct Built {
    out: Bytes,
    parts: BTreeMap<&'static str, Range<usize>>,
}

impl Built {
    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.out.data
    }

    /// The file, to keep.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out.data
    }

    /// The file, to break by hand.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.out.data
    }

    /// Where a part is: `program headers`, `section headers`, or the name of its section (`.dynstr`, `.dynsym`,
    /// `.hash`, `.gnu.hash`, `.gnu.version`, `.gnu.version_r`, `.gnu.version_d`, `.rel.plt`, `.dynamic`, `.interp`,
    /// `.note`).
    ///
    /// # Panics
    /// If the file has no such part: a mistake of the test.
    pub fn part(&self, name: &str) -> Range<usize> {
        self.parts
            .get(name)
            .cloned()
            .unwrap_or_else(|| panic!("no part {name} among {:?}", self.parts.keys()))
    }

    /// The offset of the value of the first dynamic entry with this tag.
    ///
    /// # Panics
    /// If there is none: a mistake of the test.
    pub fn dynamic_entry(&self, tag: i64) -> usize {
        let word = self.out.word_size();
        let part = self.part(".dynamic");
        let at = part.step_by(2 * word).find(|&at| self.out.word_at(at) == tag.cast_unsigned());
        at.unwrap_or_else(|| panic!("no dynamic entry with tag {tag:#x}")) + word
    }

    /// Overwrites 2 bytes in the file's byte order.
    pub fn put_u16(&mut self, at: usize, value: u16) {
        let big = self.out.endian == Endian::Big;
        self.put(at, &if big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    /// Overwrites 4 bytes in the file's byte order.
    pub fn put_u32(&mut self, at: usize, value: u32) {
        let big = self.out.endian == Endian::Big;
        self.put(at, &if big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    /// Overwrites a word of the file's class in its byte order.
    pub fn put_word(&mut self, at: usize, value: u64) {
        match self.out.class {
            Class::Elf32 => self.put_u32(at, value as u32),
            Class::Elf64 => {
                let big = self.out.endian == Endian::Big;
                self.put(at, &if big { value.to_be_bytes() } else { value.to_le_bytes() });
            }
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.out.data[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Bytes in one class and byte order.
#[derive(Debug, Clone)]
struct Bytes {
    class: Class,
    endian: Endian,
    data: Vec<u8>,
}

impl Bytes {
    fn word_size(&self) -> usize {
        if self.class == Class::Elf64 { 8 } else { 4 }
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
    }

    fn u16(&mut self, value: u16) {
        self.raw(&if self.endian == Endian::Big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn u32(&mut self, value: u32) {
        self.raw(&if self.endian == Endian::Big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn u64(&mut self, value: u64) {
        self.raw(&if self.endian == Endian::Big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn word(&mut self, value: u64) {
        match self.class {
            Class::Elf32 => self.u32(value as u32),
            Class::Elf64 => self.u64(value),
        }
    }

    fn align(&mut self, align: usize) {
        self.data.resize(self.data.len().next_multiple_of(align), 0);
    }

    fn word_at(&self, at: usize) -> u64 {
        let bytes = &self.data[at..at + self.word_size()];
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self.endian {
            Endian::Big => bytes.iter().fold(0, fold),
            Endian::Little => bytes.iter().rev().fold(0, fold),
        }
    }
}

/// The string table as it grows: equal strings are written once, as linkers do.
#[derive(Default)]
struct Strings {
    data: Vec<u8>,
    at: BTreeMap<Vec<u8>, u32>,
}

impl Strings {
    fn add(&mut self, text: &[u8]) -> u32 {
        if self.data.is_empty() {
            self.data.push(0);
        }
        if text.is_empty() {
            return 0;
        }
        *self.at.entry(text.to_vec()).or_insert_with(|| {
            let at = self.data.len() as u32;
            self.data.extend_from_slice(text);
            self.data.push(0);
            at
        })
    }
}

/// One section header to write: name, type, flags, part, link, info, entry size.
struct Header {
    name: &'static str,
    section_type: u32,
    flags: u64,
    link: u32,
    info: u32,
    entry_size: u64,
}

/// The file as it grows.
struct Assembly<'w> {
    writer: &'w ElfWriter,
    out: Bytes,
    strings: Strings,
    symbols: Vec<&'w SymbolSpec>,
    parts: BTreeMap<&'static str, Range<usize>>,
    headers: Vec<Header>,
}

impl<'w> Assembly<'w> {
    fn new(writer: &'w ElfWriter) -> Self {
        // DT_GNU_HASH covers the end of the table only, so definitions come last.
        let (undefined, defined): (Vec<_>, Vec<_>) = writer.symbols.iter().partition(|s| s.section == 0);
        let symbols = undefined.into_iter().chain(defined).collect();
        Self {
            writer,
            out: writer.bytes(),
            strings: Strings::default(),
            symbols,
            parts: BTreeMap::new(),
            headers: Vec::new(),
        }
    }

    fn is_64(&self) -> bool {
        self.writer.class == Class::Elf64
    }

    /// Writes one part at an aligned place, with a section header for later.
    fn part(&mut self, align: usize, header: Header, write: impl FnOnce(&mut Self)) {
        self.out.align(align);
        let start = self.out.data.len();
        write(self);
        self.parts.insert(header.name, start..self.out.data.len());
        self.headers.push(header);
    }

    fn finish(mut self) -> Built {
        let writer = self.writer;
        let (header, program_header) = if self.is_64() { (64, 56) } else { (52, 32) };
        let count = 2
            + usize::from(writer.interpreter.is_some())
            + usize::from(!writer.notes.is_empty())
            + usize::from(writer.stack.is_some())
            + usize::from(writer.tls.is_some())
            + writer.segments.len();
        self.out.data.resize(header + count * program_header, 0);
        self.parts.insert("program headers", header..self.out.data.len());
        if let Some(path) = &writer.interpreter {
            self.part(1, plain(".interp", elf::SHT_PROGBITS.0), |a| {
                a.out.raw(path);
                a.out.raw(b"\0");
            });
        }
        if !writer.notes.is_empty() {
            self.part(8, plain(".note", elf::SHT_NOTE.0), |a| a.out.raw(&writer.notes));
        }
        self.symbols();
        self.hash_tables();
        self.versions();
        self.jump_slots();
        self.dynamic();
        self.extra_sections(true);
        let loaded = self.out.data.len();
        self.extra_sections(false);
        let section_count = if writer.sections { self.section_headers() } else { 0 };
        self.elf_header(count as u16, section_count);
        self.program_headers(loaded);
        Built { out: self.out, parts: self.parts }
    }

    fn symbols(&mut self) {
        let entry_size = if self.is_64() { 24 } else { 16 };
        let header = Header {
            name: ".dynsym",
            section_type: elf::SHT_DYNSYM.0,
            flags: 2,
            link: 0,
            info: 1,
            entry_size,
        };
        self.part(8, header, |a| {
            let null = SymbolSpec { info: 0, version: 0, ..SymbolSpec::undefined("") };
            for symbol in std::iter::once(&null).chain(a.symbols.clone()) {
                let name = a.strings.add(&symbol.name);
                a.out.u32(name);
                if a.is_64() {
                    a.out.raw(&[symbol.info, symbol.other]);
                    a.out.u16(symbol.section);
                    a.out.u64(symbol.value);
                    a.out.u64(symbol.size);
                } else {
                    a.out.word(symbol.value);
                    a.out.word(symbol.size);
                    a.out.raw(&[symbol.info, symbol.other]);
                    a.out.u16(symbol.section);
                }
            }
        });
    }

    fn hash_tables(&mut self) {
        let style = self.writer.hash;
        if matches!(style, HashStyle::Sysv | HashStyle::Both) {
            self.part(8, plain(".hash", elf::SHT_HASH.0), Self::sysv_hash);
        }
        if matches!(style, HashStyle::Gnu | HashStyle::Both) {
            self.part(8, plain(".gnu.hash", elf::SHT_GNU_HASH.0), Self::gnu_hash);
        }
    }

    /// One bucket, whose chain runs through all symbols.
    fn sysv_hash(&mut self) {
        let count = self.symbols.len() as u64 + 1;
        let chain = (1..count).map(|i| if i + 1 < count { i + 1 } else { 0 });
        let words = [1, count, u64::from(count > 1), 0].into_iter().chain(chain);
        let wide = self.is_64() && matches!(elf::Machine(self.writer.machine), elf::EM_S390 | elf::EM_ALPHA);
        for word in words.collect::<Vec<_>>() {
            if wide { self.out.u64(word) } else { self.out.u32(word as u32) }
        }
    }

    /// One bucket, whose chain runs through all definitions, behind a Bloom filter that lets everything through.
    fn gnu_hash(&mut self) {
        let undefined = self.symbols.iter().filter(|s| s.section == 0).count() as u32;
        let defined: Vec<u32> =
            self.symbols.iter().skip(undefined as usize).map(|s| gnu_hash(&s.name)).collect();
        let (first, bucket, bloom) =
            if defined.is_empty() { (1, 0, 0) } else { (undefined + 1, undefined + 1, u64::MAX) };
        for word in [1, first, 1, 6] {
            self.out.u32(word);
        }
        self.out.word(bloom);
        self.out.u32(bucket);
        for (i, hash) in defined.iter().enumerate() {
            self.out.u32(if i + 1 == defined.len() { hash | 1 } else { hash & !1 });
        }
    }

    fn versions(&mut self) {
        let writer = self.writer;
        if !writer.needs.is_empty() {
            let count = writer.needs.len() as u32;
            self.part(8, versions(".gnu.version_r", elf::SHT_GNU_VERNEED.0, count), Self::version_needs);
        }
        if !writer.definitions.is_empty() {
            let count = writer.definitions.len() as u32 + 1;
            self.part(8, versions(".gnu.version_d", elf::SHT_GNU_VERDEF.0, count), Self::version_definitions);
        }
        if !writer.needs.is_empty() || !writer.definitions.is_empty() {
            self.part(2, versions(".gnu.version", elf::SHT_GNU_VERSYM.0, 0), |a| {
                a.out.u16(0);
                for symbol in a.symbols.clone() {
                    a.out.u16(symbol.version);
                }
            });
        }
    }

    fn version_needs(&mut self) {
        const RECORD: u32 = 16;
        let needs = &self.writer.needs;
        for (i, (library, versions)) in needs.iter().enumerate() {
            let name = self.strings.add(library);
            let size = RECORD + RECORD * versions.len() as u32;
            self.out.u16(1);
            self.out.u16(versions.len() as u16);
            self.out.u32(name);
            self.out.u32(RECORD);
            self.out.u32(if i + 1 == needs.len() { 0 } else { size });
            for (j, (version, index)) in versions.iter().enumerate() {
                let name = self.strings.add(version);
                self.out.u32(sysv_hash(version));
                self.out.u16(0);
                self.out.u16(*index);
                self.out.u32(name);
                self.out.u32(if j + 1 == versions.len() { 0 } else { RECORD });
            }
        }
    }

    /// The base definition (the file's own name) and the versions.
    fn version_definitions(&mut self) {
        let base = self.writer.soname.clone().unwrap_or_else(|| b"base".to_vec());
        let definitions = &self.writer.definitions;
        let all = std::iter::once((base, 1)).chain(definitions.iter().cloned());
        for (i, (name, index)) in all.enumerate() {
            let name_at = self.strings.add(&name);
            self.out.u16(1);
            self.out.u16(u16::from(i == 0));
            self.out.u16(index);
            self.out.u16(1);
            self.out.u32(sysv_hash(&name));
            self.out.u32(20);
            self.out.u32(if i == definitions.len() { 0 } else { 28 });
            self.out.u32(name_at);
            self.out.u32(0);
        }
    }

    /// One PLT relocation for each undefined symbol.
    fn jump_slots(&mut self) {
        let undefined = self.symbols.iter().filter(|s| s.section == 0).count() as u64;
        if undefined == 0 {
            return;
        }
        let (addends, slot) = (self.writer.arch.addends(), u64::from(self.writer.arch.jump_slot()));
        let section_type = if addends { elf::SHT_RELA.0 } else { elf::SHT_REL.0 };
        self.part(8, plain(".rel.plt", section_type), |a| {
            for symbol in 1..=undefined {
                a.out.word(0x1000 + symbol * 8);
                a.out.word(if a.is_64() { symbol << 32 | slot } else { symbol << 8 | slot });
                if addends {
                    a.out.word(0);
                }
            }
        });
    }

    fn dynamic(&mut self) {
        let writer = self.writer;
        let mut entries: Vec<(i64, u64)> = Vec::new();
        for name in &writer.needed {
            entries.push((elf::DT_NEEDED.0, self.strings.add(name).into()));
        }
        let paths = [
            (elf::DT_SONAME, &writer.soname),
            (elf::DT_RPATH, &writer.rpath),
            (elf::DT_RUNPATH, &writer.runpath),
        ];
        for (tag, text) in paths {
            if let Some(text) = text {
                entries.push((tag.0, self.strings.add(text).into()));
            }
        }
        // All strings are known now.
        self.part(1, plain(".dynstr", elf::SHT_STRTAB.0), |a| {
            let _ = a.strings.add(b"");
            a.out.raw(&a.strings.data);
        });
        let start = |name: &str| self.parts.get(name).map(|part| part.start as u64);
        let size = |name: &str| self.parts.get(name).map(|part| part.len() as u64);
        let (symbol_size, needs, definitions) = (
            if self.is_64() { 24 } else { 16 },
            writer.needs.len() as u64,
            writer.definitions.len() as u64 + 1,
        );
        let plt_kind = if writer.arch.addends() { elf::DT_RELA } else { elf::DT_REL }.0.cast_unsigned();
        let pointers = [
            (elf::DT_STRTAB, start(".dynstr")),
            (elf::DT_STRSZ, size(".dynstr")),
            (elf::DT_SYMTAB, start(".dynsym")),
            (elf::DT_SYMENT, Some(symbol_size)),
            (elf::DT_HASH, start(".hash")),
            (elf::DT_GNU_HASH, start(".gnu.hash")),
            (elf::DT_VERSYM, start(".gnu.version")),
            (elf::DT_VERNEED, start(".gnu.version_r")),
            (elf::DT_VERNEEDNUM, start(".gnu.version_r").map(|_| needs)),
            (elf::DT_VERDEF, start(".gnu.version_d")),
            (elf::DT_VERDEFNUM, start(".gnu.version_d").map(|_| definitions)),
            (elf::DT_JMPREL, start(".rel.plt")),
            (elf::DT_PLTRELSZ, size(".rel.plt")),
            (elf::DT_PLTREL, start(".rel.plt").map(|_| plt_kind)),
        ];
        entries.extend(pointers.into_iter().filter_map(|(tag, value)| Some((tag.0, value?))));
        entries.extend(&writer.dynamic);
        entries.push((0, 0));
        let header = Header { flags: 3, ..plain(".dynamic", elf::SHT_DYNAMIC.0) };
        self.part(8, header, |a| {
            for (tag, value) in entries {
                a.out.word(tag.cast_unsigned());
                a.out.word(value);
            }
        });
    }

    fn extra_sections(&mut self, allocated: bool) {
        let writer = self.writer;
        for section in writer.extra_sections.iter().filter(|s| (s.flags & 2 != 0) == allocated) {
            let header = Header { flags: section.flags, ..plain(section.name, section.section_type) };
            self.part(8, header, |a| a.out.raw(&section.content));
        }
    }

    /// Gives their number, with the null section and `.shstrtab`, which is the last.
    fn section_headers(&mut self) -> u16 {
        if let Some(text) = self.writer.comment.clone() {
            self.part(1, Header { flags: 0, ..plain(".comment", elf::SHT_PROGBITS.0) }, |a| {
                a.out.raw(&text);
                a.out.raw(b"\0");
            });
        }
        let mut names = Strings::default();
        let header = Header { flags: 0, ..plain(".shstrtab", elf::SHT_STRTAB.0) };
        let mut name_of: Vec<u32> = self.headers.iter().map(|h| names.add(h.name.as_bytes())).collect();
        name_of.push(names.add(header.name.as_bytes()));
        self.part(1, header, |a| a.out.raw(&names.data));
        let headers = std::mem::take(&mut self.headers);
        let index_of = |name: &str| headers.iter().position(|h| h.name == name).map_or(0, |i| i as u32 + 1);
        let links = [index_of(".dynsym"), index_of(".dynstr")];
        self.out.align(8);
        let start = self.out.data.len();
        self.section_header(0, &plain("", 0), 0..0, 0);
        for (header, name) in headers.iter().zip(name_of) {
            let link = match header.name {
                ".hash" | ".gnu.hash" | ".gnu.version" | ".rel.plt" => links[0],
                ".dynsym" | ".dynamic" | ".gnu.version_r" | ".gnu.version_d" => links[1],
                _ => header.link,
            };
            let part = self.parts.get(header.name).cloned().unwrap_or_default();
            self.section_header(name, header, part, link);
        }
        self.parts.insert("section headers", start..self.out.data.len());
        headers.len() as u16 + 1
    }

    fn section_header(&mut self, name: u32, header: &Header, part: Range<usize>, link: u32) {
        let flags = if header.section_type == 0 { 0 } else { header.flags };
        self.out.u32(name);
        self.out.u32(header.section_type);
        self.out.word(flags);
        self.out.word(if flags == 0 { 0 } else { part.start as u64 });
        self.out.word(part.start as u64);
        self.out.word(part.len() as u64);
        self.out.u32(link);
        self.out.u32(header.info);
        self.out.word(1);
        self.out.word(header.entry_size);
    }

    fn elf_header(&mut self, segments: u16, sections: u16) {
        let writer = self.writer;
        let (is_64, big) = (self.is_64(), writer.endian == Endian::Big);
        let (header, program_header, section_header) = if is_64 { (64, 56, 64) } else { (52, 32, 40) };
        let mut out = writer.bytes();
        out.raw(b"\x7fELF");
        out.raw(&[if is_64 { 2 } else { 1 }, if big { 2 } else { 1 }, 1, 0]);
        out.raw(&[0; 8]);
        out.u16(writer.object_type);
        out.u16(writer.machine);
        out.u32(1);
        out.word(0);
        out.word(header.into());
        out.word(self.parts.get("section headers").map_or(0, |part| part.start as u64));
        out.u32(writer.flags);
        out.u16(header);
        out.u16(program_header);
        out.u16(segments);
        out.u16(if sections == 0 { 0 } else { section_header });
        out.u16(sections);
        out.u16(sections.saturating_sub(1));
        self.out.data[..out.data.len()].copy_from_slice(&out.data);
    }

    fn program_headers(&mut self, loaded: usize) {
        let writer = self.writer;
        let part = |name: &str| self.parts.get(name).cloned().unwrap_or_default();
        let mut headers = Vec::new();
        if writer.interpreter.is_some() {
            headers.push((elf::PT_INTERP.0, 4, part(".interp"), None, 1));
        }
        headers.push((elf::PT_LOAD.0, writer.load_flags, 0..loaded, None, writer.load_align));
        headers.push((elf::PT_DYNAMIC.0, 6, part(".dynamic"), None, 8));
        if !writer.notes.is_empty() {
            headers.push((elf::PT_NOTE.0, 4, part(".note"), None, self.out.word_size() as u64));
        }
        if let Some(flags) = writer.stack {
            headers.push((elf::PT_GNU_STACK.0, flags, 0..0, None, 16));
        }
        if let Some((size, align)) = writer.tls {
            headers.push((elf::PT_TLS.0, 4, 0..0, Some(size), align));
        }
        let planned = headers.into_iter().map(|(segment_type, flags, range, memory, align)| {
            let (start, size) = (range.start as u64, range.len() as u64);
            SegmentSpec {
                segment_type,
                flags,
                offset: start,
                address: start,
                file_size: size,
                memory_size: memory.unwrap_or(size),
                align,
            }
        });
        let mut out = writer.bytes();
        for segment in planned.chain(writer.segments.iter().cloned()) {
            out.u32(segment.segment_type);
            if self.is_64() {
                out.u32(segment.flags);
            }
            for word in
                [segment.offset, segment.address, segment.address, segment.file_size, segment.memory_size]
            {
                out.word(word);
            }
            if !self.is_64() {
                out.u32(segment.flags);
            }
            out.word(segment.align);
        }
        let at = part("program headers");
        self.out.data[at].copy_from_slice(&out.data);
    }
}

fn plain(name: &'static str, section_type: u32) -> Header {
    Header { name, section_type, flags: 2, link: 0, info: 0, entry_size: 0 }
}

fn versions(name: &'static str, section_type: u32, info: u32) -> Header {
    Header { info, ..plain(name, section_type) }
}
