//! What is mended in the members of a wheel, before libraries are grafted.
//!
//! The plan of each member is carried out in memory at once, so that what follows (which libraries are external, which tag
//! the content honours) goes by the facts of the mended file and not by what the edits are believed to mean.

mod glibc;
mod search_path;

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_detect::{CxxClass, Exposure, MarkerScan};
use abiaudit_edit::{Edit, EditPlan};
use abiaudit_elf::{Object, Wants};
use abiaudit_mend::{Method, Patient, cure};
use abiaudit_policy::{Libc, PolicySet, Target};
use abiaudit_rules::{Audit, AuditObject, Role};
use abiaudit_scan::{Content, Subject};
use abiaudit_wheel::Archive;
use serde::{Deserialize, Serialize};

use crate::error::RepairError;
use crate::options::{Mend, Options};
use crate::transaction::content_of;

/// What is mended in one member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberMend {
    /// The member.
    pub member: String,
    /// What is mended, by the names of the option.
    pub mends: Vec<String>,
    /// What a person should know of it.
    pub notes: Vec<String>,
    /// What is done to it, before all other edits.
    pub plan: EditPlan,
}

/// Plans the mends that `options` ask for, and makes the facts of `subject` those of the mended members.
pub(crate) fn plan(
    archive: &Archive,
    subject: &mut Subject,
    options: &Options,
) -> Result<Vec<MemberMend>, RepairError> {
    if options.mends.is_empty() {
        return Ok(Vec::new());
    }
    let settings = crate::planner::settings(options)?;
    let audit = Audit::new(subject, &settings);
    let Some(platform) = audit.platform else { return Ok(Vec::new()) };
    let wanted = crate::planner::wanted(options, platform, &settings.policies)?;
    let target = target(&audit, &settings.policies, wanted);
    let planner = Planner { archive, audit: &audit, options, target };
    let planned: Vec<(MemberMend, Vec<u8>)> = audit
        .counted()
        .filter_map(|(index, entry)| planner.member(index, entry).transpose())
        .collect::<Result<_, _>>()?;
    for (mend, bytes) in &planned {
        update(subject, &mend.member, bytes)?;
    }
    Ok(planned.into_iter().map(|(mend, _)| mend).collect())
}

/// The oldest system that the mended wheel is for: what was asked for, else the oldest claim, else what the content honours.
fn target(audit: &Audit<'_>, policies: &PolicySet, wanted: Option<Target>) -> Option<Target> {
    let claimed = audit.claims.iter().find_map(|claim| policies.target(&claim.tag.to_string()).ok());
    let honoured = || policies.target(&audit.verdict.as_ref()?.tag_with_providers).ok();
    let newest = || {
        let platform = audit.platform?;
        policies.ladder(platform.libc, platform.arch).last().cloned()
    };
    wanted.or(claimed).or_else(honoured).or_else(newest)
}

struct Planner<'a> {
    archive: &'a Archive,
    audit: &'a Audit<'a>,
    options: &'a Options,
    target: Option<Target>,
}

/// The edits of one member while they are collected.
#[derive(Default)]
struct Draft {
    mends: BTreeSet<&'static str>,
    notes: Vec<String>,
    edits: Vec<Edit>,
}

impl Draft {
    fn add(&mut self, mend: &'static str, edits: Vec<Edit>) {
        if !edits.is_empty() {
            self.mends.insert(mend);
            self.edits.extend(edits);
        }
    }
}

