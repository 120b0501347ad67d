//! `measure`: what a command costs. A process of its own, since the system sums up over all children.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use crate::shell;

/// What a command cost.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    /// User and system time in seconds, of all its threads and children.
    pub cpu: f64,
    /// Elapsed seconds.
    pub wall: f64,
    /// Peak resident memory in bytes.
    pub memory: u64,
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
}

/// Runs the command of the arguments without output and prints its cost as JSON.
pub fn run(args: &[String]) -> Result<()> {
    let (program, args) = args.split_first().context("usage: cargo xtask measure COMMAND [ARGS]")?;
    let start = Instant::now();
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    let wall = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let memory = u64::try_from(usage.max_rss()).unwrap_or(0) * 1024;
    let cost = Cost { cpu: cpu_seconds(&usage), wall, memory, code: status.code() };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "microseconds of minutes, not of centuries")]
fn cpu_seconds(usage: &Usage) -> f64 {
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

/// Runs a command through this task in a fresh process.
pub fn cost(command: &Command) -> Result<Cost> {
    let program = std::env::current_exe().context("cannot tell this program's path")?;
    let mut measure = Command::new(program);
    measure.arg("measure").arg(command.get_program()).args(command.get_args());
    let text = shell::capture(&mut measure)?;
    serde_json::from_str(&text).context("measure prints no cost")
}

/// Runs a command so many times and gives the median of each figure.
pub fn median(command: &Command, runs: usize) -> Result<Cost> {
    let costs = (0..runs).map(|_| cost(command)).collect::<Result<Vec<Cost>>>()?;
    let middle = |key: fn(&Cost) -> f64| -> f64 {
        let mut values: Vec<f64> = costs.iter().map(key).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let code = costs.first().and_then(|cost| cost.code);
    let memory = costs.iter().map(|cost| cost.memory).max().unwrap_or(0);
    Ok(Cost { cpu: middle(|c| c.cpu), wall: middle(|c| c.wall), memory, code })
}
