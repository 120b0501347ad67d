//! Processes that are described rather than run: libraries of the system known by tables, wheels, and what is said of
//! references that go astray.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use abiaudit_elf::test_support::{Arch, ElfWriter, SymbolSpec};
use abiaudit_elf::{Object, Wants};
use abiaudit_loader::binding::{
    Binding, Event, File, InterpositionKind, Missing, ObjectId, Process, Program, Provided, Provider,
    Scenario, SystemLibrary, SystemReference, Target, Via,
};
use abiaudit_loader::search::{Libc, Library};

/// A library of the system and what it exports; a name that starts with `!` is unique.
struct Table {
    soname: &'static str,
    needed: &'static [&'static str],
    symbols: &'static [(&'static str, Option<&'static str>)],
    refers: &'static [(&'static str, Option<&'static str>)],
}

impl SystemLibrary for Table {
    fn soname(&self) -> &str {
        self.soname
    }

    fn needed(&self) -> Vec<String> {
        self.needed.iter().map(|&name| name.to_owned()).collect()
    }

    fn provides(&self, symbol: &[u8], version: Option<&[u8]>) -> Option<Provided> {
        self.symbols.iter().find_map(|(name, has)| {
            let is_unique = name.starts_with('!');
            let same = name.trim_start_matches('!').as_bytes() == symbol;
            let fits = version.is_none() || has.map(str::as_bytes) == version;
            let provided = if is_unique { Provided::Unique } else { Provided::Ordinary };
            (same && fits).then_some(provided)
        })
    }

    fn references(&self) -> Vec<SystemReference<'_>> {
        self.refers.iter().map(|&(symbol, version)| SystemReference { symbol, version }).collect()
    }
}

const PYTHON: Table =
    Table { soname: "python", needed: &["libc.so.6"], symbols: &[("PyList_New", None)], refers: &[] };
const LIBC: Table = Table {
    soname: "libc.so.6",
    needed: &[],
    symbols: &[("memcpy", Some("GLIBC_2.14")), ("memcpy", Some("GLIBC_2.2.5"))],
    refers: &[],
};
const LIBSTDCXX: Table = Table {
    soname: "libstdc++.so.6",
    needed: &["libc.so.6"],
    symbols: &[("!_ZNSt5ctypeIcE2idE", Some("GLIBCXX_3.4")), ("_ZSt4cout", Some("GLIBCXX_3.4"))],
    refers: &[
        ("_ZNSt5ctypeIcE2idE", Some("GLIBCXX_3.4")),
        ("_ZSt4cout", Some("GLIBCXX_3.4")),
        ("nowhere", None),
    ],
};

/// Files at paths, each with the number of its wheel.
struct Wheels(Vec<(&'static str, u32, Object)>);

impl Wheels {
    fn new(files: Vec<(&'static str, u32, ElfWriter)>) -> Self {
        let parsed = files.into_iter().map(|(path, group, writer)| {
            let object = Object::from_bytes(&writer.build().into_bytes(), &Wants::default()).unwrap();
            (path, group, object)
        });
        Self(parsed.collect())
    }

    fn run(&self, libc: Libc, events: &[Event<'_>]) -> Process {
        let files = self.files();
        Process::run(&Scenario {
            libc,
            files: &files,
            system: &[&PYTHON, &LIBC, &LIBSTDCXX],
            default_directories: &[],
            program: Program::Described(&[0, 1]),
            preload: &[],
            events,
        })
    }

    fn files(&self) -> Vec<File<'_>> {
        self.0
            .iter()
            .map(|(path, group, object)| File { library: Library { path, object }, group: *group })
            .collect()
    }

    /// The binding of a file's reference.
    fn binding<'p>(&self, process: &'p Process, file: u32, name: &str) -> &'p Binding {
        let symbols = &self.0[file as usize].2.symbols;
        let index = 1 + symbols.iter().position(|s| symbols.name(s) == name.as_bytes()).unwrap();
        process.bindings.get(file, index as u32).unwrap()
    }
}

fn library(soname: &str) -> ElfWriter {
    ElfWriter::new(Arch::X86_64).soname(soname)
}

fn import(file: usize) -> Event<'static> {
    Event::Dlopen { target: Target::File(file), global: false, caller: None }
}

fn import_global(file: usize) -> Event<'static> {
    Event::Dlopen { target: Target::File(file), global: true, caller: None }
}

const fn file(file: u32) -> ObjectId {
    ObjectId::File(file)
}

