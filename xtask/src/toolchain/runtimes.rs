//! Old runtimes: Debian 11's, unpacked from its packages into a directory, and those that only look old.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_policy::Target;
use abiaudit_toolchain::mask::mask_runtime;
use anyhow::{Context, Result};

use crate::shell;

/// A directory with a loader and libraries.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub name: String,
    pub directory: PathBuf,
    /// The release of its glibc.
    pub glibc: (u32, u32),
}

const LOADER: &str =
    if cfg!(target_arch = "aarch64") { "ld-linux-aarch64.so.1" } else { "ld-linux-x86-64.so.2" };

impl Runtime {
    /// A command that runs a program with this loader and these libraries.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(self.directory.join(LOADER));
        command.arg("--library-path").arg(&self.directory).arg(program);
        command
    }

    /// The same runtime as the target has it.
    pub fn masked(&self, scratch: &Path, target: &Target) -> Result<Self> {
        let name = format!("{} as {}", self.name, target.policy());
        let directory = scratch.join(name.replace(' ', "-"));
        mask_runtime(&[&self.directory], target, &directory)?;
        Ok(Self { name, directory, glibc: self.glibc })
    }
}

/// This machine's runtime as the target has it.
pub fn masked_host(scratch: &Path, target: &Target) -> Result<Runtime> {
    let name = format!("masked {}", target.policy());
    let directory = scratch.join(name.replace(' ', "-"));
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    let places = [
        format!("/lib/{multiarch}"),
        format!("/usr/lib/{multiarch}"),
        "/lib64".to_owned(),
        "/usr/lib64".to_owned(),
    ];
    let places: Vec<&Path> = places.iter().map(Path::new).collect();
    let copied = mask_runtime(&places, target, &directory)?;
    anyhow::ensure!(copied.iter().any(|name| name == LOADER), "this machine's loader was not found");
    Ok(Runtime { name, directory, glibc: target.glibc_version().unwrap_or_default() })
}

/// The runtime of Debian 11: glibc 2.31, libstdc++ of GCC 10. `None` where its packages cannot be had.
pub fn bullseye() -> Result<Option<Runtime>> {
    let directory = shell::cache()?.join("runtimes").join(format!("bullseye-{}", std::env::consts::ARCH));
    let complete = directory.join("complete");
    if !complete.is_file() {
        if !shell::has("apt-get") || !shell::has("dpkg-deb") {
            return Ok(None);
        }
        match unpack(&directory) {
            Ok(()) => fs::write(&complete, "")?,
            Err(error) => {
                println!("Debian 11: {error:#}");
                return Ok(None);
            }
        }
    }
    Ok(Some(Runtime { name: "Debian 11".to_owned(), directory, glibc: (2, 31) }))
}

/// Fetches with apt, whose lists and state are kept apart: nothing on the machine changes.
fn unpack(directory: &Path) -> Result<()> {
    let root = tempfile::tempdir()?;
    let at = |name: &str| root.path().join(name);
    for name in ["lists/partial", "cache/archives/partial", "debs", "tree"] {
        fs::create_dir_all(at(name))?;
    }
    // Take the packages from where this machine takes its own.
    let sites = shell::capture(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(SITE)",
        "Created-By: Packages",
    ]))?;
    let site =
        sites.lines().find(|site| !site.contains("security")).context("apt has no source of packages")?;
    fs::write(at("sources.list"), format!("deb {site} bullseye main\n"))?;
    fs::write(at("status"), "")?;
    let apt = |arguments: &[&str]| -> Result<()> {
        let mut command = Command::new("apt-get");
        for (option, value) in [
            ("Dir::Etc::sourcelist", at("sources.list")),
            ("Dir::Etc::sourceparts", "-".into()),
            ("Dir::State::lists", at("lists")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("cache")),
        ] {
            command.arg("-o").arg(format!("{option}={}", value.display()));
        }
        // Downloads are then made by this user, who may write to the directory.
        command.args(["-qq", "-o", "APT::Sandbox::User=root"]).args(arguments).current_dir(at("debs"));
        shell::capture(&mut command).map(|_| ())
    };
    apt(&["update"])?;
    apt(&["download", "libc6", "libstdc++6", "libgcc-s1"])?;
    for package in fs::read_dir(at("debs"))? {
        shell::run(Command::new("dpkg-deb").arg("-x").arg(package?.path()).arg(at("tree")))?;
    }
    fs::create_dir_all(directory)?;
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    for place in ["lib", "usr/lib"] {
        for entry in fs::read_dir(at("tree").join(place).join(&multiarch))? {
            let entry = entry?.path();
            // Links are followed: the directory holds each library under its soname.
            if entry.is_file() {
                fs::copy(&entry, directory.join(shell::file_name(&entry)))?;
            }
        }
    }
    Ok(())
}
