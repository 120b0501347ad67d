//! Small real processes: the simulation must say where each reference leads, exactly, with glibc and with musl.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

mod process;

use abiaudit_loader::search::Libc;
use process::Definition::{Global as Strong, Unique, Versioned, Weak};
use process::Patch::{Symbolic, Visibility};
use process::Step::{Global, Local};
use process::{Case, Spec, Workshop};

fn program() -> Spec {
    Spec { name: "program", ..Spec::default() }
}

fn library(
    name: &'static str,
    defines: &'static [process::Definition],
    refers: &'static [&'static str],
) -> Spec {
    Spec { name, defines, refers, ..Spec::default() }
}

fn needs(needed: &'static [&'static str], spec: Spec) -> Spec {
    Spec { needed, ..spec }
}

fn case(title: &'static str, libraries: Vec<Spec>, steps: &'static [process::Step]) -> Case {
    Case { title, libraries, program: program(), preload: &[], steps }
}

/// Who is searched, and in which order.
fn scopes() -> Vec<Case> {
    let own = |name| library(name, &[Strong("x")], &["x"]);
    vec![
        case("RTLD_LOCAL keeps apart", vec![own("a.so"), own("b.so")], &[Local("a.so"), Local("b.so")]),
        case(
            "RTLD_GLOBAL serves those after it",
            vec![own("a.so"), own("b.so")],
            &[Global("a.so"), Local("b.so")],
        ),
        case(
            "RTLD_GLOBAL serves none before it",
            vec![own("a.so"), own("b.so"), library("c.so", &[], &["x"])],
            &[Local("b.so"), Global("a.so"), Local("c.so")],
        ),
        case(
            "an extension interposes its dependency, and that one the next",
            vec![
                library("q.so", &[Strong("x"), Strong("y")], &["x", "y"]),
                needs(&["q.so"], library("p.so", &[Strong("y")], &["x", "y"])),
                needs(&["p.so"], library("m.so", &[Strong("x")], &["x", "y"])),
            ],
            &[Local("m.so")],
        ),
        case(
            "breadth first",
            vec![
                library("deep.so", &[Strong("x"), Strong("y")], &[]),
                needs(&["deep.so"], library("left.so", &[], &["x"])),
                library("right.so", &[Strong("x")], &["x"]),
                needs(&["left.so", "right.so"], library("m.so", &[], &["x", "y"])),
            ],
            &[Local("m.so")],
        ),
        case(
            "a shared dependency is bound once, in the list of who came first",
            vec![
                own("shared.so"),
                needs(&["shared.so"], own("a.so")),
                needs(&["shared.so"], library("b.so", &[Strong("y")], &["x", "y"])),
            ],
            &[Local("a.so"), Local("b.so")],
        ),
        case(
            "a dependency made global later",
            vec![own("dep.so"), needs(&["dep.so"], own("a.so")), library("c.so", &[Strong("x")], &["x"])],
            &[Local("a.so"), Global("dep.so"), Local("c.so")],
        ),
        case(
            "RTLD_GLOBAL appends the whole list",
            vec![own("dep.so"), needs(&["dep.so"], library("a.so", &[], &["x"])), own("c.so")],
            &[Global("a.so"), Local("c.so")],
        ),
        case(
            "a cycle",
            vec![
                Spec { is_draft: true, ..library("b.so", &[], &[]) },
                needs(&["b.so"], library("a.so", &[Strong("x")], &["x", "y"])),
                needs(&["a.so"], library("b.so", &[Strong("x"), Strong("y")], &["x", "y"])),
            ],
            &[Local("b.so"), Local("a.so")],
        ),
        Case {
            preload: &["pre.so"],
            program: needs(&["a.so"], Spec { refers: &["x"], options: &["-fPIC", "-pie"], ..program() }),
            ..case(
                "LD_PRELOAD comes after the program",
                vec![own("pre.so"), own("a.so"), own("b.so")],
                &[Local("b.so")],
            )
        },
        Case {
            program: Spec { defines: &[Strong("x")], refers: &["x"], options: &["-rdynamic"], ..program() },
            ..case("the program comes first", vec![own("a.so")], &[Local("a.so")])
        },
        Case {
            program: needs(
                &["a.so"],
                Spec { refers: &["x"], options: &["-no-pie", "-fno-pic"], ..program() },
            ),
            ..case("a variable that the program copied", vec![own("a.so"), own("b.so")], &[Local("b.so")])
        },
    ]
}

