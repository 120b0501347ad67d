//! `cargo xtask toolchain`: makes split toolchains, builds modules with them that use the C++ runtime in every way, and
//! runs these here and on runtimes that are as old as the target, or look so.
//!
//! For each compiler, target, set of flags and linker: abiaudit's own verdict on what was linked, what it exports beyond an
//! ordinary link, and the runs. Then the controls: the same without one of the measures, which must fail.

mod controls;
mod modules;
mod package;
mod runtimes;

use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_policy::{PolicySet, Target};
use anyhow::{Context, Result, bail, ensure};

use crate::shell;
use modules::Modules;
use runtimes::Runtime;

/// Compilers and the newest standard that each has.
const COMPILERS: &[(&str, &str)] =
    &[("g++-12", "-std=c++23"), ("g++-11", "-std=c++20"), ("g++-13", "-std=c++23"), ("g++-14", "-std=c++23")];

const TARGETS: &[&str] =
    &["manylinux_2_17", "manylinux_2_24", "manylinux_2_28", "manylinux_2_31", "manylinux_2_34"];

/// The target of all further flags and linkers.
const MAIN_TARGET: &str = "manylinux_2_28";

const FLAGS: &[&[&str]] = &[
    &["-O2"],
    &["-O0"],
    &["-O2", "-flto"],
    &["-O3", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-D_GLIBCXX_ASSERTIONS"],
];

const LINKERS: &[&str] = &["bfd", "gold", "lld", "mold"];

/// `toolchain [--program PATH] [--quick | --controls | --package]`
pub fn run(args: &[String]) -> Result<()> {
    let mut program = None;
    let (mut quick, mut package, mut controls) = (false, false, false);
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--program" => program = Some(PathBuf::from(shell::value("--program", &mut words)?)),
            "--quick" => quick = true,
            "--package" => package = true,
            "--controls" => controls = true,
            other => bail!("unknown option {other}"),
        }
    }
    shell::install(&[("g++", "g++"), ("ld.lld", "lld"), ("mold", "mold")])?;
    let program = program.map_or_else(|| shell::build("ci"), Ok)?;
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let bench = Bench { program, scratch: scratch.path().to_owned(), bullseye: runtimes::bullseye()? };
    if bench.bullseye.is_none() {
        println!("SKIPPED: runs on Debian 11, whose packages cannot be had here");
    }
    let mut failures = 0;
    if package {
        failures += package::run(&bench)?;
    } else if controls {
        failures += controls::run(&bench)?;
    } else {
        println!("{}", Row::HEAD);
        for (compiler, standard) in COMPILERS.iter().filter(|(compiler, _)| shell::has(compiler)) {
            failures += bench.compiler(compiler, standard, quick)?;
            if quick {
                break;
            }
        }
        failures += controls::run(&bench)?;
    }
    ensure!(failures == 0, "{failures} expectations do not hold");
    Ok(())
}

/// What all steps need.
struct Bench {
    program: PathBuf,
    scratch: PathBuf,
    bullseye: Option<Runtime>,
}

/// One line of the table.
struct Row<'a> {
    compiler: &'a str,
    flags: String,
    target: &'a str,
    linker: &'a str,
    newest: String,
    verdict: &'a str,
    exports: &'a str,
    runs: Vec<(String, bool)>,
}

impl Row<'_> {
    const HEAD: &'static str =
        "compiler | flags | target | linker | newest versions | abiaudit | exports | runs";

    fn print(&self) -> u32 {
        let runs: Vec<String> = self
            .runs
            .iter()
            .map(|(name, ok)| format!("{name} {}", if *ok { "ok" } else { "FAILED" }))
            .collect();
        println!(
            "{} | {} | {} | {} | {} | {} | {} | {}",
            self.compiler,
            self.flags,
            self.target,
            self.linker,
            self.newest,
            self.verdict,
            self.exports,
            runs.join(", ")
        );
        let bad = [self.verdict, self.exports].iter().filter(|text| **text != "ok").count();
        let failed = self.runs.iter().filter(|(_, ok)| !ok).count();
        u32::try_from(bad + failed).unwrap_or(u32::MAX)
    }
}

