//! `demo`: builds the command and shows what it says of wheels that keep their promise and of wheels that do not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_testing::TestWheel;
use anyhow::{Context, Result, ensure};

use crate::{corpus, shell};

/// A wheel made here: its name, the source in testdata/demo, and what is the matter with it.
const MADE: [(&str, &str, &str); 2] = [
    ("honest", "honest.cpp", "asks for nothing that its tag's systems lack"),
    ("liar", "liar.cpp", "uses std::filesystem, which no system of its tag has"),
];

/// Wheels of the corpus: a good one, and one of whose three tags one is false.
const REAL: [&str; 2] = [
    "MarkupSafe-1.1.1-cp27-cp27mu-manylinux1_x86_64.whl",
    "sqlite_vec-0.1.6-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.manylinux1_x86_64.whl",
];

/// Runs the demonstration.
pub fn run(_args: &[String]) -> Result<()> {
    shell::install(&[("g++", "g++")])?;
    println!("building abiaudit (release)");
    let program = shell::build("release")?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut wheels = Vec::new();
    for (name, source, what) in MADE {
        println!("building {name} with g++: {what}");
        wheels.push(make(name, source, folder.path())?);
    }
    wheels.extend(real_wheels()?);

    let mut codes = Vec::new();
    for wheel in &wheels {
        let code = show(&program, &["check".as_ref(), wheel.as_os_str()])?;
        codes.push((shell::file_name(wheel), code));
    }
    show(&program, &["show".as_ref(), wheels[1].as_os_str()])?;
    show(&program, &["explain".as_ref(), "GLIBCXX_3.4.26".as_ref()])?;

    println!("\nexit codes: 0 keeps its promise, 1 does not");
    for (wheel, code) in &codes {
        println!("  {code}  {wheel}");
    }
    ensure!(codes[0].1 == 0, "the honest wheel should pass");
    ensure!(codes[1].1 == 1, "the lying wheel should fail");
    Ok(())
}

/// Compiles one source to an extension module and wraps it in a wheel that promises the oldest common systems.
fn make(name: &str, source: &str, folder: &Path) -> Result<PathBuf> {
    let source = shell::root().join("testdata/demo").join(source);
    let module = folder.join(format!("{name}.abi3.so"));
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O2", "-fPIC", "-shared", "-o"]).arg(&module).arg(&source);
    shell::run(&mut compiler)?;
    let content = fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
    let wheel = TestWheel::new(name, "1.0", &format!("cp38-abi3-{}", tag()))
        .program(&format!("{name}.abi3.so"), content);
    Ok(wheel.write(folder))
}

/// The oldest tag that this machine's architecture has in common use (PEP 599 and PEP 600).
fn tag() -> String {
    let (policy, arch) = match std::env::consts::ARCH {
        "x86" => ("manylinux_2_17", "i686"),
        "arm" => ("manylinux_2_31", "armv7l"),
        "powerpc64" => ("manylinux_2_17", "ppc64le"),
        "riscv64" => ("manylinux_2_39", "riscv64"),
        "loongarch64" => ("manylinux_2_38", "loongarch64"),
        other => ("manylinux_2_17", other),
    };
    format!("{policy}_{arch}")
}

/// The real wheels, if the index answers.
fn real_wheels() -> Result<Vec<PathBuf>> {
    let wanted: Vec<_> =
        corpus::manifest()?.into_iter().filter(|wheel| REAL.contains(&wheel.filename.as_str())).collect();
    let directory = corpus::directory()?;
    println!("fetching {} real wheels", wanted.len());
    if let Err(error) = corpus::fetch(&wanted, &directory) {
        println!("no real wheels: {error:#}");
    }
    let paths = wanted.iter().map(|wheel| directory.join(&wheel.filename));
    let (there, missing): (Vec<PathBuf>, Vec<PathBuf>) = paths.partition(|path| path.is_file());
    for path in missing {
        println!("going on without {}: the package index does not answer", shell::file_name(&path));
    }
    Ok(there)
}

/// Runs the command as a person would and gives its exit code.
fn show(program: &Path, args: &[&std::ffi::OsStr]) -> Result<i32> {
    let words: Vec<String> = args.iter().map(|arg| shell::file_name(Path::new(arg))).collect();
    println!("\n$ abiaudit {}", words.join(" "));
    let status = Command::new(program).args(args).status();
    let code = status.with_context(|| format!("cannot run {}", program.display()))?.code();
    let code = code.context("a signal ended abiaudit")?;
    println!("(exit code {code})");
    Ok(code)
}
