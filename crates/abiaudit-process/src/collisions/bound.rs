//! A simulated process, indexed by what the predicates ask for.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use abiaudit_detect::Carries;
use abiaudit_elf::{Name, Object};
use abiaudit_loader::binding::{Binding, ObjectId, Process};

use crate::base::SystemBase;
use crate::plan::Plan;
use crate::site::{Site, SiteFile};

/// A reference and who serves it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    pub(super) from: ObjectId,
    /// The object that refers defines the symbol itself.
    pub(super) own: bool,
    /// `None` if nobody serves.
    pub(super) provider: Option<ObjectId>,
}

pub(super) struct Bound<'p> {
    pub(super) site: &'p Site<'p>,
    pub(super) base: &'p SystemBase,
    pub(super) process: &'p Process,
    #[allow(dead_code, reason = "predicates on modes of opening will ask for it")]
    pub(super) plan: &'p Plan,
    /// References to interesting symbols, by name, objects in the order of relocation.
    by_name: BTreeMap<&'p [u8], Vec<Reference>>,
    by_object: HashMap<(ObjectId, &'p [u8]), Reference>,
    /// Position in the order of loading.
    loaded: HashMap<ObjectId, usize>,
    /// What files carry, once it is asked for.
    carries: Vec<OnceCell<Carries>>,
}

impl<'p> Bound<'p> {
    pub(super) fn new(
        site: &'p Site<'p>,
        base: &'p SystemBase,
        plan: &'p Plan,
        process: &'p Process,
    ) -> Self {
        let loaded = process.loads.iter().enumerate().map(|(number, load)| (load.object, number)).collect();
        let carries = site.files.iter().map(|_| OnceCell::new()).collect();
        let mut bound = Self {
            site,
            base,
            process,
            plan,
            by_name: BTreeMap::new(),
            by_object: HashMap::new(),
            loaded,
            carries,
        };
        bound.index_system();
        bound.index_files();
        bound
    }

    fn index_system(&mut self) {
        for binding in &self.process.system_bindings {
            let library = binding.library as usize;
            let Some(reference) = self.base.reference(library, binding.reference as usize) else { continue };
            let own = self.base.library(library).is_some_and(|described| {
                let version = reference.version.map(str::as_bytes);
                described.provides(reference.symbol.as_bytes(), version).is_some()
            });
            let from = ObjectId::System(binding.library);
            self.add(
                reference.symbol.as_bytes(),
                Reference { from, own, provider: binding.provider.object() },
            );
        }
    }

    fn index_files(&mut self) {
        for binding in self.process.bindings.iter() {
            let Some(name) = self.name_of(binding).filter(|name| is_interesting(name)) else { continue };
            let reference = Reference {
                from: ObjectId::File(binding.file),
                own: binding.own_definition,
                provider: binding.provider.object(),
            };
            self.add(name, reference);
        }
    }

    fn add(&mut self, name: &'p [u8], reference: Reference) {
        self.by_name.entry(name).or_default().push(reference);
        self.by_object.entry((reference.from, name)).or_insert(reference);
    }

    pub(super) fn name_of(&self, binding: &Binding) -> Option<&'p [u8]> {
        let symbols = &self.site.files.get(binding.file as usize)?.object.symbols;
        Some(symbols.name(symbols.get(binding.symbol)?))
    }

    /// References to interesting symbols, by name.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'p [u8], &[Reference])> {
        self.by_name.iter().map(|(name, references)| (*name, references.as_slice()))
    }

    /// All references to one symbol.
    pub(super) fn references(&self, name: &str) -> &[Reference] {
        self.by_name.get(name.as_bytes()).map_or(&[], Vec::as_slice)
    }

    /// The reference of one object to a symbol.
    pub(super) fn reference(&self, from: ObjectId, name: &str) -> Option<Reference> {
        self.by_object.get(&(from, name.as_bytes())).copied()
    }

    /// The file, if it is one.
    pub(super) fn file(&self, object: ObjectId) -> Option<&'p SiteFile<'p>> {
        match object {
            ObjectId::File(file) => self.site.files.get(file as usize),
            ObjectId::System(_) => None,
        }
    }

    /// Whether an object exports a symbol.
    pub(super) fn defines(&self, object: ObjectId, name: &str) -> bool {
        match object {
            ObjectId::File(_) => self.file(object).is_some_and(|file| exports(file.object, name)),
            ObjectId::System(library) => {
                let library = self.base.library(library as usize);
                library.is_some_and(|library| library.provides(name.as_bytes(), None).is_some())
            }
        }
    }

    /// Position in the order of loading.
    pub(super) fn number(&self, object: ObjectId) -> usize {
        self.loaded.get(&object).copied().unwrap_or(usize::MAX)
    }

    /// Files that are loaded, in the order of loading.
    pub(super) fn files(&self) -> impl Iterator<Item = (ObjectId, &'p SiteFile<'p>)> {
        self.process.loads.iter().filter_map(|load| Some((load.object, self.file(load.object)?)))
    }

    /// What a loaded file carries.
    pub(super) fn carries(&self, object: ObjectId) -> Option<&Carries> {
        let ObjectId::File(position) = object else { return None };
        let file = self.file(object)?;
        let cell = self.carries.get(position as usize)?;
        Some(cell.get_or_init(|| abiaudit_detect::detect(file.object, &file.member.markers)))
    }

    /// The name by which the loader knows an object: its soname, else its file name.
    pub(super) fn loader_name(&self, object: ObjectId) -> String {
        match object {
            ObjectId::File(_) => {
                let Some(file) = self.file(object) else { return String::new() };
                let soname = file.object.dynamic.soname.as_ref().map(Name::to_text);
                soname.unwrap_or_else(|| file.member.base_name().to_owned())
            }
            ObjectId::System(library) => self.base.soname(library as usize).to_owned(),
        }
    }

    /// Its name up to the first `-` or `.`: `libgomp`.
    pub(super) fn stem(&self, object: ObjectId) -> String {
        abiaudit_detect::stem(&self.loader_name(object)).to_owned()
    }

    /// Objects that were there before anything was opened.
    pub(super) fn initial(&self) -> HashSet<ObjectId> {
        let initial = self.process.loads.iter().filter(|load| load.event.is_none());
        initial.map(|load| load.object).collect()
    }
}

pub(super) fn exports(object: &Object, name: &str) -> bool {
    !object.symbols.definitions(name.as_bytes()).is_empty()
}

/// The predicates that go by names look at these alone.
fn is_interesting(name: &[u8]) -> bool {
    match name.first_chunk::<2>() {
        Some(b"_Z") => {
            super::once::INLINE.contains(&name)
                || (name.starts_with(b"_ZNSt") && name.ends_with(b"E2idE"))
                || super::facets::NUMBERING.iter().any(|symbol| symbol.as_bytes() == name)
                || super::once::VARIABLES.iter().any(|symbol| symbol.as_bytes() == name)
                || super::identity::STATE.iter().any(|(symbol, _)| symbol.as_bytes() == name)
                || super::abis::EXCEPTIONS.iter().any(|symbol| symbol.as_bytes() == name)
        }
        Some(b"__") => {
            name == super::once::PROXY.as_bytes()
                || name.starts_with(b"__kmpc_")
                || super::abis::EXCEPTIONS.iter().any(|symbol| symbol.as_bytes() == name)
        }
        Some(b"_U") => name.starts_with(b"_Unwind_"),
        Some(b"GO") => name.starts_with(b"GOMP_"),
        Some(b"om") => name.starts_with(b"omp_"),
        _ => super::blas::is_plain(name),
    }
}
