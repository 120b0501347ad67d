//! The files that a Python process can load, and what the names in a log stand for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_elf::{Image, Object, Parsed, Wants};
use anyhow::{Context, bail};

use super::log::{Log, Opened};
use super::{Event, File, Library, Target};

/// Files with their objects. A file that has two paths is there twice with one object.
pub struct Machine {
    pub paths: Vec<String>,
    /// Per path: position of its object.
    object_of: Vec<usize>,
    objects: Vec<Object>,
    /// Per path: the distribution.
    groups: Vec<u32>,
    /// Files without links, and the first path of each.
    real: BTreeMap<PathBuf, usize>,
    pub program: usize,
    pub default_directories: Vec<String>,
    /// Answers of `find`.
    known: RefCell<BTreeMap<String, Option<usize>>>,
}

/// Number of the first distribution that is no wheel.
const FIRST_MODULE_GROUP: u32 = 1 << 16;

impl Machine {
    /// Reads Python, all that is installed in its environment, and what these need of the system.
    /// Each file in `modules` is taken to be a distribution of its own.
    pub fn read(python: &Path, modules: Option<&Path>, log: &Log) -> anyhow::Result<Self> {
        let mut machine = Self {
            paths: Vec::new(),
            object_of: Vec::new(),
            objects: Vec::new(),
            groups: Vec::new(),
            real: BTreeMap::new(),
            program: 0,
            default_directories: default_directories()?,
            known: RefCell::default(),
        };
        let program = python.canonicalize()?;
        machine.add(&program, 0)?;
        let prefix = program.parent().and_then(Path::parent).context("Python in a bin directory")?;
        for (path, group) in installed(python, prefix)? {
            machine.add(&path, group)?;
        }
        let modules = modules.map(fs::read_dir).transpose()?.into_iter().flatten();
        let mut modules = modules.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
        modules.sort();
        for (group, path) in (FIRST_MODULE_GROUP..).zip(&modules) {
            machine.add(path, group)?;
        }
        machine.add_system(log)?;
        Ok(machine)
    }

    pub fn files(&self) -> Vec<File<'_>> {
        let file = |position: usize| File {
            library: Library { path: &self.paths[position], object: &self.objects[self.object_of[position]] },
            group: self.groups[position],
        };
        (0..self.paths.len()).map(file).collect()
    }

    /// What the log says was opened, for the simulation.
    pub fn events<'m>(&'m self, log: &'m Log) -> Vec<Event<'m>> {
        let event = |opened: &'m Opened| match opened {
            Opened::Asked { name, caller } => {
                let file = if name.contains('/') { self.find(name) } else { None };
                let target = file.map_or(Target::Name(name), Target::File);
                Event::Dlopen { target, global: false, caller: self.find(caller) }
            }
            Opened::Global { path } => {
                let target = self.find(path).map_or(Target::Name(path), Target::File);
                Event::Dlopen { target, global: true, caller: None }
            }
        };
        log.opened.iter().map(event).collect()
    }

    /// An event that comes from Python's import system or from ctypes.
    pub fn is_opened_by_python(&self, log: &Log, event: usize) -> bool {
        let Some(Opened::Asked { caller, .. }) = log.opened.get(event) else { return false };
        let name = caller.rsplit('/').next().unwrap_or_default();
        self.find(caller) == Some(self.program)
            || ["libpython", "_ctypes."].iter().any(|python| name.starts_with(python))
    }

    /// Per reference the objects that ld.so bound it to. The vdso is left out.
    pub fn bindings(&self, log: &Log) -> BTreeMap<super::Key, Vec<usize>> {
        let mut all: BTreeMap<super::Key, Vec<usize>> = BTreeMap::new();
        for bound in &log.bindings {
            let (Some(from), Some(to)) = (self.find(&bound.from), self.find(&bound.to)) else { continue };
            let providers = all.entry((from, bound.symbol.clone(), bound.version.clone())).or_default();
            if !providers.contains(&to) {
                providers.push(to);
            }
        }
        all
    }

    /// The first path of the same file.
    pub fn file_of(&self, position: usize) -> usize {
        let object = self.object_of[position];
        self.object_of.iter().position(|&o| o == object).unwrap_or(position)
    }

    /// A path as ld.so writes it: relative, with `..`, or empty for the program.
    fn find(&self, name: &str) -> Option<usize> {
        if name.is_empty() {
            return Some(self.program);
        }
        if let Some(found) = self.known.borrow().get(name) {
            return *found;
        }
        let found = fs::canonicalize(name).ok().and_then(|real| self.real.get(&real).copied());
        self.known.borrow_mut().insert(name.to_owned(), found);
        found
    }

    fn add(&mut self, path: &Path, group: u32) -> anyhow::Result<()> {
        let text = path.to_str().context("a path that is text")?.to_owned();
        let real = path.canonicalize()?;
        let object = match self.real.get(&real) {
            Some(&first) => self.object_of[first],
            None => {
                let Some(object) = read_object(&real)? else { return Ok(()) };
                self.objects.push(object);
                self.real.insert(real, self.paths.len());
                self.objects.len() - 1
            }
        };
        self.paths.push(text);
        self.object_of.push(object);
        self.groups.push(group);
        Ok(())
    }

    /// Adds what is in the default directories and needed or opened by name, until nothing new is needed.
    fn add_system(&mut self, log: &Log) -> anyhow::Result<()> {
        let mut asked = BTreeSet::new();
        let mut next: BTreeSet<String> = log.opened.iter().filter_map(opened_by_name).collect();
        next.extend(self.objects.iter().flat_map(needed));
        while !next.is_empty() {
            let first_new = self.objects.len();
            for name in std::mem::take(&mut next) {
                if name.contains('/') || !asked.insert(name.clone()) {
                    continue;
                }
                let places =
                    self.default_directories.iter().map(|directory| Path::new(directory).join(&name));
                let found = places.filter(|path| path.is_file()).collect::<Vec<_>>();
                for path in found {
                    self.add(&path, 0)?;
                }
            }
            next.extend(self.objects.iter().skip(first_new).flat_map(needed));
        }
        Ok(())
    }
}

