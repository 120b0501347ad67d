//! Plays a scenario: loads, then relocates, as the loader does.

use std::collections::HashMap;

use abiaudit_elf::{
    Dynamic, Identity, Name, Notes, Object, ObjectType, Relocations, Sections, Segments, Symbols, Symtab,
    Versions,
};

use crate::binding::process::Graph;
use crate::binding::rules::{self, Rules};
use crate::binding::{
    Bindings, Event, File, Load, Missing, Process, Program, Provider, Scenario, SystemLibrary, Target,
};
use crate::search::index::{Index, Member, Request, RequestKind, Role, Surroundings};
use crate::search::loading::{Asker, Loading, Served};
use crate::search::{Libc, Library};

/// Bound on the work of loading, in requests and needs followed: each `dlopen` walks its list.
const LOADING_STEPS_MAX: u64 = 50_000_000;
/// Where libraries that are no files are placed: a directory that no search path can name, because paths are normal.
const DESCRIBED: &str = "//described";

/// Bound on the work for all look-ups, in objects asked and hash chain entries seen. A process of 300 objects takes
/// some five million.
const STEPS_MAX: u64 = 200_000_000;

pub(crate) fn run(scenario: &Scenario<'_>) -> Process {
    run_bounded(scenario, STEPS_MAX)
}

fn run_bounded(scenario: &Scenario<'_>, steps_max: u64) -> Process {
    let stand_ins = stand_ins(scenario);
    let mut libraries: Vec<Library<'_>> = scenario.files.iter().map(|file| file.library).collect();
    libraries.extend(stand_ins.iter().map(|(path, object)| Library { path, object }));
    let mut directories = scenario.default_directories.to_vec();
    directories.push(DESCRIBED);
    let names = names(scenario);
    let surroundings = Surroundings { default_directories: &directories, requests: &names };
    let index = Index::new(&libraries, scenario.libc, surroundings);
    let mut simulation = Simulation::new(scenario, &index, &names, steps_max);
    simulation.start();
    for (number, event) in scenario.events.iter().enumerate() {
        simulation.event = Some(number);
        let Event::Dlopen { target, global, caller } = *event;
        simulation.dlopen(target, global, caller.and_then(|file| u32::try_from(file).ok()));
    }
    simulation.process
}

/// For each library of the system an object that has its name and needs, and no symbols, at a path of its own.
fn stand_ins(scenario: &Scenario<'_>) -> Vec<(String, Object)> {
    let program = match scenario.program {
        Program::File(file) => scenario.files.get(file),
        Program::Described(_) => None,
    };
    let Some(model) = program.or(scenario.files.first()) else { return Vec::new() };
    let stand_in = |library: &&dyn SystemLibrary| {
        let soname = library.soname();
        (format!("{DESCRIBED}/{soname}"), stand_in(model, *library))
    };
    scenario.system.iter().map(stand_in).collect()
}

fn stand_in(model: &File<'_>, library: &dyn SystemLibrary) -> Object {
    let identity = &model.library.object.identity;
    Object {
        identity: Identity { object_type: ObjectType::Shared, entry: 0, ..identity.clone() },
        segments: Segments::default(),
        interpreter: None,
        dynamic: Dynamic {
            present: true,
            needed: library.needed().iter().map(|name| Name::from(name.as_str())).collect(),
            soname: Some(Name::from(library.soname())),
            ..Dynamic::default()
        },
        symbols: Symbols::default(),
        versions: Versions::default(),
        relocations: Relocations::default(),
        notes: Notes::default(),
        sections: Sections::default(),
        symtab: Symtab::default(),
        debug_only: false,
        size: 0,
        problems: Vec::new(),
    }
}

/// Every name that is preloaded or opened, once.
fn names<'a>(scenario: &Scenario<'a>) -> Vec<&'a str> {
    let opened = scenario.events.iter().map(|Event::Dlopen { target, .. }| target);
    let targets = scenario.preload.iter().chain(opened);
    let mut names: Vec<&str> = targets
        .filter_map(|target| match target {
            Target::Name(name) => Some(*name),
            Target::File(_) => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

pub(crate) struct Simulation<'s, 'a, 'i> {
    pub(crate) scenario: &'s Scenario<'a>,
    pub(crate) rules: &'static dyn Rules,
    names: &'i [&'a str],
    loading: Loading<'i>,
    /// Where the names that musl serves itself lead.
    libc: Option<u32>,
    /// What a COPY relocation looks past.
    pub(crate) program: Option<u32>,
    event: Option<usize>,
    /// Per object: what it needs has been loaded.
    walked: Vec<bool>,
    pub(crate) relocated: Vec<bool>,
    pub(crate) global: Vec<u32>,
    pub(crate) in_global: Vec<bool>,
    /// Per object: in which list it was seen last.
    seen: Vec<u32>,
    lists: u32,
    /// Libraries of the system that are relocated, in order.
    pub(crate) system_in_use: Vec<u32>,
    /// Per file: it has a hash table, without which it has no definitions (`l_nbuckets` in glibc).
    pub(crate) searchable: Vec<bool>,
    /// `STB_GNU_UNIQUE` definitions by name.
    pub(crate) unique: HashMap<&'a [u8], Provider>,
    /// How much more work look-ups may be.
    pub(crate) steps_left: u64,
    pub(crate) process: Process,
}

