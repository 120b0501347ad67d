//! `abiaudit repair`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use abiaudit_repair::machine::{LibraryPaths, Root};
use abiaudit_repair::{Control, Include, Options, Plan, RepairError, Repaired, Statement, prepare};
use abiaudit_rules::Severity;
use abiaudit_wheel::WriteOptions;
use abiaudit_wheel::writer::DosTime;
use anyhow::{Context, bail};

use crate::cli::{Mend, PlanFormat, RepairArgs};
use crate::{CLEAN, FINDINGS, TROUBLE, calendar, config, output};

pub fn run(args: &RepairArgs) -> anyhow::Result<u8> {
    let options = options(args)?;
    if let Some(report) = &args.report {
        output::refuse_input(report, &args.wheels)?;
    }
    if let Some(jobs) = args.jobs {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.into());
        pool.build_global().context("cannot start the threads")?;
    }
    let interrupted = on_signals()?;
    let mut code = CLEAN;
    let mut statements = Vec::new();
    for wheel in &args.wheels {
        let of_wheel = match repair(wheel, args, &options, &interrupted) {
            Ok(statement) => {
                statements.extend(statement);
                CLEAN
            }
            Err(Failure::Repair(RepairError::Interrupted)) => {
                complain(wheel, &RepairError::Interrupted);
                return Ok(TROUBLE);
            }
            Err(Failure::Repair(error)) => {
                complain(wheel, &error);
                if error.is_trouble() { TROUBLE } else { FINDINGS }
            }
            Err(Failure::Output(error)) => return Err(error),
        };
        code = code.max(of_wheel);
    }
    if let Some(report) = &args.report {
        output::write_file(report, |file| {
            statements.iter().try_for_each(|statement| {
                serde_json::to_writer(&mut *file, statement)?;
                writeln!(file)
            })
        })?;
    }
    Ok(code)
}

/// What went wrong: with the wheel, or with printing.
enum Failure {
    Repair(RepairError),
    Output(anyhow::Error),
}

impl From<RepairError> for Failure {
    fn from(error: RepairError) -> Self {
        Self::Repair(error)
    }
}

/// Repairs one wheel, prints what was done, and gives the statement on it if one is wanted.
fn repair(
    wheel: &Path,
    args: &RepairArgs,
    options: &Options,
    interrupted: &AtomicBool,
) -> Result<Option<Statement>, Failure> {
    let prepared = prepare(wheel, options)?;
    let plan = prepared.plan().clone();
    // Before the input may be replaced.
    let input = args.report.is_some().then(|| prepared.input_sha256());
    let repaired = if args.dry_run {
        None
    } else {
        let beside = wheel.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = if args.in_place { beside } else { &args.wheel_dir };
        let control = Control {
            in_place: args.in_place,
            tool_version: env!("CARGO_PKG_VERSION"),
            interrupted: &|| interrupted.load(Ordering::Relaxed),
        };
        Some(prepared.write(directory, options, &control)?)
    };
    let statement = match (&repaired, input) {
        (Some(repaired), Some(input)) => {
            let version = env!("CARGO_PKG_VERSION");
            Some(Statement::new(&plan, &input, &repaired.path, &repaired.written, version)?)
        }
        _ => None,
    };
    output::unless_reader_has_gone(print(args.format, &plan, repaired.as_ref())).map_err(Failure::Output)?;
    Ok(statement)
}

fn print(format: PlanFormat, plan: &Plan, repaired: Option<&Repaired>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match format {
        PlanFormat::Json => {
            let path = repaired.map(|repaired| repaired.path.to_string_lossy());
            let line = serde_json::json!({"plan": plan, "written": path});
            writeln!(out, "{line}")?;
        }
        PlanFormat::Text => {
            write!(out, "{plan}")?;
            for finding in repaired.iter().flat_map(|repaired| &repaired.findings) {
                let counts = finding.severity >= Severity::Warning && finding.suppressed.is_none();
                if counts {
                    let member = finding.member.as_deref().unwrap_or(&plan.output);
                    writeln!(
                        out,
                        "  {} {} {member}: {}",
                        finding.severity.as_str(),
                        finding.rule.id,
                        finding.message
                    )?;
                }
            }
            if let Some(repaired) = repaired {
                writeln!(out, "  wrote {}", repaired.path.display())?;
            }
        }
    }
    Ok(out.flush()?)
}

fn complain(wheel: &Path, error: &RepairError) {
    let style = anstyle::AnsiColor::Red.on_default().bold();
    anstream::eprintln!("{style}error{style:#}: {}: {error}", wheel.display());
}

