//! Compares verdicts with the answers of a corpus manifest.
//!
//! ```text
//! cargo run --release -p abiaudit-rules --example verdicts -- MANIFEST.json DIRECTORY
//! ```
//! The manifest is a JSON array of wheels: `filename`, `auditwheel_hermetic.tag` or `auditwheel.tag`, and `facts` with
//! `needed_external` and `max_glibc`, `max_glibcxx`, `max_cxxabi`, `max_gcc`. Wheels that are not in the directory are
//! skipped. Prints each disagreement, then the counts.

#![allow(clippy::print_stdout, reason = "its purpose")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use abiaudit_rules::{Audit, Settings};
use serde_json::Value;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [manifest, directory] = arguments.as_slice() else {
        println!("usage: verdicts MANIFEST.json DIRECTORY");
        return ExitCode::from(2);
    };
    let wheels = match std::fs::read(manifest).map(|bytes| serde_json::from_slice::<Vec<Value>>(&bytes)) {
        Ok(Ok(wheels)) => wheels,
        Ok(Err(error)) => return complain(manifest, &error),
        Err(error) => return complain(manifest, &error),
    };
    let settings = Settings::default();
    let (mut judged, mut disagreements) = (0_u32, 0_u32);
    let mut time = Duration::ZERO;
    for wheel in &wheels {
        let file = wheel["filename"].as_str().unwrap_or_default();
        let path = Path::new(directory).join(file);
        if !path.exists() {
            continue;
        }
        judged += 1;
        let differences = match abiaudit_scan::scan(&path, &abiaudit_scan::Options::default()) {
            Err(error) => vec![error.to_string()],
            Ok(subjects) => {
                let start = std::time::Instant::now();
                let audits: Vec<Audit<'_>> = subjects.iter().map(|s| Audit::new(s, &settings)).collect();
                time += start.elapsed();
                audits.iter().flat_map(|audit| differences(audit, wheel)).collect()
            }
        };
        disagreements += u32::from(!differences.is_empty());
        for difference in differences {
            println!("{file}: {difference}");
        }
    }
    println!(
        "{judged} wheels, {disagreements} with differences; {time:?} for all audits, reading not counted"
    );
    ExitCode::from(u8::from(disagreements > 0))
}

fn complain(path: &str, error: &dyn std::fmt::Display) -> ExitCode {
    println!("{path}: {error}");
    ExitCode::from(2)
}

fn differences(audit: &Audit<'_>, wheel: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let theirs =
        [&wheel["auditwheel_hermetic"], &wheel["auditwheel"]].into_iter().find_map(|v| v["tag"].as_str());
    let ours = audit.verdict.as_ref().map(|v| v.tag.as_str());
    if theirs != ours {
        found.push(format!("tag: {} here, {} there", ours.unwrap_or("none"), theirs.unwrap_or("none")));
    }
    let ours: BTreeSet<&str> = audit.externals.iter().map(|e| e.soname.as_str()).collect();
    let theirs: BTreeSet<&str> = wheel["facts"]["needed_external"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if ours != theirs {
        let only =
            |a: &BTreeSet<&str>, b: &BTreeSet<&str>| a.difference(b).copied().collect::<Vec<_>>().join(" ");
        found.push(format!(
            "external: only here [{}], only there [{}]",
            only(&ours, &theirs),
            only(&theirs, &ours)
        ));
    }
    let newest = newest(audit);
    for family in ["GLIBC", "GLIBCXX", "CXXABI", "GCC"] {
        let ours = newest.get(family).map(String::as_str);
        let theirs = wheel["facts"][format!("max_{}", family.to_lowercase())].as_str();
        if ours != theirs {
            found.push(format!(
                "{family}: {} here, {} there",
                ours.unwrap_or("none"),
                theirs.unwrap_or("none")
            ));
        }
    }
    found
}

/// The newest version of each family that some object needs from a library outside of the input.
fn newest(audit: &Audit<'_>) -> BTreeMap<String, String> {
    let external: BTreeSet<&str> = audit.externals.iter().map(|e| e.soname.as_str()).collect();
    let mut newest: BTreeMap<String, String> = BTreeMap::new();
    for (_, entry) in audit.counted() {
        let system =
            entry.object.versions.needs.iter().filter(|n| external.contains(n.library.to_text().as_str()));
        for name in system.flat_map(|n| n.versions.iter().map(|v| v.name.to_text())) {
            let Some((family, version)) = name.split_once('_') else { continue };
            let kept = newest.entry(family.to_owned()).or_default();
            let numeric = version.starts_with(|c: char| c.is_ascii_digit());
            let newer =
                abiaudit_policy::compare_versions(version, kept).is_none_or(std::cmp::Ordering::is_gt);
            if numeric && (kept.is_empty() || newer) {
                version.clone_into(kept);
            }
        }
    }
    newest.retain(|_, version| !version.is_empty());
    newest
}
