//! One process: the task that the driver gets, and what comes of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::case::{Case, Mode, Step, probe_name};
use crate::child::{self, ChildError, Stop};
use crate::environment::{Environment, tail, without_settings};
use crate::happened::Happened;
use crate::probe::Probe;

const DRIVER: &str = include_str!("driver.py");
/// What is read of the record in bytes; a run writes some hundred lines.
const RECORD_MAX: usize = 16 << 20;
/// What is kept of the standard error, in bytes.
const STDERR_MAX: usize = 16 << 10;

/// The part of a process's time that one question may take.
const PATIENCE: f64 = 0.25;

/// Bounds on a process.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For the whole process.
    pub timeout: Duration,
    /// Address space in bytes (`RLIMIT_AS`).
    pub memory: Option<u64>,
}

/// What all processes share.
#[derive(Debug)]
pub struct Runner<'r> {
    /// Where the modules are.
    pub environment: &'r Environment,
    /// The probe, if there is one.
    pub probe: Option<&'r Probe>,
    /// Modules that export the functions of the probe.
    pub hooked: &'r [String],
    /// Expressions that shall be true at the end.
    pub checks: &'r [String],
    /// Bounds.
    pub limits: Limits,
    /// A directory for what the processes read and write.
    pub scratch: &'r Path,
    /// Raised when the user stops.
    pub stop: &'r Stop,
}

/// A process could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It does not start, or the user stopped.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// The modules cannot be asked.
    #[error("importing {order}: the modules cannot be asked: {message}")]
    Fault {
        /// What was imported.
        order: String,
        /// What Python says.
        message: String,
    },
    /// Files could not be written or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What the driver reads.
#[derive(Serialize)]
struct Task<'t> {
    record: PathBuf,
    memory: Option<u64>,
    /// Seconds for one question.
    patience: f64,
    steps: Vec<TaskStep<'t>>,
    /// Names, and paths of what is not imported.
    probes: Vec<(String, Option<PathBuf>)>,
    checks: &'t [String],
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
enum TaskStep<'t> {
    Import { module: &'t str, global: bool },
    Probe { path: PathBuf, global: bool },
}

impl Runner<'_> {
    /// Runs a case; `number` tells its files apart.
    ///
    /// # Errors
    /// [`RunError`] if the process cannot be run; what goes wrong in it is a result.
    pub fn run(&self, number: usize, case: &Case) -> Result<Happened, RunError> {
        let record = self.scratch.join(format!("run-{number}.record"));
        let task = Task {
            record,
            memory: self.limits.memory,
            patience: self.limits.timeout.as_secs_f64() * PATIENCE,
            steps: self.steps(case),
            probes: self.probes(case),
            checks: self.checks,
        };
        self.play(number, case, &task, None)
    }

    /// Only opens what the case opens, and asks nothing. ld.so writes its `files`, `scopes` and `bindings`.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub fn trace(&self, number: usize, case: &Case) -> Result<(Happened, PathBuf), RunError> {
        let file = |end: &str| self.scratch.join(format!("trace-{number}.{end}"));
        let task = Task {
            record: file("record"),
            memory: self.limits.memory,
            patience: 0.0,
            steps: self.steps(case),
            probes: Vec::new(),
            checks: &[],
        };
        let log = file("ld");
        let happened = self.play(number, case, &task, Some(&log))?;
        let is_log = |path: &PathBuf| path.file_stem() == log.file_name();
        let entries = fs::read_dir(self.scratch).map_err(at(self.scratch))?;
        let mut logs: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_log).collect();
        // One for each process that was started; what a module starts comes later and has a higher number, mostly.
        logs.sort_by_key(|path| path.extension().and_then(|pid| pid.to_str()?.parse::<u64>().ok()));
        match logs.into_iter().next() {
            Some(first) => Ok((happened, first)),
            None => Err(at(&log)(io::Error::from(io::ErrorKind::NotFound))),
        }
    }

    fn play(
        &self,
        number: usize,
        case: &Case,
        task: &Task<'_>,
        log: Option<&Path>,
    ) -> Result<Happened, RunError> {
        let file = |end: &str| self.scratch.join(format!("run-{number}.{end}"));
        let (driver, input) = (file("py"), file("task"));
        let (stdout, stderr) = (file("stdout"), file("stderr"));
        fs::write(&driver, DRIVER).map_err(at(&driver))?;
        let text = serde_json::to_vec(task).map_err(|error| at(&input)(error.into()))?;
        fs::write(&input, text).map_err(at(&input))?;
        fs::write(&task.record, "").map_err(at(&task.record))?;
        let mut command = Command::new(&self.environment.python);
        without_settings(&mut command).args(["-I", "-X", "faulthandler"]).arg(&driver).arg(&input);
        command.env("LC_ALL", "C.UTF-8").current_dir(self.scratch);
        command.stdout(fs::File::create(&stdout).map_err(at(&stdout))?);
        command.stderr(fs::File::create(&stderr).map_err(at(&stderr))?);
        if case.mode == Mode::Preload {
            command.env("LD_PRELOAD", Mode::PRELOADED);
        }
        if let Some(log) = log {
            command.env("LD_DEBUG", "files,scopes,bindings").env("LD_DEBUG_OUTPUT", log);
        }
        let ended = child::run(&mut command, self.limits.timeout, self.stop)?;
        let record = tail(&task.record, RECORD_MAX).map_err(at(&task.record))?;
        let said = tail(&stderr, STDERR_MAX).map_err(at(&stderr))?;
        let happened = Happened::read(&record, ended, case, self.checks, said);
        match happened.fault {
            Some(message) => Err(RunError::Fault { order: case.order(), message }),
            None => Ok(happened),
        }
    }

    fn steps<'t>(&self, case: &'t Case) -> Vec<TaskStep<'t>> {
        let step = |step: &'t Step| match step {
            Step::Import { module, global } => TaskStep::Import { module, global: *global },
            Step::Probe { copy, global } => TaskStep::Probe { path: self.probe_path(*copy), global: *global },
        };
        case.steps.iter().map(step).collect()
    }

    /// What is asked, in the order in which it was loaded.
    fn probes(&self, case: &Case) -> Vec<(String, Option<PathBuf>)> {
        let probe = |step: &Step| match step {
            Step::Import { module, .. } => self.hooked.contains(module).then(|| (module.clone(), None)),
            Step::Probe { copy, .. } => Some((probe_name(*copy), Some(self.probe_path(*copy)))),
        };
        case.steps.iter().filter_map(probe).collect()
    }

    fn probe_path(&self, copy: usize) -> PathBuf {
        self.probe.map(|probe| probe.path(copy)).unwrap_or_default()
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::Io { path: path.to_owned(), source }
}
