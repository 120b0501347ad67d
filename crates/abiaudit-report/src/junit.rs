//! JUnit XML for CI servers: a test suite for each wheel, a test case for each rule that ran.
//!
//! A rule fails when one of its findings reaches [`RenderOptions::fail_on`]; milder findings go into the test's output.
//! A rule whose findings are all suppressed is skipped, with the reason. A wheel that could not be audited is an error.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report as JunitReport, TestCase, TestCaseStatus, TestSuite};

use crate::escape::brief;
use crate::layout::{Labelled, counted};
use crate::model::{Finding, Report, Wheel, WheelError};
use crate::options::RenderOptions;

/// Pieces of evidence listed for a finding.
const MOST_EVIDENCE: usize = 20;

/// Writes `report` as JUnit XML.
pub fn render(report: &Report, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut junit = JunitReport::new(brief(&report.tool.name));
    junit.add_test_suites(report.wheels.iter().map(|wheel| suite(wheel, options)));
    let mut xml = Vec::new();
    junit.serialize(&mut xml).map_err(io::Error::other)?;
    out.write_all(&xml)
}

fn suite(wheel: &Wheel, options: &RenderOptions) -> TestSuite {
    let mut suite = TestSuite::new(brief(&wheel.path));
    let cases = match &wheel.error {
        Some(error) => vec![unreadable(error)],
        None => cases(wheel, options),
    };
    suite.add_test_cases(cases.into_iter().map(|mut case| {
        case.set_classname(brief(wheel.file_name()));
        case
    }));
    suite
}

fn unreadable(error: &WheelError) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_message(brief(&error.message)).set_type(brief(&error.kind));
    TestCase::new("audit", status)
}

fn cases(wheel: &Wheel, options: &RenderOptions) -> Vec<TestCase> {
    let mut by_rule: BTreeMap<&str, (&str, Vec<&Finding>)> =
        options.rules.iter().map(|rule| (rule.id.as_str(), (rule.name.as_str(), Vec::new()))).collect();
    for finding in &wheel.findings {
        by_rule.entry(&finding.rule).or_insert((&finding.name, Vec::new())).1.push(finding);
    }
    by_rule.into_iter().map(|(rule, (name, findings))| case(rule, name, &findings, options)).collect()
}

fn case(rule: &str, name: &str, findings: &[&Finding], options: &RenderOptions) -> TestCase {
    let (suppressed, active): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().copied().partition(|finding| finding.suppressed.is_some());
    let (failing, mild): (Vec<&Finding>, Vec<&Finding>) =
        active.into_iter().partition(|finding| finding.severity >= options.fail_on);

    let status = if let Some(worst) = failing.iter().min_by_key(|finding| Reverse(finding.severity)) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let more = match failing.len() - 1 {
            0 => String::new(),
            more => format!(" (and {})", counted(more, "more finding")),
        };
        status
            .set_message(format!("{}{more}", subject(worst)))
            .set_type(worst.severity.as_str())
            .set_description(descriptions(&failing));
        status
    } else if let (Some(reason), true) =
        (suppressed.iter().find_map(|f| f.suppressed.as_ref()), mild.is_empty())
    {
        let mut status = TestCaseStatus::skipped();
        status.set_message(format!("suppressed: {}", brief(&reason.reason)));
        status
    } else {
        TestCaseStatus::success()
    };

    let mut case = TestCase::new(format!("{} {}", brief(rule), brief(name)), status);
    if !mild.is_empty() {
        case.set_system_out(descriptions(&mild));
    }
    case
}

/// `lib/x.so: message`.
fn subject(finding: &Finding) -> String {
    match &finding.member {
        Some(member) => format!("{}: {}", brief(member), brief(&finding.message)),
        None => brief(&finding.message).into_owned(),
    }
}

fn descriptions(findings: &[&Finding]) -> String {
    let mut lines = Vec::new();
    for finding in findings {
        lines.push(format!("{}: {}", finding.severity.as_str(), subject(finding)));
        let shown = finding.evidence.iter().take(MOST_EVIDENCE);
        lines.extend(shown.map(|e| {
            format!("  {}", Labelled::from_evidence(e, finding.member.as_deref(), false).to_line())
        }));
        let hidden = finding.unnamed_after(MOST_EVIDENCE);
        if hidden > 0 {
            lines.push(format!("  ... {hidden} more"));
        }
        lines.extend(finding.help.as_deref().map(|help| format!("  mend: {}", brief(help))));
    }
    lines.join("\n")
}
