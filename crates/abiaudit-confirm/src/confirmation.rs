//! The whole: inputs in, one process for each case, the prediction beside what happened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use abiaudit_process::Releases;
use abiaudit_scan::{Options, ScanError, Subject, scan};
use serde::Serialize;

use crate::bindings::{CompareError, Compared};
use crate::case::{Case, Mode, Place};
use crate::child::Stop;
use crate::environment::{Environment, EnvironmentError};
use crate::happened::Happened;
use crate::importable;
use crate::prediction::{Prediction, PredictionError, Predictor};
use crate::probe::{Probe, ProbeError};
use crate::run::{Limits, RunError, Runner};

/// The name of the JSON form.
pub const SCHEMA: &str = "abiaudit.confirm/1";

/// What is wanted.
#[derive(Debug)]
pub struct Request {
    /// Wheels whose modules are imported if `imports` says nothing, in this order.
    pub wheels: Vec<PathBuf>,
    /// Further wheels that are installed.
    pub with: Vec<PathBuf>,
    /// Directories of installed packages.
    pub directories: Vec<PathBuf>,
    /// What is imported, in this order.
    pub imports: Vec<String>,
    /// The reverse order too.
    pub both_orders: bool,
    /// Ways of opening.
    pub modes: Vec<Mode>,
    /// Places of the probe.
    pub places: Vec<Place>,
    /// Expressions that shall be true at the end.
    pub checks: Vec<String>,
    /// Which Python.
    pub python: PathBuf,
    /// The compiler of the probe.
    pub compiler: String,
    /// Bounds on each process.
    pub limits: Limits,
    /// Compare bindings with those that ld.so makes.
    pub bindings: bool,
}

