//! SARIF: the properties that the standard requires, folding, suppressions, errors.
//!
//! With `ABIAUDIT_SARIF_SCHEMA` naming the official `sarif-schema-2.1.0.json` (the crate serde-sarif carries it as
//! `src/schema.json`), the log is also validated against it.

mod common;

use std::{env, fs};

use abiaudit_report::Format;
use abiaudit_report::model::{Finding, Report};
use common::{all_shapes, broken_wheel, honest_wheel, lying_wheel, options, rendered, report};
use serde_json::Value;

fn log(report: &Report) -> Value {
    serde_json::from_str(&rendered(Format::Sarif, report, &options())).expect("SARIF is JSON")
}

fn results(log: &Value) -> &Vec<Value> {
    log["runs"][0]["results"].as_array().expect("a run has results")
}

#[test]
fn required_properties_are_there() {
    let log = log(&all_shapes());
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(log["runs"].as_array().unwrap().len(), 1);
    let driver = &log["runs"][0]["tool"]["driver"];
    assert_eq!(driver["name"], "abiaudit");
    let rules = driver["rules"].as_array().unwrap();
    for rule in rules {
        assert!(rule["id"].is_string() && rule["shortDescription"]["text"].is_string());
        assert!(rule["properties"]["tags"].as_array().unwrap().len() <= 20);
    }
    for result in results(&log) {
        assert!(result["message"]["text"].is_string());
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
        let location = &result["locations"][0]["physicalLocation"];
        assert!(location["artifactLocation"]["uri"].as_str().unwrap().starts_with("dist/"));
        assert!(location["region"]["startLine"].as_u64().unwrap() >= 1);
        for fingerprint in result["partialFingerprints"].as_object().unwrap().values() {
            assert!(fingerprint.is_string());
        }
    }
}

#[test]
fn one_result_for_a_rule_and_member() {
    let mut wheel = lying_wheel();
    let twice: Vec<Finding> = wheel.findings.iter().filter(|f| f.rule == "ABI401").cloned().collect();
    wheel.findings.extend(twice);
    let log = log(&report(vec![wheel]));
    let of_rule: Vec<&Value> = results(&log).iter().filter(|result| result["ruleId"] == "ABI401").collect();
    assert_eq!(of_rule.len(), 1);
    assert_eq!(
        of_rule[0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"],
        "torch/lib/libtorch.so"
    );
    assert_eq!(
        of_rule[0]["relatedLocations"][0]["logicalLocations"][0]["fullyQualifiedName"],
        "torch/lib/other.so"
    );
}

#[test]
fn suppressed_findings_are_suppressed_results() {
    let log = log(&report(vec![lying_wheel()]));
    let suppressed: Vec<&Value> = results(&log).iter().filter(|r| r.get("suppressions").is_some()).collect();
    assert_eq!(suppressed.len(), 1);
    assert_eq!(suppressed[0]["ruleId"], "ABI501");
    assert_eq!(suppressed[0]["suppressions"][0]["kind"], "external");
    let justification = suppressed[0]["suppressions"][0]["justification"].as_str().unwrap();
    assert!(justification.ends_with("(until 2027-06-30)"), "{justification}");
}

#[test]
fn an_unreadable_wheel_is_a_notification_and_a_failed_run() {
    let failed = log(&report(vec![broken_wheel(), honest_wheel()]));
    let invocation = &failed["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(invocation["toolExecutionNotifications"][0]["level"], "error");
    assert_eq!(log(&report(vec![honest_wheel()]))["runs"][0]["invocations"][0]["executionSuccessful"], true);
}

#[test]
fn fingerprints_survive_a_new_hash_and_version_but_not_another_rule() {
    let with_member = |member: &str, version: &str, rule: &str| {
        let mut wheel = lying_wheel();
        wheel.version = Some(version.into());
        wheel.path = format!("dist/torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl");
        wheel.findings.truncate(1);
        wheel.findings[0].member = Some(member.into());
        wheel.findings[0].rule = rule.into();
        results(&log(&report(vec![wheel])))[0]["partialFingerprints"].clone()
    };
    let before = with_member("torch.libs/libgfortran-040039e1-0352e75f.so.5.0.0", "2.6.0", "ABI501");
    assert_eq!(before, with_member("torch.libs/libgfortran-11112222.so.5.0.0", "2.7.0", "ABI501"));
    assert_ne!(before, with_member("torch.libs/libquadmath-11112222.so.0", "2.6.0", "ABI501"));
    assert_ne!(before, with_member("torch.libs/libgfortran-11112222.so.5.0.0", "2.6.0", "ABI502"));
}

#[test]
fn the_official_schema_accepts_the_log() {
    let Some(path) = env::var_os("ABIAUDIT_SARIF_SCHEMA") else {
        eprintln!("SKIPPED: ABIAUDIT_SARIF_SCHEMA does not name the official SARIF schema");
        return;
    };
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    // The published pattern for languages has a stray bracket, which a strict ECMA-262 reader refuses. We write none.
    for component in ["run", "toolComponent"] {
        let language = schema["definitions"][component]["properties"]["language"].as_object_mut();
        language.expect("the official schema describes a language").remove("pattern");
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    for sample in [all_shapes(), report(vec![])] {
        let log = log(&sample);
        let errors: Vec<String> =
            validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}
