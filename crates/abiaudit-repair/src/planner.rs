//! From what a wheel is to what has to be done to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::rc::Rc;

use abiaudit_edit::{Edit, EditPlan, StripLevel};
use abiaudit_policy::{Overlay, PolicySet, Target};
use abiaudit_rules::{Audit, Blockers, Platform, Settings, Verdict};
use abiaudit_scan::Subject;
use abiaudit_wheel::archive::Scratch;
use abiaudit_wheel::distinfo::DistInfoProblem;
use abiaudit_wheel::distinfo::record::{ActualMember, RecordProblem, compare};
use abiaudit_wheel::writer::is_record_or_signature;
use abiaudit_wheel::{Archive, Limits, PlatformTag, WheelName};
use sha2::{Digest, Sha256};

use crate::closure::{Closure, Edited, Grafted, Grafter};
use crate::error::RepairError;
use crate::facts;
use crate::machine::{Library, Searcher, Source};
use crate::names::hex;
use crate::options::Options;
use crate::packages::{Package, Packages};
use crate::plan::{Dropped, Graft, LicenceFile, MemberEdit, Plan, SCHEMA, ScriptMove, TagChange};
use crate::{sbom, tags};

/// Most reasons that an error lists.
const REASONS_MAX: usize = 20;

/// What a plan is made from: the settings of the audits, with the exclusions of the options laid over them.
pub(crate) fn settings(options: &Options) -> Result<Settings, RepairError> {
    let mut settings = options.settings.clone();
    let rules = options.exclude.iter().map(|pattern| abiaudit_policy::LibraryRule {
        soname: pattern.clone(),
        action: abiaudit_policy::Action::Allow,
        targets: None,
        reason: "--exclude".to_owned(),
    });
    let overlay = Overlay { libraries: rules.collect(), ceilings: Vec::new() };
    if !overlay.libraries.is_empty() {
        settings.policies = settings.policies.with_overlay(&overlay).map_err(|error| {
            RepairError::UnknownTarget { tag: "--exclude".to_owned(), reason: error.to_string() }
        })?;
    }
    settings.target = None;
    Ok(settings)
}

/// Says what has to be done to a scanned wheel.
///
/// # Errors
/// [`RepairError`] if the wheel cannot be repaired, with all reasons that are known.
pub fn plan(subject: &Subject, options: &Options) -> Result<Plan, RepairError> {
    let settings = settings(options)?;
    let name = subject.file_name.as_ref().ok_or(RepairError::NoPlatform)?;
    let dist_info = check_dist_info(subject)?;
    let mut plan = empty_plan(name, dist_info);
    let audit = Audit::new(subject, &settings);
    if audit.counted().next().is_none() {
        return without_code(&audit, options, plan);
    }
    let platform = audit.platform.ok_or(RepairError::NoPlatform)?;
    let wanted = wanted(options, platform, &settings.policies)?;
    let chosen = choose(&audit, options, &settings, platform, wanted.as_ref())?;
    let target = chosen.target;
    plan.target = Some(target.tag());
    describe(&audit, options, chosen.closure, &mut plan)?;
    if options.update_tags {
        let refuted = refuted(&audit, &target);
        let platforms = tags::platforms(name, &target, wanted.as_ref(), options.only_platform, &refuted);
        // The order of tags has no meaning.
        let set = |tags: &[PlatformTag]| tags.iter().cloned().collect::<BTreeSet<_>>();
        if set(&platforms) != set(&name.platforms) {
            let text = |tags: &[PlatformTag]| tags.iter().map(ToString::to_string).collect();
            plan.tags = Some(TagChange { from: text(&name.platforms), to: text(&platforms) });
            plan.output = WheelName { platforms, ..name.clone() }.to_string();
        }
    }
    if !plan.changes_nothing() {
        note_dropped(subject, &mut plan);
    }
    Ok(plan)
}

/// Claims about the other C library that do not hold as the wheel is; a repair for this one does not mend them.
fn refuted(audit: &Audit<'_>, target: &Target) -> Vec<String> {
    let claims = audit.verdict.iter().flat_map(|verdict| &verdict.claims);
    let family = target.libc().tag_family();
    claims
        .filter(|claim| !claim.holds && !claim.tag.starts_with(family))
        .map(|claim| claim.tag.clone())
        .collect()
}

