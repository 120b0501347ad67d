//! Every word that the loader writes when it relocates an object, with what it writes there.
//!
//! [`crate::Object`] keeps only which symbols relocations name, which is what most questions need and what one pass over
//! a stream can hold. Whoever wants to change a file needs each relocation: [`fixups`] reads them from the whole file.

use object::Endianness;
use object::elf;
use object::read::elf::{Rel, Rela, RelrIterator};

use crate::dynamic::Pointers;
use crate::error::{Fault, ParseError};
use crate::identity::{Class, Endian, Identity};
use crate::image::Image;
use crate::object::Object;
use crate::raw::Elf;
use crate::relocations::{self, Table};

/// One dynamic relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixup {
    /// `r_offset`: the address of the word.
    pub address: u64,
    /// `r_type`, which means what the machine's psABI says. Words of `DT_RELR` have the machine's `R_*_RELATIVE`.
    pub relocation: u32,
    /// Index into `.dynsym`; 0 names no symbol.
    pub symbol: u32,
    /// `r_addend`. Without one (`DT_REL`, `DT_RELR`) it is what the file has at the place; 0 where it has nothing.
    pub addend: i64,
    /// From `DT_JMPREL`.
    pub plt: bool,
}

/// What the loader computes for a word, as far as callers tell relocations apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixupKind {
    /// Load address plus addend (`R_*_RELATIVE`).
    Relative,
    /// The address of a symbol plus the addend, in a word of data (`R_X86_64_64`, `R_AARCH64_ABS64`).
    Address,
    /// The address of a symbol, in a slot through which code reaches it (`R_*_GLOB_DAT`, `R_*_JUMP_SLOT`).
    Slot,
    /// The number of the module whose TLS block has the symbol (`R_*_DTPMOD*`).
    TlsModule,
    /// The offset of a symbol in its module's TLS block (`R_*_DTPOFF*`).
    TlsOffset,
    /// The offset of a symbol from the thread pointer (`R_*_TPOFF*`): initial exec.
    TlsThreadOffset,
    /// A TLS descriptor.
    TlsDescriptor,
    /// What a resolver function returns (`R_*_IRELATIVE`).
    IndirectRelative,
    /// Any other.
    Other,
}

impl Fixup {
    /// What the loader computes. `None` for a machine that is not known here.
    pub fn kind(&self, identity: &Identity) -> Option<FixupKind> {
        match elf::Machine(identity.machine) {
            elf::EM_X86_64 => Some(x86_64(self.relocation)),
            elf::EM_AARCH64 => Some(aarch64(self.relocation)),
            _ => None,
        }
    }
}

/// x86-64 psABI, table 4.9.
fn x86_64(relocation: u32) -> FixupKind {
    match elf::RelocationType(relocation) {
        elf::R_X86_64_RELATIVE | elf::R_X86_64_RELATIVE64 => FixupKind::Relative,
        elf::R_X86_64_64 => FixupKind::Address,
        elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => FixupKind::Slot,
        elf::R_X86_64_DTPMOD64 => FixupKind::TlsModule,
        elf::R_X86_64_DTPOFF64 => FixupKind::TlsOffset,
        elf::R_X86_64_TPOFF64 => FixupKind::TlsThreadOffset,
        elf::R_X86_64_TLSDESC => FixupKind::TlsDescriptor,
        elf::R_X86_64_IRELATIVE => FixupKind::IndirectRelative,
        _ => FixupKind::Other,
    }
}

/// ELF for the Arm 64-bit architecture (AAELF64), dynamic relocations.
fn aarch64(relocation: u32) -> FixupKind {
    match elf::RelocationType(relocation) {
        elf::R_AARCH64_RELATIVE => FixupKind::Relative,
        elf::R_AARCH64_ABS64 => FixupKind::Address,
        elf::R_AARCH64_GLOB_DAT | elf::R_AARCH64_JUMP_SLOT => FixupKind::Slot,
        elf::R_AARCH64_TLS_DTPMOD => FixupKind::TlsModule,
        elf::R_AARCH64_TLS_DTPREL => FixupKind::TlsOffset,
        elf::R_AARCH64_TLS_TPREL => FixupKind::TlsThreadOffset,
        elf::R_AARCH64_TLSDESC => FixupKind::TlsDescriptor,
        elf::R_AARCH64_IRELATIVE => FixupKind::IndirectRelative,
        _ => FixupKind::Other,
    }
}

