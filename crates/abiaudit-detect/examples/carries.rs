//! Prints what an ELF file carries, with all evidence: `cargo run --example carries -- FILE..`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example for the terminal")]

use abiaudit_detect::{Markers, detect};
use abiaudit_elf::{Object, Wants};

fn main() {
    for path in std::env::args().skip(1) {
        println!("{path}");
        let object = std::fs::read(&path).map_err(|error| error.to_string()).and_then(|bytes| {
            let object = Object::from_bytes(&bytes, &Wants { symtab: true });
            object.map(|object| (object, Markers::of_bytes(&bytes))).map_err(|error| error.to_string())
        });
        let (object, markers) = match object {
            Ok(both) => both,
            Err(error) => {
                eprintln!("  {error}");
                continue;
            }
        };
        let carries = detect(&object, &markers);
        for runtime in carries.runtimes() {
            println!("  {} | {} | {}", runtime.kind, runtime.class, runtime.exposure);
            for line in &runtime.evidence {
                println!("      {line}");
            }
        }
        for compiler in &carries.compilers {
            println!("  compiler {:?} {:?} {}", compiler.kind, compiler.version, compiler.text);
        }
    }
}
