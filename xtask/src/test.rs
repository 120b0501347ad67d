//! `test`: what continuous integration runs. A table of steps; each counts what passed and what failed.

mod layers;
mod licences;
mod metadata;
mod references;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use crate::{corpus, differential, docs, matrix, shell};

/// How many checks passed and failed, and what was not looked at.
#[derive(Debug, Default)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: Vec<String>,
}

impl Counts {
    /// One check.
    fn one(passed: bool) -> Self {
        Self { passed: u64::from(passed), failed: u64::from(!passed), skipped: Vec::new() }
    }

    /// Something that could not be done here.
    fn skipped(why: impl Into<String>) -> Self {
        Self { skipped: vec![why.into()], ..Self::default() }
    }

    /// One check for each of `checked`; the complaints are printed.
    fn complaints(checked: u64, complaints: &[String]) -> Self {
        for complaint in complaints {
            println!("{complaint}");
        }
        let failed = complaints.len() as u64;
        Self { passed: checked.saturating_sub(failed), failed, skipped: Vec::new() }
    }
}

/// Name, function, what it does.
type Step = (&'static str, fn() -> Result<Counts>, &'static str);

const STEPS: &[Step] = &[
    ("tools", tools, "install compilers, Python and cargo's components where they are missing"),
    ("fmt", fmt, "cargo fmt --check"),
    ("layers", layers, "crates import strictly downward"),
    ("licences", licences, "dependencies have licences that are allowed"),
    ("clippy", clippy, "no warnings in any target"),
    ("fetch", fetch, "real wheels of the tiers tiny and small into the cache"),
    ("tests", tests, "all tests"),
    ("doctests", doctests, "the examples in the documentation"),
    ("docs", generated, "generated pages are up to date"),
    ("matrix", small_matrix, "C++ runtimes in one process, predicted and real"),
    ("differential", differential, "verdicts on real wheels against auditwheel's"),
];

/// Runs all steps, or those that `--only` names.
pub fn run(args: &[String]) -> Result<()> {
    let mut only = BTreeSet::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => {
                only.insert(shell::value(arg, &mut args)?);
            }
            "--list" => {
                for (name, _, help) in STEPS {
                    println!("{name:<14} {help}");
                }
                return Ok(());
            }
            _ => bail!("usage: cargo xtask test [--list] [--only STEP].."),
        }
    }
    if let Some(unknown) = only.iter().find(|name| !STEPS.iter().any(|(step, ..)| step == *name)) {
        bail!("no step {unknown:?} (cargo xtask test --list)");
    }
    let mut total = Counts::default();
    let mut lines = Vec::new();
    for (name, step, help) in STEPS.iter().filter(|(name, ..)| only.is_empty() || only.contains(name)) {
        println!("\n== {name}: {help}");
        let start = Instant::now();
        let counts = step().unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Counts::one(false)
        });
        let seconds = start.elapsed().as_secs();
        lines.push(format!("{name:<14} {} passed, {} failed, {seconds} s", counts.passed, counts.failed));
        lines.extend(counts.skipped.iter().map(|why| format!("{name:<14} SKIPPED: {why}")));
        total.passed += counts.passed;
        total.failed += counts.failed;
    }
    println!("\n== summary\n{}", lines.join("\n"));
    println!("{} passed, {} failed", total.passed, total.failed);
    ensure!(total.failed == 0, "{} checks failed", total.failed);
    Ok(())
}

