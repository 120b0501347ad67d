//! The best way to cure an object of which it can be proved that it works.

use std::collections::BTreeMap;

use abiaudit_detect::{Carries, CxxClass, Exposure, UnwinderKind};
use abiaudit_edit::EditPlan;
use abiaudit_elf::Object;
use abiaudit_policy::{Libc, Target};

use crate::copy::RuntimeCopy;
use crate::refusal::Refusal;
use crate::{demote, hide, share};

/// An object, and what must be known around it.
#[derive(Debug, Clone, Copy)]
pub struct Patient<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    /// Its facts.
    pub object: &'a Object,
    /// What it carries.
    pub carries: &'a Carries,
    /// The oldest system that it is to run on.
    pub target: &'a Target,
    /// Symbols, mangled, that other members of the wheel ask for, with the member. Those that this object has must stay.
    pub wanted: &'a BTreeMap<String, String>,
}

/// A way to cure an object that exports a libstdc++ of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// The copy is switched off and the process's libstdc++ used; what is newer than the target stays, hidden.
    Share,
    /// Every export but the entry points becomes hidden: the copy stays, for this object alone.
    Hide,
    /// Unique symbols become weak: the copy stays, each with its own facet ids.
    Demote,
}

impl Method {
    /// All, the best first.
    pub const ALL: [Self; 3] = [Self::Share, Self::Hide, Self::Demote];

    /// The name that options and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Hide => "hide",
            Self::Demote => "demote",
        }
    }
}

/// What is to be done, and what a person should know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cure {
    /// The way.
    pub method: Method,
    /// The edits.
    pub plan: EditPlan,
    /// Sentences about what changes and what stays.
    pub notes: Vec<String>,
}

/// The first of these methods that can be proved to work.
///
/// # Errors
/// The reason for each method.
pub fn cure(patient: &Patient<'_>, methods: &[Method]) -> Result<Cure, Vec<(Method, Refusal)>> {
    let mut refusals = Vec::new();
    for &method in methods {
        match by(method, patient) {
            Ok(cure) => return Ok(cure),
            Err(refusal) => refusals.push((method, refusal)),
        }
    }
    Err(refusals)
}

fn by(method: Method, patient: &Patient<'_>) -> Result<Cure, Refusal> {
    let copy = preconditions(patient)?;
    match method {
        Method::Share => share::plan(patient, &copy),
        Method::Hide => hide::plan(patient, &copy),
        Method::Demote => demote::plan(patient),
    }
}

/// What holds for every method.
fn preconditions(patient: &Patient<'_>) -> Result<RuntimeCopy, Refusal> {
    if patient.target.libc() != Libc::Glibc {
        return Err(Refusal::NotGlibc);
    }
    if patient.object.is_program() {
        return Err(Refusal::Program);
    }
    let cxx = &patient.carries.cxx;
    let has_copy = matches!(cxx.class, CxxClass::Full | CxxClass::FullAndNeeded);
    let is_exposed = matches!(cxx.exposure, Exposure::Exported | Exposure::HalfHidden);
    if !has_copy || !is_exposed {
        return Err(Refusal::NothingToCure);
    }
    RuntimeCopy::of(patient.object, patient.target)
}

/// Copies that stay must not have an unwinder of their own: `_Unwind_SetGR` of one aborts on a frame of another.
pub(crate) fn no_private_unwinder(patient: &Patient<'_>) -> Result<(), Refusal> {
    if patient.carries.unwinder.kind == UnwinderKind::Private {
        return Err(Refusal::PrivateUnwinder);
    }
    Ok(())
}
