//! Facts against the text of GNU `readelf -dVW --dyn-syms`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test speaks and fails")]

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use abiaudit_elf::{
    Binding, Class, Object, Relocations, Symbol, SymbolType, SymbolVersion, Visibility, Wants, fixups,
};
use common::Sample;

#[test]
fn built_files() {
    let Some(readelf) = Readelf::find() else { return };
    let samples = common::built();
    let compared = samples.iter().filter(|sample| readelf.compare(sample)).count();
    println!("{compared} of {} files compared", samples.len());
    assert!(samples.is_empty() || compared > samples.len() / 3);
}

/// One file of each wheel in every `ABIAUDIT_CORPUS_STEP` (1 is all).
#[test]
fn members_of_wheels() {
    let Some(readelf) = Readelf::find() else { return };
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (most, step) = (number("ABIAUDIT_CORPUS_MOST", 20 << 20), number("ABIAUDIT_CORPUS_STEP", 10));
    let (mut files, mut looked_at, mut compared) = (0, 0, 0);
    for wheel in common::wheels(most) {
        common::each_elf(&wheel, |sample| {
            files += 1;
            if files % step == 0 {
                looked_at += 1;
                compared += u64::from(readelf.compare(sample));
            }
        });
    }
    println!("{compared} of {looked_at} files compared, {files} in all");
    assert!(looked_at == compared || looked_at - compared <= looked_at / 20);
}

struct Readelf {
    folder: tempfile::TempDir,
}

impl Readelf {
    fn find() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        if common::run(folder.path(), "readelf --version") {
            return Some(Self { folder });
        }
        eprintln!("SKIPPED: no readelf here");
        None
    }

    /// False for files that readelf tells nothing of: it finds symbols and versions through section headers.
    fn compare(&self, sample: &Sample) -> bool {
        let object = match Object::from_bytes(&sample.bytes, &Wants::default()) {
            Ok(object) => object,
            Err(error) => panic!("{}: {error}", sample.name),
        };
        if object.sections.headers.is_empty() || !object.dynamic.present || object.debug_only {
            return false;
        }
        let path = self.folder.path().join("file");
        std::fs::write(&path, &sample.bytes).unwrap();
        let text = run(&path);
        compare_lines(&sample.name, "dynamic", &dynamic(&object), &parse_dynamic(&text));
        compare_lines(&sample.name, "symbols", &symbols(&object), &parse_symbols(&text));
        compare_lines(&sample.name, "needed versions", &needs(&object), &parse_needs(&text));
        compare_lines(&sample.name, "defined versions", &definitions(&object), &parse_definitions(&text));
        if object.relocations != Relocations::default() {
            let ours = relocations(&object, &sample.bytes);
            compare_lines(&sample.name, "relocations", &ours, &parse_relocations(&relocations_of(&path)));
        }
        true
    }
}

