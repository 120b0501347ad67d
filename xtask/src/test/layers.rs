//! Imports run strictly downward (docs/architecture.md): who may use which crate of ours.

use super::metadata::Metadata;

/// Each crate and all crates of ours that it may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("abiaudit-elf", &[]),
    ("abiaudit-wheel", &[]),
    ("abiaudit-policy", &[]),
    ("abiaudit-report", &[]),
    ("abiaudit-triage", &[]),
    ("abiaudit-edit", &["abiaudit-elf"]),
    (
        "abiaudit-mend",
        &["abiaudit-elf", "abiaudit-wheel", "abiaudit-policy", "abiaudit-detect", "abiaudit-edit"],
    ),
    ("abiaudit-toolchain", &["abiaudit-elf", "abiaudit-policy"]),
    ("abiaudit-scan", &["abiaudit-elf", "abiaudit-wheel", "abiaudit-policy", "abiaudit-detect"]),
    ("abiaudit-loader", &["abiaudit-elf"]),
    ("abiaudit-detect", &["abiaudit-elf", "abiaudit-policy", "abiaudit-wheel"]),
    (
        "abiaudit-process",
        &[
            "abiaudit-elf",
            "abiaudit-wheel",
            "abiaudit-policy",
            "abiaudit-scan",
            "abiaudit-loader",
            "abiaudit-detect",
        ],
    ),
    (
        "abiaudit-rules",
        &[
            "abiaudit-elf",
            "abiaudit-wheel",
            "abiaudit-policy",
            "abiaudit-scan",
            "abiaudit-loader",
            "abiaudit-detect",
            "abiaudit-process",
        ],
    ),
    (
        "abiaudit-repair",
        &[
            "abiaudit-elf",
            "abiaudit-wheel",
            "abiaudit-policy",
            "abiaudit-scan",
            "abiaudit-loader",
            "abiaudit-detect",
            "abiaudit-process",
            "abiaudit-rules",
            "abiaudit-edit",
            "abiaudit-mend",
        ],
    ),
    (
        "abiaudit-confirm",
        &[
            "abiaudit-elf",
            "abiaudit-wheel",
            "abiaudit-policy",
            "abiaudit-scan",
            "abiaudit-loader",
            "abiaudit-detect",
            "abiaudit-process",
        ],
    ),
    (
        "abiaudit",
        &[
            "abiaudit-confirm",
            "abiaudit-elf",
            "abiaudit-wheel",
            "abiaudit-policy",
            "abiaudit-scan",
            "abiaudit-loader",
            "abiaudit-detect",
            "abiaudit-process",
            "abiaudit-rules",
            "abiaudit-repair",
            "abiaudit-edit",
            "abiaudit-mend",
            "abiaudit-report",
            "abiaudit-toolchain",
            "abiaudit-triage",
        ],
    ),
    // Writes ELF files with the reader's test support; the others may use it in tests.
    ("abiaudit-testing", &["abiaudit-elf"]),
    (
        "xtask",
        &[
            "abiaudit-confirm",
            "abiaudit-edit",
            "abiaudit-elf",
            "abiaudit-loader",
            "abiaudit-policy",
            "abiaudit-process",
            "abiaudit-scan",
            "abiaudit-testing",
            "abiaudit-toolchain",
        ],
    ),
];

/// One line for each crate that breaks the order.
pub fn complaints(metadata: &Metadata) -> Vec<String> {
    let mut lines = Vec::new();
    for package in metadata.members() {
        let name = package.name.as_str();
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            lines.push(format!("{name} has no place in xtask/src/test/layers.rs"));
            continue;
        };
        let ours = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
        let wrong: Vec<&str> = ours
            .filter(|d| {
                !allowed.contains(&d.name.as_str()) && !is_test_help(name, &d.name, d.kind.as_deref())
            })
            .map(|d| d.name.as_str())
            .collect();
        if !wrong.is_empty() {
            lines.push(format!("{name} must not use {}", wrong.join(", ")));
        }
    }
    lines
}

/// Tests may use the wheel builder, and their own crate with its test support.
fn is_test_help(package: &str, dependency: &str, kind: Option<&str>) -> bool {
    kind == Some("dev") && (dependency == "abiaudit-testing" || dependency == package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complaints_of(name: &str, dependency: &str, kind: Option<&str>) -> Vec<String> {
        let metadata = json!({"packages": [{
            "name": name, "version": "0", "license": null, "source": null,
            "dependencies": [{"name": dependency, "kind": kind, "path": "somewhere"}],
        }]});
        complaints(&serde_json::from_value(metadata).expect("metadata"))
    }

    #[test]
    fn only_downward() {
        assert!(complaints_of("abiaudit-scan", "abiaudit-elf", None).is_empty());
        assert_eq!(
            complaints_of("abiaudit-elf", "abiaudit-wheel", None),
            ["abiaudit-elf must not use abiaudit-wheel"]
        );
        assert!(!complaints_of("abiaudit-report", "abiaudit", None).is_empty());
        assert!(!complaints_of("abiaudit-policy", "abiaudit-elf", Some("build")).is_empty());
        assert!(!complaints_of("a-new-crate", "abiaudit-elf", None).is_empty());
    }

    #[test]
    fn tests_may_build_wheels() {
        assert!(complaints_of("abiaudit-rules", "abiaudit-testing", Some("dev")).is_empty());
        assert!(!complaints_of("abiaudit-rules", "abiaudit-testing", None).is_empty());
    }

    #[test]
    fn no_crate_uses_itself_through_others() {
        for (name, allowed) in LAYERS {
            for used in *allowed {
                let (_, below) = LAYERS.iter().find(|(layer, _)| layer == used).expect("a known crate");
                assert!(!below.contains(name), "{name} and {used}");
                // What a crate uses, its users may use too, or the table contradicts itself.
                assert!(name == &"xtask" || below.iter().all(|b| allowed.contains(b)), "{name} and {used}");
            }
        }
    }
}
