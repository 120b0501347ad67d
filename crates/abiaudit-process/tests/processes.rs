//! Wheels in, processes out: nothing of the machine takes part.

use std::path::PathBuf;

use abiaudit_loader::binding::{ObjectId, Process, Provider, Via};
use abiaudit_process::{Cause, Followed, Follower, Opened, Plan, Platform, Releases, Site, SystemBase, run};
use abiaudit_scan::{Options, Subject, scan};
use abiaudit_testing::{Arch, ElfWriter, SymbolSpec, TestWheel};

const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

fn elf() -> ElfWriter {
    ElfWriter::new(Arch::X86_64)
}

/// A module that needs libraries and calls functions.
fn module(needed: &[&str], calls: &[&str]) -> ElfWriter {
    let writer = needed.iter().fold(elf().define("PyInit_m"), ElfWriter::needed);
    calls.iter().fold(writer.runpath("$ORIGIN"), ElfWriter::undefined)
}

fn library(soname: &str, defines: &[&str]) -> ElfWriter {
    defines.iter().fold(elf().soname(soname), ElfWriter::define)
}

/// A wheel of one package that imports its module when it is imported.
fn wheel(name: &str, module: &ElfWriter) -> TestWheel {
    TestWheel::new(name, "1", TAGS)
        .elf(&format!("{name}/m.so"), module)
        .file(&format!("{name}/__init__.py"), "from . import m\n")
}

struct Inputs {
    _folder: tempfile::TempDir,
    subjects: Vec<Subject>,
}

fn inputs(wheels: &[TestWheel]) -> Inputs {
    let folder = tempfile::tempdir().expect("a folder");
    let paths: Vec<PathBuf> = wheels.iter().map(|wheel| wheel.write(folder.path())).collect();
    let subjects = paths.iter().flat_map(|path| scan(path, &Options::default()).expect("a wheel")).collect();
    Inputs { _folder: folder, subjects }
}

impl Inputs {
    fn site(&self) -> Site<'_> {
        Site::new(&self.subjects, Platform::of(&self.subjects).expect("a platform"))
    }
}

fn follow(site: &Site<'_>, names: &[&str]) -> Plan {
    let mut follower = Follower::new(site);
    for name in names {
        assert_eq!(follower.import(name), Followed::Found, "{name}");
    }
    follower.finish()
}

/// Short paths of what is opened.
fn opened(site: &Site<'_>, plan: &Plan) -> Vec<String> {
    let name = |opened: &Opened| match opened {
        Opened::File(file) => site.files[*file].short_path().to_owned(),
        Opened::Name(name) => name.clone(),
    };
    plan.openings.iter().map(|opening| name(&opening.opened)).collect()
}

struct Simulated<'i> {
    site: Site<'i>,
    base: SystemBase,
    process: Process,
}

fn simulate<'i>(inputs: &'i Inputs, imports: &[&str]) -> Simulated<'i> {
    let site = inputs.site();
    let base = SystemBase::new(&site, Releases::default()).expect("a base");
    let plan = follow(&site, imports);
    let process = run(&site, &base, &plan);
    Simulated { site, base, process }
}

impl Simulated<'_> {
    fn name(&self, object: ObjectId) -> &str {
        match object {
            ObjectId::File(file) => self.site.files[file as usize].short_path(),
            ObjectId::System(library) => self.base.soname(library as usize),
        }
    }

    /// Who serves a reference, and by which rule.
    fn serves(&self, path: &str, symbol: &str) -> (&str, Via) {
        let file = self.site.file_below(path).expect("the file");
        let symbols = &self.site.files[file].object.symbols;
        let is_it = |binding: &&abiaudit_loader::binding::Binding| {
            symbols.get(binding.symbol).is_some_and(|found| symbols.name(found) == symbol.as_bytes())
        };
        let binding = self.process.bindings.of(file as u32).iter().find(is_it).expect("the reference");
        let provider = binding.provider.object().map_or("nothing", |object| self.name(object));
        (provider, binding.via)
    }
}

