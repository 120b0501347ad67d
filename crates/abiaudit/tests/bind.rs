//! `abiaudit bind`: the command on wheels of our own.

mod common;

use abiaudit_testing::{Arch, ElfWriter, TestWheel};
use common::{Run, abiaudit, broken, folder, run};
use snapbox::{assert_data_eq, file};

const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

fn module() -> ElfWriter {
    ElfWriter::new(Arch::X86_64)
        .needed("libstdc++.so.6")
        .runpath("$ORIGIN")
        .undefined("PyModule_Create2")
        .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14")
        .define("PyInit_m")
}

fn library(soname: &str) -> ElfWriter {
    ElfWriter::new(Arch::X86_64).soname(soname).define("GOMP_parallel").define("_ZN3omp3runEv")
}

/// Puts its OpenMP runtime into the global scope, as `policies/preloads.toml` says of this name.
fn torch() -> TestWheel {
    let deps = ElfWriter::new(Arch::X86_64)
        .soname("libtorch_global_deps.so")
        .needed("libgomp.so.1")
        .runpath("$ORIGIN");
    TestWheel::new("torch", "2", TAGS)
        .file("torch/__init__.py", "if TYPE_CHECKING:\n    import other\nfrom torch._C import *\n")
        .elf(
            "torch/_C.cpython-312-x86_64-linux-gnu.so",
            &module().needed("libcudart.so.13").undefined("cudaMalloc"),
        )
        .elf("torch/lib/libtorch_global_deps.so", &deps)
        .elf("torch/lib/libgomp.so.1", &library("libgomp.so.1"))
}

/// Brings an OpenMP runtime of its own.
fn other() -> TestWheel {
    let module = module().needed("libgomp-1234.so.1").undefined("GOMP_parallel").undefined("_ZN3omp3runEv");
    TestWheel::new("other", "1", TAGS)
        .file("other/__init__.py", "from other import m\n")
        .elf("other/m.abi3.so", &module)
        .elf("other/libgomp-1234.so.1", &library("libgomp-1234.so.1"))
}

const TORCH: &str = "torch-2-cp312-cp312-manylinux_2_28_x86_64.whl";
const OTHER: &str = "other-1-cp312-cp312-manylinux_2_28_x86_64.whl";

fn bind(args: &[&str]) -> Run {
    let folder = folder();
    torch().write(folder.path());
    other().write(folder.path());
    broken(folder.path());
    run(abiaudit().arg("bind").args(args).current_dir(folder.path()))
}

fn text(args: &[&str]) -> String {
    let result = bind(args);
    assert_eq!(result.stderr, "");
    let code = result.code.expect("no signal");
    format!("$ abiaudit bind {}\n{}(exit code {code})\n", args.join(" "), result.stdout)
}

/// The newest release moves with the tables.
const RELEASES: [&str; 4] = ["--libc", "2.28", "--gcc", "8.1"];

#[test]
fn both_orders() {
    let args = [&[TORCH, OTHER, "--import", "torch,other", "--order", "both"][..], &RELEASES].concat();
    assert_data_eq!(text(&args), file!["golden/bind.txt"]);
}

#[test]
fn one_symbol() {
    let args = [&[TORCH, "--with", OTHER, "--import", "torch,other", "--symbol", "omp::run"][..], &RELEASES]
        .concat();
    assert_data_eq!(text(&args), file!["golden/bind-symbol.txt"]);
}

#[test]
fn each_reference_has_its_provider() {
    let report = bind(&[OTHER, "--import", "other", "--symbol", "", "-f", "json"]).json();
    let run = &report["runs"][0];
    let module =
        run["objects"].as_array().expect("a list").iter().position(|o| o["name"] == "other/m.abi3.so");
    let mut served = Vec::new();
    for symbol in run["symbols"].as_array().expect("a list") {
        for reference in symbol["references"].as_array().expect("a list") {
            assert_eq!(reference["object"].as_u64(), module.map(|module| module as u64));
            let provider = reference["provider"].as_u64().expect("a provider") as usize;
            let provider = run["objects"][provider]["name"].as_str().expect("a name");
            served.push(format!("{} <- {provider}", symbol["symbol"].as_str().expect("a name")));
        }
    }
    let expected = [
        "GOMP_parallel <- other/libgomp-1234.so.1",
        "PyModule_Create2 <- python",
        "_ZN3omp3runEv <- other/libgomp-1234.so.1",
        "memcpy <- libc.so.6",
    ];
    assert_eq!(served, expected);
}

#[test]
fn only_what_is_unexpected() {
    let result = bind(&[TORCH, OTHER, "--unexpected"]);
    assert!(!result.stdout.contains("served by"), "{result:?}");
    assert!(result.stdout.contains("other/m.abi3.so <- torch/lib/libgomp.so.1: 2"), "{result:?}");
    assert_eq!(result.code, Some(0));
}

#[test]
fn json_says_why_something_is_opened() {
    let report = bind(&[OTHER, TORCH, "--import", "other,torch", "-f", "json"]).json();
    assert_eq!(report["schema"], "abiaudit.bindings/1");
    let opened = report["runs"][0]["opened"].as_array().expect("a list");
    let names: Vec<_> = opened.iter().filter_map(|one| one["name"].as_str()).collect();
    let expected =
        ["other/m.abi3.so", "torch/lib/libtorch_global_deps.so", "torch/_C.cpython-312-x86_64-linux-gnu.so"];
    assert_eq!(names, expected);
    assert_eq!(opened[0]["because"], "import other.m, other/__init__.py:1");
    assert_eq!(report["runs"][0]["missing"][0]["providers"][0], "nvidia-cuda-runtime");
    assert_eq!(report["runs"][0]["unresolved"][0]["perhaps"][0], "libcudart.so.13");
}

#[test]
fn pages_and_graphs_go_to_files() {
    let folder = folder();
    torch().write(folder.path());
    for (format, start) in [("html", "<!DOCTYPE html>"), ("dot", "digraph run0 {")] {
        let result =
            run(abiaudit().args(["bind", TORCH, "-f", format, "-o", format]).current_dir(folder.path()));
        assert_eq!((result.code, result.stdout.as_str()), (Some(0), ""), "{result:?}");
        let written = std::fs::read_to_string(folder.path().join(format)).expect("the file is there");
        assert!(written.starts_with(start), "{written}");
    }
}

#[test]
fn trouble_is_said_and_counts() {
    let result = bind(&[OTHER, "broken-1.0-py3-none-any.whl", "--import", "other"]);
    assert_eq!(result.code, Some(2));
    assert!(result.stdout.contains("broken-1.0-py3-none-any.whl: "), "{result:?}");
    assert!(result.stdout.contains("other/m.abi3.so"), "{result:?}");
    let result = bind(&[OTHER, "--import", "nothing"]);
    assert_eq!(result.code, Some(2));
    assert!(result.stderr.contains("no input has the module nothing"), "{result:?}");
    assert_eq!(bind(&[OTHER, "--import", "other", "--trace", "x"]).code, Some(2));
    assert_eq!(bind(&[OTHER, "--libc", "new"]).code, Some(2));
}
