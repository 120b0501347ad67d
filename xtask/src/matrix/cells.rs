//! The cells of the matrix: two modules, an order, a mode; what is predicted, and what happens.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use abiaudit_confirm::{
    Case, Environment, Happened, Limits, Mode, Place, Prediction, Predictor, Runner, Stop,
};
use abiaudit_process::Releases;
use abiaudit_scan::{Options, Subject, scan};
use anyhow::{Context, Result};

use super::variants::{Built, Variant};

/// A variant beside a partner.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'m> {
    pub variant: &'m Variant,
    pub partner: &'m Variant,
    /// The module of the variant.
    pub module: &'m str,
    /// The module of the partner.
    pub other: &'m str,
}

/// One process.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'m> {
    pub pair: Pair<'m>,
    /// The partner is imported first.
    pub reversed: bool,
    pub mode: Mode,
}

/// What came of a cell.
#[derive(Debug)]
pub struct Outcome<'m> {
    pub cell: Cell<'m>,
    pub prediction: Prediction,
    pub happened: Happened,
}

impl Outcome<'_> {
    /// The prediction is what happened.
    pub fn agrees(&self) -> bool {
        self.prediction.is_broken() == self.happened.is_broken()
    }
}

/// Both orders of all modes.
pub fn cells<'m>(pairs: &[Pair<'m>], modes: &[Mode]) -> Vec<Cell<'m>> {
    let mut cells = Vec::new();
    for &pair in pairs {
        for &mode in modes {
            cells.extend([false, true].map(|reversed| Cell { pair, reversed, mode }));
        }
    }
    cells
}

/// Runs all cells with the modules in one environment.
pub fn play<'m>(
    cells: &[Cell<'m>],
    modules: &[Built],
    python: &Path,
    scratch: &Path,
    jobs: usize,
) -> Result<Vec<Outcome<'m>>> {
    let stop = Stop::default();
    let wheels: Vec<_> = modules.iter().map(|module| module.wheel.clone()).collect();
    let environment = Environment::create(python, scratch, &wheels, &[], &stop)?;
    let subjects = subjects(modules)?;
    let predictor = Predictor::new(&subjects, Releases { libc: environment.glibc, gcc: environment.gcc })?;
    let hooked = predictor.hooked();
    let runner = Runner {
        environment: &environment,
        probe: None,
        hooked: &hooked,
        checks: &[],
        limits: Limits { timeout: Duration::from_mins(1), memory: None },
        scratch,
        stop: &stop,
    };
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1))
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(cell) = cells.get(number) else { return Ok(()) };
                        let outcome = one(cell, number, &predictor, &runner)?;
                        outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(number, _)| *number);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn one<'m>(
    cell: &Cell<'m>,
    number: usize,
    predictor: &Predictor<'_>,
    runner: &Runner<'_>,
) -> Result<Outcome<'m>> {
    let mut order = [cell.pair.module.to_owned(), cell.pair.other.to_owned()];
    if cell.reversed {
        order.reverse();
    }
    let case = Case::new(&order, cell.mode, Place::Nowhere);
    let prediction = predictor.predict(&case)?;
    let happened = runner.run(number, &case)?;
    Ok(Outcome { cell: *cell, prediction, happened })
}

fn subjects(modules: &[Built]) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for module in modules {
        let read = scan(&module.wheel, &Options::default());
        subjects.extend(read.with_context(|| module.wheel.display().to_string())?);
    }
    Ok(subjects)
}