/// Nothing can be confirmed.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    /// An input cannot be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The environment cannot be made, or does not take the wheels.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// There is a compiler, and it does not build the probe.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Nothing can be predicted.
    #[error(transparent)]
    Prediction(#[from] PredictionError),
    /// A process cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Bindings cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// No module is known to import.
    #[error("no wheel has a module to import: name some with --import")]
    NoImports,
    /// A module asks for another one that no input has.
    #[error("importing {order} needs the module {module}, which no input has: add its wheel with --with")]
    Absent {
        /// What was imported.
        order: String,
        /// What is not there.
        module: String,
    },
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Confirmation {
    /// [`SCHEMA`]
    pub schema: &'static str,
    /// Which Python it was: `Python 3.12.1 on linux-x86_64`.
    pub python: String,
    /// The compiler that built the probe; `None` if no probe was wanted or there is no compiler.
    pub probe: Option<String>,
    /// What limits how much was watched.
    pub warnings: Vec<String>,
    /// One for each process.
    pub runs: Vec<Run>,
}

/// One process.
#[derive(Debug, Serialize)]
pub struct Run {
    /// What it did.
    pub case: Case,
    /// What the simulation says of it.
    pub prediction: Prediction,
    /// What happened.
    pub happened: Happened,
    /// They are the same, as far as something asked.
    pub as_predicted: bool,
    /// Simulated bindings beside those of ld.so.
    pub bindings: Option<Compared>,
}

impl Confirmation {
    /// Everything was as predicted.
    pub fn is_as_predicted(&self) -> bool {
        self.runs.iter().all(|run| run.as_predicted)
    }

    /// Processes in which something is broken.
    pub fn broken(&self) -> usize {
        self.runs.iter().filter(|run| run.happened.is_broken()).count()
    }
}

/// Runs everything, with files in `scratch`, an empty directory. `done` is called after each process.
///
/// # Errors
/// [`ConfirmError`] if an input is unusable or a tool is missing.
pub fn confirm(
    request: &Request,
    scratch: &Path,
    stop: &Stop,
    done: &dyn Fn(&Run),
) -> Result<Confirmation, ConfirmError> {
    let mut subjects = scan_all(request)?;
    let imports = imports(request, &subjects)?;
    let mut warnings = Vec::new();
    let mut cases = cases(request, &imports, &request.places);
    let probe = if cases.iter().any(|case| case.copies() > 0) {
        match Probe::build(&request.compiler, scratch, &cases, stop) {
            Ok(probe) => Some(probe),
            Err(error @ ProbeError::NoCompiler { .. }) => {
                warnings.push(format!(
                    "{error}: without the probe, only exit codes, signals and Python's own results are watched, and \
                     streams that print nothing go unseen"
                ));
                cases = self::cases(request, &imports, &[Place::Nowhere]);
                None
            }
            Err(error) => return Err(error.into()),
        }
    } else {
        None
    };
    let wheels: Vec<PathBuf> = request.wheels.iter().chain(&request.with).cloned().collect();
    let environment = Environment::create(&request.python, scratch, &wheels, &request.directories, stop)?;
    if let Some(probe) = &probe {
        subjects.extend(scan(&probe.directory, &Options::default())?);
    }
    let predictor = Predictor::new(&subjects, Releases { libc: environment.glibc, gcc: environment.gcc })?;
    let predictions: Vec<Prediction> =
        cases.iter().map(|case| predictor.predict(case)).collect::<Result<_, _>>()?;
    let hooked = predictor.hooked();
    let runner = Runner {
        environment: &environment,
        probe: probe.as_ref(),
        hooked: &hooked,
        checks: &request.checks,
        limits: request.limits,
        scratch,
        stop,
    };
    let mut runs = Vec::new();
    for (number, (case, prediction)) in cases.into_iter().zip(predictions).enumerate() {
        let happened = runner.run(number, &case)?;
        if let Some(module) = happened.absent.as_ref().filter(|module| !predictor.has_package(module)) {
            return Err(ConfirmError::Absent { order: case.order(), module: module.clone() });
        }
        let bindings =
            request.bindings.then(|| crate::bindings::compare(&runner, number, &case)).transpose()?;
        let as_predicted = prediction.agrees_with(happened.is_broken())
            && bindings.as_ref().is_none_or(|compared| compared.differ.is_empty());
        let run = Run { case, prediction, happened, as_predicted, bindings };
        done(&run);
        runs.push(run);
    }
    let compiler = probe.is_some().then(|| request.compiler.clone());
    Ok(Confirmation { schema: SCHEMA, python: environment.description, probe: compiler, warnings, runs })
}

fn scan_all(request: &Request) -> Result<Vec<Subject>, ScanError> {
    let mut subjects = Vec::new();
    for path in request.wheels.iter().chain(&request.with).chain(&request.directories) {
        subjects.extend(scan(path, &Options::default())?);
    }
    Ok(subjects)
}

/// What is imported: what the request says, or the packages of its wheels that have native code.
fn imports(request: &Request, subjects: &[Subject]) -> Result<Vec<String>, ConfirmError> {
    if !request.imports.is_empty() {
        return Ok(request.imports.clone());
    }
    let mut seen = BTreeSet::new();
    let packages = subjects.iter().take(request.wheels.len()).flat_map(importable::modules);
    let imports: Vec<String> = packages.filter(|package| seen.insert(package.clone())).collect();
    if imports.is_empty() { Err(ConfirmError::NoImports) } else { Ok(imports) }
}

fn cases(request: &Request, imports: &[String], places: &[Place]) -> Vec<Case> {
    let mut orders = vec![imports.to_vec()];
    if request.both_orders && imports.len() > 1 {
        orders.push(imports.iter().rev().cloned().collect());
    }
    let mut cases: Vec<Case> = Vec::new();
    for order in &orders {
        for &mode in &request.modes {
            for &place in places {
                let case = Case::new(order, mode, place);
                // With one import there is no place between, and no second object without the probe.
                let is_new = !cases.iter().any(|other| other.steps == case.steps && other.mode == case.mode);
                if (place != Place::Between || case.copies() > 0) && is_new {
                    cases.push(case);
                }
            }
        }
    }
    cases
}
