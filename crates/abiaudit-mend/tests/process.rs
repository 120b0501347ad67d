//! Cured modules in one process with others: every order, every mode, values and exceptions.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test speaks and fails")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_edit::{Options, edit};
use abiaudit_mend::{Method, cure};
use common::{Case, Compiler};

const STATIC: &str = "-static-libstdc++";
const MODES: [&str; 4] = ["ll", "gg", "gl", "lg"];

struct Lab {
    compiler: Compiler,
    dynamic: PathBuf,
}

impl Lab {
    fn new() -> Option<Self> {
        Self::with("g++")
    }

    fn with(name: &'static str) -> Option<Self> {
        let compiler = Compiler::named(name)?;
        std::fs::write(compiler.path().join("runner.c"), include_str!("common/runner.c")).unwrap();
        compiler.run(&["-x", "c", "runner.c", "-o", "runner", "-ldl"]);
        let dynamic = compiler.module("dynamic", &[]);
        Some(Self { compiler, dynamic })
    }

    /// The module with this cure.
    fn cured(module: &Path, method: Method) -> PathBuf {
        let case = Case::new(module);
        let cure = cure(&case.patient(), &[method]).unwrap();
        let edited = edit(&case.bytes, &cure.plan, &Options::default()).unwrap();
        let path = module.with_extension(format!("{}.so", method.name()));
        std::fs::write(&path, &edited.bytes).unwrap();
        path
    }

    /// What the runner says in each mode and order; `Err` with the first that is not fine.
    fn together(&self, one: &Path, other: &Path) -> Result<Vec<String>, String> {
        let mut said = Vec::new();
        for mode in MODES {
            for (first, second) in [(one, other), (other, one)] {
                for preload in [None, Some("libstdc++.so.6")] {
                    let mut runner = Command::new(self.compiler.path().join("runner"));
                    runner.arg(first).arg(second).arg(mode);
                    if let Some(preload) = preload {
                        runner.env("LD_PRELOAD", preload);
                    }
                    let output = runner.output().unwrap();
                    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                    if !output.status.success() {
                        let errors = String::from_utf8_lossy(&output.stderr);
                        return Err(format!("{runner:?}: {} {text} {errors}", output.status));
                    }
                    said.push(text);
                }
            }
        }
        Ok(said)
    }
}

/// Without a cure, each of these breaks in some order or mode.
#[test]
fn share_makes_one_of_two() {
    for compiler in ["g++", "g++-11", "g++-13", "g++-14"] {
        share_with(compiler);
    }
}

fn share_with(compiler: &'static str) {
    let Some(lab) = Lab::with(compiler) else { return };
    for flags in [&[STATIC][..], &[STATIC, "-static-libgcc"], &[STATIC, "-fno-gnu-unique"]] {
        let module = lab.compiler.module("m", flags);
        assert!(lab.together(&module, &lab.dynamic).is_err(), "{flags:?} breaks");
        let cured = Lab::cured(&module, Method::Share);
        let said = lab.together(&cured, &lab.dynamic).unwrap();
        let one = said.iter().find(|line| *line != "ok same same same same");
        assert_eq!(one, None, "{flags:?}");
    }
}

#[test]
fn two_shared_modules_share() {
    let Some(lab) = Lab::new() else { return };
    let one = Lab::cured(&lab.compiler.module("one", &[STATIC]), Method::Share);
    let two = Lab::cured(&lab.compiler.module("two", &[STATIC]), Method::Share);
    let said = lab.together(&one, &two).unwrap();
    assert!(said.iter().all(|line| line == "ok same same same same"), "{said:?}");
}

#[test]
fn hide_keeps_the_copies_apart() {
    let Some(lab) = Lab::new() else { return };
    let half = lab.compiler.version_script("{ local: extern \"C++\" { std::*; }; };");
    for flags in
        [&[STATIC][..], &[STATIC, "-Wl,-Bsymbolic"], &[STATIC, "-Wl,-Bsymbolic-functions"], &[STATIC, &half]]
    {
        let module = lab.compiler.module("m", flags);
        assert!(lab.together(&module, &lab.dynamic).is_err(), "{flags:?} breaks");
        let cured = Lab::cured(&module, Method::Hide);
        lab.together(&cured, &lab.dynamic).unwrap();
    }
}

#[test]
fn demote_lets_each_number_its_own_facets() {
    let Some(lab) = Lab::new() else { return };
    for flags in [&[STATIC][..], &[STATIC, "-Wl,-Bsymbolic"], &[STATIC, "-Wl,-Bsymbolic-functions"]] {
        let module = lab.compiler.module("m", flags);
        let cured = Lab::cured(&module, Method::Demote);
        lab.together(&cured, &lab.dynamic).unwrap();
    }
}
