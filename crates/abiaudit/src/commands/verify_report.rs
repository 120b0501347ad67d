//! `abiaudit verify-report`.

use std::fs;
use std::io::Write;

use abiaudit_repair::Statement;
use anyhow::Context;

use crate::cli::VerifyReportArgs;
use crate::{CLEAN, FINDINGS, output};

pub fn run(args: &VerifyReportArgs) -> anyhow::Result<u8> {
    let name = args.wheel.file_name().unwrap_or_default().to_string_lossy();
    let statement = statement(args, &name)?;
    let mismatches = statement.verify(&args.wheel, args.input.as_deref())?;
    let written = print(&name, &statement, &mismatches, args.input.is_some());
    output::unless_reader_has_gone(written)?;
    Ok(if mismatches.is_empty() { CLEAN } else { FINDINGS })
}

/// The statement about the wheel of that name, or the only one.
fn statement(args: &VerifyReportArgs, name: &str) -> anyhow::Result<Statement> {
    let path = args.report.display();
    let text = fs::read_to_string(&args.report).with_context(|| format!("cannot read {path}"))?;
    let statements: Vec<Statement> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{path}: expected in-toto statements of abiaudit repair, one a line"))?;
    let about = |statement: &&Statement| statement.subject.iter().any(|subject| subject.name == name);
    let found =
        statements.iter().find(about).or(if statements.len() == 1 { statements.first() } else { None });
    found.cloned().with_context(|| format!("{path} says nothing of {name}"))
}

fn print(
    name: &str,
    statement: &Statement,
    mismatches: &[abiaudit_repair::Mismatch],
    with_input: bool,
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if mismatches.is_empty() {
        let (written, sources) = (statement.predicate.written.len(), statement.predicate.sources.len());
        writeln!(out, "{name}  ok: {written} members written, {sources} files brought in")?;
        if !with_input {
            writeln!(out, "  the members that were copied were not compared: --input WHEEL does that")?;
        }
    } else {
        writeln!(out, "{name}  FAIL")?;
        for mismatch in mismatches {
            writeln!(out, "  {mismatch}")?;
        }
    }
    Ok(out.flush()?)
}
