//! A stub of a shared library: all that a linker reads of it, and no code.
//!
//! A linker takes from a shared library its soname, its dynamic symbols with their kinds, sizes and versions, and
//! whether a symbol lies in a thread-local, writable or executable section. The format is that of the gABI (chapters 4
//! and 5) with the GNU extensions for versions (LSB Core, "Symbol Versioning").

use std::collections::BTreeMap;

use abiaudit_policy::Arch;
use abiaudit_policy::symbols::Kind;
use object::Endianness;
use object::elf;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, SinglePhaseWriter, Sym, Verdef};

use crate::library::{Export, ExportBinding, Library};
use crate::version::order;

/// Alignment of segments and of what follows the tables: a page of the largest size that either architecture has.
const PAGE: u64 = 0x10000;
/// Alignment of each variable; the linker gives copies of variables the alignment that their addresses show.
const VARIABLE_ALIGN: u64 = 32;

/// Writes a stub of `library` for `arch` (x86_64 or aarch64; both are 64-bit little-endian).
pub fn write(library: &Library, arch: Arch) -> Vec<u8> {
    let layout = Layout::of(library);
    let mut bytes = Vec::new();
    let mut head = Vec::new();
    {
        let mut writer = SinglePhaseWriter::new_single_phase(Endianness::Little, true, &mut bytes);
        Stub { library, layout: &layout, machine: machine(arch) }.write(&mut writer, &mut head);
    }
    bytes[..head.len()].copy_from_slice(&head);
    bytes
}

/// `e_machine` of an architecture.
pub(crate) fn machine(arch: Arch) -> elf::Machine {
    match arch {
        Arch::Aarch64 => elf::EM_AARCH64,
        _ => elf::EM_X86_64,
    }
}

/// The sections that symbols lie in; they occupy no bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Text = 1,
    Bss = 2,
    Tbss = 3,
}

impl Place {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Function | Kind::IFunc | Kind::NoType => Self::Text,
            Kind::Object => Self::Bss,
            Kind::Tls => Self::Tbss,
        }
    }

    /// Far above the tables, and apart from the others by more than any library is large.
    fn address(self) -> u64 {
        (self as u64) << 28
    }

    /// What the value of a symbol counts from: a thread-local one is an offset in the thread's block.
    fn symbol_base(self) -> u64 {
        match self {
            Self::Text | Self::Bss => self.address(),
            Self::Tbss => 0,
        }
    }
}

/// Where each symbol lies within its section, and how large the sections are.
struct Layout {
    offsets: Vec<u64>,
    sizes: BTreeMap<Place, u64>,
}

impl Layout {
    fn of(library: &Library) -> Self {
        let mut sizes = BTreeMap::new();
        let mut shared: BTreeMap<(Place, u64), u64> = BTreeMap::new();
        let mut offsets = Vec::with_capacity(library.exports.len());
        for export in &library.exports {
            let place = Place::of(export.kind);
            let key = (place, export.place);
            // Functions are called, not copied: only variables need to keep their other names.
            let known = if place == Place::Bss && export.place != 0 { shared.get(&key) } else { None };
            offsets.push(known.copied().unwrap_or_else(|| {
                let size: &mut u64 = sizes.entry(place).or_default();
                let offset = size.next_multiple_of(VARIABLE_ALIGN);
                *size = offset + group_size(library, export).max(1);
                shared.insert(key, offset);
                offset
            }));
        }
        Self { offsets, sizes }
    }

    fn size(&self, place: Place) -> u64 {
        self.sizes.get(&place).copied().unwrap_or(0)
    }
}

/// The size of a variable is that of its largest name.
fn group_size(library: &Library, export: &Export) -> u64 {
    if export.place == 0 || Place::of(export.kind) != Place::Bss {
        return export.size;
    }
    let same = |other: &&Export| other.place == export.place && other.kind == export.kind;
    library.exports.iter().filter(same).map(|other| other.size).max().unwrap_or(export.size)
}

struct Stub<'a> {
    library: &'a Library,
    layout: &'a Layout,
    machine: elf::Machine,
}