/// Which definitions count.
fn definitions() -> Vec<Case> {
    vec![
        case(
            "weak is as good as strong",
            vec![library("a.so", &[Weak("x")], &["x"]), library("b.so", &[Strong("x")], &["x"])],
            &[Global("a.so"), Global("b.so")],
        ),
        case("weak and undefined", vec![library("a.so", &[Strong("y")], &["x?", "y?"])], &[Local("a.so")]),
        case(
            "unique: the first one for ever, though both are local",
            vec![
                library("a.so", &[Unique("x"), Strong("y")], &["x", "y"]),
                library("b.so", &[Unique("x"), Strong("y")], &["x", "y"]),
                library("c.so", &[Strong("x")], &["x"]),
                Spec { patches: &[Symbolic], ..library("d.so", &[Unique("x")], &["x"]) },
            ],
            &[Local("a.so"), Local("b.so"), Local("c.so"), Local("d.so")],
        ),
        case(
            "unique: an ordinary definition that comes first is taken",
            vec![library("c.so", &[Strong("x")], &["x"]), library("a.so", &[Unique("x")], &["x"])],
            &[Global("c.so"), Local("a.so")],
        ),
        case(
            "unique: relocated first counts, not first in the list",
            vec![
                Spec { patches: &[Symbolic], ..library("dep.so", &[Unique("x")], &["x"]) },
                needs(&["dep.so"], library("m.so", &[Unique("x")], &["x"])),
            ],
            &[Local("m.so")],
        ),
        case(
            "DF_SYMBOLIC looks into itself first",
            vec![
                library("a.so", &[Strong("x"), Strong("y")], &[]),
                Spec { patches: &[Symbolic], ..library("b.so", &[Strong("x")], &["x", "y"]) },
            ],
            &[Global("a.so"), Local("b.so")],
        ),
        case(
            "protected and hidden",
            vec![
                library("a.so", &[Strong("x"), Strong("y"), Strong("z")], &[]),
                Spec {
                    patches: &[Visibility("x", 3), Visibility("y", 2)],
                    ..library("b.so", &[Strong("x"), Strong("y"), Strong("z")], &["x", "y", "z"])
                },
            ],
            &[Global("a.so"), Local("b.so")],
        ),
        case(
            "hidden definitions serve nobody",
            vec![
                Spec { patches: &[Visibility("x", 2)], ..library("a.so", &[Strong("x")], &[]) },
                library("b.so", &[Strong("x")], &["x"]),
            ],
            &[Global("a.so"), Local("b.so")],
        ),
        case(
            "the old hash table",
            vec![
                Spec {
                    options: &["-Wl,--hash-style=sysv"],
                    ..library("a.so", &[Strong("x"), Weak("y")], &["x"])
                },
                library("b.so", &[], &["x", "y"]),
            ],
            &[Global("a.so"), Local("b.so")],
        ),
    ]
}

/// A library that has `x` twice.
fn two_versions(name: &'static str) -> Spec {
    Spec {
        versions: "V0 { global: x; local: *; }; V1 { global: x; } V0;",
        ..library(name, &[Versioned("x@V0"), Versioned("x@@V1")], &[])
    }
}

/// The same before it got the newer one.
fn one_version(name: &'static str) -> Spec {
    let versions = "V0 { global: x; local: *; };";
    Spec { versions, is_draft: true, ..library(name, &[Strong("x")], &[]) }
}

fn no_version(name: &'static str) -> Spec {
    Spec { is_draft: true, ..library(name, &[Strong("x")], &[]) }
}

