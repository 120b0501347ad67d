//! The list of inputs.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, bail};

/// Replaces `-` by the paths on standard input: one a line, or separated by NUL bytes if there are any.
pub fn expand(inputs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut from_stdin = false;
    for input in inputs {
        if input.as_os_str() != "-" {
            paths.push(input.clone());
        } else if !std::mem::replace(&mut from_stdin, true) {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read the list on standard input")?;
            let separator = if text.contains('\0') { '\0' } else { '\n' };
            let lines = text.split(separator).map(|line| line.strip_suffix('\r').unwrap_or(line));
            paths.extend(lines.filter(|line| !line.is_empty()).map(PathBuf::from));
        }
    }
    if paths.is_empty() {
        bail!("the list on standard input is empty");
    }
    Ok(paths)
}