fn run(path: &Path) -> String {
    let output =
        Command::new("readelf").args(["-dVW", "--dyn-syms"]).arg(path).env("LC_ALL", "C").output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn relocations_of(path: &Path) -> String {
    let output = Command::new("readelf").args(["-rDW"]).arg(path).env("LC_ALL", "C").output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Address and `r_info` of every relocation, sorted; of those of `DT_RELR` the address alone.
fn relocations(object: &Object, bytes: &[u8]) -> Vec<String> {
    let shift = if object.identity.class == Class::Elf64 { 32 } else { 8 };
    let with_info = object.relocations.data + object.relocations.plt;
    let all = fixups(bytes, object).unwrap();
    let relr = all.len() as u64 - with_info;
    let from_relr =
        |at: usize| (at as u64) >= object.relocations.data && (at as u64) < object.relocations.data + relr;
    let line = |(at, fixup): (usize, &abiaudit_elf::Fixup)| {
        let info = u64::from(fixup.symbol) << shift | u64::from(fixup.relocation);
        if from_relr(at) { format!("{:x}", fixup.address) } else { format!("{:x} {info:x}", fixup.address) }
    };
    let mut lines: Vec<_> = all.iter().enumerate().map(line).collect();
    lines.sort();
    lines
}

/// Lines such as `0000000000003df8  0000000000000008 R_X86_64_RELATIVE                         1110`, and lines of an
/// address alone for `DT_RELR`.
fn parse_relocations(text: &str) -> Vec<String> {
    let hex = |word: &str| u64::from_str_radix(word, 16).ok().filter(|_| word.len() >= 8);
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let address = hex(words.next()?)?;
        match words.next() {
            Some(info) => Some(format!("{address:x} {:x}", hex(info)?)),
            None => Some(format!("{address:x}")),
        }
    };
    let mut lines: Vec<_> = text.lines().filter_map(line).collect();
    lines.sort();
    // Where `DT_RELASZ` covers the PLT's entries too, readelf prints them twice.
    lines.dedup();
    lines
}

fn compare_lines(name: &str, what: &str, ours: &[String], theirs: &[String]) {
    if let Some((mine, their)) = ours.iter().zip(theirs).find(|(mine, their)| mine != their) {
        panic!("{name}: {what}\n  ours    {mine}\n  readelf {their}");
    }
    assert_eq!(ours.len(), theirs.len(), "{name}: number of {what}");
}

/// Every entry as tag and, where it is a name, the name.
fn dynamic(object: &Object) -> Vec<String> {
    let mut needed = object.dynamic.needed.iter();
    let entries = object.dynamic.entries.iter();
    let name = |tag| match tag {
        1 => needed.next(),
        14 => object.dynamic.soname.as_ref(),
        15 => object.dynamic.rpath.as_ref(),
        29 => object.dynamic.runpath.as_ref(),
        _ => None,
    };
    let names: Vec<_> = entries.clone().map(|entry| entry.0).map(name).collect();
    entries
        .zip(names)
        .map(|(entry, name)| match name {
            Some(name) => format!("{:x} [{name}]", entry.0),
            None => format!("{:x}", entry.0),
        })
        .collect()
}

/// Lines such as ` 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]`.
fn parse_dynamic(text: &str) -> Vec<String> {
    let start = text.lines().skip_while(|line| !line.starts_with("Dynamic section")).skip(2);
    start
        .map_while(|line| line.strip_prefix(" 0x"))
        .map(|line| {
            let (tag, rest) = line.split_once(' ').unwrap();
            let tag = u64::from_str_radix(tag, 16).unwrap();
            match (tag, rest.split_once('[')) {
                (1 | 14 | 15 | 29, Some((_, name))) => {
                    format!("{tag:x} [{}]", name.strip_suffix(']').unwrap())
                }
                _ => format!("{tag:x}"),
            }
        })
        .filter(|line| line != "0")
        .collect()
}

/// Value, size, type, binding, visibility, section, name with version.
fn symbols(object: &Object) -> Vec<String> {
    object.symbols.iter().map(|symbol| symbol_line(object, symbol)).collect()
}

fn symbol_line(object: &Object, symbol: &Symbol) -> String {
    let symbol_type = match symbol.symbol_type() {
        SymbolType::None => "NOTYPE".to_owned(),
        SymbolType::Object => "OBJECT".to_owned(),
        SymbolType::Function => "FUNC".to_owned(),
        SymbolType::Tls => "TLS".to_owned(),
        SymbolType::Ifunc => "IFUNC".to_owned(),
        SymbolType::Other(3) => "SECTION".to_owned(),
        SymbolType::Other(4) => "FILE".to_owned(),
        SymbolType::Other(other) => other.to_string(),
    };
    let binding = match symbol.binding() {
        Binding::Local => "LOCAL".to_owned(),
        Binding::Global => "GLOBAL".to_owned(),
        Binding::Weak => "WEAK".to_owned(),
        Binding::Unique => "UNIQUE".to_owned(),
        Binding::Other(other) => other.to_string(),
    };
    let visibility = match symbol.visibility() {
        Visibility::Default => "DEFAULT",
        Visibility::Internal => "INTERNAL",
        Visibility::Hidden => "HIDDEN",
        Visibility::Protected => "PROTECTED",
    };
    let section = match symbol.section {
        0 => "UND".to_owned(),
        0xfff1 => "ABS".to_owned(),
        0xfff2 => "COM".to_owned(),
        index => index.to_string(),
    };
    let mut name = object.symbols.name_text(symbol);
    match object.version_of(symbol) {
        SymbolVersion::Unversioned | SymbolVersion::Unknown(_) => {}
        // readelf shows the absolute symbol that stands for a version without it.
        SymbolVersion::Defined(version, _) if version.name == *name => {}
        SymbolVersion::Needed(_, version) => write!(name, "@{}", version.name).unwrap(),
        SymbolVersion::Defined(version, hidden) => {
            write!(name, "{}{}", if hidden { "@" } else { "@@" }, version.name).unwrap();
        }
    }
    // readelf shows the section's name for the symbol of a section, which has none.
    let name = if symbol_type == "SECTION" { String::new() } else { name };
    format!("{:x} {} {symbol_type} {binding} {visibility} {section} {name}", symbol.value, symbol.size)
}

/// Lines such as `     5: 0000000000001139    35 FUNC    GLOBAL DEFAULT   14 answer@@ONE`.
fn parse_symbols(text: &str) -> Vec<String> {
    let start = text.lines().skip_while(|line| !line.starts_with("Symbol table '.dynsym'")).skip(3);
    start.take_while(|line| !line.is_empty()).map(parse_symbol).collect()
}

fn parse_symbol(line: &str) -> String {
    const UNKNOWN: &str = "<OS specific>: 10";
    // What st_other says beyond the visibility stands in brackets before the section.
    let line = match (line.find('['), line.find(']')) {
        (Some(open), Some(close)) if line[..open].split_whitespace().count() == 6 => {
            format!("{}{}", &line[..open], &line[close + 1..])
        }
        _ => line.to_owned(),
    };
    // readelf knows GNU's type and binding only where EI_OSABI says GNU, which editors reset; glibc does not look at it.
    let line = match line.find(UNKNOWN).map(|at| line[..at].split_whitespace().count()) {
        Some(3) => line.replacen(UNKNOWN, "IFUNC", 1),
        Some(4) => line.replacen(UNKNOWN, "UNIQUE", 1),
        _ => line,
    };
    let mut words = line.split_whitespace().skip(1);
    let value = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
    let size = words.next().unwrap();
    let size = match size.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => size.parse().unwrap(),
    };
    let (symbol_type, binding, visibility, section) =
        (words.next().unwrap(), words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    // The index of a needed version follows the name in parentheses.
    let name = if symbol_type == "SECTION" { "" } else { words.next().unwrap_or_default() };
    format!("{value:x} {size} {symbol_type} {binding} {visibility} {section} {name}")
}

fn needs(object: &Object) -> Vec<String> {
    let mut lines = Vec::new();
    for need in &object.versions.needs {
        lines.push(format!("{} {}", need.library, need.versions.len()));
        for version in &need.versions {
            lines.push(format!("{} {} {}", version.name, version.weak, version.index));
        }
    }
    lines
}

/// Lines such as `  000000: Version: 1  File: libc.so.6  Cnt: 4` and
/// `  0x0010:   Name: GLIBC_2.4  Flags: none  Version: 6`.
fn parse_needs(text: &str) -> Vec<String> {
    let start = text.lines().skip_while(|line| !line.starts_with("Version needs section")).skip(2);
    start
        .take_while(|line| line.starts_with("  0"))
        .map(|line| {
            if line.contains("File: ") {
                format!("{} {}", field(line, "File: "), field(line, "Cnt: "))
            } else {
                let weak = line.contains("WEAK");
                format!("{} {weak} {}", field(line, "Name: "), field(line, "Version: "))
            }
        })
        .collect()
}

fn definitions(object: &Object) -> Vec<String> {
    let mut lines = Vec::new();
    for definition in &object.versions.definitions {
        let (base, weak) = (definition.base, definition.weak);
        lines.push(format!("{} {} {base} {weak}", definition.name, definition.index));
        lines.extend(definition.parents.iter().map(abiaudit_elf::Name::to_text));
    }
    lines
}

/// Lines such as `  000000: Rev: 1  Flags: BASE  Index: 1  Cnt: 1  Name: liblib.so.1` and `  0x001c: Parent 1: ONE`.
fn parse_definitions(text: &str) -> Vec<String> {
    let start = text.lines().skip_while(|line| !line.starts_with("Version definition section")).skip(2);
    start
        .take_while(|line| line.starts_with("  0"))
        .map(|line| match line.split_once("Parent ") {
            Some((_, parent)) => parent.split_once(": ").unwrap().1.to_owned(),
            None => {
                let (base, weak) = (line.contains("BASE"), line.contains("WEAK"));
                format!("{} {} {base} {weak}", field(line, "Name: "), field(line, "Index: "))
            }
        })
        .collect()
}

fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, rest) = line.split_once(name).unwrap();
    rest.split_whitespace().next().unwrap_or_default()
}
