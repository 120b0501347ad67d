//! The crash matrix: modules that get at libstdc++ in every way, two to a process, in both orders and all modes of
//! opening. What is expected here is what happened when the pairs were run: each module tested its streams, facets,
//! `call_once` and exceptions in a process of its own.
#![allow(clippy::print_stderr, reason = "a skipped test must say so")]

mod common;

use std::path::Path;
use std::process::Command;

use abiaudit_process::{Collision, Grade};
use abiaudit_testing::TestWheel;
use common::{Inputs, Lab, TAGS};

const MODULE: &str = include_str!("collisions/module.cpp");
const HIDE_ALL: &str = "{ global: PyInit_*; local: *; };";
/// What many projects write: hides C++ names, and leaves `__once_proxy`, which has C linkage.
const HIDE_STD: &str =
    "{ global: *; local: extern \"C++\" { std::*; \"typeinfo for std::*\"; \"vtable for std::*\"; }; };";
const STATIC: &str = "-static-libstdc++";

/// `None` without g++.
fn build(variants: &[(&'static str, &[&str])]) -> Option<Inputs> {
    if Command::new("g++").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no g++ on this machine");
        return None;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("module.cpp"), MODULE).expect("a file");
    std::fs::write(at("all.map"), HIDE_ALL).expect("a file");
    std::fs::write(at("std.map"), HIDE_STD).expect("a file");
    gxx(folder.path(), &["-c", "-fPIC", "-std=c++17", "-o", "module.o", "module.cpp"]);
    vendor(folder.path());
    let mut wheels = Vec::new();
    for (name, flags) in variants {
        let output = format!("{name}.so");
        let mut args = vec!["-shared", "-o", &output, "module.o"];
        args.extend(*flags);
        gxx(folder.path(), &args);
        let module = std::fs::read(at(&output)).expect("a module");
        let mut wheel = TestWheel::new(name, "1", TAGS)
            .file(&format!("{name}/m.so"), module)
            .file(&format!("{name}/__init__.py"), "from . import m\n");
        if *name == "vendored" {
            let library = std::fs::read(at(VENDORED.1)).expect("the library");
            wheel = wheel.file(&format!("{name}/{}", VENDORED.1), library);
        }
        wheels.push(wheel);
    }
    Some(Inputs::new(&wheels))
}

fn gxx(folder: &Path, args: &[&str]) {
    let run = Command::new("g++").args(args).current_dir(folder).output().expect("g++");
    assert!(run.status.success(), "g++ {args:?}: {}", String::from_utf8_lossy(&run.stderr));
}

/// The runtime of the compiler under another name of the same length, as repair tools make it.
const VENDORED: (&[u8], &str) = (b"libstdc++.so.6\0", "libstdc++-a.so");

fn vendor(folder: &Path) {
    let output = Command::new("g++").arg("-print-file-name=libstdc++.so.6").output().expect("g++");
    let mut bytes = std::fs::read(String::from_utf8_lossy(&output.stdout).trim()).expect("libstdc++");
    let (old, new) = VENDORED;
    assert_eq!(old.len() - 1, new.len());
    let at = bytes.windows(old.len()).position(|window| window == old).expect("its soname");
    bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
    std::fs::write(folder.join(new), bytes).expect("a file");
}

/// Modes of the two openings.
const LOCAL: (bool, bool) = (false, false);
const GLOBAL: (bool, bool) = (true, true);
const FIRST_GLOBAL: (bool, bool) = (true, false);
const SECOND_GLOBAL: (bool, bool) = (false, true);

/// What is worse than duplicated state and lost time, a line each.
fn bad(lab: &Lab<'_>, (first, second): (&str, &str), modes: (bool, bool)) -> Vec<String> {
    let (process, all) = lab.open(&[(first, modes.0), (second, modes.1)]);
    assert_eq!(process.missing, []);
    assert_eq!(process.fatal().count(), 0, "{first} {second}");
    let name = |object| lab.name(object);
    let bad = all.iter().filter(|collision| collision.grade() > Grade::Performance);
    let line = |collision: &Collision| match collision {
        Collision::Facets { victim, ids, numbering, .. } => {
            format!("facets of {}: {} and {}", name(*victim), name(*ids), name(*numbering))
        }
        Collision::Once { user, proxy, variable } => {
            format!("once of {}: {} and {}", name(*user), name(*proxy), name(*variable))
        }
        Collision::PrivateUnwinder { object, other, .. } => {
            format!("unwinder of {}: {}", name(*object), name(*other))
        }
        other => format!("{other:?}"),
    };
    bad.map(line).collect()
}

/// What a pair comes to with modes local-local, global-global, global-local, local-global.
fn expected(pair: (&str, &str)) -> [Option<&'static str>; 4] {
    const FACETS: Option<&str> = Some("facets");
    const ONCE: Option<&str> = Some("once");
    match pair {
        ("dynamic", "symbolic") => [FACETS, FACETS, FACETS, FACETS],
        ("dynamic", "half_hidden") | ("half_hidden", "dynamic") => [None, ONCE, ONCE, None],
        ("excluded" | "scripted" | "excluded_unwinder", _)
        | (_, "excluded" | "scripted" | "excluded_unwinder") => [None; 4],
        // The first of a global scope serves all, itself too where it is linked with -Bsymbolic.
        _ => [FACETS, None, None, FACETS],
    }
}

#[test]
fn copies_of_libstdcxx_collide_as_they_do() {
    let variants: &[(&str, &[&str])] = &[
        ("dynamic", &[]),
        ("exported", &[STATIC]),
        ("symbolic", &[STATIC, "-Wl,-Bsymbolic"]),
        ("symbolic_functions", &[STATIC, "-Wl,-Bsymbolic-functions"]),
        ("excluded", &[STATIC, "-Wl,--exclude-libs,ALL"]),
        ("excluded_unwinder", &[STATIC, "-static-libgcc", "-Wl,--exclude-libs,ALL"]),
        ("scripted", &[STATIC, "-Wl,--version-script=all.map"]),
        ("half_hidden", &[STATIC, "-Wl,--version-script=std.map"]),
        (
            "vendored",
            &[
                "-nodefaultlibs",
                "-L.",
                "-l:libstdc++-a.so",
                "-lm",
                "-lc",
                "-lgcc_s",
                "-lgcc",
                "-Wl,-rpath,$ORIGIN",
            ],
        ),
    ];
    let Some(inputs) = build(variants) else { return };
    let lab = inputs.lab();
    let others = variants.iter().map(|(name, _)| *name).filter(|name| *name != "dynamic");
    for pair in others.flat_map(|name| [("dynamic", name), (name, "dynamic")]) {
        for (modes, expected) in [LOCAL, GLOBAL, FIRST_GLOBAL, SECOND_GLOBAL].into_iter().zip(expected(pair))
        {
            let found = bad(&lab, pair, modes);
            let kinds: Vec<&str> = found.iter().filter_map(|line| line.split(' ').next()).collect();
            let fits = match expected {
                None => found.is_empty(),
                Some(kind) => !kinds.is_empty() && kinds.iter().all(|found| *found == kind),
            };
            assert!(fits, "{pair:?} {modes:?}: {found:#?}, expected {expected:?}");
        }
    }
}

#[test]
fn both_providers_are_named() {
    let Some(inputs) = build(&[("dynamic", &[]), ("exported", &[STATIC])]) else { return };
    let lab = inputs.lab();
    assert_eq!(
        bad(&lab, ("exported", "dynamic"), LOCAL),
        ["facets of libstdc++.so.6: exported/m.so and libstdc++.so.6"]
    );
    assert_eq!(
        bad(&lab, ("dynamic", "exported"), LOCAL),
        ["facets of exported/m.so: libstdc++.so.6 and exported/m.so"]
    );
}

#[test]
fn two_exported_copies_collide_with_each_other() {
    let variants: &[(&str, &[&str])] =
        &[("one", &[STATIC]), ("other", &[STATIC]), ("symbolic", &[STATIC, "-Wl,-Bsymbolic"])];
    let Some(inputs) = build(variants) else { return };
    let lab = inputs.lab();
    assert_eq!(bad(&lab, ("one", "other"), LOCAL), ["facets of other/m.so: one/m.so and other/m.so"]);
    assert!(bad(&lab, ("one", "other"), GLOBAL).is_empty());
    assert!(!bad(&lab, ("one", "symbolic"), GLOBAL).is_empty());
    assert!(bad(&lab, ("symbolic", "one"), GLOBAL).is_empty());
}
