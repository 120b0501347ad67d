//! Running other programs, installing them, and where things are kept.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Where downloads are kept, outside the checkout: `$XDG_CACHE_HOME/abiaudit`, or `~/.cache/abiaudit`.
pub fn cache() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|path| Path::new(path).is_absolute()) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?)
            .join(".cache"),
    };
    let path = base.join("abiaudit");
    fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path)
}

/// A cargo command in the root of the repository, with the cargo that runs this task.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// As a person would type it.
pub fn line(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", line(command)))?;
    ensure!(status.success(), "{} failed: {status}", line(command));
    Ok(())
}

/// Runs a command that must succeed and gives its standard output.
pub fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", line(command)))?;
    ensure!(output.status.success(), "{} failed: {}", line(command), output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{} does not print UTF-8", line(command)))
}

/// Runs a command, shows what it prints, and gives both streams as one text.
pub fn tee(command: &mut Command) -> Result<(ExitStatus, String)> {
    let (mut reader, writer) = io::pipe().context("cannot make a pipe")?;
    let name = line(command);
    let errors = writer.try_clone().context("cannot make a pipe")?;
    let spawned = command.stdin(Stdio::null()).stdout(writer).stderr(errors).spawn();
    // The pipe ends when nobody writes to it, this process included.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = spawned.with_context(|| format!("cannot run {name}"))?;
    let mut text = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let length = reader.read(&mut buffer).with_context(|| format!("cannot read from {name}"))?;
        if length == 0 {
            break;
        }
        io::stdout().write_all(&buffer[..length])?;
        io::stdout().flush()?;
        text.extend_from_slice(&buffer[..length]);
    }
    let status = child.wait().with_context(|| format!("cannot wait for {name}"))?;
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}

/// Whether a program is on the search path.
pub fn has(program: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

/// Installs programs that are missing with apt-get: pairs of program and Debian package.
pub fn install(programs: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<&str> = programs.iter().filter(|(p, _)| !has(p)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    let help = format!("please install what these Debian packages contain: {packages}");
    ensure!(has("apt-get"), "{help} (there is no apt-get here)");
    println!("installing {packages}");
    let apt = |arguments: &[&str]| -> Result<()> {
        let mut command = if nix::unistd::geteuid().is_root() {
            Command::new("apt-get")
        } else {
            ensure!(has("sudo"), "{help} (neither root nor sudo)");
            let mut sudo = Command::new("sudo");
            // Never asks for a password.
            sudo.args(["-n", "apt-get"]);
            sudo
        };
        command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).args(arguments);
        run(&mut command).with_context(|| help.clone())
    };
    apt(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(missing);
    apt(&arguments)
}

/// Builds the command with a cargo profile and gives the path of the program.
pub fn build(profile: &str) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--locked", "-p", "abiaudit", "--bin", "abiaudit", "--profile", profile]);
    let messages = capture(command.arg("--message-format=json-render-diagnostics"))?;
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = artifacts.filter_map(|artifact| artifact["executable"].as_str().map(PathBuf::from));
    programs.next_back().context("cargo build names no program")
}

/// A virtual environment in the cache with these requirements, such as `auditwheel==6.8.2`.
pub fn venv(name: &str, requirements: &[&str]) -> Result<PathBuf> {
    install(&[("python3", "python3")])?;
    let directory = cache()?.join("venv").join(name);
    let python = directory.join("bin/python");
    let complete = directory.join("complete");
    if !complete.is_file() {
        let made = |command: &mut Command| capture(command.stderr(Stdio::null())).is_ok();
        if !made(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory)) {
            install_python_venv()?;
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory))?;
        }
        let mut pip = Command::new(&python);
        run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(requirements))?;
        fs::write(&complete, requirements.join("\n"))?;
    }
    Ok(directory)
}

/// Debian keeps venv in a package of its own, without a program by which to tell.
fn install_python_venv() -> Result<()> {
    install(&[("(python3-venv)", "python3-venv")])
}

/// Installs python3 and pip if they are missing. `python3 -m pip` may be there without a program called pip.
pub fn install_pip() -> Result<()> {
    install(&[("python3", "python3")])?;
    let there =
        Command::new("python3").args(["-m", "pip", "--version"]).output().is_ok_and(|o| o.status.success());
    if there { Ok(()) } else { install(&[("(python3-pip)", "python3-pip")]) }
}

/// The SHA-256 of a file in lower-case hexadecimal digits.
pub fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut buffer).with_context(|| format!("cannot read {}", path.display()))?;
        if length == 0 {
            let digits =
                |byte: &u8| [byte >> 4, byte & 15].map(|d| char::from_digit(d.into(), 16).unwrap_or('?'));
            return Ok(hasher.finalize().iter().flat_map(digits).collect());
        }
        hasher.update(&buffer[..length]);
    }
}

/// The value after an option, such as `--tier tiny`.
pub fn value<'a>(option: &str, args: &mut impl Iterator<Item = &'a String>) -> Result<&'a str> {
    match args.next() {
        Some(value) => Ok(value),
        None => bail!("{option} needs a value"),
    }
}

/// The last part of a path, for people.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(OsStr::new("")).to_string_lossy().into_owned()
}
