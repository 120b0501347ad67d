//! What `cargo metadata` says of packages and their dependencies.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell;

/// All packages of the lock file that the workspace uses.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// The packages.
    pub packages: Vec<Package>,
}

/// One package.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// An SPDX expression.
    pub license: Option<String>,
    /// The registry; `None` for a package of this workspace.
    pub source: Option<String>,
    /// What it says it needs.
    pub dependencies: Vec<Dependency>,
}

/// One dependency as its manifest gives it.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The package's name.
    pub name: String,
    /// `None` for an ordinary one, else `dev` or `build`.
    pub kind: Option<String>,
    /// The folder, for a package of this workspace.
    pub path: Option<String>,
}

impl Metadata {
    /// The packages of this workspace.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.source.is_none())
    }
}

/// Asks cargo.
pub fn read() -> Result<Metadata> {
    let text = shell::capture(shell::cargo().args(["metadata", "--locked", "--format-version", "1"]))?;
    serde_json::from_str(&text).context("cannot understand cargo metadata")
}
