//! What is to be done to a wheel, as data: printed by `--dry-run`, carried out by [`apply`](crate::apply).

use std::fmt;

use abiaudit_edit::EditPlan;
use serde::{Deserialize, Serialize};

use crate::machine::Source;
use crate::mend::MemberMend;
use crate::packages::Package;

/// Name and version of the form of a plan in JSON.
pub const SCHEMA: &str = "abiaudit.repair-plan/1";

/// What is to be done to one wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// File name of the input.
    pub input: String,
    /// File name of the output.
    pub output: String,
    /// Name of the dist-info directory.
    pub dist_info: String,
    /// The oldest tag that the content honours once repaired.
    pub target: Option<String>,
    /// Other platform tags.
    pub tags: Option<TagChange>,
    /// What is mended in members, by member name. Other edits of the same member come after it.
    #[serde(default)]
    pub mends: Vec<MemberMend>,
    /// Libraries that are copied into the wheel, by member name.
    pub grafts: Vec<Graft>,
    /// Edits of objects that are in the wheel, by member name.
    pub edits: Vec<MemberEdit>,
    /// Programs among the scripts that move into the package directory.
    pub scripts: Vec<ScriptMove>,
    /// The member that names the origin of grafted libraries.
    pub sbom: Option<String>,
    /// Licence texts of grafted packages.
    pub licences: Vec<LicenceFile>,
    /// Members that are left out.
    pub dropped: Vec<Dropped>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Platform tags, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagChange {
    /// Before, in the order of the file name.
    pub from: Vec<String>,
    /// After.
    pub to: Vec<String>,
}

/// A library that is copied into the wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graft {
    /// The member that it becomes.
    pub member: String,
    /// Where it is from.
    pub source: Source,
    /// SHA-256 of the source, in hexadecimal digits.
    pub sha256: String,
    /// Its `DT_SONAME`, or the name that it was found by where it has none.
    pub soname: String,
    /// Its `DT_SONAME` in the wheel.
    pub name: String,
    /// Build id, in hexadecimal digits.
    pub build_id: Option<String>,
    /// Members that need it, in the wheel as repaired; none for one that was only asked for.
    pub needed_by: Vec<String>,
    /// The package that owns the source.
    pub package: Option<Package>,
    /// What is done to the copy.
    pub plan: EditPlan,
}

/// Edits of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberEdit {
    /// The member.
    pub member: String,
    /// What is done to it.
    pub plan: EditPlan,
}

/// A program that moves out of the scripts, since no relative path leads from there to the libraries: where `bin` lies
/// relative to `site-packages` differs between installations (auditwheel #340).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptMove {
    /// The member among the scripts; it becomes a Python program that starts the other one.
    pub from: String,
    /// Where the program goes.
    pub to: String,
    /// What is done to it.
    pub plan: EditPlan,
}

/// A licence text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LicenceFile {
    /// The member that it becomes.
    pub member: String,
    /// Path of the file inside the tree.
    pub path: String,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// A member that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The member.
    pub member: String,
    /// Why.
    pub reason: String,
}

impl Plan {
    /// All edits of a member that is in the wheel, in order.
    pub(crate) fn edits_of(&self, member: &str) -> EditPlan {
        let mends = self.mends.iter().filter(|mend| mend.member == member).map(|mend| &mend.plan);
        let edits = self.edits.iter().filter(|edit| edit.member == member).map(|edit| &edit.plan);
        EditPlan::new(mends.chain(edits).flat_map(|plan| plan.edits.iter().cloned()))
    }

    /// The output has the bytes of the input.
    pub fn changes_nothing(&self) -> bool {
        self.tags.is_none()
            && self.mends.is_empty()
            && self.grafts.is_empty()
            && self.edits.is_empty()
            && self.scripts.is_empty()
    }
}

/// For a person.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.input)?;
        if self.changes_nothing() {
            writeln!(f, "  nothing to change")?;
        } else if self.output != self.input {
            writeln!(f, "  becomes {}", self.output)?;
        }
        for mend in &self.mends {
            writeln!(f, "  mend {} ({})", mend.member, mend.mends.join(", "))?;
            mend.notes.iter().try_for_each(|note| writeln!(f, "    {note}"))?;
            edits(f, &mend.plan)?;
        }
        for graft in &self.grafts {
            writeln!(f, "  graft {} from {}", graft.member, graft.source)?;
            if let Some(package) = &graft.package {
                writeln!(f, "    of {} {}", package.name, package.version)?;
            }
            if !graft.needed_by.is_empty() {
                writeln!(f, "    needed by {}", graft.needed_by.join(", "))?;
            }
            edits(f, &graft.plan)?;
        }
        for script in &self.scripts {
            writeln!(
                f,
                "  move {} to {}, and leave a Python program that starts it",
                script.from, script.to
            )?;
            edits(f, &script.plan)?;
        }
        for edit in &self.edits {
            writeln!(f, "  edit {}", edit.member)?;
            edits(f, &edit.plan)?;
        }
        if let Some(tags) = &self.tags {
            writeln!(f, "  retag {} to {}", tags.from.join("."), tags.to.join("."))?;
        }
        for member in self.sbom.iter().chain(self.licences.iter().map(|licence| &licence.member)) {
            writeln!(f, "  add {member}")?;
        }
        for dropped in &self.dropped {
            writeln!(f, "  drop {}: {}", dropped.member, dropped.reason)?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        Ok(())
    }
}

fn edits(f: &mut fmt::Formatter<'_>, plan: &EditPlan) -> fmt::Result {
    plan.edits.iter().try_for_each(|edit| writeln!(f, "    {edit}"))
}