#[test]
fn the_system_serves_what_it_has() {
    let stream = "_ZNSolsEi";
    let m = module(
        &["libstdc++.so.6", "libz.so.1"],
        &["PyModule_Create2", "memcpy", "inflate", stream, "no_such_function"],
    );
    let inputs = inputs(&[wheel("a", &m)]);
    let it = simulate(&inputs, &["a"]);
    assert_eq!(it.serves("a/m.so", "PyModule_Create2"), ("python", Via::Global));
    assert_eq!(it.serves("a/m.so", "memcpy"), ("libc.so.6", Via::Global));
    assert_eq!(it.serves("a/m.so", stream), ("libstdc++.so.6", Via::Local));
    assert_eq!(it.serves("a/m.so", "inflate"), ("libz.so.1", Via::Local));
    assert_eq!(it.serves("a/m.so", "no_such_function"), ("nothing", Via::Nothing));
    assert_eq!(it.process.fatal().count(), 1);
    assert_eq!(it.process.missing, []);
}

#[test]
fn what_is_promised_but_has_no_table_serves_nothing() {
    let m = module(&["libX11.so.6", "libnobody.so.1"], &["XOpenDisplay"]);
    let inputs = inputs(&[wheel("a", &m)]);
    let it = simulate(&inputs, &["a"]);
    assert_eq!(it.serves("a/m.so", "XOpenDisplay").0, "nothing");
    let missing: Vec<_> = it.process.missing.iter().map(|missing| missing.name.as_str()).collect();
    assert_eq!(missing, ["libnobody.so.1"]);
}

/// Two wheels that carry a library of one soname: the first that is loaded serves both, as scikit-learn's and xgboost's
/// libgomp do (threadpoolctl, multiple_openmp.md).
fn two_copies() -> [TestWheel; 2] {
    ["a", "b"].map(|name| {
        let m = module(&["libshared.so.1"], &["shared"]);
        wheel(name, &m).elf(&format!("{name}/libshared.so.1"), &library("libshared.so.1", &["shared"]))
    })
}

#[test]
fn the_order_of_imports_decides_on_copies_of_one_soname() {
    let inputs = inputs(&two_copies());
    let ab = simulate(&inputs, &["a", "b"]);
    assert_eq!(ab.serves("b/m.so", "shared"), ("a/libshared.so.1", Via::Local));
    assert_eq!(ab.process.loads.iter().filter(|load| matches!(load.object, ObjectId::File(_))).count(), 3);
    let ba = simulate(&inputs, &["b", "a"]);
    assert_eq!(ba.serves("a/m.so", "shared"), ("b/libshared.so.1", Via::Local));
    let leaves = ba.process.interpositions().into_iter().filter(|found| found.leaves_group).count();
    assert_eq!(leaves, 0, "it is what the module needs, by name");
}

#[test]
fn the_first_of_a_list_serves() {
    // The module needs its own library after one that exports the same name.
    let m = module(&["libfirst.so", "libsecond.so"], &["both"]);
    let a = wheel("a", &m)
        .elf("a/libfirst.so", &library("libfirst.so", &["both"]))
        .elf("a/libsecond.so", &library("libsecond.so", &["both"]));
    let inputs = inputs(&[a]);
    let it = simulate(&inputs, &["a"]);
    assert_eq!(it.serves("a/m.so", "both"), ("a/libfirst.so", Via::Local));
}

