//! The verdict on one wheel in one line, and the totals in one line.

use std::collections::BTreeSet;

use crate::escape::brief;
use crate::layout::{counted, joined};
use crate::model::{InputKind, Report, Severity, Summary, Verdict, Wheel};

/// How a wheel fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    /// No native code and nothing wrong.
    Pure,
    /// Nothing in it could be judged.
    NotJudged,
    Fail,
    /// It could not be audited.
    Unreadable,
}

impl Status {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Pure => "pure",
            Self::NotJudged => "not judged",
            Self::Fail => "FAIL",
            Self::Unreadable => "ERROR",
        }
    }

    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::Fail | Self::Unreadable)
    }
}

/// A wheel's verdict line without the file name. `detail` starts with its own separator and is already escaped.
pub(crate) struct Headline {
    pub(crate) status: Status,
    pub(crate) detail: String,
}

/// Judges `wheel`: it fails when a finding reaches `fail_on`, as the exit code does. A claim that does not hold is said
/// in any case, and why nothing failed: its error is suppressed, or the rule did not run or was made lighter.
pub(crate) fn headline(wheel: &Wheel, fail_on: Severity) -> Headline {
    if let Some(error) = &wheel.error {
        return Headline { status: Status::Unreadable, detail: format!(": {}", brief(&error.message)) };
    }
    let failing = wheel.active_findings().any(|finding| finding.severity >= fail_on);
    let excused = wheel.findings.iter().any(|f| f.suppressed.is_some() && f.severity == Severity::Error);
    let broken_claim = wheel.verdict.as_ref().filter(|verdict| !verdict.claim_ok);

    if let Some(verdict) = broken_claim.filter(|_| failing) {
        return Headline {
            status: Status::Fail,
            detail: format!(": {}", claim_against_content(verdict, wheel)),
        };
    }
    let counts = finding_counts(wheel);
    if failing {
        return Headline { status: Status::Fail, detail: format!(": {counts}") };
    }
    let (status, mut detail) = match (&wheel.verdict, broken_claim, &wheel.not_judged) {
        (_, Some(verdict), _) => {
            let why = if excused { "suppressed" } else { "by the rules that ran; not judged" };
            (Status::Ok, format!(" ({why}: {})", claim_against_content(verdict, wheel)))
        }
        (Some(verdict), None, _) => (Status::Ok, how_it_holds(verdict, wheel)),
        (None, None, Some(reason)) => (Status::NotJudged, format!(": {}", brief(reason))),
        (None, None, None) if wheel.pure => (Status::Pure, String::new()),
        (None, None, None) => (Status::Ok, String::new()),
    };
    if !counts.is_empty() {
        detail.push_str(", ");
        detail.push_str(&counts);
    }
    Headline { status, detail }
}

fn claim_against_content(verdict: &Verdict, wheel: &Wheel) -> String {
    let claim = verdict.claim.as_deref().unwrap_or("another tag");
    let honoured = short_tag(&verdict.tag_with_providers, wheel);
    let claim = short_tag(claim, wheel);
    if verdict.tag == verdict.tag_with_providers {
        format!("claims {claim}, honours {honoured}")
    } else {
        format!("claims {claim}, honours {honoured} with providers, {} alone", short_tag(&verdict.tag, wheel))
    }
}

/// What a reader should know beyond "ok": on whom the wheel leans, or what it honours where it promises nothing.
fn how_it_holds(verdict: &Verdict, wheel: &Wheel) -> String {
    if verdict.tag != verdict.tag_with_providers {
        let providers: BTreeSet<&str> = wheel
            .external
            .iter()
            .filter_map(|e| e.provider.as_ref())
            .map(|p| p.distribution.as_str())
            .collect();
        let names: Vec<_> = providers.into_iter().collect();
        return format!(" (with providers: {})", joined(&names, 4));
    }
    match &verdict.claim {
        Some(_) => String::new(),
        None => format!(": honours {}", short_tag(&verdict.tag, wheel)),
    }
}

/// `2 errors, 1 warning`; empty when there is nothing to count.
fn finding_counts(wheel: &Wheel) -> String {
    let of = |severity| wheel.active_findings().filter(|finding| finding.severity == severity).count();
    [(of(Severity::Error), "error"), (of(Severity::Warning), "warning")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| counted(count, noun))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A platform tag without the wheel's own architecture, which its file name says already: `manylinux_2_28`.
/// `linux_x86_64` stays whole.
pub(crate) fn short_tag(tag: &str, wheel: &Wheel) -> String {
    let short =
        wheel.arch.as_deref().and_then(|arch| tag.strip_suffix(arch)).and_then(|t| t.strip_suffix('_'));
    match short {
        Some(short) if short != "linux" && !short.is_empty() => brief(short).into_owned(),
        _ => brief(tag).into_owned(),
    }
}

/// What each wheel is called: its file name, or its path where two wheels share a file name.
pub(crate) fn display_names(report: &Report) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let ambiguous: BTreeSet<&str> =
        report.wheels.iter().map(Wheel::file_name).filter(|name| !seen.insert(*name)).collect();
    report
        .wheels
        .iter()
        .map(|wheel| {
            let file_name = wheel.file_name();
            brief(if ambiguous.contains(file_name) { &wheel.path } else { file_name }).into_owned()
        })
        .collect()
}