fn empty_plan(name: &WheelName, dist_info: String) -> Plan {
    Plan {
        schema: SCHEMA.to_owned(),
        input: name.to_string(),
        output: name.to_string(),
        dist_info,
        target: None,
        tags: None,
        mends: Vec::new(),
        grafts: Vec::new(),
        edits: Vec::new(),
        scripts: Vec::new(),
        sbom: None,
        licences: Vec::new(),
        dropped: Vec::new(),
        notes: Vec::new(),
    }
}

/// The one dist-info directory, with a WHEEL to rewrite and a RECORD that tells the truth.
fn check_dist_info(subject: &Subject) -> Result<String, RepairError> {
    let refuse = |text: &str| Err(RepairError::DistInfo(text.to_owned()));
    let Some(info) = &subject.dist_info else { return refuse("the wheel has no dist-info directory") };
    for problem in &info.problems {
        match problem {
            DistInfoProblem::SeveralDistInfos { directories } => {
                return refuse(&format!(
                    "the wheel has several dist-info directories: {}",
                    directories.join(", ")
                ));
            }
            DistInfoProblem::MissingFile { file: file @ ("WHEEL" | "RECORD") } => {
                return refuse(&format!("the wheel has no {file}; repack it with a tool that writes it"));
            }
            DistInfoProblem::Unreadable { file, error } => {
                return refuse(&format!("{file} cannot be read: {error}"));
            }
            _ => {}
        }
    }
    let Some(directory) = info.directory.clone() else {
        return refuse("the wheel has no dist-info directory");
    };
    if let Some(record) = &info.record {
        let actual = subject.members.iter().map(|member| ActualMember {
            name: &member.name,
            size: member.sha256.map(|_| member.size),
            sha256: member.sha256,
        });
        let members: Vec<String> = compare(record, actual)
            .into_iter()
            .filter_map(|problem| match problem {
                RecordProblem::HashMismatch { path, .. } | RecordProblem::SizeMismatch { path, .. } => {
                    Some(path)
                }
                _ => None,
            })
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        if !members.is_empty() {
            return Err(RepairError::Record { members });
        }
    }
    Ok(directory)
}

/// A wheel without native code for a platform that policies cover.
fn without_code(audit: &Audit<'_>, options: &Options, mut plan: Plan) -> Result<Plan, RepairError> {
    if !audit.objects.is_empty() {
        return Err(RepairError::NoPlatform);
    }
    if options.allow_pure {
        plan.notes.push("no native code: copied as it is".to_owned());
        return Ok(plan);
    }
    Err(RepairError::Pure)
}

/// The target that `--plat` names, for the wheel's architecture and C library.
pub(crate) fn wanted(
    options: &Options,
    platform: Platform,
    policies: &PolicySet,
) -> Result<Option<Target>, RepairError> {
    let Some(text) = options.platform.as_deref().filter(|text| *text != "auto") else { return Ok(None) };
    let unknown = |reason: String| RepairError::UnknownTarget { tag: text.to_owned(), reason };
    let arch = platform.arch.tag();
    let named = match PlatformTag::parse(text) {
        tag @ (PlatformTag::Manylinux { .. } | PlatformTag::Musllinux { .. }) => tag,
        _ => PlatformTag::parse(&format!("{text}_{arch}")),
    };
    let complete = match (&named, named.arch()) {
        (PlatformTag::Manylinux { .. } | PlatformTag::Musllinux { .. }, Some(named_arch))
            if named_arch == arch =>
        {
            named
        }
        (PlatformTag::Manylinux { .. } | PlatformTag::Musllinux { .. }, Some(other))
            if other.parse::<abiaudit_policy::Arch>().is_ok() =>
        {
            return Err(unknown(format!("the wheel is for {arch}, not for {other}")));
        }
        _ => {
            return Err(unknown(
                "expected a manylinux or musllinux tag, such as manylinux_2_28, or auto".to_owned(),
            ));
        }
    };
    let target = policies.target(&complete.to_string()).map_err(|error| unknown(error.to_string()))?;
    if target.libc() != platform.libc {
        return Err(unknown(format!("the wheel is for {}, not for {}", platform.libc, target.libc())));
    }
    Ok(Some(target))
}

struct Chosen {
    target: Target,
    closure: Closure,
}

