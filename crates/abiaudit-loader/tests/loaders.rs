//! Trees of real shared objects: the model must say what the loaders of this machine do.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

mod lab;

use std::path::Path;

use abiaudit_loader::search::{Libc, Outcome, resolve};
use lab::{Compared, Extra, Lab, Spec};

fn library(path: &'static str, needed: &[&str]) -> Spec {
    let soname = path.rsplit('/').next().map(str::to_owned);
    Spec { path, soname, needed: needed.iter().map(|n| (*n).to_owned()).collect(), ..Spec::default() }
}

fn rpath(path: &str, spec: Spec) -> Spec {
    Spec { rpath: Some(path.to_owned()), ..spec }
}

fn runpath(path: &str, spec: Spec) -> Spec {
    Spec { runpath: Some(path.to_owned()), ..spec }
}

fn soname(soname: &str, spec: Spec) -> Spec {
    Spec { soname: Some(soname.to_owned()), ..spec }
}

type Case = (&'static str, Vec<Spec>, Vec<Extra>);

/// Shapes that wheels have, and those that loaders treat in their own ways.
fn cases() -> Vec<Case> {
    let (a, b, c) =
        (|n: &[&str]| library("p.libs/liba.so", n), library("p.libs/libb.so", &[]), "p.libs/libc_.so");
    let module = || library("p/m.so", &["liba.so"]);
    // `$LIB` of Debian and its children, and of most others.
    let debian = Path::new("/lib/x86_64-linux-gnu").is_dir();
    let lib_directory = if debian { "p/lib/x86_64-linux-gnu/liba.so" } else { "p/lib64/liba.so" };
    vec![
        (
            "RPATH is inherited",
            vec![rpath("$ORIGIN/../p.libs", module()), a(&["libb.so"]), b.clone()],
            vec![],
        ),
        ("RUNPATH is not", vec![runpath("$ORIGIN/../p.libs", module()), a(&["libb.so"]), b.clone()], vec![]),
        (
            "RPATH over three levels",
            vec![
                rpath("${ORIGIN}/../p.libs", module()),
                a(&["libb.so"]),
                library("p.libs/libb.so", &["libc_.so"]),
                library(c, &["libd.so"]),
                library("p.libs/libd.so", &[]),
            ],
            vec![],
        ),
        (
            "RUNPATH in the middle shields its object only",
            vec![
                rpath("$ORIGIN/../p.libs", module()),
                runpath("$ORIGIN/nowhere", a(&["libb.so", "libx.so"])),
                library("p.libs/libb.so", &["libc_.so"]),
                library(c, &[]),
                library("p/n.so", &["libb.so"]),
            ],
            vec![],
        ),
        (
            "useless RUNPATH shields too",
            vec![rpath("$ORIGIN/../p.libs", module()), runpath("/", a(&["libb.so"])), b.clone()],
            vec![],
        ),
        (
            "both tags: RPATH of the object is ignored",
            vec![
                Spec {
                    rpath: Some("$ORIGIN/../p.libs".to_owned()),
                    runpath: Some("/nowhere$ORIGIN/../p.libs".to_owned()),
                    ..module()
                },
                a(&[]),
            ],
            vec![],
        ),
        (
            "both tags in an ancestor: its RPATH is ignored",
            vec![
                Spec {
                    rpath: Some("$ORIGIN/../p.libs".to_owned()),
                    runpath: Some("@/q:$ORIGIN/../p.libs".to_owned()),
                    ..library("p/m.so", &["libmid.so"])
                },
                library("q/libmid.so", &["liba.so"]),
                a(&[]),
            ],
            vec![],
        ),
        (
            "nearest RPATH first",
            vec![
                rpath("$ORIGIN/../q:$ORIGIN/../p.libs", module()),
                rpath("$ORIGIN", a(&["libb.so"])),
                b.clone(),
                library("q/libb.so", &[]),
            ],
            vec![],
        ),
        (
            "soname differs from the file name, and serves by name only after loading",
            vec![
                rpath("$ORIGIN/../p.libs", library("p/m.so", &["liba.so", "libreal.so.1", "libother.so"])),
                soname("libreal.so.1", a(&[])),
                rpath("$ORIGIN/../p.libs", library("p/n.so", &["libreal.so.1", "liba.so"])),
            ],
            vec![],
        ),
        (
            "two files, one soname",
            vec![
                rpath(
                    "$ORIGIN/../p.libs:$ORIGIN/../q",
                    library("p/m.so", &["libone.so", "libtwo.so", "libs.so"]),
                ),
                soname("libs.so", library("p.libs/libone.so", &["libtwo.so"])),
                soname("libs.so", library("q/libtwo.so", &["libs.so"])),
                library("q/libs.so", &[]),
            ],
            vec![],
        ),
        (
            "absolute NEEDED, NEEDED with a relative path, with $ORIGIN",
            vec![
                library(
                    "p/m.so",
                    &[
                        "@/p.libs/liba.so",
                        "p/rel.so",
                        "./liba.so",
                        "$ORIGIN/../p.libs/libb.so",
                        "@/p/../q/gone.so",
                    ],
                ),
                a(&["liba.so", "libb.so"]),
                b.clone(),
                library("p/rel.so", &[]),
            ],
            vec![],
        ),
        (
            "absolute NEEDED, then by name from its own directory",
            vec![
                library("p/m.so", &["@/p.libs/liba.so", "liba.so"]),
                Spec { soname: None, ..rpath("$ORIGIN", a(&["liba.so", "libb.so"])) },
                library("p.libs/libb.so", &["liba.so"]),
            ],
            vec![],
        ),
        (
            "cycle",
            vec![
                rpath("$ORIGIN", library("q/libx.so", &["liby.so"])),
                rpath("$ORIGIN", library("q/liby.so", &["libx.so", "liby.so"])),
                runpath("$ORIGIN/../q", library("p/m.so", &["libx.so"])),
                library("lonely/libl.so", &["libk.so"]),
                library("lonely/libk.so", &["libl.so"]),
            ],
            vec![],
        ),
        ("$LIB", vec![rpath("$ORIGIN/$LIB", module()), library(lib_directory, &[])], vec![]),
        (
            "DF_1_NODEFLIB",
            vec![
                Spec {
                    options: vec!["-z", "nodefaultlib"],
                    ..rpath("$ORIGIN/../p.libs", library("p/m.so", &["liba.so", "libgone.so"]))
                },
                a(&[]),
            ],
            vec![],
        ),
        (
            "empty and relative entries are the working directory",
            vec![rpath(":p.libs:./p.libs::$ORIGINAL/../p.libs", module()), a(&[])],
            // musl takes `$ORIGINAL` for `$ORIGIN` and `AL`.
            vec![Extra::Directory("pAL")],
        ),
        (
            "trailing slashes, doubled slashes, dots",
            vec![runpath("$ORIGIN/.././p.libs//", module()), a(&[])],
            vec![],
        ),
        (
            "ELF32 on the path",
            vec![runpath("$ORIGIN/../q:$ORIGIN/../p.libs", module()), a(&[])],
            vec![Extra::OtherClass("q/liba.so")],
        ),
        (
            "links",
            vec![
                rpath(
                    "$ORIGIN/../links:$ORIGIN/../p.libs",
                    library("p/m.so", &["liba.so.1", "liba.so", "libb.so"]),
                ),
                Spec { soname: None, ..rpath("$ORIGIN/../only-here", a(&["libc_.so"])) },
                b.clone(),
                library("only-here/libc_.so", &[]),
            ],
            vec![Extra::Link { path: "links/liba.so.1", target: "p.libs/liba.so" }],
        ),
        (
            "a library that one root finds and another does not",
            vec![
                rpath("$ORIGIN/../p.libs", library("p/m.so", &["libb.so", "liba.so"])),
                runpath("$ORIGIN/../p.libs", library("p/n.so", &["liba.so"])),
                a(&["libb.so"]),
                b.clone(),
            ],
            vec![],
        ),
    ]
}

#[test]
fn glibc_agrees_on_every_case() {
    let Some(lab) = Lab::new(Libc::Glibc) else { return };
    let mut cases = cases();
    cases.push((
        "another machine on the path",
        vec![
            runpath("$ORIGIN/../q:$ORIGIN/../p.libs", library("p/m.so", &["liba.so"])),
            library("p.libs/liba.so", &[]),
        ],
        vec![Extra::OtherMachine("q/liba.so")],
    ));
    compare_all(&lab, &cases);
}

#[test]
fn musl_agrees_on_every_case() {
    let Some(lab) = Lab::new(Libc::Musl) else { return };
    compare_all(&lab, &cases());
}

fn compare_all(lab: &Lab, cases: &[Case]) {
    for (title, specs, extras) in cases {
        let compared = lab.compare(title, &lab.build(specs, extras));
        assert!(
            compared.found + compared.external + compared.unreachable > 0,
            "{title}: nothing was compared"
        );
    }
}

#[test]
fn glibc_agrees_on_random_trees() {
    random_trees(Libc::Glibc);
}

#[test]
fn musl_agrees_on_random_trees() {
    random_trees(Libc::Musl);
}

fn random_trees(libc: Libc) {
    let Some(lab) = Lab::new(libc) else { return };
    let mut random = Random(0x5eed);
    let mut total = Compared::default();
    for number in 0..60 {
        let (specs, extras) = random_tree(&mut random);
        let tree = lab.build(&specs, &extras);
        let compared = lab.compare(&format!("tree {number} {specs:#?}"), &tree);
        total.found += compared.found;
        total.unreachable += compared.unreachable;
        total.external += compared.external;
    }
    eprintln!("{libc:?}: {total:?}");
    assert!(total.found > 60 && total.unreachable > 60 && total.external > 10, "{total:?}");
}

/// A fixed sequence (Knuth's MMIX generator), so that a failure can be seen again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

const FILES: [&str; 15] = [
    "p/la.so",
    "p/lb.so",
    "p/lc.so",
    "p/sub/la.so",
    "p/sub/lb.so",
    "p/sub/ld.so",
    "l/la.so",
    "l/lb.so",
    "l/lc.so",
    "l/ld.so",
    "l/le.so",
    "q/lb.so",
    "q/ld.so",
    "q/le.so",
    "q/lf.so",
];
const NAMES: [&str; 8] = ["la.so", "lb.so", "lc.so", "ld.so", "le.so", "lf.so", "lg.so", "@/l/le.so"];
const ENTRIES: [&str; 10] = [
    "$ORIGIN",
    "$ORIGIN/..",
    "$ORIGIN/../l",
    "${ORIGIN}/sub",
    "$ORIGIN/../q",
    "$ORIGIN/../../l",
    "@/q",
    "",
    "l",
    "@/none",
];

fn random_tree(random: &mut Random) -> (Vec<Spec>, Vec<Extra>) {
    let chosen: Vec<&str> = FILES.into_iter().filter(|_| !random.one_in(3)).collect();
    let mut specs: Vec<Spec> = chosen.iter().map(|path| random_library(random, path)).collect();
    let mut module = random_library(random, "p/m.so");
    module.needed = (0..3).map(|_| random.pick(&NAMES[..6]).to_owned()).collect();
    module.rpath = Some("$ORIGIN/../l:$ORIGIN".to_owned());
    module.runpath = None;
    module.soname = None;
    specs.push(module);
    // `..` needs its directory to be there.
    let extras = ["p/sub", "l/sub", "q/sub"].map(Extra::Directory).to_vec();
    (specs, extras)
}

fn random_library(random: &mut Random, path: &'static str) -> Spec {
    let file_name = path.rsplit('/').next().unwrap();
    let soname = match random.below(6) {
        0 => None,
        1 => Some(random.pick(&NAMES[..7]).to_owned()),
        _ => Some(file_name.to_owned()),
    };
    let needed = (0..random.below(4)).map(|_| random.pick(&NAMES).to_owned()).collect();
    let entries: Vec<&str> = (0..=random.below(3)).map(|_| random.pick(&ENTRIES)).collect();
    let search = Some(entries.join(":")).filter(|path| !path.is_empty());
    let (rpath, runpath) = match random.below(8) {
        0..3 => (None, None),
        3..6 => (search, None),
        6 => (None, search),
        _ => (search.clone(), search.map(|path| format!("@/q:{path}"))),
    };
    Spec { path, soname, needed, rpath, runpath, options: Vec::new() }
}

#[test]
fn ld_so_stops_at_a_file_that_it_cannot_load() {
    let Some(lab) = Lab::new(Libc::Glibc) else { return };
    let module = runpath("$ORIGIN/../q:$ORIGIN/../p.libs", library("p/m.so", &["liba.so"]));
    let program = Spec { options: vec!["-pie", "--no-dynamic-linker"], ..library("q/liba.so", &[]) };
    let tree = lab.build(&[module, library("p.libs/liba.so", &[]), program], &[]);
    let libraries = tree.libraries();
    assert!(libraries[2].object.dynamic.pie());
    let resolution = resolve(&libraries, Libc::Glibc);
    let need = &resolution.needs_of(0)[0];
    assert_eq!((&need.outcome, need.blocked_by), (&Outcome::Unreachable { present: vec![1] }, Some(2)));
    let root = Path::new(libraries[0].path);
    assert_eq!(lab.names_in_process(root, std::iter::empty()), None, "dlopen should fail");
}

#[test]
fn extension_modules_are_roots_even_if_needed() {
    let Some(lab) = Lab::new(Libc::Glibc) else { return };
    let module = Spec { options: vec!["--defsym=PyInit_core=empty"], ..library("p/core.abi3.so", &[]) };
    let other = Spec { options: vec!["--defsym=PyInit_core=empty"], ..library("p/plain.so", &[]) };
    let user = rpath("$ORIGIN", library("p/user.so", &["core.abi3.so", "plain.so"]));
    let tree = lab.build(&[module, other, user], &[]);
    let resolution = resolve(&tree.libraries(), Libc::Glibc);
    assert_eq!((resolution.roots, resolution.orphans), (vec![0, 2], vec![]));
}
