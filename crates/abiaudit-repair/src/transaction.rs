//! A plan carried out: written beside its target under a name that no one takes for a wheel, verified, judged by the gate,
//! and only then given its name.
//!
//! Whatever fails on the way (an error, a full disk, an interruption), the file is removed and nothing has changed. A killed
//! process leaves the temporary file behind, `.abiaudit-repair-*.tmp`, which may be deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use abiaudit_edit::EditPlan;
use abiaudit_rules::{Audit, Finding, Settings, Severity, run};
use abiaudit_scan::{Limits, Member, Subject, scan_archive};
use abiaudit_wheel::archive::{self, MemberKind, Scratch};
use abiaudit_wheel::writer::{MODE_FILE, MODE_PROGRAM, is_record_or_signature, with_tags};
use abiaudit_wheel::{Archive, PlatformTag, Tag, WheelName, WheelWriter};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::RepairError;
use crate::facts;
use crate::names::hex;
use crate::options::Options;
use crate::plan::{Graft, Plan};
use crate::{mend, planner, sbom, script};

/// Size of the output buffer: compressed members come in pieces that are mostly larger.
const BUFFER: usize = 1 << 20;

/// A wheel that was read, and what is to be done to it.
pub struct Prepared {
    path: PathBuf,
    archive: Archive,
    subject: Subject,
    plan: Plan,
}

/// How a wheel is written.
pub struct Control<'c> {
    /// The output may replace the input; an input of another name is then removed once the output is there.
    pub in_place: bool,
    /// Version of this program, for the bill of materials.
    pub tool_version: &'c str,
    /// Asked between members: stop, and leave nothing behind.
    pub interrupted: &'c (dyn Fn() -> bool + Sync),
}

/// A wheel that was written.
#[derive(Debug)]
pub struct Repaired {
    /// Where.
    pub path: PathBuf,
    /// It has the bytes of the input.
    pub unchanged: bool,
    /// What the gate says of it, short of errors that the input did not have.
    pub findings: Vec<Finding>,
    /// SHA-256 of each member that was written anew, in hexadecimal digits.
    pub written: BTreeMap<String, String>,
}

/// Reads a wheel and plans its repair.
///
/// # Errors
/// [`RepairError`]
pub fn prepare(path: &Path, options: &Options) -> Result<Prepared, RepairError> {
    let base = path.file_name().unwrap_or_default().to_string_lossy();
    let name = WheelName::parse(&base).map_err(abiaudit_scan::ScanError::from)?;
    let limits = Limits::default();
    let archive = Archive::open(path, &limits)
        .map_err(|source| abiaudit_scan::ScanError::Archive { path: path.to_owned(), source })?;
    abiaudit_wheel::writer::check(&archive)?;
    let scan = abiaudit_scan::Options { limits, ..abiaudit_scan::Options::default() };
    let mut subject = scan_archive(&archive, path, name, &scan, &mut Vec::new());
    if options.ignore_isa {
        facts::forget_isa(&mut subject);
    }
    let mends = mend::plan(&archive, &mut subject, options)?;
    let mut plan = planner::plan(&subject, options)?;
    plan.mends = mends;
    Ok(Prepared { path: path.to_owned(), archive, subject, plan })
}

impl Prepared {
    /// What is to be done.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// SHA-256 of the input.
    pub fn input_sha256(&self) -> [u8; 32] {
        Sha256::digest(self.archive.as_bytes()).into()
    }

    /// The input as it was read.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Writes the repaired wheel into a directory, which is made if it is not there.
    ///
    /// # Errors
    /// [`RepairError`]; then neither the input nor the directory has changed.
    pub fn write(
        self,
        directory: &Path,
        options: &Options,
        control: &Control<'_>,
    ) -> Result<Repaired, RepairError> {
        let target = directory.join(&self.plan.output);
        let same = is_same_file(&self.path, &target);
        if same && !control.in_place {
            return Err(RepairError::SameFile { path: target });
        }
        if self.plan.changes_nothing() && same {
            return Ok(Repaired {
                path: target,
                unchanged: true,
                findings: Vec::new(),
                written: BTreeMap::new(),
            });
        }
        fs::create_dir_all(directory).map_err(RepairError::io("create", directory))?;
        let file = temporary(directory)?;
        if self.plan.changes_nothing() {
            fs::copy(&self.path, file.path()).map_err(RepairError::io("copy to", file.path()))?;
            restore_mode(&file)?;
            return finish(file, &target).map(|()| Repaired {
                path: target,
                unchanged: true,
                findings: Vec::new(),
                written: BTreeMap::new(),
            });
        }
        let Self { path, archive, subject, plan } = self;
        let written =
            Writing { archive: &archive, subject: &subject, plan: &plan, options, control }.write(&file)?;
        let findings = judge(&file, &archive, subject, &plan, options, &written)?;
        if (control.interrupted)() {
            return Err(RepairError::Interrupted);
        }
        finish(file, &target)?;
        if control.in_place && !same && path.parent() == target.parent() {
            fs::remove_file(&path).map_err(RepairError::io("remove", &path))?;
        }
        Ok(Repaired { path: target, unchanged: false, findings, written })
    }
}

