//! `editor`: the ELF editor on every ELF file of wheels and directories, judged by the system's tools and loader.
//!
//! Each file gets another search path, another name, one more library and another version (docs/benchmarks.md says
//! what is measured). The result must verify, `readelf` and `eu-elflint` must not complain of more than before, and what
//! loaded before must load afterwards, and again after `strip` and `eu-strip`.

mod judge;
mod loading;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_edit::{Edit, EditError, EditPlan, Options, Place, SearchPathKind, edit};
use abiaudit_elf::{Object, Wants};
use anyhow::{Context, Result, ensure};

use crate::shell;

/// The name for the machine of this task in the results of `Identity::arch`.
const LOADABLE: &str = "x86_64";

/// `[--tools] [--no-judge] PATH..`: wheels, and directories of wheels or of ELF files. `--tools` makes the table of
/// docs/benchmarks.md instead.
pub fn run(args: &[String]) -> Result<()> {
    if args.iter().any(|arg| arg == "--tools") {
        return table::run();
    }
    let judges = !args.iter().any(|arg| arg == "--no-judge");
    let paths: Vec<PathBuf> = args.iter().filter(|arg| !arg.starts_with("--")).map(PathBuf::from).collect();
    ensure!(!paths.is_empty(), "usage: cargo xtask editor [--tools] [--no-judge] PATH..");
    shell::install(&[("eu-elflint", "elfutils"), ("readelf", "binutils"), ("bsdtar", "libarchive-tools")])?;
    let mut totals = Totals::default();
    for path in paths {
        let groups = if path.is_dir() { wheels_in(&path)? } else { vec![path.clone()] };
        if groups.is_empty() {
            totals.add(&path, &check_directory(&path, &path, judges)?);
        }
        for wheel in groups {
            let folder = tempfile::tempdir()?;
            shell::run(Command::new("bsdtar").arg("-xf").arg(&wheel).arg("-C").arg(folder.path()))?;
            totals.add(&wheel, &check_directory(folder.path(), folder.path(), judges)?);
        }
    }
    println!("\n{totals}");
    ensure!(totals.failures == 0, "{} failures", totals.failures);
    Ok(())
}

fn wheels_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut wheels: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .collect();
    wheels.sort();
    Ok(wheels)
}

/// What came of the files of one wheel or directory.
#[derive(Debug, Default)]
struct Outcome {
    edited: usize,
    refused: Vec<String>,
    growth: i64,
    loaded: usize,
    failures: Vec<String>,
}

#[derive(Debug, Default)]
struct Totals {
    edited: usize,
    refused: usize,
    growth: i64,
    loaded: usize,
    failures: usize,
}

impl Totals {
    fn add(&mut self, path: &Path, outcome: &Outcome) {
        let name = shell::file_name(path);
        println!(
            "{name}: {} edited, {} refused, growth {}, {} load",
            outcome.edited,
            outcome.refused.len(),
            outcome.growth,
            outcome.loaded
        );
        for line in &outcome.refused {
            println!("  refused {line}");
        }
        for line in &outcome.failures {
            println!("  FAILED {line}");
        }
        self.edited += outcome.edited;
        self.refused += outcome.refused.len();
        self.growth += outcome.growth;
        self.loaded += outcome.loaded;
        self.failures += outcome.failures.len();
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} files edited and verified, {} refused, growth {} bytes, {} loaded before and after, {} failures",
            self.edited, self.refused, self.growth, self.loaded, self.failures
        )
    }
}

