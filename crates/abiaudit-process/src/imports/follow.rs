//! Follows imports through the sources of a site, depth first as Python does, and collects the extension modules that
//! get opened.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use abiaudit_scan::{Limits, Reader};

use super::scan::{Import, Statement, imports};
use super::{is_identifier, module_of};
use crate::plan::{Cause, Opened, Opening, Plan};
use crate::preloads::preloads;
use crate::site::Site;

/// Bound on the modules that are followed; the largest package has some ten thousand.
const MODULES_MAX: usize = 100_000;
/// Bound on the modules that statements ask for, found or not; the largest packages take some hundred thousand.
const STEPS_MAX: usize = 5_000_000;
/// Bound on a source in bytes.
const SOURCE_MAX: u64 = 8 << 20;

/// What following one name gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// The module is in the inputs.
    Found,
    /// It is not.
    Absent,
}

/// Follows imports; modules stay imported from one to the next, as in a process.
pub struct Follower<'f, 's> {
    site: &'f Site<'s>,
    /// Extension modules by dotted name; of several the one that Python would take.
    extensions: BTreeMap<String, usize>,
    readers: BTreeMap<usize, Reader>,
    imported: HashSet<String>,
    unreadable: BTreeSet<String>,
    steps: usize,
    plan: Plan,
}

/// Where a module is.
enum Place {
    /// A source; its path below `site-packages`, and whether it is a package.
    Source(String, bool),
    Extension(usize),
    /// A directory without `__init__.py` (PEP 420).
    Namespace,
}

/// A module that is being run.
struct Frame {
    module: String,
    /// What relative imports start from.
    package: String,
    source: String,
    statements: Vec<Statement>,
    next: usize,
    /// What the current statement still asks for, and whether its absence makes the `try` fail.
    waiting: VecDeque<(String, bool)>,
    failed: BTreeSet<u32>,
}

impl<'f, 's> Follower<'f, 's> {
    /// Nothing is imported yet.
    pub fn new(site: &'f Site<'s>) -> Self {
        let mut extensions = BTreeMap::<String, usize>::new();
        for (position, file) in site.files.iter().enumerate() {
            let Some(module) = module_of(file.short_path()) else { continue };
            let rank = |file: usize| site.files.get(file).map(|file| rank(file.member.base_name()));
            let best = extensions.entry(module).or_insert(position);
            if rank(position) > rank(*best) {
                *best = position;
            }
        }
        let (readers, imported, unreadable) = (BTreeMap::new(), HashSet::new(), BTreeSet::new());
        Self { site, extensions, readers, imported, unreadable, steps: 0, plan: Plan::default() }
    }

    /// Imports a dotted name and all that its modules import.
    pub fn import(&mut self, name: &str) -> Followed {
        if self.place(name).is_none() {
            return Followed::Absent;
        }
        let mut stack = vec![Frame::of_user(name)];
        while let Some(frame) = stack.last_mut() {
            if let Some((module, matters)) = frame.waiting.pop_front() {
                let cause = frame.cause(&module);
                let within = frame.current().and_then(|statement| statement.within);
                match self.begin(&module, cause) {
                    Begun::Run(next) => stack.push(next),
                    Begun::Absent if matters => frame.failed.extend(within),
                    Begun::Done | Begun::Absent => {}
                }
                continue;
            }
            match frame.statements.get(frame.next).filter(|_| self.steps < STEPS_MAX) {
                Some(statement) => {
                    frame.next += 1;
                    if statement.only_if_failed.iter().all(|number| frame.failed.contains(number)) {
                        frame.waiting = self.requests(&statement.import, &frame.package);
                    }
                }
                None => {
                    let module = std::mem::take(&mut frame.module);
                    stack.pop();
                    self.preload(|preload| preload.is_after(&module));
                }
            }
        }
        Followed::Found
    }

    /// All that was opened.
    pub fn finish(mut self) -> Plan {
        if !self.unreadable.is_empty() {
            let names: Vec<&str> = self.unreadable.iter().map(String::as_str).collect();
            self.plan.notes.push(format!("not read, so not followed: {}", names.join(", ")));
        }
        if self.imported.len() >= MODULES_MAX || self.steps >= STEPS_MAX {
            self.plan.notes.push("there are more import statements than are followed".to_owned());
        }
        self.plan
    }

    /// How many files are opened so far.
    pub fn openings(&self) -> usize {
        self.plan.openings.len()
    }

    /// How many modules were imported, native and not.
    pub fn modules(&self) -> usize {
        self.imported.len()
    }

    fn preload(&mut self, wanted: impl Fn(&crate::Preload) -> bool) {
        for preload in preloads().iter().filter(|preload| wanted(preload)) {
            self.plan.preload(self.site, preload);
        }
    }

    /// Starts a module unless it is imported already.
    fn begin(&mut self, module: &str, cause: Cause) -> Begun {
        if self.imported.contains(module) {
            return Begun::Done;
        }
        let Some(place) = self.place(module) else { return Begun::Absent };
        if self.imported.len() >= MODULES_MAX {
            return Begun::Done;
        }
        self.imported.insert(module.to_owned());
        self.preload(|preload| preload.is_before(module));
        match place {
            Place::Namespace => Begun::Done,
            Place::Extension(file) => {
                let opened = Opened::File(file);
                self.plan.openings.push(Opening { opened, global: false, caller: None, cause });
                self.preload(|preload| preload.is_after(module));
                Begun::Done
            }
            Place::Source(source, is_package) => {
                let statements = self.read(&source).map(|text| imports(&text)).unwrap_or_default();
                let parent = module.rsplit_once('.').map_or("", |(parent, _)| parent);
                Begun::Run(Frame {
                    module: module.to_owned(),
                    package: if is_package { module } else { parent }.to_owned(),
                    source,
                    statements,
                    next: 0,
                    waiting: VecDeque::new(),
                    failed: BTreeSet::new(),
                })
            }
        }
    }

