//! Scanning and auditing a list of inputs, which check and show share.

use std::path::{Path, PathBuf};

use abiaudit_report::model;
use abiaudit_rules::{Audit, RULES, Settings, run};
use abiaudit_scan::{Limits, Options, scan};
use anyhow::Context;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::cli::InputArgs;
use crate::config::{self, Config};
use crate::convert;
use crate::progress::Progress;

/// Reads the configuration file and lays the command line over it.
pub fn settings(args: &InputArgs) -> anyhow::Result<(Config, Settings)> {
    let source = config::Source { file: args.config.as_deref(), none: args.no_config };
    let config = config::load(&source)?;
    let mut settings = config.settings(today)?;
    if args.target.is_some() {
        settings.target.clone_from(&args.target);
    }
    Ok((config, settings))
}

/// The date of this machine, for ignores that expire; a build that must be reproducible sets `SOURCE_DATE_EPOCH`.
fn today() -> Option<String> {
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|e| e.parse::<u64>().ok());
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok().map(|d| d.as_secs());
    epoch.or_else(now).map(|seconds| civil_date(seconds / 86_400))
}

/// Days since 1970-01-01 as `YYYY-MM-DD` (proleptic Gregorian calendar).
fn civil_date(days: u64) -> String {
    /// 400 years have the same number of days wherever they begin.
    const DAYS_PER_ERA: u64 = 146_097;
    let leap = |y: u64| (y.is_multiple_of(4) && !y.is_multiple_of(100)) || y.is_multiple_of(400);
    let (mut year, mut rest) = (1970 + days / DAYS_PER_ERA * 400, days % DAYS_PER_ERA);
    while rest >= if leap(year) { 366 } else { 365 } {
        rest -= if leap(year) { 366 } else { 365 };
        year += 1;
    }
    let months = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", rest + 1)
}

/// Starts as many threads as the command line asks for.
pub fn start_threads(args: &InputArgs) -> anyhow::Result<()> {
    let Some(jobs) = args.jobs else { return Ok(()) };
    let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs.into());
    threads.build_global().context("cannot start the threads")
}

/// The report of these wheels.
pub fn report(wheels: Vec<model::Wheel>) -> model::Report {
    let tool = model::Tool { name: "abiaudit".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    model::Report::new(tool, wheels)
}

/// Audits every path, in parallel; the report keeps their order. `digest`: the report is to name wheels by their
/// hash, which costs a further look at every byte.
pub fn audit(
    args: &InputArgs,
    paths: Vec<PathBuf>,
    settings: &Settings,
    digest: bool,
) -> anyhow::Result<model::Report> {
    config::check(settings)?;
    start_threads(args)?;
    let progress = Progress::new(paths.len(), !args.no_progress);
    let wheels: Vec<Vec<model::Wheel>> =
        paths.into_par_iter().map(|path| audit_one(&path, settings, digest, &progress)).collect();
    Ok(report(wheels.into_iter().flatten().collect()))
}

fn audit_one(path: &Path, settings: &Settings, digest: bool, progress: &Progress) -> Vec<model::Wheel> {
    let read = |bytes| progress.read(bytes);
    let options = Options { limits: Limits::default(), digest, progress: Some(&read) };
    let wheels = match scan(path, &options) {
        Ok(subjects) => subjects
            .iter()
            .map(|subject| {
                let audit = Audit::new(subject, settings);
                convert::wheel(&audit, &run(&audit))
            })
            .collect(),
        Err(error) => vec![convert::unreadable(&path.to_string_lossy(), &error)],
    };
    progress.done();
    wheels
}

/// The rules that ran, for reports that list them.
pub fn rule_infos(settings: &Settings) -> Vec<abiaudit_report::RuleInfo> {
    let ran = RULES.iter().filter(|rule| abiaudit_rules::is_selected(settings, rule));
    ran.map(|rule| abiaudit_report::RuleInfo {
        id: rule.id.to_owned(),
        name: rule.name.to_owned(),
        summary: rule.summary(),
        explanation: rule.documentation(),
        help_uri: String::new(),
        default_severity: convert::severity(rule.severity),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::civil_date;

    #[test]
    fn dates() {
        assert_eq!(civil_date(0), "1970-01-01");
        assert_eq!(civil_date(19_782), "2024-02-29");
        assert_eq!(civil_date(20_788), "2026-12-01");
        assert_eq!(civil_date(146_097), "2370-01-01");
        assert_eq!(civil_date(47_482), "2100-01-01");
        // The largest SOURCE_DATE_EPOCH there is.
        assert!(civil_date(u64::MAX / 86_400).starts_with("584554051223-"));
    }
}
