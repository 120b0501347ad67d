//! The JSON form: its names are a contract, its schema is committed, its samples fit the schema.

mod common;

use std::{env, fs, path::PathBuf};

use abiaudit_report::model::{Finding, Report, Severity, Suppression, Wheel};
use abiaudit_report::{Format, json};
use common::{all_shapes, options, rendered, report};
use serde_json::Value;

fn schema_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/abiaudit.report-1.schema.json")
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let current = json::schema().to_value();
    let path = schema_path();
    if env::var_os("UPDATE_SCHEMA").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&current).unwrap())).unwrap();
    }
    // Compared as values: the order of keys depends on which features of serde_json the whole build enables.
    let committed: Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    assert!(committed == current, "the schema has changed: UPDATE_SCHEMA=1 cargo test -p abiaudit-report");
}

#[test]
fn samples_fit_the_schema_and_a_broken_one_does_not() {
    let schema = json::schema().to_value();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for sample in [all_shapes(), report(vec![])] {
        let value = serde_json::to_value(&sample).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
    let mut broken = serde_json::to_value(all_shapes()).unwrap();
    broken["schema"] = "abiaudit.report/2".into();
    assert!(!validator.is_valid(&broken));
    let mut broken = serde_json::to_value(all_shapes()).unwrap();
    broken["wheels"][0]["verdict"].as_object_mut().unwrap().remove("claim_ok");
    assert!(!validator.is_valid(&broken));
}

fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "{key} is missing in {value}");
    }
}

#[test]
fn the_names_of_the_contract_are_there() {
    let text = rendered(Format::Json, &all_shapes(), &options());
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], "abiaudit.report/1");
    has_keys(&value["tool"], &["name", "version"]);
    has_keys(&value["summary"], &["wheels", "errors", "warnings", "infos"]);
    let wheel = &value["wheels"][0];
    for wheel in value["wheels"].as_array().unwrap() {
        has_keys(wheel, &["path", "name", "version", "sha256", "tags", "arch", "libc", "verdict"]);
        has_keys(wheel, &["objects", "external", "ladder", "findings", "error", "kind", "pure"]);
    }
    has_keys(&wheel["verdict"], &["tag", "tag_with_providers", "by", "claim_ok", "claim", "reasons"]);
    has_keys(&wheel["verdict"]["by"], &["symbols", "libraries", "forbidden", "isa", "python"]);
    has_keys(
        &wheel["objects"][0],
        &["member", "soname", "needed", "rpath", "runpath", "versions", "runtimes"],
    );
    has_keys(&wheel["objects"][0], &["arch", "type", "build_id", "versions_by_library"]);
    has_keys(&wheel["objects"][0]["runtimes"][0], &["kind", "class", "exposure", "evidence"]);
    has_keys(&wheel["external"][0], &["soname", "needed_by", "provider", "class"]);
    has_keys(&wheel["external"][1]["provider"], &["distribution", "lib_dir", "declared_as"]);
    has_keys(&wheel["ladder"][1], &["tag", "symbols", "libraries", "forbidden", "other"]);
    has_keys(
        &wheel["ladder"][1]["symbols"][0],
        &["member", "symbol", "version", "library", "demangled", "since"],
    );
    has_keys(&wheel["findings"][0], &["rule", "name", "severity", "member", "message", "help", "evidence"]);
    has_keys(&wheel["findings"][0], &["count", "suppressed"]);
    assert_eq!(wheel["error"], Value::Null);
    has_keys(&value["wheels"][4]["error"], &["kind", "message"]);
    assert_eq!(value["wheels"][3]["verdict"], Value::Null);
    assert_eq!(value["wheels"][3]["pure"], true);
}

#[test]
fn json_reads_back_and_compact_is_one_line() {
    let sample = all_shapes();
    let back: Report = serde_json::from_str(&rendered(Format::Json, &sample, &options())).unwrap();
    assert_eq!(back, sample);
    let compact = rendered(Format::JsonCompact, &sample, &options());
    assert_eq!(compact.matches('\n').count(), 1);
    assert_eq!(serde_json::from_str::<Report>(&compact).unwrap(), sample);
}

#[test]
fn a_report_without_the_added_fields_reads() {
    let text = r#"{"schema":"abiaudit.report/1","tool":{"name":"abiaudit","version":"0"},
        "summary":{"wheels":1,"errors":0,"warnings":0,"infos":0},"wheels":[{"path":"a.whl","name":"a","version":"1",
        "sha256":null,"tags":[],"arch":null,"libc":null,"verdict":{"tag":"t","tag_with_providers":"t","by":{"symbols":"t",
        "libraries":"t","forbidden":"t","isa":"t","python":"t"},"claim_ok":true},"objects":[],"external":[],
        "ladder":[{"tag":"t","symbols":[],"libraries":[]}],"findings":[],"error":null,"of_a_later_version":1}]}"#;
    let report: Report = serde_json::from_str(text).unwrap();
    assert_eq!(report.wheels[0].path, "a.whl");
}

#[test]
fn the_summary_counts_suppressed_findings_apart() {
    let finding = |severity, suppressed| Finding { severity, suppressed, ..Finding::default() };
    let findings = vec![
        finding(Severity::Error, None),
        finding(Severity::Error, Some(Suppression::default())),
        finding(Severity::Info, None),
    ];
    let summary = report(vec![Wheel { findings, ..Wheel::default() }, common::broken_wheel()]).summary;
    assert_eq!((summary.wheels, summary.errors, summary.warnings, summary.infos), (2, 1, 0, 1));
    assert_eq!((summary.suppressed, summary.unreadable), (1, 1));
}
