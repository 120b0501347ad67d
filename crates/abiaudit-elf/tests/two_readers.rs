//! Facts against those of `goblin`, a reader that shares no code with this one.
//!
//! Where the two differ by design, the comparison says why.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test speaks and fails")]

mod common;

use std::collections::BTreeMap;

use abiaudit_elf::{Binding, Object, RelocationUse, SegmentType, Symbol, SymbolType, Visibility, Wants};
use common::Sample;
use goblin::elf::{Elf, Reloc, Sym, program_header as ph, sym};

#[test]
fn built_files() {
    let samples = common::built();
    let compared = samples.iter().filter(|sample| compare(sample)).count();
    println!("{compared} of {} files compared", samples.len());
    assert!(samples.is_empty() || compared * 10 >= samples.len() * 9, "goblin cannot read most files");
}

#[test]
fn members_of_wheels() {
    let most = std::env::var("ABIAUDIT_CORPUS_MOST").map_or(20 << 20, |text| text.parse().unwrap());
    let (mut files, mut compared) = (0, 0);
    for wheel in common::wheels(most) {
        common::each_elf(&wheel, |sample| {
            files += 1;
            compared += u32::from(compare(sample));
        });
    }
    println!("{compared} of {files} files compared");
    assert!(files == compared || files - compared <= files / 100, "goblin cannot read many files");
}

/// False if `goblin` cannot read the file.
fn compare(sample: &Sample) -> bool {
    let Sample { name, bytes } = sample;
    let theirs = match Elf::parse(bytes) {
        Ok(theirs) => theirs,
        Err(error) => {
            println!("{name}: goblin: {error}");
            return false;
        }
    };
    let ours = Object::from_bytes(bytes, &Wants::default())
        .unwrap_or_else(|error| panic!("{name}: goblin reads it, but: {error}"));
    for problem in &ours.problems {
        println!("{name}: {problem}");
    }
    compare_header(name, &ours, &theirs);
    compare_segments(name, &ours, &theirs);
    if ours.debug_only {
        // goblin reads tables where the program headers of split debug information point, to something else.
        println!("{name}: debug information only");
        return true;
    }
    compare_dynamic(name, &ours, &theirs);
    compare_symbols(name, &ours, &theirs);
    compare_versions(name, &ours, &theirs);
    compare_relocations(name, &ours, &theirs);
    compare_sections(name, &ours, &theirs);
    true
}

fn compare_header(name: &str, ours: &Object, theirs: &Elf) {
    assert_eq!(ours.identity.machine, theirs.header.e_machine, "{name}");
    assert_eq!(ours.identity.flags, theirs.header.e_flags, "{name}");
    assert_eq!(ours.identity.entry, theirs.header.e_entry, "{name}");
    assert_eq!(ours.identity.class == abiaudit_elf::Class::Elf64, theirs.is_64, "{name}");
    assert_eq!(ours.identity.endian == abiaudit_elf::Endian::Little, theirs.little_endian, "{name}");
}

fn compare_segments(name: &str, ours: &Object, theirs: &Elf) {
    let number = |segment_type| match segment_type {
        SegmentType::Load => ph::PT_LOAD,
        SegmentType::Dynamic => ph::PT_DYNAMIC,
        SegmentType::Interp => ph::PT_INTERP,
        SegmentType::Note => ph::PT_NOTE,
        SegmentType::Phdr => ph::PT_PHDR,
        SegmentType::Tls => ph::PT_TLS,
        SegmentType::GnuStack => ph::PT_GNU_STACK,
        SegmentType::GnuRelro => ph::PT_GNU_RELRO,
        SegmentType::GnuEhFrame => ph::PT_GNU_EH_FRAME,
        SegmentType::GnuProperty => ph::PT_GNU_PROPERTY,
        SegmentType::Other(number) => number,
    };
    let mine: Vec<_> = ours
        .segments
        .iter()
        .map(|s| {
            let head = (number(s.segment_type), s.flags, s.offset, s.address);
            (head, (s.file_size, s.memory_size, s.align))
        })
        .collect();
    let their: Vec<_> = theirs
        .program_headers
        .iter()
        .map(|s| ((s.p_type, s.p_flags, s.p_offset, s.p_vaddr), (s.p_filesz, s.p_memsz, s.p_align)))
        .collect();
    assert_eq!(mine, their, "{name}");
}

