//! `manifest.json`: what a toolchain is made of, what it covers and what it refuses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, read, write};
use crate::nonshared::Report;

/// The format of [`Manifest`].
pub const SCHEMA: &str = "abiaudit.toolchain/1";
/// The file's name in a toolchain's directory.
pub const FILE: &str = "manifest.json";

/// What a toolchain is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`]
    pub schema: String,
    /// The tag of the target: `manylinux_2_28_x86_64`.
    pub target: String,
    /// The newest version of each family that the target judges.
    pub ceilings: BTreeMap<String, String>,
    /// The release of the target's glibc: major and minor number.
    pub glibc: (u32, u32),
    /// The compiler that it was made for.
    pub compiler: CompilerFacts,
    /// The linker that the wrapper runs.
    pub linker: LinkerFacts,
    /// What was read: name, path and SHA-256.
    pub inputs: BTreeMap<String, InputFile>,
    /// What was written: name and SHA-256. Without this file, of course.
    pub files: BTreeMap<String, String>,
    /// What `libstdc++_nonshared.a` has.
    pub libstdcxx: Report,
    /// Functions that newer libraries have, and the object that stands in for each.
    pub shim: BTreeMap<String, String>,
    /// Symbols of the compiler's libraries that the target has not and nothing stands in for, with the reason.
    pub refused: BTreeMap<String, String>,
}

/// A compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompilerFacts {
    /// As it was given.
    pub program: String,
    /// `12.2.0`
    pub version: String,
    /// `x86_64-linux-gnu`
    pub machine: String,
}

/// A linker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkerFacts {
    /// Where it is.
    pub path: PathBuf,
    /// It knows `-z nopack-relative-relocs` (GNU ld 2.38).
    pub packs_relocations: bool,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Where it was.
    pub path: PathBuf,
    /// Its content.
    pub sha256: String,
}

impl Manifest {
    /// Reads the manifest of a toolchain's directory.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        let malformed = |found: String| Error::Malformed { path: path.clone(), what: "manifest", found };
        let manifest: Self = serde_json::from_slice(&read(&path)?).map_err(|e| malformed(e.to_string()))?;
        if manifest.schema == SCHEMA {
            Ok(manifest)
        } else {
            Err(malformed(format!("schema {}", manifest.schema)))
        }
    }

    /// Writes it.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Malformed {
            path: path.clone(),
            what: "manifest",
            found: error.to_string(),
        })?;
        write(&path, text + "\n")
    }

    /// The architecture, as a platform tag spells it.
    pub fn arch(&self) -> &str {
        self.target.strip_prefix("manylinux_").map_or("", |rest| {
            let mut parts = rest.splitn(3, '_');
            parts.nth(2).unwrap_or_default()
        })
    }

    /// Threads are in a library of their own, which a C++ program must be told to load.
    pub fn has_libpthread(&self) -> bool {
        self.glibc < MERGED
    }

    /// The C library starts an executable's constructors only through its start file.
    pub fn needs_start_main(&self) -> bool {
        self.glibc < MERGED
    }
}

/// The release of glibc that took libpthread, libdl and others in, and that runs constructors by itself.
pub(crate) const MERGED: (u32, u32) = (2, 34);