/// One output, being written.
struct Writing<'a> {
    archive: &'a Archive,
    subject: &'a Subject,
    plan: &'a Plan,
    options: &'a Options,
    control: &'a Control<'a>,
}

impl Writing<'_> {
    /// Writes all members, those of dist-info last (PEP 427, "Recommended archiver features").
    fn write(&self, file: &NamedTempFile) -> Result<BTreeMap<String, String>, RepairError> {
        let plan = self.plan;
        let output = BufWriter::with_capacity(BUFFER, file.as_file());
        let mut writer = WheelWriter::new(self.archive, &plan.dist_info, output, self.options.write)?;
        let mut written = BTreeMap::new();
        let prefix = format!("{}/", plan.dist_info);
        let (info, code): (Vec<_>, Vec<_>) =
            self.archive.members().iter().partition(|member| member.name.starts_with(&prefix));
        for member in code {
            self.proceed()?;
            self.code(member, &mut writer, &mut written)?;
        }
        let mut copied = Vec::new();
        for graft in &plan.grafts {
            self.proceed()?;
            let content = copy_of(graft)?;
            let done = writer.add(&graft.member, MODE_PROGRAM, &content)?;
            let sha256 = hex(&done.sha256);
            written.insert(graft.member.clone(), sha256.clone());
            copied.push(sbom::Copied { graft, sha256 });
        }
        for member in info {
            self.info(member, &mut writer, &mut written)?;
        }
        self.add_info(&copied, &mut writer, &mut written)?;
        writer.finish()?;
        Ok(written)
    }

    fn proceed(&self) -> Result<(), RepairError> {
        if (self.control.interrupted)() { Err(RepairError::Interrupted) } else { Ok(()) }
    }

    /// A member that is not of dist-info.
    fn code(
        &self,
        member: &archive::Member,
        writer: &mut WheelWriter<'_, BufWriter<&File>>,
        written: &mut BTreeMap<String, String>,
    ) -> Result<(), RepairError> {
        let plan = self.plan;
        let edits = plan.edits_of(&member.name);
        let is_moved = plan.scripts.iter().any(|moved| moved.from == member.name);
        if !edits.edits.is_empty() && !is_moved {
            let content = edited(&member.name, self.content(member)?, &edits)?;
            let done = writer.replace(member, &content)?;
            written.insert(member.name.clone(), hex(&done.sha256));
            return Ok(());
        }
        if let Some(moved) = plan.scripts.iter().find(|moved| moved.from == member.name) {
            let content = edited(&moved.to, self.content(member)?, &moved.plan)?;
            let launcher = writer.replace(member, &script::launcher(&moved.to))?;
            written.insert(member.name.clone(), hex(&launcher.sha256));
            let done = writer.add(&moved.to, MODE_PROGRAM, &content)?;
            written.insert(moved.to.clone(), hex(&done.sha256));
            return Ok(());
        }
        self.keep(member, writer)
    }

    /// A member of dist-info.
    fn info(
        &self,
        member: &archive::Member,
        writer: &mut WheelWriter<'_, BufWriter<&File>>,
        written: &mut BTreeMap<String, String>,
    ) -> Result<(), RepairError> {
        let plan = self.plan;
        if is_record_or_signature(&member.name, &plan.dist_info) || plan.sbom.as_ref() == Some(&member.name) {
            return Ok(());
        }
        let is_wheel = member.name.strip_prefix(&plan.dist_info) == Some("/WHEEL");
        match &plan.tags {
            Some(tags) if is_wheel => {
                let tags = wheel_tags(self.subject, &tags.to);
                let done = writer.replace(member, &with_tags(&self.content(member)?, &tags, true))?;
                written.insert(member.name.clone(), hex(&done.sha256));
                Ok(())
            }
            _ => self.keep(member, writer),
        }
    }

    fn keep(
        &self,
        member: &archive::Member,
        writer: &mut WheelWriter<'_, BufWriter<&File>>,
    ) -> Result<(), RepairError> {
        let sha256 = if member.kind == MemberKind::Directory {
            [0; 32]
        } else {
            let known = find(&self.subject.members, &member.name).and_then(|known| known.sha256);
            known.ok_or_else(|| RepairError::DistInfo(format!("{} cannot be read", member.name)))?
        };
        Ok(writer.copy(member, sha256)?)
    }

    /// The bill of materials and licences.
    fn add_info(
        &self,
        copied: &[sbom::Copied<'_>],
        writer: &mut WheelWriter<'_, BufWriter<&File>>,
        written: &mut BTreeMap<String, String>,
    ) -> Result<(), RepairError> {
        for licence in &self.plan.licences {
            let text = self.options.root.read(&licence.path).unwrap_or_default();
            if hex(&Sha256::digest(&text)) != licence.sha256 {
                return Err(RepairError::SourceChanged { source_name: licence.path.clone() });
            }
            let done = writer.add(&licence.member, MODE_FILE, &text)?;
            written.insert(licence.member.clone(), hex(&done.sha256));
        }
        let Some(name) = &self.plan.sbom else { return Ok(()) };
        let (package, version) = self.subject.name_and_version().unwrap_or_default();
        let old = self.archive.member(name);
        let earlier = old.map(|member| self.content(member)).transpose()?;
        let text = sbom::document(
            self.plan,
            (&package, &version),
            copied,
            earlier.as_deref(),
            self.control.tool_version,
        )
        .map_err(|error| RepairError::DistInfo(format!("{name} cannot be merged with: {error}")))?;
        let done = match old {
            Some(member) => writer.replace(member, &text)?,
            None => writer.add(name, MODE_FILE, &text)?,
        };
        written.insert(name.clone(), hex(&done.sha256));
        Ok(())
    }

    fn content(&self, member: &archive::Member) -> Result<Vec<u8>, RepairError> {
        content_of(self.archive, member)
    }
}