/// `2 wheels, 1 error, 0 warnings, 1 suppressed, 1 unreadable`.
pub(crate) fn totals(report: &Report) -> String {
    let Summary { wheels, errors, warnings, suppressed, unreadable, .. } = report.summary;
    let all_wheels = report.wheels.iter().all(|wheel| wheel.kind == InputKind::Wheel);
    let noun = if all_wheels { "wheel" } else { "input" };
    let mut parts = vec![counted(wheels, noun), counted(errors, "error"), counted(warnings, "warning")];
    for (count, what) in [(suppressed, "suppressed"), (unreadable, "unreadable")] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Criteria, Finding, PythonAbi, Suppression};

    fn wheel(claim_ok: bool, findings: &[(Severity, bool)]) -> Wheel {
        let tag = || "manylinux_2_35_x86_64".to_owned();
        let by = Criteria { symbols: tag(), libraries: tag(), forbidden: tag(), isa: tag(), python: tag() };
        let finding = |&(severity, suppressed): &(Severity, bool)| Finding {
            severity,
            suppressed: suppressed.then(Suppression::default),
            ..Finding::default()
        };
        Wheel {
            path: "a.whl".to_owned(),
            arch: Some("x86_64".to_owned()),
            verdict: Some(Verdict {
                tag: tag(),
                tag_with_providers: tag(),
                by,
                claim_ok,
                claim: Some("manylinux_2_28_x86_64".to_owned()),
                reasons: Vec::new(),
                python_abi: PythonAbi::default(),
            }),
            findings: findings.iter().map(finding).collect(),
            ..Wheel::default()
        }
    }

    fn line(wheel: &Wheel, fail_on: Severity) -> String {
        let Headline { status, detail } = headline(wheel, fail_on);
        format!("{}{detail}", status.word())
    }

    #[test]
    fn a_broken_claim_fails_with_its_finding() {
        let expected = "FAIL: claims manylinux_2_28, honours manylinux_2_35";
        assert_eq!(line(&wheel(false, &[(Severity::Error, false)]), Severity::Error), expected);
    }

    /// The exit code is 0 then: the rules that would have failed were not selected.
    #[test]
    fn a_broken_claim_that_no_rule_speaks_of_is_said_and_fails_nothing() {
        let expected =
            "ok (by the rules that ran; not judged: claims manylinux_2_28, honours manylinux_2_35)";
        assert_eq!(line(&wheel(false, &[]), Severity::Error), expected);
        let expected = format!("{expected}, 1 warning");
        assert_eq!(line(&wheel(false, &[(Severity::Warning, false)]), Severity::Error), expected);
    }

    #[test]
    fn what_could_not_be_judged_is_not_ok() {
        let other =
            Wheel { verdict: None, not_judged: Some("not a Linux wheel".to_owned()), ..wheel(true, &[]) };
        assert_eq!(line(&other, Severity::Error), "not judged: not a Linux wheel");
        let broken = Wheel { findings: wheel(true, &[(Severity::Error, false)]).findings, ..other };
        assert_eq!(line(&broken, Severity::Error), "FAIL: 1 error");
    }

    #[test]
    fn a_suppressed_error_excuses_the_claim_and_the_line_says_so() {
        let excused = wheel(false, &[(Severity::Error, true)]);
        let expected = "ok (suppressed: claims manylinux_2_28, honours manylinux_2_35)";
        assert_eq!(line(&excused, Severity::Error), expected);
    }

    #[test]
    fn what_fails_is_the_callers_choice() {
        let warned = wheel(true, &[(Severity::Warning, false), (Severity::Warning, false)]);
        assert_eq!(line(&warned, Severity::Error), "ok, 2 warnings");
        assert_eq!(line(&warned, Severity::Warning), "FAIL: 2 warnings");
    }

    #[test]
    fn a_pure_wheel_with_an_error_fails() {
        let pure = Wheel { verdict: None, pure: true, ..wheel(true, &[(Severity::Error, false)]) };
        assert_eq!(line(&pure, Severity::Error), "FAIL: 1 error");
        let clean = Wheel { findings: Vec::new(), ..pure };
        assert_eq!(line(&clean, Severity::Error), "pure");
    }
}
