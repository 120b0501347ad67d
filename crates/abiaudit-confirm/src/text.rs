//! A confirmation for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::case::Mode;
use crate::confirmation::{Confirmation, Run};
use crate::happened::Failure;
use crate::prediction::Reason;

/// Answers of one module that are shown; the JSON form has all.
const ANSWERS: usize = 6;
/// Reasons of one process that are shown.
const REASONS: usize = 4;
/// Lines of standard error that are shown.
const STDERR_LINES: usize = 6;

/// Writes all runs and the sum.
///
/// # Errors
/// Those of the writer.
pub fn write(out: &mut dyn Write, confirmation: &Confirmation) -> io::Result<()> {
    for warning in &confirmation.warnings {
        writeln!(out, "WARNING: {}", visible(warning))?;
    }
    write!(out, "{}", visible(&confirmation.python))?;
    if let Some(compiler) = &confirmation.probe {
        write!(out, ", probe built with {}", visible(compiler))?;
    }
    writeln!(out)?;
    for run in &confirmation.runs {
        write_run(out, run)?;
    }
    write_sum(out, confirmation)
}

fn write_run(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let (predicted, happened) = (run.prediction.is_broken(), run.happened.is_broken());
    writeln!(
        out,
        "\n{} ({}): {}, {}",
        visible(&run.case.order()),
        in_words(run.case.mode),
        if happened { "BROKEN" } else { "fine" },
        match (run.as_predicted, predicted == happened) {
            (true, false) => "as far as anything asked".to_owned(),
            (true, true) => "as predicted".to_owned(),
            (false, true) => "as predicted, but bindings DIFFER".to_owned(),
            (false, false) => format!("predicted was {}: DIFFERS", if predicted { "broken" } else { "fine" }),
        }
    )?;
    write_failures(out, "seen", &run.happened.failures)?;
    write_reasons(out, "predicted", &run.prediction.broken)?;
    if happened {
        write_stderr(out, &run.happened.stderr)?;
    }
    write_failures(out, "across modules", &run.happened.crossings)?;
    write_reasons(out, "predicted across modules", &run.prediction.crossing)?;
    for ((first, second), what) in run.happened.split() {
        writeln!(out, "  not shared by {} and {}: {}", visible(first), visible(second), what.join(", "))?;
    }
    write_reasons(out, "noted", &run.prediction.notes)?;
    for check in run.happened.checks.iter().filter(|check| check.holds) {
        writeln!(out, "  check holds: {}", visible(&check.expression))?;
    }
    if let Some(bindings) = &run.bindings {
        let (agree, compared) = (bindings.agree, bindings.compared);
        writeln!(out, "  bindings: {agree} of {compared} as ld.so's, {} objects", bindings.objects)?;
        for line in bindings.differ.iter().chain(&bindings.unseen).take(ANSWERS) {
            writeln!(out, "    differs: {}", visible(line))?;
        }
    }
    let (passed, crossed) = (run.happened.passed, run.happened.crossed);
    if passed + crossed > 0 {
        writeln!(out, "  right: {passed} answers of probes, {crossed} exceptions and streams across")?;
    }
    Ok(())
}

/// By module, each module's answers in one line.
fn write_failures(out: &mut dyn Write, title: &str, failures: &[Failure]) -> io::Result<()> {
    let mut modules: Vec<(&str, Vec<String>)> = Vec::new();
    for failure in failures {
        let answer = format!("{} {}", visible(&failure.what), visible(&failure.seen));
        match modules.iter_mut().find(|(at, _)| *at == failure.at) {
            Some((_, answers)) => answers.push(answer),
            None => modules.push((&failure.at, vec![answer])),
        }
    }
    for (at, answers) in modules {
        let more = answers.len().saturating_sub(ANSWERS);
        let shown = answers.iter().take(ANSWERS).cloned().collect::<Vec<_>>().join("; ");
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        writeln!(out, "  {title}: {}: {shown}{more}", visible(at))?;
    }
    Ok(())
}

fn write_reasons(out: &mut dyn Write, title: &str, reasons: &[Reason]) -> io::Result<()> {
    // Duplicates of the same text come from several copies of one file.
    let mut unique: BTreeMap<&str, usize> = BTreeMap::new();
    let mut order = Vec::new();
    for reason in reasons {
        if unique.insert(&reason.text, order.len()).is_none() {
            order.push(reason);
        }
    }
    for reason in order.iter().take(REASONS) {
        let unasked = if reason.asked { "" } else { " (nothing asks it)" };
        writeln!(out, "  {title}: {}: {}{unasked}", reason.kind, visible(&reason.text))?;
    }
    if order.len() > REASONS {
        writeln!(out, "  {title}: {} more", order.len() - REASONS)?;
    }
    Ok(())
}

fn write_stderr(out: &mut dyn Write, stderr: &str) -> io::Result<()> {
    // faulthandler's list of loaded modules is long and says nothing here.
    let is_said = |line: &&str| !line.trim().is_empty() && !line.starts_with("Extension modules:");
    for line in stderr.lines().filter(is_said).take(STDERR_LINES) {
        writeln!(out, "  | {}", visible(line))?;
    }
    Ok(())
}

fn write_sum(out: &mut dyn Write, confirmation: &Confirmation) -> io::Result<()> {
    let (all, broken) = (confirmation.runs.len(), confirmation.broken());
    let differ = confirmation.runs.iter().filter(|run| !run.as_predicted).count();
    let processes = if all == 1 { "process" } else { "processes" };
    write!(out, "\n{all} {processes}: ")?;
    match differ {
        0 => write!(out, "all as predicted")?,
        _ => write!(out, "{differ} NOT as predicted")?,
    }
    match broken {
        0 => write!(out, ", nothing broken")?,
        _ => write!(out, ", BROKEN in {broken}")?,
    }
    let unasked = |run: &&Run| !run.happened.is_broken() && run.prediction.is_broken() && run.as_predicted;
    match confirmation.runs.iter().filter(unasked).count() {
        0 => writeln!(out),
        count => writeln!(out, "; in {count}, what is predicted to break was not asked (--check asks it)"),
    }
}

fn in_words(mode: Mode) -> &'static str {
    match mode {
        Mode::Local => "RTLD_LOCAL",
        Mode::Global => "RTLD_GLOBAL",
        Mode::FirstGlobal => "first RTLD_GLOBAL",
        Mode::SecondGlobal => "second RTLD_GLOBAL",
        Mode::Preload => "LD_PRELOAD=libstdc++.so.6",
    }
}

/// Without control characters, which a name or a message may have.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
