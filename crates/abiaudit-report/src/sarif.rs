//! SARIF 2.1.0 (OASIS standard) for code scanning.
//!
//! One run; one result for each (rule, member) of a wheel with its symbols folded in, because a single object can have
//! tens of thousands. The physical location is the wheel file, the logical location the member.
//!
//! GitHub's limits for uploads ("SARIF support for code scanning"): 25,000 results a run of which the first 5,000 are
//! shown, 1,000 locations a result, 20 tags a rule, 10 MB after gzip. Results are written worst first, and whatever
//! does not fit is folded or left out with a notification `truncated` that says so.

mod fingerprint;
mod results;
mod schema;

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::escape::{brief, visible};
use crate::model::{Report, Wheel};
use crate::options::{RenderOptions, RuleInfo};
use results::RuleResult;
use schema::{
    Descriptor, DescriptorReference, Driver, Invocation, Level, Location, Log, Message, Notification,
    Properties, Run, Tool,
};

/// Results that GitHub accepts in a run.
const MOST_RESULTS: usize = 25_000;
/// Results that GitHub shows of a run.
const MOST_SHOWN_RESULTS: usize = 5_000;
/// Size that GitHub accepts, compressed with gzip.
const MOST_COMPRESSED_BYTES: usize = 10_000_000;
/// Pieces of evidence written into a result's message, and what is tried when the log is too big.
const EVIDENCE_STEPS: [usize; 3] = [50, 10, 1];

/// Writes `report` as SARIF. `options.rules` become the rule descriptors; a rule that only a finding names is added.
pub fn render(report: &Report, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let log = fitting_log(report, options, MOST_COMPRESSED_BYTES)?;
    out.write_all(&log)?;
    writeln!(out)
}

/// The log with as much evidence, then as many results, as fit into `most_bytes` of gzip.
fn fitting_log(report: &Report, options: &RenderOptions, most_bytes: usize) -> io::Result<Vec<u8>> {
    let results = results::by_rule_and_member(report);
    let mut kept = results.len().min(MOST_RESULTS);
    let mut log = Vec::new();
    for evidence in EVIDENCE_STEPS {
        log = serialise(report, options, &results, kept, evidence)?;
        if fits(&log, most_bytes)? {
            return Ok(log);
        }
    }
    while kept > 0 {
        kept /= 2;
        log = serialise(report, options, &results, kept, EVIDENCE_STEPS[EVIDENCE_STEPS.len() - 1])?;
        if fits(&log, most_bytes)? {
            break;
        }
    }
    // Without any result the log is as small as it gets: rules and notifications.
    Ok(log)
}

fn fits(log: &[u8], most_bytes: usize) -> io::Result<bool> {
    if log.len() < most_bytes {
        return Ok(true);
    }
    let mut encoder = GzEncoder::new(ByteCount(0), Compression::default());
    encoder.write_all(log)?;
    Ok(encoder.finish()?.0 <= most_bytes)
}

/// Counts what is written.
struct ByteCount(usize);

impl Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn serialise(
    report: &Report,
    options: &RenderOptions,
    results: &[RuleResult<'_>],
    kept: usize,
    evidence: usize,
) -> io::Result<Vec<u8>> {
    let rules = rules_of(report, options);
    let mut notifications: Vec<Notification> =
        report.wheels.iter().filter_map(unreadable_notification).collect();
    notifications.extend(truncated_notification(results, kept, evidence));
    let log = Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: vec![Run {
            results: results.iter().take(kept).map(|result| result.to_sarif(&rules, evidence)).collect(),
            tool: Tool {
                driver: Driver {
                    name: &report.tool.name,
                    version: &report.tool.version,
                    rules: rules.iter().map(descriptor).collect(),
                },
            },
            invocations: vec![Invocation {
                execution_successful: report.wheels.iter().all(|wheel| wheel.error.is_none()),
                tool_execution_notifications: notifications,
            }],
            column_kind: "unicodeCodePoints",
        }],
    };
    Ok(serde_json::to_vec_pretty(&log)?)
}

/// The rules that ran, and those that only findings name.
fn rules_of(report: &Report, options: &RenderOptions) -> Vec<RuleInfo> {
    let mut rules = options.rules.clone();
    for finding in report.wheels.iter().flat_map(|wheel| &wheel.findings) {
        if !rules.iter().any(|rule| rule.id == finding.rule) {
            rules.push(RuleInfo {
                id: finding.rule.clone(),
                name: finding.name.clone(),
                summary: String::new(),
                explanation: String::new(),
                help_uri: String::new(),
                default_severity: finding.severity,
            });
        }
    }
    rules
}

fn descriptor(rule: &RuleInfo) -> Descriptor<'_> {
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Descriptor {
        id: visible(&rule.id),
        name: visible(&rule.name),
        short_description: Message::text(
            filled(&rule.summary).unwrap_or_else(|| visible(&rule.name).into_owned()),
        ),
        // The specification wants plain text beside Markdown; the Markdown source reads well enough as such.
        help: filled(&rule.explanation).map(|text| Message { markdown: Some(text.clone()), text }),
        help_uri: filled(&rule.help_uri),
        default_configuration: schema::Configuration { level: Level::of(rule.default_severity) },
        properties: Properties { tags: vec!["abi", "wheel", family(&rule.id)] },
    }
}

