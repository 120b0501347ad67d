//! Sets of objects that are made without files: what the answers say, and what hostile sets cost.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::time::Instant;

use abiaudit_elf::{Class, Dynamic, Endian, Identity, Name, Notes, Object, ObjectType, Relocations};
use abiaudit_elf::{Sections, Segments, Symbols, Symtab, Versions};
use abiaudit_loader::search::{
    CHAIN_MAX, EntryKind, FoundBy, Libc, Library, Need, Outcome, PathTag, Resolution, resolve,
};

const X86_64: u16 = 62;
const AARCH64: u16 = 183;

/// A shared library for x86_64 that says nothing yet.
fn object() -> Object {
    Object {
        identity: Identity {
            class: Class::Elf64,
            endian: Endian::Little,
            os_abi: 0,
            abi_version: 0,
            object_type: ObjectType::Shared,
            machine: X86_64,
            flags: 0,
            entry: 0,
        },
        segments: Segments::default(),
        interpreter: None,
        dynamic: Dynamic { present: true, ..Dynamic::default() },
        symbols: Symbols::default(),
        versions: Versions::default(),
        relocations: Relocations::default(),
        notes: Notes::default(),
        sections: Sections::default(),
        symtab: Symtab::default(),
        debug_only: false,
        size: 0,
        problems: Vec::new(),
    }
}

fn needing<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Object {
    let mut object = object();
    object.dynamic.needed = names.into_iter().map(|name| Name::from(name.as_ref())).collect();
    object
}

fn with_rpath(path: &str, mut object: Object) -> Object {
    object.dynamic.rpath = Some(path.into());
    object
}

fn with_runpath(path: &str, mut object: Object) -> Object {
    object.dynamic.runpath = Some(path.into());
    object
}

fn with_soname(soname: &str, mut object: Object) -> Object {
    object.dynamic.soname = Some(soname.into());
    object
}

fn search(set: &[(String, Object)], libc: Libc) -> Resolution {
    let libraries: Vec<Library<'_>> = set.iter().map(|(path, object)| Library { path, object }).collect();
    resolve(&libraries, libc)
}

fn set<const N: usize>(set: [(&str, Object); N]) -> Vec<(String, Object)> {
    set.into_iter().map(|(path, object)| (format!("/s/{path}"), object)).collect()
}

fn outcome(resolution: &Resolution, member: usize, need: usize) -> &Outcome {
    &resolution.needs_of(member)[need].outcome
}

