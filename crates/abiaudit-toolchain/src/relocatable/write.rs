//! Writing a relocatable file.

use std::collections::BTreeMap;

use object::Endianness;
use object::elf;
use object::write::elf::{FileHeader, Rel, SectionHeader, SinglePhaseWriter, Sym};

use super::{Place, Relocatable};

impl Relocatable {
    /// The bytes of the file.
    ///
    /// The order is: groups, sections, relocations, symbols, strings. A group comes before its members, as the gABI
    /// wants it.
    pub fn write(&self) -> Vec<u8> {
        let order = self.symbol_order();
        let mut bytes = Vec::new();
        let mut head = Vec::new();
        {
            let mut writer = SinglePhaseWriter::new_single_phase(Endianness::Little, true, &mut bytes);
            self.write_to(&mut writer, &order);
            // Writing to memory fails only for files beyond 4 GiB.
            let _ = writer.write_file_header_to(&mut head);
        }
        bytes[..head.len()].copy_from_slice(&head);
        bytes
    }

    /// Old indices in the order in which they are written: local symbols come first (gABI, "Symbol Table").
    fn symbol_order(&self) -> Vec<usize> {
        let (local, global): (Vec<usize>, Vec<usize>) =
            (0..self.symbols.len()).partition(|index| !self.symbols[*index].is_global());
        local.into_iter().chain(global).collect()
    }

    fn write_to<'a>(&'a self, writer: &mut SinglePhaseWriter<'a>, order: &[usize]) {
        let mut position = vec![0_u32; self.symbols.len()];
        for (new, old) in order.iter().enumerate() {
            position[*old] = new as u32 + 1;
        }
        let groups = self.groups.len() as u32;
        let section_index = |section: usize| section as u32 + groups + 1;
        // Index of the section of relocations of each section that has some.
        let mut relocation_sections = BTreeMap::new();
        for (index, section) in self.sections.iter().enumerate() {
            if !section.relocations.is_empty() {
                let at = section_index(self.sections.len()) + relocation_sections.len() as u32;
                relocation_sections.insert(index, at);
            }
        }
        // The string table comes right before the symbol table, which names it.
        let symtab_index = section_index(self.sections.len()) + relocation_sections.len() as u32 + 1;

        let _ = writer.write_file_header(&FileHeader {
            os_abi: self.os_abi,
            abi_version: 0,
            e_type: elf::ET_REL,
            e_machine: self.machine,
            e_entry: 0,
            e_flags: self.flags,
        });
        let mut headers = Vec::new();
        let mut member = vec![false; self.sections.len()];
        let group_name = writer.add_section_name(b".group");
        for group in &self.groups {
            let offset = writer.write_align(4);
            let mut size = 4;
            writer.write(&group.flags.to_le_bytes());
            for section in &group.sections {
                member[*section] = true;
                let relocations = relocation_sections.get(section).copied();
                for index in [Some(section_index(*section)), relocations].into_iter().flatten() {
                    writer.write(&index.to_le_bytes());
                    size += 4;
                }
            }
            headers.push(SectionHeader {
                sh_name: writer.section_name_offset(Some(group_name)),
                sh_type: elf::SHT_GROUP,
                sh_flags: elf::SectionFlags(0),
                sh_addr: 0,
                sh_offset: offset,
                sh_size: size,
                sh_link: symtab_index,
                sh_info: position[group.signature],
                sh_addralign: 4,
                sh_entsize: 4,
            });
        }
        for (index, section) in self.sections.iter().enumerate() {
            let offset = writer.write_align(section.align.max(1));
            writer.write(&section.data);
            let name = writer.add_section_name(&section.name);
            headers.push(SectionHeader {
                sh_name: writer.section_name_offset(Some(name)),
                sh_type: section.kind,
                sh_flags: with_group(section.flags, member[index]),
                sh_addr: 0,
                sh_offset: offset,
                sh_size: section.size,
                sh_link: section.about.map_or(0, section_index),
                sh_info: 0,
                sh_addralign: section.align,
                sh_entsize: section.entry_size,
            });
        }
        for index in relocation_sections.keys() {
            let section = &self.sections[*index];
            let offset = writer.write_align_relocation();
            for relocation in &section.relocations {
                writer.write_relocation(
                    true,
                    &Rel {
                        r_offset: relocation.offset,
                        r_sym: relocation.symbol.map_or(0, |symbol| position[symbol]),
                        r_type: relocation.kind,
                        r_addend: relocation.addend,
                    },
                );
            }
            // The name of the section is the end of the name of its relocations, but strings are not shared here.
            let name = writer.add_section_name(RELA_NAME);
            headers.push(SectionHeader {
                sh_name: writer.section_name_offset(Some(name)),
                sh_type: elf::SHT_RELA,
                sh_flags: with_group(elf::SHF_INFO_LINK, member[*index]),
                sh_addr: 0,
                sh_offset: offset,
                sh_size: section.relocations.len() as u64 * 24,
                sh_link: symtab_index,
                sh_info: section_index(*index),
                sh_addralign: 8,
                sh_entsize: 24,
            });
        }
        self.write_symbols(writer, order, section_index);
        let _ = writer.write_strtab();
        let _ = writer.write_shstrtab();
        writer.write_null_section_header();
        for header in &headers {
            writer.write_section_header(header);
        }
        let locals = self.symbols.iter().filter(|symbol| !symbol.is_global()).count() as u32;
        writer.write_strtab_section_header();
        writer.write_symtab_section_header(locals + 1);
        writer.write_symtab_shndx_section_header();
        writer.write_shstrtab_section_header();
    }

    fn write_symbols<'a>(
        &'a self,
        writer: &mut SinglePhaseWriter<'a>,
        order: &[usize],
        section_index: impl Fn(usize) -> u32,
    ) {
        let names: Vec<_> = order.iter().map(|old| name_of(writer, &self.symbols[*old].name)).collect();
        writer.write_null_symbol();
        for (old, st_name) in order.iter().zip(names) {
            let symbol = &self.symbols[*old];
            let (section, st_shndx) = match symbol.place {
                Place::Undefined => (None, elf::SHN_UNDEF),
                Place::Absolute => (None, elf::SHN_ABS),
                Place::Section(section) => {
                    (Some(section_index(section)), elf::SymbolSection::new(section_index(section)))
                }
            };
            writer.write_symbol(&Sym {
                section,
                st_name,
                st_info: elf::SymbolInfo::new(symbol.binding, symbol.kind),
                st_other: symbol.visibility.into(),
                st_shndx,
                st_value: symbol.value,
                st_size: symbol.size,
            });
        }
    }
}

/// Linkers go by type and `sh_info`; the name of a section of relocations says nothing.
const RELA_NAME: &[u8] = b".rela";

fn name_of<'a>(writer: &mut SinglePhaseWriter<'a>, name: &'a [u8]) -> u32 {
    if name.is_empty() {
        return 0;
    }
    let id = writer.add_string(name);
    writer.string_offset(Some(id))
}

fn with_group(flags: elf::SectionFlags, is_member: bool) -> elf::SectionFlags {
    if is_member { elf::SectionFlags(flags.0 | elf::SHF_GROUP.0) } else { flags }
}
