//! Numbers of the ELF specification, as plain integers: what the editor writes is built from fields.
//!
//! The values are those of the `object` crate, so that each number has one source.

use object::elf;

macro_rules! numbers {
    ($type:ty: $($name:ident),* $(,)?) => {
        $(pub(crate) const $name: $type = elf::$name.0 as $type;)*
    };
}

numbers!(u16: EM_MIPS, EM_PPC, EM_PPC64, EM_S390, EM_ALPHA, EM_AARCH64, EM_LOONGARCH);
numbers!(u32: PT_NULL, PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR, PT_TLS, PT_GNU_STACK, PT_GNU_RELRO);
numbers!(u32: PT_GNU_PROPERTY, PF_R, PF_W, PF_X);
numbers!(u32: SHT_NULL, SHT_STRTAB, SHT_SYMTAB, SHT_NOBITS, SHT_NOTE, SHT_REL, SHT_RELA, SHT_DYNAMIC, SHT_DYNSYM, SHT_HASH);
numbers!(u32: SHT_PROGBITS);
numbers!(u32: SHT_GNU_HASH, SHT_GNU_VERSYM, SHT_GNU_VERNEED, SHT_GNU_VERDEF);
numbers!(u64: SHF_ALLOC);
numbers!(u64: DT_NULL, DT_NEEDED, DT_PLTGOT, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ);
numbers!(u64: DT_STRSZ, DT_SONAME, DT_RPATH, DT_REL, DT_RELSZ, DT_PLTREL, DT_JMPREL, DT_PLTRELSZ);
numbers!(u64: DT_INIT, DT_FINI, DT_INIT_ARRAY, DT_FINI_ARRAY, DT_PREINIT_ARRAY, DT_RUNPATH, DT_FLAGS);
numbers!(u64: DT_RELR, DT_GNU_HASH, DT_VERSYM, DT_FLAGS_1, DT_VERDEF, DT_VERDEFNUM);
numbers!(u64: DT_VERNEED, DT_VERNEEDNUM, DT_AUXILIARY, DT_FILTER, DT_CONFIG, DT_DEPAUDIT, DT_AUDIT);
numbers!(u8: STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE);
numbers!(u8: STV_DEFAULT, STV_HIDDEN, STV_PROTECTED);

/// Architecture-specific numbers, which `object` keeps in private groups.
pub(crate) const PT_MIPS_REGINFO: u32 = 0x7000_0000;
pub(crate) const PT_MIPS_ABIFLAGS: u32 = 0x7000_0003;
pub(crate) const DT_MIPS_GOTSYM: u64 = 0x7000_0013;
/// Offset of the debugger's hook from the dynamic entry itself, so it changes when the entry moves.
pub(crate) const DT_MIPS_RLD_MAP_REL: u64 = 0x7000_0035;
/// MIPS's hash table, which maps GNU hash order to symbol order.
pub(crate) const DT_MIPS_XHASH: u64 = 0x7000_0036;

/// `e_phnum` that says that the true count is elsewhere (gABI chapter 4).
pub(crate) const PN_XNUM: u16 = elf::PN_XNUM;
/// First of the reserved section indices.
pub(crate) const SHN_LORESERVE: u16 = 0xff00;
/// Section index of undefined symbols.
pub(crate) const SHN_UNDEF: u16 = 0;
/// Version index of symbols without version.
pub(crate) const VER_NDX_GLOBAL: u16 = 1;
/// Bit of a `.gnu.version` entry: only references that name the version bind to it.
pub(crate) const VERSYM_HIDDEN: u16 = 0x8000;
