//! Wheels of one module each, opened in any order and mode.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::PathBuf;

use abiaudit_loader::binding::{ObjectId, Process};
use abiaudit_process::{
    Cause, Collision, Opened, Opening, Plan, Platform, Releases, Site, SystemBase, collisions, run,
};
use abiaudit_scan::{Options, Subject, scan};
use abiaudit_testing::TestWheel;

/// Tags of wheels for glibc.
pub const TAGS: &str = "cp312-cp312-manylinux_2_28_x86_64";

/// Distributions whose module is `<name>/m.so`.
pub struct Inputs {
    _folder: tempfile::TempDir,
    pub subjects: Vec<Subject>,
}

impl Inputs {
    pub fn new(wheels: &[TestWheel]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let paths: Vec<PathBuf> = wheels.iter().map(|wheel| wheel.write(folder.path())).collect();
        let read = |path: &PathBuf| scan(path, &Options::default()).expect("a wheel");
        Self { subjects: paths.iter().flat_map(read).collect(), _folder: folder }
    }

    pub fn lab(&self) -> Lab<'_> {
        let site = Site::new(&self.subjects, Platform::of(&self.subjects).expect("a platform"));
        let base = SystemBase::new(&site, Releases::default()).expect("a base");
        Lab { site, base }
    }
}

/// A site with its base, for many processes.
pub struct Lab<'i> {
    pub site: Site<'i>,
    pub base: SystemBase,
}

impl Lab<'_> {
    /// Opens the modules of these distributions, each locally or globally, and gives what collides.
    pub fn open(&self, modules: &[(&str, bool)]) -> (Process, Vec<Collision>) {
        let openings = modules.iter().map(|&(name, global)| Opening {
            opened: Opened::File(self.site.file_below(&format!("{name}/m.so")).expect("the module")),
            global,
            caller: None,
            cause: Cause::Everything,
        });
        let plan = Plan { openings: openings.collect(), notes: Vec::new() };
        let process = run(&self.site, &self.base, &plan);
        let found = collisions(&self.site, &self.base, &plan, &process);
        (process, found)
    }

    /// The same, all local.
    pub fn import(&self, modules: &[&str]) -> Vec<Collision> {
        let modules: Vec<_> = modules.iter().map(|name| (*name, false)).collect();
        self.open(&modules).1
    }

    pub fn name(&self, object: ObjectId) -> &str {
        match object {
            ObjectId::File(file) => self.site.files[file as usize].short_path(),
            ObjectId::System(library) => self.base.soname(library as usize),
        }
    }
}
