//! From inputs to simulated processes: reading many inputs at once, and what is opened in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use abiaudit_process::trace::Log;
use abiaudit_process::{Followed, Follower, Plan, Platform, Releases, Site, SystemBase};
use abiaudit_rules::{Meeting, Simulated, meetings};
use abiaudit_scan::{Limits, Options, ScanError, Subject, scan};
use anyhow::{Context, bail};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::progress::Progress;

/// Reads inputs on all threads; the result keeps their order. `digest`: wheels are to be named by their hash.
pub fn read(
    paths: Vec<PathBuf>,
    digest: bool,
    progress: &Progress,
) -> Vec<(PathBuf, Result<Vec<Subject>, ScanError>)> {
    let read = |bytes| progress.read(bytes);
    let one = |path: PathBuf| {
        let options = Options { limits: Limits::default(), digest, progress: Some(&read) };
        let result = scan(&path, &options);
        progress.done();
        (path, result)
    };
    paths.into_par_iter().map(one).collect()
}

/// What a process opens.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// Modules, whose import statements are followed.
    Imports(&'a [String]),
    /// What a recorded run opened.
    Trace(&'a Path),
    /// Every extension module of these inputs (positions in [`Site::subjects`]).
    Everything(&'a [usize]),
}

/// The plan for what is wanted, and if it is asked for the one for the reverse order; with the names of what is
/// imported. A trace has one order.
///
/// # Errors
/// A module that no input has, or a trace that cannot be read or has no `dlopen` in it.
pub fn plans(
    site: &Site<'_>,
    wanted: Wanted<'_>,
    both_orders: bool,
) -> anyhow::Result<Vec<(Vec<String>, Plan)>> {
    match wanted {
        Wanted::Trace(path) => Ok(vec![(Vec::new(), recorded(site, path)?)]),
        Wanted::Imports(names) => {
            orders(names, both_orders).map(|order| Ok((order.clone(), follow(site, &order)?))).collect()
        }
        Wanted::Everything(subjects) => Ok(orders(subjects, both_orders)
            .map(|order| {
                let names = order.iter().map(|&subject| site.distribution(subject)).collect();
                (names, Plan::everything(site, &order))
            })
            .collect()),
    }
}

/// The order that is given, and its reverse.
fn orders<T: Clone>(given: &[T], both: bool) -> impl Iterator<Item = Vec<T>> {
    let reverse = both.then(|| given.iter().rev().cloned().collect());
    [given.to_vec()].into_iter().chain(reverse)
}

fn recorded(site: &Site<'_>, path: &Path) -> anyhow::Result<Plan> {
    let context = || format!("cannot read {}", path.display());
    let file = std::fs::File::open(path).with_context(context)?;
    let log = Log::read(std::io::BufReader::new(file)).with_context(context)?;
    if log.opened.is_empty() {
        bail!("{}: no dlopen in it; expected the output of LD_DEBUG=files,scopes", path.display());
    }
    Ok(log.plan(site))
}

fn follow(site: &Site<'_>, names: &[String]) -> anyhow::Result<Plan> {
    let mut follower = Follower::new(site);
    for name in names {
        if follower.import(name) == Followed::Absent {
            bail!("no input has the module {name}");
        }
    }
    Ok(follower.finish())
}

/// What simulated processes say of inputs, and what should be known of how complete they are.
#[derive(Debug, Default)]
pub struct Judged {
    /// By position of the input.
    pub meetings: BTreeMap<usize, Vec<Meeting>>,
    /// Sentences.
    pub notes: Vec<String>,
}

/// Simulates a process of all inputs, and says what those in `judged` have to hear.
///
/// # Errors
/// Those of [`plans`], and a platform without tables.
pub fn judge(
    subjects: &[&Subject],
    judged: &BTreeSet<usize>,
    wanted: Wanted<'_>,
    both_orders: bool,
) -> anyhow::Result<Judged> {
    let Some(platform) = Platform::of(subjects.iter().copied()) else {
        let note = "no process was simulated: no input has native code for a known architecture".to_owned();
        return Ok(Judged { notes: vec![note], ..Judged::default() });
    };
    let site = Site::new(subjects.iter().copied(), platform);
    let base = SystemBase::new(&site, Releases::default())?;
    let plans = plans(&site, wanted, both_orders)?;
    let mut notes: Vec<String> = plans.iter().flat_map(|(_, plan)| plan.notes.clone()).collect();
    let runs: Vec<Simulated> =
        plans.into_iter().map(|(_, plan)| Simulated::new(&site, &base, plan)).collect();
    let unbound: usize = runs.iter().map(|run| run.process.unbound.len()).sum();
    if unbound > 0 {
        notes.push(format!("{unbound} objects were not bound: too much work"));
    }
    notes.sort();
    notes.dedup();
    Ok(Judged { meetings: meetings(&site, &base, &runs, judged), notes })
}
