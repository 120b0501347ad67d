//! The variants of the matrix, built and packed into wheels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_confirm::{MODULE_SOURCE, SOURCE, Stop, compile};
use abiaudit_testing::TestWheel;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::shell;

/// A way in which a module gets at a C++ runtime.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    pub what: String,
    pub compiler: String,
    pub flags: Vec<String>,
    pub script: Option<String>,
    #[serde(default)]
    pub vendor: Vec<Vendored>,
    #[serde(default)]
    pub partner: bool,
    #[serde(default)]
    pub quick: bool,
}

/// A library that the wheel carries.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendored {
    /// As the compiler finds it.
    pub file: String,
    /// The name of the copy, which has the same length.
    pub soname: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    variant: Vec<Variant>,
}

/// All of them.
pub fn read(path: &Path) -> Result<Vec<Variant>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let file: File = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(file.variant)
}

/// A module of a variant in a wheel.
#[derive(Debug, Clone)]
pub struct Built {
    pub module: String,
    pub wheel: PathBuf,
}

impl Variant {
    /// Whether its compiler is there.
    pub fn has_compiler(&self) -> bool {
        shell::has(&self.compiler)
    }

    /// Builds a module of this name in `scratch`.
    pub fn build(&self, module: &str, scratch: &Path) -> Result<Built> {
        let object = self.object(scratch)?;
        let folder = scratch.join(module);
        fs::create_dir_all(&folder)?;
        let mut flags = vec!["-shared".to_owned(), format!("-DABIAUDIT_MODULE={module}")];
        flags.extend(self.flags.iter().cloned());
        if let Some(script) = &self.script {
            let path = folder.join("script.map");
            fs::write(&path, script)?;
            flags.push(format!("-Wl,--version-script={}", path.display()));
        }
        let libs = format!("{module}.libs");
        let mut wheel = TestWheel::new(module, "1.0", "cp37-abi3-linux_x86_64");
        for vendored in &self.vendor {
            let name = vendored.soname.as_deref().unwrap_or(&vendored.file);
            let bytes = self.library(vendored)?;
            let copy = folder.join(name);
            fs::write(&copy, &bytes)?;
            if vendored.soname.is_some() {
                // In place of what the compiler links by default, which would be the library under its own name.
                flags.push(copy.display().to_string());
                flags.extend(["-lm", "-lgcc_s", "-lgcc", "-lc"].map(str::to_owned));
            }
            wheel = wheel.program(&format!("{libs}/{name}"), bytes);
        }
        if !self.vendor.is_empty() {
            flags.push(format!("-Wl,-rpath,$ORIGIN/{libs}"));
        }
        let output = folder.join("module.so");
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let source = folder.join("module.cpp");
        fs::write(&source, MODULE_SOURCE)?;
        compile(&self.compiler, &[&source, &object], &output, &flags, &Stop::default())
            .with_context(|| self.name.clone())?;
        let wheel = wheel.program(&format!("{module}.abi3.so"), fs::read(output)?).write(scratch);
        fs::remove_dir_all(folder)?;
        Ok(Built { module: module.to_owned(), wheel })
    }

    /// The probe as an object file, compiled once for all variants that differ in linking only.
    fn object(&self, scratch: &Path) -> Result<PathBuf> {
        const LINKING: [&str; 3] = ["-Wl,", "-static", "-nodefaultlibs"];
        let is_compiling = |flag: &&str| !LINKING.iter().any(|start| flag.starts_with(start));
        let mut flags: Vec<&str> = self.flags.iter().map(String::as_str).filter(is_compiling).collect();
        flags.push("-c");
        let object = scratch.join(format!("{}{}.o", self.compiler, flags.concat()));
        if !object.exists() {
            let source = scratch.join("probe.cpp");
            fs::write(&source, SOURCE)?;
            compile(&self.compiler, &[&source], &object, &flags, &Stop::default())
                .with_context(|| self.name.clone())?;
        }
        Ok(object)
    }

    /// A library of the compiler, under its new name.
    fn library(&self, vendored: &Vendored) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.compiler);
        let path = shell::capture(command.arg(format!("-print-file-name={}", vendored.file)))?;
        let mut bytes = fs::read(path.trim()).with_context(|| path.trim().to_owned())?;
        if let Some(soname) = &vendored.soname {
            ensure!(soname.len() == vendored.file.len(), "{soname} has not the length of {}", vendored.file);
            let old = [vendored.file.as_bytes(), b"\0"].concat();
            let at = bytes.windows(old.len()).position(|window| window == old).context("no soname")?;
            bytes[at..at + soname.len()].copy_from_slice(soname.as_bytes());
        }
        Ok(bytes)
    }
}