/// All dynamic relocations of a whole file: those of `DT_RELA`, `DT_REL`, `DT_RELR` and `DT_JMPREL`, in this order.
///
/// # Errors
/// [`ParseError`] where a table lies outside of the file, or `DT_RELR` is of a machine without a known `R_*_RELATIVE`.
pub fn fixups(bytes: &[u8], object: &Object) -> Result<Vec<Fixup>, ParseError> {
    let endian = match object.identity.endian {
        Endian::Little => Endianness::Little,
        Endian::Big => Endianness::Big,
    };
    let read = match object.identity.class {
        Class::Elf32 => read::<elf::FileHeader32<Endianness>>(bytes, object, endian),
        Class::Elf64 => read::<elf::FileHeader64<Endianness>>(bytes, object, endian),
    };
    read.map_err(|fault| match fault {
        Fault::Bad(error) => error,
        Fault::Missing(ranges) => ParseError::Malformed {
            what: "file",
            found: format!("ranges {ranges:?} not in the file"),
            expected: "a whole file",
        },
    })
}

fn read<E: Elf>(bytes: &[u8], object: &Object, endian: Endianness) -> Result<Vec<Fixup>, Fault> {
    let reader = Reader { image: Image::whole(bytes), object, endian };
    let pointers = Pointers::of(&object.dynamic.entries);
    let tables = relocations::tables::<E>(&object.identity, &object.segments, &pointers)?;
    let mut fixups = Vec::new();
    let (plt, data): (Vec<_>, Vec<_>) = tables.iter().partition(|table| table.plt);
    for table in data {
        reader.read_table::<E>(table, &mut fixups)?;
    }
    if let Some(relr) = pointers.sized(&object.segments, "DT_RELR", elf::DT_RELR, elf::DT_RELRSZ)? {
        reader.read_relr::<E>(relr.start, relr.end - relr.start, &mut fixups)?;
    }
    for table in plt {
        reader.read_table::<E>(table, &mut fixups)?;
    }
    Ok(fixups)
}

struct Reader<'a> {
    image: Image<'a>,
    object: &'a Object,
    endian: Endianness,
}

impl Reader<'_> {
    fn read_table<E: Elf>(&self, table: &Table, fixups: &mut Vec<Fixup>) -> Result<(), Fault> {
        let (what, offset, count, plt) = (table.what, table.offset, table.count::<E>(), table.plt);
        if table.addends {
            let entries = self.image.read_slice::<E::Rela>(what, offset, count)?;
            fixups.extend(entries.iter().map(|entry| Fixup {
                address: entry.r_offset(self.endian).into(),
                relocation: entry.r_type(self.endian, false).0,
                symbol: entry.r_sym(self.endian, false),
                addend: entry.r_addend(self.endian).into(),
                plt,
            }));
        } else {
            let entries = self.image.read_slice::<E::Rel>(what, offset, count)?;
            fixups.extend(entries.iter().map(|entry| {
                let address = entry.r_offset(self.endian).into();
                Fixup {
                    address,
                    relocation: entry.r_type(self.endian).0,
                    symbol: entry.r_sym(self.endian),
                    addend: self.word_at::<E>(address),
                    plt,
                }
            }));
        }
        Ok(())
    }

    /// gABI, "Relative Relocation Table": an even word is an address, an odd one a bitmap of the words behind it.
    fn read_relr<E: Elf>(&self, offset: u64, size: u64, fixups: &mut Vec<Fixup>) -> Result<(), Fault> {
        let Some(relocation) = relative_type(&self.object.identity) else {
            let machine = self.object.identity.machine_name();
            return Err(Fault::malformed("DT_RELR", machine, "a machine with relative relocations"));
        };
        let count = size / size_of::<E::Relr>() as u64;
        let words = self.image.read_slice::<E::Relr>("DT_RELR", offset, count)?;
        for address in RelrIterator::<E>::new(self.endian, words) {
            let address = address.into();
            let addend = self.word_at::<E>(address);
            fixups.push(Fixup { address, relocation, symbol: 0, addend, plt: false });
        }
        Ok(())
    }

    fn word_at<E: Elf>(&self, address: u64) -> i64 {
        let size = if E::is_type_64_sized() { 8 } else { 4 };
        let offset = self.object.segments.offset_of("relocated word", address);
        let bytes = offset.ok().and_then(|offset| self.image.get(offset..offset.checked_add(size)?));
        let (Some(bytes), little) = (bytes, self.endian == Endianness::Little) else { return 0 };
        match (<[u8; 8]>::try_from(bytes), <[u8; 4]>::try_from(bytes)) {
            (Ok(word), _) if little => i64::from_le_bytes(word),
            (Ok(word), _) => i64::from_be_bytes(word),
            (_, Ok(word)) if little => i32::from_le_bytes(word).into(),
            (_, Ok(word)) => i32::from_be_bytes(word).into(),
            _ => 0,
        }
    }
}

/// `R_*_RELATIVE` of the machine (each psABI).
fn relative_type(identity: &Identity) -> Option<u32> {
    Some(match elf::Machine(identity.machine) {
        elf::EM_X86_64 | elf::EM_386 => 8,
        elf::EM_AARCH64 => 1027,
        elf::EM_ARM => 23,
        elf::EM_PPC64 | elf::EM_PPC => 22,
        elf::EM_S390 => 12,
        elf::EM_RISCV | elf::EM_LOONGARCH => 3,
        _ => return None,
    })
}
