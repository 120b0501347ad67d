//! Class, byte order, machine and type: the ELF header.

use object::elf;

/// 32 or 64 bit (`EI_CLASS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// `ELFCLASS32`
    Elf32,
    /// `ELFCLASS64`
    Elf64,
}

/// Byte order (`EI_DATA`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endian {
    /// `ELFDATA2LSB`
    Little,
    /// `ELFDATA2MSB`
    Big,
}

/// `e_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectType {
    /// `ET_REL`: an object file; no loader opens it.
    Relocatable,
    /// `ET_EXEC`: a program with fixed addresses.
    Executable,
    /// `ET_DYN`: a shared library, an extension module, or a position-independent program.
    Shared,
    /// `ET_CORE`: a memory dump.
    Core,
    /// Any other value.
    Other(u16),
}

/// What the ELF header says of the file as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// 32 or 64 bit.
    pub class: Class,
    /// Byte order.
    pub endian: Endian,
    /// `EI_OSABI`; 0 (System V) and 3 (GNU) are what Linux loads.
    pub os_abi: u8,
    /// `EI_ABIVERSION`.
    pub abi_version: u8,
    /// `e_type`.
    pub object_type: ObjectType,
    /// `e_machine`.
    pub machine: u16,
    /// `e_flags`, whose meaning depends on the machine.
    pub flags: u32,
    /// `e_entry`, 0 if the file is no program.
    pub entry: u64,
}

impl Identity {
    /// The architecture in the spelling of platform tags (PEP 600), or `None` for a machine or ABI that Linux
    /// wheels have no tag for. ARM counts only as EABI5 with hard floats, which is what `armv7l` stands for.
    pub fn arch(&self) -> Option<&'static str> {
        use Class::{Elf32, Elf64};
        use Endian::{Big, Little};
        let hard_float_eabi5 = self.flags & 0xff00_0400 == 0x0500_0400;
        Some(match (elf::Machine(self.machine), self.class, self.endian) {
            (elf::EM_X86_64, Elf64, Little) => "x86_64",
            (elf::EM_386, Elf32, Little) => "i686",
            (elf::EM_AARCH64, Elf64, Little) => "aarch64",
            (elf::EM_ARM, Elf32, Little) if hard_float_eabi5 => "armv7l",
            (elf::EM_PPC64, Elf64, Little) => "ppc64le",
            (elf::EM_PPC64, Elf64, Big) => "ppc64",
            (elf::EM_S390, Elf64, Big) => "s390x",
            (elf::EM_RISCV, Elf64, Little) => "riscv64",
            (elf::EM_LOONGARCH, Elf64, Little) => "loongarch64",
            _ => return None,
        })
    }

    /// The machine for people: the tag's name where there is one, else the number with class and byte order.
    pub fn machine_name(&self) -> String {
        if let Some(arch) = self.arch() {
            return arch.to_owned();
        }
        let name = match elf::Machine(self.machine) {
            elf::EM_MIPS => "mips",
            elf::EM_ARM => "arm (not EABI5 hard-float)",
            elf::EM_PPC => "ppc",
            elf::EM_ALPHA => "alpha",
            _ => return format!("machine {} ({:?}, {:?})", self.machine, self.class, self.endian),
        };
        format!("{name} ({:?}, {:?})", self.class, self.endian)
    }

    /// `DT_HASH` entries are 8 bytes on 64-bit s390 and on Alpha (glibc, `Elf_Symndx` in the `bits/elfclass.h`
    /// of both), 4 bytes everywhere else.
    pub(crate) fn hash_entry_size(&self) -> u64 {
        let wide = matches!(elf::Machine(self.machine), elf::EM_S390 | elf::EM_ALPHA);
        if wide && self.class == Class::Elf64 { 8 } else { 4 }
    }

    /// MIPS packs relocation info and GOT differently; its dynamic relocations are not read.
    pub(crate) fn is_mips(&self) -> bool {
        elf::Machine(self.machine) == elf::EM_MIPS
    }
}

impl ObjectType {
    pub(crate) fn new(value: u16) -> Self {
        match value {
            1 => Self::Relocatable,
            2 => Self::Executable,
            3 => Self::Shared,
            4 => Self::Core,
            other => Self::Other(other),
        }
    }
}
