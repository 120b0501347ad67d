//! Relocation: binds the references of what was loaded.

use abiaudit_elf::{Object, RelocationUse, Symbol, gnu_hash};

use crate::binding::rules::{Reach, Wanted, WantedVersion, version};
use crate::binding::simulation::Simulation;
use crate::binding::{Binding, Provided, Provider, SystemBinding, Via};

/// A definition that a look-up found.
#[derive(Clone, Copy)]
struct Found {
    provider: Provider,
    unique: bool,
    via: Via,
}

/// Which reference of which object.
#[derive(Clone, Copy)]
struct Reference<'o> {
    object: u32,
    contents: &'o Object,
    index: u32,
    symbol: &'o Symbol,
    is_copy: bool,
}

/// Whose look-up it is.
#[derive(Clone, Copy)]
struct Asking {
    object: u32,
    /// `DF_SYMBOLIC`
    symbolic: bool,
    is_copy: bool,
}

impl<'a> Simulation<'_, 'a, '_> {
    /// Binds all objects of a list that are not bound yet; `list` is their local scope.
    pub(crate) fn relocate(&mut self, list: &[u32]) {
        if list.iter().all(|&object| self.relocated[object as usize]) {
            return;
        }
        for object in self.relocation_order(list) {
            if !std::mem::replace(&mut self.relocated[object as usize], true) {
                self.bind(object, list);
            }
        }
    }

    /// What an object needs comes before it (`_dl_sort_maps_dfs` of glibc elf/dl-sort-maps.c, since 2.35, read from its
    /// end as `dl_open_worker_begin` does). Matters only for which `STB_GNU_UNIQUE` definition is found first, and for
    /// that only if the objects of one list have different scopes (`DF_SYMBOLIC`).
    fn relocation_order(&self, list: &[u32]) -> Vec<u32> {
        let needs = &self.process.graph.needs;
        let mut waiting: std::collections::BTreeSet<u32> = list.iter().copied().collect();
        let mut order = Vec::with_capacity(list.len());
        for &start in list.iter().rev() {
            if !waiting.remove(&start) {
                continue;
            }
            // Objects being visited, each with how many of its needs are done.
            let mut path = vec![(start, 0)];
            while let Some((object, done)) = path.last_mut() {
                match needs[*object as usize].get(*done) {
                    Some(&needed) => {
                        *done += 1;
                        if waiting.remove(&needed) {
                            path.push((needed, 0));
                        }
                    }
                    None => {
                        order.push(*object);
                        path.pop();
                    }
                }
            }
        }
        // The first of the list comes last, even in a cycle.
        if let Some(root) = list.first() {
            order.retain(|object| object != root);
            order.push(*root);
        }
        order
    }

    fn bind(&mut self, object: u32, list: &[u32]) {
        let Some(file) = self.scenario.files.get(object as usize) else {
            self.bind_described(object, list);
            self.system_in_use.push(object);
            return;
        };
        let contents: &'a Object = file.library.object;
        let mut bindings = Vec::new();
        for (index, symbol) in (1..).zip(contents.symbols.iter()) {
            if symbol.uses.is_empty() || symbol.binding() == abiaudit_elf::Binding::Local {
                continue;
            }
            if self.steps_left == 0 || self.is_exhausted() {
                self.process.unbound.push(self.process.graph.id(object));
                return;
            }
            let is_copy = symbol.uses.contains(RelocationUse::COPY);
            let reference = Reference { object, contents, index, symbol, is_copy };
            let (provider, via) = self.resolve(reference, list);
            let own_definition = !symbol.is_undefined() && !is_copy;
            bindings.push(Binding { file: object, symbol: index, own_definition, provider, via });
        }
        self.process.bindings.add(object, bindings);
    }

    /// A library that is no file: the references that it is known to make.
    fn bind_described(&mut self, object: u32, list: &[u32]) {
        let number = object - self.scenario.files.len() as u32;
        let Some(library) = self.scenario.system.get(number as usize) else { return };
        let asking = Asking { object, symbolic: false, is_copy: false };
        for (reference, asked) in (0..).zip(library.references()) {
            if self.steps_left == 0 || self.is_exhausted() {
                self.process.unbound.push(self.process.graph.id(object));
                return;
            }
            let name = asked.symbol.as_bytes();
            let version = asked.version.map(|version| WantedVersion::new(version.as_bytes()));
            let wanted = Wanted { name, hash: gnu_hash(name), version };
            let (provider, via) = match self.look_up(asking, &wanted, list) {
                Some(found) if found.unique => {
                    let provider = self.first_unique(name, found.provider);
                    (*self.unique.entry(name).or_insert(provider), Via::Unique)
                }
                Some(found) => (found.provider, found.via),
                None => (Provider::Unresolved { weak: true }, Via::Nothing),
            };
            let binding = SystemBinding { library: number, reference, provider, via };
            self.process.system_bindings.push(binding);
        }
    }