fn needed(object: &Object) -> impl Iterator<Item = String> {
    object.dynamic.needed.iter().map(abiaudit_elf::Name::to_text)
}

fn opened_by_name(opened: &Opened) -> Option<String> {
    match opened {
        Opened::Asked { name, .. } => Some(name.clone()),
        Opened::Global { .. } => None,
    }
}

/// Where the libraries lie that `ldconfig -p` lists.
fn default_directories() -> anyhow::Result<Vec<String>> {
    let output = Command::new("/sbin/ldconfig").arg("-p").output().context("ldconfig -p")?;
    let mut directories = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((directory, _)) = line.split_once(" => ").and_then(|(_, path)| path.rsplit_once('/')) else {
            continue;
        };
        if !directories.iter().any(|known| known == directory) {
            directories.push(directory.to_owned());
        }
    }
    Ok(directories)
}

/// Shared objects below the environment and the installation of Python, with the number of their distribution.
fn installed(python: &Path, prefix: &Path) -> anyhow::Result<Vec<(PathBuf, u32)>> {
    let environment = python.parent().and_then(Path::parent).context("Python in an environment")?;
    let mut groups: BTreeMap<String, u32> = BTreeMap::new();
    let mut found = Vec::new();
    for (root, is_wheels) in [(environment.join("lib"), true), (prefix.join("lib"), false)] {
        let mut directories = vec![root];
        while let Some(directory) = directories.pop() {
            let mut entries = fs::read_dir(&directory)?.collect::<Result<Vec<_>, _>>()?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                if entry.file_type()?.is_dir() {
                    if is_wheels || name != "site-packages" {
                        directories.push(path);
                    }
                } else if name.ends_with(".so") || name.contains(".so.") {
                    let group = if is_wheels { group(&path, &mut groups) } else { 0 };
                    found.push((path, group));
                }
            }
        }
    }
    Ok(found)
}

/// The first directory below site-packages, without `.libs`.
fn group(path: &Path, groups: &mut BTreeMap<String, u32>) -> u32 {
    let text = path.to_string_lossy();
    let below = text.split_once("/site-packages/").map_or("", |(_, below)| below);
    let first = below.split('/').next().unwrap_or_default();
    let next = groups.len() as u32 + 1;
    *groups.entry(first.trim_end_matches(".libs").to_owned()).or_insert(next)
}

/// Reads only what the parser asks for. `None` if it is not ELF.
fn read_object(path: &Path) -> anyhow::Result<Option<Object>> {
    const PASSES: usize = 16;
    let file = fs::File::open(path)?;
    let mut image = Image::empty(file.metadata()?.len());
    for _ in 0..PASSES {
        match Object::parse(&image, &Wants::default()) {
            Ok(Parsed::Complete(object)) => return Ok(Some(*object)),
            Ok(Parsed::Missing(ranges)) => {
                for range in ranges {
                    let mut bytes = vec![0; usize::try_from(range.end - range.start)?];
                    file.read_exact_at(&mut bytes, range.start)?;
                    image.insert(range.start, bytes);
                }
            }
            Err(abiaudit_elf::ParseError::NotElf) => return Ok(None),
            Err(error) => bail!("{}: {error}", path.display()),
        }
    }
    bail!("{}: more than {PASSES} passes", path.display())
}
