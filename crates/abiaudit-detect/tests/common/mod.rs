//! A folder with a compiler for tests. A machine without g++ skips them, and says so.
#![allow(clippy::print_stderr, reason = "a skipped test must say so")]
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_detect::{Carries, Markers, detect};
use abiaudit_elf::{Object, Wants};

/// A temporary folder in which g++ builds things.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// `None` if there is no g++.
    pub fn new() -> Option<Self> {
        if Command::new("g++").arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no g++ on this machine");
            return None;
        }
        Some(Self { folder: tempfile::tempdir().expect("a temporary folder") })
    }

    /// Writes a file and gives its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file in the temporary folder");
        path.to_str().expect("a path that is text").to_owned()
    }

    /// Compiles one C++ source into an object file and gives its path.
    pub fn object(&self, name: &str, source: &str, flags: &[&str]) -> String {
        let source = self.file(&format!("{name}.cpp"), source);
        let output = self.path(&format!("{name}.o"));
        run(Command::new("g++").arg("-c").arg("-o").arg(&output).arg(source).args(flags));
        output.to_str().expect("a path that is text").to_owned()
    }

    /// Links one object file into a shared library.
    pub fn link(&self, name: &str, object: &str, flags: &[&str]) -> Vec<u8> {
        let output = self.path(name);
        run(Command::new("g++").arg("-shared").arg("-o").arg(&output).arg(object).args(flags));
        std::fs::read(output).expect("what the linker made")
    }

    /// Compiles and links one C++ source.
    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> Vec<u8> {
        let source = self.file(&format!("{name}.cpp"), source);
        let output = self.path(name);
        // Libraries and version scripts in the flags come after the source.
        run(Command::new("g++").arg("-o").arg(&output).arg(source).args(flags));
        std::fs::read(output).expect("what the compiler made")
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Reads a library that belongs to the compiler.
pub fn library_of_compiler(name: &str) -> Vec<u8> {
    let path = path_of_library(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where the compiler has a library.
pub fn path_of_library(name: &str) -> PathBuf {
    let output = Command::new("g++").arg(format!("-print-file-name={name}")).output().expect("g++");
    Path::new(String::from_utf8_lossy(&output.stdout).trim()).to_owned()
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Reads a file with `.symtab`, and says what it carries.
pub fn carries_of(bytes: &[u8]) -> Carries {
    let object = Object::from_bytes(bytes, &Wants { symtab: true }).expect("an ELF file");
    detect(&object, &Markers::of_bytes(bytes))
}
