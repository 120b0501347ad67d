//! `matrix`: two modules with C++ runtimes in one process, in all ways; what is predicted beside what happens.

mod cells;
mod table;
mod variants;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use abiaudit_confirm::Mode;
use anyhow::{Context, Result, bail, ensure};

use crate::shell;
use cells::Pair;
use variants::{Built, Variant};

/// What the small matrix of `cargo xtask test` found.
pub struct Tally {
    pub agree: usize,
    pub differ: usize,
    pub skipped: Vec<String>,
}

struct Options {
    quick: bool,
    write: bool,
    python: PathBuf,
    jobs: usize,
    only: Vec<String>,
}

/// `matrix [--quick] [--write] [--python PYTHON] [--jobs N] [VARIANT]..`
pub fn run(args: &[String]) -> Result<()> {
    let mut options =
        Options { quick: false, write: false, python: "python3".into(), jobs: 2, only: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => options.quick = true,
            "--write" => options.write = true,
            "--python" => options.python = shell::value(arg, &mut args)?.into(),
            "--jobs" => options.jobs = shell::value(arg, &mut args)?.parse().context("--jobs N")?,
            name if !name.starts_with('-') => options.only.push(name.to_owned()),
            _ => bail!(
                "usage: cargo xtask matrix [--quick] [--write] [--python PYTHON] [--jobs N] [VARIANT].."
            ),
        }
    }
    let tally = play(&options)?;
    ensure!(tally.differ == 0, "{} of {} cells differ", tally.differ, tally.agree + tally.differ);
    Ok(())
}

/// The small matrix.
pub fn quick() -> Result<Tally> {
    let python = "python3".into();
    play(&Options { quick: true, write: false, python, jobs: 2, only: Vec::new() })
}

fn play(options: &Options) -> Result<Tally> {
    let started = Instant::now();
    let variants: Vec<Variant> =
        variants::read()?.into_iter().filter(|variant| !options.quick || variant.quick).collect();
    let (variants, absent): (Vec<Variant>, Vec<Variant>) =
        variants.into_iter().partition(Variant::has_compiler);
    let skipped: Vec<String> =
        absent.iter().map(|variant| format!("{}: no {}", variant.name, variant.compiler)).collect();
    for skip in &skipped {
        println!("SKIPPED: {skip}");
    }
    let scratch = tempfile::tempdir()?;
    let wanted = |variant: &&Variant| options.only.is_empty() || options.only.contains(&variant.name);
    let partner = |variant: &&Variant| variant.partner;
    let modules = build(variants.iter().filter(wanted), "m", scratch.path())?;
    let partners = build(variants.iter().filter(partner), "p", scratch.path())?;
    println!("{} modules built in {} s", modules.len() + partners.len(), started.elapsed().as_secs());
    let mut pairs = Vec::new();
    for (variant, built) in &modules {
        for (partner, other) in &partners {
            pairs.push(Pair { variant, partner, module: &built.module, other: &other.module });
        }
    }
    let modes: &[Mode] = if options.quick { &[Mode::Local, Mode::Global] } else { &Mode::ALL };
    let cells = cells::cells(&pairs, modes);
    let wheels: Vec<Built> = modules.iter().chain(&partners).map(|(_, built)| built.clone()).collect();
    let outcomes = cells::play(&cells, &wheels, &options.python, scratch.path(), options.jobs)?;
    let text = table::markdown(&outcomes, modes);
    println!("{text}");
    let differ: Vec<_> = outcomes.iter().filter(|outcome| !outcome.agrees()).collect();
    for outcome in &differ {
        println!("DIFFERS: {}", table::describe(outcome));
    }
    let agree = outcomes.len() - differ.len();
    println!("{agree} of {} cells as predicted, {} s", outcomes.len(), started.elapsed().as_secs());
    if options.write {
        write(&variants, &text, agree, outcomes.len(), &skipped)?;
    }
    Ok(Tally { agree, differ: differ.len(), skipped })
}

fn build<'v>(
    variants: impl Iterator<Item = &'v Variant>,
    prefix: &str,
    scratch: &std::path::Path,
) -> Result<Vec<(&'v Variant, Built)>> {
    variants
        .map(|variant| Ok((variant, variant.build(&format!("{prefix}_{}", variant.name), scratch)?)))
        .collect()
}

/// docs/crash-matrix.md
fn write(variants: &[Variant], table: &str, agree: usize, all: usize, skipped: &[String]) -> Result<()> {
    let mut page = format!(
        "# The crash matrix\n\n\
        Written by `cargo xtask matrix --write`; do not edit. Each variant is a module of our own source, built in one way \
        ([variants.toml](../testdata/matrix/variants.toml)), in a wheel of its own. It is imported beside each partner, in \
        both orders and all modes, each time in a new process, which then tries streams, locales, `call_once`, threads, \
        exceptions and error categories in both modules, each in a child process, and compares values. A cell is *broken* \
        if any answer of any module is wrong or crashes. `a / b` means: broken or fine with the variant first / with the \
        partner first. Where the prediction of `abiaudit confirm` is something else than what happened, the cell says so.\n\n\
        **{agree} of {all} cells as predicted**, with {}.\n\n\
        The last column says which exceptions or streams are not understood when they cross from one module to the \
        other, although nothing else is broken.\n\n{table}\n## The variants\n\n| name | what | compiler |\n| --- | --- | --- |\n",
        versions(variants)?.join(", ")
    );
    for variant in variants {
        let _ = writeln!(page, "| `{}` | {} | {} |", variant.name, variant.what, variant.compiler);
    }
    for skip in skipped {
        let _ = writeln!(page, "\nSkipped: {skip}.");
    }
    let path = shell::root().join("docs/crash-matrix.md");
    fs::write(&path, page).with_context(|| path.display().to_string())?;
    println!("wrote {}", path.display());
    Ok(())
}

/// First lines of `--version` of the compilers.
fn versions(variants: &[Variant]) -> Result<Vec<String>> {
    let compilers: BTreeSet<&str> = variants.iter().map(|variant| variant.compiler.as_str()).collect();
    let version = |compiler: &str| {
        let said = shell::capture(Command::new(compiler).arg("--version"))?;
        Ok(format!("`{}`", said.lines().next().unwrap_or(compiler)))
    };
    compilers.into_iter().map(version).collect()
}
