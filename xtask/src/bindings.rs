//! `cargo xtask bindings`: compares `abiaudit_loader::binding` with what ld.so does when Python imports real packages.
//!
//! Each sequence runs once with `LD_DEBUG=files,scopes,bindings`. From the log come the `dlopen`s, which are given to the
//! simulation together with the files on disk, and the bindings, with which its bindings are compared one by one.
//!
//! What is not compared, and counted apart: look-ups of `dlsym` (the log does not tell them from others, but no
//! relocation asks for them), and PLT slots that were never called in objects that may be bound lazily: those loaded at
//! the start, and those that native code opened (the log does not tell the mode; Python's is `RTLD_NOW`).

mod log;
mod machine;
mod runtimes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use abiaudit_elf::{Object, RelocationUse, SymbolVersion};
use abiaudit_loader::binding::{
    Binding, Event, File, InterpositionKind, Load, ObjectId, Process, Program, Provider, Scenario, Target,
    Via,
};
use abiaudit_loader::search::{Libc, Library};
use anyhow::{Context, bail, ensure};

use crate::shell;
use log::Log;
use machine::Machine;

/// A virtual environment: its name, and what is installed in it.
const ENVIRONMENTS: &[(&str, &[&str])] = &[
    ("empty", &[]),
    (
        "other",
        &[
            "pillow",
            "lxml",
            "cryptography",
            "opencv-python-headless",
            "shapely",
            "matplotlib",
            "pydantic-core",
            "orjson",
            "grpcio",
            "duckdb",
            "rasterio",
            "psutil",
        ],
    ),
    ("science", &["numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "xgboost", "lightgbm", "faiss-cpu"]),
    ("torch", &["numpy", "torch", "optree", "scipy", "scikit-learn", "pyarrow"]),
];

/// A run: its name, its environment, and the Python code.
const SEQUENCES: &[(&str, &str, &str)] = &[
    ("no numeric runtime", "other", EVERYTHING),
    (
        "numpy scipy sklearn pandas pyarrow",
        "science",
        "import numpy, scipy.linalg, scipy.sparse, scipy.stats, sklearn.cluster, sklearn.ensemble, pandas, pyarrow.parquet",
    ),
    (
        "pyarrow xgboost lightgbm faiss",
        "science",
        "import pyarrow, pandas, xgboost, lightgbm, faiss, pyarrow.dataset",
    ),
    ("every module of science", "science", EVERYTHING),
    (
        "torch first",
        "torch",
        "import torch, numpy, optree, scipy.linalg, scipy.stats, sklearn.cluster, pyarrow",
    ),
    (
        "torch last",
        "torch",
        "import numpy, optree, scipy.linalg, scipy.stats, sklearn.cluster, pyarrow, torch",
    ),
];

/// Imports every extension module that is installed, in the order of names; those that refuse are passed over.
const EVERYTHING: &str = "
import importlib, os, site, sys
for root in [p for p in sys.path if p.endswith('lib-dynload')] + site.getsitepackages():
    for directory, below, files in os.walk(root):
        below.sort()
        for name in sorted(f for f in files if '.so' in f and ('.cpython-' in f or '.abi3' in f)):
            module = os.path.relpath(os.path.join(directory, name.split('.')[0]), root).replace('/', '.')
            try: importlib.import_module(module)
            except BaseException: pass
os._exit(0)
";

/// The sequence of modules that are built here, each with its own way to a C++ runtime.
const RUNTIMES: &str = "C++ runtimes";

/// `bindings [--cache DIR] [--python PYTHON] [SEQUENCE]..`: all sequences whose name contains one of the arguments.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(args)?;
    println!(
        "{:<36} {:>7} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6} {:>7} {:>9}",
        "sequence",
        "objects",
        "dlopens",
        "compared",
        "agree",
        "disagree",
        "unseen",
        "lazy",
        "dlsym",
        "seconds"
    );
    let mut bad = 0;
    for (name, environment, code) in SEQUENCES {
        if options.wants(name) {
            let python = options.environment(environment)?;
            let comparison =
                compare(&python, code, &options.cache, None).with_context(|| (*name).to_owned())?;
            comparison.print(name);
            bad += comparison.bad();
        }
    }
    if options.wants(RUNTIMES) {
        let python = options.environment("empty")?;
        let modules = runtimes::build(&options.cache.join("runtimes"))?;
        let mut sum = Comparison::default();
        for code in modules.sequences() {
            sum.add(compare(&python, &code, &options.cache, Some(&modules.directory)).context(code)?);
        }
        sum.print(RUNTIMES);
        bad += sum.bad();
    }
    ensure!(bad == 0, "{bad} bindings differ");
    Ok(())
}

struct Options {
    cache: PathBuf,
    python: String,
    sequences: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            cache: shell::cache()?.join("bindings"),
            python: "python3".to_owned(),
            sequences: Vec::new(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--cache" => options.cache = args.next().context("--cache DIR")?.into(),
                "--python" => args.next().context("--python PYTHON")?.clone_into(&mut options.python),
                name if !name.starts_with('-') => options.sequences.push(name.to_owned()),
                other => bail!("unknown option {other}"),
            }
        }
        std::fs::create_dir_all(&options.cache)?;
        options.cache = options.cache.canonicalize()?;
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.sequences.is_empty() || self.sequences.iter().any(|part| name.contains(part.as_str()))
    }

    /// The Python of an environment, which is made if it is not there.
    fn environment(&self, name: &str) -> anyhow::Result<PathBuf> {
        let directory = self.cache.join(name);
        let python = directory.join("bin/python");
        let complete = directory.join("complete");
        if complete.exists() {
            return Ok(python);
        }
        let (_, packages) = ENVIRONMENTS.iter().find(|(n, _)| *n == name).context("no such environment")?;
        shell::run(Command::new(&self.python).args(["-m", "venv", "--clear"]).arg(&directory))?;
        if !packages.is_empty() {
            let pip = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"];
            shell::run(Command::new(&python).args(pip).args(*packages))?;
        }
        std::fs::write(complete, "")?;
        Ok(python)
    }
}

