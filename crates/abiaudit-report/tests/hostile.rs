//! Names, symbols and messages from files that mean harm.

mod common;

use std::io;

use abiaudit_report::model::*;
use abiaudit_report::{Format, RenderOptions, Verbosity, render};
use common::{lying_wheel, options, rendered, report};

/// A new line that looks like a workflow command or a verdict, ANSI and OSC sequences, a bidirectional override, Markdown
/// and XML syntax, and a mention.
const EVIL: &str = "x\n::error::forged\r\n2 wheels\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}1m\u{202e}gnp\u{2066}\u{200b}|`]]><b>&@org/team%0A\0\u{ffff}";

/// [`EVIL`] in every field that a wheel can fill.
fn hostile() -> Report {
    let evil = || EVIL.to_owned();
    let some = || Some(evil());
    let symbol = || LadderSymbol {
        member: evil(),
        symbol: evil(),
        version: some(),
        library: some(),
        demangled: some(),
        since: some(),
    };
    let finding = |member: Option<String>, severity| Finding {
        rule: evil(),
        name: evil(),
        severity,
        member,
        message: evil(),
        help: some(),
        evidence: vec![
            Evidence {
                symbol: some(),
                demangled: some(),
                version: some(),
                since: some(),
                library: some(),
                member: some(),
                note: some(),
            },
            Evidence { note: some(), ..Evidence::default() },
        ],
        count: 5,
        suppressed: None,
    };
    let mut suppressed = finding(None, Severity::Error);
    suppressed.rule = format!("ABI1{EVIL}");
    suppressed.suppressed = Some(Suppression { reason: evil(), expires: some() });
    let mut wheel = Wheel {
        path: format!("dist/{EVIL}.whl"),
        name: some(),
        version: some(),
        sha256: some(),
        tags: vec![evil()],
        arch: some(),
        libc: some(),
        objects: vec![Object {
            member: evil(),
            soname: some(),
            needed: vec![evil()],
            rpath: vec![evil()],
            runpath: vec![evil()],
            versions: [(evil(), evil())].into(),
            runtimes: vec![Runtime { kind: evil(), class: evil(), exposure: evil(), evidence: vec![evil()] }],
            ..Object::default()
        }],
        external: vec![External {
            soname: evil(),
            needed_by: vec![evil()],
            provider: Some(Provider { distribution: evil(), lib_dir: some(), declared_as: some() }),
            class: ExternalClass::Provider,
        }],
        ladder: vec![Rung {
            tag: evil(),
            symbols: vec![symbol()],
            libraries: vec![evil()],
            forbidden: vec![symbol()],
            other: vec![evil()],
        }],
        findings: vec![
            finding(some(), Severity::Error),
            finding(Some("a.so".into()), Severity::Warning),
            finding(None, Severity::Info),
            suppressed,
        ],
        ..lying_wheel()
    };
    let verdict = wheel.verdict.as_mut().expect("the sample has a verdict");
    (verdict.tag, verdict.tag_with_providers, verdict.claim) = (evil(), format!("{EVIL}2"), some());
    verdict.reasons = vec![evil()];
    verdict.by.symbols = evil();
    let error = Some(WheelError { kind: evil(), message: evil() });
    let broken = Wheel { path: format!("{EVIL}2.whl"), error, ..Wheel::default() };
    report(vec![wheel, broken])
}

/// No character that a terminal or a reader's eye would obey, and no line that the report did not begin itself.
fn assert_harmless(format: Format, text: &str) {
    for character in text.chars() {
        let harmless = character == '\n' || !character.is_control();
        assert!(
            harmless && !"\u{202e}\u{2066}\u{200b}\u{ffff}".contains(character),
            "{format:?}: {character:?}"
        );
    }
    assert!(!text.lines().any(|line| line.trim_start().starts_with("::error::forged")), "{format:?}: {text}");
    assert!(!text.lines().any(|line| line.starts_with("2 wheels\\x1b")), "{format:?}: {text}");
}

fn hostile_in(format: Format, options: &RenderOptions) -> String {
    let text = rendered(format, &hostile(), options);
    assert_harmless(format, &text);
    assert!(
        text.contains("x\\n::error::forged\\r\\n") || text.contains("x\\\\n"),
        "{format:?} shows it: {text}"
    );
    text
}

#[test]
fn text() {
    for verbosity in [Verbosity::Quiet, Verbosity::Normal, Verbosity::Verbose] {
        for all in [false, true] {
            hostile_in(Format::Text, &RenderOptions { verbosity, all, width: Some(40), ..options() });
        }
    }
}

#[test]
fn show() {
    for all in [false, true] {
        hostile_in(Format::Show, &RenderOptions { all, ..options() });
    }
}

#[test]
fn markdown() {
    let text = hostile_in(Format::Markdown, &options());
    // Theirs has one backtick, so code spans have a fence of two; what is between spans is read as Markdown.
    let outside_code: String = text.split("``").step_by(2).collect();
    assert!(!outside_code.contains("<b>"), "no HTML of theirs: {outside_code}");
    assert!(outside_code.replace("@<!-- -->", "").find('@').is_none(), "nobody is mentioned: {outside_code}");
    for row in text.lines().filter(|line| line.starts_with('|')) {
        let cells = row.replace("\\|", "").matches('|').count();
        assert_eq!(cells, 4, "a table row of three cells: {row}");
    }
}

#[test]
fn github() {
    let text = hostile_in(Format::Github, &options());
    for line in text.lines().filter(|line| line.starts_with("::")) {
        let (properties, message) = line[2..].split_once("::").unwrap();
        assert_eq!(properties.matches(',').count(), 1, "title and file only: {line}");
        assert!(!properties.contains(':'), "{line}");
        assert!(message.contains("%250A"), "a percent sign of theirs is escaped: {line}");
    }
}

#[test]
fn junit() {
    let text = hostile_in(Format::Junit, &options());
    assert!(!text.contains("<b>") && !text.contains("]]>"), "{text}");
}

#[test]
fn sarif() {
    let text = rendered(Format::Sarif, &hostile(), &options());
    let log: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut strings = Vec::new();
    collect_strings(&log, &mut strings);
    for string in &strings {
        assert_harmless(Format::Sarif, string);
    }
    assert!(strings.iter().any(|string| string.contains("x\\n::error::forged")));
    let uri =
        log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str();
    assert!(uri.unwrap().is_ascii() && !uri.unwrap().contains([' ', '\n', ':']), "{uri:?}");
}

fn collect_strings<'a>(value: &'a serde_json::Value, strings: &mut Vec<&'a str>) {
    let children: Vec<&serde_json::Value> = match value {
        serde_json::Value::String(string) => {
            strings.push(string);
            return;
        }
        serde_json::Value::Array(values) => values.iter().collect(),
        serde_json::Value::Object(members) => members.values().collect(),
        _ => return,
    };
    for child in children {
        collect_strings(child, strings);
    }
}

#[test]
fn json_carries_everything_unchanged() {
    let text = rendered(Format::Json, &hostile(), &options());
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), hostile());
}

#[test]
fn a_closed_pipe_is_reported_as_such() {
    struct Closed;
    impl io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for format in [
        Format::Text,
        Format::Show,
        Format::Json,
        Format::JsonCompact,
        Format::Sarif,
        Format::Junit,
        Format::Github,
        Format::Markdown,
        Format::AuditwheelJson,
    ] {
        let error = render(format, &hostile(), &options(), &mut Closed).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{format:?}");
    }
}
