//! A fresh virtual environment with the wheels under test and nothing else. Nothing is fetched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use abiaudit_policy::symbols::Release;

use crate::child::{self, ChildError, Ended, Stop};

/// What the environment's Python is: four lines.
const DESCRIBE: &str = include_str!("describe.py");
/// Making an environment or unpacking large wheels takes seconds; on a loaded machine, minutes.
const TIMEOUT: Duration = Duration::from_mins(15);
/// What is read of what a child says, in bytes.
const SAID_MAX: usize = 1 << 20;

/// The environment could not be made, or does not take the wheels.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The wheels are for another platform or Python, or damaged.
    #[error("cannot install the wheels for {python} on this machine: {}", reasons.join("; "))]
    Install {
        /// Which Python, such as `Python 3.12.1 on linux-x86_64`.
        python: String,
        /// What pip says.
        reasons: Vec<String>,
    },
    /// Python or a part of it does not work.
    #[error("{what} failed ({how}): {message}")]
    Tool {
        /// What was run.
        what: String,
        /// How it ended.
        how: String,
        /// The end of what it said.
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

/// A virtual environment.
#[derive(Debug)]
pub struct Environment {
    /// Its Python.
    pub python: PathBuf,
    /// Which Python it is: `Python 3.12.1 on linux-x86_64`.
    pub description: String,
    /// Release of the machine's glibc, if it has one.
    pub glibc: Option<Release>,
    /// Release of GCC that the machine's libstdc++ is of.
    pub gcc: Option<Release>,
    /// Where packages are installed.
    pub site_packages: PathBuf,
    /// Further directories of packages.
    pub directories: Vec<PathBuf>,
}

impl Environment {
    /// Makes one in `scratch` with this Python (a path, or a name to be searched for), installs the wheels without
    /// what they require, and lets packages be found in `directories` too.
    ///
    /// # Errors
    /// [`EnvironmentError`] if Python has no venv or pip, or pip refuses a wheel.
    pub fn create(
        python: &Path,
        scratch: &Path,
        wheels: &[PathBuf],
        directories: &[PathBuf],
        stop: &Stop,
    ) -> Result<Self, EnvironmentError> {
        let maker = Maker { scratch, stop };
        let root = scratch.join("environment");
        let own = root.join("bin/python");
        let executable =
            maker.must(Command::new(python).args(["-I", "-c", "import sys; print(sys.executable)"]))?;
        let python = Path::new(executable.trim());
        // The pip of the given Python can install into the environment (since pip 22.3), which spares it one of its own.
        let mut pip = Command::new(python);
        pip.args(["-I", "-m", "pip", "--python"]).arg(python).arg("--version");
        let lends_pip = maker.run(&mut pip)?.ended == Ended::Exited(0);
        let mut make = Command::new(python);
        make.args(["-I", "-m", "venv"]).args(lends_pip.then_some("--without-pip")).arg(&root);
        maker.must(&mut make)?;
        let Described { description, glibc, gcc, site_packages } = maker.describe(&own)?;
        if !wheels.is_empty() {
            let mut pip = Command::new(if lends_pip { python } else { &own });
            pip.args(["-I", "-m", "pip", "--isolated", "--disable-pip-version-check", "--no-input"]);
            if lends_pip {
                pip.arg("--python").arg(&own);
            }
            pip.args(["install", "--no-index", "--no-deps", "--no-cache-dir", "--no-compile", "--quiet"]);
            pip.args(wheels);
            maker.install(&mut pip, &description)?;
        }
        let directories = directories.to_vec();
        let environment = Self { python: own, description, glibc, gcc, site_packages, directories };
        environment.add_directories()?;
        Ok(environment)
    }

    /// The names of directories in a path configuration file (documentation of Python's `site`).
    fn add_directories(&self) -> Result<(), EnvironmentError> {
        let path = self.site_packages.join("abiaudit-confirm.pth");
        let mut lines = String::new();
        for directory in &self.directories {
            let directory = directory.canonicalize().map_err(|source| io_error(directory.clone(), source))?;
            lines.push_str(&directory.to_string_lossy());
            lines.push('\n');
        }
        if lines.is_empty() { Ok(()) } else { fs::write(&path, lines).map_err(|e| io_error(path, e)) }
    }
}

/// A command under Python that sees nothing of the user's settings.
pub(crate) fn without_settings(command: &mut Command) -> &mut Command {
    let is_setting = |name: &str| {
        ["PYTHON", "PIP_", "LD_", "GLIBC_TUNABLES", "VIRTUAL_ENV"].iter().any(|start| name.starts_with(start))
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_setting) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null())
}