/// What an option stands for.
fn mends(mend: Mend) -> &'static [abiaudit_repair::Mend] {
    use abiaudit_repair::Mend::{EmptySegments, ExecutableStack, Glibc, Libstdcxx, LibstdcxxBy, SearchPath};
    use abiaudit_repair::Method;
    match mend {
        Mend::Auto => &[Libstdcxx, Glibc, SearchPath],
        Mend::Graft | Mend::Retag => &[],
        Mend::Libstdcxx => &[Libstdcxx],
        Mend::Share => &[LibstdcxxBy(Method::Share)],
        Mend::Hide => &[LibstdcxxBy(Method::Hide)],
        Mend::Demote => &[LibstdcxxBy(Method::Demote)],
        Mend::Glibc => &[Glibc],
        Mend::Rpath => &[SearchPath],
        Mend::Heal => &[EmptySegments],
        Mend::Execstack => &[ExecutableStack],
    }
}

/// The command line as the library wants it.
fn options(args: &RepairArgs) -> anyhow::Result<Options> {
    let source = config::Source { file: args.config.as_deref(), none: args.no_config };
    let mut settings = config::load(&source)?.settings(calendar::today)?;
    settings.ignore.extend(args.ignore.iter().cloned());
    config::check(&settings)?;
    let auto = args.mend.contains(&Mend::Auto);
    Ok(Options {
        platform: Some(args.plat.clone()).filter(|plat| plat != "auto"),
        only_platform: args.only_plat,
        exclude: args.exclude.clone(),
        include: args.include.iter().map(|text| include(text)).collect::<Result<_, _>>()?,
        from_wheels: args.from_wheel.clone(),
        root: args.sysroot.as_deref().map_or_else(Root::machine, Root::sysroot),
        paths: paths(args)?,
        lib_sdir: args.lib_sdir.clone(),
        keep_name: args.keep_name.clone(),
        strip: args.strip,
        update_tags: !args.no_update_tags,
        graft: auto || args.mend.contains(&Mend::Graft),
        mends: args.mend.iter().flat_map(|mend| mends(*mend)).copied().collect(),
        ignore_isa: args.disable_isa_ext_check,
        allow_pure: args.allow_pure_python_wheel,
        settings,
        write: WriteOptions { level: args.zip_compression_level, time: source_date()? },
    })
}

/// `FILE` or `FILE=MEMBER`.
fn include(text: &str) -> anyhow::Result<Include> {
    let (path, member) = text.split_once('=').map_or((text, None), |(path, member)| (path, Some(member)));
    let parts = || member.into_iter().flat_map(|member| member.split('/'));
    if parts().any(|part| matches!(part, "" | "." | "..")) {
        bail!(
            "--include {text}: expected FILE=MEMBER with a path inside the wheel, such as lib.so=pkg/plugins/lib.so"
        );
    }
    Ok(Include { path: PathBuf::from(path), member: member.map(str::to_owned) })
}

/// Search directories. `LD_LIBRARY_PATH` is the machine's and means nothing for a sysroot.
fn paths(args: &RepairArgs) -> anyhow::Result<LibraryPaths> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let environment =
        if args.sysroot.is_none() { directories(&variable("LD_LIBRARY_PATH"))? } else { Vec::new() };
    Ok(LibraryPaths {
        first: directories(&variable("AUDITWHEEL_LD_LIBRARY_PATH"))?,
        environment,
        instead: args.ldpaths.as_deref().map(directories).transpose()?,
    })
}

/// Colon-separated directories; what is relative is so to the working directory, as for the loader.
fn directories(text: &str) -> anyhow::Result<Vec<String>> {
    let absolute = |entry: &str| {
        let path = std::path::absolute(entry).with_context(|| format!("cannot tell where {entry} is"))?;
        Ok(path.to_string_lossy().into_owned())
    };
    text.split(':').filter(|entry| !entry.is_empty()).map(absolute).collect()
}

/// `SOURCE_DATE_EPOCH` (<https://reproducible-builds.org/specs/source-date-epoch/>).
fn source_date() -> anyhow::Result<Option<DosTime>> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") else { return Ok(None) };
    let text = text.to_string_lossy();
    let seconds = text.parse().ok();
    let seconds =
        seconds.with_context(|| format!("SOURCE_DATE_EPOCH is {text}; expected seconds since 1970"))?;
    Ok(Some(DosTime::from_unix(seconds)))
}

/// A flag that the usual signals set; a second one ends the process at once.
fn on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot watch for signals")?;
    }
    Ok(flag)
}