    /// The modules that a statement asks for, and whether their absence is an `ImportError`: a name that is no submodule
    /// may still be an attribute.
    fn requests(&mut self, import: &Import, package: &str) -> VecDeque<(String, bool)> {
        let mut requests = VecDeque::new();
        match import {
            Import::Modules(modules) => {
                for module in modules {
                    requests.extend(with_parents(module).into_iter().map(|module| (module, true)));
                }
            }
            Import::From { level, module, names } => {
                let Some(base) = absolute(*level, module, package) else { return requests };
                requests.extend(with_parents(&base).into_iter().map(|module| (module, true)));
                self.steps = self.steps.saturating_add(names.len());
                let submodules = names.iter().map(|name| format!("{base}.{name}"));
                requests
                    .extend(submodules.filter(|name| self.place(name).is_some()).map(|name| (name, false)));
            }
        }
        self.steps = self.steps.saturating_add(requests.len());
        requests
    }

    /// Where Python's path finder finds a module: a package before a module, native code before a source
    /// (`importlib._bootstrap_external.FileFinder`).
    fn place(&self, module: &str) -> Option<Place> {
        if !module.split('.').all(is_identifier) {
            return None;
        }
        let path = module.replace('.', "/");
        let is_there = |path: &str| self.site.member_below(path).is_some();
        if let Some(&file) = self.extensions.get(&format!("{module}.__init__")) {
            return Some(Place::Extension(file));
        }
        let init = format!("{path}/__init__.py");
        if is_there(&init) {
            return Some(Place::Source(init, true));
        }
        if let Some(&file) = self.extensions.get(module) {
            return Some(Place::Extension(file));
        }
        let source = format!("{path}.py");
        if is_there(&source) {
            return Some(Place::Source(source, false));
        }
        self.site.paths_with(&format!("{path}/")).next().map(|_| Place::Namespace)
    }

    fn read(&mut self, path: &str) -> Option<String> {
        let (subject, name) = self.site.member_below(path)?;
        if let std::collections::btree_map::Entry::Vacant(entry) = self.readers.entry(subject) {
            match self.site.subjects.get(subject)?.reader(&Limits::default()) {
                Ok(reader) => drop(entry.insert(reader)),
                Err(error) => {
                    self.unreadable.insert(format!("{path} ({})", error.reason()));
                    return None;
                }
            }
        }
        let content = self.readers.get_mut(&subject)?.read(name, SOURCE_MAX);
        match content {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => {
                self.unreadable.insert(format!("{path} ({error})"));
                None
            }
        }
    }
}

/// What became of a request.
enum Begun {
    Done,
    Run(Frame),
    Absent,
}

impl Frame {
    /// What the user asks for.
    fn of_user(name: &str) -> Self {
        Self {
            module: String::new(),
            package: String::new(),
            source: String::new(),
            statements: Vec::new(),
            next: 0,
            waiting: with_parents(name).into_iter().map(|module| (module, false)).collect(),
            failed: BTreeSet::new(),
        }
    }

    fn current(&self) -> Option<&Statement> {
        self.statements.get(self.next.checked_sub(1)?)
    }

    fn cause(&self, module: &str) -> Cause {
        let at = self.current().map(|statement| format!("{}:{}", self.source, statement.line));
        Cause::Import { module: module.to_owned(), at }
    }
}

/// `a.b.c` as `a`, `a.b`, `a.b.c`.
fn with_parents(module: &str) -> Vec<String> {
    let dots = module.match_indices('.').map(|(at, _)| at).chain([module.len()]);
    dots.filter_map(|end| module.get(..end)).map(str::to_owned).collect()
}

/// The absolute name of a module that is named from a package (`importlib._bootstrap._resolve_name`).
fn absolute(level: usize, module: &str, package: &str) -> Option<String> {
    if level == 0 {
        return Some(module.to_owned());
    }
    let mut base = package;
    for _ in 1..level {
        base = base.rsplit_once('.')?.0;
    }
    match (base.is_empty(), module.is_empty()) {
        (true, _) => None,
        (false, true) => Some(base.to_owned()),
        (false, false) => Some(format!("{base}.{module}")),
    }
}

/// Which of several files Python would take for a module: one for its own version before `abi3` before plain `.so`.
/// Of files for several versions the newest is taken.
fn rank(base: &str) -> (u8, u32) {
    let suffix = base.split_once('.').map_or("", |(_, suffix)| suffix);
    match suffix.strip_prefix("cpython-") {
        Some(version) => {
            let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
            (2, digits.parse().unwrap_or(0))
        }
        None => (u8::from(suffix == "abi3.so"), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names() {
        assert_eq!(absolute(0, "a.b", "p"), Some("a.b".to_owned()));
        assert_eq!(absolute(1, "", "p.q"), Some("p.q".to_owned()));
        assert_eq!(absolute(2, "r", "p.q"), Some("p.r".to_owned()));
        assert_eq!(absolute(3, "r", "p.q"), None);
        assert_eq!(absolute(1, "r", ""), None);
        assert_eq!(with_parents("a.b.c"), ["a", "a.b", "a.b.c"]);
    }

    #[test]
    fn the_newest_python_wins() {
        assert!(rank("m.cpython-312-x86_64-linux-gnu.so") > rank("m.cpython-39-x86_64-linux-gnu.so"));
        assert!(rank("m.cpython-39-x86_64-linux-gnu.so") > rank("m.abi3.so"));
        assert!(rank("m.abi3.so") > rank("m.so"));
    }
}
