//! No interpreter that the tags name finds this extension module.
//!
//! ## What it does
//! For each extension module and each interpreter that the wheel's tags name, looks whether one of the module's
//! files has a name that this interpreter imports: `mod.cpython-312-x86_64-linux-gnu.so` is for CPython 3.12 on
//! x86_64 with glibc and no other, `mod.abi3.so` for every CPython 3 that is not free-threaded,
//! `mod.abi3t.so` for CPython 3.15 and later, `mod.so` for all. Also reports modules with an entry point of only
//! Python 2 in a wheel for Python 3, and the reverse.
//!
//! ## Why is this bad?
//! The wheel installs, and `import` says `ModuleNotFoundError`, since the interpreter never looks at a file with
//! another suffix. A stable-ABI module on a free-threaded Python before 3.15 is worse: objects have another layout
//! there.
//!
//! ## Example
//! A wheel tagged `cp39-abi3` whose module is called `_native.cpython-39-x86_64-linux-gnu.so`: it imports on 3.9
//! only.
//!
//! ## How to mend it
//! Build the module with the limited API and the suffix `.abi3.so`, or tag the wheel for the one version
//! (`cp39-cp39`).
//!
//! ## References
//! PEP 3149, PEP 384, PEP 425, PEP 703, PEP 793, PEP 803; CPython `Python/dynload_shlib.c`, `configure.ac`
//! (`PLATFORM_TRIPLET`, which names musl since 3.11); auditwheel #395.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_policy::Libc;
use abiaudit_wheel::PlatformTag;

use crate::audit::{Audit, AuditObject, Role};
use crate::finding::{Evidence, Severity, Sink};
use crate::python::EntryPoint;
use crate::rules::and_more;

super::rule!("ABI617", "abi-tag-mismatch", Error, "abi617_abi_tag_mismatch.rs");

/// The middle of an extension module's file name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Suffix {
    /// `mod.so`
    Plain,
    /// `mod.abi3.so`
    Abi3,
    /// `mod.abi3t.so`
    Abi3t,
    /// `mod.cpython-312-x86_64-linux-gnu.so`
    CPython { version: Version, flags: String, triplet: Option<Triplet> },
    /// `mod.pypy310-pp73-x86_64-linux-gnu.so`
    PyPy { name: String, triplet: Option<Triplet> },
    /// Anything else: who imports it is not known.
    Unknown,
}

/// Major and minor.
type Version = (u32, u32);

/// `x86_64-linux-gnu`
#[derive(Debug, Clone, PartialEq, Eq)]
struct Triplet {
    /// In the spelling of platform tags.
    arch: String,
    /// `None` for another system than Linux.
    libc: Option<Libc>,
}

/// What a Python and an ABI tag name together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Interpreter {
    python: String,
    abi: String,
    libc: Libc,
}

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let interpreters = interpreters(audit);
    if interpreters.is_empty() {
        return;
    }
    let mut modules: BTreeMap<String, Vec<&AuditObject<'_>>> = BTreeMap::new();
    for (_, entry) in audit.counted() {
        if let Role::Extension(extension) = &entry.role {
            let directory = entry.member.installed.rsplit_once('/').map_or("", |(directory, _)| directory);
            modules.entry(format!("{directory}/{}", extension.module)).or_default().push(entry);
        }
    }
    let arch = audit.platform.map(|p| p.arch.tag()).unwrap_or_default();
    for files in modules.values() {
        check_suffixes(files, &interpreters, arch, sink);
        check_entry_point(files, &interpreters, sink);
    }
}

/// The distinct interpreters of the tags: with each C library that the platform tags name.
fn interpreters(audit: &Audit<'_>) -> BTreeSet<Interpreter> {
    let subject = audit.subject;
    let pairs: Vec<(String, String)> = match &subject.file_name {
        Some(name) => name.tags().into_iter().map(|tag| (tag.python, tag.abi)).collect(),
        None => {
            let wheel = subject.dist_info.as_ref().and_then(|info| info.wheel.as_ref());
            wheel.iter().flat_map(|w| w.tags.iter().map(|t| (t.python.clone(), t.abi.clone()))).collect()
        }
    };
    let mut libcs: Vec<Libc> = audit
        .platform_tags
        .iter()
        .filter_map(|tag| match tag {
            PlatformTag::Manylinux { .. } => Some(Libc::Glibc),
            PlatformTag::Musllinux { .. } => Some(Libc::Musl),
            _ => None,
        })
        .collect();
    if libcs.is_empty() {
        libcs.extend(audit.platform.map(|p| p.libc));
    }
    let with = |(python, abi): &(String, String)| {
        let interpreter = |libc: &Libc| Interpreter { python: python.clone(), abi: abi.clone(), libc: *libc };
        libcs.iter().map(interpreter).collect::<Vec<_>>()
    };
    pairs.iter().flat_map(with).collect()
}

