//! Scanning and auditing a list of inputs, which check and show share.

use std::path::{Path, PathBuf};

use abiaudit_report::model;
use abiaudit_rules::{Audit, RULES, Settings, run};
use abiaudit_scan::{Limits, Options, scan};
use anyhow::Context;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::cli::InputArgs;
use crate::commands::ignores::Ignores;
use crate::config::{self, Config};
use crate::progress::Progress;
use crate::{calendar, convert};

/// Reads the configuration file and lays the command line over it.
pub fn settings(args: &InputArgs) -> anyhow::Result<(Config, Settings)> {
    let source = config::Source { file: args.config.as_deref(), none: args.no_config };
    let config = config::load(&source)?;
    let mut settings = config.settings(calendar::today)?;
    if args.target.is_some() {
        settings.target.clone_from(&args.target);
    }
    Ok((config, settings))
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
    let ignores = Ignores::new(settings);
    let wheels: Vec<Vec<model::Wheel>> =
        paths.into_par_iter().map(|path| audit_one(&path, settings, digest, &progress, &ignores)).collect();
    ignores.tell(wheels.iter().flatten().all(|wheel| wheel.error.is_none()));
    Ok(report(wheels.into_iter().flatten().collect()))
}

/// As many threads as the user asks for; else as many as there are processors.
pub fn start_threads(args: &InputArgs) -> anyhow::Result<()> {
    let Some(jobs) = args.jobs else { return Ok(()) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.into());
    pool.build_global().context("cannot start the threads")
}

/// The report of audited wheels.
pub fn report(wheels: Vec<model::Wheel>) -> model::Report {
    let tool = model::Tool { name: "abiaudit".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    model::Report::new(tool, wheels)
}

fn audit_one(
    path: &Path,
    settings: &Settings,
    digest: bool,
    progress: &Progress,
    ignores: &Ignores<'_>,
) -> Vec<model::Wheel> {
    let read = |bytes| progress.read(bytes);
    let options = Options { limits: Limits::default(), digest, progress: Some(&read) };
    let wheels = match scan(path, &options) {
        Ok(subjects) => subjects
            .iter()
            .map(|subject| {
                let audit = Audit::new(subject, settings);
                let findings = run(&audit);
                ignores.record(&findings);
                convert::wheel(&audit, &findings)
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
