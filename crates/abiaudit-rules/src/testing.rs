//! Runs rules on wheels that a test makes.

use abiaudit_process::{Plan, Platform, Releases, Site, SystemBase};
use abiaudit_testing::{Arch, ElfWriter, TestWheel};

use crate::audit::Audit;
use crate::finding::Finding;
use crate::settings::Settings;
use crate::together::{Simulated, meetings};

/// Tags of a wheel that promises glibc 2.17.
pub(crate) const TAGS: &str = "cp312-cp312-manylinux_2_17_x86_64";

/// A Python extension module that needs glibc's libc and no more.
pub(crate) fn module() -> ElfWriter {
    ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libc.so.6")
}

/// A wheel with [`TAGS`] that holds nothing but this module.
pub(crate) fn wheel(module: &ElfWriter) -> TestWheel {
    TestWheel::new("p", "1", TAGS).elf("p/m.so", module)
}

/// A wheel with another platform tag that holds nothing but this module.
pub(crate) fn wheel_for(platform: &str, module: &ElfWriter) -> TestWheel {
    TestWheel::new("p", "1", &format!("cp312-cp312-{platform}")).elf("p/m.so", module)
}

/// An extension module that needs these libraries, which lie beside it, and calls these functions.
pub(crate) fn calling(needed: &[&str], calls: &[&str]) -> ElfWriter {
    let module = ElfWriter::new(Arch::X86_64).define("PyInit_m").runpath("$ORIGIN");
    let module = needed.iter().fold(module, ElfWriter::needed);
    calls.iter().fold(module, ElfWriter::undefined)
}

/// A wheel of this name with that module, for processes of several wheels.
pub(crate) fn wheel_named(name: &str, module: &ElfWriter) -> TestWheel {
    TestWheel::new(name, "1", "cp312-cp312-manylinux_2_28_x86_64").elf(&format!("{name}/m.so"), module)
}

/// The findings of one rule (or of all whose id begins so) on a wheel.
pub(crate) fn findings(rule: &str, wheel: &TestWheel) -> Vec<Finding> {
    findings_with(rule, wheel, |_| {})
}

/// The same with other settings.
pub(crate) fn findings_with(
    rule: &str,
    wheel: &TestWheel,
    change: impl FnOnce(&mut Settings),
) -> Vec<Finding> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = wheel.write(directory.path());
    let subjects = abiaudit_scan::scan(&path, &abiaudit_scan::Options::default()).expect("a wheel");
    let mut settings = Settings { select: vec![rule.to_owned()], ..Settings::default() };
    change(&mut settings);
    subjects.iter().flat_map(|subject| crate::run(&Audit::new(subject, &settings))).collect()
}

/// The findings of one rule on wheels whose extension modules share a process, with the number of the wheel; one process in
/// the order given and one in the reverse. `global`: everything is opened with `RTLD_GLOBAL`.
pub(crate) fn findings_together(rule: &str, wheels: &[TestWheel], global: bool) -> Vec<(usize, Finding)> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let paths: Vec<_> = wheels.iter().map(|wheel| wheel.write(directory.path())).collect();
    let scan = |path| abiaudit_scan::scan(path, &abiaudit_scan::Options::default()).expect("a wheel");
    let subjects: Vec<_> = paths.iter().flat_map(|path| scan(path)).collect();
    let site = Site::new(&subjects, Platform::of(&subjects).expect("a platform"));
    let base = SystemBase::new(&site, Releases::default()).expect("a base");
    let order: Vec<usize> = (0..subjects.len()).collect();
    let reverse: Vec<usize> = order.iter().rev().copied().collect();
    let runs = [&order, &reverse].map(|order| {
        let mut plan = Plan::everything(&site, order);
        plan.openings.iter_mut().for_each(|opening| opening.global = global);
        Simulated::new(&site, &base, plan)
    });
    let mut meetings = meetings(&site, &base, &runs, &order.into_iter().collect());
    let settings = Settings { select: vec![rule.to_owned()], ..Settings::default() };
    let mut findings = Vec::new();
    for (number, subject) in subjects.iter().enumerate() {
        let mut audit = Audit::new(subject, &settings);
        audit.beside.meetings = meetings.remove(&number).unwrap_or_default();
        findings.extend(crate::run(&audit).into_iter().map(|finding| (number, finding)));
    }
    findings
}

/// A folder in which g++ builds shared objects. A machine without g++ skips the tests that use it, and says so.
pub(crate) struct Compiler {
    folder: tempfile::TempDir,
}

/// Uses streams, locales, `call_once` and exceptions, so that a static link takes the core of libstdc++, and exports no
/// C++ name of its own.
const MODULE: &str = "#include <mutex>\n#include <sstream>\n#include <stdexcept>\n\
    static std::once_flag flag;\n\
    extern \"C\" int PyInit_m(int n) {\n\
      std::call_once(flag, [] {});\n\
      std::ostringstream out;\n\
      out << n << 1.5;\n\
      try { if (n > 100) throw std::runtime_error(out.str()); } catch (const std::exception &) { return 1; }\n\
      return static_cast<int>(out.str().size());\n\
    }\n";

impl Compiler {
    /// `None` if there is no g++.
    #[allow(clippy::print_stderr, reason = "a skipped test must say so")]
    pub(crate) fn new() -> Option<Self> {
        if std::process::Command::new("g++").arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no g++ on this machine");
            return None;
        }
        Some(Self { folder: tempfile::tempdir().expect("a temporary directory") })
    }

    /// The flag that makes the linker use this version script.
    pub(crate) fn version_script(&self, text: &str) -> String {
        let path = self.folder.path().join("script.map");
        std::fs::write(&path, text).expect("a file in the temporary directory");
        format!("-Wl,--version-script={}", path.display())
    }

    /// A Python extension module `m` that uses the core of libstdc++.
    pub(crate) fn module(&self, flags: &[&str]) -> Vec<u8> {
        self.shared(MODULE, flags)
    }

    /// The same with more C++ source behind it.
    pub(crate) fn module_with(&self, more: &str, flags: &[&str]) -> Vec<u8> {
        self.shared(&format!("{MODULE}{more}"), flags)
    }

    fn shared(&self, source: &str, flags: &[&str]) -> Vec<u8> {
        let (input, output) = (self.folder.path().join("m.cpp"), self.folder.path().join("m.so"));
        std::fs::write(&input, source).expect("a file in the temporary directory");
        let mut command = std::process::Command::new("g++");
        command.args(["-shared", "-fPIC", "-std=c++17", "-o"]).arg(&output).arg(&input).args(flags);
        let run = command.output().expect("g++");
        assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
        std::fs::read(output).expect("what g++ made")
    }
}