impl<'s, 'a, 'i> Simulation<'s, 'a, 'i> {
    fn new(scenario: &'s Scenario<'a>, index: &'i Index, names: &'i [&'a str], steps_max: u64) -> Self {
        let objects = index.members.len();
        let is_searchable = |file: &File<'_>| has_hash_table(file.library.object);
        let graph = Graph {
            files: scenario.files.len() as u32,
            needs: vec![Vec::new(); objects],
            groups: scenario.files.iter().map(|file| file.group).collect(),
            initial: vec![false; objects],
        };
        Self {
            scenario,
            rules: rules::of(scenario.libc),
            names,
            loading: Loading::new(index),
            libc: musl_itself(scenario.libc, index),
            program: None,
            event: None,
            walked: vec![false; objects],
            relocated: vec![false; objects],
            global: Vec::new(),
            in_global: vec![false; objects],
            seen: vec![0; objects],
            lists: 0,
            system_in_use: Vec::new(),
            searchable: scenario.files.iter().map(is_searchable).collect(),
            unique: HashMap::new(),
            steps_left: steps_max,
            process: Process {
                loads: Vec::new(),
                global: Vec::new(),
                bindings: Bindings::new(scenario.files.len()),
                system_bindings: Vec::new(),
                missing: Vec::new(),
                unbound: Vec::new(),
                graph,
            },
        }
    }

    /// The program, what is preloaded, and all that they need: the global scope.
    fn start(&mut self) {
        self.loading.begin();
        let roots: Vec<u32> = match self.scenario.program {
            Program::File(file) => vec![file as u32],
            Program::Described(libraries) => {
                let files = self.scenario.files.len();
                libraries.iter().map(|&library| files.saturating_add(library) as u32).collect()
            }
        };
        let mut roots = roots.into_iter().filter(|&id| (id as usize) < self.walked.len());
        let Some(program) = roots.next() else { return };
        let others: Vec<u32> = roots.collect();
        self.program = Some(program);
        self.loading.load_program(program);
        self.record_load(program, None);
        let mut list = vec![program];
        for &target in self.scenario.preload {
            list.extend(self.open(target, None));
        }
        for library in others {
            if self.loading.loaded_as(library).is_none() {
                self.loading.load(library, None, None);
                self.record_load(library, None);
            }
            list.push(library);
        }
        let list = self.list_of(list);
        for &object in &list {
            self.process.graph.initial[object as usize] = true;
        }
        self.make_global(&list);
        self.relocate(&list);
    }

    fn dlopen(&mut self, target: Target<'a>, global: bool, caller: Option<u32>) {
        let Some(root) = self.open(target, caller) else { return };
        let list = self.list_of(vec![root]);
        self.relocate(&list);
        if global {
            self.make_global(&list);
        }
    }

    /// Loads the target, or finds that it is loaded.
    fn open(&mut self, target: Target<'a>, caller: Option<u32>) -> Option<u32> {
        let index = self.loading.index;
        let (found, name) = match target {
            Target::File(file) => {
                let path = self.scenario.files.get(file)?.library.path;
                let served = self.loading.open_path(file as u32);
                (self.take(served, None), path)
            }
            Target::Name(name) => {
                let request = index.requests.get(self.names.binary_search(&name).ok()?)?;
                let caller = caller.filter(|&file| self.is_loaded(file));
                (self.request(Asker::Call(caller), request), name)
            }
        };
        if found.is_none() {
            self.miss(None, name);
        }
        found
    }

    fn is_loaded(&self, object: u32) -> bool {
        (object as usize) < self.walked.len() && self.loading.loaded_as(object) == Some(object)
    }

    /// The roots and all that they need, breadth first, each once (glibc `_dl_map_object_deps`, musl
    /// `extend_bfs_deps`). Loads what is not loaded.
    fn list_of(&mut self, roots: Vec<u32>) -> Vec<u32> {
        self.lists += 1;
        let mut list = Vec::new();
        for root in roots {
            self.enlist(root, &mut list);
        }
        let mut next = 0;
        while let Some(&object) = list.get(next) {
            next += 1;
            if self.is_exhausted() {
                break;
            }
            self.load_needs(object);
            for position in 0..self.process.graph.needs[object as usize].len() {
                let needed = self.process.graph.needs[object as usize][position];
                self.loading.steps += 1;
                self.enlist(needed, &mut list);
            }
        }
        list
    }

    /// So much was loaded that nothing more will be bound.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.loading.steps > LOADING_STEPS_MAX
    }

