//! Prints the facts of ELF files, for looking at by hand: `cargo run --example facts -- FILE...`
#![allow(clippy::print_stdout, reason = "an example")]

use abiaudit_elf::{Object, SymbolVersion, Wants};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let object = match Object::from_bytes(&bytes, &Wants::default()) {
            Ok(object) => object,
            Err(error) => {
                println!("{path}: {error}");
                continue;
            }
        };
        println!("{path}: {} {:?}", object.identity.machine_name(), object.identity.object_type);
        println!("  needed {:?} soname {:?}", object.dynamic.needed, object.dynamic.soname);
        println!("  rpath {:?} runpath {:?}", object.dynamic.rpath, object.dynamic.runpath);
        println!("  {} symbols, relocations {:?}", object.symbols.len(), object.relocations);
        println!("  build-id {:?}, comments {:?}", object.notes.build_id_hex(), object.sections.comments);
        for symbol in object.symbols.undefined().take(5) {
            if let SymbolVersion::Needed(need, version) = object.version_of(symbol) {
                println!("  U {}@{} from {}", object.symbols.name_text(symbol), version.name, need.library);
            }
        }
        for problem in &object.problems {
            println!("  problem: {problem}");
        }
    }
    Ok(())
}
