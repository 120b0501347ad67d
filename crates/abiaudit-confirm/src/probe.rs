//! The C++ probe: our own source, built on the spot, so that it shares the machine's C++ runtime as any module that was
//! built here does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::case::Case;
use crate::child::{self, ChildError, Ended, Stop};

/// The source.
pub const SOURCE: &str = include_str!("probe/probe.cpp");

/// What makes a Python module of it, with `-DABIAUDIT_MODULE=name`: its functions in C are asked as those of the probe.
pub const MODULE_SOURCE: &str = include_str!("probe/module.cpp");

/// What every compiler is given: the language, and what a shared object takes.
pub const FLAGS: &[&str] = &["-std=c++17", "-O1", "-fPIC", "-pthread"];

/// A function that tells a module that can be asked.
pub(crate) const HOOK: &str = "abiaudit_probe_run";

/// Compiling takes seconds.
const TIMEOUT: Duration = Duration::from_mins(5);

/// The probe could not be built.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is no compiler of this name.
    #[error("no C++ compiler: {compiler} is not there (set CXX, or install g++)")]
    NoCompiler {
        /// What was looked for.
        compiler: String,
    },
    /// The compiler refuses.
    #[error("{compiler} cannot build the probe: {message}")]
    Compile {
        /// What was run.
        compiler: String,
        /// The beginning of what it said.
        message: String,
    },
    /// It could not be run.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// Files could not be written or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The probe, in as many copies as a process opens.
#[derive(Debug)]
pub struct Probe {
    /// The directory with the copies and nothing else.
    pub directory: PathBuf,
    copies: usize,
}

impl Probe {
    /// Builds it in `scratch` with `compiler`, with copies for these cases.
    ///
    /// # Errors
    /// [`ProbeError`] if there is no compiler or it fails.
    pub fn build(compiler: &str, scratch: &Path, cases: &[Case], stop: &Stop) -> Result<Self, ProbeError> {
        let directory = scratch.join("probe");
        let copies = cases.iter().map(Case::copies).max().unwrap_or(0);
        let probe = Self { directory, copies };
        create(&probe.directory)?;
        let first = probe.path(0);
        let source = scratch.join("probe.cpp");
        fs::write(&source, SOURCE).map_err(|error| ProbeError::Io { path: source.clone(), source: error })?;
        compile(compiler, &[&source], &first, &["-shared"], stop)?;
        for copy in 1..copies {
            let path = probe.path(copy);
            fs::copy(&first, &path).map_err(|source| ProbeError::Io { path, source })?;
        }
        Ok(probe)
    }

    /// Where a copy is.
    pub fn path(&self, copy: usize) -> PathBuf {
        self.directory.join(file_name(copy))
    }

    /// How many copies there are.
    pub fn copies(&self) -> usize {
        self.copies
    }
}

pub(crate) fn file_name(copy: usize) -> String {
    format!("{}.so", stem(copy))
}

/// The name of a copy without its end.
pub(crate) fn stem(copy: usize) -> String {
    format!("abiaudit_probe_{copy}")
}

/// Runs a compiler with [`FLAGS`], these inputs, and then `flags`.
///
/// # Errors
/// [`ProbeError`] if there is no compiler or it fails.
pub fn compile(
    compiler: &str,
    inputs: &[&Path],
    output: &Path,
    flags: &[&str],
    stop: &Stop,
) -> Result<(), ProbeError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        |source| ProbeError::Io { path, source }
    };
    let log = output.with_extension("log");
    let file = fs::File::create(&log).map_err(io(&log))?;
    // CXX may hold options too.
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words).args(FLAGS).arg("-o").arg(output).args(inputs).args(flags);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let ended = match child::run(&mut command, TIMEOUT, stop) {
        Err(ChildError::Start { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(ProbeError::NoCompiler { compiler: compiler.to_owned() });
        }
        other => other?,
    };
    let said = fs::read(&log).map_err(io(&log))?;
    fs::remove_file(&log).map_err(io(&log))?;
    if ended == Ended::Exited(0) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said);
    let mut lines: Vec<&str> = said.lines().filter(|line| line.contains("error")).take(3).collect();
    let how = ended.text();
    if lines.is_empty() {
        lines.push(&how);
    }
    Err(ProbeError::Compile { compiler: compiler.to_owned(), message: lines.join("; ") })
}

fn create(directory: &Path) -> Result<(), ProbeError> {
    fs::create_dir_all(directory).map_err(|source| ProbeError::Io { path: directory.to_owned(), source })
}
