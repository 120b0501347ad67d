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

mod assembly;

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf;

use self::assembly::{Assembly, Bytes};
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
