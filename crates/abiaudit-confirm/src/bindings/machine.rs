//! The files that a Python process on this machine can load, and what the names in a log of ld.so stand for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_elf::{Image, Object, Parsed, Wants};
use abiaudit_loader::binding::{Event, File, Target};
use abiaudit_loader::search::Library;
use abiaudit_process::trace::{Log, Opened};

use super::Key;

/// The files of the machine cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A file or directory.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An ELF file is not as it should be.
    #[error("{}: {source}", path.display())]
    Elf {
        /// Which.
        path: PathBuf,
        /// Why.
        source: abiaudit_elf::ParseError,
    },
    /// A path with bytes that are no UTF-8, a Python outside of a `bin` directory, an ELF file without end.
    #[error("{}: {why}", path.display())]
    Odd {
        /// Which.
        path: PathBuf,
        /// What is odd.
        why: &'static str,
    },
}

/// Files with their objects. A file that has two paths is there twice with one object.
#[derive(Debug)]
pub struct Machine {
    pub(super) paths: Vec<String>,
    /// Per path: position of its object.
    object_of: Vec<usize>,
    objects: Vec<Object>,
    /// Per path: the distribution.
    groups: Vec<u32>,
    /// Files without links, and the first path of each.
    real: BTreeMap<PathBuf, usize>,
    pub(super) program: usize,
    pub(super) default_directories: Vec<String>,
    /// Answers of `find`.
    known: RefCell<BTreeMap<String, Option<usize>>>,
}

/// Directories of Python's installation that an environment does not see.
const INSTALLED: [&str; 2] = ["site-packages", "dist-packages"];

/// Number of the first distribution that is no wheel.
const FIRST_MODULE_GROUP: u32 = 1 << 16;

impl Machine {
    /// Reads Python, all that is installed in its environment, and what these need of the system. The files in each of
    /// `directories` are read too; those directly in it are taken to be distributions of their own.
    ///
    /// # Errors
    /// [`MachineError`] if a file cannot be read.
    pub fn read(python: &Path, directories: &[PathBuf], log: &Log) -> Result<Self, MachineError> {
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
        let program = python.canonicalize().map_err(at(python))?;
        machine.add(&program, 0)?;
        for (path, group) in installed(python, &program)? {
            machine.add(&path, group)?;
        }
        let mut group = FIRST_MODULE_GROUP;
        for directory in directories {
            for (path, below) in libraries(directory, &[])? {
                // What lies deeper belongs to what is beside it.
                group += u32::from(below == 0);
                machine.add(&path, group)?;
            }
        }
        machine.add_system(log)?;
        Ok(machine)
    }

    /// For the simulation.
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
    pub(super) fn is_opened_by_python(&self, log: &Log, event: usize) -> bool {
        let Some(Opened::Asked { caller, .. }) = log.opened.get(event) else { return false };
        let name = caller.rsplit('/').next().unwrap_or_default();
        self.find(caller) == Some(self.program)
            || ["libpython", "_ctypes."].iter().any(|python| name.starts_with(python))
    }

    /// Per reference the objects that ld.so bound it to. The vdso is left out.
    pub(super) fn bindings(&self, log: &Log) -> BTreeMap<Key, Vec<usize>> {
        let mut all: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
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
    pub(super) fn file_of(&self, position: usize) -> usize {
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

    fn add(&mut self, path: &Path, group: u32) -> Result<(), MachineError> {
        let text = path.to_str().ok_or_else(|| odd(path, "the path is no UTF-8"))?.to_owned();
        let real = path.canonicalize().map_err(at(path))?;
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
    fn add_system(&mut self, log: &Log) -> Result<(), MachineError> {
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
fn default_directories() -> Result<Vec<String>, MachineError> {
    let program = Path::new("/sbin/ldconfig");
    let output = Command::new(program).arg("-p").output().map_err(at(program))?;
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
fn installed(python: &Path, program: &Path) -> Result<Vec<(PathBuf, u32)>, MachineError> {
    let above = |path: &Path| match path.parent().and_then(Path::parent) {
        Some(directory) => Ok(directory.join("lib")),
        None => Err(odd(path, "Python is not in a bin directory")),
    };
    let mut groups: BTreeMap<String, u32> = BTreeMap::new();
    let mut found = Vec::new();
    for (path, _) in libraries(&above(python)?, &[])? {
        let group = group(&path, &mut groups);
        found.push((path, group));
    }
    // Beside Python's own directories, the lib directory may have all of the system.
    let lib = above(program)?;
    for entry in entries(&lib)? {
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("python") && entry.is_dir() {
            found.extend(libraries(&entry, &INSTALLED)?.into_iter().map(|(path, _)| (path, 0)));
        } else if name.starts_with("libpython") && is_library(&name) {
            found.push((entry, 0));
        }
    }
    Ok(found)
}

/// Shared objects below a directory by name, and how deep they lie. Directories with the names in `without` are left
/// out.
fn libraries(root: &Path, without: &[&str]) -> Result<Vec<(PathBuf, usize)>, MachineError> {
    let mut found = Vec::new();
    let mut directories = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        for path in entries(&directory)? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // A link to a directory leads out, or in circles.
            if path.is_dir() && !path.is_symlink() {
                if !without.contains(&name.as_str()) {
                    directories.push((path, depth + 1));
                }
            } else if is_library(&name) {
                found.push((path, depth));
            }
        }
    }
    Ok(found)
}

fn is_library(name: &str) -> bool {
    name.ends_with(".so") || name.contains(".so.")
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, MachineError> {
    let entries = fs::read_dir(directory).map_err(at(directory))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(at(directory))?;
    paths.sort();
    Ok(paths)
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
fn read_object(path: &Path) -> Result<Option<Object>, MachineError> {
    const PASSES: usize = 16;
    let file = fs::File::open(path).map_err(at(path))?;
    let mut image = Image::empty(file.metadata().map_err(at(path))?.len());
    for _ in 0..PASSES {
        match Object::parse(&image, &Wants::default()) {
            Ok(Parsed::Complete(object)) => return Ok(Some(*object)),
            Ok(Parsed::Missing(ranges)) => {
                for range in ranges {
                    let length = usize::try_from(range.end.saturating_sub(range.start));
                    let mut bytes = vec![0; length.map_err(|_| odd(path, "too long"))?];
                    file.read_exact_at(&mut bytes, range.start).map_err(at(path))?;
                    image.insert(range.start, bytes);
                }
            }
            Err(abiaudit_elf::ParseError::NotElf) => return Ok(None),
            Err(source) => return Err(MachineError::Elf { path: path.to_owned(), source }),
        }
    }
    Err(odd(path, "too many passes to read it"))
}

fn at(path: &Path) -> impl Fn(io::Error) -> MachineError {
    move |source| MachineError::Io { path: path.to_owned(), source }
}

fn odd(path: &Path, why: &'static str) -> MachineError {
    MachineError::Odd { path: path.to_owned(), why }
}
