//! What has to come into a wheel for one set of libraries that systems have.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use abiaudit_edit::{Edit, EditPlan, SearchPathKind};
use abiaudit_elf::Object;
use abiaudit_loader::search::{self, Need, Outcome, PathTag, SearchEntry};
use abiaudit_policy::{Libc, LibraryVerdict, ProviderClass, Target, glob_matches};
use abiaudit_rules::{Audit, Role};
use abiaudit_scan::SITE_PACKAGES;
use abiaudit_wheel::layout::{Scheme, classify};

use crate::error::{MissingLibrary, RepairError};
use crate::machine::{Library, Request, Searcher, Source};
use crate::names::{self, grafted_name};
use crate::options::Options;

/// glibc, its loader's companions, libstdc++ and libgcc_s: a second copy in the process breaks it, and the system's is newer
/// or the same wherever the wheel may run.
const NEVER_GRAFTED: [&str; 16] = [
    "libc.so.6",
    "libm.so.6",
    "libmvec.so.1",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libanl.so.1",
    "libBrokenLocale.so.1",
    "libnss_files.so.2",
    "libnss_dns.so.2",
    "libthread_db.so.1",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libc_malloc_debug.so.0",
];

/// A library that comes into the wheel.
#[derive(Debug, Clone)]
pub(crate) struct Grafted {
    pub library: Rc<Library>,
    /// Its soname, or the name that it was found by.
    pub soname: String,
    /// Its soname in the wheel.
    pub name: String,
    /// The member that it becomes.
    pub member: String,
    /// Members that need it, as they are called in the repaired wheel.
    pub needed_by: BTreeSet<String>,
    pub plan: EditPlan,
    /// Directories of `DT_RPATH` that count for what it needs, beside its own.
    inherited: Vec<String>,
}

/// A member that is edited.
#[derive(Debug, Clone)]
pub(crate) struct Edited {
    /// Index among the objects of the audit.
    pub object: usize,
    /// Where it is in the repaired wheel: differs from where it was for a program among the scripts.
    pub member: String,
    pub plan: EditPlan,
}

/// All that comes into the wheel, and what changes for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closure {
    pub grafted: Vec<Grafted>,
    pub edited: Vec<Edited>,
    pub notes: BTreeSet<String>,
}

/// Computes closures for one wheel.
pub(crate) struct Grafter<'a> {
    pub audit: &'a Audit<'a>,
    pub options: &'a Options,
    pub searcher: &'a Searcher,
    /// Libraries that were given by hand and go in whether or not something needs them.
    pub included: &'a [Rc<Library>],
    pub libc: Libc,
    /// Name of the directory of grafted libraries.
    pub directory: String,
    /// Prefix of the directory of moved programs: the distribution's name.
    pub distribution: String,
}

/// What a need asks of the repair.
enum Wish {
    /// Nothing: the system has it, another distribution brings it, or it is excluded.
    Leave,
    /// The entry goes: libpython.
    Remove,
    /// A copy has to come into the wheel.
    Graft,
}

impl Grafter<'_> {
    /// The closure for a target's libraries. `Ok(None)`: the target lacks a library that is never grafted, so it cannot be
    /// reached.
    pub(crate) fn closure(&self, target: &Target) -> Result<Option<Closure>, RepairError> {
        let mut work = Work {
            grafter: self,
            target,
            closure: Closure::default(),
            queue: VecDeque::new(),
            missing: BTreeMap::new(),
            reachable: true,
        };
        // Those with a place of their own first, so that who needs them finds them there.
        let has_place = |library: &Library| own_place(self.options, library).is_some();
        for library in self.included.iter().filter(|library| has_place(library)) {
            work.plug_in(library)?;
        }
        for (object, _) in self.audit.counted() {
            work.object(object)?;
        }
        work.drain()?;
        for library in self.included.iter().filter(|library| !has_place(library)) {
            work.plug_in(library)?;
        }
        work.drain()?;
        if !work.missing.is_empty() {
            return Err(RepairError::Missing(work.missing.into_values().collect()));
        }
        Ok(work.reachable.then_some(work.closure))
    }
}

