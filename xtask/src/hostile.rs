//! `hostile`: wheels of another generator that try to break or deceive the reader.
//!
//! The generator is a Python program that writes `OUT/CASE/WHEEL` and `OUT/cases.json`: a list of `case`, `file` and
//! `expect`. `expect` is prose; what is checked of it is the tags that it names, `error` (an unreadable input or a finding
//! that is an error), `or` between the two, and `report` or `note` before the first colon: a finding that the first case,
//! which is the good one, has not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::shell;

/// Bounds of the release build on one wheel.
const MOST_TIME: Duration = Duration::from_secs(2);
const MOST_MEMORY: u64 = 300_000_000;

#[derive(Deserialize)]
struct Case {
    #[serde(rename = "case")]
    name: String,
    file: PathBuf,
    expect: String,
}

/// The command line.
pub fn run(args: &[String]) -> Result<()> {
    let [option, generator] = args else { bail!("usage: cargo xtask hostile --generator PROGRAM.py") };
    ensure!(option == "--generator", "unknown option {option}");
    shell::install(&[("python3", "python3")])?;
    let program = shell::build("release")?;
    let folder = tempfile::tempdir()?;
    shell::run(Command::new("python3").arg(generator).arg(folder.path()))?;
    let cases =
        fs::read_to_string(folder.path().join("cases.json")).context("the generator writes no cases.json")?;
    let cases: Vec<Case> = serde_json::from_str(&cases).context("cases.json")?;
    let mut failed = 0;
    let mut usual = BTreeSet::new();
    for (index, case) in cases.iter().enumerate() {
        let outcome = try_case(&program, &folder.path().join(&case.file))?;
        if index == 0 {
            usual = outcome.rules().map(str::to_owned).collect();
        }
        let complaints = complaints(&case.expect, &outcome, &usual);
        failed += u32::from(!complaints.is_empty());
        let word = if complaints.is_empty() { "ok" } else { "FAIL" };
        println!("{word:<4} {:<32} {}", case.name, outcome.summary());
        if !complaints.is_empty() {
            println!("       expected {}: {}", case.expect, complaints.join("; "));
        }
    }
    println!("{} cases, {failed} failed", cases.len());
    ensure!(failed == 0, "{failed} hostile cases failed");
    Ok(())
}

struct Outcome {
    code: Option<i32>,
    elapsed: Duration,
    memory: u64,
    report: Value,
    stderr: String,
}

impl Outcome {
    fn tag(&self) -> Option<&str> {
        self.report["verdict"]["tag"].as_str()
    }

    fn findings(&self) -> impl Iterator<Item = &Value> {
        self.report["findings"].as_array().into_iter().flatten()
    }

    fn rules(&self) -> impl Iterator<Item = &str> {
        self.findings().filter_map(|finding| finding["rule"].as_str())
    }

    fn is_error(&self) -> bool {
        self.report["error"].is_object() || self.findings().any(|finding| finding["severity"] == "error")
    }

    fn summary(&self) -> String {
        let mut parts = vec![self.tag().unwrap_or("no verdict").to_owned()];
        parts.extend(
            self.report["error"]["message"].as_str().map(|m| m.rsplit(": ").next().unwrap_or(m).to_owned()),
        );
        let mut rules: Vec<&str> = self.rules().collect();
        rules.dedup();
        parts.push(rules.join(" "));
        parts.push(format!("{:.2} s, {} MB", self.elapsed.as_secs_f64(), self.memory / 1_000_000));
        parts.retain(|part| !part.is_empty());
        parts.join(", ")
    }
}

