//! What the simulation says of a case: the same inputs, the same order, the same modes.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_detect::{CxxClass, UnwinderKind};
use abiaudit_loader::binding::{ObjectId, Process, Target};
use abiaudit_process::{
    Cause, Collision, Followed, Follower, Grade, Opened, Opening, Plan, Platform, Releases, Site, SystemBase,
    UnknownPlatform, collisions,
};
use abiaudit_scan::{SITE_PACKAGES, Subject};
use serde::Serialize;

use crate::case::{Case, Mode, Step, probe_name};
use crate::probe;

/// Symbols that are named in one reason.
const NAMED: usize = 3;

/// Nothing can be predicted.
#[derive(Debug, thiserror::Error)]
pub enum PredictionError {
    /// No input has a file that wheels can be for.
    #[error("no input has an ELF file of an architecture that wheels can be for")]
    NoPlatform,
    /// There are no tables for it.
    #[error(transparent)]
    UnknownPlatform(#[from] UnknownPlatform),
    /// A module is not there.
    #[error("no input has the module {module}")]
    NoModule {
        /// Its dotted name.
        module: String,
    },
}

/// What is predicted of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// What cannot be right: an import fails, or something misbehaves.
    pub broken: Vec<Reason>,
    /// What goes wrong if an exception or a stream goes from one module to the other.
    pub crossing: Vec<Reason>,
    /// What else there is.
    pub notes: Vec<Reason>,
}

/// A reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Its kind: `facets`, `once`, `missing-library`.
    pub kind: &'static str,
    /// In words.
    pub text: String,
    /// Something asks the object that it would go wrong in: the probe, or a module that exports the probe's functions. What
    /// nothing asks may be broken without showing.
    pub asked: bool,
}

/// The inputs, laid out as they are installed.
#[derive(Debug)]
pub struct Predictor<'p> {
    site: Site<'p>,
    base: SystemBase,
    /// Modules that export the functions of the probe, and their files.
    hooks: Vec<(String, usize)>,
}

