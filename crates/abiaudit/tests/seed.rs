//! The two crashes that abiaudit began with, each built from source, predicted by `check`, shown by `confirm` and named
//! by `triage` from the backtrace that gdb prints of the very process.
//!
//! They are told in Chainguard's "This Shit is Hard: Building hardened PyTorch wheels with upstream parity": a call of
//! address 0 in `std::call_once` when optree is imported after torch, and a crash in a facet that no stream calls when two
//! wheels have a static libstdc++. With the libstdc++ of GCC 12 and before, the second shows as a `std::bad_cast`.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_confirm::{MODULE_SOURCE, Stop, compile};
use abiaudit_testing::TestWheel;
use common::{Run, abiaudit, folder, run};
use serde_json::Value;

const TAGS: &str = "cp37-abi3-linux_x86_64";

/// Calls `call_once` when it is imported, as optree does with pybind11's `gil_safe_call_once_and_store`.
const ONCE: &str = "#include <mutex>\n#include <sstream>\n\
    static std::once_flag flag;\n\
    static const bool at_import = [] {\n\
      std::ostringstream out;\n\
      std::call_once(flag, [&out] { out << 1; });\n\
      return !out.str().empty();\n\
    }();\n";

/// Prints a number when it is imported, and looks the facet up that the stream used. With GCC 13 and newer the first
/// crashes; before, it prints nothing, and the second throws.
const FACETS: &str = "#include <iterator>\n#include <locale>\n#include <sstream>\n\
    static const bool at_import = []() noexcept {\n\
      std::ostringstream out;\n\
      out << 42L;\n\
      const auto &facet = std::use_facet<std::num_put<char>>(out.getloc());\n\
      facet.put(std::ostreambuf_iterator<char>(out), out, ' ', 42L);\n\
      return out.str() == \"4242\";\n\
    }();\n";

/// Hides the C++ names of the runtime and forgets those in C.
const HALF_HIDDEN: &str =
    "{ local: extern \"C++\" { std::*; \"typeinfo for std::*\"; \"vtable for std::*\"; }; };\n";

/// Where things are built. `None`, said loudly, if the machine lacks a tool.
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    #[allow(clippy::print_stderr, reason = "a skipped test must say so")]
    fn open() -> Option<Self> {
        let works = |program: &str, args: &[&str]| {
            Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
        };
        for (program, args) in [
            ("g++", &["--version"][..]),
            ("python3", &["-c", "import venv"]),
            ("python3", &["-m", "pip", "--version"]),
        ] {
            if !works(program, args) {
                eprintln!("SKIPPED: {program} {} does not work on this machine", args.join(" "));
                return None;
            }
        }
        Some(Self { folder: folder() })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A shared object of `source`; a Python module if it has a name.
    fn build(&self, module: Option<&str>, source: &str, flags: &[&str]) -> Vec<u8> {
        let at = |name: &str| self.path().join(name);
        let (code, module_code, output) = (at("code.cpp"), at("module.cpp"), at("out.so"));
        std::fs::write(&code, source).expect("the folder can be written to");
        std::fs::write(&module_code, MODULE_SOURCE).expect("the folder can be written to");
        std::fs::write(at("half_hidden.map"), HALF_HIDDEN).expect("the folder can be written to");
        let script = format!("-Wl,--version-script={}", at("half_hidden.map").display());
        let define = format!("-DABIAUDIT_MODULE={}", module.unwrap_or_default());
        let mut all: Vec<&str> = vec!["-shared"];
        all.extend(flags.iter().map(|&flag| if flag == "HALF_HIDDEN" { script.as_str() } else { flag }));
        let mut inputs = vec![code.as_path()];
        if module.is_some() {
            all.push(&define);
            inputs.push(&module_code);
        }
        compile("g++", &inputs, &output, &all, &Stop::default()).expect("g++ builds it");
        std::fs::read(output).expect("what g++ made")
    }

    fn confirm(&self, args: &[&str]) -> Run {
        run(abiaudit()
            .arg("confirm")
            .args(args)
            .args(["--probe", "none", "--keep", "kept"])
            .current_dir(self.path()))
    }

    /// What `check` finds in the first wheel beside the others, by rule.
    fn check(&self, args: &[&str]) -> Vec<(String, Value)> {
        let result =
            run(abiaudit().args(["check", "--no-config", "-f", "json"]).args(args).current_dir(self.path()));
        let findings = result.json()["wheels"][0]["findings"].as_array().expect("findings").clone();
        findings
            .into_iter()
            .map(|finding| (finding["rule"].as_str().expect("a rule").to_owned(), finding))
            .collect()
    }

    /// Names what gdb says of the process that `confirm` kept. `None`, said loudly, without gdb.
    #[allow(clippy::print_stderr, reason = "a skipped test must say so")]
    fn triage(&self, code: &str) -> Option<Value> {
        let python = self.path().join("kept/environment/bin/python");
        let mut gdb = Command::new("gdb");
        gdb.args([
            "-q",
            "-batch",
            "-ex",
            "set debuginfod enabled off",
            "-ex",
            "run",
            "-ex",
            "backtrace",
            "--args",
        ]);
        let Ok(output) = gdb.arg(python).args(["-I", "-c", code]).current_dir(self.path()).output() else {
            eprintln!("SKIPPED: there is no gdb on this machine, so triage gets no backtrace");
            return None;
        };
        let text = [output.stdout, output.stderr].concat();
        let backtrace: PathBuf = self.path().join("backtrace.txt");
        std::fs::write(&backtrace, &text).expect("the folder can be written to");
        let result = run(abiaudit().args(["triage", "--json"]).arg(&backtrace));
        assert_eq!(result.code, Some(0), "{}\n{result:?}", String::from_utf8_lossy(&text));
        Some(result.json())
    }
}

