//! The modules of testdata/toolchain: compiled, linked in several ways, and run by a program that loads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use abiaudit_elf::{Object, Wants};
use abiaudit_policy::{Node, compare_versions};
use abiaudit_toolchain::Library;
use anyhow::{Context, Result, ensure};

use super::runtimes::Runtime;
use crate::shell;

/// Modules that others find functions in come first.
const MODULES: &[&str] = &[
    "throws",
    "waits",
    "thread",
    "filesystem",
    "charconv",
    "pmr",
    "threads",
    "streams",
    "text",
    "pointers",
    "libc",
    "newest",
    "catches",
    "notifies",
];

/// Those that use nothing above the standard of 2017, nor `std::string` in a way that old libraries cannot.
const OLD_ABI_MODULES: &[&str] =
    &["throws", "filesystem", "charconv", "threads", "text", "pointers", "libc", "catches"];

/// Compiled modules.
pub struct Modules {
    pub compiler: String,
    pub flags: Vec<String>,
    pub names: Vec<&'static str>,
    pub directory: PathBuf,
}

/// Linked modules, and the program that loads them.
pub struct Linked {
    pub modules: Vec<PathBuf>,
    pub host: PathBuf,
}

impl Modules {
    pub fn compile(scratch: &Path, compiler: &str, flags: &[&str], old_abi: bool) -> Result<Self> {
        let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        if old_abi {
            flags.push("-D_GLIBCXX_USE_CXX11_ABI=0".to_owned());
        }
        let directory = scratch.join(format!("{compiler}{}", flags.join("")).replace(['/', '='], "_"));
        let names = if old_abi { OLD_ABI_MODULES } else { MODULES };
        let has = |flag: &str| flags.iter().any(|given| given == flag);
        let names = names.iter().copied().filter(|name| match *name {
            // Link-time optimisation makes a plain symbol of the unique one that holds the waiters, with or without a
            // toolchain of ours: modules then wait in different pools.
            "waits" | "notifies" => !has("-std=c++17") && !has("-flto"),
            _ => true,
        });
        let names: Vec<_> = names.collect();
        let modules = Self { compiler: compiler.to_owned(), flags, names, directory };
        if !modules.directory.exists() {
            fs::create_dir_all(&modules.directory)?;
            for name in &modules.names {
                modules.compile_one(name)?;
            }
        }
        Ok(modules)
    }

    fn compile_one(&self, name: &str) -> Result<()> {
        let source = shell::root().join("testdata/toolchain").join(format!("{name}.cc"));
        let mut command = Command::new(&self.compiler);
        command.args(&self.flags).args(["-fPIC", "-fvisibility=hidden", "-w", "-pthread", "-c", "-o"]);
        shell::run(command.arg(self.object(name)).arg(source))
    }

    pub fn object(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.o"))
    }

    /// As a build in the toolchain's environment links.
    pub fn link(&self, toolchain: &Path, linker: &str) -> Result<Linked> {
        let name = toolchain.file_name().unwrap_or_default().to_string_lossy();
        self.link_in(&format!("{name}-{linker}"), |command| {
            command.env("COMPILER_PATH", toolchain).arg(format!("-fuse-ld={linker}"));
        })
    }

    /// As the compiler alone links.
    pub fn link_plainly(&self) -> Result<Linked> {
        self.link_in("plain", |_| ())
    }

    pub fn link_in(&self, name: &str, change: impl Fn(&mut Command)) -> Result<Linked> {
        let directory = self.directory.join(name);
        fs::create_dir_all(&directory)?;
        let mut linked = Linked { modules: Vec::new(), host: directory.join("host") };
        for name in &self.names {
            let output = directory.join(format!("{name}.so"));
            let mut command = Command::new(&self.compiler);
            change(
                command
                    .args(&self.flags)
                    .args(["-shared", "-pthread", "-o"])
                    .arg(&output)
                    .arg(self.object(name)),
            );
            shell::run(&mut command)?;
            linked.modules.push(output);
        }
        let source = shell::root().join("testdata/toolchain/host.c");
        let mut command = Command::new(self.compiler.replace("g++", "gcc"));
        change(command.args(["-O1", "-o"]).arg(&linked.host).arg(source).args(["-ldl", "-pthread"]));
        shell::run(&mut command)?;
        Ok(linked)
    }
}

