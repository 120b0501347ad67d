//! A package from the index, built from its source distribution in the toolchain's environment.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Bench, MAIN_TARGET};
use crate::shell;

/// Requirement and module; each is C++ behind setuptools.
const PACKAGES: &[(&str, &str)] = &[("kiwisolver==1.4.8", "kiwisolver")];

/// Builds each package as it is and with the toolchain; gives how many miss the target or cannot be imported.
pub fn run(bench: &Bench) -> Result<u32> {
    let toolchain = bench.toolchain("g++", MAIN_TARGET)?;
    let mut failures = 0;
    for (requirement, module) in PACKAGES {
        let environment = shell::venv("toolchain", &["pip", "setuptools"])?;
        let build = |name: &str, path: Option<&PathBuf>| -> Result<(PathBuf, String)> {
            let out = bench.scratch.join(name);
            let mut pip = Command::new(environment.join("bin/python"));
            pip.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir", "--no-binary"])
                .arg(module);
            pip.arg("-w").arg(&out).arg(requirement);
            if let Some(path) = path {
                pip.env("COMPILER_PATH", path);
            }
            shell::run(&mut pip)?;
            let wheel = std::fs::read_dir(&out)?.next().context("pip made no wheel")??.path();
            let verdict = verdict(bench, &wheel)?;
            Ok((wheel, verdict))
        };
        let (_, before) = build("before", None)?;
        let (wheel, after) = build("after", Some(&toolchain))?;
        println!("{requirement}: honours {before} as it is, {after} with the toolchain");
        let target = super::target(&super::with_arch(MAIN_TARGET))?;
        let honours =
            super::target(&after).is_ok_and(|found| found.glibc_version() <= target.glibc_version());
        let python = environment.join("bin/python");
        shell::run(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"])
                .arg(&wheel),
        )?;
        let imports = Command::new(&python).args(["-c", &format!("import {module}")]).status()?.success();
        failures += u32::from(!honours) + u32::from(!imports);
    }
    Ok(failures)
}

fn verdict(bench: &Bench, wheel: &std::path::Path) -> Result<String> {
    let report = shell::capture(
        Command::new(&bench.program).args(["show", "--no-config", "--format", "json"]).arg(wheel),
    )?;
    let report: Value = serde_json::from_str(&report)?;
    Ok(report["wheels"][0]["verdict"]["tag"].as_str().context("no verdict")?.to_owned())
}