impl Bench {
    /// All targets with one set of flags; all flags and linkers with one target.
    fn compiler(&self, compiler: &str, standard: &str, quick: bool) -> Result<u32> {
        let mut failures = 0;
        for target in TARGETS.iter().filter(|target| !quick || **target == MAIN_TARGET) {
            let toolchain = self.toolchain(compiler, target)?;
            let sets = if *target == MAIN_TARGET && !quick { FLAGS } else { &FLAGS[..1] };
            for flags in sets {
                let mut all = vec![standard];
                all.extend(*flags);
                let modules = Modules::compile(&self.scratch, compiler, &all, is_old_abi(target))?;
                let linkers =
                    if *target == MAIN_TARGET && flags == &FLAGS[0] { LINKERS } else { &LINKERS[..1] };
                for linker in linkers {
                    failures += self.row(&toolchain, &modules, target, linker)?;
                }
            }
        }
        Ok(failures)
    }

    fn row(&self, toolchain: &Path, modules: &Modules, target: &str, linker: &str) -> Result<u32> {
        let linked = modules.link(toolchain, linker)?;
        let full = with_arch(target);
        let mut check = Command::new(&self.program);
        check.args(["check", "--no-config", "--select", "ABI1", "--target", &full]).args(&linked.modules);
        let verdict = check.output().context("abiaudit check")?;
        if !verdict.status.success() {
            print!("{}", String::from_utf8_lossy(&verdict.stdout));
        }
        let plain = modules.link_plainly()?;
        let beyond = modules::exports_beyond(&plain, &linked, toolchain)?;
        for name in beyond.iter().take(10) {
            println!("  exported: {name}");
        }
        let mut runs = vec![("native".to_owned(), linked.run(None)?)];
        for runtime in self.runtimes(&full)? {
            runs.push((runtime.name.clone(), linked.run(Some(&runtime))?));
        }
        let row = Row {
            compiler: &modules.compiler,
            flags: modules.flags.join(" "),
            target,
            linker,
            newest: linked.newest_versions()?,
            verdict: if verdict.status.success() { "ok" } else { "FAILED" },
            exports: if beyond.is_empty() { "ok" } else { "MORE" },
            runs,
        };
        Ok(row.print())
    }

    /// The runtimes on which something for the target must run.
    fn runtimes(&self, target: &str) -> Result<Vec<Runtime>> {
        let target = self::target(target)?;
        let mut runtimes = vec![runtimes::masked_host(&self.scratch, &target)?];
        if let Some(bullseye) = self.bullseye.as_ref().filter(|b| target.glibc_version() <= Some(b.glibc)) {
            runtimes.push(bullseye.clone());
            runtimes.push(bullseye.masked(&self.scratch, &target)?);
        }
        Ok(runtimes)
    }

    /// Makes a toolchain with the command, as a person would.
    fn toolchain(&self, compiler: &str, target: &str) -> Result<PathBuf> {
        let directory = self.scratch.join(format!("{compiler}-{target}"));
        if !directory.exists() {
            let mut create = Command::new(&self.program);
            create
                .args(["toolchain", "create", "--cxx", compiler, "--target", &with_arch(target), "-o"])
                .arg(&directory);
            shell::capture(&mut create)?;
        }
        Ok(directory)
    }
}

fn with_arch(target: &str) -> String {
    format!("{target}_{}", std::env::consts::ARCH)
}

fn target(tag: &str) -> Result<Target> {
    PolicySet::builtin().target(tag).context("no such target")
}

/// Has the target's libstdc++ only the old `std::string`?
fn is_old_abi(target: &str) -> bool {
    matches!(target, "manylinux_2_17")
}