/// The family of a rule by the first digit of its number.
fn family(id: &str) -> &'static str {
    match id.strip_prefix("ABI").and_then(|number| number.bytes().next()) {
        Some(b'1') => "target",
        Some(b'2') => "cxx-runtime",
        Some(b'3') => "numeric-runtime",
        Some(b'4') => "loading",
        Some(b'5') => "elf-hygiene",
        Some(b'6') => "wheel-format",
        Some(b'7') => "parity",
        Some(b'8') => "pins",
        _ => "other",
    }
}

fn unreadable_notification(wheel: &Wheel) -> Option<Notification> {
    let error = wheel.error.as_ref()?;
    Some(Notification {
        level: Level::Error,
        descriptor: DescriptorReference { id: visible(&error.kind).into_owned() },
        message: Message::text(format!("{}: {}", visible(&wheel.path), brief(&error.message))),
        locations: vec![Location::of(&wheel.path, None)],
    })
}

/// Says what is missing from the log or will not be shown.
fn truncated_notification(results: &[RuleResult<'_>], kept: usize, evidence: usize) -> Option<Notification> {
    let mut parts = Vec::new();
    if kept < results.len() {
        parts.push(format!(
            "{} of {} results are left out, the least severe ones",
            results.len() - kept,
            results.len()
        ));
    }
    if kept > MOST_SHOWN_RESULTS {
        parts.push(format!("GitHub shows the first {MOST_SHOWN_RESULTS} of {kept} results"));
    }
    let folded = results.iter().take(kept).filter(|result| result.unnamed_after(evidence) > 0).count();
    if folded > 0 {
        parts.push(format!("{folded} results name only their first {evidence} pieces of evidence"));
    }
    (!parts.is_empty()).then(|| Notification {
        level: if kept < results.len() { Level::Warning } else { Level::Note },
        descriptor: DescriptorReference { id: "truncated".to_owned() },
        message: Message::text(format!("{}; the JSON report has everything", parts.join("; "))),
        locations: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Evidence, Finding, Severity};

    fn big_report(findings: usize, evidence: usize) -> Report {
        let finding = |index: usize| Finding {
            rule: "ABI101".to_owned(),
            name: "symbol-too-new".to_owned(),
            severity: if index.is_multiple_of(2) { Severity::Error } else { Severity::Info },
            member: Some(format!("pkg/{index}.so")),
            message: "too new".to_owned(),
            evidence: (0..evidence)
                .map(|n| Evidence { symbol: Some(format!("symbol_{index}_{n}")), ..Evidence::default() })
                .collect(),
            ..Finding::default()
        };
        let wheel = Wheel {
            path: "a.whl".to_owned(),
            findings: (0..findings).map(finding).collect(),
            ..Wheel::default()
        };
        let tool = crate::model::Tool { name: "abiaudit".to_owned(), version: "0".to_owned() };
        Report::new(tool, vec![wheel])
    }

    fn parsed(log: &[u8]) -> serde_json::Value {
        serde_json::from_slice(log).unwrap()
    }

    #[test]
    fn too_many_results_are_cut_worst_first_and_said() {
        let log = parsed(
            &fitting_log(&big_report(MOST_RESULTS + 10, 1), &RenderOptions::default(), usize::MAX).unwrap(),
        );
        let run = &log["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), MOST_RESULTS);
        assert_eq!(run["results"][0]["level"], "error");
        assert_eq!(run["results"][MOST_RESULTS - 1]["level"], "note");
        let notification = &run["invocations"][0]["toolExecutionNotifications"][0];
        assert_eq!(notification["descriptor"]["id"], "truncated");
        let text = notification["message"]["text"].as_str().unwrap();
        assert!(text.contains("10 of 25010 results are left out"), "{text}");
        assert!(text.contains("GitHub shows the first 5000"), "{text}");
    }

    #[test]
    fn a_log_too_big_loses_evidence_before_results() {
        let report = big_report(40, 60);
        let options = RenderOptions::default();
        let compressed = |log: &[u8]| {
            let mut encoder = GzEncoder::new(ByteCount(0), Compression::default());
            encoder.write_all(log).unwrap();
            encoder.finish().unwrap().0
        };
        let full = fitting_log(&report, &options, usize::MAX).unwrap();
        let folded = fitting_log(&report, &options, compressed(&full) - 1).unwrap();
        assert_eq!(parsed(&folded)["runs"][0]["results"].as_array().unwrap().len(), 40);
        assert!(compressed(&folded) < compressed(&full));
        let least = fitting_log(&report, &options, 1500).unwrap();
        assert!(compressed(&least) <= 1500, "{}", compressed(&least));
        let kept = parsed(&least)["runs"][0]["results"].as_array().unwrap().len();
        assert!(kept > 0 && kept < 40, "{kept}");
    }
}
