//! Everything that rules ask of one input, computed once.

use std::collections::BTreeSet;

use abiaudit_detect::Carries;
use abiaudit_elf::{Object, ObjectType};
use abiaudit_loader::search::{self, Library, Need, Resolution};
use abiaudit_policy::{Libc, PolicySet, Target, declaration_keys};
use abiaudit_scan::{Member, Subject};
use abiaudit_wheel::distinfo::{Environment, Metadata};
use abiaudit_wheel::{PlatformTag, normalize_name};

use crate::external::{self, External};
use crate::lost_references::LostReferences;
use crate::platform::{self, Claim, Platform};
use crate::python::{self, Extension};
use crate::references::{self, OpenReference};
use crate::scopes;
use crate::settings::Settings;
use crate::together::Beside;
use crate::verdict::{self, Verdict};

/// One input with its model: what it promises, what its objects are, how the loader connects them, and what the
/// content honours.
pub struct Audit<'a> {
    /// The input.
    pub subject: &'a Subject,
    /// The settings.
    pub settings: &'a Settings,
    /// Platform tags of the file name, else of WHEEL.
    pub platform_tags: Vec<PlatformTag>,
    /// What the tags promise.
    pub claims: Vec<Claim>,
    /// What the verdict is about; `None` if neither tags nor files name an architecture that policies cover.
    pub platform: Option<Platform>,
    /// All ELF members that could be read, in the order of the members.
    pub objects: Vec<AuditObject<'a>>,
    /// How the loader finds what they need; indexes are those of `objects`.
    pub resolution: Resolution,
    /// Libraries that are needed and not in the input.
    pub externals: Vec<External>,
    /// The distributions that the input requires on this platform, as `name` and `name[extra]`.
    pub requires: BTreeSet<String>,
    /// Strong references without a version that only the system, or nobody, can serve.
    pub open_references: Vec<OpenReference>,
    /// Strong references to versions that glibc's libraries do not have in every release.
    pub lost_references: LostReferences,
    /// All references were looked at. False only for an input that is made to be slow.
    pub references_complete: bool,
    /// The verdict for the platform; `None` without native code for it.
    pub verdict: Option<Verdict>,
    /// What was looked at beside the input: processes that it shares, a baseline. Empty unless it is set.
    pub beside: Beside,
    /// Per object the first root that loads it; itself if none does.
    first_roots: Vec<usize>,
}

/// One ELF member.
pub struct AuditObject<'a> {
    /// The member.
    pub member: &'a Member,
    /// Its facts.
    pub object: &'a Object,
    /// What it is for.
    pub role: Role,
    /// It is of the platform's architecture and a loader would load it: it counts for the verdict.
    pub counts: bool,
    /// The C library that it was linked against, where that can be told.
    pub libc: Option<Libc>,
    /// The runtimes that it carries or needs.
    pub carries: Carries,
}

/// What an ELF member is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A Python extension module.
    Extension(Extension),
    /// A program.
    Program,
    /// Any other shared object.
    Library,
    /// An object file (`ET_REL`) or a core dump: no loader opens it.
    NotLinked,
    /// Split debug information.
    Debug,
}

impl<'a> Audit<'a> {
    /// Computes the model.
    pub fn new(subject: &'a Subject, settings: &'a Settings) -> Self {
        let platform_tags = platform::platform_tags(subject);
        let claims = platform::claims(&platform_tags, settings.target.as_deref(), &settings.policies);
        let platform = platform::platform(subject, &claims, &platform_tags);
        let mut audit = Self::model(subject, settings, platform_tags, claims, platform);
        audit.verdict = verdict::judge(&audit);
        audit
    }

    /// The same input before another C library than its verdict's, with the claims about that one; without a verdict.
    pub(crate) fn before(&self, libc: Libc) -> Option<Self> {
        let platform = Platform { libc, ..self.platform? };
        let claims = self.claims.iter().filter(|claim| claim.libc() == Some(libc)).cloned().collect();
        Some(Self::model(self.subject, self.settings, self.platform_tags.clone(), claims, Some(platform)))
    }

