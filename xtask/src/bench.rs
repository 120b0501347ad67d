//! `bench`: what a check costs, beside inflating the same members (`bsdtar -xO`) and beside `auditwheel show`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_testing::{Arch, ElfWriter, TestWheel};
use anyhow::{Context, Result, ensure};

use crate::measure::{Cost, cost, median};
use crate::{differential, shell};

/// Runs of each command; auditwheel runs once.
const RUNS: usize = 5;
/// Runs of a start.
const STARTS: usize = 20;
/// What is fetched when no wheel is given: requirement and Python.
const DEFAULT: [&str; 2] = ["scipy==1.18.1", "pyarrow==26.0.1"];

/// One wheel's figures.
struct Row {
    wheel: String,
    size: u64,
    check: Cost,
    one_thread: Cost,
    bsdtar: Option<Cost>,
    auditwheel: Option<Cost>,
}

/// Measures the wheels of the arguments and writes docs/benchmarks.md. `--program FILE` measures that build of abiaudit.
pub fn run(args: &[String]) -> Result<()> {
    let (mut program, mut wheels) = (None, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--program" => program = Some(PathBuf::from(shell::value(arg, &mut args)?)),
            _ => wheels.push(PathBuf::from(arg)),
        }
    }
    if wheels.is_empty() {
        wheels = fetch()?;
    }
    let program = program.map_or_else(|| shell::build("release"), Ok)?;
    if let Err(error) = shell::install(&[("bsdtar", "libarchive-tools")]) {
        println!("without bsdtar: {error:#}");
    }
    let bsdtar = shell::has("bsdtar");
    let auditwheel = match shell::venv("auditwheel", &[differential::AUDITWHEEL]) {
        Ok(venv) => Some(venv.join("bin/auditwheel")),
        Err(error) => {
            println!("without auditwheel: {error:#}");
            None
        }
    };
    let mut rows = Vec::new();
    for wheel in &wheels {
        println!("{}", shell::file_name(wheel));
        rows.push(measure(&program, wheel, bsdtar, auditwheel.as_deref())?);
    }
    let start = start_up(&program)?;
    let page = page(&rows, &start)?;
    print!("\n{page}");
    let path = shell::root().join("docs/benchmarks.md");
    // Sections that other tasks wrote stay.
    let old = fs::read_to_string(&path).unwrap_or_default();
    let others = old.find("\n## ").map_or("", |at| &old[at..]);
    fs::write(&path, format!("{page}{others}")).with_context(|| format!("cannot write {}", path.display()))
}

fn fetch() -> Result<Vec<PathBuf>> {
    shell::install_pip()?;
    let folder = shell::cache()?.join("bench");
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--implementation",
        "cp",
    ]);
    pip.args(["--python-version", "3.12", "--platform", "manylinux_2_28_x86_64", "--dest"]).arg(&folder);
    shell::run(pip.args(DEFAULT))?;
    let files = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let mut wheels: Vec<PathBuf> =
        files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "whl")).collect();
    wheels.sort();
    Ok(wheels)
}

fn measure(program: &Path, wheel: &Path, bsdtar: bool, auditwheel: Option<&Path>) -> Result<Row> {
    let mut check = Command::new(program);
    check.args(["check", "--no-config", "-q"]).arg(wheel);
    let mut one_thread = Command::new(program);
    one_thread.args(["check", "--no-config", "-q", "--jobs", "1"]).arg(wheel);
    let mut inflate = Command::new("bsdtar");
    inflate.arg("-xOf").arg(wheel);
    // Once before, so that the file is in memory for all.
    cost(&check)?;
    let measured = median(&check, RUNS)?;
    ensure!(matches!(measured.code, Some(0 | 1)), "abiaudit check {}: {:?}", wheel.display(), measured.code);
    Ok(Row {
        wheel: shell::file_name(wheel),
        size: fs::metadata(wheel)?.len(),
        check: measured,
        one_thread: median(&one_thread, RUNS)?,
        bsdtar: bsdtar.then(|| median(&inflate, RUNS)).transpose()?,
        auditwheel: auditwheel
            .map(|program| cost(Command::new(program).arg("show").arg(wheel)))
            .transpose()?,
    })
}

