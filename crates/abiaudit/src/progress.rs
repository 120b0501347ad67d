//! A progress line on standard error, on a terminal only.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

/// Shows how much has been read and how many inputs are done.
pub struct Progress {
    bar: Option<ProgressBar>,
    bytes: AtomicU64,
}

impl Progress {
    /// A line for `inputs` inputs; nothing if that is not wanted or standard error is not a terminal.
    pub fn new(inputs: usize, wanted: bool) -> Self {
        let shown = wanted && std::io::stderr().is_terminal();
        let bar = shown.then(|| {
            let bar = ProgressBar::new(inputs as u64);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {msg}") {
                bar.set_style(style);
            }
            // Short work shows nothing.
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, bytes: AtomicU64::new(0) }
    }

    /// So many more bytes were read.
    pub fn read(&self, bytes: u64) {
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} read", HumanBytes(total)));
        }
    }

    /// One more input is done.
    pub fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
