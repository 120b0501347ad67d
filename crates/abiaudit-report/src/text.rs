//! `abiaudit check` for a person: one verdict line a wheel, why, and what would mend it.

use std::io;
use std::time::Duration;

use crate::escape::brief;
use crate::grouping::{RuleGroup, by_rule};
use crate::headline::{Status, display_names, headline, totals};
use crate::layout::{
    BAD, BOLD, DIM, GOOD, Labelled, counted, painted, severity_style, shell_word, write_labelled,
};
use crate::model::{Finding, Report, Severity, Wheel};
use crate::options::{RenderOptions, Verbosity};

/// How many findings of a rule, and how many pieces of evidence of a finding, are shown before the rest is folded.
struct Limits {
    findings: usize,
    evidence: usize,
}

impl Limits {
    fn of(options: &RenderOptions) -> Self {
        match options.verbosity {
            _ if options.all => Self { findings: usize::MAX, evidence: usize::MAX },
            Verbosity::Quiet | Verbosity::Normal => Self { findings: 3, evidence: 3 },
            Verbosity::Verbose => Self { findings: 20, evidence: 10 },
        }
    }
}

/// Writes the verdicts and findings of `report`, and the totals.
pub fn render(report: &Report, options: &RenderOptions, out: &mut dyn io::Write) -> io::Result<()> {
    for (wheel, name) in report.wheels.iter().zip(display_names(report)) {
        let status = headline(wheel, options.fail_on).status;
        if options.verbosity > Verbosity::Quiet || status.is_bad() {
            write_wheel(wheel, &name, options, out)?;
        }
    }
    let elapsed = options.elapsed.map(|elapsed| format!(" in {}", seconds(elapsed))).unwrap_or_default();
    writeln!(out, "{}{elapsed}", totals(report))
}

/// `0.3 s`.
fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

fn write_wheel(
    wheel: &Wheel,
    name: &str,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write_headline(wheel, name, options, out)?;
    let least = if options.verbosity == Verbosity::Verbose { Severity::Info } else { Severity::Warning };
    for group in by_rule(wheel, least) {
        write_group(&group, wheel, options, out)?;
    }
    let suppressed = wheel.findings.iter().filter(|finding| finding.suppressed.is_some()).count();
    if suppressed > 0 {
        let line = format!("{} suppressed by configuration", counted(suppressed, "finding"));
        writeln!(out, "  {}", painted(options, DIM, line))?;
    }
    if options.verbosity == Verbosity::Verbose {
        crate::show::write_objects(wheel, options, out)?;
    }
    Ok(())
}

/// `FILE  FAIL: claims manylinux_2_28, honours manylinux_2_35`.
pub(crate) fn write_headline(
    wheel: &Wheel,
    name: &str,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let line = headline(wheel, options.fail_on);
    let style = match line.status {
        Status::Ok | Status::Pure => GOOD,
        Status::NotJudged => DIM,
        Status::Fail | Status::Unreadable => BAD,
    };
    let status = painted(options, style, line.status.word());
    writeln!(out, "{}  {status}{}", painted(options, BOLD, name), line.detail)
}

fn write_group(
    group: &RuleGroup<'_>,
    wheel: &Wheel,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let limits = Limits::of(options);
    let severity = painted(options, severity_style(group.severity), group.severity.as_str());
    write!(out, "  {severity} {} {}", painted(options, BOLD, brief(group.rule)), brief(group.name))?;
    match group.findings.as_slice() {
        [only] => {
            if let Some(member) = &only.member {
                write!(out, "  {}", brief(member))?;
            }
            writeln!(out, "\n    {}", brief(&only.message))?;
            write_evidence(only, &limits, options, out)?;
        }
        several => {
            writeln!(out)?;
            for finding in several.iter().take(limits.findings) {
                let member = finding.member.as_deref().map(|m| format!("{}: ", brief(m))).unwrap_or_default();
                writeln!(out, "    {member}{}", brief(&finding.message))?;
                write_evidence(finding, &limits, options, out)?;
            }
        }
    }
    if let Some(folded) = Folded::of(group, &limits) {
        // `show` has the symbols, in its ladder; other evidence only `check` has.
        let command = if folded.symbols > 0 { "show" } else { "check --all" };
        let line = format!("... {} (abiaudit {command} {})", folded.to_text(), shell_word(&wheel.path));
        writeln!(out, "    {}", painted(options, DIM, line))?;
    }
    for help in group.helps().into_iter().take(limits.findings) {
        writeln!(out, "    {} {}", painted(options, BOLD, "mend:"), brief(help))?;
    }
    Ok(())
}

fn write_evidence(
    finding: &Finding,
    limits: &Limits,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let lines: Vec<Labelled> = finding
        .evidence
        .iter()
        .take(limits.evidence)
        .map(|evidence| Labelled::from_evidence(evidence, finding.member.as_deref(), options.all))
        .collect();
    write_labelled(&lines, 6, options, out)
}

/// What a group does not show.
#[derive(Default)]
struct Folded {
    /// Symbols of findings whose evidence is symbols.
    symbols: usize,
    /// Whole findings with other evidence, or none.
    findings: usize,
    /// Pieces of evidence, other than symbols, of findings that are shown.
    evidence: usize,
    files: usize,
}

impl Folded {
    /// `None` when everything is shown.
    fn of(group: &RuleGroup<'_>, limits: &Limits) -> Option<Self> {
        let mut folded = Self::default();
        for (index, finding) in group.findings.iter().enumerate() {
            let is_shown = index < limits.findings;
            let of_symbols = finding.evidence.first().is_some_and(|evidence| evidence.symbol.is_some());
            let hidden = if is_shown {
                finding.unnamed_after(limits.evidence)
            } else {
                finding.count.max(finding.evidence.len()).max(1)
            };
            folded.files += usize::from(hidden > 0);
            match (of_symbols, is_shown) {
                (true, _) => folded.symbols += hidden,
                (false, true) => folded.evidence += hidden,
                (false, false) => folded.findings += 1,
            }
        }
        (folded.files > 0).then_some(folded)
    }

    /// `12 more symbols in 2 files`, `3 more findings in 3 files`, `404 more`.
    fn to_text(&self) -> String {
        let files = counted(self.files, "file");
        match (self.symbols, self.findings) {
            (0, 0) => format!("{} more", self.evidence),
            (0, findings) => format!("{} in {files}", counted(findings, "more finding")),
            (symbols, _) => format!("{} in {files}", counted(symbols, "more symbol")),
        }
    }
}