/// The closure with the fewest libraries, and with it the oldest target that the content honours: of two targets the older
/// one may lack a library that the younger one has, and then costs a copy more (auditwheel's rule too).
fn choose(
    audit: &Audit<'_>,
    options: &Options,
    settings: &Settings,
    platform: Platform,
    wanted: Option<&Target>,
) -> Result<Chosen, RepairError> {
    let (searcher, included) = searcher(options, platform)?;
    let name = audit.subject.file_name.as_ref().map_or("", |name| name.name.as_str());
    let grafter = Grafter {
        audit,
        options,
        searcher: &searcher,
        included: &included,
        libc: platform.libc,
        directory: format!("{name}{}", options.lib_sdir),
        distribution: name.to_owned(),
    };
    let candidates = candidates(settings, platform, wanted, options.only_platform);
    let mut failure = None;
    let mut best: Option<Chosen> = None;
    let mut nearest: Option<Vec<String>> = None;
    let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
    for target in &candidates {
        if !seen.insert(libraries_of(target)) {
            continue;
        }
        let closure = match closure_for(&grafter, target) {
            Ok(Some(closure)) => closure,
            Ok(None) => continue,
            Err(error) => {
                failure.get_or_insert(error);
                continue;
            }
        };
        let (reached, blockers) = judge(audit, &closure, options, settings, wanted, &candidates);
        match reached {
            Some(target) if best.as_ref().is_none_or(|b| closure.grafted.len() < b.closure.grafted.len()) => {
                best = Some(Chosen { target, closure });
            }
            Some(_) => {}
            None => nearest = Some(blockers),
        }
    }
    let asked = wanted.or(candidates.last()).map_or_else(String::new, Target::tag);
    best.ok_or_else(|| match (failure, nearest) {
        (_, Some(reasons)) => RepairError::Blocked { target: asked, reasons },
        (Some(error), None) => error,
        (None, None) => RepairError::Blocked { target: asked, reasons: Vec::new() },
    })
}

/// Without grafting the closure is empty and the verdict decides alone.
fn closure_for(grafter: &Grafter<'_>, target: &Target) -> Result<Option<Closure>, RepairError> {
    if grafter.options.graft { grafter.closure(target) } else { Ok(Some(Closure::default())) }
}

/// Targets that may become the wheel's, oldest first: none newer than what is wanted.
fn candidates(settings: &Settings, platform: Platform, wanted: Option<&Target>, only: bool) -> Vec<Target> {
    let Some(wanted) = wanted else { return settings.policies.ladder(platform.libc, platform.arch).to_vec() };
    let release = |target: &Target| target.glibc_version().or_else(|| target.musl_version());
    let mut targets: Vec<Target> =
        if only { Vec::new() } else { settings.policies.ladder(platform.libc, platform.arch).to_vec() };
    targets.retain(|target| release(target) < release(wanted));
    targets.push(wanted.clone());
    targets
}

/// What decides which libraries have to be grafted.
fn libraries_of(target: &Target) -> Vec<String> {
    let mut libraries: Vec<String> = target.libraries().map(std::borrow::Cow::into_owned).collect();
    libraries.sort();
    libraries
}

/// The oldest candidate that the wheel honours with this closure, judged by the gate on facts as they will be; else what
/// stands in the way.
fn judge(
    audit: &Audit<'_>,
    closure: &Closure,
    options: &Options,
    settings: &Settings,
    wanted: Option<&Target>,
    candidates: &[Target],
) -> (Option<Target>, Vec<String>) {
    let imagined = facts::repaired(audit, closure, options.ignore_isa);
    let settings = Settings { target: wanted.map(Target::tag), ..settings.clone() };
    let made = match (&imagined, wanted) {
        // Nothing changes and nothing in particular is wanted: the input's own audit says it all.
        (None, None) => None,
        _ => Some(Audit::new(imagined.as_ref().unwrap_or(audit.subject), &settings)),
    };
    let future = made.as_ref().unwrap_or(audit);
    let Some(verdict) = &future.verdict else { return (None, Vec::new()) };
    let holds = wanted.is_none() || verdict.claims.iter().all(|claim| claim.holds);
    let reached = candidates.iter().find(|target| target.tag() == verdict.tag_with_providers);
    match (holds, reached, wanted) {
        (true, Some(target), _) => (Some(target.clone()), Vec::new()),
        // The oldest target that is honoured is newer than the wanted one only if that one is not on the ladder.
        (true, None, Some(wanted)) => (Some(wanted.clone()), Vec::new()),
        _ => (None, reasons(future, verdict)),
    }
}

