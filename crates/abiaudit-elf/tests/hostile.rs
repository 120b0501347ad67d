//! Files that are broken, or lie: an error or the facts that a loader would see, never a panic, in bounded time
//! and memory.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test speaks and fails")]
#![allow(unsafe_code, reason = "an allocator that counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use abiaudit_elf::test_support::{Arch, Built, ElfWriter, HashStyle, SymbolSpec};
use abiaudit_elf::{Class, FileKind, IsaLevel, Object, ObjectType, ParseError, SymbolVersion, Wants};
use proptest::prelude::*;
use proptest::sample::Index;

/// Counts what is allocated, so that a test can bound it.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The counters are shared, so measuring takes turns.
static TURN: Mutex<()> = Mutex::new(());

/// Parses within 1 s and 64 MiB + the size of the file (the whole test has a little besides).
fn parse(bytes: &[u8]) -> Result<Object, ParseError> {
    const MOST: usize = 64 << 20;
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let start = Instant::now();
    let result = Object::from_bytes(bytes, &Wants { symtab: true });
    let (time, peak) = (start.elapsed(), PEAK.load(Ordering::Relaxed));
    assert!(time < Duration::from_secs(1), "{time:?} for {} bytes", bytes.len());
    assert!(peak.saturating_sub(before) <= MOST + bytes.len(), "{peak} for {} bytes", bytes.len());
    result
}

/// The extension module of a wheel that needs glibc 2.34.
fn good() -> ElfWriter {
    ElfWriter::new(Arch::X86_64)
        .needed("libc.so.6")
        .undefined_versioned("a", "libc.so.6", "GLIBC_2.2.5")
        .undefined_versioned("b", "libc.so.6", "GLIBC_2.34")
        .define("PyInit_mod")
}

fn needs_glibc_2_34(object: &Object) -> bool {
    let needs = object.versions.needs.iter().filter(|need| need.library == "libc.so.6");
    needs.flat_map(|need| &need.versions).any(|version| version.name == "GLIBC_2.34")
        && object.symbols.undefined().any(|symbol| {
            matches!(object.version_of(symbol), SymbolVersion::Needed(_, v) if v.name == "GLIBC_2.34")
        })
}

fn has_problem(object: &Object, what: &str) -> bool {
    object.problems.iter().any(|problem| problem.what == what)
}