    fn model(
        subject: &'a Subject,
        settings: &'a Settings,
        platform_tags: Vec<PlatformTag>,
        claims: Vec<Claim>,
        platform: Option<Platform>,
    ) -> Self {
        let objects = objects(subject, platform);
        let libc = platform.map_or(Libc::Glibc, |p| p.libc);
        let judged = judged(&claims, platform, &settings.policies);
        let resolution = resolve(&objects, libc, judged);
        let requires = requires(subject, platform, settings);
        let first_roots = first_roots(&resolution, objects.len());
        let mut audit = Self {
            subject,
            settings,
            platform_tags,
            claims,
            platform,
            objects,
            resolution,
            externals: Vec::new(),
            requires,
            open_references: Vec::new(),
            lost_references: LostReferences::default(),
            references_complete: true,
            verdict: None,
            beside: Beside::default(),
            first_roots,
        };
        audit.externals = external::externals(&audit);
        (audit.open_references, audit.references_complete) = references::open_references(&audit);
        audit.lost_references = LostReferences::gather(&audit);
        audit
    }

    /// Objects that count for the verdict, with their index.
    pub fn counted(&self) -> impl Iterator<Item = (usize, &AuditObject<'a>)> {
        self.objects.iter().enumerate().filter(|(_, o)| o.counts)
    }

    /// Objects that a loader opens, of whatever architecture, with their index.
    pub fn loadable(&self) -> impl Iterator<Item = (usize, &AuditObject<'a>)> {
        let opened = |entry: &AuditObject<'_>| !matches!(entry.role, Role::NotLinked | Role::Debug);
        self.objects.iter().enumerate().filter(move |(_, entry)| opened(entry))
    }

    /// The library from outside that is NEEDED by that name.
    pub fn external(&self, soname: &str) -> Option<&External> {
        let found = self.externals.binary_search_by(|external| external.soname.as_str().cmp(soname));
        self.externals.get(found.ok()?)
    }

    /// Name of an object's member.
    pub fn member_name(&self, object: usize) -> &'a str {
        self.objects.get(object).map_or("", |o| &o.member.name)
    }

    /// The objects that are loaded together with this one, itself included: the load order of the first root that
    /// brings it in.
    pub fn scope_of(&self, object: usize) -> Vec<usize> {
        let scope: Vec<usize> = self.resolution.closure(self.root_of(object)).collect();
        if scope.is_empty() { vec![object] } else { scope }
    }

    /// The first root that brings an object in; itself if none does.
    pub fn root_of(&self, object: usize) -> usize {
        self.first_roots.get(object).copied().unwrap_or(object)
    }

    /// An unreachable need may be met all the same: something that is imported before it brings the library. For what
    /// an extension module loads that must be another extension module, since Python imports nothing else; for a
    /// library that is opened by name any other will do. What runs as a program has nobody to help it.
    pub fn may_be_preloaded(&self, need: &Need) -> bool {
        let role = |object: usize| self.objects.get(object).map_or(&Role::Library, |o| &o.role);
        let helps = |candidate: &usize| match (role(need.root), role(*candidate)) {
            (Role::Extension(_), helper) => matches!(helper, Role::Extension(_)),
            (_, helper) => *helper != Role::Program,
        };
        *role(need.from) != Role::Program
            && *role(need.root) != Role::Program
            && self.resolution.preload_candidates(need).iter().any(helps)
    }

    /// The normalised name of the distribution, empty if unknown.
    pub fn distribution(&self) -> String {
        self.subject.name_and_version().map(|(name, _)| normalize_name(&name)).unwrap_or_default()
    }

    /// Why there is no verdict on an input that has native code, for Linux or for another system.
    pub fn not_judged(&self) -> Option<String> {
        if self.verdict.is_some() {
            return None;
        }
        let machines: BTreeSet<String> =
            self.loadable().map(|(_, entry)| entry.object.identity.machine_name()).collect();
        if machines.is_empty() {
            let elsewhere = |tag: &PlatformTag| !tag.is_linux() && *tag != PlatformTag::Any;
            let foreign = !self.platform_tags.is_empty() && self.platform_tags.iter().all(elsewhere);
            return foreign.then(|| "not a Linux wheel".to_owned());
        }
        let machines = machines.into_iter().collect::<Vec<_>>().join(", ");
        Some(match self.platform {
            Some(platform) => format!("its native code is for {machines}, not for {}", platform.arch.tag()),
            None => format!("no policy covers {machines}"),
        })
    }

    /// The input claims to be for any platform and has no native code.
    pub fn is_pure(&self) -> bool {
        self.objects.is_empty()
            && !self.platform_tags.is_empty()
            && self.platform_tags.iter().all(|t| *t == PlatformTag::Any)
    }
}

