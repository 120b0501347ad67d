//! The compiler that a toolchain is made for, asked for its parts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use abiaudit_policy::Arch;

use crate::error::{Error, Result};

/// A GCC-compatible C++ compiler driver.
#[derive(Debug, Clone)]
pub struct Compiler {
    program: String,
    version: String,
    machine: String,
    arch: Arch,
}

/// What changes which files and programs a compiler takes.
const DISTURBING: &[&str] = &[
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LD_RUN_PATH",
    "GCC_COMPARE_DEBUG",
    "DEPENDENCIES_OUTPUT",
];

impl Compiler {
    /// Asks a compiler, such as `g++-12` or `aarch64-linux-gnu-g++`, who it is.
    pub fn find(program: &str) -> Result<Self> {
        let mut compiler = Self {
            program: program.to_owned(),
            version: String::new(),
            machine: String::new(),
            arch: Arch::X86_64,
        };
        compiler.version = compiler.ask(&["-dumpfullversion"])?;
        compiler.machine = compiler.ask(&["-dumpmachine"])?;
        let cpu = compiler.machine.split('-').next().unwrap_or_default();
        compiler.arch = match cpu {
            "x86_64" => Arch::X86_64,
            "aarch64" => Arch::Aarch64,
            other => {
                return Err(
                    compiler.problem(format!("compiles for {other}; x86_64 and aarch64 are supported"))
                );
            }
        };
        Ok(compiler)
    }

    /// As it was given.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// `12.2.0`
    pub fn version(&self) -> &str {
        &self.version
    }

    /// `x86_64-linux-gnu`
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// The architecture that it compiles for.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The file that the compiler would link under this name (`-print-file-name`).
    pub fn file(&self, name: &str) -> Result<PathBuf> {
        self.optional_file(name)?.ok_or_else(|| {
            self.problem(format!("has no {name}; install its development files (libstdc++-N-dev, libc6-dev)"))
        })
    }

    /// The same, if there is one.
    pub fn optional_file(&self, name: &str) -> Result<Option<PathBuf>> {
        let path = PathBuf::from(self.ask(&[&format!("-print-file-name={name}")])?);
        // Without such a file the name comes back as it was.
        if path.components().count() < 2 || !path.is_file() {
            return Ok(None);
        }
        path.canonicalize().map(Some).map_err(|source| Error::File { action: "find", path, source })
    }

    /// The linker that it runs.
    pub fn linker(&self) -> Result<PathBuf> {
        let path = PathBuf::from(self.ask(&["-print-prog-name=ld"])?);
        let found = if path.components().count() > 1 { Some(path) } else { on_search_path("ld", None) };
        found.ok_or_else(|| self.problem("has no linker; install binutils".to_owned()))
    }

    /// Runs it in a directory.
    pub fn run(&self, directory: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = self.command(arguments);
        command.current_dir(directory);
        succeed(&mut command).map(|_| ())
    }

    /// A command with an environment that does not lead the compiler astray.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("LC_ALL", "C");
        for name in DISTURBING {
            command.env_remove(name);
        }
        command
    }

    fn ask(&self, arguments: &[&str]) -> Result<String> {
        let output = self
            .command(arguments)
            .output()
            .map_err(|error| self.problem(format!("cannot be run: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && !text.is_empty() {
            Ok(text)
        } else {
            Err(self.problem(format!("does not answer {}", arguments.join(" "))))
        }
    }

    fn problem(&self, problem: String) -> Error {
        Error::Compiler { compiler: self.program.clone(), problem }
    }
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<Output> {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    let output = command.output().map_err(|source| Error::File {
        action: "run",
        path: line.clone().into(),
        source,
    })?;
    if output.status.success() {
        return Ok(output);
    }
    Err(Error::Program {
        command: line,
        status: output.status.to_string(),
        stderr: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
    })
}

/// A program of this name on the search path, but not in the directory `except`.
pub(crate) fn on_search_path(name: &str, except: Option<&Path>) -> Option<PathBuf> {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let except = except.and_then(|path| path.canonicalize().ok());
    std::env::split_paths(&directories)
        .filter(|directory| except.is_none() || directory.canonicalize().ok() != except)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