struct Maker<'m> {
    scratch: &'m Path,
    stop: &'m Stop,
}

struct Described {
    description: String,
    glibc: Option<Release>,
    gcc: Option<Release>,
    site_packages: PathBuf,
}

struct Said {
    ended: Ended,
    text: String,
}

impl Maker<'_> {
    fn run(&self, command: &mut Command) -> Result<Said, EnvironmentError> {
        let path = self.scratch.join("said");
        let error = |source| io_error(path.clone(), source);
        let file = fs::File::create(&path).map_err(error)?;
        let again = file.try_clone().map_err(error)?;
        without_settings(command).env("PIP_CONFIG_FILE", "/dev/null").stdout(file).stderr(again);
        let ended = child::run(command, TIMEOUT, self.stop)?;
        Ok(Said { ended, text: tail(&path, SAID_MAX).map_err(error)? })
    }

    fn must(&self, command: &mut Command) -> Result<String, EnvironmentError> {
        let said = self.run(command)?;
        if said.ended == Ended::Exited(0) { Ok(said.text) } else { Err(failed(command, &said)) }
    }

    fn describe(&self, python: &Path) -> Result<Described, EnvironmentError> {
        let mut command = Command::new(python);
        command.args(["-I", "-c", DESCRIBE]);
        let said = self.run(&mut command)?;
        let mut lines = said.text.lines();
        // libstdc++.so.6.0.30 defines nodes up to GLIBCXX_3.4.30 (GCC's documentation, "ABI Policy and Guidelines").
        let release = |name: &str| {
            abiaudit_policy::symbols::gcc_release_of(&format!("GLIBCXX_3.4.{}", name.rsplit('.').next()?))
        };
        match (lines.next(), lines.next(), lines.next()) {
            (Some(description), Some(path), libc) if said.ended == Ended::Exited(0) => Ok(Described {
                description: description.to_owned(),
                glibc: libc.and_then(|libc| libc.strip_prefix("glibc ")?.parse().ok()),
                gcc: lines.next().and_then(release),
                site_packages: PathBuf::from(path),
            }),
            _ => Err(failed(&command, &said)),
        }
    }

    fn install(&self, pip: &mut Command, python: &str) -> Result<(), EnvironmentError> {
        let said = self.run(pip)?;
        if said.ended == Ended::Exited(0) {
            return Ok(());
        }
        let reasons: Vec<String> =
            said.text.lines().filter_map(|line| line.strip_prefix("ERROR: ")).map(str::to_owned).collect();
        if reasons.is_empty() {
            return Err(failed(pip, &said));
        }
        Err(EnvironmentError::Install { python: python.to_owned(), reasons })
    }
}

fn failed(command: &Command, said: &Said) -> EnvironmentError {
    let words = [command.get_program()].into_iter().chain(command.get_args().take(5));
    let what: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let mut lines: Vec<&str> =
        said.text.lines().filter(|line| !line.trim().is_empty()).rev().take(3).collect();
    lines.reverse();
    EnvironmentError::Tool { what: what.join(" "), how: said.ended.text(), message: lines.join("; ") }
}

fn io_error(path: PathBuf, source: io::Error) -> EnvironmentError {
    EnvironmentError::Io { path, source }
}

/// The last bytes of a file, as text.
pub(crate) fn tail(path: &Path, max: usize) -> io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(max as u64)))?;
    let mut bytes = Vec::new();
    file.take(max as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
