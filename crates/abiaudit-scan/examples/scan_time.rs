//! Reads inputs and says how long it took: `cargo run --release --example scan_time -- WHEEL..`. The processor time of
//! the whole is what `time` says; run it with `RAYON_NUM_THREADS=1` to compare.
#![allow(clippy::print_stdout, reason = "an example for the terminal")]

use std::path::Path;
use std::time::Instant;

use abiaudit_scan::{Options, ScanError, scan};

fn main() -> Result<(), ScanError> {
    for path in std::env::args_os().skip(1) {
        let start = Instant::now();
        let subjects = scan(Path::new(&path), &Options::default())?;
        let objects: usize = subjects.iter().map(|subject| subject.objects().count()).sum();
        println!("{}: {objects} objects in {:.3} s", path.display(), start.elapsed().as_secs_f64());
    }
    Ok(())
}
