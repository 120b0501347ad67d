//! The commands.

mod audit;
mod beside;
mod bind;
mod check;
mod confirm;
mod elf_edit;
mod explain;
mod ignores;
mod reference;
mod repair;
mod show;
pub mod toolchain;
mod triage;
mod verify_report;

use crate::cli::{Cli, Command};

/// Runs a command and gives the exit code.
pub fn run(cli: Cli) -> anyhow::Result<u8> {
    match cli.command {
        Command::Check(args) => check::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Bind(args) => bind::run(&args),
        Command::Confirm(args) => confirm::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Triage(args) => triage::run(&args),
        Command::ElfEdit(args) => elf_edit::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::VerifyReport(args) => verify_report::run(&args),
        Command::Toolchain(command) => toolchain::run(&command),
        Command::Rules => reference::rules(),
        Command::Completions { shell } => reference::completions(shell),
        Command::Man { directory } => reference::man(directory.as_deref()),
        Command::CliReference => reference::cli(),
    }
}