#[test]
fn rpath_is_inherited_and_runpath_is_not() {
    let tree = |module| {
        set([
            ("m.so", module),
            ("h.libs/liba.so", with_soname("liba.so", needing(["libb.so", "libc.so.6"]))),
            ("h.libs/libb.so", with_soname("libb.so", object())),
        ])
    };
    let inherited = search(&tree(with_rpath("$ORIGIN/h.libs", needing(["liba.so"]))), Libc::Glibc);
    let by = FoundBy::Rpath { owner: 0, entry: "$ORIGIN/h.libs".to_owned() };
    assert_eq!(outcome(&inherited, 1, 0), &Outcome::Found { library: 2, by });
    assert_eq!(outcome(&inherited, 1, 1), &Outcome::External);
    assert_eq!(inherited.needs_of(1)[0].chain, [0, 1]);
    assert_eq!(inherited.closure(0).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(inherited.users_of(2).map(|need| need.from).collect::<Vec<_>>(), [1]);

    let not = search(&tree(with_runpath("$ORIGIN/h.libs", needing(["liba.so"]))), Libc::Glibc);
    assert_eq!(
        outcome(&not, 0, 0),
        &Outcome::Found { library: 1, by: FoundBy::Runpath { entry: "$ORIGIN/h.libs".to_owned() } }
    );
    assert_eq!(outcome(&not, 1, 0), &Outcome::Unreachable { present: vec![2] });
    assert_eq!((&not.roots[..], &not.orphans[..]), (&[0, 2][..], &[2][..]));
    assert!(!not.needs_of(1)[0].found_in_some_root);

    let musl = search(&tree(with_runpath("$ORIGIN/h.libs", needing(["liba.so"]))), Libc::Musl);
    assert!(matches!(
        outcome(&musl, 1, 0),
        Outcome::Found { library: 2, by: FoundBy::Rpath { owner: 0, .. } }
    ));
    assert_eq!(outcome(&musl, 1, 1), &Outcome::Libc);
}

#[test]
fn the_worst_root_counts_and_others_can_help() {
    let set = set([
        ("p/bad.so", needing(["liba.so"])),
        ("p/good.so", with_runpath("$ORIGIN/../x.libs", needing(["liba.so"]))),
        ("x.libs/liba.so", with_soname("liba.so", needing(["libb.so"]))),
        ("x.libs/libb.so", object()),
        ("p/best.so", with_rpath("$ORIGIN/../x.libs", needing(["liba.so"]))),
    ]);
    let resolution = search(&set, Libc::Glibc);
    assert_eq!((&resolution.roots[..], &resolution.orphans[..]), (&[0, 1, 4][..], &[][..]));
    let bad = &resolution.needs_of(0)[0];
    assert_eq!((&bad.outcome, bad.root), (&Outcome::Unreachable { present: vec![2] }, 0));
    assert_eq!(resolution.preload_candidates(bad), [1, 4]);
    let inner = &resolution.needs_of(2)[0];
    assert_eq!((&inner.outcome, inner.root), (&Outcome::Unreachable { present: vec![3] }, 1));
    assert!(inner.found_in_some_root);
    // libb.so has no soname, but ld.so remembers the name by which it found it.
    assert_eq!(resolution.preload_candidates(inner), [4]);
}

#[test]
fn names_that_no_file_serves() {
    let names =
        ["libc.so", "libm.so.6", "libpthread.so.0", "ld-musl-x86_64.so.1", "", "libmine.so", "libmine.so"];
    let set = set([("m.so", needing(names)), ("libc.so", object())]);
    let musl: Vec<_> = search(&set, Libc::Musl).needs.into_iter().map(|need| need.outcome).collect();
    let (libc, external) = (Outcome::Libc, Outcome::External);
    assert_eq!(musl, [&libc, &libc, &libc, &libc, &Outcome::NotAName, &external].map(Clone::clone));
    let glibc: Vec<_> = search(&set, Libc::Glibc).needs.into_iter().map(|need| need.outcome).collect();
    let unreachable = Outcome::Unreachable { present: vec![1] };
    assert_eq!(
        glibc,
        [&unreachable, &external, &external, &external, &Outcome::NotAName, &external].map(Clone::clone)
    );
}

#[test]
fn what_no_loader_opens_is_neither_root_nor_found() {
    let mut relocatable = object();
    relocatable.identity.object_type = ObjectType::Relocatable;
    let mut debug = object();
    debug.debug_only = true;
    let mut static_program = object();
    static_program.identity.object_type = ObjectType::Executable;
    static_program.dynamic = Dynamic::default();
    let mut foreign = object();
    foreign.identity.machine = AARCH64;
    let mut tool = with_rpath("$ORIGIN", needing(["x.o", "libd.so", "tool", "libf.so"]));
    tool.dynamic.flags_1 = 0x800;
    let set = set([
        ("t", tool),
        ("x.o", relocatable),
        ("libd.so", debug),
        ("tool", static_program),
        ("libf.so", foreign),
    ]);
    let resolution = search(&set, Libc::Glibc);
    assert_eq!(resolution.roots, [0, 3, 4]);
    assert!(
        resolution.needs.iter().all(|need| need.outcome == Outcome::External && need.no_default_directories)
    );
    let blocked: Vec<_> = resolution.needs.iter().map(|need| need.blocked_by).collect();
    assert_eq!(blocked, [Some(1), Some(2), Some(3), None]);
    // musl maps whatever has the name.
    assert_eq!(search(&set, Libc::Musl).needs[3].blocked_by, Some(4));
}

#[test]
fn hwcaps_copies_stand_beside_the_baseline() {
    let set = set([
        ("m.so", with_runpath("$ORIGIN/libs", needing(["libk.so", "libonly.so"]))),
        ("libs/glibc-hwcaps/x86-64-v3/libk.so", object()),
        ("libs/libk.so", object()),
        ("libs/glibc-hwcaps/x86-64-v3/libonly.so", object()),
    ]);
    let resolution = search(&set, Libc::Glibc);
    let need = &resolution.needs_of(0)[0];
    assert!(matches!(need.outcome, Outcome::Found { library: 2, .. }));
    assert_eq!(need.hwcaps, [1]);
    assert_eq!(outcome(&resolution, 0, 1), &Outcome::Unreachable { present: vec![3] });
}

#[test]
fn one_object_under_two_paths_is_one_file() {
    let (module, library) = (with_rpath("$ORIGIN", needing(["liba.so", "liba.so.1"])), object());
    let libraries = [("/s/m.so", &module), ("/s/liba.so", &library), ("/s/liba.so.1", &library)];
    let libraries = libraries.map(|(path, object)| Library { path, object });
    let resolution = resolve(&libraries, Libc::Glibc);
    assert_eq!(outcome(&resolution, 0, 1), &Outcome::Found { library: 1, by: FoundBy::AlreadyLoaded });
}

#[test]
fn search_paths_tell_what_each_entry_is() {
    let object = with_runpath("$ORIGIN/../x:/opt/y/:z:", with_rpath("/old", object()));
    let set = set([("p/m.so", object)]);
    let resolution = search(&set, Libc::Glibc);
    let paths = resolution.search_paths(0);
    let entries: Vec<_> =
        paths.iter().map(|e| (e.tag, e.kind, e.effective, e.normalised.as_deref())).collect();
    assert_eq!(
        entries,
        [
            (PathTag::Rpath, EntryKind::Absolute, false, Some("/old")),
            (PathTag::Runpath, EntryKind::Origin, true, Some("/s/x")),
            (PathTag::Runpath, EntryKind::Absolute, true, Some("/opt/y")),
            (PathTag::Runpath, EntryKind::Relative, true, None),
            (PathTag::Runpath, EntryKind::Empty, true, None),
        ]
    );
}

/// Seconds for one set; the bounds in the tests are wide because test builds are not optimised and machines are busy.
fn seconds(title: &str, set: &[(String, Object)], libc: Libc) -> (f64, Resolution) {
    let start = Instant::now();
    let resolution = search(set, libc);
    let seconds = start.elapsed().as_secs_f64();
    eprintln!(
        "{title} ({libc:?}): {seconds:.3} s, {} needs, {} roots",
        resolution.needs.len(),
        resolution.roots.len()
    );
    (seconds, resolution)
}

#[test]
fn a_site_packages_directory() {
    // 2,700 modules in 30 packages, each needing 5 of its package's 10 libraries, which need each other and libc.
    let mut set = Vec::new();
    for package in 0..30 {
        for module in 0..90 {
            let needed = (0..5).map(|n| format!("lib{package}-{}.so", (module + n) % 10));
            let object = with_rpath("$ORIGIN/../libs", needing(needed.chain(["libc.so.6".to_owned()])));
            set.push((format!("/s/p{package}/sub/m{module}.so"), object));
        }
        for library in 0..10 {
            let needed =
                (library + 1..10).map(|n| format!("lib{package}-{n}.so")).chain(["libc.so.6".to_owned()]);
            set.push((format!("/s/p{package}/libs/lib{package}-{library}.so"), needing(needed)));
        }
    }
    for libc in [Libc::Glibc, Libc::Musl] {
        let (seconds, resolution) = seconds("site-packages", &set, libc);
        assert!(seconds < 3.0);
        assert_eq!((resolution.roots.len(), resolution.orphans.len()), (2700, 0));
        let bad = resolution.needs.iter().find(|need| matches!(need.outcome, Outcome::Unreachable { .. }));
        assert_eq!(bad, None);
    }
}

#[test]
fn hostile_sets_are_bounded() {
    let chain = |rpath: &dyn Fn(usize) -> Option<String>| -> Vec<(String, Object)> {
        let link = |n: usize| {
            let object = needing([format!("lib{}.so", n + 1)]);
            let object = match rpath(n) {
                Some(path) => with_rpath(&path, object),
                None => object,
            };
            (format!("/s/d{}/lib{n}.so", n % 5000), object)
        };
        (0..10_000).map(link).collect()
    };
    let all = (0..5000).map(|n| format!("/s/d{n}")).collect::<Vec<_>>().join(":");
    let sets = [
        (
            "20,000 NEEDED",
            set([("m.so", with_rpath(&all, needing((0..20_000).map(|n| format!("lib{n}.so")))))]),
        ),
        ("a chain of 10,000, path at the top", chain(&|n| (n == 0).then(|| all.clone()))),
        (
            "a chain of 10,000, useless paths on the way",
            chain(&|n| Some(if n == 0 { all.clone() } else { "/s/d1".to_owned() })),
        ),
        (
            "a chain of 10,000, another useless path at each",
            chain(&|n| Some(if n == 0 { all.clone() } else { format!("/s/d{}", (n + 4999) % 5000) })),
        ),
        ("a chain of 10,000, nothing found", chain(&|_| None)),
        ("750 that need each other", {
            let names: Vec<String> = (0..750).map(|n| format!("lib{n}.so")).collect();
            names.iter().map(|name| (format!("/s/{name}"), with_rpath("$ORIGIN", needing(&names)))).collect()
        }),
        ("5,000 of one name in 5,000 directories", {
            let member =
                |n| (format!("/s/d{n}/lib.so"), with_runpath(&format!("/s/d{}", n + 1), needing(["lib.so"])));
            (0..5000).map(member).collect()
        }),
        ("500 roots that load 500 libraries", {
            let names: Vec<String> = (0..500).map(|n| format!("lib{n}.so")).collect();
            let roots = (0..500).map(|n| (format!("/s/m{n}.so"), with_rpath("$ORIGIN", needing(&names))));
            let libraries = names.iter().map(|name| (format!("/s/{name}"), needing(&names[..20])));
            roots.chain(libraries).collect()
        }),
        ("64 KiB of entries", {
            let path = "$ORIGIN/$LIB/$PLATFORM:".repeat(2850);
            (0..50).map(|n| (format!("/s/{n}.so"), with_runpath(&path, needing(["libx.so"])))).collect()
        }),
    ];
    for (title, set) in &sets {
        let (seconds, resolution) = seconds(title, set, Libc::Glibc);
        assert!(seconds < 20.0, "{title}: {seconds} s");
        assert!(resolution.needs.iter().all(|need| need.chain.len() <= CHAIN_MAX));
        // Every need is told of, or it is said that something is missing.
        let all: usize = set.iter().map(|(_, object)| object.dynamic.needed.len()).sum();
        assert_eq!(resolution.needs.len() == all, resolution.unwalked.is_empty(), "{title}");
    }
}

#[test]
fn who_helps_costs_what_loads_the_library() {
    // 900 roots with a hundred needs each, found by none of them, and a library for each that is loaded on its own.
    let names: Vec<String> = (0..100).map(|n| format!("lib{n}.so")).collect();
    let roots = (0..900).map(|n| (format!("/s/r/m{n}.so"), with_runpath("$ORIGIN/../a", needing(&names))));
    let libraries = (0..100).map(|n| (format!("/s/d{n}/lib{n}.so"), with_soname(&names[n], object())));
    let common = (0..300).map(|n| (format!("/s/a/libx{n}.so"), object()));
    let set: Vec<(String, Object)> = roots.chain(libraries).chain(common).collect();
    let resolution = search(&set, Libc::Glibc);
    let unreachable = |need: &&Need| matches!(need.outcome, Outcome::Unreachable { .. });
    let start = Instant::now();
    let mut asked = 0;
    for need in resolution.needs.iter().filter(unreachable) {
        let Outcome::Unreachable { present } = &need.outcome else { continue };
        assert_eq!(&resolution.preload_candidates(need), present);
        asked += 1;
    }
    assert_eq!(asked, 900 * 100);
    assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
}