impl Planner<'_> {
    /// What is mended in a member, with its content afterwards; `None` if there is nothing to mend.
    fn member(
        &self,
        index: usize,
        entry: &AuditObject<'_>,
    ) -> Result<Option<(MemberMend, Vec<u8>)>, RepairError> {
        let asked = |mend| self.options.mends.contains(&mend);
        let mut draft = Draft::default();
        if asked(Mend::ExecutableStack) && entry.object.executable_stack() {
            draft.add("execstack", vec![Edit::ClearExecutableStack]);
            draft
                .notes
                .push("its code must not need an executable stack (nested functions of C do)".to_owned());
        }
        if asked(Mend::EmptySegments) && !entry.object.empty_loads().is_empty() {
            draft.add("heal", vec![Edit::Heal]);
        }
        if asked(Mend::SearchPath) {
            draft.add("rpath", search_path::relative(self.audit, index));
        }
        if let Some(target) = self.target.as_ref().filter(|_| asked(Mend::Glibc)) {
            draft.add("glibc", glibc::older_versions(entry.object, target));
        }
        let mut bytes = None;
        if !self.methods().is_empty() && breaks_libstdcxx(entry) {
            let read = self.read(&entry.member.name)?;
            self.cure(index, entry, &read, &mut draft)?;
            bytes = Some(read);
        }
        if draft.edits.is_empty() {
            return Ok(None);
        }
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => self.read(&entry.member.name)?,
        };
        let member = entry.member.name.clone();
        let plan = EditPlan::new(draft.edits);
        let edited = abiaudit_edit::edit(&bytes, &plan, &abiaudit_edit::Options::default())
            .map_err(|source| RepairError::Edit { member: member.clone(), source })?;
        if !edited.is_changed() {
            return Ok(None);
        }
        let bytes = edited.bytes;
        let mends = draft.mends.into_iter().map(str::to_owned).collect();
        Ok(Some((MemberMend { member, mends, notes: draft.notes, plan }, bytes)))
    }

    /// The methods by which libstdc++ may be mended.
    fn methods(&self) -> Vec<Method> {
        let methods = self.options.mends.iter().flat_map(|mend| match mend {
            Mend::Libstdcxx => Method::ALL.to_vec(),
            Mend::LibstdcxxBy(method) => vec![*method],
            _ => Vec::new(),
        });
        methods.collect()
    }

    fn read(&self, member: &str) -> Result<Vec<u8>, RepairError> {
        let unreadable = || RepairError::DistInfo(format!("{member} cannot be read"));
        content_of(self.archive, self.archive.member(member).ok_or_else(unreadable)?)
    }

    fn cure(
        &self,
        index: usize,
        entry: &AuditObject<'_>,
        bytes: &[u8],
        draft: &mut Draft,
    ) -> Result<(), RepairError> {
        let Some(target) = &self.target else { return Ok(()) };
        let wanted = self.wanted_of(index);
        let patient =
            Patient { bytes, object: entry.object, carries: &entry.carries, target, wanted: &wanted };
        let cure = cure(&patient, &self.methods()).map_err(|refusals| RepairError::Incurable {
            member: entry.member.name.clone(),
            reasons: refusals
                .into_iter()
                .map(|(method, refusal)| (method.name(), refusal.to_string()))
                .collect(),
        })?;
        draft.add(cure.method.name(), cure.plan.edits);
        draft.notes.extend(cure.notes);
        Ok(())
    }

    /// What members that load this one ask for, with who asks. Every C++ module asks for libstdc++'s symbols; what matters
    /// is whether it may mean this copy.
    fn wanted_of(&self, index: usize) -> BTreeMap<String, String> {
        let loads =
            |by: usize| by != index && self.audit.resolution.closure(by).any(|object| object == index);
        let mut wanted = BTreeMap::new();
        for (_, other) in self.audit.loadable().filter(|(by, _)| loads(*by)) {
            for symbol in other.object.symbols.undefined() {
                let name = other.object.symbols.name_text(symbol);
                wanted.entry(name).or_insert_with(|| other.member.name.clone());
            }
        }
        wanted
    }
}

/// An exported or half-hidden libstdc++ in a library for glibc (ABI201, ABI203).
fn breaks_libstdcxx(entry: &AuditObject<'_>) -> bool {
    let cxx = &entry.carries.cxx;
    entry.role != Role::Program
        && entry.libc != Some(Libc::Musl)
        && matches!(cxx.class, CxxClass::Full | CxxClass::FullAndNeeded)
        && matches!(cxx.exposure, Exposure::Exported | Exposure::HalfHidden)
}

/// Makes the facts of a member those of its new content. Its size and hash stay those that RECORD has.
fn update(subject: &mut Subject, name: &str, bytes: &[u8]) -> Result<(), RepairError> {
    let Some(member) = subject.members.iter_mut().find(|member| member.name == name) else { return Ok(()) };
    let unreadable = |error: abiaudit_elf::ParseError| RepairError::Unverified(format!("{name}: {error}"));
    let object = Object::from_bytes(bytes, &Wants::default()).map_err(unreadable)?;
    let mut scan = MarkerScan::new();
    scan.push(bytes);
    member.markers = scan.finish();
    member.content = Content::Object(Box::new(object));
    Ok(())
}
