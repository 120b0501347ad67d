//! `matrix`: two modules with C++ runtimes in one process, in all ways; what is predicted beside what happens.

mod cells;
mod page;
mod root;
mod table;
mod variants;

use std::fs;
use std::path::PathBuf;
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
    /// Parts of the page, one for each system.
    sections: Vec<String>,
}

struct Options {
    quick: bool,
    write: bool,
    /// Where the part of the page goes that is about this system.
    section: Option<PathBuf>,
    variants: PathBuf,
    /// Root directories of other systems to do the same in.
    roots: Vec<PathBuf>,
    python: PathBuf,
    jobs: usize,
    only: Vec<String>,
}

impl Options {
    fn new() -> Self {
        Self {
            quick: false,
            write: false,
            section: None,
            variants: shell::root().join(VARIANTS),
            roots: Vec::new(),
            python: "python3".into(),
            jobs: 2,
            only: Vec::new(),
        }
    }

    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::new();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--write" => options.write = true,
                "--section" => options.section = Some(shell::value(arg, &mut args)?.into()),
                "--variants" => options.variants = shell::value(arg, &mut args)?.into(),
                "--root" => options.roots.push(shell::value(arg, &mut args)?.into()),
                "--python" => options.python = shell::value(arg, &mut args)?.into(),
                "--jobs" => options.jobs = shell::value(arg, &mut args)?.parse().context("--jobs N")?,
                name if !name.starts_with('-') => options.only.push(name.to_owned()),
                _ => bail!("usage: cargo xtask matrix {USAGE}"),
            }
        }
        Ok(options)
    }
}

const VARIANTS: &str = "testdata/matrix/variants.toml";

/// `--root` takes the directory of another system with g++ and Python, such as debootstrap makes it, and does the same
/// there with chroot.
const USAGE: &str = "[--quick] [--write] [--root DIR].. [--python PYTHON] [--jobs N] [VARIANT]..";

/// Compares what is predicted with what happens; with `--write`, writes docs/crash-matrix.md.
pub fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let mut tally = play(&options)?;
    for root in &options.roots {
        let (section, agrees) = root::play(root, &options)?;
        tally.sections.push(section);
        // It has printed them.
        tally.differ += usize::from(!agrees);
    }
    if let Some(path) = &options.section {
        fs::write(path, tally.sections.concat()).with_context(|| path.display().to_string())?;
    }
    if options.write {
        page::write(&tally.sections, &variants::read(&options.variants)?)?;
    }
    ensure!(tally.differ == 0, "not everything is as predicted");
    Ok(())
}

/// The small matrix.
pub fn quick() -> Result<Tally> {
    play(&Options { quick: true, ..Options::new() })
}

fn play(options: &Options) -> Result<Tally> {
    let started = Instant::now();
    let variants: Vec<Variant> = variants::read(&options.variants)?
        .into_iter()
        .filter(|variant| !options.quick || variant.quick)
        .collect();
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
    let table = table::markdown(&outcomes, modes);
    println!("{table}");
    let differ: Vec<_> = outcomes.iter().filter(|outcome| !outcome.agrees()).collect();
    for outcome in &differ {
        println!("DIFFERS: {}", table::describe(outcome));
    }
    let agree = outcomes.len() - differ.len();
    println!("{agree} of {} cells as predicted, {} s", outcomes.len(), started.elapsed().as_secs());
    let section = page::section(&variants, &table, agree, outcomes.len(), &skipped)?;
    Ok(Tally { agree, differ: differ.len(), skipped, sections: vec![section] })
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
