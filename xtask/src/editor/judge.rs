//! What `eu-elflint` and `readelf` say of an edited file that they did not say of the original.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// New complaints, each with the name of the file. As many of a kind as before are no news: their numbers change.
pub fn new_complaints(name: &str, before: &[u8], after: &[u8]) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("judged");
    let mut known: Vec<String> =
        complaints(&path, before)?.iter().map(|line| without_numbers(line)).collect();
    let mut new = complaints(&path, after)?;
    new.retain(|line| match known.iter().position(|known| *known == without_numbers(line)) {
        Some(at) => {
            known.swap_remove(at);
            false
        }
        None => true,
    });
    Ok(new.into_iter().take(5).map(|line| format!("{name}: {line}")).collect())
}

fn complaints(path: &Path, bytes: &[u8]) -> Result<Vec<String>> {
    fs::write(path, bytes)?;
    let mut lines = Vec::new();
    let lint =
        Command::new("eu-elflint").arg("--gnu-ld").arg(path).output().context("cannot run eu-elflint")?;
    lines.extend(String::from_utf8_lossy(&lint.stdout).lines().map(str::to_owned));
    lines.extend(String::from_utf8_lossy(&lint.stderr).lines().map(str::to_owned));
    let readelf = Command::new("readelf").arg("-aW").arg(path).output().context("cannot run readelf")?;
    lines.extend(String::from_utf8_lossy(&readelf.stderr).lines().map(str::to_owned));
    lines.retain(|line| line != "No errors" && !line.trim().is_empty());
    Ok(lines)
}

/// Numbers, also hexadecimal ones, are those of places.
fn without_numbers(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.trim_start_matches('[').strip_prefix("0x") {
        Some(_) => String::new(),
        None => word.chars().filter(|c| !c.is_ascii_digit()).collect(),
    });
    words.collect::<Vec<String>>().join(" ")
}
