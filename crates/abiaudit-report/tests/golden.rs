//! Every format against files in `tests/golden/`. After an intended change: `SNAPSHOTS=overwrite cargo test -p
//! abiaudit-report`, then read the difference before committing it.

mod common;

use std::path::Path;
use std::time::Duration;

use abiaudit_report::{Format, RenderOptions, Verbosity};
use common::{all_shapes, options, rendered};
use snapbox::data::DataFormat;
use snapbox::{Assert, Data};

fn check(name: &str, format: Format, options: &RenderOptions) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let actual = rendered(format, &all_shapes(), options);
    Assert::new().action_env("SNAPSHOTS").eq(actual, Data::read_from(&path, Some(DataFormat::Text)).raw());
}

#[test]
fn text_quiet() {
    check("quiet.txt", Format::Text, &RenderOptions { verbosity: Verbosity::Quiet, ..options() });
}

#[test]
fn text_normal() {
    check("normal.txt", Format::Text, &options());
}

#[test]
fn text_verbose() {
    check("verbose.txt", Format::Text, &RenderOptions { verbosity: Verbosity::Verbose, ..options() });
}

#[test]
fn text_all() {
    check("all.txt", Format::Text, &RenderOptions { all: true, ..options() });
}

#[test]
fn text_coloured_with_time() {
    let options = RenderOptions { color: true, elapsed: Some(Duration::from_millis(345)), ..options() };
    check("coloured.txt", Format::Text, &options);
}

#[test]
fn show() {
    check("show.txt", Format::Show, &options());
}

#[test]
fn show_all() {
    check("show-all.txt", Format::Show, &RenderOptions { all: true, width: Some(200), ..options() });
}

#[test]
fn json() {
    check("report.json", Format::Json, &options());
}

#[test]
fn sarif() {
    check("report.sarif", Format::Sarif, &options());
}

#[test]
fn junit() {
    check("junit.xml", Format::Junit, &options());
}

#[test]
fn github() {
    check("github.txt", Format::Github, &options());
}

#[test]
fn markdown() {
    check("report.md", Format::Markdown, &options());
}

#[test]
fn auditwheel_json() {
    check("auditwheel.jsonl", Format::AuditwheelJson, &options());
}
