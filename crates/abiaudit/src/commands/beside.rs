//! Auditing inputs beside others: in simulated processes, and against a baseline.

use std::collections::BTreeSet;
use std::path::PathBuf;

use abiaudit_report::model;
use abiaudit_rules::{Audit, Baseline, Beside, Meeting, Settings, run};
use abiaudit_scan::{ScanError, Subject};
use anyhow::Context;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::cli::{BesideArgs, InputArgs};
use crate::commands::audit;
use crate::commands::ignores::Ignores;
use crate::processes::{self, Judged, Wanted};
use crate::progress::Progress;
use crate::{config, convert, inputs};

/// Audits every path with all inputs in memory at once, each beside what `beside` names; the report keeps their order.
pub fn audit(
    args: &InputArgs,
    beside: &BesideArgs,
    paths: Vec<PathBuf>,
    settings: &Settings,
    digest: bool,
) -> anyhow::Result<model::Report> {
    config::check(settings)?;
    audit::start_threads(args)?;
    let with = if beside.with.is_empty() { Vec::new() } else { inputs::expand(&beside.with)? };
    let baseline = beside.baseline.iter().cloned().collect::<Vec<_>>();
    let progress = Progress::new(paths.len() + with.len() + baseline.len(), !args.no_progress);
    let baseline = all(processes::read(baseline, false, &progress))?.first().map(Baseline::of);
    let with = all(processes::read(with, false, &progress))?;
    let checked = processes::read(paths, digest, &progress);
    let subjects: Vec<&Subject> =
        checked.iter().filter_map(|(_, result)| result.as_ref().ok()).flatten().collect();
    let mut meetings = if simulates(beside) { simulate(beside, &subjects, &with)? } else { Vec::new() };
    meetings.resize_with(subjects.len(), Vec::new);
    let ignores = Ignores::new(settings);
    let mut wheels: Vec<model::Wheel> = subjects
        .into_par_iter()
        .zip(meetings)
        .map(|(subject, meetings)| {
            let mut audit = Audit::new(subject, settings);
            audit.beside = Beside { meetings, baseline: baseline.clone() };
            let findings = run(&audit);
            ignores.record(&findings);
            convert::wheel(&audit, &findings)
        })
        .collect();
    ignores.tell(checked.iter().all(|(_, result)| result.is_ok()));
    // What could not be read keeps its place.
    let mut read = wheels.drain(..);
    let mut wheels = Vec::new();
    for (path, result) in &checked {
        match result {
            Ok(subjects) => wheels.extend(read.by_ref().take(subjects.len())),
            Err(error) => wheels.push(convert::unreadable(&path.to_string_lossy(), error)),
        }
    }
    Ok(audit::report(wheels))
}

/// Processes are to be simulated.
pub fn simulates(beside: &BesideArgs) -> bool {
    !beside.with.is_empty() || !beside.import.is_empty() || beside.trace.is_some()
}

/// All subjects of inputs that must be readable.
fn all(read: Vec<(PathBuf, Result<Vec<Subject>, ScanError>)>) -> anyhow::Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for (path, result) in read {
        subjects.extend(result.with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(subjects)
}

/// What processes say of each of the checked inputs.
fn simulate(
    beside: &BesideArgs,
    checked: &[&Subject],
    with: &[Subject],
) -> anyhow::Result<Vec<Vec<Meeting>>> {
    let wanted = match &beside.trace {
        Some(path) => Some(Wanted::Trace(path)),
        None if beside.import.is_empty() => None,
        None => Some(Wanted::Imports(&beside.import)),
    };
    let Some(wanted) = wanted else {
        let each: anyhow::Result<Vec<Judged>> =
            checked.into_par_iter().map(|subject| with_others(subject, with)).collect();
        let mut meetings = Vec::new();
        for mut judged in each? {
            print_notes(&judged.notes);
            meetings.push(judged.meetings.remove(&0).unwrap_or_default());
        }
        return Ok(meetings);
    };
    let subjects: Vec<&Subject> = checked.iter().copied().chain(with).collect();
    let mut judged =
        processes::judge(&subjects, &(0..checked.len()).collect(), wanted, beside.import.len() == 2)?;
    print_notes(&judged.notes);
    Ok((0..checked.len()).map(|subject| judged.meetings.remove(&subject).unwrap_or_default()).collect())
}

/// One input with all that is installed beside it: imported first, and imported last.
fn with_others(subject: &Subject, with: &[Subject]) -> anyhow::Result<Judged> {
    let subjects: Vec<&Subject> = [subject].into_iter().chain(with).collect();
    let order: Vec<usize> = (0..subjects.len()).collect();
    processes::judge(&subjects, &BTreeSet::from([0]), Wanted::Everything(&order), true)
}

fn print_notes(notes: &[String]) {
    for note in notes {
        anstream::eprintln!("note: {note}");
    }
}