struct Work<'a> {
    grafter: &'a Grafter<'a>,
    target: &'a Target,
    closure: Closure,
    /// Grafted libraries whose own needs are still to be looked at.
    queue: VecDeque<usize>,
    missing: BTreeMap<String, MissingLibrary>,
    /// Nothing that is never grafted is needed from outside the target.
    reachable: bool,
}

impl Work<'_> {
    /// Brings in a library that was given by hand, unless something has brought it already.
    fn plug_in(&mut self, library: &Rc<Library>) -> Result<(), RepairError> {
        let found_by = library.soname().unwrap_or_else(|| library.source.file_name());
        self.add(library, &found_by, true, Vec::new()).map(|_| ())
    }

    /// Looks at the needs of what has come in.
    fn drain(&mut self) -> Result<(), RepairError> {
        while let Some(grafted) = self.queue.pop_front() {
            self.grafted(grafted)?;
        }
        Ok(())
    }

    /// The needs of an object of the wheel.
    fn object(&mut self, object: usize) -> Result<(), RepairError> {
        let audit = self.grafter.audit;
        let Some(entry) = audit.objects.get(object) else { return Ok(()) };
        let old_member = entry.member.name.as_str();
        let (member, directory) = match self.place(old_member) {
            Ok(place) => place,
            Err(reason) => return self.refuse_if_grafted(object, old_member, reason),
        };
        let mut plan = EditPlan::default();
        let mut reach: BTreeSet<String> = BTreeSet::new();
        for need in audit.resolution.needs_of(object) {
            match &need.outcome {
                Outcome::External => match self.wish(&need.name, old_member)? {
                    Wish::Leave => {}
                    Wish::Remove => self.remove(&need.name, &member, &mut plan),
                    Wish::Graft => {
                        let paths = self.paths_of_object(need);
                        let Some(library) = self.find(&need.name, &member, &paths) else { continue };
                        let to = self.add(&library, &need.name, false, paths.rpath)?;
                        reach.insert(self.needs(to, &member, &need.name, &mut plan));
                    }
                },
                Outcome::Unreachable { present }
                    if !need.found_in_some_root && !audit.may_be_preloaded(need) =>
                {
                    reach.extend(self.reach_sibling(need, present, &member));
                }
                _ => {}
            }
        }
        if plan.edits.is_empty() && reach.is_empty() {
            return Ok(());
        }
        let mut path = self.kept_paths(object);
        for wanted in reach {
            let entry = names::origin_to(&directory, &wanted);
            if !path.contains(&entry) {
                path.push(entry);
            }
        }
        if !path.is_empty() {
            plan.push(Edit::SetSearchPath { kind: SearchPathKind::Rpath, path: path.join(":") });
        } else if !self.grafter.audit.resolution.search_paths(object).is_empty() {
            plan.push(Edit::RemoveSearchPath);
        }
        self.closure.edited.push(Edited { object, member, plan });
        Ok(())
    }

    /// Where a member is in the repaired wheel, and the directory that it is installed in.
    fn place(&self, member: &str) -> Result<(String, String), &'static str> {
        let parent =
            |path: &str| path.rsplit_once('/').map_or(String::new(), |(parent, _)| parent.to_owned());
        let (scheme, path) = classify(member);
        match scheme {
            Scheme::Root => Ok((member.to_owned(), parent(member))),
            Scheme::Purelib | Scheme::Platlib => Ok((member.to_owned(), parent(path))),
            Scheme::Scripts => {
                let directory = format!("{}.scripts", self.grafter.distribution);
                Ok((format!("{directory}/{path}"), directory))
            }
            Scheme::Data | Scheme::Headers => Err(
                "it is installed relative to the environment's prefix, from where no fixed path leads to site-packages",
            ),
            Scheme::DistInfo | Scheme::UnknownData => Err("no loader looks where it is installed"),
        }
    }

    /// A member that cannot be given a path is in order as long as it needs nothing that is grafted.
    fn refuse_if_grafted(
        &mut self,
        object: usize,
        member: &str,
        reason: &'static str,
    ) -> Result<(), RepairError> {
        for need in self.grafter.audit.resolution.needs_of(object) {
            if need.outcome == Outcome::External && matches!(self.wish(&need.name, member)?, Wish::Graft) {
                let soname = need.name.clone();
                return Err(RepairError::Unplaceable { member: member.to_owned(), soname, reason });
            }
        }
        Ok(())
    }

    /// The needs of a library that comes into the wheel.
    fn grafted(&mut self, index: usize) -> Result<(), RepairError> {
        let Some(grafted) = self.closure.grafted.get(index) else { return Ok(()) };
        let (library, member) = (Rc::clone(&grafted.library), grafted.member.clone());
        let (soname, name, inherited) =
            (grafted.soname.clone(), grafted.name.clone(), grafted.inherited.clone());
        let Some(object) = library.object() else { return Ok(()) };
        let who = library.source.to_string();
        let mut plan = EditPlan::default();
        let mut reach = BTreeSet::new();
        let paths = self.paths_of_library(&library, object, inherited);
        let mut asked = BTreeSet::new();
        for needed in object.dynamic.needed.iter().map(abiaudit_elf::Name::to_text) {
            if !asked.insert(needed.clone()) {
                continue;
            }
            match self.wish(&needed, &who)? {
                Wish::Leave => {}
                Wish::Remove => self.remove(&needed, &who, &mut plan),
                Wish::Graft => {
                    if let Some(directory) = self.in_wheel(&needed) {
                        reach.insert(directory);
                        continue;
                    }
                    let Some(found) = self.find(&needed, &who, &paths) else { continue };
                    let to = self.add(&found, &needed, false, paths.rpath.clone())?;
                    reach.insert(self.needs(to, &member, &needed, &mut plan));
                }
            }
        }
        if name != soname || library.soname().is_none() {
            plan.push(Edit::SetSoname { soname: name });
        }
        let directory = member.rsplit_once('/').map_or("", |(directory, _)| directory);
        let path: Vec<String> = reach.iter().map(|wanted| names::origin_to(directory, wanted)).collect();
        if !path.is_empty() {
            plan.push(Edit::SetSearchPath { kind: SearchPathKind::Rpath, path: path.join(":") });
        } else if object.dynamic.rpath.is_some() || object.dynamic.runpath.is_some() {
            plan.push(Edit::RemoveSearchPath);
        }
        if let Some(grafted) = self.closure.grafted.get_mut(index) {
            grafted.plan = plan;
        }
        Ok(())
    }

    fn wish(&mut self, soname: &str, by: &str) -> Result<Wish, RepairError> {
        let grafter = self.grafter;
        if grafter.libc.is_dynamic_linker(soname) || self.is_excluded(soname) {
            return Ok(Wish::Leave);
        }
        if names::is_libpython(soname) {
            return Ok(Wish::Remove);
        }
        match self.target.library(soname) {
            LibraryVerdict::Allowed | LibraryVerdict::DynamicLinker => return Ok(Wish::Leave),
            LibraryVerdict::Denied { reason } => {
                return Err(RepairError::NotForWheels {
                    soname: soname.to_owned(),
                    needed_by: vec![by.to_owned()],
                    reason: format!("the configuration denies it ({reason})"),
                });
            }
            LibraryVerdict::NotAllowed | LibraryVerdict::MustBundle { .. } => {}
        }
        if grafter.searcher.is_given(soname) {
            return Ok(Wish::Graft);
        }
        if grafter.libc == Libc::Glibc && NEVER_GRAFTED.contains(&soname) {
            self.reachable = false;
            return Ok(Wish::Leave);
        }
        let audit = grafter.audit;
        let providers = &audit.settings.providers;
        if let Some(accepted) = providers.accepts(soname, &audit.requires, &audit.distribution()) {
            let by = match accepted.declared_by {
                Some(requirement) => format!("required distribution {requirement}"),
                None => "device's driver".to_owned(),
            };
            self.closure.notes.insert(format!("{soname} stays outside: the {by} brings it"));
            return Ok(Wish::Leave);
        }
        match providers.lookup(soname).into_iter().find(|provider| provider.class == ProviderClass::Host) {
            Some(host) => Err(RepairError::NotForWheels {
                soname: soname.to_owned(),
                needed_by: vec![by.to_owned()],
                reason: format!(
                    "{}; --exclude leaves it to the system, --include FILE grafts it all the same",
                    host.note
                ),
            }),
            None => Ok(Wish::Graft),
        }
    }

    fn is_excluded(&self, name: &str) -> bool {
        self.grafter.options.exclude.iter().any(|pattern| glob_matches(pattern, name))
    }

    fn remove(&mut self, soname: &str, by: &str, plan: &mut EditPlan) {
        plan.push(Edit::RemoveNeeded { library: soname.to_owned() });
        self.closure.notes.insert(format!(
            "{by} no longer needs {soname}: the interpreter brings its symbols, and most interpreters are not a library (PEP 513)"
        ));
    }

    /// Search directories of the machine that count for a need of an object of the wheel.
    fn paths_of_object(&self, need: &Need) -> Paths {
        let resolution = &self.grafter.audit.resolution;
        let own = resolution.search_paths(need.from);
        let chain: Vec<Vec<SearchEntry>> =
            need.chain.iter().rev().skip(1).map(|&ancestor| resolution.search_paths(ancestor)).collect();
        Paths::of(self.grafter.libc, &own, chain.iter().map(Vec::as_slice), &[])
    }

    fn paths_of_library(&self, library: &Library, object: &Object, inherited: Vec<String>) -> Paths {
        let Source::File { found, .. } = &library.source else {
            return Paths { rpath: inherited, runpath: Vec::new() };
        };
        let path = found.to_string_lossy();
        let libc = match self.grafter.libc {
            Libc::Glibc => search::Libc::Glibc,
            Libc::Musl => search::Libc::Musl,
        };
        let alone = search::resolve(&[search::Library { path: &path, object }], libc);
        Paths::of(self.grafter.libc, &alone.search_paths(0), std::iter::empty(), &inherited)
    }

    fn find(&mut self, soname: &str, by: &str, paths: &Paths) -> Option<Rc<Library>> {
        let request = Request { name: soname, rpath: &paths.rpath, runpath: &paths.runpath };
        match self.grafter.searcher.find(&request) {
            Ok(library) if self.is_excluded(&library.source.to_string()) => None,
            Ok(library) => Some(library),
            Err(failure) => {
                let missing = self.missing.entry(soname.to_owned()).or_insert_with(|| MissingLibrary {
                    soname: soname.to_owned(),
                    needed_by: Vec::new(),
                    looked: failure.to_text(),
                });
                missing.needed_by.push(by.to_owned());
                None
            }
        }
    }

    /// Brings a library in, once, and gives its position.
    fn add(
        &mut self,
        library: &Rc<Library>,
        found_by: &str,
        plug_in: bool,
        inherited: Vec<String>,
    ) -> Result<usize, RepairError> {
        let grafter = self.grafter;
        let sha256 = library.sha256();
        if let Some(known) = self.closure.grafted.iter().position(|other| other.library.sha256() == sha256) {
            return Ok(known);
        }
        let soname = soname_or(library, found_by);
        let keep = plug_in || grafter.options.keep_name.iter().any(|pattern| glob_matches(pattern, &soname));
        let file_name = library.source.file_name();
        let name = if keep { soname.clone() } else { grafted_name(&file_name, &soname, &sha256) };
        let file = if plug_in { file_name } else { name.clone() };
        let member =
            own_place(grafter.options, library).unwrap_or_else(|| format!("{}/{file}", grafter.directory));
        if self.closure.grafted.iter().any(|other| other.member == member) {
            return Err(RepairError::Occupied { member });
        }
        let index = self.closure.grafted.len();
        let needed_by = BTreeSet::new();
        let plan = EditPlan::default();
        self.closure.grafted.push(Grafted {
            library: Rc::clone(library),
            soname,
            name,
            member,
            needed_by,
            plan,
            inherited,
        });
        self.queue.push_back(index);
        Ok(index)
    }

    /// Lets `by` need a grafted library, and gives the directory that it must reach.
    fn needs(&mut self, index: usize, by: &str, soname: &str, plan: &mut EditPlan) -> String {
        let Some(grafted) = self.closure.grafted.get_mut(index) else { return String::new() };
        grafted.needed_by.insert(by.to_owned());
        if grafted.name != soname {
            plan.push(Edit::ReplaceNeeded { from: soname.to_owned(), to: grafted.name.clone() });
        }
        grafted.member.rsplit_once('/').map_or(String::new(), |(directory, _)| directory.to_owned())
    }

    /// The directory of a library of the wheel that no search path of `need` leads to.
    fn reach_sibling(&mut self, need: &Need, present: &[usize], by: &str) -> Option<String> {
        let audit = self.grafter.audit;
        let [only] = present else { return None };
        let member = &audit.objects.get(*only)?.member.name;
        let (_, directory) = self.place(member).ok()?;
        if classify(member).0 == Scheme::Scripts {
            return None;
        }
        self.closure.notes.insert(format!(
            "{by} gets a path to {member}, which it needs as {} and does not find",
            need.name
        ));
        Some(directory)
    }

    /// The directory of a library of the wheel that answers to a soname, for a grafted library that needs it.
    fn in_wheel(&self, soname: &str) -> Option<String> {
        let (_, entry) = self.grafter.audit.counted().find(|(_, entry)| {
            let own = entry.object.dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text);
            entry.role == Role::Library
                && own.map_or_else(|| entry.member.base_name() == soname, |own| own == soname)
        })?;
        self.place(&entry.member.name).ok().map(|(_, directory)| directory)
    }

    /// Search path entries that stay: those that lead to places in site-packages.
    fn kept_paths(&self, object: usize) -> Vec<String> {
        let entries = self.grafter.audit.resolution.search_paths(object);
        let runpath = entries.iter().any(|entry| entry.tag == PathTag::Runpath);
        let mut kept: Vec<String> = Vec::new();
        for entry in entries.iter().filter(|entry| entry.effective) {
            let obeyed = !runpath || entry.tag == PathTag::Runpath;
            let inside = entry.normalised.as_deref().and_then(|path| path.strip_prefix(SITE_PACKAGES));
            if obeyed
                && inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && !kept.contains(&entry.raw)
            {
                kept.push(entry.raw.clone());
            }
        }
        kept
    }
}