#[test]
fn cut_anywhere() {
    let file = good().build();
    let loaded = file.part(".dynamic").end;
    for cut in 0..file.bytes().len() {
        match parse(&file.bytes()[..cut]) {
            Ok(object) => {
                assert!(cut >= loaded, "cut at {cut} before the end of .dynamic");
                assert!(needs_glibc_2_34(&object), "cut at {cut}");
                assert!(has_problem(&object, "section headers"), "cut at {cut}");
            }
            Err(ParseError::Truncated { file_size, .. }) => assert_eq!(file_size, cut as u64),
            Err(ParseError::NotElf) => assert!(cut < 4, "cut at {cut}"),
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
}

#[test]
fn without_section_headers() {
    let object = parse(good().sections(false).build().bytes()).unwrap();
    assert!(needs_glibc_2_34(&object));
    assert!(object.problems.is_empty(), "{:?}", object.problems);
}

#[test]
fn renamed_sections() {
    let mut file = good().build();
    let names = file.part(".shstrtab");
    file.bytes_mut()[names].iter_mut().filter(|byte| **byte != 0).for_each(|byte| *byte = b'x');
    assert!(needs_glibc_2_34(&parse(file.bytes()).unwrap()));
}

/// `e_shnum` 0 and `e_shstrndx` 0xffff: both numbers stand in section 0.
#[test]
fn very_many_sections() {
    const COUNT: usize = 65_300;
    let mut file = good().build();
    let old = file.bytes()[file.part("section headers")].to_vec();
    let start = file.bytes().len().next_multiple_of(8);
    let mut table = old.clone();
    table.resize(COUNT * 64, 0);
    file.bytes_mut().resize(start, 0);
    file.bytes_mut().extend_from_slice(&table);
    file.put_word(start + 32, COUNT as u64);
    file.put_u32(start + 40, (old.len() / 64) as u32 - 1);
    file.put_word(0x28, start as u64);
    file.put_u16(0x3c, 0);
    file.put_u16(0x3e, 0xffff);
    let object = parse(file.bytes()).unwrap();
    assert!(needs_glibc_2_34(&object));
    assert_eq!(object.sections.headers.len(), COUNT);
    assert!(object.sections.find(".dynsym").is_some());
}

/// Later loads are mapped over earlier ones.
#[test]
fn overlapping_loads() {
    let mut file = good().interpreter("/lib64/ld-linux-x86-64.so.2").build();
    let (at, size) = (file.part("program headers").start, file.bytes().len() as u64 - 64);
    file.put_u32(at, 1);
    for (field, value) in [(8, 64), (16, 0), (24, 0), (32, size), (40, size)] {
        file.put_word(at + field, value);
    }
    let object = parse(file.bytes()).unwrap();
    assert!(needs_glibc_2_34(&object));
    assert!(has_problem(&object, "PT_LOAD"));
}

#[test]
fn version_counts_that_lie() {
    for count in [0x00ff_ffff, 0xffff_ffff, u64::MAX, 0] {
        let mut file = good().build();
        let at = file.dynamic_entry(0x6fff_ffff);
        file.put_word(at, count);
        let object = parse(file.bytes()).unwrap();
        assert!(has_problem(&object, "DT_VERNEEDNUM"), "{count}");
        // ld.so does not look at the count.
        assert!(needs_glibc_2_34(&object), "{count}");
    }
    let mut file = good().build();
    let at = file.part(".gnu.version_r").start;
    file.put_u16(at + 2, 65535);
    let object = parse(file.bytes()).unwrap();
    assert!(needs_glibc_2_34(&object));
    assert!(has_problem(&object, "vn_cnt"));
}

/// `vn_next` 1: records that overlap, as many as the file has bytes.
#[test]
fn overlapping_version_records() {
    let mut file = good().build();
    let at = file.bytes().len();
    let mut record = [0; 16];
    record[0] = 1;
    record[12] = 1;
    file.bytes_mut().extend(record.iter().cycle().take(4 << 20));
    let entry = file.dynamic_entry(0x6fff_fffe);
    file.put_word(entry, at as u64);
    let loaded = file.bytes().len() as u64;
    extend_load(&mut file, loaded);
    let _ = parse(file.bytes());
}

fn extend_load(file: &mut Built, size: u64) {
    let at = file.part("program headers").start;
    file.put_word(at + 32, size);
    file.put_word(at + 40, size);
}

#[test]
fn names_that_are_no_names() {
    let file = good().needed(b"lib\xff\xfe.so.1").needed("/etc/passwd").build();
    let object = parse(file.bytes()).unwrap();
    assert_eq!(object.dynamic.needed[1].to_text(), "lib\\xff\\xfe.so.1");
    assert_eq!(object.dynamic.needed[2], "/etc/passwd");
    let mut file = good().build();
    let at = file.dynamic_entry(1);
    file.put_word(at, 0x7fff_ffff);
    let offset_outside = ParseError::BadString {
        what: "DT_NEEDED",
        offset: 0x7fff_ffff,
        size: file.part(".dynstr").len() as u64,
    };
    assert_eq!(parse(file.bytes()), Err(offset_outside));
}

#[test]
fn program_headers_that_lie() {
    let mut file = good().build();
    file.put_u16(0x38, 0xffff);
    assert!(matches!(parse(file.bytes()), Err(ParseError::Malformed { what: "e_phnum", .. })));
    let mut file = good().sections(false).build();
    file.put_u16(0x38, 0xffff);
    assert!(matches!(parse(file.bytes()), Err(ParseError::Malformed { what: "e_phnum", .. })));
    for size in [0, 1, 55, 57, 0xffff] {
        let mut file = good().build();
        file.put_u16(0x36, size);
        assert!(matches!(parse(file.bytes()), Err(ParseError::Malformed { what: "e_phentsize", .. })));
    }
}

/// A decoy: `p_offset` of `PT_DYNAMIC` points to an empty list, but the loader goes by `p_vaddr`.
#[test]
fn dynamic_section_elsewhere_than_it_says() {
    let mut file = good().build();
    let decoy = file.bytes().len().next_multiple_of(8);
    file.bytes_mut().resize(decoy + 32, 0);
    let at = file.part("program headers").start + 56;
    file.put_word(at + 8, decoy as u64);
    let object = parse(file.bytes()).unwrap();
    assert!(needs_glibc_2_34(&object));
    assert!(has_problem(&object, "PT_DYNAMIC"));
}

/// `p_filesz` ends the list early, but the loader reads on to `DT_NULL`.
#[test]
fn dynamic_section_longer_than_it_says() {
    for entries in 1..5 {
        let mut file = good().build();
        let at = file.part("program headers").start + 56;
        file.put_word(at + 32, entries * 16);
        let object = parse(file.bytes()).unwrap();
        assert!(needs_glibc_2_34(&object));
        assert!(has_problem(&object, "PT_DYNAMIC"));
    }
}

/// Relocations name symbols that the hash table denies; the loader binds them all the same.
#[test]
fn symbols_beyond_the_hash_table() {
    let mut file = good().build();
    let at = file.part(".hash").start;
    file.put_u32(at + 4, 1);
    let object = parse(file.bytes()).unwrap();
    assert!(needs_glibc_2_34(&object), "{:?}", object.problems);
    assert!(has_problem(&object, "relocations"));
}

/// Section headers say that nothing has bytes (as in split debug information), but the loader would find all.
#[test]
fn split_debug_that_is_none() {
    let mut file = good().build();
    let headers = file.part("section headers");
    for at in headers.step_by(64).skip(1) {
        file.put_u32(at + 4, 8);
    }
    let object = parse(file.bytes()).unwrap();
    assert!(!object.debug_only);
}

/// The same in the part that counts: flags and names intact, types `SHT_NOBITS`, and nothing at `PT_DYNAMIC`.
#[test]
fn split_debug() {
    let mut file = good().build();
    for name in [".dynstr", ".dynsym", ".hash", ".gnu.version", ".gnu.version_r", ".dynamic", ".rel.plt"] {
        let (part, headers) = (file.part(name), file.part("section headers"));
        file.bytes_mut()[part.clone()].fill(0);
        let start = part.start as u64;
        let header = headers.step_by(64).find(|&at| {
            let offset = &file.bytes()[at + 24..at + 32];
            offset == start.to_le_bytes()
        });
        file.put_u32(header.unwrap() + 4, 8);
    }
    let object = parse(file.bytes()).unwrap();
    assert!(object.debug_only);
    assert!(object.symbols.is_empty());
}

#[test]
fn architectures() {
    for arch in Arch::ALL {
        let file = ElfWriter::new(arch)
            .needed("libc.so.6")
            .undefined_versioned("f", "libc.so.6", "GLIBC_2.17")
            .define_versioned("g", "ONE")
            .hash_style(HashStyle::Both)
            .build();
        let object = parse(file.bytes()).unwrap();
        if arch == Arch::Mips64 {
            assert_eq!(object.identity.arch(), None);
            assert!(has_problem(&object, "machine"));
        } else {
            let name = format!("{arch:?}").to_lowercase();
            assert_eq!(object.identity.arch(), Some(name.as_str()));
            assert!(object.problems.is_empty(), "{arch:?}: {:?}", object.problems);
            let uses: Vec<_> = object.symbols.iter().map(|s| s.uses.is_empty()).collect();
            assert_eq!(uses, [false, true], "{arch:?}");
        }
        assert_eq!(object.symbols.definitions(b"g").len(), 1, "{arch:?}");
        assert_eq!(object.versions.needs[0].versions[0].name, "GLIBC_2.17");
        assert_eq!(object.versions.definitions[1].name, "ONE");
    }
    // Class and byte order that the machine does not have.
    let object = parse(good().class(Class::Elf32).build().bytes()).unwrap();
    assert_eq!(object.identity.arch(), None);
    let object = parse(good().machine(0xbeef).build().bytes()).unwrap();
    assert!(object.identity.machine_name().contains("48879"));
}

#[test]
fn facts_of_single_cases() {
    let object = parse(good().property(0xc000_8002, 7).build().bytes()).unwrap();
    assert_eq!(object.notes.isa_needed(), Some(IsaLevel::V3));
    let object = parse(good().object_type(1).build().bytes()).unwrap();
    assert_eq!(object.identity.object_type, ObjectType::Relocatable);
    let object = parse(good().undefined("PyFPE_jbuf").build().bytes()).unwrap();
    assert!(object.symbols.undefined().any(|s| object.symbols.name(s) == b"PyFPE_jbuf"));
    let object = parse(good().rpath("$ORIGIN/a").runpath("$ORIGIN/b").build().bytes()).unwrap();
    assert_eq!(object.dynamic.rpath.unwrap(), "$ORIGIN/a");
    assert_eq!(object.dynamic.runpath.unwrap(), "$ORIGIN/b");
    let object = parse(good().stack(7).tls(40, 16).build().bytes()).unwrap();
    assert!(object.executable_stack());
    assert_eq!(object.tls(), Some((40, 16)));
    let object = parse(good().dynamic(0x6000_000f, 0).build().bytes()).unwrap();
    assert!(has_problem(&object, "DT_ANDROID_REL"));
    let object = parse(good().comment("GCC: 1").build_id(&[0xab; 20]).build().bytes()).unwrap();
    assert_eq!(object.sections.comments, ["GCC: 1"]);
    assert_eq!(object.notes.build_id_hex().unwrap(), "ab".repeat(20));
    let object = parse(ElfWriter::new(Arch::X86_64).build().bytes()).unwrap();
    assert!(object.dynamic.needed.is_empty() && object.dynamic.present);
    assert_eq!(FileKind::sniff("libz.so", b""), FileKind::Empty);
}

/// Strings without an end and many names that share one long string: work grows with their product if it is done
/// again for each.
#[test]
fn work_that_multiplies() {
    const MANY: usize = 20_000;
    let long = "x".repeat(4 << 20);
    // Symbols that share one long name, in a table whose last string has no end.
    let mut writer = ElfWriter::new(Arch::X86_64).needed("libc.so.6").sections(false);
    for _ in 0..MANY {
        writer = writer.symbol(SymbolSpec::undefined("shared"));
    }
    writer = writer.soname(&long);
    let mut file = writer.build();
    let strings = file.part(".dynstr");
    assert!(parse(file.bytes()).is_err(), "a soname of 4 MiB");
    file.bytes_mut()[strings].fill(b'x');
    assert!(parse(file.bytes()).is_err(), "no string has an end");
    // Needed libraries that share one long name.
    let mut writer = ElfWriter::new(Arch::X86_64).sections(false);
    let name = "y".repeat(60_000);
    for _ in 0..MANY {
        writer = writer.needed(&name);
    }
    assert!(parse(writer.build().bytes()).is_err(), "1.2 GB of names");
    // Section names without an end.
    let mut file = good().comment(&long).build();
    let names = file.part(".shstrtab");
    file.bytes_mut()[names].fill(b'x');
    let object = parse(file.bytes()).unwrap();
    assert!(needs_glibc_2_34(&object));
}

/// Thousands of program headers that all cover the same notes.
#[test]
fn notes_again_and_again() {
    const COUNT: usize = 60_000;
    let mut file = good().sections(false).note("X", 1, &[0; 4096]).build();
    let old = file.bytes()[file.part("program headers")].to_vec();
    let note = old[2 * 56..3 * 56].to_vec();
    let start = file.bytes().len().next_multiple_of(8);
    file.bytes_mut().resize(start, 0);
    file.bytes_mut().extend_from_slice(&old);
    file.bytes_mut().extend(note.iter().cycle().take(COUNT * 56));
    file.put_word(0x20, start as u64);
    file.put_u16(0x38, (old.len() / 56 + COUNT) as u16);
    let object = parse(file.bytes()).unwrap();
    assert!(needs_glibc_2_34(&object));
    assert!(has_problem(&object, "PT_NOTE"));
}

/// One change to a file.
#[derive(Debug, Clone)]
enum Change {
    Byte(Index, u8),
    /// A field of this many bytes in one of the parts that readers look at.
    Field {
        part: Index,
        at: Index,
        size: usize,
        value: u64,
    },
    Cut(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let value = prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::from(u32::MAX)),
        Just(1 << 31),
        Just(1 << 63),
        Just(0xffff),
        Just(u64::MAX - 8),
        0u64..0x10000,
        any::<u64>(),
    ];
    let field = (any::<Index>(), any::<Index>(), prop_oneof![Just(2usize), Just(4), Just(8)], value);
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        12 => field.prop_map(|(part, at, size, value)| Change::Field { part, at, size, value }),
        1 => any::<Index>().prop_map(Change::Cut),
    ]
}

