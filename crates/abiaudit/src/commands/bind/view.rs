//! A simulated process in the terms of the report.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use abiaudit_elf::{self as elf, SymbolVersion};
use abiaudit_loader::binding::{Binding, Interposition, InterpositionKind, ObjectId, Process, Via};
use abiaudit_policy::providers;
use abiaudit_process::{Cause, Opened, Plan, Site, SystemBase, SystemKind, WhyLeftOut};
use abiaudit_report::bindings::model;
use abiaudit_rules::demangle;
use abiaudit_scan::Subject;

/// A process and what it was made of.
pub struct View<'v, 's> {
    site: &'v Site<'s>,
    base: &'v SystemBase,
    plan: &'v Plan,
    process: &'v Process,
    /// Position in the order of loading.
    numbers: HashMap<ObjectId, usize>,
}

/// Name and version of an input, or its path.
pub fn distribution(subject: &Subject) -> String {
    subject
        .name_and_version()
        .map_or_else(|| subject.path.clone(), |(name, version)| format!("{name} {version}"))
}

impl<'v, 's> View<'v, 's> {
    pub fn new(site: &'v Site<'s>, base: &'v SystemBase, plan: &'v Plan, process: &'v Process) -> Self {
        let numbers = process.loads.iter().enumerate().map(|(number, load)| (load.object, number)).collect();
        Self { site, base, plan, process, numbers }
    }