/// torch puts the libraries that libtorch_global_deps.so needs into the global scope before torch._C is loaded
/// (`policies/preloads.toml`), so that a module imported later finds them before its own.
#[test]
fn what_is_global_serves_those_who_come_later() {
    let deps = elf().soname("libtorch_global_deps.so").needed("libgomp.so.1").runpath("$ORIGIN");
    let torch = TestWheel::new("torch", "2", TAGS)
        .file("torch/__init__.py", "from torch._C import *\n")
        .elf("torch/_C.cpython-312-x86_64-linux-gnu.so", &module(&[], &["memcpy"]))
        .elf("torch/lib/libtorch_global_deps.so", &deps)
        .elf("torch/lib/libgomp.so.1", &library("libgomp.so.1", &["GOMP_parallel"]));
    let m = module(&["libgomp-1234.so.1"], &["GOMP_parallel"]);
    let other =
        wheel("other", &m).elf("other/libgomp-1234.so.1", &library("libgomp-1234.so.1", &["GOMP_parallel"]));
    let inputs = inputs(&[torch, other]);

    let first = simulate(&inputs, &["torch", "other"]);
    assert_eq!(first.serves("other/m.so", "GOMP_parallel"), ("torch/lib/libgomp.so.1", Via::Global));
    let found = first.process.interpositions();
    assert!(found.iter().any(|found| found.leaves_group), "{found:?}");
    let last = simulate(&inputs, &["other", "torch"]);
    assert_eq!(last.serves("other/m.so", "GOMP_parallel"), ("other/libgomp-1234.so.1", Via::Local));

    let site = inputs.site();
    let plan = follow(&site, &["torch"]);
    assert_eq!(
        opened(&site, &plan),
        ["torch/lib/libtorch_global_deps.so", "torch/_C.cpython-312-x86_64-linux-gnu.so"]
    );
    assert_eq!(plan.openings.iter().map(|opening| opening.global).collect::<Vec<_>>(), [true, false]);
    assert_eq!(plan.openings[0].cause, Cause::Preload { module: "torch".to_owned() });
    // Without imports too.
    assert!(
        opened(&site, &Plan::everything(&site, &[0]))
            .starts_with(&["torch/lib/libtorch_global_deps.so".to_owned()])
    );
}

#[test]
fn a_unique_definition_is_shared_by_wheels() {
    const UNIQUE_OBJECT: u8 = 10 << 4 | 1;
    let id = "_ZNSt7num_putIcSt19ostreambuf_iteratorIcSt11char_traitsIcEEE2idE";
    let unique = |name: &str| SymbolSpec { info: UNIQUE_OBJECT, ..SymbolSpec::function(name) };
    let copy = |soname: &str| elf().soname(soname).symbol(unique(id)).symbol(unique("_ZN3pkg5stateE"));
    let wheels = ["a", "b"].map(|name| {
        let soname = format!("lib{name}.so");
        let m = module(&[&soname], &["_ZN3pkg5stateE", id]);
        wheel(name, &m).elf(&format!("{name}/{soname}"), &copy(&soname))
    });
    let inputs1 = inputs(&wheels);
    let it = simulate(&inputs1, &["a", "b"]);
    assert_eq!(it.serves("b/m.so", "_ZN3pkg5stateE"), ("a/liba.so", Via::Unique));
    // The system's libstdc++, once loaded, has its facets' ids for all.
    let first = wheel("c", &module(&["libstdc++.so.6"], &[]));
    let inputs2 = inputs(&[first, wheels[1].clone()]);
    let it = simulate(&inputs2, &["c", "b"]);
    assert_eq!(it.serves("b/m.so", id), ("libstdc++.so.6", Via::Unique));
}

#[test]
fn imports_are_followed_depth_first_and_in_order() {
    let m = || module(&[], &["memcpy"]);
    let a = TestWheel::new("a", "1", TAGS)
        .file("a/__init__.py", "import os\nfrom .sub import (\n  one,  # import two\n)\nfrom . import last\n\ndef lazy():\n    from . import never\n")
        .file("a/sub/__init__.py", "try:\n    import missing_elsewhere\nexcept ImportError:\n    from . import fallback\nfrom ..core import *\n")
        .file("a/core.py", "'''import a.never'''\nimport b.m as bm\nimport a.native, a\nif TYPE_CHECKING:\n    import a.never\n")
        .elf("a/sub/one.cpython-312-x86_64-linux-gnu.so", &m())
        .elf("a/sub/fallback.abi3.so", &m())
        .elf("a/native.so", &m())
        .elf("a/last.so", &m())
        .elf("a/never.so", &m());
    let b = TestWheel::new("b", "1", TAGS).file("b/__init__.py", "").elf("b/m.so", &m());
    let inputs = inputs(&[a, b]);
    let site = inputs.site();
    let plan = follow(&site, &["a"]);
    let expected = [
        "a/sub/fallback.abi3.so",
        "b/m.so",
        "a/native.so",
        "a/sub/one.cpython-312-x86_64-linux-gnu.so",
        "a/last.so",
    ];
    assert_eq!(opened(&site, &plan), expected);
    let cause = Cause::Import { module: "b.m".to_owned(), at: Some("a/core.py:2".to_owned()) };
    assert_eq!(plan.openings[1].cause, cause);
    assert_eq!(Follower::new(&site).import("nothing"), Followed::Absent);
    assert_eq!(Follower::new(&site).import("../a"), Followed::Absent);
}