#[test]
fn call_once_jumps_to_address_0_when_optree_follows_torch() {
    let Some(workshop) = Workshop::open() else { return };
    let deps = workshop.build(
        None,
        "int nothing;\n",
        &["-Wl,--no-as-needed", "-Wl,-soname,libtorch_global_deps.so"],
    );
    let preload = "import ctypes, os\n\
        deps = os.path.join(os.path.dirname(__file__), 'lib', 'libtorch_global_deps.so')\n\
        ctypes.CDLL(deps, mode=ctypes.RTLD_GLOBAL)\n\
        from torch import _C\n";
    TestWheel::new("torch", "1", TAGS)
        .file("torch/__init__.py", preload)
        .program("torch/lib/libtorch_global_deps.so", deps)
        .program("torch/_C.abi3.so", workshop.build(Some("_C"), "int nothing;\n", &[]))
        .write(workshop.path());
    let once = workshop.build(Some("_C"), ONCE, &["-static-libstdc++", "HALF_HIDDEN"]);
    TestWheel::new("optree", "1", TAGS)
        .file("optree/__init__.py", "from optree import _C\n")
        .program("optree/_C.abi3.so", once)
        .write(workshop.path());
    let (torch, optree) = ("torch-1-cp37-abi3-linux_x86_64.whl", "optree-1-cp37-abi3-linux_x86_64.whl");

    let findings = workshop.check(&[optree, "--with", torch, "--import", "torch,optree"]);
    let split = findings.iter().find(|(rule, _)| rule == "ABI209").map(|(_, finding)| finding);
    let message = split.unwrap_or_else(|| panic!("{findings:?}")).to_string();
    assert!(message.contains("__once_proxy") && message.contains("libstdc++.so.6"), "{message}");

    let confirmed = workshop.confirm(&[optree, "--with", torch, "--import", "torch,optree"]);
    assert_eq!(confirmed.code, Some(0), "{confirmed:?}");
    assert!(confirmed.stdout.contains("torch, optree (RTLD_LOCAL): BROKEN, as predicted"), "{confirmed:?}");
    assert!(confirmed.stdout.contains("import of optree SIGSEGV"), "{confirmed:?}");
    assert!(confirmed.stdout.contains("predicted: once: "), "{confirmed:?}");

    if let Some(diagnosis) = workshop.triage("import torch, optree") {
        assert_eq!(diagnosis["recognised"][0]["id"], "once-null-call", "{diagnosis}");
    }
    std::fs::remove_dir_all(workshop.path().join("kept")).expect("what was kept");
    let alone = workshop.confirm(&[optree, "--import", "optree"]);
    assert!(alone.stdout.contains("optree (RTLD_LOCAL): fine, as predicted"), "{alone:?}");
}

#[test]
fn streams_break_when_two_wheels_have_a_static_runtime() {
    let Some(workshop) = Workshop::open() else { return };
    for name in ["first", "second"] {
        TestWheel::new(name, "1", TAGS)
            .program(&format!("{name}.abi3.so"), workshop.build(Some(name), FACETS, &["-static-libstdc++"]))
            .write(workshop.path());
    }
    let (first, second) = ("first-1-cp37-abi3-linux_x86_64.whl", "second-1-cp37-abi3-linux_x86_64.whl");

    let findings = workshop.check(&[second, "--with", first, "--import", "first,second"]);
    let collide = findings.iter().find(|(rule, _)| rule == "ABI208").map(|(_, finding)| finding);
    let message = collide.unwrap_or_else(|| panic!("{findings:?}")).to_string();
    assert!(message.contains("first.abi3.so") && message.contains("second.abi3.so"), "{message}");

    let confirmed = workshop.confirm(&[first, second]);
    assert_eq!(confirmed.code, Some(0), "{confirmed:?}");
    assert!(confirmed.stdout.contains("first, second (RTLD_LOCAL): BROKEN, as predicted"), "{confirmed:?}");
    assert!(confirmed.stdout.contains("import of second SIG"), "{confirmed:?}");

    if let Some(diagnosis) = workshop.triage("import first, second") {
        let ids: Vec<_> =
            diagnosis["recognised"].as_array().expect("a list").iter().map(|r| &r["id"]).collect();
        assert!(ids.iter().any(|id| *id == "facet-mismatch" || *id == "bad-cast-in-stream"), "{diagnosis}");
    }
}
