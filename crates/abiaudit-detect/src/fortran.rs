//! GNU's Fortran runtime and its library for 128-bit floating point numbers.

use crate::data::Kind;
use crate::evidence::{Carriage, Evidence, Fact, Grade};
use crate::markers::Speaks;
use crate::object_facts::ObjectFacts;
use crate::soname;

/// Which library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FortranFamily {
    /// libgfortran
    Libgfortran,
    /// libquadmath
    Libquadmath,
}

impl FortranFamily {
    /// The word used in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Libgfortran => "libgfortran",
            Self::Libquadmath => "libquadmath",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        match name {
            "libgfortran" => Some(Self::Libgfortran),
            "libquadmath" => Some(Self::Libquadmath),
            _ => None,
        }
    }
}

/// One of these libraries in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FortranRuntime {
    /// Which.
    pub family: FortranFamily,
    /// How the object comes to it.
    pub carriage: Carriage,
    /// The soname: the object's own, or the one that it needs. Two in one process under different names are two copies.
    pub soname: Option<String>,
    /// A repair tool copied it into a wheel: its name has a hash.
    pub vendored: bool,
    /// What that rests on, the best first.
    pub evidence: Vec<Evidence>,
}

/// libgfortran exports some 1,500 functions; a program that defines a few of them is not one.
const INTERFACE: usize = 40;

pub(crate) fn detect(facts: &ObjectFacts<'_>) -> Vec<FortranRuntime> {
    let mut all: Vec<FortranRuntime> = Vec::new();
    all.extend(carried(facts));
    for (name, soname) in facts.needed(Kind::Fortran) {
        let Some(family) = FortranFamily::of_name(name) else { continue };
        all.push(FortranRuntime {
            family,
            carriage: Carriage::Needs,
            soname: Some(soname.to_owned()),
            vendored: soname::vendored_hash(soname).is_some(),
            evidence: vec![Evidence::new(Grade::A, Fact::Needed(soname.to_owned()))],
        });
    }
    all.sort_by(|a, b| (a.family, a.carriage, &a.soname).cmp(&(b.family, b.carriage, &b.soname)));
    all
}

fn carried(facts: &ObjectFacts<'_>) -> Option<FortranRuntime> {
    let exports = facts.exports_from(&["_gfortran_"]);
    let own = facts.own_family(Kind::Fortran);
    let (family, carriage) = if let Some((name, _)) = own {
        (FortranFamily::of_name(name)?, Carriage::Library)
    } else if exports.count >= INTERFACE {
        (FortranFamily::Libgfortran, Carriage::Exports)
    } else if facts.is_proved(Speaks::Libgfortran) {
        (FortranFamily::Libgfortran, Carriage::Static)
    } else {
        return None;
    };
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence.extend(own.map(|(_, soname)| Evidence::new(Grade::A, Fact::Soname(soname.to_owned()))));
    evidence.extend(exports.exported("functions of libgfortran"));
    evidence.extend(facts.texts(Speaks::Libgfortran));
    let soname = facts.soname.clone();
    let vendored = soname.as_deref().and_then(soname::vendored_hash).is_some();
    Some(FortranRuntime { family, carriage, soname, vendored, evidence })
}
