//! `abiaudit check` beside other inputs: `--with`, `--import`, `--trace`, `--baseline`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use abiaudit_testing::{Arch, ElfWriter, TestWheel};
use common::{Run, abiaudit, broken, folder, run};
use serde_json::Value;

const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

fn module(needed: &str, call: &str) -> ElfWriter {
    ElfWriter::new(Arch::X86_64).needed(needed).runpath("$ORIGIN").undefined(call).define("PyInit_m")
}

/// A package whose module uses the OpenMP runtime that it brings.
fn openmp(name: &str, soname: &str) -> TestWheel {
    let functions = (0..50).flat_map(|n| [format!("__kmpc_f{n}"), format!("GOMP_f{n}")]);
    let functions = functions.chain(["__kmpc_fork_call".to_owned(), "GOMP_parallel".to_owned()]);
    let runtime = functions.fold(ElfWriter::new(Arch::X86_64).soname(soname), ElfWriter::define);
    TestWheel::new(name, "1", TAGS)
        .file(&format!("{name}/__init__.py"), "from . import m\n")
        .elf(&format!("{name}/m.so"), &module(soname, "__kmpc_fork_call"))
        .elf(&format!("{name}/{soname}"), &runtime)
}

/// A package without a runtime.
fn plain(version: &str, needed: &str) -> TestWheel {
    TestWheel::new("plain", version, TAGS)
        .file("plain/__init__.py", "from . import m\n")
        .elf("plain/m.so", &module(needed, "PyModule_Create2"))
}

const LLVM: &str = "llvm-1-cp312-cp312-manylinux_2_28_x86_64.whl";
const INTEL: &str = "intel-1-cp312-cp312-manylinux_2_28_x86_64.whl";
const PLAIN: &str = "plain-1-cp312-cp312-manylinux_2_28_x86_64.whl";
const NEWER: &str = "plain-2-cp312-cp312-manylinux_2_28_x86_64.whl";

fn check(args: &[&str]) -> Run {
    let folder = folder();
    openmp("llvm", "libomp.so").write(folder.path());
    openmp("intel", "libiomp5.so").write(folder.path());
    plain("1", "libm.so.6").write(folder.path());
    plain("2", "libopenblas.so.0").write(folder.path());
    broken(folder.path());
    let base = ["check", "--no-config", "-f", "json", "--select", "ABI3"];
    run(abiaudit().args(base).args(args).current_dir(folder.path()))
}

/// Wheel, rule, severity and end of the message of each finding.
fn findings(run: &Run) -> Vec<(String, String, String, String)> {
    let report = run.json();
    let wheels = report["wheels"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let each = wheels.iter().flat_map(|wheel| {
        let findings = wheel["findings"].as_array().cloned().unwrap_or_default();
        findings.into_iter().map(|finding| {
            let message = text(&finding["message"]);
            let end = message.rsplit(", ").next().unwrap_or_default().to_owned();
            (text(&wheel["name"]), text(&finding["rule"]), text(&finding["severity"]), end)
        })
    });
    each.collect()
}

fn openmp_error(wheel: &str, when: &str) -> Vec<(String, String, String, String)> {
    vec![(wheel.to_owned(), "ABI307".to_owned(), "error".to_owned(), when.to_owned())]
}

#[test]
fn without_others_nothing_is_simulated() {
    let run = check(&[LLVM, INTEL]);
    assert_eq!((findings(&run), run.code), (vec![], Some(0)));
}

#[test]
fn an_input_is_imported_first_and_last() {
    let run = check(&[LLVM, PLAIN, "--with", INTEL]);
    assert_eq!(findings(&run), openmp_error("llvm", "in either order of llvm 1 and intel 1"));
    assert_eq!(run.code, Some(1));
    let wheels = run.json()["wheels"].as_array().map(Vec::len);
    assert_eq!(wheels, Some(2), "what is beside is not judged");
}

#[test]
fn two_imports_are_tried_in_both_orders_and_three_in_one() {
    let run = check(&[LLVM, INTEL, "--import", "llvm,intel"]);
    assert_eq!(findings(&run), openmp_error("llvm", "in either order of llvm 1 and intel 1"), "said once");
    let run = check(&[LLVM, INTEL, PLAIN, "--import", "plain,intel,llvm"]);
    assert_eq!(findings(&run), openmp_error("llvm", "when intel 1 is imported before llvm 1"));
    let run = check(&[LLVM, "--with", INTEL, "--import", "llvm"]);
    assert_eq!(findings(&run), vec![], "the other is not imported");
}

#[test]
fn a_trace_has_one_order() {
    let folder = folder();
    let trace = folder.path().join("trace");
    let line = |name: &str| {
        format!(
            "      7:\tfile=/v/lib/python3.12/site-packages/{name}/m.so [0];  dynamically loaded by /v/bin/python [0]\n"
        )
    };
    std::fs::write(&trace, format!("      7:\t scope 0: python\n{}{}", line("intel"), line("llvm"))).unwrap();
    let run = check(&[LLVM, "--with", INTEL, "--trace", trace.to_str().unwrap()]);
    assert_eq!(findings(&run), openmp_error("llvm", "when intel 1 is imported before llvm 1"));
}

#[test]
fn the_evidence_names_the_other_distribution_and_the_order() {
    let report = check(&[LLVM, "--with", INTEL]).json();
    let evidence = report["wheels"][0]["findings"][0]["evidence"].as_array().cloned().unwrap_or_default();
    let notes: Vec<&str> = evidence.iter().filter_map(|one| one["note"].as_str()).collect();
    assert!(notes.contains(&"in either order of llvm 1 and intel 1"), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("intel 1: ")), "{notes:?}");
    assert!(evidence.iter().any(|one| one["member"] == "intel/libiomp5.so"), "{evidence:?}");
}

#[test]
fn a_baseline_is_compared_and_not_judged() {
    let run = check(&[NEWER, "--baseline", PLAIN]);
    let found = findings(&run);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].0.as_str(), found[0].1.as_str(), found[0].2.as_str()),
        ("plain", "ABI308", "warning")
    );
    assert!(findings(&check(&[NEWER, "--baseline", NEWER])).is_empty());
    assert!(findings(&check(&[NEWER])).is_empty());
}

#[test]
fn trouble() {
    for (args, said) in [
        (&[LLVM, "--with", "broken-1.0-py3-none-any.whl"][..], "broken-1.0-py3-none-any.whl"),
        (&[LLVM, "--baseline", "gone.whl"], "gone.whl"),
        (&[LLVM, "--import", "nothing"], "no input has the module nothing"),
        (&[LLVM, "--trace", "gone"], "cannot read gone"),
        (&[LLVM, "--trace", "x", "--import", "llvm"], "--import"),
    ] {
        let run = check(args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(run.stderr.contains(said), "{args:?}: {}", run.stderr);
    }
    // An input that cannot be read does not keep the others from being judged.
    let run = check(&["broken-1.0-py3-none-any.whl", LLVM, "--with", INTEL]);
    assert_eq!((run.code, findings(&run).len()), (Some(2), 1));
    assert_eq!(run.json()["wheels"][0]["path"], "broken-1.0-py3-none-any.whl", "each keeps its place");
}
