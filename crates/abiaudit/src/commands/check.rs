//! `abiaudit check`: the gate.

use std::io::Write;
use std::time::Instant;

use abiaudit_report::{Format, RenderOptions, Verbosity, model, render};

use crate::cli::{CheckArgs, FailOn, Format as CliFormat};
use crate::commands::{audit, beside};
use crate::config::{parse_severity, parse_size};
use crate::{CLEAN, FINDINGS, TROUBLE, convert, inputs, output};

pub fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let start = Instant::now();
    let (config, mut settings) = audit::settings(&args.input)?;
    settings.select.extend(args.select.iter().cloned());
    settings.ignore.extend(args.ignore.iter().cloned());
    if let Some(budget) = &args.size_budget {
        settings.size_budget = Some(parse_size(budget)?);
    }
    let fail_on = fail_on(args.fail_on, config.fail_on.as_deref())?;
    let digest = matches!(args.format, CliFormat::Json);
    let paths = inputs::expand(&args.input.inputs)?;
    if let Some(output) = &args.output {
        output::refuse_input(output, &paths)?;
    }
    let report = if beside::simulates(&args.beside) || args.beside.baseline.is_some() {
        beside::audit(&args.input, &args.beside, paths, &settings, digest)?
    } else {
        audit::audit(&args.input, paths, &settings, audit::Extras { digest, producers: false })?
    };
    let (out, color) = output::stdout(args.input.color);
    let options = RenderOptions {
        verbosity: match (args.quiet, args.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        },
        all: args.all,
        width: output::width(),
        color,
        fail_on,
        elapsed: Some(start.elapsed()),
        rules: audit::rule_infos(&settings),
        step_summary: std::env::var_os("GITHUB_STEP_SUMMARY").filter(|p| !p.is_empty()).map(Into::into),
    };
    // What was found stays true when nobody reads on: `abiaudit check ... | head` must not pass for clean.
    output::unless_reader_has_gone(write(args, &report, &options, out))?;
    Ok(exit_code(&report, fail_on))
}

fn write(
    args: &CheckArgs,
    report: &model::Report,
    options: &RenderOptions,
    mut out: Box<dyn Write>,
) -> anyhow::Result<()> {
    let format = format(args.format);
    match &args.output {
        Some(path) => {
            let plain = RenderOptions { color: false, width: None, elapsed: None, ..options.clone() };
            output::write_file(path, |file| render(format, report, &plain, file))?;
            render(Format::Text, report, options, &mut out)?;
        }
        None => render(format, report, options, &mut out)?,
    }
    Ok(out.flush()?)
}

/// The command line's word, else the configuration's, else errors only.
fn fail_on(argument: Option<FailOn>, configured: Option<&str>) -> anyhow::Result<model::Severity> {
    Ok(match (argument, configured) {
        (Some(FailOn::Error), _) | (None, None) => model::Severity::Error,
        (Some(FailOn::Warning), _) => model::Severity::Warning,
        (Some(FailOn::Info), _) => model::Severity::Info,
        (None, Some(text)) => convert::severity(parse_severity(text)?),
    })
}

fn exit_code(report: &model::Report, fail_on: model::Severity) -> u8 {
    if report.wheels.iter().any(|w| w.error.is_some()) {
        return TROUBLE;
    }
    let fails = |w: &model::Wheel| w.active_findings().any(|f| f.severity >= fail_on);
    if report.wheels.iter().any(fails) { FINDINGS } else { CLEAN }
}

fn format(format: CliFormat) -> Format {
    match format {
        CliFormat::Text => Format::Text,
        CliFormat::Json => Format::Json,
        CliFormat::Sarif => Format::Sarif,
        CliFormat::Junit => Format::Junit,
        CliFormat::Github => Format::Github,
        CliFormat::Markdown => Format::Markdown,
        CliFormat::AuditwheelJson => Format::AuditwheelJson,
    }
}