fn compare_dynamic(name: &str, ours: &Object, theirs: &Elf) {
    let text = |name: &Option<abiaudit_elf::Name>| name.as_ref().map(abiaudit_elf::Name::to_text);
    let needed: Vec<_> = ours.dynamic.needed.iter().map(abiaudit_elf::Name::to_text).collect();
    assert_eq!(needed, theirs.libraries, "{name}");
    assert_eq!(text(&ours.dynamic.soname).as_deref(), theirs.soname, "{name}");
    assert_eq!(text(&ours.interpreter).as_deref(), theirs.interpreter, "{name}");
    let split = |path: &Option<abiaudit_elf::Name>| -> Vec<String> {
        text(path).map_or(Vec::new(), |path| path.split(':').map(str::to_owned).collect())
    };
    let join = |paths: &[&str]| -> Vec<String> {
        paths.iter().flat_map(|p| p.split(':')).map(str::to_owned).collect()
    };
    assert_eq!(split(&ours.dynamic.rpath), join(&theirs.rpaths), "{name}");
    assert_eq!(split(&ours.dynamic.runpath), join(&theirs.runpaths), "{name}");
    let Some(dynamic) = &theirs.dynamic else {
        assert!(!ours.dynamic.present, "{name}");
        return;
    };
    assert_eq!(ours.dynamic.flags, dynamic.info.flags, "{name}");
    assert_eq!(ours.dynamic.flags_1, dynamic.info.flags_1, "{name}");
    let entries: Vec<_> = dynamic.dyns.iter().map(|d| (d.d_tag, d.d_val)).filter(|d| d.0 != 0).collect();
    let mine: Vec<_> =
        ours.dynamic.entries.iter().map(|&(tag, value)| (tag.cast_unsigned(), value)).collect();
    assert_eq!(mine, entries, "{name}");
}

fn compare_symbols(name: &str, ours: &Object, theirs: &Elf) {
    let their: Vec<Sym> = theirs.dynsyms.iter().skip(1).collect();
    // An empty DT_GNU_HASH says nothing about the undefined symbols, so goblin sees only those that relocations
    // name; the room before the next table has the others.
    let without_count =
        ours.symbols.exported().next().is_none() && !ours.dynamic.entries.iter().any(|&(tag, _)| tag == 4);
    if without_count {
        assert!(ours.symbols.len() >= their.len(), "{name}: {} {}", ours.symbols.len(), their.len());
    } else {
        assert_eq!(ours.symbols.len(), their.len(), "{name}");
    }
    for (index, (mine, their)) in ours.symbols.iter().zip(&their).enumerate() {
        let their_name = theirs.dynstrtab.get_at(their.st_name).unwrap_or_default();
        assert_eq!(ours.symbols.name_text(mine), their_name, "{name}: symbol {index}");
        assert_eq!(facts(mine), their_facts(their), "{name}: symbol {index} {their_name}");
    }
}

type SymbolFacts = (u8, u8, u8, usize, u64, u64);

fn facts(symbol: &Symbol) -> SymbolFacts {
    let bind = match symbol.binding() {
        Binding::Local => sym::STB_LOCAL,
        Binding::Global => sym::STB_GLOBAL,
        Binding::Weak => sym::STB_WEAK,
        Binding::Unique => sym::STB_GNU_UNIQUE,
        Binding::Other(other) => other,
    };
    let symbol_type = match symbol.symbol_type() {
        SymbolType::None => sym::STT_NOTYPE,
        SymbolType::Object => sym::STT_OBJECT,
        SymbolType::Function => sym::STT_FUNC,
        SymbolType::Tls => sym::STT_TLS,
        SymbolType::Ifunc => sym::STT_GNU_IFUNC,
        SymbolType::Other(other) => other,
    };
    let visibility = match symbol.visibility() {
        Visibility::Default => sym::STV_DEFAULT,
        Visibility::Internal => sym::STV_INTERNAL,
        Visibility::Hidden => sym::STV_HIDDEN,
        Visibility::Protected => sym::STV_PROTECTED,
    };
    (bind, symbol_type, visibility, symbol.section.into(), symbol.value, symbol.size)
}

fn their_facts(symbol: &Sym) -> SymbolFacts {
    let visibility = sym::st_visibility(symbol.st_other);
    (symbol.st_bind(), symbol.st_type(), visibility, symbol.st_shndx, symbol.st_value, symbol.st_size)
}