/// Edits, judges and loads the ELF files below a directory. Files of the system itself are copied, not changed.
fn check_directory(directory: &Path, root: &Path, judges: bool) -> Result<Outcome> {
    let files = elf_files(directory)?;
    let mut outcome = Outcome::default();
    let scratch = tempfile::tempdir()?;
    // A wheel was unpacked for us, and its files are edited in their places, where they find each other.
    let in_place = directory.starts_with(std::env::temp_dir());
    let loadable: Vec<PathBuf> = files.iter().filter(|file| is_loadable(file)).cloned().collect();
    let loaded_before = loading::loaded(&loadable)?;
    let mut edited_files = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let (plan, rename) = plans(&bytes);
        match edit(&bytes, &plan, &Options::default()) {
            Ok(edited) => {
                outcome.edited += 1;
                outcome.growth += edited.layout.growth();
                let again = edit(&edited.bytes, &plan, &Options::default());
                if !again.is_ok_and(|again| !again.is_changed()) {
                    outcome.failures.push(format!("{name}: a second edit changes it"));
                }
                let target =
                    if in_place { file.clone() } else { scratch.path().join(edited_files.len().to_string()) };
                let mode = fs::metadata(file)?.permissions();
                // The version is renamed where tools judge, not where the loader does: no library has it.
                let judged = match rename {
                    Some(rename) => edit(&edited.bytes, &EditPlan::new([rename]), &Options::default()),
                    None => Ok(edited.clone()),
                };
                match judged {
                    Ok(judged) if judges => {
                        outcome.failures.extend(judge::new_complaints(&name, &bytes, &judged.bytes)?);
                    }
                    Ok(_) => {}
                    Err(error) => outcome.failures.push(format!("{name}: {error}")),
                }
                fs::remove_file(&target).ok();
                fs::write(&target, &edited.bytes)?;
                fs::set_permissions(&target, mode)?;
                if loaded_before.contains(file) {
                    edited_files.push(target);
                }
            }
            Err(error @ (EditError::Refused(_) | EditError::Malformed { .. })) => {
                outcome.refused.push(format!("{name}: {error}"));
            }
            Err(error) => outcome.failures.push(format!("{name}: {error}")),
        }
    }
    outcome.loaded = edited_files.len();
    outcome.failures.extend(loading::failures("edited", &edited_files)?);
    outcome.failures.extend(loading::failures_after_stripping(&edited_files)?);
    Ok(outcome)
}

/// Regular files below a directory that begin as ELF files do.
pub(crate) fn elf_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && begins_as_elf(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn begins_as_elf(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

/// Libraries of this machine: programs cannot be opened as libraries.
fn is_loadable(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    Object::from_bytes(&bytes, &Wants::default())
        .is_ok_and(|object| object.identity.arch() == Some(LOADABLE) && object.interpreter.is_none())
}

/// What every file gets, and the version that is renamed. Search paths keep what they had, so that files find each other.
pub(crate) fn plans(bytes: &[u8]) -> (EditPlan, Option<Edit>) {
    let object = Object::from_bytes(bytes, &Wants::default()).ok();
    let old = object.as_ref().map(|object| &object.dynamic);
    let rpath = old.and_then(|dynamic| dynamic.rpath.as_ref()).map(ToString::to_string);
    let runpath = old.and_then(|dynamic| dynamic.runpath.as_ref()).map(ToString::to_string);
    // A new DT_RUNPATH would end what the RPATHs of its users do for the file (ld.so(8)).
    let kind = if runpath.is_some() { SearchPathKind::Runpath } else { SearchPathKind::Rpath };
    let ours = "$ORIGIN/../abiaudit-editor.libs";
    let path = match runpath.or(rpath) {
        Some(path) if path.split(':').any(|entry| entry == ours) => path,
        Some(path) => format!("{path}:{ours}"),
        None => ours.to_owned(),
    };
    let soname = old.and_then(|dynamic| dynamic.soname.as_ref()).map(ToString::to_string);
    let plan = EditPlan::new([
        Edit::SetSearchPath { kind, path },
        Edit::SetSoname { soname: format!("edited-0123abcd-{}", soname.unwrap_or_default()) },
        Edit::AddNeeded { library: "libm.so.6".into(), place: Place::Last },
    ]);
    let needs = object.as_ref().map(|object| object.versions.needs.as_slice()).unwrap_or_default();
    let rename = needs.iter().find_map(|need| {
        let version = need.versions.first()?;
        let (library, from) = (need.library.to_string(), version.name.to_string());
        Some(Edit::RenameVersion { library, to: format!("{from}.99"), from })
    });
    (plan, rename)
}

/// Paths as a set.
pub(crate) fn set(paths: impl IntoIterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
    paths.into_iter().collect()
}
