//! Child processes that end: by themselves, when their time is up, or when the user stops abiaudit.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Serialize;

/// How long to wait between two looks at a child.
const TICK: Duration = Duration::from_millis(5);

/// Raised when everything shall end, for instance by a signal handler.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// The flag, for whoever raises it.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "how", content = "number")]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It did not end in time, and was killed.
    TimedOut,
}

impl Ended {
    /// In words: `exit code 1`, `SIGSEGV`, `no end within the time limit`.
    pub fn text(self) -> String {
        match self {
            Self::Exited(code) => format!("exit code {code}"),
            Self::Signalled(number) => signal_name(number),
            Self::TimedOut => "no end within the time limit".to_owned(),
        }
    }
}

/// `SIGSEGV` for 11.
pub(crate) fn signal_name(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned())
}

/// A child could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It does not start.
    #[error("cannot run {program}: {source}")]
    Start {
        /// What was to be run.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The user stopped abiaudit; the child has been ended.
    #[error("interrupted")]
    Interrupted,
}

/// Runs a command to its end or to the end of its time. All that it started and that stayed in its process group ends
/// with it.
///
/// # Errors
/// [`ChildError`] if it does not start or the user stops.
pub(crate) fn run(command: &mut Command, timeout: Duration, stop: &Stop) -> Result<Ended, ChildError> {
    let error = |command: &Command, source| {
        let program = command.get_program().to_string_lossy().into_owned();
        ChildError::Start { program, source }
    };
    // A group of its own: what the user types at the terminal does not reach it, and it can be ended as a whole.
    let mut child = command.process_group(0).spawn().map_err(|source| error(command, source))?;
    let group = Group::of(&child);
    let until = Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(ended(status)),
            Ok(None) => {}
            Err(source) => return Err(error(command, source)),
        }
        let (stopped, late) = (stop.is_raised(), Instant::now() >= until);
        if stopped || late {
            drop(group);
            let _ = child.wait();
            return if stopped { Err(ChildError::Interrupted) } else { Ok(Ended::TimedOut) };
        }
        std::thread::sleep(TICK);
    }
}

fn ended(status: ExitStatus) -> Ended {
    match status.code() {
        Some(code) => Ended::Exited(code),
        None => Ended::Signalled(status.signal().unwrap_or(0)),
    }
}

/// A process group that ends when nobody looks at it any more.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(i32::try_from(child.id()).ok().map(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Mostly there is nobody left.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn how_it_ended() {
        let run = |script| run(&mut shell(script), LONG, &Stop::default()).expect("a shell");
        assert_eq!(run("exit 3"), Ended::Exited(3));
        assert_eq!(run("kill -SEGV $$").text(), "SIGSEGV");
    }

    #[test]
    fn time_is_limited_for_all_that_a_child_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let pid = folder.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", pid.display());
        let ended = run(&mut shell(&script), Duration::from_millis(500), &Stop::default());
        assert_eq!(ended.expect("a shell"), Ended::TimedOut);
        let pid = std::fs::read_to_string(pid).expect("the child's number");
        // A killed process takes a moment, and may be a zombie until its new parent has waited for it.
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let is_gone = |state: &str| state.is_empty() || state.contains(") Z ") || state.contains(") X ");
        let until = Instant::now() + LONG;
        while !is_gone(&state()) {
            assert!(Instant::now() < until, "{}", state());
            std::thread::sleep(TICK);
        }
    }

    #[test]
    fn the_user_stops_it() {
        let stop = Stop::default();
        stop.flag().store(true, Ordering::Relaxed);
        let result = run(&mut shell("sleep 1000"), LONG, &stop);
        assert!(matches!(result, Err(ChildError::Interrupted)), "{result:?}");
    }

    #[test]
    fn what_is_not_there() {
        let error =
            run(&mut Command::new("/no/such/program"), LONG, &Stop::default()).expect_err("not there");
        assert!(error.to_string().starts_with("cannot run /no/such/program: "), "{error}");
    }
}