/// Headers, and the sections that hold tables.
fn parts(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut parts = vec![0..64.min(bytes.len()), 64.min(bytes.len())..bytes.len().min(1024)];
    if let Ok(object) = Object::from_bytes(bytes, &Wants::default()) {
        let tables = object.sections.headers.iter().filter(|s| s.is_alloc() && !s.is_nobits());
        parts.extend(tables.map(|s| s.offset as usize..(s.offset + s.size) as usize));
        let headers = object.sections.headers.len() * 64;
        parts.push(bytes.len().saturating_sub(headers)..bytes.len());
    }
    parts.retain(|part| part.len() >= 8 && part.end <= bytes.len());
    parts
}

fn apply(bytes: &mut Vec<u8>, parts: &[Range<usize>], change: &Change) {
    if bytes.is_empty() {
        return;
    }
    match change {
        Change::Byte(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Change::Field { part, at, size, value } => {
            let part = part.get(parts);
            // Fields are aligned to their size, mostly.
            let at = part.start + at.index(part.len() / size) * size;
            if let Some(field) = bytes.get_mut(at..at + size) {
                field.copy_from_slice(&value.to_le_bytes()[..*size]);
            }
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = common::built()
        .into_iter()
        .filter(|sample| sample.bytes.len() < 64 << 10)
        .map(|sample| sample.bytes)
        .collect();
    for arch in Arch::ALL {
        for style in [HashStyle::Sysv, HashStyle::Gnu] {
            let writer = ElfWriter::new(arch).needed("libc.so.6").soname("liba.so").runpath("$ORIGIN");
            let writer =
                writer.undefined_versioned("f", "libc.so.6", "GLIBC_2.17").define_versioned("g", "ONE");
            let writer = writer.build_id(&[1; 20]).property(0xc000_8002, 1).comment("GCC").hash_style(style);
            seeds.push(writer.build().into_bytes());
        }
    }
    seeds
}

/// `PROPTEST_CASES` says how many mutants (default here 2,000).
#[test]
fn mutants() {
    let seeds: Vec<_> = seeds().into_iter().map(|bytes| (parts(&bytes), bytes)).collect();
    let cases = std::env::var("PROPTEST_CASES").map_or(2_000, |text| text.parse().unwrap());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let strategy = (any::<Index>(), proptest::collection::vec(change(), 1..8));
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&strategy, |(seed, changes)| {
        let (parts, bytes) = seed.get(&seeds);
        let mut bytes = bytes.clone();
        for change in &changes {
            apply(&mut bytes, parts, change);
        }
        let _ = parse(&bytes);
        Ok(())
    });
    result.unwrap();
}