fn versions() -> Vec<Case> {
    let user = |name| needs(&["v.so"], library(name, &[], &["x"]));
    vec![
        case(
            "old and new reference and one without",
            vec![
                one_version("v.so"),
                user("old.so"),
                no_version("v.so"),
                user("none.so"),
                two_versions("v.so"),
                user("new.so"),
            ],
            &[Local("old.so"), Local("new.so"), Local("none.so")],
        ),
        case(
            "a definition without versions serves any version",
            vec![two_versions("v.so"), user("new.so"), library("plain.so", &[Strong("x")], &[])],
            &[Global("plain.so"), Local("new.so")],
        ),
        case(
            "the base version serves any version",
            vec![
                two_versions("v.so"),
                user("new.so"),
                Spec {
                    versions: "W { global: other; };",
                    ..library("base.so", &[Strong("x"), Strong("other")], &["x"])
                },
            ],
            &[Global("base.so"), Local("new.so")],
        ),
        case(
            "another version does not",
            vec![
                two_versions("v.so"),
                user("new.so"),
                Spec { versions: "W { global: x; local: *; };", ..library("other.so", &[Strong("x")], &[]) },
            ],
            &[Global("other.so"), Local("new.so")],
        ),
        case(
            "a reference without version takes the only default",
            vec![
                no_version("v.so"),
                user("none.so"),
                Spec {
                    versions: "V0 { global: y; local: *; }; V1 { global: x; } V0;",
                    ..library("v.so", &[Versioned("x@@V1"), Strong("y")], &[])
                },
            ],
            &[Local("none.so")],
        ),
    ]
}

fn compare_all(libc: Libc, cases: &[Case]) {
    let Some(workshop) = Workshop::new(libc) else { return };
    for case in cases {
        let compared = workshop.compare(case);
        assert!(compared > 0, "{}: nothing refers to anything", case.title);
    }
}

/// Numbers that look random and are the same everywhere (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// A few libraries that define and refer to the same few symbols, need each other, and are opened in some order.
    fn case(&mut self) -> Case {
        const NAMES: [&str; 6] = ["a.so", "b.so", "c.so", "d.so", "e.so", "f.so"];
        let libraries =
            (0..NAMES.len()).map(|number| self.library(NAMES[number], &NAMES[..number])).collect();
        let steps = (0..4).map(|_| {
            let name = NAMES[self.below(NAMES.len() as u64) as usize];
            if self.percent(40) { Global(name) } else { Local(name) }
        });
        let steps: Vec<_> = steps.collect();
        let defines = if self.percent(30) { vec![Strong("x")] } else { Vec::new() };
        Case {
            title: "random",
            libraries,
            program: Spec { defines: defines.leak(), options: &["-rdynamic"], ..program() },
            preload: if self.percent(30) { &["a.so"] } else { &[] },
            steps: steps.leak(),
        }
    }

    fn library(&mut self, name: &'static str, others: &[&'static str]) -> Spec {
        let (mut defines, mut refers) = (Vec::new(), Vec::new());
        for (symbol, reference) in [("x", "x?"), ("y", "y?"), ("z", "z?")] {
            if self.percent(50) {
                defines.push([Strong, Weak, Unique][self.below(3) as usize](symbol));
            }
            if self.percent(70) {
                refers.push(reference);
            }
        }
        let needed: Vec<&str> = others.iter().copied().filter(|_| self.percent(35)).collect();
        Spec {
            name,
            needed: needed.leak(),
            defines: defines.leak(),
            refers: refers.leak(),
            patches: if self.percent(25) { &[Symbolic] } else { &[] },
            ..Spec::default()
        }
    }
}

fn compare_random(libc: Libc, seed: u64, cases: usize) {
    let Some(workshop) = Workshop::new(libc) else { return };
    let mut numbers = Numbers(seed);
    let compared: usize = (0..cases).map(|_| workshop.compare(&numbers.case())).sum();
    assert!(compared > cases, "{compared} references in {cases} processes");
}

#[test]
fn random_processes_with_glibc() {
    compare_random(Libc::Glibc, 0x9e37_79b9_7f4a_7c15, 6);
}

#[test]
fn random_processes_with_musl() {
    compare_random(Libc::Musl, 0xd1b5_4a32_d192_ed03, 6);
}

#[test]
fn scopes_with_glibc() {
    compare_all(Libc::Glibc, &scopes());
}

#[test]
fn scopes_with_musl() {
    compare_all(Libc::Musl, &scopes());
}

#[test]
fn definitions_with_glibc() {
    compare_all(Libc::Glibc, &definitions());
}

#[test]
fn definitions_with_musl() {
    compare_all(Libc::Musl, &definitions());
}

#[test]
fn versions_with_glibc() {
    compare_all(Libc::Glibc, &versions());
}

#[test]
fn versions_with_musl() {
    compare_all(Libc::Musl, &versions());
}