/// goblin finds version tables through section headers only.
fn compare_versions(name: &str, ours: &Object, theirs: &Elf) {
    let string = |at| theirs.dynstrtab.get_at(at).unwrap_or_default().to_owned();
    if let Some(versym) = &theirs.versym {
        assert!(ours.versions.present, "{name}");
        let their: Vec<u16> = versym.iter().skip(1).map(|v| v.vs_val).collect();
        let mine: Vec<u16> = ours.symbols.iter().map(|s| s.version).collect();
        assert_eq!(mine, their, "{name}");
    }
    if let Some(verneed) = &theirs.verneed {
        let their: Vec<_> = verneed
            .iter()
            .map(|need| {
                let versions =
                    need.iter().map(|v| (string(v.vna_name), v.vna_other, v.vna_flags & 2 != 0, v.vna_hash));
                (string(need.vn_file), versions.collect::<Vec<_>>())
            })
            .collect();
        let mine: Vec<_> = ours
            .versions
            .needs
            .iter()
            .map(|need| {
                let versions = need.versions.iter().map(|v| (v.name.to_text(), v.index, v.weak, v.hash));
                (need.library.to_text(), versions.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(mine, their, "{name}");
    }
    if let Some(verdef) = &theirs.verdef {
        let their: Vec<_> = verdef
            .iter()
            .map(|def| {
                let names: Vec<_> = def.iter().map(|aux| string(aux.vda_name)).collect();
                (names, def.vd_ndx, def.vd_flags & 1 != 0, def.vd_flags & 2 != 0)
            })
            .collect();
        let mine: Vec<_> = ours
            .versions
            .definitions
            .iter()
            .map(|def| {
                let names = std::iter::once(&def.name).chain(&def.parents).map(abiaudit_elf::Name::to_text);
                (names.collect::<Vec<_>>(), def.index, def.base, def.weak)
            })
            .collect();
        assert_eq!(mine, their, "{name}");
    }
}

fn compare_relocations(name: &str, ours: &Object, theirs: &Elf) {
    if theirs.header.e_machine == goblin::elf::header::EM_MIPS {
        return;
    }
    let mut uses: BTreeMap<usize, (bool, bool)> = BTreeMap::new();
    let mut without_symbol = 0;
    let mut note = |relocation: Reloc, plt: bool| {
        if relocation.r_sym == 0 {
            without_symbol += 1;
        } else {
            let entry = uses.entry(relocation.r_sym).or_default();
            if plt { entry.1 = true } else { entry.0 = true }
        }
    };
    // GNU ld counts the PLT's relocations in DT_RELASZ on some machines (RISC-V). glibc takes them off again, as they
    // are the end of the table (elf/dynamic-link.h); goblin reports them twice.
    let value = |tag| ours.dynamic.entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.1);
    let end = |start, size| Some(value(start)? + value(size)?);
    let (plt_end, rela_end) = (end(23, 2), end(7, 8));
    let twice = if plt_end.is_some() && plt_end == rela_end { theirs.pltrelocs.len() } else { 0 };
    let rela_count = theirs.dynrelas.len() - twice;
    theirs.dynrelas.iter().take(rela_count).chain(theirs.dynrels.iter()).for_each(|r| note(r, false));
    theirs.pltrelocs.iter().for_each(|r| note(r, true));
    assert_eq!(ours.relocations.data, (rela_count + theirs.dynrels.len()) as u64, "{name}");
    assert_eq!(ours.relocations.plt, theirs.pltrelocs.len() as u64, "{name}");
    assert_eq!(ours.relocations.without_symbol, without_symbol, "{name}");
    let mine: BTreeMap<usize, (bool, bool)> = ours
        .symbols
        .iter()
        .enumerate()
        .filter(|(_, s)| !s.uses.is_empty())
        .map(|(i, s)| (i + 1, (s.uses.contains(RelocationUse::DATA), s.uses.contains(RelocationUse::PLT))))
        .collect();
    assert_eq!(mine, uses, "{name}");
}

fn compare_sections(name: &str, ours: &Object, theirs: &Elf) {
    let mine: Vec<_> = ours
        .sections
        .headers
        .iter()
        .map(|s| (s.name.to_text(), s.section_type, s.flags, s.offset, s.size))
        .collect();
    let their: Vec<_> = theirs
        .section_headers
        .iter()
        .map(|s| {
            let section_name = theirs.shdr_strtab.get_at(s.sh_name).unwrap_or_default().to_owned();
            (section_name, s.sh_type, s.sh_flags, s.sh_offset, s.sh_size)
        })
        .collect();
    assert_eq!(mine, their, "{name}");
}