    pub fn run(&self, order: &[String], symbol: Option<&str>, all: bool) -> model::Run {
        let (unexpected, folded) = self.unexpected(all);
        model::Run {
            order: order.to_vec(),
            notes: self.notes(),
            opened: self.opened(),
            objects: self.objects(),
            references: self.process.bindings.len(),
            edges: self.edges(),
            unexpected,
            folded,
            missing: self.missing(),
            unresolved: self.unresolved(),
            symbols: symbol.map(|wanted| self.symbols(wanted)),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.plan.notes.clone();
        let left_out = &self.site.left_out;
        for (why, what) in [
            (WhyLeftOut::PathTaken, "are at the path of a file of an earlier input"),
            (WhyLeftOut::OddPath, "have odd paths"),
        ] {
            let mut those = left_out.iter().filter(|left| left.why == why);
            if let Some(first) = those.next() {
                notes.push(format!("{} ELF files {what}, such as {}", those.count() + 1, first.member));
            }
        }
        let foreign = |left: &&_| {
            let left: &&abiaudit_process::LeftOut = left;
            matches!(left.why, WhyLeftOut::OtherArchitecture(_))
        };
        let foreign = left_out.iter().filter(foreign).count();
        if foreign > 0 {
            notes.push(format!("{foreign} ELF files are for another architecture"));
        }
        if !self.process.unbound.is_empty() {
            notes.push(format!("{} objects were not bound: too much work", self.process.unbound.len()));
        }
        notes
    }

    fn opened(&self) -> Vec<model::Opened> {
        let openings = self.plan.openings.iter().map(|opening| model::Opened {
            name: match &opening.opened {
                Opened::File(file) => self.name(ObjectId::File(*file as u32)),
                Opened::Name(name) => name.clone(),
            },
            global: opening.global,
            because: match &opening.cause {
                Cause::Import { module, at: Some(at) } => format!("import {module}, {at}"),
                Cause::Import { module, at: None } => format!("import {module}"),
                Cause::Preload { module } => format!("{module} opens it itself"),
                Cause::Trace => "the trace".to_owned(),
                Cause::Everything => "every extension module".to_owned(),
            },
        });
        openings.collect()
    }

    fn objects(&self) -> Vec<model::Object> {
        let global: BTreeSet<ObjectId> = self.process.global.iter().copied().collect();
        let object = |load: &abiaudit_loader::binding::Load| model::Object {
            name: self.name(load.object),
            distribution: self.subject(load.object).map(|subject| self.site.distribution(subject)),
            kind: match load.object {
                ObjectId::File(_) => model::ObjectKind::File,
                ObjectId::System(library) => match self.base.kind(library as usize) {
                    SystemKind::Python => model::ObjectKind::Python,
                    SystemKind::Table => model::ObjectKind::Table,
                    SystemKind::Unknown => model::ObjectKind::Unknown,
                },
            },
            loader: load.loader.and_then(|loader| self.number(loader)),
            opened: load.event,
            global: global.contains(&load.object),
        };
        self.process.loads.iter().map(object).collect()
    }

    fn edges(&self) -> Vec<model::Edge> {
        let mut edges = BTreeMap::<(usize, usize), model::Edge>::new();
        for binding in self.process.bindings.iter() {
            let Some((from, to)) = self.ends(binding).filter(|(from, to)| from != to) else { continue };
            let edge = edges.entry((from, to)).or_insert(model::Edge {
                from,
                to,
                global: 0,
                local: 0,
                unique: 0,
                overridden: 0,
            });
            match binding.via {
                Via::Global => edge.global += 1,
                Via::Local => edge.local += 1,
                Via::Unique => edge.unique += 1,
                Via::Itself | Via::Nothing => {}
            }
            edge.overridden += usize::from(binding.own_definition);
        }
        edges.into_values().collect()
    }

    fn unexpected(&self, all: bool) -> (Vec<model::Unexpected>, usize) {
        let mut folded = 0;
        let mut groups = BTreeMap::<_, Vec<model::Name>>::new();
        for found in self.process.interpositions() {
            let Some((from, to)) = self.ends(found.binding) else { continue };
            if !all && self.is_vague(&found) {
                folded += 1;
                continue;
            }
            let kind = match found.kind {
                InterpositionKind::Overridden => model::Astray::Overridden,
                InterpositionKind::NotNeeded => model::Astray::NotNeeded,
            };
            let key = (!found.leaves_group, from, to, kind, via(found.binding.via));
            groups.entry(key).or_default().push(self.name_of(found.binding));
        }
        let unexpected = groups.into_iter().map(|((inside, from, to, kind, via), mut symbols)| {
            symbols.sort();
            model::Unexpected { from, to, kind, via, leaves_distribution: !inside, symbols }
        });
        (unexpected.collect(), folded)
    }

    /// Within a distribution, and what several objects define alike: weak and unique definitions, type information.
    fn is_vague(&self, found: &Interposition<'_>) -> bool {
        let Some((object, symbol)) = self.symbol(found.binding) else { return false };
        let name = object.symbols.name(symbol);
        let is_type_information =
            [&b"_ZTI"[..], b"_ZTS", b"_ZTV"].iter().any(|start| name.starts_with(start));
        let is_shared = matches!(symbol.binding(), elf::Binding::Weak | elf::Binding::Unique);
        !found.leaves_group && (is_shared || is_type_information)
    }

    fn missing(&self) -> Vec<model::Missing> {
        let missing = self.process.missing.iter().map(|missing| model::Missing {
            name: missing.name.clone(),
            from: missing.from.and_then(|from| self.number(from)),
            providers: bringers(&missing.name),
        });
        missing.collect()
    }

    fn unresolved(&self) -> Vec<model::Unresolved> {
        let mut unresolved: Vec<_> = self
            .process
            .fatal()
            .filter_map(|binding| {
                let from = self.number(ObjectId::File(binding.file))?;
                Some(model::Unresolved { from, name: self.name_of(binding), perhaps: self.perhaps(binding) })
            })
            .collect();
        unresolved.sort_by(|a, b| (a.from, &a.name).cmp(&(b.from, &b.name)));
        unresolved
    }

    /// Libraries that may have what a reference asks for: the one that its version names, else those that its object
    /// needs; of these the ones that are missing or whose exports are not known.
    fn perhaps(&self, binding: &Binding) -> Vec<String> {
        let Some((object, symbol)) = self.symbol(binding) else { return Vec::new() };
        let named = match object.version_of(symbol) {
            SymbolVersion::Needed(library, _) => vec![library.library.to_text()],
            _ => object.dynamic.needed.iter().map(elf::Name::to_text).collect(),
        };
        let is_unknown = |name: &String| {
            let missing = self.process.missing.iter().any(|missing| missing.name == *name);
            let opaque = self.process.loads.iter().any(|load| match load.object {
                ObjectId::System(library) => {
                    self.base.soname(library as usize) == name
                        && self.base.kind(library as usize) == SystemKind::Unknown
                }
                ObjectId::File(_) => false,
            });
            missing || opaque
        };
        named.into_iter().filter(is_unknown).collect()
    }

    /// Symbols whose name contains the text, mangled or not.
    fn symbols(&self, wanted: &str) -> Vec<model::Symbol> {
        let mut found = BTreeMap::<String, model::Symbol>::new();
        // Every object has the same names again, and demangling is slow.
        let mut known = HashMap::<&[u8], Option<Match>>::new();
        for load in &self.process.loads {
            let ObjectId::File(file) = load.object else { continue };
            let (Some(object), Some(number)) = (self.object(file), self.number(load.object)) else {
                continue;
            };
            // The null symbol has index 0 and is not among them.
            for (index, symbol) in (1_u32..).zip(object.symbols.iter()) {
                let bytes = object.symbols.name(symbol);
                let found_name = known.entry(bytes).or_insert_with(|| matching(bytes, wanted));
                let Some(Match { demangled }) = found_name else { continue };
                let name = object.symbols.name_text(symbol);
                let entry = found.entry(name.clone()).or_insert_with(|| model::Symbol {
                    symbol: name,
                    demangled: demangled.clone(),
                    definitions: Vec::new(),
                    references: Vec::new(),
                });
                let version = version(object, symbol);
                if symbol.is_exported() {
                    let binding = binding_name(symbol.binding()).to_owned();
                    entry.definitions.push(model::Definition {
                        object: number,
                        version: version.clone(),
                        binding,
                    });
                }
                if let Some(binding) = self.process.bindings.get(file, index) {
                    entry.references.push(model::Reference {
                        object: number,
                        version,
                        provider: binding.provider.object().and_then(|provider| self.number(provider)),
                        via: via(binding.via),
                        own_definition: binding.own_definition,
                    });
                }
            }
        }
        let is_used =
            |symbol: &model::Symbol| !symbol.definitions.is_empty() || !symbol.references.is_empty();
        found.into_values().filter(is_used).collect()
    }

    /// References that the other process binds to something else. An object that only one of them loads is passed over.
    pub fn differences(&self, other: &Self) -> Vec<model::Difference> {
        let mut groups = BTreeMap::<_, Vec<model::Name>>::new();
        for load in &self.process.loads {
            let ObjectId::File(file) = load.object else { continue };
            for binding in self.process.bindings.of(file) {
                let Some(twin) = other.process.bindings.get(file, binding.symbol) else { continue };
                let (this, that) = (binding.provider.object(), twin.provider.object());
                if this != that {
                    let key = (load.object, this, that);
                    groups.entry(key).or_default().push(self.name_of(binding));
                }
            }
        }
        let name = |object: Option<ObjectId>| object.map(|object| self.name(object));
        let differences = groups.into_iter().map(|((object, this, that), mut symbols)| {
            symbols.sort();
            model::Difference { object: self.name(object), providers: vec![name(this), name(that)], symbols }
        });
        differences.collect()
    }

    fn number(&self, object: ObjectId) -> Option<usize> {
        self.numbers.get(&object).copied()
    }

    fn ends(&self, binding: &Binding) -> Option<(usize, usize)> {
        Some((self.number(ObjectId::File(binding.file))?, self.number(binding.provider.object()?)?))
    }

    fn subject(&self, object: ObjectId) -> Option<usize> {
        let ObjectId::File(file) = object else { return None };
        self.site.files.get(file as usize).map(|file| file.subject)
    }

    fn object(&self, file: u32) -> Option<&'s elf::Object> {
        self.site.files.get(file as usize).map(|file| file.object)
    }

