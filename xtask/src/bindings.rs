//! `cargo xtask bindings`: compares `abiaudit_loader::binding` with what ld.so does when Python imports real packages.
//!
//! Each sequence runs once with `LD_DEBUG=files,scopes,bindings`; [`abiaudit_confirm::bindings`] simulates the same and
//! compares.

mod log;
mod runtimes;

use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_confirm::bindings::{Compared, Machine};
use anyhow::{Context, bail, ensure};

use crate::shell;

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
            print(&comparison, name);
            bad += comparison.bad();
        }
    }
    if options.wants(RUNTIMES) {
        let python = options.environment("empty")?;
        let modules = runtimes::build(&options.cache.join("runtimes"))?;
        let mut sum = Compared::default();
        for code in modules.sequences() {
            sum.add(compare(&python, &code, &options.cache, Some(&modules.directory)).context(code)?);
        }
        print(&sum, RUNTIMES);
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
fn compare(python: &Path, code: &str, scratch: &Path, modules: Option<&Path>) -> anyhow::Result<Compared> {
    let log = log::record(python, code, scratch)?;
    let modules: Vec<PathBuf> = modules.map(Path::to_owned).into_iter().collect();
    let machine = Machine::read(python, &modules, &log)?;
    Ok(Compared::of(&machine, &log, &[]))
}

fn print(compared: &Compared, name: &str) {
    println!(
        "{name:<36} {:>7} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6} {:>7} {:>9.3}",
        compared.objects,
        compared.dlopens,
        compared.compared,
        compared.agree,
        compared.differ.len(),
        compared.unseen.len(),
        compared.lazy,
        compared.dlsym,
        compared.seconds
    );
    println!(
        "    {} bindings simulated; ld.so mapped {} objects; across wheels {} overridden, {} not needed",
        compared.bindings, compared.mapped, compared.overridden, compared.not_needed
    );
    for (title, lines) in
        [("differs", &compared.differ), ("unseen", &compared.unseen), ("missing", &compared.missing)]
    {
        for line in lines.iter().take(8) {
            println!("    {title}: {line}");
        }
    }
}