/// Directories of the machine.
#[derive(Debug, Clone, Default)]
struct Paths {
    rpath: Vec<String>,
    runpath: Vec<String>,
}

impl Paths {
    fn of<'e>(
        libc: Libc,
        own: &'e [SearchEntry],
        ancestors: impl Iterator<Item = &'e [SearchEntry]>,
        inherited: &[String],
    ) -> Self {
        let mut paths = Self::default();
        let own_runpath = own.iter().any(|entry| entry.tag == PathTag::Runpath);
        match libc {
            // An object with DT_RUNPATH ignores every DT_RPATH; DT_RUNPATH counts for its own needs only.
            Libc::Glibc => {
                paths.runpath = directories(own, PathTag::Runpath);
                if !own_runpath {
                    paths.rpath = directories(own, PathTag::Rpath);
                    for ancestor in ancestors {
                        if !ancestor.iter().any(|entry| entry.tag == PathTag::Runpath) {
                            paths.rpath.extend(directories(ancestor, PathTag::Rpath));
                        }
                    }
                    paths.rpath.extend_from_slice(inherited);
                }
            }
            Libc::Musl => {
                for entries in std::iter::once(own).chain(ancestors) {
                    let runpath = entries.iter().any(|entry| entry.tag == PathTag::Runpath);
                    paths.rpath.extend(directories(
                        entries,
                        if runpath { PathTag::Runpath } else { PathTag::Rpath },
                    ));
                }
                paths.rpath.extend_from_slice(inherited);
            }
        }
        paths
    }
}

/// What entries of one kind stand for on the machine. Places of the imagined environment are not there.
fn directories(entries: &[SearchEntry], tag: PathTag) -> Vec<String> {
    let of_tag = entries.iter().filter(|entry| entry.tag == tag && entry.effective);
    let all = of_tag.flat_map(|entry| entry.candidates.iter());
    all.filter(|path| !path.starts_with(names::IMAGINED_PREFIX)).cloned().collect()
}

/// The place that `--include FILE=MEMBER` gives a library.
fn own_place(options: &Options, library: &Library) -> Option<String> {
    let is_it =
        |path: &std::path::Path| matches!(&library.source, Source::File { found, .. } if found == path);
    options.include.iter().find(|include| is_it(&include.path))?.member.clone()
}

fn soname_or(library: &Library, found_by: &str) -> String {
    library.soname().unwrap_or_else(|| found_by.rsplit('/').next().unwrap_or(found_by).to_owned())
}
