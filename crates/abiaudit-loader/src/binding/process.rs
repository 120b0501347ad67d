//! A simulated process: what is loaded, in which order, and who serves whom.

use crate::binding::simulation;
use crate::binding::{Binding, Bindings, ObjectId, Provider, Scenario, SystemBinding};

/// A simulated process. Nothing in it borrows from the scenario; symbol names are those of the scenario's files.
#[derive(Debug, Clone)]
pub struct Process {
    /// Every object, in the order of loading.
    pub loads: Vec<Load>,
    /// The global scope at the end.
    pub global: Vec<ObjectId>,
    /// Who serves whom.
    pub bindings: Bindings,
    /// Who serves the libraries of the system, in the order of relocation.
    pub system_bindings: Vec<SystemBinding>,
    /// What was asked for and not found.
    pub missing: Vec<Missing>,
    /// Objects that were loaded but not bound, because the set takes more work than any real one does.
    pub unbound: Vec<ObjectId>,
    pub(crate) graph: Graph,
}

/// An object that was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The object.
    pub object: ObjectId,
    /// Who needed it first; `None` for the program, for what is preloaded and for what was opened.
    pub loader: Option<ObjectId>,
    /// The event that loaded it; `None` for what is there from the start.
    pub event: Option<usize>,
}

/// A library that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Who needs it; `None` if it was to be preloaded or opened.
    pub from: Option<ObjectId>,
    /// The name that was asked for.
    pub name: String,
    /// During which event; `None` at the start.
    pub event: Option<usize>,
}

/// A reference that is bound to something else than what its object was built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interposition<'p> {
    /// The reference.
    pub binding: &'p Binding,
    /// In what way it went astray.
    pub kind: InterpositionKind,
    /// The provider belongs to another group (wheel). Within a wheel most are vague linkage: inline functions and
    /// templates that several of its objects define alike.
    pub leaves_group: bool,
}

/// How a reference went astray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterpositionKind {
    /// The object has a definition of its own, and another one serves.
    Overridden,
    /// The provider is none of what the object needs, directly or not, nor part of the process from its start.
    NotNeeded,
}

/// Who needs whom. Objects are numbered: files first, then libraries of the system.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub(crate) files: u32,
    /// Per object.
    pub(crate) needs: Vec<Vec<u32>>,
    /// Per file.
    pub(crate) groups: Vec<u32>,
    /// Per object: there from the start.
    pub(crate) initial: Vec<bool>,
}

impl Process {
    /// Simulates a process.
    ///
    /// Time and memory are bounded: in a set that is made to be slow, objects whose turn does not come are listed in
    /// [`Process::unbound`].
    pub fn run(scenario: &Scenario<'_>) -> Self {
        simulation::run(scenario)
    }

    /// References that leave the object or the wheel that they were built for, by file and symbol index.
    ///
    /// Time is bounded: in a set that is made to be slow, [`InterpositionKind::NotNeeded`] is not found any more at some
    /// point.
    pub fn interpositions(&self) -> Vec<Interposition<'_>> {
        let mut reach = Reachable::new(&self.graph);
        let mut found = Vec::new();
        for file in 0..self.graph.files {
            for binding in self.bindings.of(file) {
                let Some(provider) = binding.provider.object() else { continue };
                if provider == ObjectId::File(file) {
                    continue;
                }
                let kind = if binding.own_definition {
                    InterpositionKind::Overridden
                } else if !reach.needs(file, self.graph.number(provider)) {
                    InterpositionKind::NotNeeded
                } else {
                    continue;
                };
                let leaves_group = self.graph.group(provider) != self.graph.group(ObjectId::File(file));
                found.push(Interposition { binding, kind, leaves_group });
            }
        }
        found
    }

    /// References that stop the process: nothing serves them and they are not weak.
    pub fn fatal(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.unresolved().filter(|b| b.provider == Provider::Unresolved { weak: false })
    }
}

impl Graph {
    pub(crate) fn id(&self, number: u32) -> ObjectId {
        match number.checked_sub(self.files) {
            Some(library) => ObjectId::System(library),
            None => ObjectId::File(number),
        }
    }

    pub(crate) fn number(&self, id: ObjectId) -> u32 {
        match id {
            ObjectId::File(file) => file,
            ObjectId::System(library) => self.files.saturating_add(library),
        }
    }

    /// Libraries of the system are in no wheel.
    fn group(&self, id: ObjectId) -> Option<u32> {
        match id {
            ObjectId::File(file) => self.groups.get(file as usize).copied(),
            ObjectId::System(_) => None,
        }
    }
}

/// Bound on the work of [`Reachable`], in needs followed.
const STEPS_MAX: usize = 50_000_000;

/// What one object needs, directly or not; computed for one object at a time.
struct Reachable<'g> {
    graph: &'g Graph,
    steps: usize,
    /// For which object `stamps` holds.
    of: Option<u32>,
    /// Per object: reached in which round.
    stamps: Vec<u32>,
    round: u32,
}

impl<'g> Reachable<'g> {
    fn new(graph: &'g Graph) -> Self {
        Self { graph, steps: 0, of: None, stamps: vec![0; graph.needs.len()], round: 0 }
    }

    fn needs(&mut self, from: u32, object: u32) -> bool {
        if self.graph.initial.get(object as usize).copied().unwrap_or(false) {
            return true;
        }
        if self.steps > STEPS_MAX {
            return true;
        }
        if self.of != Some(from) {
            self.walk(from);
        }
        self.stamps.get(object as usize) == Some(&self.round)
    }

    fn walk(&mut self, from: u32) {
        self.of = Some(from);
        self.round += 1;
        let mut waiting = vec![from];
        while let Some(object) = waiting.pop() {
            let Some(stamp) = self.stamps.get_mut(object as usize) else { continue };
            if *stamp != self.round {
                *stamp = self.round;
                let needs = self.graph.needs.get(object as usize).map_or(&[][..], Vec::as_slice);
                self.steps += needs.len();
                waiting.extend(needs);
            }
        }
    }
}
