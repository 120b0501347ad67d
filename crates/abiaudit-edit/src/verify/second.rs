//! The second reader: `goblin`, which shares no code with the editor.
//!
//! It is heard on what it reads of the original as the editor does (it does not know the wide hash tables of s390x, for
//! example); there it must read the same of the result.

use goblin::elf::Elf;

use super::{Case, Invariant, Violation};
use crate::abi::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME};
use crate::contents::Contents;
use crate::image::ElfImage;
use crate::relocations;

/// What both readers say, in the same words.
#[derive(Debug, Default, PartialEq)]
struct Reading {
    needed: Vec<String>,
    soname: Option<String>,
    rpaths: Vec<String>,
    runpaths: Vec<String>,
    interpreter: Option<String>,
    symbols: Vec<(String, u8, u8, usize, u64, u64)>,
    versions: Vec<u16>,
    needs: Vec<(String, Vec<(String, u16)>)>,
    definitions: Vec<Vec<String>>,
    relocations: Vec<(u64, usize)>,
}

pub(super) fn check(case: &Case, violations: &mut Vec<Violation>) {
    let Some(before) = goblin_reading(case.before.bytes) else { return };
    let own_before = own_reading(case.before, case.original);
    let Some(after) = goblin_reading(case.after.bytes) else {
        violations.push(Violation::new(Invariant::SecondReader, "goblin cannot read the file any more"));
        return;
    };
    let own_after = own_reading(case.after, case.found);
    // goblin finds versions by their section, which stays when the dynamic entry goes.
    let before = if case.found.has_versions { before } else { Reading { versions: Vec::new(), ..before } };
    // goblin counts symbols by the hash tables, which count none if none can be found.
    let counts = |image: &ElfImage| {
        image.sysv_hash.is_some() || image.gnu_hash.as_ref().is_some_and(|hash| hash.symbol_count().is_some())
    };
    let before = if counts(case.after) { before } else { Reading { symbols: Vec::new(), ..before } };
    macro_rules! compare {
        ($($aspect:ident),*) => {$(
            if before.$aspect == own_before.$aspect && after.$aspect != own_after.$aspect {
                let detail = format!("goblin reads other {} than the editor", stringify!($aspect));
                violations.push(Violation::new(Invariant::SecondReader, detail));
            }
        )*};
    }
    compare!(
        needed,
        soname,
        rpaths,
        runpaths,
        interpreter,
        symbols,
        versions,
        needs,
        definitions,
        relocations
    );
}

fn goblin_reading(bytes: &[u8]) -> Option<Reading> {
    let elf = Elf::parse(bytes).ok()?;
    let mut reading = Reading {
        needed: owned(&elf.libraries),
        soname: elf.soname.map(str::to_owned),
        rpaths: owned(&elf.rpaths),
        runpaths: owned(&elf.runpaths),
        interpreter: elf.interpreter.map(str::to_owned),
        ..Reading::default()
    };
    for symbol in &elf.dynsyms {
        let name = elf.dynstrtab.get_at(symbol.st_name)?.to_owned();
        let (value, size) = (symbol.st_value, symbol.st_size);
        reading.symbols.push((name, symbol.st_info, symbol.st_other, symbol.st_shndx, value, size));
    }
    reading.versions =
        elf.versym.iter().flat_map(goblin::elf::VersymSection::iter).map(|entry| entry.vs_val).collect();
    for need in elf.verneed.iter().flat_map(goblin::elf::VerneedSection::iter) {
        let file = elf.dynstrtab.get_at(need.vn_file)?.to_owned();
        let version = |aux: goblin::elf::symver::Vernaux| {
            Some((elf.dynstrtab.get_at(aux.vna_name)?.to_owned(), aux.vna_other))
        };
        reading.needs.push((file, need.iter().map(version).collect::<Option<_>>()?));
    }
    for definition in elf.verdef.iter().flat_map(goblin::elf::VerdefSection::iter) {
        let names = definition.iter().map(|aux| elf.dynstrtab.get_at(aux.vda_name).map(str::to_owned));
        reading.definitions.push(names.collect::<Option<_>>()?);
    }
    let plt = elf.pltrelocs.iter();
    let all = elf.dynrelas.iter().chain(elf.dynrels.iter()).chain(plt);
    reading.relocations = all.map(|relocation| (relocation.r_offset, relocation.r_sym)).collect();
    reading.relocations.sort_unstable();
    reading.relocations.dedup();
    Some(reading)
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn own_reading(image: &ElfImage, contents: &Contents) -> Reading {
    let texts = |tag| contents.texts(tag).map(|text| text.display().into_owned()).collect::<Vec<String>>();
    let symbols = contents.symbols.iter().map(|symbol| {
        let raw = symbol.raw;
        (symbol.name.display().into_owned(), raw.info, raw.other, usize::from(raw.shndx), raw.value, raw.size)
    });
    let needs = contents.needs.iter().map(|need| {
        let versions = need.versions.iter().map(|v| (v.name.display().into_owned(), v.index));
        (need.file.display().into_owned(), versions.collect())
    });
    let definitions = contents
        .definitions
        .iter()
        .map(|definition| definition.names.iter().map(|name| name.display().into_owned()).collect());
    let has_symbols = contents.has_versions;
    let versions = contents.symbols.iter().filter(|_| has_symbols).map(|symbol| symbol.version);
    Reading {
        needed: texts(DT_NEEDED),
        soname: texts(DT_SONAME).into_iter().next(),
        rpaths: texts(DT_RPATH),
        runpaths: texts(DT_RUNPATH),
        interpreter: contents.interpreter.as_ref().map(|path| String::from_utf8_lossy(path).into_owned()),
        symbols: symbols.collect(),
        versions: versions.collect(),
        needs: needs.collect(),
        definitions: definitions.collect(),
        relocations: own_relocations(image),
    }
}

fn own_relocations(image: &ElfImage) -> Vec<(u64, usize)> {
    let tables = relocations::tables(image).unwrap_or_default();
    let entries = tables.into_iter().filter_map(|table| relocations::entries(image, table).ok()).flatten();
    let mut all: Vec<(u64, usize)> = entries.map(|entry| (entry.place, entry.symbol as usize)).collect();
    all.sort_unstable();
    all.dedup();
    all
}