#[test]
fn tables_stand_in_for_the_system() {
    let module = ElfWriter::new(Arch::X86_64)
        .needed("libstdc++.so.6")
        .needed("libgone.so.1")
        .undefined("PyList_New")
        .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14")
        .undefined_versioned("_ZSt4cout", "libstdc++.so.6", "GLIBCXX_3.4")
        .undefined_versioned("memmove", "libc.so.6", "GLIBC_2.2.5")
        .symbol(SymbolSpec { info: 0x20, ..SymbolSpec::undefined("maybe") });
    let wheels = Wheels::new(vec![("/site/m.so", 1, module)]);
    let process = wheels.run(Libc::Glibc, &[import(0)]);
    let provider = |name| wheels.binding(&process, 0, name).provider;
    assert_eq!(provider("PyList_New"), Provider::System { library: 0 });
    assert_eq!(provider("memcpy"), Provider::System { library: 1 });
    assert_eq!(provider("_ZSt4cout"), Provider::System { library: 2 });
    assert_eq!(provider("memmove"), Provider::Unresolved { weak: false });
    assert_eq!(provider("maybe"), Provider::Unresolved { weak: true });
    assert_eq!((process.bindings.unresolved().count(), process.fatal().count()), (2, 1));
    assert_eq!(process.bindings.served_by(ObjectId::System(1)).count(), 1);
    let gone = Missing { from: Some(file(0)), name: "libgone.so.1".to_owned(), event: Some(0) };
    assert_eq!(process.missing, [gone]);
    let loaded: Vec<_> = process.loads.iter().map(|load| (load.object, load.loader, load.event)).collect();
    let expected = [
        (ObjectId::System(0), None, None),
        (ObjectId::System(1), None, None),
        (ObjectId::File(0), None, Some(0)),
        (ObjectId::System(2), Some(file(0)), Some(0)),
    ];
    assert_eq!(loaded, expected);
    assert_eq!(process.global, [ObjectId::System(0), ObjectId::System(1)]);
}

#[test]
fn a_library_of_the_system_that_is_loaded_serves_its_soname() {
    let vendored = || library("libstdc++.so.6").define("_ZSt4cout");
    let module = |name: &str| {
        let path = if name.is_empty() { "/nowhere" } else { "$ORIGIN" };
        ElfWriter::new(Arch::X86_64).needed("libstdc++.so.6").runpath(path).undefined("_ZSt4cout")
    };
    let wheels = Wheels::new(vec![
        ("/site/a/plain.so", 1, module("")),
        ("/site/b/vendors.so", 2, module("$ORIGIN")),
        ("/site/b/libstdc++.so.6", 2, vendored()),
    ]);
    let serves = |events: &[Event<'_>]| {
        let process = wheels.run(Libc::Glibc, events);
        [0, 1].map(|file| wheels.binding(&process, file, "_ZSt4cout").provider.object())
    };
    let system = Some(ObjectId::System(2));
    assert_eq!(serves(&[import(0), import(1)]), [system, system]);
    assert_eq!(serves(&[import(1), import(0)]), [Some(file(2)), Some(file(2))]);
}

#[test]
fn a_unique_symbol_of_the_system_counts_from_when_it_is_loaded() {
    let id = "_ZNSt5ctypeIcE2idE";
    let unique = || SymbolSpec { info: 0xa1, ..SymbolSpec::function(id) };
    let copy = || ElfWriter::new(Arch::X86_64).symbol(unique()).undefined(id);
    let user = ElfWriter::new(Arch::X86_64).needed("libstdc++.so.6").undefined(id);
    let wheels = Wheels::new(vec![("/site/user.so", 1, user), ("/site/copy.so", 2, copy())]);
    let process = wheels.run(Libc::Glibc, &[import(0), import(1)]);
    let bound = process.bindings.of(1).iter().map(|b| (b.provider, b.via)).collect::<Vec<_>>();
    assert_eq!(bound, [(Provider::System { library: 2 }, Via::Unique)]);
    // musl knows nothing of it.
    let process = wheels.run(Libc::Musl, &[import(0), import(1)]);
    assert_eq!(process.bindings.of(1)[0].provider.object(), Some(file(1)));
}