    fn enlist(&mut self, object: u32, list: &mut Vec<u32>) {
        let seen = &mut self.seen[object as usize];
        if *seen != self.lists {
            *seen = self.lists;
            list.push(object);
        }
    }

    /// Loads what an object needs, once.
    fn load_needs(&mut self, object: u32) {
        if std::mem::replace(&mut self.walked[object as usize], true) {
            return;
        }
        let index = self.loading.index;
        for request in &index.members[object as usize].requests {
            if self.is_exhausted() {
                return;
            }
            match self.request(Asker::Object(object), request) {
                Some(needed) => self.process.graph.needs[object as usize].push(needed),
                // musl serves its own names even where its file is not in the set.
                None if matches!(request.kind, RequestKind::Empty | RequestKind::Libc) => {}
                None => self.miss(Some(object), &request.text),
            }
        }
    }

    fn request(&mut self, asker: Asker, request: &Request) -> Option<u32> {
        let from = match asker {
            Asker::Object(from) => Some(from),
            Asker::Call(_) => None,
        };
        let served = match (&request.kind, self.libc) {
            (RequestKind::Libc, Some(libc)) => self.loading.open_path(libc),
            _ => self.loading.request(asker, request),
        };
        self.take(served, from)
    }

    /// The object that served; if it was loaded for that, it is recorded.
    fn take(&mut self, served: Served, loader: Option<u32>) -> Option<u32> {
        if let Some(object) = served.newly_loaded() {
            self.record_load(object, loader);
            return Some(object);
        }
        match served {
            Served::AlreadyLoaded(object) => Some(object),
            _ => None,
        }
    }

    fn record_load(&mut self, object: u32, loader: Option<u32>) {
        let graph = &self.process.graph;
        let load = Load {
            object: graph.id(object),
            loader: loader.map(|loader| graph.id(loader)),
            event: self.event,
        };
        self.process.loads.push(load);
    }

    fn miss(&mut self, from: Option<u32>, name: &str) {
        let from = from.map(|from| self.process.graph.id(from));
        self.process.missing.push(Missing { from, name: name.to_owned(), event: self.event });
    }

    fn make_global(&mut self, list: &[u32]) {
        for &object in list {
            if !std::mem::replace(&mut self.in_global[object as usize], true) {
                self.global.push(object);
                self.process.global.push(self.process.graph.id(object));
            }
        }
    }
}

fn has_hash_table(object: &Object) -> bool {
    const DT_HASH: i64 = 4;
    const DT_GNU_HASH: i64 = 0x6fff_fef5;
    object.dynamic.entries.iter().any(|(tag, _)| matches!(*tag, DT_HASH | DT_GNU_HASH))
}

/// The member that is musl: both its loader and its libc.
fn musl_itself(libc: Libc, index: &Index) -> Option<u32> {
    let is_it = |member: &&Member| member.role != Role::Inert && member.is_musl();
    (libc == Libc::Musl).then(|| index.members.iter().find(is_it).map(|member| member.file)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use abiaudit_elf::Wants;
    use abiaudit_elf::test_support::{Arch, ElfWriter};

    #[test]
    fn says_what_it_did_not_get_to() {
        let symbols = (0..10).map(|number| format!("f{number}"));
        let writer = symbols.fold(ElfWriter::new(Arch::X86_64), ElfWriter::undefined);
        let bytes = writer.build().into_bytes();
        let Ok(object) = Object::from_bytes(&bytes, &Wants::default()) else { panic!("written to be read") };
        let library = Library { path: "/a.so", object: &object };
        let files = [File { library, group: 0 }];
        let scenario = Scenario {
            libc: Libc::Glibc,
            files: &files,
            system: &[],
            default_directories: &[],
            program: Program::File(0),
            preload: &[],
            events: &[],
        };
        assert_eq!(run_bounded(&scenario, 9).unbound, [crate::binding::ObjectId::File(0)]);
        assert_eq!(run_bounded(&scenario, 1000).unbound, []);
        assert_eq!(run_bounded(&scenario, 1000).bindings.len(), 10);
    }
}