fn check_suffixes(
    files: &[&AuditObject<'_>],
    interpreters: &BTreeSet<Interpreter>,
    arch: &str,
    sink: &mut Sink,
) {
    let Some(first) = files.first() else { return };
    let suffixes: Vec<Suffix> = files.iter().map(|file| suffix(file.member.base_name())).collect();
    let finds = |i: &&Interpreter| suffixes.iter().any(|suffix| i.imports(suffix, arch));
    let without: Vec<&Interpreter> = interpreters.iter().filter(|i| !finds(i)).collect();
    if without.is_empty() {
        return;
    }
    let tags: BTreeSet<String> = without.iter().map(|i| format!("{}-{}", i.python, i.abi)).collect();
    let tags: Vec<String> = tags.into_iter().collect();
    // A package may ship modules that it can do without; `py3-none` promises less than an ABI tag.
    let vague = without.iter().all(|i| i.abi == "none");
    let tags = tags.join(", ");
    let message = match (suffixes.as_slice(), without.as_slice()) {
        ([suffix], [interpreter, ..]) => {
            format!("{tags} does not import it: {}", interpreter.difference(suffix, arch))
        }
        _ => format!("none of its {} files has a name for {tags}", files.len()),
    };
    sink.member(&first.member.name, message)
        .severity(if vague { Severity::Warning } else { Severity::Error })
        .help(help(first.member.base_name(), &suffixes, &without, arch))
        .evidence(files.iter().skip(1).map(|file| Evidence::member(&file.member.name)));
}

/// The names that the interpreters look for, and the tag that the file's own name stands for.
fn help(base_name: &str, suffixes: &[Suffix], without: &[&Interpreter], arch: &str) -> String {
    let module = base_name.split('.').next().unwrap_or_default();
    let names: BTreeSet<String> = without.iter().map(|i| format!("{module}{}", i.own_suffix(arch))).collect();
    let mut names = names.into_iter();
    let first = names.next().unwrap_or_default();
    let names = and_more(&first, names.count());
    match suffixes {
        [Suffix::CPython { version: (major, minor), flags, .. }] => {
            let abi = format!("cp{major}{minor}");
            format!(
                "build it as {names}, or tag the wheel {abi}-{abi}{flags} for the platform of the file name"
            )
        }
        _ => format!("build it as {names}, or tag the wheel for the interpreters that import it"),
    }
}

/// Only modules that could be judged by their names as well.
fn check_entry_point(files: &[&AuditObject<'_>], interpreters: &BTreeSet<Interpreter>, sink: &mut Sink) {
    let is_2 = |i: &Interpreter| {
        i.python.starts_with("cp2") || i.python.starts_with("py2") || i.python.starts_with("pp2")
    };
    let only_2 = interpreters.iter().all(is_2);
    let only_3 = !interpreters.iter().any(is_2);
    for file in files {
        let Role::Extension(extension) = &file.role else { continue };
        let symbols = &file.object.symbols;
        // `initNAME` alone may be any function; with Python 2's registration function it is an entry point.
        let registers = symbols.undefined().any(|s| symbols.name(s).starts_with(b"Py_InitModule4"));
        if only_3 && extension.entry == EntryPoint::Init2 && registers {
            sink.member(&file.member.name, "has only the entry point of Python 2, the tags are for Python 3")
                .help("build it with the Python of the tag");
        }
        let init2 = format!("init{}", extension.module);
        if only_2 && extension.entry == EntryPoint::Init3 && symbols.definitions(init2.as_bytes()).is_empty()
        {
            sink.member(&file.member.name, "has only the entry point of Python 3, the tags are for Python 2")
                .help("build it with the Python of the tag");
        }
    }
}

impl Interpreter {
    /// The interpreter, and for an ABI that promises more all later ones, imports files with this suffix.
    fn imports(&self, suffix: &Suffix, arch: &str) -> bool {
        let free_threaded = self.abi.starts_with("cp") && self.abi.ends_with('t');
        let pypy = self.python.starts_with("pp");
        let cpython = self.python.starts_with("cp");
        match suffix {
            Suffix::Plain | Suffix::Unknown => true,
            Suffix::Abi3 => !pypy && !free_threaded && self.abi != "abi3t",
            // Both builds of 3.15 look for it (PEP 803); of `py3-none` nobody knows.
            Suffix::Abi3t => !pypy && (!cpython || self.version().is_none_or(|v| v >= (3, 15))),
            Suffix::CPython { version, flags, triplet } => {
                self.is_version(*version, flags) && self.fits(triplet.as_ref(), arch, *version)
            }
            Suffix::PyPy { name, triplet } => {
                let own = self.abi.replace('_', "-");
                (own == *name || self.abi == "none" && pypy) && self.fits(triplet.as_ref(), arch, (3, 0))
            }
        }
    }

    /// Names this one version and kind of build.
    fn is_version(&self, version: Version, flags: &str) -> bool {
        let (major, minor) = version;
        if self.abi == "none" {
            return self.python == format!("cp{major}{minor}") || self.python == format!("py{major}{minor}");
        }
        self.abi == format!("cp{major}{minor}{flags}")
    }

    fn fits(&self, triplet: Option<&Triplet>, arch: &str, version: Version) -> bool {
        let Some(triplet) = triplet else { return true };
        // Before 3.11 a Python on musl has the triplet of glibc.
        let libc = match triplet.libc {
            Some(Libc::Glibc) => self.libc == Libc::Glibc || version < (3, 11),
            Some(Libc::Musl) => self.libc == Libc::Musl,
            None => false,
        };
        triplet.arch == arch && libc
    }

    /// Which part of the suffix is for another interpreter.
    fn difference(&self, suffix: &Suffix, arch: &str) -> String {
        let pypy = self.python.starts_with("pp");
        match suffix {
            Suffix::Plain | Suffix::Unknown => "it has another name".to_owned(),
            Suffix::Abi3 | Suffix::Abi3t if pypy => "the stable ABI is CPython's, not PyPy's".to_owned(),
            Suffix::Abi3 => "abi3 is not for free-threaded builds".to_owned(),
            Suffix::Abi3t => "abi3t begins with CPython 3.15".to_owned(),
            Suffix::PyPy { name, .. } if !pypy || self.abi.replace('_', "-") != *name => {
                format!("the file name is for {name}")
            }
            Suffix::CPython { version, flags, .. } if !self.is_version(*version, flags) => {
                let (major, minor) = version;
                let alone = if self.abi.starts_with("abi3") { " alone" } else { "" };
                match flags.as_str() {
                    "t" => format!("the file name is for free-threaded CPython {major}.{minor}{alone}"),
                    "" if self.abi == format!("cp{major}{minor}t") => {
                        format!("the file name is for CPython {major}.{minor} that is not free-threaded")
                    }
                    _ => format!("the file name is for CPython {major}.{minor}{flags}{alone}"),
                }
            }
            Suffix::PyPy { triplet, .. } | Suffix::CPython { triplet, .. } => {
                self.other_system(triplet.as_ref(), arch)
            }
        }
    }

    fn other_system(&self, triplet: Option<&Triplet>, arch: &str) -> String {
        match triplet {
            Some(Triplet { libc: None, .. }) => "the file name is for macOS".to_owned(),
            Some(triplet) if triplet.arch != arch => format!("the file name is for {}", triplet.arch),
            Some(Triplet { libc: Some(libc), .. }) => {
                format!("the file name is for {libc}, the tag for {}", self.libc)
            }
            None => "it has another name".to_owned(),
        }
    }

    /// The suffix that this interpreter itself builds extension modules with.
    fn own_suffix(&self, arch: &str) -> String {
        let abi = match self.abi.as_str() {
            stable @ ("abi3" | "abi3t") => return format!(".{stable}.so"),
            "none" => self.python.as_str(),
            abi => abi,
        };
        if let Some(digits) = abi.strip_prefix("cp") {
            let number = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
            let old = version(number).is_some_and(|v| v < (3, 11));
            let libc = if old { Libc::Glibc } else { self.libc };
            return format!(".cpython-{digits}-{}.so", platform_triplet(arch, libc));
        }
        if abi.starts_with("pypy") {
            let name = abi.replace('_', "-");
            return format!(".{name}-{}.so", platform_triplet(arch, Libc::Glibc));
        }
        ".so".to_owned()
    }

    /// Of the Python tag: `cp312` is 3.12.
    fn version(&self) -> Option<Version> {
        version(self.python.strip_prefix("cp")?)
    }
}

/// `312` is 3.12.
fn version(digits: &str) -> Option<Version> {
    let (major, minor) = digits.split_at_checked(1)?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn suffix(base_name: &str) -> Suffix {
    let Some(middle) = base_name.strip_suffix(".so").and_then(|stem| stem.split_once('.')).map(|(_, m)| m)
    else {
        return if base_name.split('.').count() == 2 { Suffix::Plain } else { Suffix::Unknown };
    };
    match middle {
        "abi3" => return Suffix::Abi3,
        "abi3t" => return Suffix::Abi3t,
        _ => {}
    }
    if let Some(rest) = middle.strip_prefix("cpython-") {
        let (abi, machine) = rest.split_once('-').map_or((rest, None), |(abi, machine)| (abi, Some(machine)));
        let digits = abi.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let flags = abi.get(digits.len()..).unwrap_or_default().to_owned();
        let (Some(version), Ok(triplet)) = (version(digits), machine.map(triplet).transpose()) else {
            return Suffix::Unknown;
        };
        return Suffix::CPython { version, flags, triplet };
    }
    if middle.starts_with("pypy") {
        // `pypy310-pp73` and then the triplet; older ones are `pypy3-71`.
        let parts: Vec<&str> = middle.splitn(3, '-').collect();
        if let [name, number, rest @ ..] = parts.as_slice()
            && let Ok(triplet) = rest.first().copied().map(triplet).transpose()
        {
            return Suffix::PyPy { name: format!("{name}-{number}"), triplet };
        }
    }
    Suffix::Unknown
}

/// CPython's `PLATFORM_TRIPLET`; `Err` for one that is not known here.
fn triplet(text: &str) -> Result<Triplet, ()> {
    if text == "darwin" {
        return Ok(Triplet { arch: String::new(), libc: None });
    }
    let (machine, system) = text.split_once('-').ok_or(())?;
    let libc = match system {
        "linux-gnu" | "linux-gnueabihf" => Libc::Glibc,
        "linux-musl" | "linux-musleabihf" => Libc::Musl,
        _ => return Err(()),
    };
    let arch = match machine {
        "x86_64" | "aarch64" | "s390x" | "riscv64" | "loongarch64" => machine,
        "i386" | "i686" => "i686",
        "arm" | "armv7l" => "armv7l",
        "powerpc64le" | "ppc64le" => "ppc64le",
        "powerpc64" | "ppc64" => "ppc64",
        _ => return Err(()),
    };
    Ok(Triplet { arch: arch.to_owned(), libc: Some(libc) })
}

/// CPython's `PLATFORM_TRIPLET` of an architecture in the spelling of platform tags.
fn platform_triplet(arch: &str, libc: Libc) -> String {
    let machine = match arch {
        "i686" => "i386",
        "armv7l" => "arm",
        "ppc64le" => "powerpc64le",
        "ppc64" => "powerpc64",
        other => other,
    };
    let system = match (libc, arch) {
        (Libc::Glibc, "armv7l") => "gnueabihf",
        (Libc::Glibc, _) => "gnu",
        (Libc::Musl, "armv7l") => "musleabihf",
        (Libc::Musl, _) => "musl",
    };
    format!("{machine}-linux-{system}")
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use abiaudit_policy::Libc;

    use super::{Interpreter, Suffix, suffix};
    use crate::finding::Severity;
    use crate::testing::findings;

    fn wheel(tags: &str, files: &[&str]) -> TestWheel {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        files.iter().fold(TestWheel::new("p", "1", tags), |wheel, file| wheel.elf(file, &elf))
    }

    fn severity(tags: &str, files: &[&str]) -> Option<Severity> {
        findings("ABI617", &wheel(tags, files)).first().map(|f| f.severity)
    }

    const ERROR: Option<Severity> = Some(Severity::Error);

    #[test]
    fn suffixes_are_taken_apart() {
        assert_eq!(suffix("m.so"), Suffix::Plain);
        assert_eq!(suffix("m.abi3.so"), Suffix::Abi3);
        assert_eq!(suffix("m.haswell.so"), Suffix::Unknown);
        assert!(matches!(suffix("m.cpython-36m-x86_64-linux-gnu.so"),
            Suffix::CPython { version: (3, 6), ref flags, .. } if flags == "m"));
        assert!(matches!(suffix("m.cpython-313t-x86_64-linux-gnu.so"),
            Suffix::CPython { version: (3, 13), ref flags, .. } if flags == "t"));
        assert!(matches!(suffix("m.pypy310-pp73-x86_64-linux-gnu.so"),
            Suffix::PyPy { ref name, .. } if name == "pypy310-pp73"));
    }

    #[test]
    fn fitting_names_are_silent() {
        let fine = [
            ("cp312-cp312-manylinux_2_17_x86_64", "p/m.cpython-312-x86_64-linux-gnu.so"),
            ("cp312-cp312-manylinux_2_17_x86_64", "p/m.abi3.so"),
            ("cp312-cp312-manylinux_2_17_x86_64", "p/m.so"),
            ("cp36-cp36m-manylinux1_x86_64", "p/m.cpython-36m-x86_64-linux-gnu.so"),
            ("cp313-cp313t-manylinux_2_17_x86_64", "p/m.cpython-313t-x86_64-linux-gnu.so"),
            ("cp39-abi3-manylinux_2_17_x86_64", "p/m.abi3.so"),
            ("cp39-abi3-manylinux_2_17_x86_64", "p/m.so"),
            ("cp315-abi3.abi3t-manylinux_2_17_x86_64", "p/m.abi3t.so"),
            ("pp310-pypy310_pp73-manylinux_2_17_x86_64", "p/m.pypy310-pp73-x86_64-linux-gnu.so"),
            ("cp312-cp312-musllinux_1_2_x86_64", "p/m.cpython-312-x86_64-linux-musl.so"),
            ("cp310-cp310-musllinux_1_1_x86_64", "p/m.cpython-310-x86_64-linux-gnu.so"),
            ("cp312-none-manylinux_2_17_x86_64", "p/m.cpython-312-x86_64-linux-gnu.so"),
            ("py3-none-manylinux_2_17_x86_64", "p/m.so"),
        ];
        for (tags, file) in fine {
            assert_eq!(severity(tags, &[file]), None, "{tags} {file}");
        }
    }

    #[test]
    fn names_that_no_named_interpreter_imports_are_errors() {
        let wrong = [
            ("cp312-cp312-manylinux_2_17_x86_64", "p/m.cpython-311-x86_64-linux-gnu.so"),
            ("cp312-cp312-manylinux_2_17_x86_64", "p/m.cpython-312-aarch64-linux-gnu.so"),
            ("cp312-cp312-manylinux_2_17_x86_64", "p/m.cpython-312-darwin.so"),
            ("cp312-cp312-manylinux_2_17_x86_64", "p/m.cpython-312-x86_64-linux-musl.so"),
            ("cp312-cp312-musllinux_1_2_x86_64", "p/m.cpython-312-x86_64-linux-gnu.so"),
            ("cp313-cp313t-manylinux_2_17_x86_64", "p/m.cpython-313-x86_64-linux-gnu.so"),
            ("cp313-cp313t-manylinux_2_17_x86_64", "p/m.abi3.so"),
            ("cp39-abi3-manylinux_2_17_x86_64", "p/m.cpython-39-x86_64-linux-gnu.so"),
            ("cp314-cp314-manylinux_2_17_x86_64", "p/m.abi3t.so"),
            ("pp310-pypy310_pp73-manylinux_2_17_x86_64", "p/m.abi3.so"),
            ("cp315-abi3.abi3t-manylinux_2_17_x86_64", "p/m.abi3.so"),
            ("pp310-pypy310_pp73-manylinux_2_17_x86_64", "p/m.cpython-310-x86_64-linux-gnu.so"),
        ];
        for (tags, file) in wrong {
            assert_eq!(severity(tags, &[file]), ERROR, "{tags} {file}");
        }
    }

    #[test]
    fn the_part_that_differs_and_the_right_name_are_told() {
        let told = [
            (
                "cp39-abi3",
                "cpython-39-x86_64-linux-gnu",
                "for CPython 3.9 alone",
                "m.abi3.so, or tag the wheel cp39-cp39",
            ),
            (
                "cp312-cp312",
                "cpython-311-x86_64-linux-gnu",
                "for CPython 3.11",
                "m.cpython-312-x86_64-linux-gnu.so",
            ),
            (
                "cp312-cp312",
                "cpython-312-aarch64-linux-gnu",
                "for aarch64",
                "m.cpython-312-x86_64-linux-gnu.so",
            ),
            (
                "cp312-cp312",
                "cpython-312-x86_64-linux-musl",
                "for musl, the tag for glibc",
                "x86_64-linux-gnu.so",
            ),
            ("cp312-cp312", "cpython-312-darwin", "for macOS", "m.cpython-312-x86_64-linux-gnu.so"),
            (
                "cp313-cp313t",
                "cpython-313-x86_64-linux-gnu",
                "that is not free-threaded",
                "m.cpython-313t-x86_64",
            ),
            (
                "cp313-cp313t",
                "abi3",
                "abi3 is not for free-threaded builds",
                "m.cpython-313t-x86_64-linux-gnu.so",
            ),
            ("cp314-cp314", "abi3t", "abi3t begins with CPython 3.15", "m.cpython-314-x86_64-linux-gnu.so"),
            ("pp310-pypy310_pp73", "abi3", "not PyPy's", "m.pypy310-pp73-x86_64-linux-gnu.so"),
        ];
        for (tags, middle, difference, help) in told {
            let wheel = wheel(&format!("{tags}-manylinux_2_17_x86_64"), &[&format!("p/m.{middle}.so")]);
            let found = findings("ABI617", &wheel);
            assert!(found[0].message.ends_with(difference), "{tags}: {}", found[0].message);
            assert!(found[0].help.as_deref().unwrap().contains(help), "{tags}: {:?}", found[0].help);
        }
    }

    /// An interpreter imports what it builds itself.
    #[test]
    fn own_suffixes_fit() {
        let pairs =
            [("cp39", "cp39"), ("cp312", "cp312"), ("cp313", "cp313t"), ("cp36", "cp36m"), ("cp39", "abi3")];
        for (python, abi) in
            pairs.into_iter().chain([("pp310", "pypy310_pp73"), ("py3", "none"), ("cp312", "none")])
        {
            for (arch, libc) in ["x86_64", "i686", "armv7l", "ppc64le"]
                .into_iter()
                .zip([Libc::Musl, Libc::Glibc].into_iter().cycle())
            {
                let (python, abi) = (python.to_owned(), abi.to_owned());
                let libc = if abi.starts_with("pypy") { Libc::Glibc } else { libc };
                let interpreter = Interpreter { python, abi, libc };
                let name = format!("m{}", interpreter.own_suffix(arch));
                assert!(interpreter.imports(&suffix(&name), arch), "{interpreter:?} {name}");
            }
        }
    }

    #[test]
    fn one_fitting_file_of_a_module_is_enough() {
        let files =
            ["p/m.cpython-311-x86_64-linux-gnu.so", "p/m.cpython-312-x86_64-linux-gnu.so", "p/m.abi3.so"];
        assert_eq!(severity("cp312-cp312-manylinux_2_17_x86_64", &files[..2]), None);
        assert_eq!(severity("cp311-abi3-manylinux_2_17_x86_64", &files), None);
        assert_eq!(severity("cp311-abi3-manylinux_2_17_x86_64", &files[..2]), ERROR);
        assert_eq!(severity("py3-none-manylinux_2_17_x86_64", &files[..2]), Some(Severity::Warning));
    }

    #[test]
    fn the_entry_point_must_be_of_the_tagged_python() {
        let old = ElfWriter::new(Arch::X86_64).define("initm").undefined("Py_InitModule4_64");
        let wheel = |tags: &str, elf: &ElfWriter| TestWheel::new("p", "1", tags).elf("p/m.so", elf);
        assert_eq!(findings("ABI617", &wheel("cp312-cp312-manylinux_2_17_x86_64", &old)).len(), 1);
        assert!(findings("ABI617", &wheel("cp27-cp27mu-manylinux1_x86_64", &old)).is_empty());
        let function = ElfWriter::new(Arch::X86_64).define("initm");
        assert!(findings("ABI617", &wheel("cp312-cp312-manylinux_2_17_x86_64", &function)).is_empty());
        let new = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        assert_eq!(findings("ABI617", &wheel("cp27-cp27mu-manylinux1_x86_64", &new)).len(), 1);
        assert!(findings("ABI617", &wheel("cp27-cp27mu-manylinux1_x86_64", &new.define("initm"))).is_empty());
    }

    #[test]
    fn what_is_not_a_module_has_no_suffix() {
        let elf = ElfWriter::new(Arch::X86_64).define("f");
        let wheel = TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64")
            .elf("p/lib.cpython-311-x86_64-linux-gnu.so", &elf);
        assert!(findings("ABI617", &wheel).is_empty());
    }
}
