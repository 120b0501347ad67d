//! `abiaudit bind`: who serves whom in one process.

mod view;

use std::io::Write;
use std::path::PathBuf;

use abiaudit_policy::symbols::Release;
use abiaudit_process::{Platform, Releases, Site, SystemBase};
use abiaudit_report::bindings::{self, Bindings, BindingsFormat, BindingsOptions, model};
use abiaudit_scan::Subject;
use anyhow::{Context, bail};

use crate::cli::{BindArgs, BindFormat, Order};
use crate::processes::{self, Wanted};
use crate::progress::Progress;
use crate::{CLEAN, TROUBLE, inputs, output};
use view::View;

/// What the inputs hold, and which of them could be read.
struct Scanned {
    inputs: Vec<model::Input>,
    subjects: Vec<Subject>,
    /// Positions of the subjects that were not given by `--with`.
    primary: Vec<usize>,
}

pub fn run(args: &BindArgs) -> anyhow::Result<u8> {
    let scanned = scan_all(args)?;
    let bindings = bind(args, &scanned)?;
    let format = match args.format {
        BindFormat::Text => BindingsFormat::Text,
        BindFormat::Json => BindingsFormat::Json,
        BindFormat::Dot => BindingsFormat::Dot,
        BindFormat::Html => BindingsFormat::Html,
    };
    let options = BindingsOptions { unexpected: args.unexpected, all: args.all, color: false };
    if let Some(path) = &args.output {
        output::write_file(path, |out| bindings::render(format, &bindings, options, out))?;
    } else {
        let (mut out, color) = output::stdout(args.color);
        let options = BindingsOptions { color, ..options };
        let written = bindings::render(format, &bindings, options, &mut out).and_then(|()| out.flush());
        output::unless_reader_has_gone(written.map_err(Into::into))?;
    }
    let is_bad = scanned.inputs.iter().any(|input| input.error.is_some());
    Ok(if is_bad { TROUBLE } else { CLEAN })
}

fn scan_all(args: &BindArgs) -> anyhow::Result<Scanned> {
    let primary = inputs::expand(&args.inputs)?;
    let count = primary.len();
    let paths: Vec<PathBuf> = primary.into_iter().chain(args.with.iter().cloned()).collect();
    if let Some(output) = &args.output {
        output::refuse_input(output, &paths)?;
    }
    let progress = Progress::new(paths.len(), !args.no_progress);
    let results = processes::read(paths, false, &progress);
    let mut scanned = Scanned { inputs: Vec::new(), subjects: Vec::new(), primary: Vec::new() };
    for (position, (path, result)) in results.into_iter().enumerate() {
        let with = position >= count;
        match result {
            Ok(subjects) => {
                for subject in subjects {
                    if !with {
                        scanned.primary.push(scanned.subjects.len());
                    }
                    let distribution = view::distribution(&subject);
                    let path = subject.path.clone();
                    scanned.inputs.push(model::Input {
                        path,
                        distribution: Some(distribution),
                        with,
                        error: None,
                    });
                    scanned.subjects.push(subject);
                }
            }
            Err(error) => {
                let path = path.to_string_lossy().into_owned();
                let error = Some(error.reason());
                scanned.inputs.push(model::Input { path, distribution: None, with, error });
            }
        }
    }
    Ok(scanned)
}

fn bind(args: &BindArgs, scanned: &Scanned) -> anyhow::Result<Bindings> {
    let tool = abiaudit_report::model::Tool {
        name: "abiaudit".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut bindings = Bindings {
        schema: model::SCHEMA.to_owned(),
        tool,
        inputs: scanned.inputs.clone(),
        system: model::System::default(),
        runs: Vec::new(),
        differences: Vec::new(),
    };
    let Some(platform) = Platform::of(&scanned.subjects) else {
        if scanned.inputs.iter().any(|input| input.error.is_some()) {
            return Ok(bindings);
        }
        bail!("no input has an ELF file of an architecture that wheels can be for");
    };
    let site = Site::new(&scanned.subjects, platform);
    let releases = Releases { libc: release(args.libc.as_deref())?, gcc: release(args.gcc.as_deref())? };
    let base = SystemBase::new(&site, releases)?;
    bindings.system = model::System {
        arch: platform.arch.tag().to_owned(),
        libc: platform.libc.to_string(),
        libc_release: base.libc.to_string(),
        gcc_release: base.gcc.to_string(),
    };
    let wanted = match &args.trace {
        Some(path) => Wanted::Trace(path),
        None if args.import.is_empty() => Wanted::Everything(&scanned.primary),
        None => Wanted::Imports(&args.import),
    };
    let processes: Vec<_> = processes::plans(&site, wanted, args.order == Order::Both)?
        .into_iter()
        .map(|(order, plan)| {
            let process = abiaudit_process::run(&site, &base, &plan);
            (order, plan, process)
        })
        .collect();
    let views: Vec<View<'_, '_>> =
        processes.iter().map(|(_, plan, process)| View::new(&site, &base, plan, process)).collect();
    for ((order, _, _), view) in processes.iter().zip(&views) {
        bindings.runs.push(view.run(order, args.symbol.as_deref(), args.all));
    }
    if let [first, second] = views.as_slice() {
        bindings.differences = first.differences(second);
    }
    Ok(bindings)
}

fn release(text: Option<&str>) -> anyhow::Result<Option<Release>> {
    text.map(|text| text.parse().with_context(|| format!("{text:?}: expected a release such as 2.28")))
        .transpose()
}