/// The library as the plan saw it, with its edits.
fn copy_of(graft: &Graft) -> Result<Vec<u8>, RepairError> {
    let read = graft.source.read();
    let content = read.map_err(RepairError::io("read", graft.source.to_string()))?;
    if hex(&Sha256::digest(&content)) != graft.sha256 {
        return Err(RepairError::SourceChanged { source_name: graft.source.to_string() });
    }
    edited(&graft.member, content, &graft.plan)
}

/// Content with edits carried out, which the editor has verified.
fn edited(member: &str, content: Vec<u8>, plan: &EditPlan) -> Result<Vec<u8>, RepairError> {
    if plan.edits.is_empty() {
        return Ok(content);
    }
    crate::edit::apply(content, plan)
        .map_err(|source| RepairError::Edit { member: member.to_owned(), source })
}

/// The whole content of a member.
pub(crate) fn content_of(archive: &Archive, member: &archive::Member) -> Result<Vec<u8>, RepairError> {
    let mut content = Vec::with_capacity(usize::try_from(member.size).unwrap_or_default());
    let mut scratch = Scratch::new();
    let outcome = archive.read(member, &mut scratch, &mut |chunk| {
        content.extend_from_slice(chunk);
        Ok(())
    });
    outcome.map_err(|error| RepairError::DistInfo(error.to_string()))?;
    Ok(content)
}

fn find<'m>(members: &'m [Member], name: &str) -> Option<&'m Member> {
    let found = members.binary_search_by(|member| member.name.as_str().cmp(name));
    members.get(found.ok()?)
}

/// Tags of WHEEL: each pair of interpreter and ABI of the old ones with each platform.
fn wheel_tags(subject: &Subject, platforms: &[String]) -> Vec<Tag> {
    let wheel = subject.dist_info.as_ref().and_then(|info| info.wheel.as_ref());
    let mut old: Vec<Tag> = wheel.map_or_else(Vec::new, |wheel| wheel.tags.clone());
    if old.is_empty() {
        old = subject.file_name.as_ref().map_or_else(Vec::new, WheelName::tags);
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for tag in old {
        let pair = (tag.python, tag.abi);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let platforms = || platforms.iter().map(|text| PlatformTag::parse(text));
    let tag = |(python, abi): &(String, String), platform| Tag {
        python: python.clone(),
        abi: abi.clone(),
        platform,
    };
    pairs.iter().flat_map(|pair| platforms().map(move |platform| tag(pair, platform))).collect()
}

/// A file beside the target. The umask decides on its mode, as for any file that a program makes.
fn temporary(directory: &Path) -> Result<NamedTempFile, RepairError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".abiaudit-repair-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory).map_err(RepairError::io("write into", directory))
}

/// `fs::copy` copies the mode too, which may forbid the owner to write.
fn restore_mode(file: &NamedTempFile) -> Result<(), RepairError> {
    let metadata = file.as_file().metadata().map_err(RepairError::io("look at", file.path()))?;
    let mut permissions = metadata.permissions();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        permissions.set_mode(permissions.mode() | 0o200);
    }
    fs::set_permissions(file.path(), permissions).map_err(RepairError::io("set the mode of", file.path()))
}

