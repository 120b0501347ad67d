//! Data of others that some tests compare with, fetched into the cache: auditwheel's policies and the schemas.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{differential, shell};

/// Carries the official SARIF schema as `src/schema.json`.
const SARIF_CRATE: &str = "serde-sarif";
const SARIF_VERSION: &str = "0.8.0";

/// Where pip puts auditwheel, with its `policy` folder and `show-schema.json`.
pub fn auditwheel_package() -> Result<PathBuf> {
    let python = shell::venv("auditwheel", &[differential::AUDITWHEEL])?.join("bin/python");
    let find = "import auditwheel, pathlib; print(pathlib.Path(auditwheel.__file__).parent)";
    let path = shell::capture(Command::new(python).args(["-c", find]))?;
    Ok(path.trim().into())
}

/// The schema of SARIF 2.1.0. A crate that only depends on the one that has it makes cargo fetch it.
pub fn sarif_schema() -> Result<PathBuf> {
    let folder = shell::cache()?.join("sarif-schema");
    let manifest = folder.join("Cargo.toml");
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/lib.rs"), "")?;
    let package =
        "[package]\nname = \"sarif-schema\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(&manifest, format!("{package}\n[dependencies]\n{SARIF_CRATE} = \"={SARIF_VERSION}\"\n"))?;
    let mut cargo = shell::cargo();
    cargo.args(["metadata", "--quiet", "--format-version", "1", "--manifest-path"]).arg(&manifest);
    let metadata: Value = serde_json::from_str(&shell::capture(&mut cargo)?)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut found = packages.filter(|package| package["name"] == SARIF_CRATE);
    let path = found.next().and_then(|package| package["manifest_path"].as_str());
    let path = path.with_context(|| format!("cargo metadata does not know {SARIF_CRATE}"))?;
    Ok(PathBuf::from(path).with_file_name("src").join("schema.json"))
}
