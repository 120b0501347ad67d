//! `abiaudit confirm`: runs wheels for real, and compares what happens with the prediction.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abiaudit_confirm::{Confirmation, Limits, Mode, Place, Request, Stop, confirm, write_text};
use anyhow::{Context, bail};

use crate::cli::{Color, ConfirmArgs, ConfirmFormat, ConfirmMode, Order, ProbePlace};
use crate::progress::Progress;
use crate::{CLEAN, FINDINGS, inputs, output};

pub fn run(args: &ConfirmArgs) -> anyhow::Result<u8> {
    let stop = stop_by_signal()?;
    let request = request(args)?;
    if let Some(path) = &args.output {
        let inputs: Vec<PathBuf> = request.wheels.iter().chain(&request.with).cloned().collect();
        output::refuse_input(path, &inputs)?;
    }
    let progress = Progress::new(0, !args.no_progress);
    let confirmation = match &args.keep {
        Some(directory) => {
            create_empty(directory)?;
            confirm(&request, &directory.canonicalize()?, &stop, &|_| progress.done())?
        }
        None => {
            let folder = tempfile::Builder::new().prefix("abiaudit-confirm-").tempdir();
            let folder = folder.context("cannot make a temporary directory")?;
            // Links in the path of a temporary directory would hide what ld.so says of files in it.
            confirm(&request, &folder.path().canonicalize()?, &stop, &|_| progress.done())?
        }
    };
    drop(progress);
    write(args, &confirmation)?;
    Ok(if confirmation.is_as_predicted() { CLEAN } else { FINDINGS })
}

/// The first signal ends the processes and removes the temporary directory, the second ends abiaudit at once.
fn stop_by_signal() -> anyhow::Result<Stop> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, stop.flag())
            .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
            .context("cannot handle signals")?;
    }
    Ok(stop)
}

fn request(args: &ConfirmArgs) -> anyhow::Result<Request> {
    let (wheels, mut directories) = sorted(&args.inputs)?;
    if let Some(directory) = directories.first() {
        bail!("{} is no wheel: give directories of installed packages by --with", directory.display());
    }
    let (with, more) = if args.with.is_empty() { Default::default() } else { sorted(&args.with)? };
    directories.extend(more);
    let modes = match args.mode {
        ConfirmMode::Local => vec![Mode::Local],
        ConfirmMode::Global => vec![Mode::Global],
        ConfirmMode::FirstGlobal => vec![Mode::FirstGlobal],
        ConfirmMode::SecondGlobal => vec![Mode::SecondGlobal],
        ConfirmMode::Preload => vec![Mode::Preload],
        ConfirmMode::All => Mode::ALL.to_vec(),
    };
    let places = args.probe.iter().map(|place| match place {
        ProbePlace::First => Place::First,
        ProbePlace::Between => Place::Between,
        ProbePlace::Last => Place::Last,
        ProbePlace::None => Place::Nowhere,
    });
    Ok(Request {
        wheels,
        with,
        directories,
        imports: args.import.clone(),
        both_orders: args.order == Order::Both,
        modes,
        places: places.collect(),
        checks: args.check.clone(),
        python: args.python.clone(),
        compiler: args.compiler.clone(),
        limits: Limits {
            timeout: Duration::from_secs(args.timeout.into()),
            memory: args.memory.as_deref().map(crate::config::parse_size).transpose()?,
        },
        bindings: args.bindings,
    })
}

/// Wheels, and directories of installed packages.
fn sorted(paths: &[PathBuf]) -> anyhow::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (directories, wheels): (Vec<PathBuf>, Vec<PathBuf>) =
        inputs::expand(paths)?.into_iter().partition(|path| path.is_dir());
    for wheel in &wheels {
        if !wheel.exists() {
            bail!("{} is not there", wheel.display());
        }
        if wheel.extension().is_none_or(|extension| extension != "whl") {
            bail!("{} is no wheel", wheel.display());
        }
    }
    // What is started in another directory would not find a relative path.
    let absolute = |paths: Vec<PathBuf>| {
        let absolute = |path: PathBuf| path.canonicalize().with_context(|| path.display().to_string());
        paths.into_iter().map(absolute).collect::<anyhow::Result<Vec<_>>>()
    };
    Ok((absolute(wheels)?, absolute(directories)?))
}

fn create_empty(directory: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot use {}", directory.display());
    std::fs::create_dir_all(directory).with_context(context)?;
    if std::fs::read_dir(directory).with_context(context)?.next().is_some() {
        bail!("{} is not empty", directory.display());
    }
    Ok(())
}

fn write(args: &ConfirmArgs, confirmation: &Confirmation) -> anyhow::Result<()> {
    let render = |out: &mut dyn Write| match args.format {
        ConfirmFormat::Text => write_text(out, confirmation),
        ConfirmFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, confirmation)?;
            writeln!(out)
        }
    };
    match &args.output {
        Some(path) => output::write_file(path, render),
        None => {
            let (mut out, _) = output::stdout(Color::Never);
            let written = render(&mut out).and_then(|()| out.flush());
            output::unless_reader_has_gone(written.map_err(Into::into))
        }
    }
}
