//! `fuzz`: runs every target of the fuzz crate for a while, from seeds that are written here.

use std::fs;
use std::path::Path;
use std::process::Command;

use abiaudit_testing::{Arch, ElfWriter, TestWheel};
use anyhow::{Context, Result, bail, ensure};

use crate::shell;

/// The targets, each a file in fuzz/fuzz_targets.
const TARGETS: [&str; 6] =
    ["elf_object", "elf_edit", "wheel_archive", "record", "metadata", "wheel_filename"];

/// Most memory of a target in MB. The address sanitizer's own is counted.
const MEMORY: u32 = 2048;

/// The command line: seconds for each target, then optionally the targets.
pub fn run(args: &[String]) -> Result<()> {
    let (seconds, targets): (u32, Vec<&str>) = match args.split_first() {
        None => (60, TARGETS.to_vec()),
        Some((seconds, [])) => (parse_seconds(seconds)?, TARGETS.to_vec()),
        Some((seconds, names)) => (parse_seconds(seconds)?, names.iter().map(String::as_str).collect()),
    };
    if let Some(unknown) = targets.iter().find(|name| !TARGETS.contains(name)) {
        bail!("no target {unknown:?}; there are {}", TARGETS.join(", "));
    }
    let directory = shell::root().join("fuzz");
    write_seeds(&directory.join("seeds"))?;
    if !shell::has("cargo-fuzz") {
        shell::run(shell::cargo().args(["install", "--locked", "cargo-fuzz"]))?;
    }
    let mut crashed = Vec::new();
    for target in targets {
        println!("\n== {target}, {seconds} s");
        let status = fuzz(&directory, target, seconds)?;
        if !status {
            crashed.push(target);
        }
    }
    ensure!(crashed.is_empty(), "crashes in fuzz/artifacts: {}", crashed.join(", "));
    Ok(())
}

fn parse_seconds(text: &str) -> Result<u32> {
    text.parse().with_context(|| format!("{text:?} is not a number of seconds"))
}

/// Whether a target ran without a crash.
fn fuzz(directory: &Path, target: &str, seconds: u32) -> Result<bool> {
    let mut command = Command::new("cargo");
    command.current_dir(directory.parent().unwrap_or(directory)).arg("fuzz").arg("run");
    // Sanitizers need an unstable compiler option. Without a nightly one the stable compiler is asked to pretend, and
    // the standard library of the target as it is has to do.
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["--sanitizer", "none", "--fuzz-dir"])
        .arg(directory)
        .arg(target);
    let corpus = directory.join("corpus").join(target);
    fs::create_dir_all(&corpus).with_context(|| format!("cannot create {}", corpus.display()))?;
    command.arg(&corpus).arg(directory.join("seeds").join(target));
    command.arg("--").arg(format!("-max_total_time={seconds}")).arg(format!("-rss_limit_mb={MEMORY}"));
    command.args(["-timeout=10", "-max_len=65536", "-print_final_stats=1"]);
    let status = command.status().with_context(|| format!("cannot run {}", shell::line(&command)))?;
    Ok(status.success())
}

/// Small files of every kind: all architectures, all parts of a wheel.
fn write_seeds(directory: &Path) -> Result<()> {
    let put = |target: &str, name: &str, bytes: &[u8]| -> Result<()> {
        let folder = directory.join(target);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    for arch in Arch::ALL {
        put("elf_object", &format!("{arch:?}"), library(arch).build().bytes())?;
        put("elf_object", &format!("{arch:?}-stripped"), library(arch).sections(false).build().bytes())?;
        // The first byte of an edit's seed chooses the plan.
        for plan in 0..8_u8 {
            let seed = [&[plan][..], library(arch).build().bytes()].concat();
            put("elf_edit", &format!("{arch:?}-{plan}"), &seed)?;
        }
    }
    let wheel = TestWheel::new("pkg", "1.0", "py2.py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64")
        .requires("torch>=2; python_version < '3.13' and extra == 'gpu'")
        .elf("pkg/mod.so", &library(Arch::X86_64))
        .file("pkg/__init__.py", "x = 1\n".repeat(50))
        .symlink("pkg/link.so", "mod.so");
    put("wheel_archive", "wheel", &wheel.bytes())?;
    put("wheel_archive", "sfx", &wheel.prefix("#!/bin/sh\n").trailing("end").bytes())?;
    put(
        "record",
        "good",
        b"pkg/mod.so,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\npkg-1.0.dist-info/RECORD,,\n",
    )?;
    put("record", "quoted", b"\"a,\"\"b\",md5=abc,7\r\n/abs,,\n../up,sha512=x,-1\n")?;
    put("metadata", "metadata", b"Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\nRequires-Dist: torch[a,b] (>=2,!=2.1) ; python_version < '3.13' or extra == \"x\"\nRequires-Dist: a @ https://example.org/a.whl\n\nbody\n")?;
    put(
        "metadata",
        "wheel",
        b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp312-cp312-linux_x86_64\nBuild: 1a\n",
    )?;
    for (index, name) in [
        "pkg-1.0-1a-cp310.cp311-abi3.none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "a-1-py3-none-any.whl",
        "a_b-1!2.0.post1+local-cp313-cp313t-musllinux_1_2_aarch64.whl",
    ]
    .iter()
    .enumerate()
    {
        put("wheel_filename", &index.to_string(), name.as_bytes())?;
    }
    Ok(())
}

/// A library with every part that the writer knows.
fn library(arch: Arch) -> ElfWriter {
    ElfWriter::new(arch)
        .soname("liba.so.1")
        .needed("libc.so.6")
        .needed("libm.so.6")
        .rpath("$ORIGIN/a")
        .runpath("$ORIGIN:$LIB")
        .define_versioned("a", "A_1.0")
        .define("PyInit_a")
        .undefined("PyModule_Create2")
        .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.17")
        .build_id(&[1, 2, 3, 4])
        .property(0xc000_8002, 1)
        .tls(16, 8)
        .comment("GCC: (GNU) 14.2.0")
}