#[test]
fn circular_imports_end() {
    let a = TestWheel::new("a", "1", TAGS)
        .file("a/__init__.py", "from . import x, y\n")
        .file("a/x.py", "from a.y import z\nimport a\n")
        .file("a/y.py", "import a.x\nfrom . import m\n")
        .elf("a/m.so", &module(&[], &["memcpy"]));
    let inputs = inputs(&[a]);
    let site = inputs.site();
    assert_eq!(opened(&site, &follow(&site, &["a", "a"])), ["a/m.so"]);
}

#[test]
fn installed_directories_are_read_like_wheels() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for directory in ["a", "a-1.dist-info"] {
        std::fs::create_dir(root.join(directory)).expect("a directory");
    }
    std::fs::write(root.join("a/__init__.py"), "from . import m").expect("a file");
    std::fs::write(root.join("a/m.so"), module(&[], &["memcpy"]).build().into_bytes()).expect("a file");
    std::fs::write(root.join("a-1.dist-info/METADATA"), "Metadata-Version: 2.1\nName: a\nVersion: 1\n")
        .expect("a file");
    let subjects = scan(root, &Options::default()).expect("a directory");
    let site = Site::new(&subjects, Platform::of(&subjects).expect("a platform"));
    assert_eq!(opened(&site, &follow(&site, &["a"])), ["a/m.so"]);
}

#[test]
fn a_trace_is_laid_over_the_inputs() {
    let inputs = inputs(&two_copies());
    let site = inputs.site();
    let text = "      7:\t scope 0: python\n\
        \x20     7:\tfile=/venv/lib/python3.12/site-packages/b/x/../m.so [0];  dynamically loaded by /venv/bin/python [0]\n\
        \x20     7:\tfile=/usr/lib/python3.12/lib-dynload/_json.so [0];  dynamically loaded by /venv/bin/python [0]\n\
        \x20     7:\tfile=libshared.so.1 [0];  dynamically loaded by /venv/lib/python3.12/site-packages/b/m.so [0]\n";
    let log = abiaudit_process::trace::Log::read(text.as_bytes()).expect("text");
    let plan = log.plan(&site);
    assert_eq!(opened(&site, &plan), ["b/m.so", "libshared.so.1"]);
    assert_eq!(plan.openings[1].caller, site.file_below("b/m.so"));
    assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
}

#[test]
fn musl_compares_no_versions() {
    let m = module(&["libc.musl-x86_64.so.1"], &["memcpy", "PyList_New"]);
    let a = TestWheel::new("a", "1", "cp312-cp312-musllinux_1_2_x86_64")
        .elf("a/m.so", &m)
        .file("a/__init__.py", "from .m import x");
    let inputs = inputs(&[a]);
    let it = simulate(&inputs, &["a"]);
    assert_eq!(it.serves("a/m.so", "memcpy"), ("libc.musl-x86_64.so.1", Via::Global));
    assert_eq!(it.serves("a/m.so", "PyList_New"), ("python", Via::Global));
    assert!(it.process.bindings.iter().all(|b| b.provider != Provider::Unresolved { weak: false }));
}