/// What stands in the way of the wanted target, or of the newest one.
fn reasons(audit: &Audit<'_>, verdict: &Verdict) -> Vec<String> {
    let asked = verdict.claims.iter().find(|claim| !claim.holds && audit.settings.target.is_some());
    let blockers =
        asked.map(|claim| &claim.blockers).or_else(|| verdict.ladder.first().map(|step| &step.blockers));
    let mut reasons = blockers.map_or_else(Vec::new, |blockers| describe_blockers(audit, blockers));
    if reasons.len() > REASONS_MAX {
        let more = reasons.len() - REASONS_MAX;
        reasons.truncate(REASONS_MAX);
        reasons.push(format!("and {more} more"));
    }
    if blockers.is_some_and(|blockers| !blockers.symbols.is_empty()) {
        reasons.push(
            "mend: compile on an older system (the manylinux image of that tag), or ask for a newer tag"
                .to_owned(),
        );
    }
    reasons
}

fn describe_blockers(audit: &Audit<'_>, blockers: &Blockers) -> Vec<String> {
    let symbols = blockers.symbols.iter().map(|blocker| {
        let symbol =
            blocker.symbol.as_deref().map_or_else(|| "a version".to_owned(), abiaudit_rules::demangle);
        let node = blocker.node.as_deref().unwrap_or("without version");
        format!("{} uses {symbol} {node} of {}", audit.member_name(blocker.object), blocker.library)
    });
    let libraries = blockers.libraries.iter().map(|blocker| {
        let by: Vec<&str> = blocker.needed_by.iter().map(|&object| audit.member_name(object)).collect();
        format!("{} is needed by {} and the target does not promise it", blocker.soname, by.join(", "))
    });
    let forbidden = blockers.forbidden.iter().map(|symbol| {
        format!(
            "{} uses {} of {}, which some systems do not export",
            audit.member_name(symbol.object),
            symbol.symbol,
            symbol.library
        )
    });
    let isa = blockers.isa.iter().map(|(object, level)| {
        format!(
            "{} needs a processor of level {level:?} (--disable-isa-ext-check lets it pass)",
            audit.member_name(*object)
        )
    });
    let python = blockers.python.iter().map(|(object, symbols)| {
        format!("{} needs a Python that no longer exists: {}", audit.member_name(*object), symbols.join(", "))
    });
    symbols.chain(libraries).chain(forbidden).chain(isa).chain(python).collect()
}

/// The search on the machine, with what was given by hand.
fn searcher(options: &Options, platform: Platform) -> Result<(Searcher, Vec<Rc<Library>>), RepairError> {
    let mut searcher =
        Searcher::new(options.root.clone(), platform.arch, platform.libc, options.paths.clone());
    let mut included = Vec::new();
    for include in &options.include {
        let path = &include.path;
        let real = fs::canonicalize(path).map_err(RepairError::io("read", path))?;
        let library = Library::read(path, &real).ok_or_else(|| RepairError::Io {
            action: "use",
            path: path.clone(),
            source: std::io::Error::new(std::io::ErrorKind::InvalidData, "not an ELF file that can be read"),
        })?;
        included.push(searcher.give(library));
    }
    for wheel in &options.from_wheels {
        for library in libraries_in(wheel)? {
            searcher.give(library);
        }
    }
    Ok((searcher, included))
}

/// The shared libraries of another wheel.
fn libraries_in(wheel: &std::path::Path) -> Result<Vec<Library>, RepairError> {
    let archive = Archive::open(wheel, &Limits::default())
        .map_err(|source| abiaudit_scan::ScanError::Archive { path: wheel.to_owned(), source })?;
    let mut scratch = Scratch::new();
    let mut libraries = Vec::new();
    for member in archive.members().iter().filter(|member| member.name.contains(".so")) {
        let Ok(bytes) = archive.read_prefix(member, &mut scratch, usize::MAX) else { continue };
        let source = Source::Wheel { wheel: wheel.to_owned(), member: member.name.clone() };
        libraries.extend(Library::new(source, &bytes));
    }
    Ok(libraries)
}

