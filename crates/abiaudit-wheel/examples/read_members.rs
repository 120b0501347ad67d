//! Reads every member of the wheels given, and does nothing with the content: what an audit costs at least.
//! `read_members [--sha256] WHEEL..`; compare with `bsdtar -xOf WHEEL >/dev/null`.

#![expect(clippy::print_stdout, reason = "this is a command")]

use std::process::ExitCode;

use abiaudit_wheel::{Archive, Limits, Scratch};
use sha2::{Digest, Sha256};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let hash = arguments.first().is_some_and(|first| first == "--sha256");
    if hash {
        arguments.remove(0);
    }
    let mut code = ExitCode::SUCCESS;
    for path in &arguments {
        match read(path, hash) {
            Ok(line) => println!("{path}: {line}"),
            Err(error) => {
                println!("{path}: {error}");
                code = ExitCode::from(2);
            }
        }
    }
    code
}

fn read(path: &str, hash: bool) -> Result<String, Box<dyn std::error::Error>> {
    let archive = Archive::open(path, &Limits::default())?;
    let mut scratch = Scratch::new();
    let mut bytes = 0u64;
    let mut digests = 0u64;
    for member in archive.members() {
        let mut hasher = hash.then(Sha256::new);
        bytes += archive
            .read(member, &mut scratch, &mut |chunk| {
                if let Some(hasher) = &mut hasher {
                    hasher.update(chunk);
                }
                Ok(())
            })?
            .bytes;
        digests += u64::from(hasher.is_some_and(|hasher| hasher.finalize()[0] < 128));
    }
    Ok(format!("{} members, {bytes} bytes, {digests} digests below one half", archive.members().len()))
}
