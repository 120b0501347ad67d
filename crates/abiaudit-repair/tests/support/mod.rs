//! A machine and a wheel for a test: a sysroot with libraries, and a directory for inputs and outputs.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::path::{Path, PathBuf};

use abiaudit_elf::{Name, Object};
use abiaudit_repair::machine::Root;
use abiaudit_repair::{Control, Options, Plan, RepairError, Repaired, prepare};
use abiaudit_scan::Subject;
use abiaudit_testing::{Arch, ElfWriter, TestWheel};

/// Tags of most tests.
pub const TAGS: &str = "cp312-cp312-linux_x86_64";

pub struct Bench {
    directory: tempfile::TempDir,
    pub options: Options,
}

impl Bench {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().join("root");
        fs::create_dir_all(&root).expect("a directory");
        let options = Options { root: Root::sysroot(&root), ..Options::default() };
        Self { directory, options }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a file into the sysroot.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path("root").join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, content).expect("a file");
        self
    }

    /// Puts a library into the sysroot.
    pub fn library(&self, path: &str, elf: &ElfWriter) -> &Self {
        self.file(path, elf.build().bytes())
    }

    pub fn link(&self, path: &str, target: &str) -> &Self {
        std::os::unix::fs::symlink(target, self.path("root").join(path.trim_start_matches('/')))
            .expect("a link");
        self
    }

    /// Plans the repair of a wheel.
    pub fn plan(&self, wheel: &TestWheel) -> Result<Plan, RepairError> {
        prepare(&wheel.write(self.directory.path()), &self.options).map(|prepared| prepared.plan().clone())
    }

    /// Repairs a wheel into `out`.
    pub fn repair(&self, wheel: &TestWheel) -> Result<Repaired, RepairError> {
        self.repair_file(&wheel.write(self.directory.path()))
    }

    pub fn repair_file(&self, path: &Path) -> Result<Repaired, RepairError> {
        let control = Control { in_place: false, tool_version: "0", interrupted: &|| false };
        prepare(path, &self.options)?.write(&self.path("out"), &self.options, &control)
    }

    /// Names of all that is in `out`, whatever it is called.
    pub fn outputs(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("out")) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// A library of the C library's ABI, with a soname.
pub fn library(soname: &str) -> ElfWriter {
    ElfWriter::new(Arch::X86_64).soname(soname).needed("libc.so.6")
}

/// An extension module `pkg/m` that needs these.
pub fn module(needed: &[&str]) -> ElfWriter {
    module_for(Arch::X86_64, needed)
}

pub fn module_for(arch: Arch, needed: &[&str]) -> ElfWriter {
    let module = ElfWriter::new(arch).define("PyInit_m").needed("libc.so.6");
    needed.iter().fold(module, ElfWriter::needed)
}

/// The wheel `pkg` with that module.
pub fn wheel(module: &ElfWriter) -> TestWheel {
    TestWheel::new("pkg", "1.0", TAGS).file("pkg/__init__.py", "import os\n").elf("pkg/m.so", module)
}

/// What was written, read again; with it the gate's word that nothing is wrong with RECORD and dist-info.
pub fn read(path: &Path) -> Subject {
    let mut subjects = abiaudit_scan::scan(path, &abiaudit_scan::Options::default()).expect("a wheel");
    let subject = subjects.pop().expect("one");
    let settings = abiaudit_rules::Settings { select: vec!["ABI6".to_owned()], ..Default::default() };
    let audit = abiaudit_rules::Audit::new(&subject, &settings);
    let errors: Vec<String> = abiaudit_rules::run(&audit)
        .into_iter()
        .filter(|finding| finding.severity == abiaudit_rules::Severity::Error)
        .map(|finding| format!("{} {}", finding.rule.id, finding.message))
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    subject
}

pub fn object<'s>(subject: &'s Subject, member: &str) -> &'s Object {
    let found = subject.members.iter().find(|found| found.name == member);
    let found = found.unwrap_or_else(|| panic!("no {member} among {:?}", names(subject)));
    found.object().expect("an ELF file")
}

pub fn names(subject: &Subject) -> Vec<&str> {
    subject.members.iter().map(|member| member.name.as_str()).collect()
}

pub fn needed(object: &Object) -> Vec<String> {
    object.dynamic.needed.iter().map(Name::to_text).collect()
}

pub fn rpath(object: &Object) -> Option<String> {
    assert_eq!(object.dynamic.runpath, None);
    object.dynamic.rpath.as_ref().map(Name::to_text)
}

/// The one member that begins and ends so.
pub fn only<'s>(subject: &'s Subject, begin: &str, end: &str) -> &'s str {
    let all = names(subject);
    let found: Vec<&str> =
        all.iter().copied().filter(|name| name.starts_with(begin) && name.ends_with(end)).collect();
    assert_eq!(found.len(), 1, "{begin}*{end} among {all:?}");
    found[0]
}

/// The content of a member.
pub fn content(path: &Path, member: &str) -> Vec<u8> {
    let archive =
        abiaudit_wheel::Archive::open(path, &abiaudit_wheel::Limits::default()).expect("an archive");
    let entry = archive.member(member).expect("a member");
    archive.read_prefix(entry, &mut abiaudit_wheel::archive::Scratch::new(), usize::MAX).expect("readable")
}

/// Whether a symbol of that name is defined.
pub fn exports(object: &Object, name: &str) -> bool {
    !object.symbols.definitions(name.as_bytes()).is_empty()
}
