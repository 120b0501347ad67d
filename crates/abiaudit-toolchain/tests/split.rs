//! Splits a small static library that has one of everything that can go wrong.
//! A machine without g++ skips these tests, and says so.
#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use abiaudit_elf::Binding;
use abiaudit_toolchain::archive::{self, Member};
use abiaudit_toolchain::nonshared::{self, Nonshared, Split};

/// What the old library has: `old`, the counter that everyone shares, and the constructor of its streams.
const BASELINE: &str = "
extern \"C\" int counter;
int counter = 40;
extern \"C\" int old() { return ++counter; }
";

/// What came later.
const LIBRARY: &[(&str, &str)] = &[
    (
        "new.o",
        "
extern \"C\" int counter;
extern \"C\" int old();
extern \"C\" int helper(int);
// Needs the baseline, and a helper of another member.
extern \"C\" int fresh() { return helper(old()); }
// One for the whole process.
inline int &pool() { static int waiters = 7; return waiters; }
extern \"C\" int *waiters() { return &pool(); }
// The baseline again: the member defines it too.
int counter = 40;
extern \"C\" int old() { return ++counter; }
// Another name of it, with the same state: harmless, since that is the baseline's.
extern \"C\" int old_again() __attribute__((alias(\"old\")));
",
    ),
    (
        "helper.o",
        "
extern \"C\" int helper(int n) { if (n < 0) throw n; return n + 1; }
extern \"C\" int unrelated() { return 3; }
",
    ),
    (
        "state.o",
        "
// State that the process must have once.
static int calls;
extern \"C\" int counts() { return ++calls; }
struct Starts { Starts() { calls = 10; } };
static Starts starts;
",
    ),
];

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Option<Self> {
        if Command::new("g++").arg("--version").output().is_err() || !cfg!(target_arch = "x86_64") {
            eprintln!("SKIPPED: there is no g++ for x86_64 on this machine");
            return None;
        }
        Some(Self { directory: tempfile::tempdir().unwrap() })
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn gxx(&self, arguments: &[&str]) -> Result<(), String> {
        let output = Command::new("g++").args(arguments).current_dir(self.directory.path()).output().unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn compile(&self, name: &str, source: &str) -> Vec<u8> {
        std::fs::write(self.path("source.cc"), source).unwrap();
        let flags = ["-O1", "-fPIC", "-ffunction-sections", "-fdata-sections", "-c", "source.cc", "-o", name];
        self.gxx(&flags).unwrap();
        std::fs::read(self.path(name)).unwrap()
    }

    fn library(&self) -> Vec<u8> {
        let members: Vec<Member> = LIBRARY
            .iter()
            .map(|(name, source)| Member {
                name: (*name).to_owned(),
                data: self.compile(name, source),
                symbols: vec![],
            })
            .collect();
        archive::write(&members)
    }

    fn split(&self) -> Nonshared {
        let set = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|n| (*n).to_owned()).collect() };
        let split = Split {
            baseline: &set(&["old", "counter"]),
            new: &set(&["fresh", "waiters", "old_again", "counts", "nowhere"]),
            replaced: &BTreeSet::new(),
            refused: &BTreeMap::new(),
        };
        nonshared::split(Path::new("library.a"), &self.library(), &split).unwrap()
    }

    /// Links a program with the baseline's shared library and the archive, and runs it.
    fn run(&self, archive: &[u8], main: &str) -> Result<i32, String> {
        self.compile("baseline.o", BASELINE);
        self.gxx(&["-shared", "-o", "libbaseline.so", "baseline.o"])?;
        std::fs::write(self.path("libnew.a"), archive).unwrap();
        self.compile("main.o", main);
        self.gxx(&["-o", "program", "main.o", "-L.", "-lbaseline", "-lnew", "-Wl,-rpath,$ORIGIN"])?;
        let status = Command::new(self.path("program")).status().map_err(|e| e.to_string())?;
        status.code().ok_or_else(|| status.to_string())
    }
}