fn try_case(program: &Path, wheel: &Path) -> Result<Outcome> {
    let mut command = Command::new(program);
    command.args(["check", "--no-config", "--format", "json"]).arg(wheel);
    // Twice: once for the answer, once for the cost. The shorter time is the one that others disturbed less.
    let cost = crate::measure::cost(&command)?;
    let start = Instant::now();
    let output = command.output().with_context(|| format!("cannot run {}", program.display()))?;
    let elapsed = start.elapsed().min(Duration::from_secs_f64(cost.wall));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    Ok(Outcome {
        code: output.status.code(),
        elapsed,
        memory: cost.memory,
        report: report["wheels"][0].clone(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// What is not as expected.
fn complaints(expect: &str, outcome: &Outcome, usual: &BTreeSet<String>) -> Vec<String> {
    let mut list = Vec::new();
    if !matches!(outcome.code, Some(0..=2)) || outcome.stderr.contains("panicked") {
        list.push(format!("ended with {:?}: {}", outcome.code, outcome.stderr.trim()));
    }
    if outcome.report.is_null() {
        list.push("no report".to_owned());
    }
    if outcome.elapsed > MOST_TIME {
        list.push(format!("took {:?}", outcome.elapsed));
    }
    if outcome.memory > MOST_MEMORY {
        list.push(format!("took {} bytes", outcome.memory));
    }
    let wanted = Wanted::parse(expect);
    let tag_holds =
        outcome.tag().is_some_and(|tag| wanted.tags.iter().any(|wanted| tag == format!("{wanted}_x86_64")));
    let holds = match (wanted.error, wanted.either) {
        (true, true) => outcome.is_error() || wanted.bounded || tag_holds,
        (true, false) => outcome.is_error() && (wanted.tags.is_empty() || tag_holds),
        (false, _) => wanted.tags.is_empty() || tag_holds,
    };
    if !holds {
        list.push("neither the verdict nor the findings say so".to_owned());
    }
    if wanted.finding && outcome.rules().all(|rule| usual.contains(rule)) {
        list.push("no finding about it".to_owned());
    }
    list
}

/// What can be checked of an expectation in prose.
struct Wanted {
    /// Tags without architecture, any of which is right.
    tags: Vec<String>,
    /// An error is wanted.
    error: bool,
    /// An error or something else is wanted.
    either: bool,
    /// Ending within the limits is enough.
    bounded: bool,
    /// A finding is wanted, of whatever severity.
    finding: bool,
}

impl Wanted {
    fn parse(expect: &str) -> Self {
        let words = expect.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let is_tag = |word: &&str| word.starts_with("manylinux_") || word.starts_with("musllinux_");
        let mut tags: Vec<String> = words.clone().filter(is_tag).map(str::to_owned).collect();
        let lower = expect.to_lowercase();
        if lower.starts_with("linux") || lower.contains("; linux tag") {
            tags = vec!["linux".to_owned()];
        }
        // "report: nested wheel, inner ELF needs 2.34" speaks of a finding; "X, note: Y" of both.
        let head = lower.split(':').next().unwrap_or_default().to_owned();
        let finding = ["report", "note", "refuse or report"].iter().any(|word| head.ends_with(word));
        let either = lower.contains(" or ") || lower.contains("(or ");
        let bounded = lower.contains("bounded") || lower.contains("handled");
        Self { tags, error: lower.contains("error"), either, bounded, finding }
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn expectations_are_understood() {
        let wanted = Wanted::parse("error: no RECORD (verdict still manylinux_2_34)");
        assert!(wanted.error && !wanted.either && wanted.tags == ["manylinux_2_34"]);
        let wanted = Wanted::parse("error or manylinux_2_34");
        assert!(wanted.error && wanted.either && !wanted.bounded);
        let wanted = Wanted::parse("error or bounded: 1 GiB");
        assert!(wanted.error && wanted.either && wanted.bounded);
        let wanted = Wanted::parse("report: NEEDED with an absolute path; linux tag; never open it");
        assert!(wanted.finding && !wanted.error && wanted.tags == ["linux"]);
        let wanted = Wanted::parse("linux (GLIBC_PRIVATE)");
        assert!(!wanted.error && !wanted.finding && wanted.tags == ["linux"]);
        let wanted = Wanted::parse("manylinux_2_34, note: linker script");
        assert!(wanted.finding && wanted.tags == ["manylinux_2_34"]);
    }
}
