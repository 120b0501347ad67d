//! The detection against real objects that were labelled by hand (`testdata/runtimes/truth.toml`).
//!
//! `ABIAUDIT_CORPUS` names one or more folders of wheels, separated by colons; wheels that are not there are
//! counted and said. `ABIAUDIT_CORPUS_MOST` bounds the size of a wheel in bytes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "the table is what the test is read for")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use abiaudit_detect::{Carries, CxxClass, MarkerScan, Threading, detect};
use abiaudit_elf::{Object, Wants};
use abiaudit_wheel::Limits;
use abiaudit_wheel::archive::{Archive, Scratch};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Truth {
    object: Vec<Label>,
    numeric: Vec<Numeric>,
}

/// One runtime that must be among those found.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numeric {
    distribution: String,
    member: String,
    runtime: String,
    threading: Option<String>,
    spelling: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    distribution: String,
    member: String,
    class: String,
    exposure: String,
    because: String,
    unseen: Option<Unseen>,
}

/// What is said of an object whose label shows in nothing that the detection looks at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unseen {
    class: String,
    exposure: String,
    why: String,
}

/// The table and the wheels at hand; `None` without a folder.
fn table() -> Option<(Truth, Vec<PathBuf>)> {
    let Ok(folders) = std::env::var("ABIAUDIT_CORPUS") else {
        eprintln!("SKIPPED: ABIAUDIT_CORPUS names no folder of wheels");
        return None;
    };
    let most = std::env::var("ABIAUDIT_CORPUS_MOST").map_or(u64::MAX, |text| text.parse().unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runtimes/truth.toml");
    let truth = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    Some((truth, folders.split(':').flat_map(|folder| wheels(Path::new(folder), most)).collect()))
}

fn wheel_of<'w>(distribution: &str, wheels: &'w [PathBuf]) -> Option<&'w PathBuf> {
    let start = format!("{distribution}-");
    wheels.iter().find(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&start) && name.contains("x86_64")
    })
}

#[test]
fn labelled_numeric_runtimes_are_found() {
    let Some((truth, wheels)) = table() else { return };
    let (mut right, mut absent, mut wrong) = (0, 0, Vec::new());
    for Numeric { distribution, member, runtime, threading, spelling } in &truth.numeric {
        let Some(wheel) = wheel_of(distribution, &wheels) else {
            absent += 1;
            continue;
        };
        let carries = carries_of_member(wheel, member);
        let runtimes: Vec<String> =
            carries.runtimes().iter().map(|r| format!("{} {}", r.kind, r.class)).collect();
        let threads = carries.blas.iter().find_map(|blas| blas.threading).map(|threading| match threading {
            Threading::Serial => "serial",
            Threading::Pthreads => "pthreads",
            Threading::OpenMp => "openmp",
        });
        let interfaces = carries.blas.iter().flat_map(|blas| &blas.interfaces);
        let spellings: Vec<&String> = interfaces.flat_map(|interface| &interface.symbols).collect();
        let agrees = runtimes.contains(runtime)
            && threads == threading.as_deref()
            && spelling.as_ref().is_none_or(|spelling| spellings.contains(&spelling));
        if agrees {
            right += 1;
        } else {
            wrong.push(format!("{distribution}: {member}: {runtimes:?} {threads:?} {spellings:?}"));
        }
    }
    println!("numeric: {right} right, {} wrong, {absent} absent", wrong.len());
    assert!(wrong.is_empty(), "wrong:\n  {}", wrong.join("\n  "));
}

#[test]
fn labelled_objects_are_told_right() {
    let Some((truth, wheels)) = table() else { return };
    let mut by_wheel: BTreeMap<&str, Vec<&Label>> = BTreeMap::new();
    for label in &truth.object {
        by_wheel.entry(&label.distribution).or_default().push(label);
    }
    let (mut right, mut absent, mut unseen, mut wrong) = (0, Vec::new(), Vec::new(), Vec::new());
    for (distribution, labels) in by_wheel {
        let Some(wheel) = wheel_of(distribution, &wheels) else {
            absent.extend(labels.iter().map(|label| format!("{distribution}: {}", label.member)));
            continue;
        };
        for label in labels {
            let carries = carries_of_member(wheel, &label.member);
            let (class, exposure) = (class_name(&carries.cxx.class), carries.cxx.exposure.as_str());
            let line = || {
                format!(
                    "{distribution}: {}: labelled {} {:?} ({}), found {class} {exposure:?}",
                    label.member, label.class, label.exposure, label.because
                )
            };
            if (class, exposure) == (&label.class, &label.exposure) {
                assert!(label.unseen.is_none(), "{}: it can be seen after all", line());
                right += 1;
            } else if let Some(known) = &label.unseen
                && (class, exposure) == (&known.class, &known.exposure)
            {
                unseen.push(format!("{}: {}", line(), known.why));
            } else {
                let evidence: Vec<_> = carries.cxx.evidence.iter().map(ToString::to_string).collect();
                wrong.push(format!("{}\n      {}", line(), evidence.join("\n      ")));
            }
        }
    }
    println!(
        "{right} right, {} not to be seen, {} wrong, {} absent",
        unseen.len(),
        wrong.len(),
        absent.len()
    );
    println!("not to be seen:\n  {}", unseen.join("\n  "));
    println!("absent:\n  {}", absent.join("\n  "));
    assert!(wrong.is_empty(), "wrong:\n  {}", wrong.join("\n  "));
    assert!(right > 0, "no wheel of the table is at hand");
}

fn wheels(folder: &Path, most: u64) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut wheels: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.metadata().unwrap().len() <= most)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "whl"))
        .collect();
    wheels.sort();
    wheels
}

fn carries_of_member(wheel: &Path, member: &str) -> Carries {
    let archive = Archive::open(wheel, &Limits::default()).unwrap();
    let end = format!("/{member}");
    let entries = || archive.members().iter();
    let entry = entries()
        .find(|entry| entry.name == member)
        .or_else(|| entries().find(|entry| entry.name.ends_with(&end)))
        .unwrap_or_else(|| panic!("{}: no member {member}", wheel.display()));
    let (mut bytes, mut scan) = (Vec::new(), MarkerScan::new());
    let read = archive.read(entry, &mut Scratch::new(), &mut |chunk: &[u8]| {
        bytes.extend_from_slice(chunk);
        scan.push(chunk);
        Ok(())
    });
    read.unwrap();
    let object = Object::from_bytes(&bytes, &Wants { symtab: true }).unwrap();
    detect(&object, &scan.finish())
}

fn class_name(class: &CxxClass) -> &'static str {
    match class {
        CxxClass::None => "none",
        CxxClass::Dynamic => "dynamic",
        CxxClass::Partial => "partial",
        CxxClass::Full => "full",
        CxxClass::FullAndNeeded => "full-and-needed",
        CxxClass::Minimal => "minimal",
        CxxClass::LibCxx { .. } => "libc++",
        CxxClass::Vendored => "library",
    }
}
