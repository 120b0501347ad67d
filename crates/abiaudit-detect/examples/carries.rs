//! Prints what ELF files carry, alone or in wheels, with all evidence: `cargo run --example carries -- FILE..`.
//! With `--short`, one line for each runtime that is carried, not only used.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example for the terminal")]

use std::time::{Duration, Instant};

use abiaudit_detect::{MarkerScan, Markers, detect};
use abiaudit_elf::{Object, Wants};
use abiaudit_wheel::Limits;
use abiaudit_wheel::archive::{Archive, MemberKind, Scratch};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long what took, over all files.
#[derive(Default)]
struct Times {
    scan: Duration,
    detect: Duration,
    bytes: u64,
}

fn main() {
    let mut times = Times::default();
    let (options, paths): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let short = options.iter().any(|option| option == "--short");
    for path in &paths {
        if let Err(error) = print(path, short, &mut times) {
            eprintln!("{path}: {error}");
        }
    }
    let Times { scan, detect, bytes } = times;
    eprintln!("{bytes} bytes: scan {:.3} s, detect {:.3} s", scan.as_secs_f64(), detect.as_secs_f64());
}

fn print(path: &str, short: bool, times: &mut Times) -> Outcome {
    if !path.ends_with(".whl") {
        let bytes = std::fs::read(path)?;
        return print_carried(path, &bytes, &Markers::of_bytes(&bytes), short, times);
    }
    let archive = Archive::open(path, &Limits::default())?;
    let mut scratch = Scratch::new();
    for entry in archive.members().iter().filter(|entry| entry.kind == MemberKind::File) {
        let (mut bytes, mut scan) = (Vec::new(), MarkerScan::new());
        let mut elf = true;
        archive.read(entry, &mut scratch, &mut |chunk: &[u8]| {
            elf &= !bytes.is_empty() || chunk.starts_with(b"\x7fELF");
            if elf {
                bytes.extend_from_slice(chunk);
                let start = Instant::now();
                scan.push(chunk);
                times.scan += start.elapsed();
            }
            Ok(())
        })?;
        if elf && !bytes.is_empty() {
            times.bytes += bytes.len() as u64;
            let name = format!("{}: {}", path.rsplit('/').next().unwrap_or(path), entry.name);
            if let Err(error) = print_carried(&name, &bytes, &scan.finish(), short, times) {
                eprintln!("{name}: {error}");
            }
        }
    }
    Ok(())
}

fn print_carried(name: &str, bytes: &[u8], markers: &Markers, short: bool, times: &mut Times) -> Outcome {
    let object = Object::from_bytes(bytes, &Wants { symtab: !short })?;
    let start = Instant::now();
    let carries = detect(&object, markers);
    times.detect += start.elapsed();
    if short {
        for runtime in carries.runtimes().iter().filter(|runtime| !runtime.exposure.is_empty()) {
            println!("{name} | {} | {} | {}", runtime.kind, runtime.class, runtime.exposure);
        }
        return Ok(());
    }
    println!("{name}");
    for runtime in carries.runtimes() {
        println!("  {} | {} | {}", runtime.kind, runtime.class, runtime.exposure);
        for line in &runtime.evidence {
            println!("      {line}");
        }
    }
    for compiler in &carries.compilers {
        println!("  compiler {:?} {:?} {}", compiler.kind, compiler.version, compiler.text);
    }
    Ok(())
}