#[test]
fn the_archive_has_what_is_new_and_nothing_else() {
    let Some(bench) = Bench::new() else { return };
    let Nonshared { members, report } = bench.split();
    let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(&report.covered), ["fresh", "old_again", "waiters"]);
    assert_eq!(names(&report.missing), ["nowhere"]);
    assert_eq!(names(&report.helpers), ["helper"]);
    assert_eq!(report.aliases.get("old_again").map(String::as_str), Some("old"));
    assert!(report.refused["counts"].contains("state.o"), "{:?}", report.refused);
    assert!(report.initializers.is_empty(), "the initialiser of what was refused is gone");
    assert!(report.unique.contains("_ZZ4poolvE7waiters"), "{:?}", report.unique);
    let defined: Vec<String> =
        members.iter().flat_map(|m| &m.symbols).map(|s| String::from_utf8_lossy(s).into_owned()).collect();
    for absent in ["old", "counter", "unrelated", "counts"] {
        assert!(!defined.iter().any(|name| name == absent), "{absent} in {defined:?}");
    }
}

#[test]
fn what_is_split_links_and_shares_the_state_of_the_baseline() {
    let Some(bench) = Bench::new() else { return };
    let archive = archive::write(&bench.split().members);
    let main = "extern \"C\" int fresh(), old_again(), old(); int main() { return fresh() + old_again() + old() - 126; }";
    // 41 + 1, 42, 43: one counter for all three, also for the copy of the code under another name.
    assert_eq!(bench.run(&archive, main), Ok(1));
}

#[test]
fn exceptions_pass_through_helpers() {
    let Some(bench) = Bench::new() else { return };
    let archive = archive::write(&bench.split().members);
    let main = "extern \"C\" int fresh(); extern \"C\" int counter;\n\
                int main() { counter = -9; try { return fresh(); } catch (int n) { return -n; } }";
    // The unwind table was cut down: the records that are left must still belong to their functions.
    assert_eq!(bench.run(&archive, main), Ok(8));
}

#[test]
fn what_must_be_once_in_a_process_is_not_there() {
    let Some(bench) = Bench::new() else { return };
    let archive = archive::write(&bench.split().members);
    let error = bench.run(&archive, "extern \"C\" int counts(); int main() { return counts(); }");
    assert!(error.unwrap_err().contains("undefined reference to `counts'"));
}

#[test]
fn only_unique_symbols_leave_a_library_until_more_is_exposed() {
    let Some(bench) = Bench::new() else { return };
    let nonshared = bench.split();
    let bytes = archive::write(&nonshared.members);
    let exports = |bytes: &[u8]| -> BTreeMap<String, Binding> {
        std::fs::write(bench.path("whole.a"), bytes).unwrap();
        bench.compile("baseline.o", BASELINE);
        bench.gxx(&["-shared", "-o", "libbaseline.so", "baseline.o"]).unwrap();
        let whole = [
            "-shared",
            "-Wl,-z,defs",
            "-Wl,--whole-archive",
            "whole.a",
            "-Wl,--no-whole-archive",
            "-L.",
            "-lbaseline",
        ];
        bench.gxx(&[&whole[..], &["-o", "whole.so"]].concat()).unwrap();
        let bytes = std::fs::read(bench.path("whole.so")).unwrap();
        let object = abiaudit_elf::Object::from_bytes(&bytes, &abiaudit_elf::Wants::default()).unwrap();
        object.symbols.exported().map(|s| (object.symbols.name_text(s), s.binding())).collect()
    };
    let hidden = exports(&bytes);
    assert_eq!(hidden.get("_ZZ4poolvE7waiters"), Some(&Binding::Unique), "{hidden:?}");
    assert!(!hidden.contains_key("fresh"), "{hidden:?}");
    let exposed =
        exports(&nonshared::expose(Path::new("whole.a"), &bytes, &nonshared.report.covered).unwrap());
    for name in &nonshared.report.covered {
        assert!(exposed.contains_key(name), "{name} in {exposed:?}");
    }
    assert!(!exposed.contains_key("helper"), "{exposed:?}");
}

#[test]
fn the_same_library_gives_the_same_bytes() {
    let Some(bench) = Bench::new() else { return };
    assert_eq!(archive::write(&bench.split().members), archive::write(&bench.split().members));
}