/// libstdc++ asks the loader for its own exports too, through the scope of whoever pulled it in.
#[test]
fn libraries_of_the_system_are_bound_too() {
    let id = "_ZNSt5ctypeIcE2idE";
    let unique = SymbolSpec { info: 0xa1, ..SymbolSpec::function(id) };
    let exporter = ElfWriter::new(Arch::X86_64)
        .needed("libstdc++.so.6")
        .symbol(unique)
        .define("_ZSt4cout")
        .undefined("_ZSt4cout");
    let user = ElfWriter::new(Arch::X86_64).needed("libstdc++.so.6").undefined("_ZSt4cout");
    let wheels = Wheels::new(vec![("/site/exporter.so", 1, exporter), ("/site/user.so", 2, user)]);
    let providers = |events: &[Event<'_>]| {
        let process = wheels.run(Libc::Glibc, events);
        let of_libstdcxx = process.system_bindings.iter().inspect(|binding| assert_eq!(binding.library, 2));
        of_libstdcxx
            .map(|binding| (binding.reference, binding.provider.object(), binding.via))
            .collect::<Vec<_>>()
    };
    // Pulled in by the exporter, it is served by it.
    let exporter_first =
        [(0, Some(file(0)), Via::Unique), (1, Some(file(0)), Via::Local), (2, None, Via::Nothing)];
    assert_eq!(providers(&[import(0), import(1)]), exporter_first);
    let system = Some(ObjectId::System(2));
    let user_first = [(0, system, Via::Unique), (1, system, Via::Local), (2, None, Via::Nothing)];
    assert_eq!(providers(&[import(1), import(0)]), user_first);
    assert_eq!(providers(&[]), [], "it is not loaded");
}

#[test]
fn interpositions_say_who_left_what() {
    let module = |needed: &str, runpath: &str| {
        ElfWriter::new(Arch::X86_64).needed(needed).runpath(runpath).undefined("omp_get_num_threads")
    };
    let wheels = Wheels::new(vec![
        ("/site/torch/global.so", 1, module("libgomp.so.1", "$ORIGIN")),
        ("/site/torch/libgomp.so.1", 1, library("libgomp.so.1").define("omp_get_num_threads")),
        ("/site/sklearn/m.so", 2, module("libgomp-1.so.1", "$ORIGIN")),
        ("/site/sklearn/libgomp-1.so.1", 2, library("libgomp-1.so.1").define("omp_get_num_threads")),
    ]);
    let process = wheels.run(Libc::Glibc, &[import_global(0), import(2)]);
    let found = process.interpositions();
    let found: Vec<_> =
        found.iter().map(|i| (i.binding.file, i.binding.provider.object(), i.kind, i.leaves_group)).collect();
    assert_eq!(found, [(2, Some(file(1)), InterpositionKind::NotNeeded, true)]);
    // The other way round each has its own.
    let process = wheels.run(Libc::Glibc, &[import(2), import_global(0)]);
    assert_eq!(process.interpositions(), []);
}

#[test]
fn names_are_searched_for_where_the_caller_says() {
    let caller = ElfWriter::new(Arch::X86_64).runpath("$ORIGIN/lib");
    let wheels = Wheels::new(vec![
        ("/site/p/_ctypes_like.so", 1, caller),
        ("/site/p/lib/libblas.so.3", 1, library("libblas.so.3")),
    ]);
    let open = |caller| Event::Dlopen { target: Target::Name("libblas.so.3"), global: false, caller };
    let process = wheels.run(Libc::Glibc, &[import(0), open(None), open(Some(0))]);
    let missing = Missing { from: None, name: "libblas.so.3".to_owned(), event: Some(1) };
    assert_eq!(process.missing, [missing]);
    let last = process.loads.last().unwrap();
    assert_eq!((last.object, last.event), (ObjectId::File(1), Some(2)));
}

#[test]
fn nonsense_is_no_panic() {
    let wheels = Wheels::new(vec![("/site/m.so", 1, library("m.so").undefined("f"))]);
    let files = wheels.files();
    let nowhere = Event::Dlopen { target: Target::File(7), global: true, caller: Some(usize::MAX) };
    for program in
        [Program::File(usize::MAX), Program::File(9), Program::Described(&[]), Program::Described(&[5])]
    {
        let process = Process::run(&Scenario {
            libc: Libc::Musl,
            files: &files,
            system: &[],
            default_directories: &["/lib"],
            program,
            preload: &[Target::Name(""), Target::File(3)],
            events: &[nowhere, import(0), import(0)],
        });
        assert_eq!(process.bindings.len(), 1);
        assert_eq!(process.loads.len(), 1);
    }
}
