//! Modules that a test builds.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder in which g++ builds shared objects. A machine without g++ skips the tests that use it, and says so.
pub struct Compiler {
    folder: tempfile::TempDir,
}

/// Uses most of what has state in libstdc++, and throws.
pub const MODULE: &str = include_str!("module.cpp");

impl Compiler {
    /// `None` if there is no g++.
    pub fn new() -> Option<Self> {
        if Command::new("g++").arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no g++ on this machine");
            return None;
        }
        Some(Self { folder: tempfile::tempdir().unwrap() })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The flag that makes the linker use this version script.
    pub fn version_script(&self, text: &str) -> String {
        let path = self.path().join("script.map");
        std::fs::write(&path, text).unwrap();
        format!("-Wl,--version-script={}", path.display())
    }

    /// Builds `name.so` from the module; gives its path.
    pub fn module(&self, name: &str, flags: &[&str]) -> PathBuf {
        let (input, output) = (self.path().join("module.cpp"), self.path().join(format!("{name}.so")));
        std::fs::write(&input, MODULE).unwrap();
        let mut command = Command::new("g++");
        command.args(["-shared", "-fPIC", "-O2", "-std=c++17", "-pthread", "-o"]).arg(&output).arg(&input);
        let run = command.args(flags).output().unwrap();
        assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
        output
    }
}
