//! Prints what does not load in a directory, for looking at by hand: `cargo run --example search -- glibc|musl DIRECTORY`
#![allow(clippy::print_stdout, reason = "an example")]

use std::path::Path;

use abiaudit_elf::{Object, Wants};
use abiaudit_loader::search::{Libc, Library, Outcome, resolve};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let libc = if arguments.next().as_deref() == Some("musl") { Libc::Musl } else { Libc::Glibc };
    let directory = std::fs::canonicalize(arguments.next().unwrap_or_else(|| ".".to_owned()))?;
    let mut objects = Vec::new();
    collect(&directory, &mut objects)?;
    objects.sort_by(|a, b| a.0.cmp(&b.0));
    let libraries: Vec<Library<'_>> = objects.iter().map(|(path, object)| Library { path, object }).collect();
    let resolution = resolve(&libraries, libc);
    println!("{} objects, {} roots", libraries.len(), resolution.roots.len());
    println!("orphans {:?}", resolution.orphans.iter().map(|&o| libraries[o].path).collect::<Vec<_>>());
    for need in resolution.needs.iter().filter(|need| matches!(need.outcome, Outcome::Unreachable { .. })) {
        let chain: Vec<_> = need.chain.iter().map(|&member| libraries[member].path).collect();
        let helped = if need.found_in_some_root { ", found in some root" } else { "" };
        let preload = resolution.preload_candidates(need).len();
        println!("{} by {}{helped}, {preload} preload candidates", need.name, chain.join(" > "));
    }
    Ok(())
}

fn collect(directory: &Path, objects: &mut Vec<(String, Object)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            collect(&path, objects)?;
        } else if path.is_file()
            && let Ok(object) = Object::from_bytes(&std::fs::read(&path)?, &Wants::default())
        {
            objects.push((path.to_string_lossy().into_owned(), object));
        }
    }
    Ok(())
}
