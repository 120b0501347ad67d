//! What GitHub shows and accepts.

mod common;

use std::fs;

use abiaudit_report::model::{Evidence, Finding, Report, Severity, Wheel};
use abiaudit_report::{Format, RenderOptions};
use common::{honest_wheel, options, rendered, report};

fn many_findings(wheels: usize, findings: usize) -> Report {
    let evidence = vec![Evidence { symbol: Some("s".repeat(300)), ..Evidence::default() }; 5];
    let finding = |index: usize| Finding {
        rule: format!("ABI{index:03}"),
        name: "some-rule".into(),
        severity: if index.is_multiple_of(2) { Severity::Error } else { Severity::Warning },
        message: format!("finding {index}"),
        evidence: evidence.clone(),
        ..Finding::default()
    };
    let wheel = |index: usize| Wheel {
        path: format!("dist/w{index}.whl"),
        findings: (0..findings).map(finding).collect(),
        ..honest_wheel()
    };
    report((0..wheels).map(wheel).collect())
}

#[test]
fn ten_annotations_of_a_kind_and_the_rest_counted() {
    let text = rendered(Format::Github, &many_findings(1, 50), &options());
    assert_eq!(text.lines().filter(|line| line.starts_with("::error ")).count(), 10);
    assert_eq!(text.lines().filter(|line| line.starts_with("::warning ")).count(), 10);
    assert!(text.contains("15 more errors without annotation"), "{text}");
}

#[test]
fn the_step_summary_is_appended_and_never_exceeds_a_mebibyte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("summary.md");
    let options = RenderOptions { step_summary: Some(path.clone()), ..options() };

    let text = rendered(Format::Github, &many_findings(1, 50), &options);
    assert!(text.contains("15 more errors in the step summary"), "{text}");
    let first = fs::read_to_string(&path).unwrap();
    assert!(first.contains("finding 49"), "everything is in the summary");

    let big = many_findings(60, 50);
    for _ in 0..3 {
        rendered(Format::Github, &big, &options);
        let summary = fs::read_to_string(&path).unwrap();
        assert!(summary.starts_with(&first), "earlier content stays");
        assert!(summary.len() <= 1024 * 1024, "{}", summary.len());
    }
    let summary = fs::read_to_string(&path).unwrap();
    assert!(summary.contains("left out for their size"));
    assert!(summary.len() > 1024 * 1024 / 2, "room is used: {}", summary.len());
}

#[test]
fn a_comment_fits_and_says_what_is_left_out() {
    let text = rendered(Format::Markdown, &many_findings(60, 50), &options());
    assert!(text.len() <= 65_536, "{}", text.len());
    assert!(text.contains("left out for their size"));
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
}
