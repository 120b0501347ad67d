//! Reads real wheels: every member, verified against the directory and RECORD. The wheels are not part of the
//! repository; `ABIAUDIT_CORPUS` names a directory that holds them.

use std::path::{Path, PathBuf};

use abiaudit_wheel::distinfo::record::{ActualMember, compare};
use abiaudit_wheel::{Archive, DistInfo, Limits, MemberKind, Scratch, WheelName};
use sha2::{Digest, Sha256};

/// Findings of real wheels of good standing, looked at one by one: the beginning of the finding's debug form, and
/// of the wheel's name. Anything else fails the test.
const UNDERSTOOD: [(&str, &str); 13] = [
    // Made before names had to be normalised.
    ("NameNotNormalized", "MarkupSafe-"),
    ("NameNotNormalized", "Pillow-"),
    ("NameNotNormalized", "PyQt5-"),
    ("NameNotNormalized", "PyYAML-"),
    // Its RECORD has hexadecimal digests, where base64 is wanted.
    ("Record(BadHash", "gmsh-4.13.1"),
    // Asks for `pytz (>=2011k)`, which PEP 440 does not know.
    ("Metadata(BadRequirement", "pandas-0.22.0"),
    // Renamed after the build; WHEEL still says linux_x86_64 or any.
    ("TagMismatch", "cupy_cuda12x-13.3.0"),
    ("TagMismatch", "mysql_connector_python-9.1.0"),
    ("TagMismatch", "playwright-1.49.1"),
    ("TagMismatch", "ray-2.60.0"),
    ("TagMismatch", "torch"),
    ("TagMismatch", "vllm-0.6.4"),
    ("TagMismatch", "xgboost-0.90"),
];

#[test]
fn real_wheels_have_no_problem_that_is_not_understood() {
    let Some(directory) = std::env::var_os("ABIAUDIT_CORPUS") else {
        eprintln!("SKIPPED: ABIAUDIT_CORPUS is not set, no real wheel was read");
        return;
    };
    let wheels = wheels(Path::new(&directory));
    assert!(!wheels.is_empty(), "no wheel in ABIAUDIT_CORPUS");
    let mut unexplained = Vec::new();
    for path in &wheels {
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for finding in findings(path, &file_name) {
            let understood = UNDERSTOOD
                .iter()
                .any(|(kind, wheel)| finding.starts_with(kind) && file_name.starts_with(wheel));
            if !understood {
                unexplained.push(format!("{file_name}: {finding}"));
            }
        }
    }
    eprintln!("{} wheels read", wheels.len());
    assert!(unexplained.is_empty(), "{} findings:\n{}", unexplained.len(), unexplained.join("\n"));
}

fn wheels(directory: &Path) -> Vec<PathBuf> {
    let mut wheels: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("ABIAUDIT_CORPUS is a directory")
        .map(|entry| entry.expect("readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .collect();
    wheels.sort();
    wheels
}

fn findings(path: &Path, file_name: &str) -> Vec<String> {
    let name = match WheelName::parse(file_name) {
        Ok(name) => name,
        Err(error) => return vec![error.to_string()],
    };
    assert_eq!(name.to_string(), file_name);
    let archive = match Archive::open(path, &Limits::default()) {
        Ok(archive) => archive,
        Err(error) => return vec![error.to_string()],
    };
    let mut scratch = Scratch::new();
    let info = DistInfo::read(&archive, Some(&name), &mut scratch);
    let mut findings: Vec<String> = name.problems().iter().map(|problem| format!("{problem:?}")).collect();
    findings.extend(archive.problems().iter().map(|problem| format!("{problem:?}")));
    findings.extend(info.problems.iter().map(|problem| format!("{problem:?}")));
    let mut actual = Vec::new();
    for member in archive.members().iter().filter(|member| member.kind != MemberKind::Directory) {
        let mut hasher = Sha256::new();
        let outcome = archive.read(member, &mut scratch, &mut |chunk| {
            hasher.update(chunk);
            Ok(())
        });
        match outcome {
            Ok(outcome) if outcome.complete && outcome.unused == 0 => {
                let sha256 = Some(hasher.finalize().into());
                actual.push(ActualMember { name: &member.name, size: Some(outcome.bytes), sha256 });
            }
            Ok(outcome) => findings.push(format!("{outcome:?} {}", member.name)),
            Err(error) => findings.push(error.to_string()),
        }
    }
    match &info.record {
        Some(record) => findings.extend(compare(record, actual).iter().map(|problem| format!("{problem:?}"))),
        None => findings.push("no RECORD".to_owned()),
    }
    findings
}
