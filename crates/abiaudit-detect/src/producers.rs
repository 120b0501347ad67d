//! `DW_AT_producer`: what DWARF says of who compiled each unit, with the options where the compiler wrote them.
//!
//! Where `.comment` has one text for all parts that one compiler made, DWARF names the producer of each unit: a static
//! library from another build shows (DWARF 5, section 3.1.1). It is in whole files only and not in what `check` reads.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;

use abiaudit_elf::{Endian, Object, Section};
use gimli::{DwarfSections, EndianSlice, RunTimeEndian};

/// Most units that are read, and most bytes that one compressed section may come to: what is beyond goes unread.
const MOST_UNITS: usize = 1 << 20;
const MOST_BYTES: u64 = 4 << 30;

/// The distinct producers of a whole file; empty without DWARF, or where it cannot be read.
pub fn producers(bytes: &[u8], object: &Object) -> BTreeSet<String> {
    if !object.sections.has_debug_info {
        return BTreeSet::new();
    }
    let load = |id: gimli::SectionId| {
        let section = object.sections.find(id.name());
        Ok::<_, gimli::Error>(section.and_then(|section| content(bytes, object, section)).unwrap_or_default())
    };
    let Ok(sections) = DwarfSections::load(load) else { return BTreeSet::new() };
    let endian = match object.identity.endian {
        Endian::Little => RunTimeEndian::Little,
        Endian::Big => RunTimeEndian::Big,
    };
    let dwarf = sections.borrow(|section: &Cow<'_, [u8]>| EndianSlice::new(section, endian));
    let mut found = BTreeSet::new();
    let mut units = dwarf.units();
    for _ in 0..MOST_UNITS {
        let Ok(Some(header)) = units.next() else { break };
        let Ok(unit) = dwarf.unit(header) else { continue };
        let mut entries = unit.entries();
        let Ok(Some(root)) = entries.next_dfs() else { continue };
        let Some(value) = root.attr_value(gimli::DW_AT_producer) else { continue };
        if let Ok(text) = dwarf.attr_string(&unit, value) {
            found.insert(text.to_string_lossy().into_owned());
        }
    }
    found
}

/// The bytes of a section, inflated where it is compressed with zlib (gABI, `SHF_COMPRESSED`).
fn content<'b>(bytes: &'b [u8], object: &Object, section: &Section) -> Option<Cow<'b, [u8]>> {
    const COMPRESSED: u64 = 0x800;
    const ZLIB: u32 = 1;
    if section.is_nobits() {
        return None;
    }
    let start = usize::try_from(section.offset).ok()?;
    let raw = bytes.get(start..start.checked_add(usize::try_from(section.size).ok()?)?)?;
    if section.flags & COMPRESSED == 0 {
        return Some(Cow::Borrowed(raw));
    }
    let is_64 = object.identity.class == abiaudit_elf::Class::Elf64;
    let kind = raw.first_chunk::<4>()?;
    let kind = match object.identity.endian {
        Endian::Little => u32::from_le_bytes(*kind),
        Endian::Big => u32::from_be_bytes(*kind),
    };
    let data = raw.get(if is_64 { 24 } else { 12 }..).filter(|_| kind == ZLIB)?;
    let mut inflated = Vec::new();
    flate2::read::ZlibDecoder::new(data).take(MOST_BYTES).read_to_end(&mut inflated).ok()?;
    Some(Cow::Owned(inflated))
}

#[cfg(test)]
mod tests {
    use abiaudit_elf::{Object, Wants};

    /// Built with and without compressed sections; without `-g` there is nothing.
    #[test]
    #[allow(clippy::print_stderr, reason = "a skipped test must say so")]
    fn producers_of_units() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("m.c"), "int answer(void) { return 42; }\n").expect("a file");
        for (flags, has) in
            [(&["-g", "-O2"][..], true), (&["-g", "-O2", "-gz=zlib"], true), (&["-O2"], false)]
        {
            let mut compiler = std::process::Command::new("gcc");
            compiler.args(["-shared", "-fPIC", "-o"]).arg(path("m.so")).arg(path("m.c")).args(flags);
            match compiler.status() {
                Ok(status) => assert!(status.success(), "{compiler:?}"),
                Err(_) => {
                    eprintln!("SKIPPED: there is no gcc on this machine");
                    return;
                }
            }
            let bytes = std::fs::read(path("m.so")).expect("what gcc made");
            let object = Object::from_bytes(&bytes, &Wants::default()).expect("ELF");
            let found: Vec<String> = super::producers(&bytes, &object).into_iter().collect();
            assert_eq!(found.len(), usize::from(has), "{flags:?}: {found:?}");
            assert!(found.iter().all(|text| text.starts_with("GNU C") && text.contains("-O2")), "{found:?}");
        }
    }
}