/// Runs the code and simulates the same. It may load what lies in `modules`.
fn compare(python: &Path, code: &str, scratch: &Path, modules: Option<&Path>) -> anyhow::Result<Comparison> {
    let log = log::record(python, code, scratch)?;
    let machine = Machine::read(python, modules, &log)?;
    let files = machine.files();
    let events = machine.events(&log);
    let directories: Vec<&str> = machine.default_directories.iter().map(String::as_str).collect();
    let scenario = Scenario {
        libc: Libc::Glibc,
        files: &files,
        system: &[],
        default_directories: &directories,
        program: Program::File(machine.program),
        preload: &[],
        events: &events,
    };
    let started = Instant::now();
    let process = Process::run(&scenario);
    let seconds = started.elapsed().as_secs_f64();
    let mut comparison = Comparison { dlopens: log.opened.len(), seconds, ..Comparison::default() };
    comparison.compare(&machine, &files, &process, &log);
    Ok(comparison)
}

/// The program and the loader: the kernel maps these.
const NOT_MAPPED: usize = 2;

/// What is compared: the file that refers, the symbol and the version that it asks for.
type Key = (usize, String, Option<String>);

#[derive(Default)]
struct Comparison {
    /// Files that may be bound lazily: those there from the start, and those that native code opened.
    maybe_lazy: BTreeSet<usize>,
    objects: usize,
    mapped: usize,
    dlopens: usize,
    seconds: f64,
    bindings: usize,
    compared: usize,
    agree: usize,
    disagreements: Vec<String>,
    /// Bound by the simulation, and not by ld.so although it had to.
    unseen: Vec<String>,
    /// Lazy slots that were never called.
    lazy: usize,
    /// In the log only.
    dlsym: usize,
    missing: Vec<String>,
    overridden: usize,
    not_needed: usize,
}

impl Comparison {
    /// Bindings that differ, or that one side does not have.
    fn bad(&self) -> usize {
        self.disagreements.len() + self.unseen.len()
    }

    /// Adds up two runs.
    fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.mapped += other.mapped;
        self.dlopens += other.dlopens;
        self.seconds += other.seconds;
        self.bindings += other.bindings;
        self.compared += other.compared;
        self.agree += other.agree;
        self.disagreements.extend(other.disagreements);
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
            self.disagreements.push(format!("{} objects, ld.so mapped {}", self.objects, self.mapped));
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
                Some(providers) => self.disagreements.push(describe(machine, &key, provider, &providers)),
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

    fn print(&self, name: &str) {
        println!(
            "{name:<36} {:>7} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6} {:>7} {:>9.3}",
            self.objects,
            self.dlopens,
            self.compared,
            self.agree,
            self.disagreements.len(),
            self.unseen.len(),
            self.lazy,
            self.dlsym,
            self.seconds
        );
        println!(
            "    {} bindings simulated; ld.so mapped {} objects; across wheels {} overridden, {} not needed",
            self.bindings, self.mapped, self.overridden, self.not_needed
        );
        for (title, lines) in
            [("differs", &self.disagreements), ("unseen", &self.unseen), ("missing", &self.missing)]
        {
            for line in lines.iter().take(8) {
                println!("    {title}: {line}");
            }
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
