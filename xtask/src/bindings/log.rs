//! A run of Python under `LD_DEBUG=files,scopes,bindings`.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};

use abiaudit_process::trace::Log;
use anyhow::{Context, ensure};

/// Runs Python on `code`.
pub fn record(python: &Path, code: &str, scratch: &Path) -> anyhow::Result<Log> {
    let prefix = scratch.join("ld-debug");
    let mut command = Command::new(python);
    command
        .args(["-B", "-c", code])
        .env("LD_DEBUG", "files,scopes,bindings")
        .env("LD_DEBUG_OUTPUT", &prefix)
        .env_remove("LD_BIND_NOW")
        .env_remove("LD_PRELOAD")
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("PYTHONPATH")
        .envs([("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1")])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("{}", python.display()))?;
    let path = prefix.with_extension(child.id().to_string());
    let status = child.wait()?;
    ensure!(status.success(), "Python: {status}");
    let log = Log::read(BufReader::new(File::open(&path)?))?;
    for entry in std::fs::read_dir(scratch)? {
        let path = entry?.path();
        if path.file_stem() == prefix.file_name() {
            std::fs::remove_file(path)?;
        }
    }
    Ok(log)
}
