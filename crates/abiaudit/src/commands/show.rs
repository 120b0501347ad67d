//! `abiaudit show`: facts, verdict, ladder.

use std::io::Write;

use abiaudit_report::{Format, RenderOptions, render};

use crate::cli::{ShowArgs, ShowFormat};
use crate::commands::audit;
use crate::{CLEAN, TROUBLE, inputs, output};

pub fn run(args: &ShowArgs) -> anyhow::Result<u8> {
    let (_, settings) = audit::settings(&args.input)?;
    let extras =
        audit::Extras { digest: true, producers: !matches!(args.format, ShowFormat::AuditwheelJson) };
    let report = audit::audit(&args.input, inputs::expand(&args.input.inputs)?, &settings, extras)?;
    let (mut out, color) = output::stdout(args.input.color);
    let options = RenderOptions {
        all: args.all,
        width: output::width(),
        color,
        rules: audit::rule_infos(&settings),
        ..RenderOptions::default()
    };
    let format = match args.format {
        ShowFormat::Text => Format::Show,
        ShowFormat::Json => Format::Json,
        ShowFormat::AuditwheelJson => Format::AuditwheelJson,
    };
    let written = render(format, &report, &options, &mut out).and_then(|()| out.flush());
    output::unless_reader_has_gone(written.map_err(Into::into))?;
    Ok(if report.wheels.iter().any(|w| w.error.is_some()) { TROUBLE } else { CLEAN })
}
