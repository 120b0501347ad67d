//! How long it takes to keep what is needed of a file that streams by, and to parse it:
//! `cargo run --release --example time -- FILE...`
#![allow(clippy::print_stdout, reason = "an example")]

use std::time::{Duration, Instant};

use abiaudit_elf::{Collector, Object, Parsed, Wants};

/// What an inflater gives at once.
const CHUNK: usize = 32 << 10;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let mut times: Vec<(Duration, Duration)> = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut collector = Collector::new(bytes.len() as u64);
            bytes.chunks(CHUNK).for_each(|chunk| collector.push(chunk));
            let image = collector.finish();
            let streamed = start.elapsed();
            let start = Instant::now();
            let parsed = Object::parse(&image, &Wants::default())?;
            times.push((streamed, start.elapsed()));
            if let (Parsed::Complete(object), 1) = (parsed, times.len()) {
                let (symbols, relocations) = (object.symbols.len(), &object.relocations);
                println!("{path}: {symbols} symbols, {relocations:?}, {} bytes kept", image.kept());
            }
        }
        times.sort();
        let (streamed, parsed) = times[ROUNDS / 2];
        println!("  stream {streamed:?}, parse {parsed:?}");
    }
    Ok(())
}
