//! Tasks of the repository, as a plain table: `cargo xtask` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    reason = "a task runner talks to a terminal"
)]

mod gen_policies;

use std::process::ExitCode;

type Task = fn(&[String]) -> anyhow::Result<()>;

/// Name, what it does, function.
const TASKS: &[(&str, &str, Task)] = &[(
    "gen-policies",
    "make policies/symbols from the ziglang wheel and Debian packages",
    gen_policies::run,
)];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((_, _, task)) = args.first().and_then(|name| TASKS.iter().find(|(n, ..)| n == name)) else {
        eprintln!("usage: cargo xtask TASK [ARGS]\n");
        for (name, help, _) in TASKS {
            eprintln!("  {name:<16} {help}");
        }
        return ExitCode::from(2);
    };
    match task(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
