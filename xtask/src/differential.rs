//! `differential`: abiaudit's verdicts on real wheels beside auditwheel's and an independent reader's.
//!
//! Every deviation must be written down in testdata/corpus/deviations.toml with a reason that
//! docs/differences-from-auditwheel.md explains; a line there that no longer holds is an error too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::corpus::{self, CorpusWheel};
use crate::shell;

/// The release of auditwheel whose answers are recorded.
pub const AUDITWHEEL: &str = "auditwheel==6.8.2";

/// Families whose newest versions are compared.
const FAMILIES: [&str; 5] = ["CXXABI", "GCC", "GLIBC", "GLIBCXX", "ZLIB"];

/// One line of deviations.toml.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    wheel: String,
    field: String,
    ours: String,
    theirs: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviations {
    #[serde(default)]
    deviation: Vec<Deviation>,
}

/// A field in which two answers differ.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    field: &'static str,
    ours: String,
    theirs: String,
}

/// The command line.
pub fn run(args: &[String]) -> Result<()> {
    let live = args.iter().any(|arg| arg == "--live");
    let wheels: Vec<PathBuf> = args.iter().filter(|arg| !arg.starts_with('-')).map(PathBuf::from).collect();
    if let Some(unknown) = args.iter().find(|arg| arg.starts_with('-') && *arg != "--live") {
        bail!("unknown option {unknown}; usage: cargo xtask differential [--live] [WHEEL..]");
    }
    let program = shell::build("release")?;
    if live {
        return side_by_side(&program, &wheels);
    }
    let tally = recorded(&program, &corpus::directory()?, &wheels)?;
    ensure!(tally.failed == 0, "{} of {} wheels fail", tally.failed, tally.failed + tally.passed);
    Ok(())
}

/// How many wheels agree or deviate as written, and how many do not.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// As expected.
    pub passed: u64,
    /// Deviations that nobody wrote down, and stale lines.
    pub failed: u64,
    /// Not in the cache.
    pub absent: u64,
}

/// Compares with the recorded answers: all wheels of the manifest that are in `directory`, or only the named ones.
pub fn recorded(program: &Path, directory: &Path, only: &[PathBuf]) -> Result<Tally> {
    let named: BTreeMap<String, &PathBuf> = only.iter().map(|path| (shell::file_name(path), path)).collect();
    let mut pairs: Vec<(CorpusWheel, PathBuf)> = Vec::new();
    let mut tally = Tally::default();
    for wheel in corpus::manifest()? {
        let path = match named.get(&wheel.filename) {
            Some(path) => (*path).clone(),
            None if only.is_empty() => directory.join(&wheel.filename),
            None => continue,
        };
        if path.is_file() {
            pairs.push((wheel, path));
        } else {
            tally.absent += 1;
        }
    }
    ensure!(!pairs.is_empty(), "no wheel of the manifest is in {} (cargo xtask corpus)", directory.display());
    let listed = deviations()?;
    let reports = check(program, pairs.iter().map(|(_, path)| path))?;
    for ((wheel, _), report) in pairs.iter().zip(&reports) {
        let complaints = judge(wheel, report, &listed);
        let failed = complaints.iter().any(|complaint| complaint.starts_with('!'));
        let verdict = report["verdict"]["tag"].as_str().unwrap_or("-");
        let theirs = wheel.auditwheel.as_deref().unwrap_or("fails");
        let word = if failed { "FAIL" } else { "ok" };
        println!("{word:<4} {verdict:<24} {theirs:<24} {}", wheel.filename);
        for line in complaints.iter().chain(&wheel.auditwheel_error) {
            println!("       {line}");
        }
        *(if failed { &mut tally.failed } else { &mut tally.passed }) += 1;
    }
    println!(
        "{} wheels agree or deviate as written, {} do not, {} are not here",
        tally.passed, tally.failed, tally.absent
    );
    Ok(tally)
}

