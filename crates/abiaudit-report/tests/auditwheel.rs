//! auditwheel-json against auditwheel's own schema, when `ABIAUDIT_AUDITWHEEL_SCHEMA` names its `show-schema.json`.

mod common;

use std::{env, fs};

use abiaudit_report::Format;
use common::{all_shapes, bare_file, broken_wheel, lying_wheel, options, pure_wheel, rendered, report};
use serde_json::{Value, json};

#[test]
fn auditwheels_schema_accepts_every_document() {
    let Some(path) = env::var_os("ABIAUDIT_AUDITWHEEL_SCHEMA") else {
        eprintln!("SKIPPED: ABIAUDIT_AUDITWHEEL_SCHEMA does not name auditwheel's show-schema.json");
        return;
    };
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = rendered(Format::AuditwheelJson, &all_shapes(), &options());
    assert_eq!(text.lines().count(), all_shapes().wheels.len());
    for line in text.lines() {
        let document: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{line}\n{errors:#?}");
    }
}

#[test]
fn the_three_shapes() {
    let one = |wheel| -> Value {
        serde_json::from_str(&rendered(Format::AuditwheelJson, &report(vec![wheel]), &options())).unwrap()
    };
    assert_eq!(
        one(pure_wheel()),
        json!({"version": 1, "wheel": "six-1.17.0-py2.py3-none-any.whl", "pure": true})
    );
    assert_eq!(one(broken_wheel())["error"], "end of central directory not found");
    let platform = one(lying_wheel());
    assert_eq!(platform["overall_tag"], "linux_x86_64");
    assert_eq!(platform["sym_tag"], "manylinux_2_35_x86_64");
    // Sorted as text, without the dynamic loader's own versions.
    let versions = json!({"libc.so.6": ["GLIBC_2.17", "GLIBC_2.2.5"], "libstdc++.so.6": ["GLIBCXX_3.4.26"]});
    assert_eq!(platform["versioned_symbols"], versions);
    let external = json!({"libcublas.so.12": null, "libcuda.so.1": null, "libnope.so.1": null});
    assert_eq!(platform["external_libs"], external);
    let forbidden = &platform["policy_upgrades"]["manylinux_2_12_x86_64"]["blacklisted_symbols"];
    assert_eq!(*forbidden, json!({"libz.so.1": ["_dist_code"]}));
}

#[test]
fn python_traits_and_instruction_sets_are_told_apart() {
    let mut wheel = bare_file();
    let verdict = wheel.verdict.as_mut().unwrap();
    verdict.python_abi.pyfpe = true;
    verdict.by.isa = "linux_x86_64".into();
    let text = rendered(Format::AuditwheelJson, &report(vec![wheel]), &options());
    assert!(text.starts_with("{\n    \"version\": 1,"), "auditwheel indents by four: {text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&document["pyfpe"], &document["ucs2"]), (&json!(true), &json!(false)));
    assert_eq!(document["unsupported_isa"], true);
}