/// Offsets of the tables, which are their addresses too.
struct Tables {
    hash: u64,
    dynsym: u64,
    versym: u64,
    verdef: u64,
    dynstr: (u64, u32),
    dynamic: u64,
    end: u64,
}

impl<'a> Stub<'a> {
    fn write(&self, writer: &mut SinglePhaseWriter<'a>, head: &mut Vec<u8>) {
        let header = FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type: elf::ET_DYN,
            e_machine: self.machine,
            e_entry: 0,
            e_flags: elf::FileFlags(0),
        };
        // Writing to memory fails only for files beyond 4 GiB.
        let _ = writer.write_file_header(&header);
        writer.write_program_headers_placeholder(PROGRAM_HEADERS);
        let mut nodes: Vec<&str> = self.library.exports.iter().map(|e| e.version.as_str()).collect();
        nodes.sort_by(|a, b| order(a, b));
        nodes.dedup();
        let tables = self.write_tables(writer, &nodes);
        self.write_sections(writer, &tables);
        let _ = writer.write_headers_to(head, &self.program_headers(&tables));
    }

    /// Everything that occupies bytes of the file and is loaded.
    fn write_tables(&self, writer: &mut SinglePhaseWriter<'a>, nodes: &[&'a str]) -> Tables {
        let exports = &self.library.exports;
        let count = exports.len() as u32 + 1;
        let hash = writer.write_hash(count.div_ceil(4).max(1), count, |index| {
            let export = exports.get((index as usize).checked_sub(1)?)?;
            Some(elf::hash(export.name.as_bytes()))
        });
        let soname = writer.add_dynamic_string(self.library.soname.as_bytes());
        let names: Vec<_> = exports.iter().map(|e| writer.add_dynamic_string(e.name.as_bytes())).collect();
        let node_names: Vec<_> =
            nodes.iter().map(|node| writer.add_dynamic_string(node.as_bytes())).collect();
        let dynstr = writer.write_dynstr().unwrap_or_default();
        let dynsym = writer.write_null_dynamic_symbol();
        for ((export, name), offset) in exports.iter().zip(names).zip(&self.layout.offsets) {
            let place = Place::of(export.kind);
            let st_name = writer.dynamic_string_offset(Some(name));
            writer.write_dynamic_symbol(&Sym {
                section: Some(place as u32),
                st_name,
                st_info: elf::SymbolInfo::new(bind(export.binding), symbol_type(export.kind)),
                st_other: elf::STV_DEFAULT.into(),
                st_shndx: elf::SymbolSection::new(place as u32),
                st_value: place.symbol_base() + offset,
                st_size: export.size,
            });
        }
        let versym = writer.write_null_gnu_versym();
        for export in exports {
            let index = nodes.iter().position(|node| *node == export.version).unwrap_or(0);
            // Index 1 is the file's own name.
            let index = elf::VersionIndex(u16::try_from(index + 2).unwrap_or(1));
            writer.write_gnu_versym(index.versym(!export.default));
        }
        let verdef = writer.write_align_gnu_verdef(nodes.len() as u16 + 1);
        let base_node = (elf::VER_FLG_BASE, soname, self.library.soname.as_str());
        let other_nodes = nodes.iter().zip(node_names).map(|(node, id)| (elf::VersionFlags(0), id, *node));
        for (index, (flags, id, node)) in std::iter::once(base_node).chain(other_nodes).enumerate() {
            let name = writer.dynamic_string_offset(Some(id));
            writer.write_gnu_verdef(&Verdef {
                version: elf::VER_DEF_CURRENT,
                flags,
                index: elf::VersionIndex(index as u16 + 1),
                aux_count: 1,
                name,
                hash: elf::hash(node.as_bytes()),
            });
        }
        let dynamic = writer.write_align_dynamic();
        let entries = [
            (elf::DT_SONAME, u64::from(writer.dynamic_string_offset(Some(soname)))),
            (elf::DT_HASH, hash),
            (elf::DT_STRTAB, dynstr.0),
            (elf::DT_SYMTAB, dynsym),
            (elf::DT_STRSZ, u64::from(dynstr.1)),
            (elf::DT_SYMENT, 24),
            (elf::DT_VERSYM, versym),
            (elf::DT_VERDEF, verdef),
            (elf::DT_VERDEFNUM, nodes.len() as u64 + 1),
            (elf::DT_NULL, 0),
        ];
        for (tag, value) in entries {
            let _ = writer.write_dynamic(tag, value);
        }
        Tables { hash, dynsym, versym, verdef, dynstr, dynamic, end: writer.offset() }
    }

    fn write_sections(&self, writer: &mut SinglePhaseWriter<'a>, tables: &Tables) {
        let specs: [(&[u8], Place, elf::SectionFlags); 3] = [
            (b".text", Place::Text, elf::SHF_ALLOC | elf::SHF_EXECINSTR),
            (b".bss", Place::Bss, elf::SHF_ALLOC | elf::SHF_WRITE),
            (b".tbss", Place::Tbss, elf::SHF_ALLOC | elf::SHF_WRITE | elf::SHF_TLS),
        ];
        let names = specs.map(|(name, ..)| writer.add_section_name(name));
        let _ = writer.write_shstrtab();
        writer.write_null_section_header();
        for ((_, place, flags), name) in specs.into_iter().zip(names) {
            let sh_name = writer.section_name_offset(Some(name));
            writer.write_section_header(&SectionHeader {
                sh_name,
                sh_type: elf::SHT_NOBITS,
                sh_flags: flags,
                sh_addr: place.address(),
                sh_offset: tables.end,
                sh_size: self.layout.size(place),
                sh_link: 0,
                sh_info: 0,
                sh_addralign: VARIABLE_ALIGN,
                sh_entsize: 0,
            });
        }
        writer.write_dynstr_section_header(tables.dynstr.0);
        writer.write_dynsym_section_header(tables.dynsym, 1);
        writer.write_hash_section_header(tables.hash);
        writer.write_gnu_versym_section_header(tables.versym);
        writer.write_gnu_verdef_section_header(tables.verdef);
        writer.write_dynamic_section_header(tables.dynamic);
        writer.write_shstrtab_section_header();
    }

    fn program_headers(&self, tables: &Tables) -> [ProgramHeader; 5] {
        let header = |p_type, p_flags, offset, vaddr, filesz, memsz, align| ProgramHeader {
            p_type,
            p_flags,
            p_offset: offset,
            p_vaddr: vaddr,
            p_paddr: vaddr,
            p_filesz: filesz,
            p_memsz: memsz,
            p_align: align,
        };
        let empty = |p_type, flags, place: Place, align| {
            header(p_type, flags, 0, place.address(), 0, self.layout.size(place), align)
        };
        [
            header(elf::PT_LOAD, elf::PF_R, 0, 0, tables.end, tables.end, PAGE),
            empty(elf::PT_LOAD, elf::PF_R | elf::PF_X, Place::Text, PAGE),
            empty(elf::PT_LOAD, elf::PF_R | elf::PF_W, Place::Bss, PAGE),
            empty(elf::PT_TLS, elf::PF_R, Place::Tbss, VARIABLE_ALIGN),
            header(
                elf::PT_DYNAMIC,
                elf::PF_R,
                tables.dynamic,
                tables.dynamic,
                DYNAMIC_ENTRIES * 16,
                DYNAMIC_ENTRIES * 16,
                8,
            ),
        ]
    }
}

const PROGRAM_HEADERS: u32 = 5;
const DYNAMIC_ENTRIES: u64 = 10;

fn bind(binding: ExportBinding) -> elf::SymbolBind {
    match binding {
        ExportBinding::Global => elf::STB_GLOBAL,
        ExportBinding::Weak => elf::STB_WEAK,
        ExportBinding::Unique => elf::STB_GNU_UNIQUE,
    }
}

fn symbol_type(kind: Kind) -> elf::SymbolType {
    match kind {
        Kind::Function => elf::STT_FUNC,
        Kind::Object => elf::STT_OBJECT,
        Kind::Tls => elf::STT_TLS,
        Kind::IFunc => elf::STT_GNU_IFUNC,
        Kind::NoType => elf::STT_NOTYPE,
    }
}
