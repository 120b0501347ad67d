//! GitHub Actions: annotations by workflow commands, and the step summary.
//!
//! GitHub shows 10 annotations of each kind for a step. The worst findings get them; the whole report goes into the step
//! summary, which may hold 1 MiB.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::escape::brief;
use crate::grouping::{RuleGroup, by_rule};
use crate::headline::totals;
use crate::layout::{Labelled, counted};
use crate::markdown;
use crate::model::{Finding, Report, Severity, Wheel};
use crate::options::RenderOptions;

/// Annotations of one kind that GitHub shows for a step.
const MOST_OF_A_KIND: usize = 10;
/// Size that GitHub accepts for a step's summary.
const SUMMARY_BYTES: usize = 1024 * 1024;
/// Pieces of evidence in an annotation.
const MOST_EVIDENCE: usize = 5;

/// Writes annotations and the totals to `out`, and appends the report to [`RenderOptions::step_summary`] if there is one.
pub fn render(report: &Report, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let annotations = annotations(report);
    for kind in [Kind::Error, Kind::Warning, Kind::Notice] {
        let of_kind = || annotations.iter().filter(move |annotation| annotation.kind == kind);
        for annotation in of_kind().take(MOST_OF_A_KIND) {
            annotation.write(out)?;
        }
        let hidden = of_kind().count().saturating_sub(MOST_OF_A_KIND);
        if hidden > 0 {
            let place =
                if options.step_summary.is_some() { "in the step summary" } else { "without annotation" };
            writeln!(out, "{} {place}", counted(hidden, &format!("more {}", kind.command())))?;
        }
    }
    writeln!(out, "{}", totals(report))?;
    match &options.step_summary {
        Some(path) => append_step_summary(report, options, path),
        None => Ok(()),
    }
}

/// Writes the content of a step summary: the report as Markdown, at most `room` bytes.
pub fn write_step_summary(
    report: &Report,
    options: &RenderOptions,
    room: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    markdown::render_within(report, options, room.min(SUMMARY_BYTES), out)
}

/// Appends to the summary file what still fits: earlier commands of the step may have written to it.
fn append_step_summary(report: &Report, options: &RenderOptions, path: &Path) -> io::Result<()> {
    let taken = match fs::metadata(path) {
        Ok(metadata) => usize::try_from(metadata.len()).unwrap_or(usize::MAX),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let mut file = BufWriter::new(OpenOptions::new().append(true).create(true).open(path)?);
    write_step_summary(report, options, SUMMARY_BYTES.saturating_sub(taken), &mut file)?;
    file.flush()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Error,
    Warning,
    Notice,
}

impl Kind {
    fn of(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Error,
            Severity::Warning => Self::Warning,
            Severity::Info => Self::Notice,
        }
    }

    fn command(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

/// One workflow command; `title` and `file` as well as the lines of `message` are not yet escaped for it.
struct Annotation {
    kind: Kind,
    title: String,
    file: String,
    message: Vec<String>,
}

impl Annotation {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let message: Vec<String> = self.message.iter().map(|line| escape_data(line)).collect();
        writeln!(
            out,
            "::{} title={},file={}::{}",
            self.kind.command(),
            escape_property(&self.title),
            escape_property(&self.file),
            message.join("%0A")
        )
    }
}

/// Escaping of a command's message (`@actions/core`, `escapeData`).
fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escaping of a command's property (`@actions/core`, `escapeProperty`).
fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

fn annotations(report: &Report) -> Vec<Annotation> {
    let mut annotations: Vec<Annotation> = report.wheels.iter().filter_map(unreadable).collect();
    for wheel in &report.wheels {
        for group in by_rule(wheel, Severity::Info) {
            annotations.extend(group.findings.iter().map(|finding| annotation(&group, finding, wheel)));
        }
    }
    annotations
}

fn unreadable(wheel: &Wheel) -> Option<Annotation> {
    let error = wheel.error.as_ref()?;
    Some(Annotation {
        kind: Kind::Error,
        title: format!("cannot audit: {}", brief(&error.kind)),
        file: brief(&wheel.path).into_owned(),
        message: vec![brief(&error.message).into_owned()],
    })
}

fn annotation(group: &RuleGroup<'_>, finding: &Finding, wheel: &Wheel) -> Annotation {
    let place = match &finding.member {
        Some(member) => format!("{}: {}", brief(wheel.file_name()), brief(member)),
        None => brief(wheel.file_name()).into_owned(),
    };
    let mut message = vec![format!("{place}: {}", brief(&finding.message))];
    let member = finding.member.as_deref();
    let shown = finding.evidence.iter().take(MOST_EVIDENCE);
    message
        .extend(shown.map(|piece| format!("  {}", Labelled::from_evidence(piece, member, false).to_line())));
    let hidden = finding.unnamed_after(MOST_EVIDENCE);
    if hidden > 0 {
        message.push(format!("  ... {hidden} more"));
    }
    message.extend(finding.help.as_deref().map(|help| format!("mend: {}", brief(help))));
    Annotation {
        kind: Kind::of(group.severity),
        title: format!("{} {}", brief(group.rule), brief(group.name)),
        file: brief(&wheel.path).into_owned(),
        message,
    }
}
