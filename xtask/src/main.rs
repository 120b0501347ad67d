//! Tasks of the repository, as a plain table: `cargo xtask` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    reason = "a task runner talks to a terminal"
)]

mod bench;
mod bindings;
mod corpus;
mod demo;
mod differential;
mod docs;
mod editor;
mod fuzz;
mod gen_policies;
mod hostile;
mod matrix;
mod measure;
mod repairs;
mod shell;
mod system_references;
mod test;
mod toolchain;

use std::process::ExitCode;

type Task = fn(&[String]) -> anyhow::Result<()>;

/// Name, what it does, function.
const TASKS: &[(&str, &str, Task)] = &[
    ("demo", "build the command and try it on small wheels, honest and lying", demo::run),
    ("test", "everything that continuous integration checks [--only STEP].. [--list]", test::run),
    ("corpus", "fetch the real wheels of testdata/corpus [--tier tiny,small] [DEST]", corpus::run),
    ("differential", "compare verdicts with auditwheel's [--live] [WHEEL..]", differential::run),
    ("hostile", "run the hostile wheels of another generator --generator PATH", hostile::run),
    ("bench", "measure against bsdtar and auditwheel, write docs/benchmarks.md [WHEEL..]", bench::run),
    ("bindings", "compare the simulated loader with ld.so on real imports [SEQUENCE..]", bindings::run),
    (
        "matrix",
        "two C++ runtimes in one process, predicted and real [--quick] [--write] [VARIANT..]",
        matrix::run,
    ),
    (
        "repairs",
        "repair wheels built from source, beside auditwheel, and use them [DISTRIBUTION..]",
        repairs::run,
    ),
    ("editor", "edit every ELF file of wheels or directories, and judge it [--tools] [PATH..]", editor::run),
    ("fuzz", "fuzz each reader for so many seconds (60)", fuzz::run),
    ("docs", "write docs/rules.md, docs/cli.md and docs/schema anew", docs::run),
    ("gen-policies", "make policies/symbols from the ziglang wheel and Debian packages", gen_policies::run),
    ("system-references", "make policies/system-references.toml from libraries", system_references::run),
    (
        "toolchain",
        "build modules with split toolchains and run them on old runtimes [--quick] [--controls] [--package]",
        toolchain::run,
    ),
    ("measure", "run a command; print its CPU time, wall time and memory as JSON", measure::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((_, _, task)) = args.first().and_then(|name| TASKS.iter().find(|(n, ..)| n == name)) else {
        eprintln!("usage: cargo xtask TASK [ARGS]\n");
        for (name, help, _) in TASKS {
            eprintln!("  {name:<16} {help}");
        }
        return if args.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    match task(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
