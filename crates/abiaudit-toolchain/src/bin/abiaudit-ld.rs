//! The linker wrapper by itself, to be copied into a toolchain as `ld`. The command `abiaudit` does the same when it is
//! called by a linker's name.
#![allow(clippy::print_stderr, reason = "a linker talks to its caller")]

use std::path::PathBuf;
use std::process::ExitCode;

use abiaudit_toolchain::link;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().map(PathBuf::from).unwrap_or_default();
    match link::run(&program, words) {
        Ok(linked) => {
            for notice in linked.notices {
                eprintln!("abiaudit ld: {notice}");
            }
            ExitCode::from(linked.code)
        }
        Err(error) => {
            eprintln!("abiaudit ld: error: {error}");
            ExitCode::FAILURE
        }
    }
}
