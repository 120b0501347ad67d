//! What a renderer is told beside the report, and the choice of renderer.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::model::{Report, Severity};

/// A form in which [`render`] writes a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for a person: [`crate::text`].
    Text,
    /// Text for a person who asks why: [`crate::show`].
    Show,
    /// The whole report as indented JSON: [`crate::json`].
    Json,
    /// The whole report as JSON on one line.
    JsonCompact,
    /// SARIF 2.1.0: [`crate::sarif`].
    Sarif,
    /// JUnit XML: [`crate::junit`].
    Junit,
    /// GitHub Actions annotations: [`crate::github`].
    Github,
    /// GitHub-flavoured Markdown: [`crate::markdown`].
    Markdown,
    /// What `auditwheel show --json` prints: [`crate::auditwheel`].
    AuditwheelJson,
}

/// How much a person wants to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// Only the wheels that fail, and the summary.
    Quiet,
    /// Errors and warnings, a few lines of evidence each.
    #[default]
    Normal,
    /// Also infos, more evidence and the table of objects.
    Verbose,
}

/// What the renderers need to know about a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleInfo {
    /// Stable identifier, `ABI101`.
    pub id: String,
    /// Stable name, `symbol-too-new`.
    pub name: String,
    /// One line of plain text without a full stop.
    pub summary: String,
    /// The rule's documentation in Markdown; written by us, never taken from a wheel.
    pub explanation: String,
    /// Address of the rule's documentation; empty when there is none.
    pub help_uri: String,
    /// Severity unless the configuration says otherwise.
    pub default_severity: Severity,
}

/// Everything that may change a rendering beside the report itself. `Default` gives the plain, deterministic form.
#[derive(Debug, Clone)]
pub struct RenderOptions {
    /// Level of detail of [`Format::Text`].
    pub verbosity: Verbosity,
    /// Lists every symbol, member and finding instead of folding long lists (`--all`). Text and `show` only.
    pub all: bool,
    /// Columns of the terminal; `None` when the output is not a terminal. It only decides whether details stand beside
    /// a symbol or below it: no line is ever broken, so that symbols and commands stay whole when copied.
    pub width: Option<usize>,
    /// Writes ANSI styles in text formats. The caller wraps its stream with `anstream`, which drops them again for
    /// `NO_COLOR` and for what is not a terminal.
    pub color: bool,
    /// Findings at or above this make a wheel fail (`--fail-on`).
    pub fail_on: Severity,
    /// How long the audit took, for the last line of the text form; `None` leaves it out.
    pub elapsed: Option<Duration>,
    /// The rules that ran, in the order of their ids; SARIF and JUnit list those that found nothing, too.
    pub rules: Vec<RuleInfo>,
    /// File to which [`Format::Github`] appends what does not fit into annotations (`$GITHUB_STEP_SUMMARY`).
    pub step_summary: Option<PathBuf>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            verbosity: Verbosity::Normal,
            all: false,
            width: None,
            color: false,
            fail_on: Severity::Error,
            elapsed: None,
            rules: Vec::new(),
            step_summary: None,
        }
    }
}

/// Writes `report` to `out` in one of the formats.
///
/// # Errors
/// Whatever `out` (or the step summary file) answers, unchanged: a broken pipe is the caller's to recognise.
pub fn render(
    format: Format,
    report: &Report,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match format {
        Format::Text => crate::text::render(report, options, out),
        Format::Show => crate::show::render_show(report, options, out),
        Format::Json => crate::json::render(report, options, out),
        Format::JsonCompact => crate::json::render_compact(report, options, out),
        Format::Sarif => crate::sarif::render(report, options, out),
        Format::Junit => crate::junit::render(report, options, out),
        Format::Github => crate::github::render(report, options, out),
        Format::Markdown => crate::markdown::render(report, options, out),
        Format::AuditwheelJson => crate::auditwheel::render(report, options, out),
    }
}