impl Linked {
    /// Runs each module alone, opened and closed several times, and all in one process, in both orders.
    pub fn run(&self, runtime: Option<&Runtime>) -> Result<bool> {
        let mut ok = true;
        for module in &self.modules {
            ok &= self.run_once(runtime, &["-r".as_ref(), "3".as_ref(), module.as_path()])?;
        }
        ok &= self.run_together(runtime)?;
        let all: Vec<&Path> = self.modules.iter().map(PathBuf::as_path).collect();
        // What others find functions in stays in front.
        let mut turned = all;
        let first = 2.min(turned.len());
        turned[first..].reverse();
        ok &= self.run_once(runtime, &turned)?;
        Ok(ok)
    }

    /// Runs all modules in one process, once.
    pub fn run_together(&self, runtime: Option<&Runtime>) -> Result<bool> {
        let all: Vec<&Path> = self.modules.iter().map(PathBuf::as_path).collect();
        self.run_once(runtime, &all)
    }

    fn run_once(&self, runtime: Option<&Runtime>, arguments: &[&Path]) -> Result<bool> {
        let mut command =
            runtime.map_or_else(|| Command::new(&self.host), |runtime| runtime.command(&self.host));
        let output = run_for(command.args(arguments), Duration::from_mins(1))?;
        if let Some(problem) = &output {
            let name = runtime.map_or("native", |runtime| &runtime.name);
            println!("  {name}: {problem}");
        }
        Ok(output.is_none())
    }

    /// The newest version of each family that something needs: `GLIBC_2.26 GLIBCXX_3.4.22`.
    pub fn newest_versions(&self) -> Result<String> {
        let mut newest: BTreeMap<String, String> = BTreeMap::new();
        for path in self.modules.iter().chain([&self.host]) {
            for need in &object(path)?.versions.needs {
                for node in need.versions.iter().map(|version| version.name.to_text()) {
                    let Some(Node { family, version }) = Node::parse(&node) else { continue };
                    let best = newest.entry(family.to_owned()).or_insert_with(|| version.to_owned());
                    if compare_versions(version, best).is_some_and(std::cmp::Ordering::is_gt) {
                        version.clone_into(best);
                    }
                }
            }
        }
        Ok(newest.iter().map(|(family, version)| format!("{family}_{version}")).collect::<Vec<_>>().join(" "))
    }
}

/// Symbols of the target's libstdc++ that the modules export and would not by an ordinary link: copies of what the process
/// has already.
pub fn exports_beyond(plain: &Linked, linked: &Linked, toolchain: &Path) -> Result<Vec<String>> {
    let stub = Library::read(&toolchain.join("libstdc++.so.6"))?;
    let baseline: BTreeSet<&str> = stub.exports.iter().map(|export| export.name.as_str()).collect();
    let mut beyond = Vec::new();
    for (plain, linked) in plain.modules.iter().zip(&linked.modules) {
        let (before, after) = (exports(plain)?, exports(linked)?);
        let more = after.difference(&before).filter(|name| baseline.contains(name.as_str()));
        beyond.extend(more.map(|name| format!("{}: {name}", shell::file_name(linked))));
    }
    Ok(beyond)
}

pub fn exports(path: &Path) -> Result<BTreeSet<String>> {
    let object = object(path)?;
    Ok(object.symbols.exported().map(|symbol| object.symbols.name_text(symbol)).collect())
}

pub fn object(path: &Path) -> Result<Object> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Object::from_bytes(&bytes, &Wants::default()).with_context(|| path.display().to_string())
}

/// Runs a command for at most so long; says what was wrong.
pub fn run_for(command: &mut Command, limit: Duration) -> Result<Option<String>> {
    use std::process::Stdio;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| shell::line(command))?;
    let start = Instant::now();
    while child.try_wait()?.is_none() {
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(Some(format!("does not end within {} s", limit.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output()?;
    ensure!(output.stdout.len() < 1 << 16, "too much output");
    if output.status.success() {
        return Ok(None);
    }
    let text = [output.stdout, output.stderr].concat();
    Ok(Some(format!("{}: {}", output.status, String::from_utf8_lossy(&text).trim().replace('\n', "; "))))
}