/// A start on a wheel of about 100 KB, warm.
fn start_up(program: &Path) -> Result<Cost> {
    let folder = tempfile::tempdir()?;
    let module = ElfWriter::new(Arch::X86_64)
        .needed("libc.so.6")
        .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14")
        .define("PyInit_small");
    // Bytes that do not compress, from a linear congruential generator.
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(100_000)
    .collect();
    let wheel = TestWheel::new("small", "1.0", "cp312-cp312-manylinux_2_17_x86_64")
        .elf("small.cpython-312-x86_64-linux-gnu.so", &module)
        .file("small/data.bin", noise)
        .write(folder.path());
    let mut check = Command::new(program);
    check.args(["check", "--no-config", "-q"]).arg(wheel);
    cost(&check)?;
    median(&check, STARTS)
}

#[allow(clippy::cast_precision_loss, reason = "sizes for people")]
fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

fn page(rows: &[Row], start: &Cost) -> Result<String> {
    let mut page = String::from(
        "# Benchmarks\n\nWritten by `cargo xtask bench`; do not edit. The yardstick is `bsdtar -xOf WHEEL > /dev/null`, which does nothing\n\
         but inflate the members; `auditwheel show` answers a part of the same question.\n\n",
    );
    writeln!(page, "Machine: {}.", machine())?;
    writeln!(page, "Programs: {}.\n", programs())?;
    writeln!(
        page,
        "CPU seconds are user and system time of all threads; medians of {RUNS} runs on a warm file cache"
    )?;
    writeln!(page, "(`auditwheel`: one run). Memory is the peak resident set, the mapped wheel included.\n")?;
    page.push_str("| wheel | MB | check CPU s | check wall s | check MB | 1 thread wall s | bsdtar CPU s | check / bsdtar | auditwheel CPU s | auditwheel / check |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for row in rows {
        let seconds = |cost: &Option<Cost>| cost.map_or("-".to_owned(), |cost| format!("{:.2}", cost.cpu));
        let ratio = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => format!("{:.2}", a / b),
            _ => "-".to_owned(),
        };
        let (check, bsdtar) = (Some(row.check.cpu), row.bsdtar.map(|cost| cost.cpu));
        let auditwheel = row.auditwheel.map(|cost| cost.cpu);
        writeln!(
            page,
            "| {} | {} | {:.2} | {:.2} | {} | {:.2} | {} | {} | {} | {} |",
            row.wheel,
            megabytes(row.size),
            row.check.cpu,
            row.check.wall,
            megabytes(row.check.memory),
            row.one_thread.wall,
            seconds(&row.bsdtar),
            ratio(check, bsdtar),
            seconds(&row.auditwheel),
            ratio(auditwheel, check),
        )?;
    }
    writeln!(
        page,
        "\nA warm start on a wheel of 100 KB: {:.1} ms wall, {:.1} ms CPU (median of {STARTS}).",
        start.wall * 1e3,
        start.cpu * 1e3
    )?;
    Ok(page)
}

/// Processor and number of cores.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{} cores, {}, {}", cores, model.trim_start_matches(['\t', ' ', ':']), std::env::consts::ARCH)
}

/// Versions of what is compared.
fn programs() -> String {
    let version = |program: &str| -> String {
        let output = Command::new(program).arg("--version").output();
        let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        text.lines().next().and_then(|line| line.split(" - ").next()).unwrap_or("not there").to_owned()
    };
    let auditwheel = differential::AUDITWHEEL.replace("==", " ");
    format!(
        "abiaudit {}, {}, {auditwheel}, {}",
        env!("CARGO_PKG_VERSION"),
        version("bsdtar"),
        version("rustc")
    )
}
