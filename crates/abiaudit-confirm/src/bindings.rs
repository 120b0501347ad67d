//! Simulated bindings beside those that ld.so makes in a real process.
//!
//! From the log of ld.so come the `dlopen`s, which are given to the simulation together with the files on disk, and the
//! bindings, with which its bindings are compared one by one.
//!
//! What is not compared, and counted apart: look-ups of `dlsym` (the log does not tell them from others, but no
//! relocation asks for them), and PLT slots that were never called in objects that may be bound lazily: those loaded at
//! the start, and those that native code opened (the log does not tell the mode; Python's is `RTLD_NOW`).

mod machine;

use std::collections::BTreeSet;
use std::fs::File as LogFile;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::time::Instant;

use abiaudit_elf::{Object, RelocationUse, SymbolVersion};
use abiaudit_loader::binding::{
    Binding, File, InterpositionKind, Load, ObjectId, Process, Program, Provider, Scenario, Target, Via,
};
use abiaudit_loader::search::Libc;
use abiaudit_process::trace::Log;
use serde::Serialize;

pub use machine::{Machine, MachineError};

use crate::case::{Case, Mode};
use crate::run::{RunError, Runner};

/// Bindings cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The files of the machine cannot be read.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The process cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The log of ld.so cannot be read.
    #[error("{}: {source}", path.display())]
    Log {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Runs a case once more, with ld.so telling what it binds, and simulates the same.
pub(crate) fn compare(runner: &Runner<'_>, number: usize, case: &Case) -> Result<Compared, CompareError> {
    let (_, path) = runner.trace(number, case)?;
    let error = |source| CompareError::Log { path: path.clone(), source };
    let log = Log::read(BufReader::new(LogFile::open(&path).map_err(error)?)).map_err(error)?;
    let mut directories = runner.environment.directories.clone();
    directories.extend(runner.probe.map(|probe| probe.directory.clone()));
    let machine = Machine::read(&runner.environment.python, &directories, &log)?;
    let preload = [Target::Name(Mode::PRELOADED)];
    let preload = if case.mode == Mode::Preload { &preload[..] } else { &[] };
    Ok(Compared::of(&machine, &log, preload))
}

/// The program and the loader: the kernel maps these.
const NOT_MAPPED: usize = 2;

/// What is compared: the file that refers, the symbol and the version that it asks for.
type Key = (usize, String, Option<String>);

/// Simulated bindings beside ld.so's.
#[derive(Debug, Default, Serialize)]
pub struct Compared {
    /// Files that may be bound lazily: those there from the start, and those that native code opened.
    #[serde(skip)]
    maybe_lazy: BTreeSet<usize>,
    /// Objects of the simulated process.
    pub objects: usize,
    /// Objects that ld.so mapped: all but the program and itself.
    pub mapped: usize,
    /// Requests of `dlopen`.
    pub dlopens: usize,
    /// Seconds that the simulation took.
    #[serde(skip)]
    pub seconds: f64,
    /// Simulated bindings.
    pub bindings: usize,
    /// Bindings that both have.
    pub compared: usize,
    /// Of these, those that are equal.
    pub agree: usize,
    /// What differs: other providers, other numbers of objects.
    pub differ: Vec<String>,
    /// Bound by the simulation, and not by ld.so although it had to.
    pub unseen: Vec<String>,
    /// Lazy slots that were never called.
    pub lazy: usize,
    /// In the log only.
    pub dlsym: usize,
    /// What the simulation did not find.
    pub missing: Vec<String>,
    /// References across distributions that have a definition of their own and are served by another.
    pub overridden: usize,
    /// References across distributions that are served by what was not needed.
    pub not_needed: usize,
}

impl Compared {
    /// Simulates what the log tells of, and compares.
    pub fn of(machine: &Machine, log: &Log, preload: &[Target<'_>]) -> Self {
        let files = machine.files();
        let events = machine.events(log);
        let directories: Vec<&str> = machine.default_directories.iter().map(String::as_str).collect();
        let scenario = Scenario {
            libc: Libc::Glibc,
            files: &files,
            system: &[],
            default_directories: &directories,
            program: Program::File(machine.program),
            preload,
            events: &events,
        };
        let started = Instant::now();
        let process = Process::run(&scenario);
        let seconds = started.elapsed().as_secs_f64();
        let mut compared = Self { dlopens: log.opened.len(), seconds, ..Self::default() };
        compared.compare(machine, &files, &process, log);
        compared
    }

    /// Bindings that differ, or that one side does not have.
    pub fn bad(&self) -> usize {
        self.differ.len() + self.unseen.len()
    }

    /// Adds up two runs.
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.mapped += other.mapped;
        self.dlopens += other.dlopens;
        self.seconds += other.seconds;
        self.bindings += other.bindings;
        self.compared += other.compared;
        self.agree += other.agree;
        self.differ.extend(other.differ);
        self.unseen.extend(other.unseen);
        self.lazy += other.lazy;
        self.dlsym += other.dlsym;
        self.missing.extend(other.missing);
        self.overridden += other.overridden;
        self.not_needed += other.not_needed;
    }

    fn compare(&mut self, machine: &Machine, files: &[File<'_>], process: &Process, log: &Log) {
        let now = |load: &&Load| load.event.is_some_and(|event| machine.is_opened_by_python(log, event));
        let lazy = process.loads.iter().filter(|load| !now(load));
        self.maybe_lazy =
            lazy.filter_map(|load| file(load.object)).map(|file| machine.file_of(file)).collect();
        self.objects = process.loads.len();
        self.mapped = log.mapped;
        if self.objects != self.mapped + NOT_MAPPED {
            self.differ.push(format!("{} objects, ld.so mapped {}", self.objects, self.mapped));
        }
        self.bindings = process.bindings.len();
        self.missing = process.missing.iter().map(|missing| format!("{missing:?}")).collect();
        for found in process.interpositions().iter().filter(|found| found.leaves_group) {
            match found.kind {
                InterpositionKind::Overridden => self.overridden += 1,
                InterpositionKind::NotNeeded => self.not_needed += 1,
            }
        }
        let mut real = machine.bindings(log);
        for binding in process.bindings.iter() {
            let object = files[binding.file as usize].library.object;
            let key = key(machine, binding, object);
            let provider = provider(machine, binding);
            let known = real.remove(&key);
            self.compared += usize::from(known.is_some());
            match known {
                Some(providers) if provider.is_some_and(|p| providers == [p]) => self.agree += 1,
                Some(providers) => self.differ.push(describe(machine, &key, provider, &providers)),
                None => self.not_seen(machine, binding, object, &key, provider),
            }
        }
        self.dlsym = real.len();
    }

    fn not_seen(
        &mut self,
        machine: &Machine,
        binding: &Binding,
        object: &Object,
        key: &Key,
        provider: Option<usize>,
    ) {
        let symbol = object.symbols.get(binding.symbol);
        let uses_data = symbol.is_some_and(|s| s.uses.contains(RelocationUse::DATA));
        // ld.so says nothing of weak references that stay without, and of hidden ones.
        if provider.is_none() || binding.via == Via::Itself {
            return;
        }
        if uses_data || !self.maybe_lazy.contains(&key.0) {
            self.unseen.push(describe(machine, key, provider, &[]));
        } else {
            self.lazy += 1;
        }
    }
}

fn file(object: ObjectId) -> Option<usize> {
    match object {
        ObjectId::File(file) => Some(file as usize),
        ObjectId::System(_) => None,
    }
}

fn key(machine: &Machine, binding: &Binding, object: &Object) -> Key {
    let symbol = object.symbols.get(binding.symbol);
    let name = symbol.map(|symbol| object.symbols.name_text(symbol)).unwrap_or_default();
    let version = symbol.and_then(|symbol| match object.version_of(symbol) {
        SymbolVersion::Needed(_, needed) => Some(needed.name.to_text()),
        SymbolVersion::Defined(defined, _) => Some(defined.name.to_text()),
        SymbolVersion::Unversioned | SymbolVersion::Unknown(_) => None,
    });
    (machine.file_of(binding.file as usize), name, version)
}

fn provider(machine: &Machine, binding: &Binding) -> Option<usize> {
    match binding.provider {
        Provider::File { file, .. } => Some(machine.file_of(file as usize)),
        Provider::System { .. } | Provider::Unresolved { .. } => None,
    }
}

fn describe(machine: &Machine, key: &Key, simulated: Option<usize>, real: &[usize]) -> String {
    let name = |&file: &usize| machine.paths[file].as_str();
    let real: Vec<&str> = real.iter().map(name).collect();
    let (file, symbol, version) = key;
    let version = version.as_deref().unwrap_or("");
    format!("{} {symbol}@{version}: {:?}, ld.so {real:?}", name(file), simulated.as_ref().map(name))
}
