//! `corpus`: real wheels, fetched with pip and pinned by SHA-256.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::shell;

/// Downloads at a time; each spends most of its time waiting.
const WORKERS: usize = 4;

/// So many failures without a success mean that the index does not answer, and nothing more is tried.
const GIVE_UP: usize = 4;

/// A wheel of testdata/corpus/manifest.json with what others measured on it.
#[derive(Debug, Clone, Deserialize)]
pub struct CorpusWheel {
    /// File name on the index.
    pub filename: String,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// `tiny`, `small`, `mid` or `big`.
    pub tier: String,
    /// Arguments to `pip download` that get this file on any machine.
    pub pip_args: Vec<String>,
    /// The tag by auditwheel; `None` where it fails.
    pub auditwheel: Option<String>,
    /// Why it fails.
    #[serde(default)]
    pub auditwheel_error: Option<String>,
    /// Sonames that are needed and not in the wheel, without the dynamic loader.
    pub external: BTreeSet<String>,
    /// The newest version needed, by family: `GLIBC` -> `2.17`.
    pub newest: BTreeMap<String, String>,
    /// Number of ELF files.
    pub elf_count: usize,
}

#[derive(Deserialize)]
struct Manifest {
    wheels: Vec<CorpusWheel>,
}

/// All wheels of the manifest.
pub fn manifest() -> Result<Vec<CorpusWheel>> {
    let path = shell::root().join("testdata/corpus/manifest.json");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Manifest =
        serde_json::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))?;
    Ok(manifest.wheels)
}

/// Where the wheels are kept: `$ABIAUDIT_CORPUS`, or the cache.
pub fn directory() -> Result<PathBuf> {
    match std::env::var_os("ABIAUDIT_CORPUS") {
        Some(path) => Ok(path.into()),
        None => Ok(shell::cache()?.join("corpus")),
    }
}

/// Fetches the tiers that the arguments name.
pub fn run(args: &[String]) -> Result<()> {
    let mut tiers = "tiny,small";
    let mut destination = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--tier" => tiers = shell::value(arg, &mut args)?,
            other if !other.starts_with('-') => destination = Some(PathBuf::from(other)),
            _ => bail!("usage: cargo xtask corpus [--tier tiny,small,mid,big] [DEST]"),
        }
    }
    let directory = destination.map_or_else(directory, Ok)?;
    let tiers: Vec<&str> = tiers.split(',').collect();
    let fetched = fetch(&in_tiers(&tiers)?, &directory)?;
    println!("{} wheels in {}, {} missing", fetched.there, directory.display(), fetched.missing.len());
    match fetched.missing.first() {
        None => Ok(()),
        Some(first) => bail!("{} wheels could not be fetched, the first is {first}", fetched.missing.len()),
    }
}

/// The wheels of these tiers.
pub fn in_tiers(tiers: &[&str]) -> Result<Vec<CorpusWheel>> {
    let wheels = manifest()?;
    if let Some(unknown) = tiers.iter().find(|tier| !wheels.iter().any(|w| w.tier == **tier)) {
        bail!("no wheel is in tier {unknown:?}; expected tiny, small, mid or big");
    }
    Ok(wheels.into_iter().filter(|wheel| tiers.contains(&wheel.tier.as_str())).collect())
}

/// The result of a download.
pub struct Fetched {
    /// How many wheels are there and have the right hash.
    pub there: usize,
    /// The files that could not be had, with pip's last word.
    pub missing: Vec<String>,
}

/// Downloads what is not there yet. A file with another hash is replaced.
pub fn fetch(wheels: &[CorpusWheel], directory: &Path) -> Result<Fetched> {
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    shell::install_pip()?;
    let (next, done, missing) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let (downloaded, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(wheel) = wheels.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let hopeless =
                        downloaded.load(Ordering::Relaxed) == 0 && failed.load(Ordering::Relaxed) >= GIVE_UP;
                    let result = fetch_one(wheel, directory, hopeless);
                    let count = done.fetch_add(1, Ordering::Relaxed) + 1;
                    match result {
                        Ok(true) => {
                            downloaded.fetch_add(1, Ordering::Relaxed);
                            println!("[{count}/{}] {}", wheels.len(), wheel.filename);
                        }
                        Ok(false) => {}
                        Err(error) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            println!("[{count}/{}] {}: {error:#}", wheels.len(), wheel.filename);
                            if let Ok(mut missing) = missing.lock() {
                                missing.insert(wheel.filename.clone());
                            }
                        }
                    }
                }
            });
        }
    });
    let missing: Vec<String> = missing.into_inner().unwrap_or_default().into_iter().collect();
    Ok(Fetched { there: wheels.len() - missing.len(), missing })
}

/// Whether the wheel had to be downloaded, which is not tried when it is `hopeless`.
fn fetch_one(wheel: &CorpusWheel, directory: &Path, hopeless: bool) -> Result<bool> {
    let path = directory.join(&wheel.filename);
    if path.is_file() && shell::sha256(&path)? == wheel.sha256 {
        return Ok(false);
    }
    ensure!(!hopeless, "not tried, since no download has worked");
    // A folder of its own: pip leaves half a file behind when it is stopped.
    let folder = tempfile::Builder::new().prefix(".fetch-").tempdir_in(directory)?;
    let output = Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--retries",
            "2",
            "--no-deps",
        ])
        .args(["--only-binary", ":all:", "--dest"])
        .arg(folder.path())
        .args(&wheel.pip_args)
        .stdin(Stdio::null())
        .output()
        .context("cannot run python3")?;
    let fetched = folder.path().join(&wheel.filename);
    if !fetched.is_file() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("pip did not get it: {}", errors.trim().lines().next_back().unwrap_or("no message"));
    }
    let found = shell::sha256(&fetched)?;
    if found != wheel.sha256 {
        bail!("SHA-256 is {found}, expected {}", wheel.sha256);
    }
    fs::rename(&fetched, &path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}
