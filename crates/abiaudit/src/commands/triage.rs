//! `abiaudit triage`: names the known failures in a backtrace, a dump or a log.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use abiaudit_rules::{Rule, find};
use abiaudit_triage::{Diagnosis, Recognised, triage};
use anyhow::Context;
use serde_json::{Value, json};

use crate::cli::TriageArgs;
use crate::{CLEAN, FINDINGS};

/// Columns that running text is folded at.
const WIDTH: usize = 100;
/// Values of a detail that are shown; --json has them all.
const SHOWN_VALUES: usize = 8;
/// Characters of a line of evidence that are shown.
const SHOWN_TEXT: usize = 300;

pub fn run(args: &TriageArgs) -> anyhow::Result<u8> {
    let diagnosis = read(&args.file)?;
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &to_json(&diagnosis))?;
        writeln!(out)?;
    } else {
        write_text(&mut out, &diagnosis)?;
    }
    Ok(if diagnosis.recognised.is_empty() { FINDINGS } else { CLEAN })
}

fn read(path: &Path) -> anyhow::Result<Diagnosis> {
    let (source, name): (Box<dyn BufRead>, String) = if path.as_os_str() == "-" {
        (Box::new(io::stdin().lock()), "standard input".to_owned())
    } else {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        (Box::new(BufReader::with_capacity(1 << 16, file)), name)
    };
    triage(source).with_context(|| format!("cannot read {name}"))
}

/// The rules that this build has, with what each shows: what is printed can be run.
fn checks(found: &Recognised) -> Vec<(&'static Rule, &'static str)> {
    found.checks.iter().filter_map(|check| Some((find(check.rule)?, check.shows))).collect()
}

/// The command that runs the rules.
fn command(checks: &[(&Rule, &str)]) -> Option<String> {
    let ids: Vec<&str> = checks.iter().map(|(rule, _)| rule.id).collect();
    (!ids.is_empty()).then(|| format!("abiaudit check --select {} WHEEL..", ids.join(",")))
}

fn write_text(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    if diagnosis.recognised.is_empty() {
        writeln!(out, "nothing known in {} lines", diagnosis.lines)?;
    }
    for (index, found) in diagnosis.recognised.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_found(out, found)?;
    }
    if diagnosis.shortened_lines > 0 {
        let count = diagnosis.shortened_lines;
        writeln!(out, "\n{count} lines were too long and looked at in part")?;
    }
    Ok(())
}

fn write_found(out: &mut dyn Write, found: &Recognised) -> io::Result<()> {
    writeln!(out, "{}: {} ({})", found.id, found.name, found.certainty.as_str())?;
    for evidence in &found.evidence {
        writeln!(out, "  {:>6}  {}", evidence.line, shortened(&evidence.text))?;
    }
    for (key, values) in &found.details {
        let shown: Vec<&str> = values.iter().take(SHOWN_VALUES).map(String::as_str).collect();
        let more = values.len().checked_sub(SHOWN_VALUES).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        writeln!(out, "  {}: {}{more}", key.replace('_', " "), shortened(&shown.join(", ")))?;
    }
    write_folded(out, "meaning", found.meaning)?;
    let checks = checks(found);
    if let Some(command) = command(&checks) {
        writeln!(out, "  proof: {command}")?;
        for (rule, shows) in checks {
            writeln!(out, "    {} {}: {shows}", rule.id, rule.name)?;
        }
    }
    write_folded(out, "mend", found.mend)?;
    write_folded(out, "see", &found.references.join("; "))
}

/// The beginning of a long text.
fn shortened(text: &str) -> String {
    let mut characters = text.chars();
    let mut beginning: String = characters.by_ref().take(SHOWN_TEXT).collect();
    if characters.next().is_some() {
        beginning.push_str("...");
    }
    beginning
}

/// Writes running text under a label, folded between words.
fn write_folded(out: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
    let mut line = format!("  {label}:");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            writeln!(out, "{line}")?;
            line.clear();
            line.push_str("   ");
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}")
}

fn to_json(diagnosis: &Diagnosis) -> Value {
    let recognised: Vec<Value> = diagnosis.recognised.iter().map(found_to_json).collect();
    json!({
        "schema": "abiaudit.triage/1",
        "tool": {"name": "abiaudit", "version": env!("CARGO_PKG_VERSION")},
        "lines": diagnosis.lines,
        "shortened_lines": diagnosis.shortened_lines,
        "recognised": recognised,
    })
}

fn found_to_json(found: &Recognised) -> Value {
    let checks = checks(found);
    json!({
        "id": found.id,
        "name": found.name,
        "certainty": found.certainty,
        "occurrences": found.occurrences,
        "evidence": found.evidence,
        "details": found.details,
        "meaning": found.meaning,
        "checks": checks.iter().map(|(rule, shows)| json!({
            "rule": rule.id, "name": rule.name, "shows": shows,
        })).collect::<Vec<_>>(),
        "command": command(&checks),
        "mend": found.mend,
        "references": found.references,
    })
}