    fn symbol(&self, binding: &Binding) -> Option<(&'s elf::Object, &'s elf::Symbol)> {
        let object = self.object(binding.file)?;
        Some((object, object.symbols.get(binding.symbol)?))
    }

    fn name(&self, object: ObjectId) -> String {
        match object {
            ObjectId::File(file) => {
                self.site.files.get(file as usize).map_or("", |file| file.short_path()).to_owned()
            }
            ObjectId::System(library) => self.base.soname(library as usize).to_owned(),
        }
    }

    fn name_of(&self, binding: &Binding) -> model::Name {
        let Some((object, symbol)) = self.symbol(binding) else {
            return model::Name { symbol: String::new(), demangled: None, version: None };
        };
        let name = object.symbols.name_text(symbol);
        let demangled = Some(demangle(&name)).filter(|demangled| *demangled != name);
        model::Name { symbol: name, demangled, version: version(object, symbol) }
    }
}

/// Distributions that bring a library, sorted.
fn bringers(soname: &str) -> Vec<String> {
    let names = providers().lookup(soname).into_iter().filter_map(|row| row.distribution.clone());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A name that contains what was asked for.
struct Match {
    /// For people, if that is another.
    demangled: Option<String>,
}

/// Whether a name contains a text, as it stands or demangled.
fn matching(name: &[u8], wanted: &str) -> Option<Match> {
    let name = String::from_utf8_lossy(name);
    let demangled = Some(demangle(&name)).filter(|demangled| **demangled != *name);
    let has = |text: &str| text.contains(wanted);
    (has(&name) || demangled.as_deref().is_some_and(has)).then_some(Match { demangled })
}

fn version(object: &elf::Object, symbol: &elf::Symbol) -> Option<String> {
    match object.version_of(symbol) {
        SymbolVersion::Needed(_, needed) => Some(needed.name.to_text()),
        SymbolVersion::Defined(defined, _) => Some(defined.name.to_text()),
        SymbolVersion::Unversioned | SymbolVersion::Unknown(_) => None,
    }
}

fn binding_name(binding: elf::Binding) -> &'static str {
    match binding {
        elf::Binding::Weak => "weak",
        elf::Binding::Unique => "unique",
        elf::Binding::Local => "local",
        elf::Binding::Global | elf::Binding::Other(_) => "global",
    }
}

fn via(via: Via) -> model::Via {
    match via {
        Via::Itself => model::Via::Itself,
        Via::Global => model::Via::Global,
        Via::Local => model::Via::Local,
        Via::Unique => model::Via::Unique,
        Via::Nothing => model::Via::Nothing,
    }
}
