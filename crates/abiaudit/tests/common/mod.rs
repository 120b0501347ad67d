//! The command as a child process, and wheels to try it on.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use abiaudit_testing::{Arch, ElfWriter, TestWheel};
use serde_json::Value;

/// The command without anything of this machine: no configuration, no variables that change output.
pub fn abiaudit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abiaudit"));
    for name in
        ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "GITHUB_STEP_SUMMARY", "SOURCE_DATE_EPOCH"]
    {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// What a run of the command gave.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Run {
    command.output().expect("the command starts").into()
}

/// Runs a command to its end with this on its standard input.
pub fn run_with_input(command: &mut Command, input: &[u8]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("the command reads its input");
    child.wait_with_output().expect("the command ends").into()
}

/// `abiaudit check --no-config` on paths.
pub fn check(paths: &[&Path]) -> Command {
    let mut command = abiaudit();
    command.args(["check", "--no-config"]).args(paths);
    command
}

/// An extension that needs this version of the C library.
pub fn extension(version: &str) -> ElfWriter {
    ElfWriter::new(Arch::X86_64)
        .needed("libc.so.6")
        .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14")
        .undefined_versioned("pthread_create", "libc.so.6", version)
        .undefined("PyModule_Create2")
        .define("PyInit_mod")
}

/// A wheel that keeps its promise.
pub fn honest() -> TestWheel {
    let module = ElfWriter::new(Arch::X86_64)
        .needed("libc.so.6")
        .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14")
        .undefined("PyModule_Create2")
        .define("PyInit_mod");
    TestWheel::new("honest", "1.0", "cp312-cp312-manylinux_2_17_x86_64")
        .elf("honest/mod.cpython-312-x86_64-linux-gnu.so", &module)
        .file("honest/__init__.py", "")
}

/// A wheel that promises glibc 2.17, needs glibc 2.34, GCC 9's libstdc++ and a library that nobody brings.
pub fn liar() -> TestWheel {
    let module =
        extension("GLIBC_2.34").needed("libstdc++.so.6").needed("libmissing.so.3").undefined_versioned(
            "_ZNKSt10filesystem7__cxx114path7compareERKS1_",
            "libstdc++.so.6",
            "GLIBCXX_3.4.26",
        );
    TestWheel::new("liar", "1.0", "cp312-cp312-manylinux_2_17_x86_64")
        .elf("liar/mod.cpython-312-x86_64-linux-gnu.so", &module)
        .file("liar/__init__.py", "")
}

/// A file that is called a wheel and is none.
pub fn broken(directory: &Path) -> PathBuf {
    let path = directory.join("broken-1.0-py3-none-any.whl");
    std::fs::write(&path, "this is not a zip file").expect("the directory can be written to");
    path
}

/// A temporary folder.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// The names in a folder, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the folder can be read");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