impl<'p> Predictor<'p> {
    /// The inputs, and the directory of the probe as one more; the system has these releases.
    ///
    /// # Errors
    /// [`PredictionError`] if the inputs have nothing native, or for an architecture without tables.
    pub fn new(subjects: &'p [Subject], releases: Releases) -> Result<Self, PredictionError> {
        let platform = Platform::of(subjects).ok_or(PredictionError::NoPlatform)?;
        let site = Site::new(subjects, platform);
        let base = SystemBase::new(&site, releases)?;
        let has_hook = |file: &abiaudit_process::SiteFile<'_>| {
            let symbols = &file.object.symbols;
            symbols.exported().any(|symbol| symbols.name(symbol) == probe::HOOK.as_bytes())
        };
        let hooks = site.files.iter().enumerate().filter(|(_, file)| has_hook(file));
        let hooks = hooks.filter_map(|(number, file)| Some((module_name(file.short_path())?, number)));
        let hooks = hooks.collect();
        Ok(Self { site, base, hooks })
    }

    /// Modules that export the functions of the probe.
    pub fn hooked(&self) -> Vec<String> {
        self.hooks.iter().map(|(module, _)| module.clone()).collect()
    }

    /// Whether an input has the package or module that a dotted name begins with.
    pub(crate) fn has_package(&self, module: &str) -> bool {
        let package = module.split('.').next().unwrap_or(module);
        let below = |path: &str| {
            let rest = path.strip_prefix(SITE_PACKAGES)?.strip_prefix('/')?.strip_prefix(package)?;
            Some(rest.starts_with('/') || rest.starts_with('.'))
        };
        let members = self.site.subjects.iter().flat_map(|subject| &subject.members);
        members.map(|member| below(&member.installed)).any(|found| found == Some(true))
    }

    /// Simulates a case and judges it.
    ///
    /// # Errors
    /// [`PredictionError::NoModule`] if no input has a module.
    pub fn predict(&self, case: &Case) -> Result<Prediction, PredictionError> {
        let plan = self.plan(case)?;
        let preload = [Target::Name(Mode::PRELOADED)];
        let preload = if case.mode == Mode::Preload { &preload[..] } else { &[] };
        let process = abiaudit_process::run_preloaded(&self.site, &self.base, &plan, preload);
        let mut prediction =
            Prediction { broken: self.failures(&process), crossing: self.crossings(case), notes: Vec::new() };
        let found = collisions(&self.site, &self.base, &plan, &process);
        prediction.notes.extend(self.duplicated(&found));
        for collision in found {
            let Some((kind, text)) = self.reason(&collision) else { continue };
            let reason = Reason { kind, text, asked: self.is_asked(case, &collision) };
            match collision.grade() {
                Grade::Broken => prediction.broken.push(reason),
                Grade::Crosses => prediction.crossing.push(reason),
                Grade::Differs | Grade::Performance | Grade::Duplicated => prediction.notes.push(reason),
            }
        }
        let notes = plan.notes.into_iter().map(|text| Reason { kind: "plan", text, asked: true });
        prediction.notes.extend(notes);
        Ok(prediction)
    }

    /// What will not be understood when the modules of a case that are asked throw to each other and print to each
    /// other's streams. They are handed each other's functions, which no binding shows.
    fn crossings(&self, case: &Case) -> Vec<Reason> {
        let asked: Vec<(usize, CxxClass, UnwinderKind)> = case
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Import { module, .. } => self.hooks.iter().find(|(name, _)| name == module),
                Step::Probe { copy, .. } => self.hooks.iter().find(|(name, _)| *name == probe::stem(*copy)),
            })
            .filter_map(|(_, file)| {
                let place = self.site.files.get(*file)?;
                let carries = abiaudit_detect::detect(place.object, &place.member.markers);
                Some((*file, carries.cxx.class, carries.unwinder.kind))
            })
            .collect();
        if asked.len() < 2 {
            return Vec::new();
        }
        let name = |file: &usize| self.name(ObjectId::File(*file as u32));
        let private = asked.iter().filter(|(_, _, unwinder)| *unwinder == UnwinderKind::Private);
        let mut reasons: Vec<Reason> = private
            .map(|(file, ..)| Reason {
                asked: true,
                kind: "private-unwinder",
                text: format!("{} has an unwinder of its own, and exceptions cross", name(file)),
            })
            .collect();
        let is_llvm = |class: &CxxClass| matches!(class, CxxClass::LibCxx { .. });
        let of_llvm = |wanted| asked.iter().find(|(_, class, _)| is_llvm(class) == wanted);
        if let (Some((llvm, ..)), Some((gnu, ..))) = (of_llvm(true), of_llvm(false)) {
            let text = format!("{} uses libc++ and {} does not: they share no types", name(llvm), name(gnu));
            reasons.push(Reason { kind: "cxx-abis", text, asked: true });
        }
        reasons
    }

    /// What the case opens, in order.
    fn plan(&self, case: &Case) -> Result<Plan, PredictionError> {
        let mut follower = Follower::new(&self.site);
        // After which opening each step begins, and what is opened by it.
        let mut begins = Vec::new();
        for step in &case.steps {
            begins.push(follower.openings());
            if let Step::Import { module, .. } = step
                && follower.import(module) == Followed::Absent
            {
                return Err(PredictionError::NoModule { module: module.clone() });
            }
        }
        let Plan { openings, notes } = follower.finish();
        let mut openings = openings.into_iter();
        let mut plan = Plan { openings: Vec::new(), notes };
        let ends = begins.iter().skip(1).map(|end| Some(*end)).chain([None]);
        for ((step, begin), end) in case.steps.iter().zip(&begins).zip(ends) {
            match step {
                Step::Import { global, .. } => {
                    let count = end.map_or(usize::MAX, |end| end - begin);
                    plan.openings.extend(openings.by_ref().take(count).map(|opening| Opening {
                        // What ctypes opens has a mode of its own.
                        global: opening.global || (*global && matches!(opening.cause, Cause::Import { .. })),
                        ..opening
                    }));
                }
                Step::Probe { copy, global } => plan.openings.extend(self.open_probe(*copy, *global)),
            }
        }
        Ok(plan)
    }

    fn open_probe(&self, copy: usize, global: bool) -> Option<Opening> {
        let file = self.site.file_below(&probe::file_name(copy))?;
        let cause = Cause::Import { module: probe_name(copy), at: None };
        Some(Opening { opened: Opened::File(file), global, caller: None, cause })
    }

    /// Whether something asks the object that misbehaves. One that nothing asks may print nothing, unseen.
    fn is_asked(&self, case: &Case, collision: &Collision) -> bool {
        let (Collision::Facets { victim, .. } | Collision::Once { user: victim, .. }) = collision else {
            return true;
        };
        match victim {
            ObjectId::System(_) => case.copies() > 0,
            ObjectId::File(file) => {
                let file = *file as usize;
                let probe = |copy| self.site.file_below(&probe::file_name(copy)) == Some(file);
                (0..case.copies()).any(probe) || self.hooks.iter().any(|(_, hooked)| *hooked == file)
            }
        }
    }

    /// What makes an import fail.
    fn failures(&self, process: &Process) -> Vec<Reason> {
        let missing: BTreeSet<(Option<ObjectId>, &str)> =
            process.missing.iter().map(|missing| (missing.from, missing.name.as_str())).collect();
        let missing = missing.into_iter().map(|(from, name)| Reason {
            kind: "missing-library",
            asked: true,
            text: match from {
                Some(object) => format!("{} needs {name}, which nothing has", self.name(object)),
                None => format!("{name} is opened, and nothing has it"),
            },
        });
        missing.collect()
    }

    fn reason(&self, collision: &Collision) -> Option<(&'static str, String)> {
        let name = |object: &ObjectId| self.name(*object);
        let list = |symbols: &[String]| {
            let more = symbols.len().saturating_sub(NAMED);
            let shown = symbols.iter().take(NAMED).map(|s| demangled(s)).collect::<Vec<_>>().join(", ");
            if more == 0 { shown } else { format!("{shown} and {more} more") }
        };
        let (kind, text) = match collision {
            Collision::Facets { victim, ids, numbering, .. } => (
                "facets",
                format!(
                    "locale facets of {} have ids that {} and {} number apart: its streams and locales break",
                    name(victim),
                    name(ids),
                    name(numbering)
                ),
            ),
            Collision::Once { user, proxy, variable } => (
                "once",
                format!(
                    "call_once of {} sets the variable of {} and runs __once_proxy of {}: a jump to address 0",
                    name(user),
                    name(variable),
                    name(proxy)
                ),
            ),
            Collision::UnwinderInterposed { unwinder, provider, symbols } => (
                "unwinder",
                format!(
                    "{} is served {} by {}: any exception breaks",
                    name(unwinder),
                    list(symbols),
                    name(provider)
                ),
            ),
            Collision::PrivateUnwinder { object, other, symbol } => (
                "private-unwinder",
                format!(
                    "{} has an unwinder of its own, and C++ calls cross to {} ({})",
                    name(object),
                    name(other),
                    demangled(symbol)
                ),
            ),
            Collision::CxxAbis { user, provider, symbols, .. } => {
                ("cxx-abis", format!("{} is served {} by {}", name(user), list(symbols), name(provider)))
            }
            // Told together by `duplicated`.
            Collision::StateDuplicated { .. } => return None,
            Collision::OpenMp { first, second, .. } => {
                ("openmp", format!("two OpenMP runtimes: {} and {}", first.name, second.name))
            }
            Collision::Blas { user, meant, provider, symbols } => (
                "blas",
                format!(
                    "{} takes {} from {} instead of {}",
                    name(user),
                    list(symbols),
                    name(provider),
                    name(meant)
                ),
            ),
            Collision::StaticTls { bytes, objects } => (
                "static-tls",
                format!("{} objects want {bytes} bytes of static thread-local storage", objects.len()),
            ),
            Collision::DuplicateRuntime { family, objects } => {
                ("duplicate-runtime", format!("{family} is there twice: {}", names(objects, &name)))
            }
            Collision::PartialInGlobalScope { object, symbols } => {
                ("partial-global", format!("{} puts {} into the global scope", name(object), list(symbols)))
            }
        };
        Some((kind, text))
    }

    /// What there should be one of, for each set of objects that have it.
    fn duplicated(&self, found: &[Collision]) -> Vec<Reason> {
        let mut sets = BTreeMap::<&[ObjectId], Vec<String>>::new();
        for collision in found {
            if let Collision::StateDuplicated { symbol, providers } = collision {
                sets.entry(providers).or_default().push(demangled(symbol));
            }
        }
        let reason = |(objects, what): (&[ObjectId], Vec<String>)| {
            let objects = names(objects, &|object| self.name(*object));
            let text = format!("{}: one in each of {objects}", what.join(", "));
            Reason { kind: "duplicated", text, asked: true }
        };
        sets.into_iter().map(reason).collect()
    }

    fn name(&self, object: ObjectId) -> String {
        match object {
            ObjectId::File(file) => {
                let file = self.site.files.get(file as usize);
                file.map(|file| file.short_path().to_owned()).unwrap_or_default()
            }
            ObjectId::System(library) => format!("the system's {}", self.base.soname(library as usize)),
        }
    }
}

impl Prediction {
    /// Something is predicted to be wrong with a module or with the process.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// What happened is what was predicted: broken, or fine where that would show.
    pub fn agrees_with(&self, broken: bool) -> bool {
        if broken { self.is_broken() } else { !self.broken.iter().any(|reason| reason.asked) }
    }
}

fn demangled(symbol: &str) -> String {
    let demangled = cpp_demangle::Symbol::new(symbol).ok().and_then(|symbol| symbol.demangle().ok());
    demangled.unwrap_or_else(|| symbol.to_owned())
}

fn names(objects: &[ObjectId], name: &impl Fn(&ObjectId) -> String) -> String {
    objects.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// `a.b` of `a/b.abi3.so`.
fn module_name(path: &str) -> Option<String> {
    let (directory, base) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = base.split('.').next().filter(|stem| !stem.is_empty())?;
    Some(directory.split('/').filter(|part| !part.is_empty()).chain([stem]).collect::<Vec<_>>().join("."))
}