/// One line for each deviation; those that fail begin with `!`.
fn judge(wheel: &CorpusWheel, report: &Value, listed: &[Deviation]) -> Vec<String> {
    let differences = differences(wheel, report);
    let mine: Vec<&Deviation> = listed.iter().filter(|d| d.wheel == wheel.filename).collect();
    let mut lines = Vec::new();
    for difference in &differences {
        let Difference { field, ours, theirs } = difference;
        let known = mine.iter().find(|d| d.field == *field && d.ours == *ours && d.theirs == *theirs);
        lines.push(match known {
            Some(deviation) => format!("{field}: {ours} here, {theirs} there: {}", deviation.reason),
            None => format!("! {field}: {ours} here, {theirs} there, and nobody says why"),
        });
    }
    let stale = |d: &&&Deviation| {
        !differences.iter().any(|x| d.field == x.field && d.ours == x.ours && d.theirs == x.theirs)
    };
    lines.extend(
        mine.iter().filter(stale).map(|d| format!("! deviations.toml: no longer true of {}: {d:?}", d.field)),
    );
    lines
}

/// Compares one report with the manifest.
fn differences(wheel: &CorpusWheel, report: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |field, ours: String, theirs: String| {
        if ours != theirs {
            found.push(Difference { field, ours, theirs });
        }
    };
    let tag = report["verdict"]["tag"].as_str().or(report["error"]["kind"].as_str()).unwrap_or("none");
    let theirs = wheel.auditwheel.clone().unwrap_or_else(|| "fails".to_owned());
    compare("tag", tag.to_owned(), theirs);
    let external = strings(&report["external"], "soname");
    let external: BTreeSet<&str> = external.into_iter().filter(|soname| !is_dynamic_loader(soname)).collect();
    compare("external", join(external), join(wheel.external.iter().map(String::as_str)));
    let newest = newest(report);
    for family in FAMILIES {
        let theirs = wheel.newest.get(family).map_or("-", String::as_str);
        compare(family, newest.get(family).copied().unwrap_or("-").to_owned(), theirs.to_owned());
    }
    let count = report["objects"].as_array().map_or(0, Vec::len);
    compare("elf_count", count.to_string(), wheel.elf_count.to_string());
    found
}

fn strings<'a>(list: &'a Value, key: &str) -> BTreeSet<&'a str> {
    list.as_array().into_iter().flatten().filter_map(|entry| entry[key].as_str()).collect()
}

fn join<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(" ")
}

/// The reader that measured `external` left out the loader, which the process has in any case.
fn is_dynamic_loader(soname: &str) -> bool {
    soname.starts_with("ld-linux") || soname.starts_with("ld64.so")
}

/// The newest version of each family over all objects.
fn newest(report: &Value) -> BTreeMap<&str, &str> {
    let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
    let objects = report["objects"].as_array().into_iter().flatten();
    for (family, version) in objects.filter_map(|object| object["versions"].as_object()).flatten() {
        let Some(version) = version.as_str() else { continue };
        let entry = newest.entry(family).or_insert(version);
        if numbers(version) > numbers(entry) {
            *entry = version;
        }
    }
    newest
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// Runs the command on all paths at once; one report a path, in their order.
pub fn check<'a>(program: &Path, paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<Value>> {
    let mut command = Command::new(program);
    command.args(["check", "--no-config", "--format", "json"]).args(paths);
    let output = command.output().with_context(|| format!("cannot run {}", program.display()))?;
    let code = output.status.code();
    ensure!(matches!(code, Some(0..=2)), "abiaudit check: {}", output.status);
    let mut report: Value =
        serde_json::from_slice(&output.stdout).context("abiaudit check prints no JSON")?;
    match report["wheels"].take() {
        Value::Array(wheels) => Ok(wheels),
        _ => bail!("abiaudit check reports no wheels"),
    }
}

/// The written deviations, whose reasons must be headings of the page that explains them.
fn deviations() -> Result<Vec<Deviation>> {
    let root = shell::root();
    let page = fs::read_to_string(root.join("docs/differences-from-auditwheel.md"))
        .context("cannot read docs/differences-from-auditwheel.md")?;
    let reasons: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let text = fs::read_to_string(root.join("testdata/corpus/deviations.toml"))
        .context("cannot read testdata/corpus/deviations.toml")?;
    let list: Deviations = toml::from_str(&text).context("testdata/corpus/deviations.toml")?;
    let wheels: BTreeSet<String> = corpus::manifest()?.into_iter().map(|wheel| wheel.filename).collect();
    for deviation in &list.deviation {
        ensure!(
            reasons.contains(deviation.reason.as_str()),
            "no heading {:?} in docs/differences-from-auditwheel.md",
            deviation.reason
        );
        ensure!(
            wheels.contains(&deviation.wheel),
            "deviations.toml: {} is not in the manifest",
            deviation.wheel
        );
    }
    Ok(list.deviation)
}

