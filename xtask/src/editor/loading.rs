//! Which libraries the system's loader takes, in a process of its own each.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::set;

/// Opens each library that standard input names in a child of its own, and says how that went. Python, because extension
/// modules refer to its data.
const SCRIPT: &str = r#"
import ctypes, os, sys
for path in sys.stdin.read().split("\0"):
    if not path: continue
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            ctypes.CDLL(path, mode=os.RTLD_LAZY)
        except OSError as error:
            os.write(writer, str(error).encode()[:300])
            os._exit(1)
        os._exit(0)
    os.close(writer)
    text = os.read(reader, 400).decode(errors="replace").replace("\n", " ")
    os.close(reader)
    status = os.waitpid(child, 0)[1]
    print(f"{status}\0{path}\0{text}", flush=True)
"#;

/// The ones that load.
pub fn loaded(files: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let results = open_all(files)?;
    Ok(set(results.into_iter().filter(|result| result.status == 0).map(|result| result.path)))
}

/// A line for each that does not load.
pub fn failures(state: &str, files: &[PathBuf]) -> Result<Vec<String>> {
    let results = open_all(files)?;
    let failed = results.into_iter().filter(|result| result.status != 0);
    Ok(failed
        .map(|result| format!("{} ({state}): {} {}", result.path.display(), result.status, result.text))
        .collect())
}

/// Strips all of them at once by each tool, loads them, and puts them back.
pub fn failures_after_stripping(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for tool in [&["strip", "--strip-unneeded"][..], &["eu-strip"], &["objcopy", "--only-keep-debug"]] {
        let folder = tempfile::tempdir()?;
        let mut originals = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let kept = folder.path().join(index.to_string());
            fs::copy(file, &kept)?;
            if let Err(error) = strip(tool, &kept, file) {
                all.push(format!("{}: {error:#}", file.display()));
            }
            originals.push((kept, file));
        }
        // A file of debug information is not for loading.
        if tool[0] != "objcopy" {
            all.extend(failures(tool[0], files)?);
        }
        for (kept, file) in originals {
            fs::remove_file(file)?;
            fs::copy(kept, file)?;
        }
    }
    Ok(all)
}

/// Runs a tool on a copy.
pub fn strip(tool: &[&str], input: &Path, output: &Path) -> Result<()> {
    let mut command = Command::new(tool[0]);
    command.args(&tool[1..]);
    fs::remove_file(output).ok();
    if tool[0] == "objcopy" {
        command.arg(input).arg(output);
    } else {
        command.arg("-o").arg(output).arg(input);
    }
    let run = command.output().with_context(|| format!("cannot run {}", tool[0]))?;
    anyhow::ensure!(run.status.success(), "{}: {}", tool[0], String::from_utf8_lossy(&run.stderr).trim());
    // eu-strip writes nothing if there is nothing to strip.
    if !output.exists() {
        fs::copy(input, output)?;
    }
    Ok(())
}

struct Opened {
    status: i32,
    path: PathBuf,
    text: String,
}

fn open_all(files: &[PathBuf]) -> Result<Vec<Opened>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().context("cannot run python3")?;
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let mut input = child.stdin.take().context("no standard input")?;
    let writer = std::thread::spawn(move || input.write_all(names.join("\0").as_bytes()));
    let output = child.wait_with_output()?;
    let _ = writer.join();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let opened = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, '\0');
        let status = parts.next()?.parse().ok()?;
        Some(Opened { status, path: PathBuf::from(parts.next()?), text: parts.next()?.to_owned() })
    });
    Ok(opened.collect())
}