/// Writes a closure into a plan, with owners and licences of what is grafted.
fn describe(
    audit: &Audit<'_>,
    options: &Options,
    closure: Closure,
    plan: &mut Plan,
) -> Result<(), RepairError> {
    let strip = |edits: EditPlan| {
        if !options.strip {
            return edits;
        }
        let strip = Edit::Strip { level: StripLevel::Symbols, debug_link: None };
        EditPlan::new(std::iter::once(strip).chain(edits.edits))
    };
    for Edited { object, member, plan: edits } in closure.edited {
        let from = audit.member_name(object).to_owned();
        if from == member {
            plan.edits.push(MemberEdit { member, plan: strip(edits) });
        } else {
            plan.scripts.push(ScriptMove { from, to: member, plan: strip(edits) });
        }
    }
    let paths: Vec<Option<String>> =
        closure.grafted.iter().map(|grafted| path_inside(options, grafted)).collect();
    let known: Vec<String> = paths.iter().flatten().cloned().collect();
    let owners =
        if known.is_empty() { BTreeMap::new() } else { Packages::open(&options.root).owners(&known) };
    for (grafted, path) in closure.grafted.into_iter().zip(paths) {
        let package = path.and_then(|path| owners.get(&path).cloned());
        plan.licences.extend(package.iter().filter_map(|package| licence(options, package, &plan.dist_info)));
        let object = grafted.library.object();
        plan.grafts.push(Graft {
            source: grafted.library.source.clone(),
            sha256: hex(&grafted.library.sha256()),
            soname: grafted.soname,
            name: grafted.name,
            member: grafted.member,
            build_id: object.and_then(|object| object.notes.build_id_hex()),
            needed_by: grafted.needed_by.into_iter().collect(),
            package,
            plan: strip(grafted.plan),
        });
    }
    plan.grafts.sort_by(|a, b| a.member.cmp(&b.member));
    plan.edits.sort_by(|a, b| a.member.cmp(&b.member));
    plan.scripts.sort_by(|a, b| a.from.cmp(&b.from));
    plan.licences.sort_by(|a, b| a.member.cmp(&b.member));
    plan.licences.dedup();
    let taken: BTreeSet<&str> = audit.subject.members.iter().map(|member| member.name.as_str()).collect();
    plan.licences.retain(|licence| !taken.contains(licence.member.as_str()));
    plan.notes.extend(closure.notes);
    if !plan.grafts.is_empty() {
        plan.sbom = Some(sbom::member_name(&plan.dist_info));
    }
    let new =
        plan.grafts.iter().map(|graft| &graft.member).chain(plan.scripts.iter().map(|script| &script.to));
    let mut new = new;
    match new.find(|member| taken.contains(member.as_str())) {
        Some(member) => Err(RepairError::Occupied { member: member.clone() }),
        None => Ok(()),
    }
}

/// The path inside the tree of a library of the machine.
fn path_inside(options: &Options, grafted: &Grafted) -> Option<String> {
    match &grafted.library.source {
        Source::File { path, .. } => options.root.inside(path),
        Source::Wheel { .. } => None,
    }
}

fn licence(options: &Options, package: &Package, dist_info: &str) -> Option<LicenceFile> {
    let path = package.licence_file.clone()?;
    let text = options.root.read(&path)?;
    let file = path.rsplit('/').next().unwrap_or("licence");
    let member = format!("{dist_info}/licenses/{}/{file}", package.name);
    Some(LicenceFile { member, path, sha256: hex(&Sha256::digest(text)) })
}

/// Signatures that no longer hold, and rows of RECORD that nothing stands behind.
fn note_dropped(subject: &Subject, plan: &mut Plan) {
    for member in &subject.members {
        let signature =
            is_record_or_signature(&member.name, &plan.dist_info) && !member.name.ends_with("/RECORD");
        if signature {
            plan.dropped.push(Dropped {
                member: member.name.clone(),
                reason: "a signature of the old RECORD (PEP 427); sign the repaired wheel".to_owned(),
            });
        }
    }
    let record = subject.dist_info.as_ref().and_then(|info| info.record.as_ref());
    let Some(record) = record else { return };
    let names: BTreeSet<&str> = subject.members.iter().map(|member| member.name.as_str()).collect();
    for row in &record.rows {
        if !names.contains(row.path.as_str()) && !row.path.ends_with('/') {
            plan.notes
                .push(format!("RECORD lists {}, which is not in the wheel; the new one does not", row.path));
        }
    }
}