/// Runs auditwheel itself beside abiaudit.
fn side_by_side(program: &Path, wheels: &[PathBuf]) -> Result<()> {
    ensure!(!wheels.is_empty(), "--live needs wheels");
    let auditwheel = shell::venv("auditwheel", &[AUDITWHEEL])?.join("bin/auditwheel");
    let reports = check(program, wheels)?;
    let mut differ = 0;
    println!("{:<24} {:<24} wheel", "abiaudit", "auditwheel");
    for (path, report) in wheels.iter().zip(&reports) {
        let ours =
            report["verdict"]["tag"].as_str().or(report["error"]["message"].as_str()).unwrap_or("none");
        let theirs = auditwheel_tag(&auditwheel, path)?;
        differ += u32::from(ours != theirs);
        let mark = if ours == theirs { "" } else { "  DIFFERS (docs/differences-from-auditwheel.md)" };
        println!("{ours:<24} {theirs:<24} {}{mark}", shell::file_name(path));
    }
    println!("{} wheels, {differ} differ", wheels.len());
    Ok(())
}

/// The tag by auditwheel without the libraries of this machine, or the last line of its complaint.
fn auditwheel_tag(auditwheel: &Path, wheel: &Path) -> Result<String> {
    let mut command = Command::new(auditwheel);
    let output = command.args(["show", "--json", "--ldpaths", ""]).arg(wheel).output();
    let output = output.with_context(|| format!("cannot run {}", auditwheel.display()))?;
    let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let tag = answer.as_ref().and_then(|answer| answer["overall_tag"].as_str());
    let complaint = String::from_utf8_lossy(&output.stderr);
    Ok(match tag {
        Some(tag) => tag.to_owned(),
        None => format!("fails: {}", complaint.trim().lines().next_back().unwrap_or("no message")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wheel() -> CorpusWheel {
        serde_json::from_value(json!({
            "filename": "w.whl", "sha256": "", "tier": "tiny", "pip_args": [], "auditwheel": "manylinux_2_17_x86_64",
            "external": ["libc.so.6"], "newest": {"GLIBC": "2.17"}, "elf_count": 1,
        }))
        .expect("a wheel")
    }

    fn report(tag: &str) -> Value {
        json!({
            "verdict": {"tag": tag},
            "external": [{"soname": "libc.so.6"}, {"soname": "ld-linux-x86-64.so.2"}],
            "objects": [{"versions": {"GLIBC": "2.17"}}],
        })
    }

    fn deviation(ours: &str) -> Deviation {
        let [wheel, field, theirs, reason] =
            ["w.whl", "tag", "manylinux_2_17_x86_64", "why"].map(str::to_owned);
        Deviation { wheel, field, ours: ours.to_owned(), theirs, reason }
    }

    #[test]
    fn agreement_says_nothing() {
        assert!(judge(&wheel(), &report("manylinux_2_17_x86_64"), &[]).is_empty());
    }

    #[test]
    fn an_unlisted_deviation_and_a_stale_line_fail() {
        let lines = judge(&wheel(), &report("linux_x86_64"), &[]);
        assert!(lines[0].starts_with("! tag: linux_x86_64 here"), "{lines:?}");
        let lines = judge(&wheel(), &report("linux_x86_64"), &[deviation("linux_x86_64")]);
        assert!(lines.len() == 1 && lines[0].ends_with(": why"), "{lines:?}");
        let lines = judge(&wheel(), &report("manylinux_2_17_x86_64"), &[deviation("linux_x86_64")]);
        assert!(lines[0].starts_with("! deviations.toml"), "{lines:?}");
    }

    #[test]
    fn versions_compare_by_number() {
        let mut report = report("manylinux_2_17_x86_64");
        report["objects"] = json!([{"versions": {"GLIBC": "2.9"}}, {"versions": {"GLIBC": "2.17"}}]);
        assert_eq!(newest(&report).get("GLIBC"), Some(&"2.17"));
        report["objects"] = json!([{"versions": {"GLIBC": "2.9"}}, {"versions": {}}]);
        let found: Vec<&str> = differences(&wheel(), &report).iter().map(|d| d.field).collect();
        assert_eq!(found, ["GLIBC", "elf_count"]);
    }

    #[test]
    fn the_written_deviations_have_reasons() {
        assert!(!deviations().expect("both files").is_empty());
    }
}