fn objects(subject: &Subject, platform: Option<Platform>) -> Vec<AuditObject<'_>> {
    subject
        .objects()
        .map(|(member, object)| {
            let role = role(member, object);
            let loadable = !matches!(role, Role::NotLinked | Role::Debug);
            let arch = platform.map(|p| p.arch.tag());
            let counts = loadable && arch.is_some() && object.identity.arch() == arch;
            let carries = abiaudit_detect::detect(object, &member.markers);
            AuditObject { member, object, role, counts, libc: platform::libc_of(object), carries }
        })
        .collect()
}

fn role(member: &Member, object: &Object) -> Role {
    if object.debug_only {
        return Role::Debug;
    }
    match object.identity.object_type {
        ObjectType::Executable | ObjectType::Shared => {}
        _ => return Role::NotLinked,
    }
    if let Some(extension) = python::extension(member, object) {
        return Role::Extension(extension);
    }
    if object.is_program() { Role::Program } else { Role::Library }
}

/// The target that says which libraries systems have: the first that is claimed of the platform's C library, else the
/// newest.
pub(crate) fn judged<'t>(
    claims: &'t [Claim],
    platform: Option<Platform>,
    policies: &'t PolicySet,
) -> Option<&'t Target> {
    let of_platform = |claim: &&Claim| platform.is_none_or(|p| claim.libc() == Some(p.libc));
    let claimed = claims.iter().filter(of_platform).find_map(|c| c.target.as_ref()?.as_ref().ok());
    claimed.or_else(|| platform.and_then(|p| policies.ladder(p.libc, p.arch).last()))
}

/// All loadable objects take part in the search, those of another architecture too: the loader skips them itself.
/// A copy in the wheel to which no path leads does no harm where the systems of the target have the library.
fn resolve(objects: &[AuditObject<'_>], libc: Libc, judged: Option<&Target>) -> Resolution {
    let libraries: Vec<Library<'_>> =
        objects.iter().map(|o| Library { path: &o.member.installed, object: o.object }).collect();
    let libc = match libc {
        Libc::Glibc => search::Libc::Glibc,
        Libc::Musl => search::Libc::Musl,
    };
    let has = |soname: &str| judged.is_some_and(|target| external::is_system(target, soname));
    let system = search::System { loaded: &scopes::INTERPRETER_LIBRARIES, has: &has };
    search::resolve_beside(&libraries, libc, system)
}

fn first_roots(resolution: &Resolution, objects: usize) -> Vec<usize> {
    let mut first: Vec<usize> = (0..objects).collect();
    // The earlier root overwrites the later one.
    for &root in resolution.roots.iter().rev() {
        for member in resolution.closure(root) {
            if let Some(slot) = first.get_mut(member) {
                *slot = root;
            }
        }
    }
    first
}

/// What is required on the platform under every Python that the tags name, and what is assumed to be installed.
fn requires(subject: &Subject, platform: Option<Platform>, settings: &Settings) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = settings.assume_installed.iter().cloned().collect();
    let Some(metadata) = subject.dist_info.as_ref().and_then(|d| d.metadata.as_ref()) else { return keys };
    let machine = platform.map_or("x86_64", |p| p.arch.tag());
    let versions = python::versions_of(subject);
    let each = versions.iter().map(|version| required(metadata, &Environment::linux(version, machine)));
    keys.extend(each.reduce(|all, one| all.intersection(&one).cloned().collect()).unwrap_or_default());
    keys
}

/// The requirements whose markers hold in an environment.
fn required(metadata: &Metadata, environment: &Environment) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for requirement in &metadata.requires_dist {
        if let (true, Some(name)) = (requirement.applies(environment), &requirement.name) {
            let parsed = requirement.parsed.as_ref();
            let extras: Vec<String> =
                parsed.iter().flat_map(|p| p.extras.iter().map(ToString::to_string)).collect();
            keys.extend(declaration_keys(name, extras.iter().map(String::as_str)));
        }
    }
    keys
}
