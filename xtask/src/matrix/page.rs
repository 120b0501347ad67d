//! docs/crash-matrix.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::variants::Variant;
use crate::shell;

const HEAD: &str = "# The crash matrix

Written by `cargo xtask matrix --write --root DIR`; do not edit. `DIR` has another system with g++ and Python, such as
debootstrap makes it, for a newer compiler and runtime. Each variant is a module of our own source, built in one way
([variants.toml](../testdata/matrix/variants.toml)), in a wheel of its own. It is imported beside each partner, in both
orders and all modes, each time in a new process. Then both modules are asked for streams, locales, `call_once`, threads,
exceptions and error categories, each question in a child process, and values are compared.

A cell is *broken* if any answer of any module is wrong or crashes. `a / b` is with the variant first / with the partner
first. Where `abiaudit confirm` predicts something else than what happened, the cell says so. The last column says which
exceptions and streams are not understood when they cross from one module to the other although nothing else is broken.
";

/// What was found on one system.
pub fn section(
    variants: &[Variant],
    table: &str,
    agree: usize,
    all: usize,
    skipped: &[String],
) -> Result<String> {
    let compilers: BTreeSet<&str> = variants.iter().map(|variant| variant.compiler.as_str()).collect();
    let mut versions = Vec::new();
    for compiler in compilers {
        let said = shell::capture(Command::new(compiler).arg("--version"))?;
        versions.push(said.lines().next().unwrap_or(compiler).to_owned());
    }
    let mut text = format!("\n## {}\n\n{agree} of {all} cells as predicted.\n\n{table}", versions.join(", "));
    for skip in skipped {
        let _ = writeln!(text, "\nSkipped: {skip}.");
    }
    Ok(text)
}

/// Writes the page.
pub fn write(sections: &[String], variants: &[Variant]) -> Result<()> {
    let mut page = format!(
        "{HEAD}{}\n## The variants\n\n| name | what | compiler |\n| --- | --- | --- |\n",
        sections.concat()
    );
    for variant in variants {
        let _ = writeln!(page, "| `{}` | {} | {} |", variant.name, variant.what, variant.compiler);
    }
    let path = shell::root().join("docs/crash-matrix.md");
    fs::write(&path, page).with_context(|| path.display().to_string())?;
    println!("wrote {}", path.display());
    Ok(())
}