/// Reads the result back: what was copied is the same, and the gate finds no fault in it that the input did not have.
fn judge(
    file: &NamedTempFile,
    input: &Archive,
    subject: Subject,
    plan: &Plan,
    options: &Options,
    written: &BTreeMap<String, String>,
) -> Result<Vec<Finding>, RepairError> {
    let unverified = |text: String| RepairError::Unverified(text);
    let settings = planner::settings(options)?;
    let limits = Limits::default();
    let output = Archive::open(file.path(), &limits).map_err(|error| unverified(error.to_string()))?;
    abiaudit_wheel::writer::check(&output)?;
    let untouched =
        |name: &str| !written.contains_key(name) && !is_record_or_signature(name, &plan.dist_info);
    let originals: HashMap<&str, &archive::Member> =
        input.members().iter().map(|member| (member.name.as_str(), member)).collect();
    for member in output.members().iter().filter(|member| untouched(&member.name)) {
        let original = originals.get(member.name.as_str());
        if !original.is_some_and(|original| is_copy(input, original, &output, member)) {
            return Err(unverified(format!("{} was not copied as it was", member.name)));
        }
    }
    let name = WheelName::parse(&plan.output).map_err(|error| unverified(error.to_string()))?;
    let mut known: Vec<Member> =
        subject.members.into_iter().filter(|member| untouched(&member.name)).collect();
    let (input_path, input_name) = (subject.path, subject.file_name);
    let scan = abiaudit_scan::Options { limits, ..abiaudit_scan::Options::default() };
    let mut result = scan_archive(&output, file.path(), name, &scan, &mut known);
    for (member, sha256) in written {
        let found = find(&result.members, member).and_then(|found| found.sha256);
        if found.map(|found| hex(&found)).as_ref() != Some(sha256) {
            return Err(unverified(format!("{member} reads back as something else than was written")));
        }
    }
    if options.ignore_isa {
        facts::forget_isa(&mut result);
    }
    let target = if options.update_tags { None } else { plan.target.clone() };
    let settings = Settings { target, ..settings };
    let audit = Audit::new(&result, &settings);
    if !audit.verdict.as_ref().is_some_and(|verdict| verdict.claim_ok) {
        let tags = audit.verdict.as_ref().map_or("nothing", |verdict| verdict.tag_with_providers.as_str());
        return Err(RepairError::Rejected { findings: vec![format!("{} honours {tags}", plan.output)] });
    }
    let findings = run(&audit);
    let errors =
        findings.iter().filter(|finding| finding.severity == Severity::Error && finding.suppressed.is_none());
    let before = match input_name {
        // Most results have no error, and then it does not matter which ones the input had.
        Some(name) if errors.clone().next().is_some() => {
            let subject = scan_archive(input, Path::new(&input_path), name, &scan, &mut Vec::new());
            errors_of(&run(&Audit::new(&subject, &Settings { target: None, ..settings.clone() })))
        }
        _ => BTreeSet::new(),
    };
    let new: Vec<String> = errors
        .filter(|finding| !before.contains(&key(finding)))
        .map(|finding| {
            format!(
                "{} {}: {}",
                finding.rule.id,
                finding.member.as_deref().unwrap_or(&plan.output),
                finding.message
            )
        })
        .collect();
    if new.is_empty() { Ok(findings) } else { Err(RepairError::Rejected { findings: new }) }
}

/// Whether a member of the output has the bytes of its original, headers included. Large ones are compared piece by piece,
/// so that little of both is in memory.
fn is_copy(input: &Archive, original: &archive::Member, output: &Archive, member: &archive::Member) -> bool {
    const PIECE: usize = 4 << 20;
    let (Some(old), Some(new)) = (input.local_bytes(original), output.local_bytes(member)) else {
        return false;
    };
    old.len() == new.len()
        && old.chunks(PIECE).zip(new.chunks(PIECE)).all(|(old, new)| {
            let same = old == new;
            input.release_slice(old);
            output.release_slice(new);
            same
        })
}

type Key = (&'static str, Option<String>);

fn key(finding: &Finding) -> Key {
    (finding.rule.id, finding.member.clone())
}

fn errors_of(findings: &[Finding]) -> BTreeSet<Key> {
    findings.iter().filter(|finding| finding.severity == Severity::Error).map(key).collect()
}

/// Gives the file its name, once it is on the disk.
fn finish(file: NamedTempFile, target: &Path) -> Result<(), RepairError> {
    file.as_file().sync_all().map_err(RepairError::io("write", file.path()))?;
    file.persist(target).map_err(|error| RepairError::io("write", target)(error.error))?;
    // The name is on the disk once the directory is; some file systems cannot do that, which is no error.
    if let Some(directory) = target.parent()
        && let Ok(directory) = OpenOptions::new().read(true).open(directory)
    {
        let _ = directory.sync_all();
    }
    Ok(())
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b || same_inode(&a, &b),
        _ => false,
    }
}

#[cfg(unix)]
fn same_inode(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_inode(_a: &Path, _b: &Path) -> bool {
    false
}