    fn resolve(&mut self, reference: Reference<'a>, list: &[u32]) -> (Provider, Via) {
        let itself = Provider::File { file: reference.object, symbol: reference.index };
        let reach = self.rules.reach(reference.symbol);
        if reach == Reach::Itself {
            return (itself, Via::Itself);
        }
        let name = reference.contents.symbols.name(reference.symbol);
        let wanted =
            Wanted { name, hash: gnu_hash(name), version: version(reference.contents, reference.symbol) };
        let asking = Asking {
            object: reference.object,
            symbolic: reference.contents.dynamic.symbolic && Some(reference.object) != self.program,
            is_copy: reference.is_copy,
        };
        let Some(found) = self.look_up(asking, &wanted, list) else {
            return (Provider::Unresolved { weak: reference.symbol.is_weak() }, Via::Nothing);
        };
        let found = if found.unique { self.unique(name, reference, found) } else { found };
        if reach == Reach::ItselfIfAny {
            return (itself, Via::Itself);
        }
        (found.provider, found.via)
    }

    /// The first definition in the scopes of an object.
    fn look_up(&mut self, asking: Asking, wanted: &Wanted<'_>, list: &[u32]) -> Option<Found> {
        if asking.symbolic
            && self.rules.has_symbolic()
            && let Some(found) = self.ask(asking.object, wanted, Via::Itself)
        {
            return Some(found);
        }
        let skipped = self.program.filter(|_| asking.is_copy);
        for position in 0..self.global.len() {
            let object = self.global[position];
            if Some(object) != skipped
                && let Some(found) = self.ask(object, wanted, Via::Global)
            {
                return Some(found);
            }
        }
        for &object in list {
            // What is in the global scope was asked above.
            if !self.in_global[object as usize]
                && let Some(found) = self.ask(object, wanted, Via::Local)
            {
                return Some(found);
            }
        }
        None
    }

    fn ask(&mut self, object: u32, wanted: &Wanted<'_>, via: Via) -> Option<Found> {
        let files = self.scenario.files;
        if let Some(file) = files.get(object as usize) {
            if !self.searchable[object as usize] {
                return None;
            }
            let contents = file.library.object;
            let mut steps = 0;
            let symbol = self.rules.select(contents, wanted, &mut steps);
            self.steps_left = self.steps_left.saturating_sub(steps);
            let symbol = symbol?;
            let is_unique = |s: &Symbol| s.binding() == abiaudit_elf::Binding::Unique;
            let unique = self.rules.has_unique() && contents.symbols.get(symbol).is_some_and(is_unique);
            return Some(Found { provider: Provider::File { file: object, symbol }, unique, via });
        }
        self.steps_left = self.steps_left.saturating_sub(1);
        let library = object - files.len() as u32;
        let provided = self.scenario.system.get(library as usize)?;
        let provided = provided.provides(wanted.name, wanted.version.map(|version| version.name))?;
        let unique = self.rules.has_unique() && provided == Provided::Unique;
        Some(Found { provider: Provider::System { library }, unique, via })
    }

    /// `do_lookup_unique` of glibc elf/dl-lookup.c: the table of the process decides, or takes the definition in. A COPY
    /// relocation keeps what it found and makes the program's copy the one for all.
    fn unique(&mut self, name: &'a [u8], reference: Reference<'_>, found: Found) -> Found {
        let own = Provider::File { file: reference.object, symbol: reference.index };
        let first = if reference.is_copy { own } else { self.first_unique(name, found.provider) };
        let provider = *self.unique.entry(name).or_insert(first);
        if reference.is_copy { found } else { Found { provider, via: Via::Unique, ..found } }
    }

    /// Libraries of the system that were loaded before have looked up what they define.
    fn first_unique(&self, name: &[u8], found: Provider) -> Provider {
        let files = self.scenario.files.len() as u32;
        let mut libraries = self.system_in_use.iter().map(|object| object - files);
        let has = |library: &u32| {
            let library = self.scenario.system.get(*library as usize);
            library.is_some_and(|library| library.provides(name, None) == Some(Provided::Unique))
        };
        libraries.find(has).map_or(found, |library| Provider::System { library })
    }
}
