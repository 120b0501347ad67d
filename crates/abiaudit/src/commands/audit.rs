//! Scanning and auditing a list of inputs, which check and show share.

use std::path::{Path, PathBuf};

use abiaudit_report::model;
use abiaudit_rules::{Audit, RULES, Settings, run};
use abiaudit_scan::{Limits, Options, Subject, scan};
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

/// What a report is to have that costs a further look at the input.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras {
    /// The hash of each wheel.
    pub digest: bool,
    /// Who compiled each unit, where there is DWARF.
    pub producers: bool,
}

/// Audits every path, in parallel; the report keeps their order.
pub fn audit(
    args: &InputArgs,
    paths: Vec<PathBuf>,
    settings: &Settings,
    extras: Extras,
) -> anyhow::Result<model::Report> {
    config::check(settings)?;
    start_threads(args)?;
    let progress = Progress::new(paths.len(), !args.no_progress);
    let ignores = Ignores::new(settings);
    let wheels: Vec<Vec<model::Wheel>> =
        paths.into_par_iter().map(|path| audit_one(&path, settings, extras, &progress, &ignores)).collect();
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
    extras: Extras,
    progress: &Progress,
    ignores: &Ignores<'_>,
) -> Vec<model::Wheel> {
    let read = |bytes| progress.read(bytes);
    let options = Options { limits: Limits::default(), digest: extras.digest, progress: Some(&read) };
    let wheels = match scan(path, &options) {
        Ok(subjects) => subjects
            .iter()
            .map(|subject| {
                let audit = Audit::new(subject, settings);
                let findings = run(&audit);
                ignores.record(&findings);
                let mut wheel = convert::wheel(&audit, &findings);
                if extras.producers {
                    add_producers(subject, &mut wheel);
                }
                wheel
            })
            .collect(),
        Err(error) => vec![convert::unreadable(&path.to_string_lossy(), &error)],
    };
    progress.done();
    wheels
}

/// Reads the objects with DWARF once more. What cannot be read is left out: the audit has said why.
fn add_producers(subject: &Subject, wheel: &mut model::Wheel) {
    const MOST: u64 = 2 << 30;
    let with_dwarf = subject.objects().filter(|(_, object)| object.sections.has_debug_info);
    let Ok(mut reader) = subject.reader(&Limits::default()) else { return };
    for (member, object) in with_dwarf {
        let entry = wheel.objects.iter_mut().find(|entry| entry.member == member.name);
        if let (Some(entry), Ok(bytes)) = (entry, reader.read(&member.name, MOST)) {
            entry.producers = abiaudit_detect::producers(&bytes, object).into_iter().collect();
        }
    }
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
