//! The `abiaudit` command: arguments in, exit code out. What it says is computed in the other crates.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the command talks to its caller")]

mod calendar;
mod cli;
mod commands;
mod config;
mod convert;
mod inputs;
mod output;
mod processes;
mod progress;

use std::process::ExitCode;

use clap::Parser;

/// Nothing at or above `--fail-on` was found.
const CLEAN: u8 = 0;
/// Findings at or above `--fail-on`.
const FINDINGS: u8 = 1;
/// Wrong usage, or an input that cannot be read; the other inputs were audited all the same.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    if let Some(program) = words.next().map(std::path::PathBuf::from)
        && abiaudit_toolchain::link::is_linker_name(&program)
    {
        return commands::toolchain::link(&program, words);
    }
    let arguments = cli::Cli::parse();
    match commands::run(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::from(CLEAN),
        Err(error) => {
            let style = anstyle::AnsiColor::Red.on_default().bold();
            anstream::eprintln!("{style}error{style:#}: {error:#}");
            ExitCode::from(TROUBLE)
        }
    }
}