fn tools() -> Result<Counts> {
    shell::install(&[("g++", "g++"), ("ld", "binutils"), ("readelf", "binutils"), ("python3", "python3")])?;
    shell::install_pip()?;
    for component in ["rustfmt", "clippy"] {
        let program = if component == "clippy" { "cargo-clippy" } else { "cargo-fmt" };
        if !shell::has(program) {
            shell::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(Counts::one(true))
}

fn fmt() -> Result<Counts> {
    let (status, _) = shell::tee(shell::cargo().args(["fmt", "--all", "--check"]))?;
    Ok(Counts::one(status.success()))
}

fn clippy() -> Result<Counts> {
    let mut command = shell::cargo();
    command.args(["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"]);
    let (status, _) = shell::tee(&mut command)?;
    Ok(Counts::one(status.success()))
}

fn layers() -> Result<Counts> {
    let metadata = metadata::read()?;
    Ok(Counts::complaints(metadata.members().count() as u64, &layers::complaints(&metadata)))
}

fn licences() -> Result<Counts> {
    let metadata = metadata::read()?;
    let dependencies = metadata.packages.iter().filter(|package| package.source.is_some()).count();
    Ok(Counts::complaints(dependencies as u64, &licences::complaints(&metadata)))
}

fn fetch() -> Result<Counts> {
    let directory = corpus::directory()?;
    let wheels = corpus::in_tiers(&["tiny", "small"])?;
    let fetched = corpus::fetch(&wheels, &directory)?;
    let mut counts = Counts { passed: fetched.there as u64, ..Counts::default() };
    if !fetched.missing.is_empty() {
        let why = format!(
            "{} of {} wheels could not be fetched; does the index answer?",
            fetched.missing.len(),
            wheels.len()
        );
        counts.skipped.push(why);
    }
    Ok(counts)
}

fn tests() -> Result<Counts> {
    let nextest = shell::has("cargo-nextest");
    let mut command = shell::cargo();
    if nextest {
        command.args([
            "nextest",
            "run",
            "--locked",
            "--workspace",
            "--cargo-profile",
            "ci",
            "--no-fail-fast",
        ]);
        command.args(["--status-level", "slow", "--final-status-level", "fail"]);
    } else {
        command.args([
            "test",
            "--locked",
            "--workspace",
            "--profile",
            "ci",
            "--no-fail-fast",
            "--all-targets",
        ]);
    }
    let mut skipped = Vec::new();
    let directory = corpus::directory()?;
    if directory.is_dir() {
        command.env("ABIAUDIT_CORPUS", &directory);
    } else {
        skipped.push("tests on real wheels: none in the cache".to_owned());
    }
    match references::auditwheel_package() {
        Ok(package) => {
            command.env("ABIAUDIT_AUDITWHEEL_POLICY", package.join("policy"));
            command.env("ABIAUDIT_AUDITWHEEL_SCHEMA", package.join("show-schema.json"));
        }
        Err(error) => skipped.push(format!("tests against auditwheel's data: {error:#}")),
    }
    match references::sarif_schema() {
        Ok(schema) => {
            command.env("ABIAUDIT_SARIF_SCHEMA", schema);
        }
        Err(error) => skipped.push(format!("tests against the SARIF schema: {error:#}")),
    }
    let (status, text) = shell::tee(&mut command)?;
    let mut counts = if nextest { nextest_counts(&text) } else { libtest_counts(&text) };
    if !status.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    counts.skipped = skipped;
    Ok(counts)
}

fn doctests() -> Result<Counts> {
    let mut command = shell::cargo();
    let (status, text) =
        shell::tee(command.args(["test", "--locked", "--workspace", "--profile", "ci", "--doc"]))?;
    let mut counts = libtest_counts(&text);
    if !status.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(counts)
}

fn generated() -> Result<Counts> {
    let stale = docs::stale(&shell::build("ci")?)?;
    let complaints: Vec<String> =
        stale.iter().map(|page| format!("{page} is out of date: cargo xtask docs")).collect();
    Ok(Counts::complaints(docs::PAGES, &complaints))
}

fn small_matrix() -> Result<Counts> {
    let tally = matrix::quick()?;
    Ok(Counts { passed: tally.agree as u64, failed: tally.differ as u64, skipped: tally.skipped })
}

fn differential() -> Result<Counts> {
    let directory = corpus::directory()?;
    let there = corpus::manifest()?.iter().any(|wheel| directory.join(&wheel.filename).is_file());
    if !there {
        return Ok(Counts::skipped("no wheel of the corpus is in the cache"));
    }
    let tally = differential::recorded(&shell::build("ci")?, &directory, &[])?;
    Ok(Counts { passed: tally.passed, failed: tally.failed, skipped: Vec::new() })
}

/// Sums lines such as `test result: ok. 12 passed; 0 failed; 1 ignored; ...`.
fn libtest_counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines().filter_map(|line| line.trim().strip_prefix("test result: ")) {
        counts.passed += number_before(line, "passed");
        counts.failed += number_before(line, "failed");
    }
    counts
}

/// Reads `Summary [ 3.1s] 12 tests run: 11 passed (1 slow), 1 failed, 0 skipped`, coloured or not.
fn nextest_counts(text: &str) -> Counts {
    let summary = text.lines().rev().find(|line| line.contains("tests run:") || line.contains("test run:"));
    let line = summary.unwrap_or_default();
    let failed = ["failed", "exec failed", "timed out"].map(|word| number_before(line, word)).iter().sum();
    Counts { passed: number_before(line, "passed"), failed, skipped: Vec::new() }
}

/// The number in front of a word, 0 if there is none.
fn number_before(line: &str, word: &str) -> u64 {
    let before = line.find(word).and_then(|at| line.get(..at)).unwrap_or_default().trim_end();
    let digits = before.len() - before.bytes().rev().take_while(u8::is_ascii_digit).count();
    before.get(digits..).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed() {
        let text =
            "test result: ok. 12 passed; 0 failed; 1 ignored\n..\ntest result: FAILED. 3 passed; 2 failed;";
        let counts = libtest_counts(text);
        assert_eq!((counts.passed, counts.failed), (15, 2));
        let text =
            "     Summary [   3.1s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 7 skipped";
        let counts = nextest_counts(text);
        assert_eq!((counts.passed, counts.failed), (10, 2));
    }
}
