//! The matrix in the root directory of another system, for its compiler and its runtimes.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Options;

/// Where this program lies inside.
const INSIDE: &str = "tmp/abiaudit-matrix";

/// Runs this program there. Gives its part of the page, and whether all cells were as predicted.
pub fn play(root: &Path, options: &Options) -> Result<(String, bool)> {
    println!("\n== {}", root.display());
    let directory = root.join(INSIDE);
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    fs::copy(std::env::current_exe()?, directory.join("xtask"))?;
    fs::copy(&options.variants, directory.join("variants.toml"))?;
    let inside = |name: &str| format!("/{INSIDE}/{name}");
    let mut command = Command::new("chroot");
    command.arg(root).arg(inside("xtask")).args(["matrix", "--variants", &inside("variants.toml")]);
    command.args(["--section", &inside("section.md"), "--jobs", &options.jobs.to_string()]);
    command.args(options.quick.then_some("--quick")).args(&options.only);
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("LC_ALL", "C.UTF-8");
    let status = command.status().context("cannot run chroot")?;
    let section = directory.join("section.md");
    let text = fs::read_to_string(&section).with_context(|| section.display().to_string())?;
    fs::remove_dir_all(directory)?;
    Ok((text, status.success()))
}
