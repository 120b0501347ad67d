//! Modules that a test builds.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_detect::{Carries, MarkerScan, detect};
use abiaudit_elf::{Object, Wants};
use abiaudit_mend::Patient;
use abiaudit_policy::{PolicySet, Target};

/// A folder in which g++ builds shared objects. A machine without g++ skips the tests that use it, and says so.
pub struct Compiler {
    name: &'static str,
    folder: tempfile::TempDir,
}

impl Compiler {
    /// `None` if there is no g++.
    pub fn new() -> Option<Self> {
        Self::named("g++")
    }

    /// `None` if there is no compiler of that name.
    pub fn named(name: &'static str) -> Option<Self> {
        if Command::new(name).arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no {name} on this machine");
            return None;
        }
        let compiler = Self { name, folder: tempfile::tempdir().unwrap() };
        std::fs::write(compiler.path().join("module.cpp"), include_str!("module.cpp")).unwrap();
        Some(compiler)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The flag that makes the linker use this version script.
    pub fn version_script(&self, text: &str) -> String {
        std::fs::write(self.path().join("script.map"), text).unwrap();
        "-Wl,--version-script=script.map".to_owned()
    }

    /// Builds `name.so` from the module; gives its path. Flags for the linker alone do not compile it again.
    pub fn module(&self, name: &str, flags: &[&str]) -> PathBuf {
        let linker = |flag: &&&str| {
            flag.starts_with("-Wl,") || flag.starts_with("-static-") || **flag == "-s" || flag.ends_with(".o")
        };
        let (link, compile): (Vec<&&str>, Vec<&&str>) = flags.iter().partition(linker);
        let object =
            format!("module{}.o", compile.iter().map(|flag| flag.replace('/', "_")).collect::<String>());
        let compile = compile.into_iter().copied();
        if !self.path().join(&object).exists() {
            let mut arguments =
                vec!["-c", "-fPIC", "-O1", "-std=c++17", "-pthread", "-o", &object, "module.cpp"];
            arguments.extend(compile.clone());
            self.run(&arguments);
        }
        let output = format!("{name}.so");
        let mut arguments = vec!["-shared", "-pthread", "-o", &output, &object];
        arguments.extend(compile.chain(link.into_iter().copied()));
        self.run(&arguments);
        self.path().join(output)
    }

    /// Runs the compiler in the folder.
    pub fn run(&self, arguments: &[&str]) {
        let run = Command::new(self.name).args(arguments).current_dir(self.path()).output().unwrap();
        assert!(
            run.status.success(),
            "{} {arguments:?}: {}",
            self.name,
            String::from_utf8_lossy(&run.stderr)
        );
    }
}

/// A file with what must be known to cure it.
pub struct Case {
    pub bytes: Vec<u8>,
    object: Object,
    carries: Carries,
    target: Target,
    wanted: BTreeMap<String, String>,
}

impl Case {
    pub fn new(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let object = Object::from_bytes(&bytes, &Wants::default()).unwrap();
        let mut scan = MarkerScan::new();
        scan.push(&bytes);
        let carries = detect(&object, &scan.finish());
        let target = PolicySet::builtin().target("manylinux_2_28_x86_64").unwrap();
        Self { bytes, object, carries, target, wanted: BTreeMap::new() }
    }

    pub fn wanted(mut self, symbol: &str, by: &str) -> Self {
        self.wanted.insert(symbol.to_owned(), by.to_owned());
        self
    }

    pub fn patient(&self) -> Patient<'_> {
        let Self { bytes, object, carries, target, wanted } = self;
        Patient { bytes, object, carries, target, wanted }
    }
}
