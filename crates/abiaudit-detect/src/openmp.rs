//! OpenMP runtimes.
//!
//! LLVM's and Intel's runtime exports GNU's interface too, so "exports `GOMP_*`" is not libgomp; names of
//! environment variables alone are nothing (openvino has them).

use crate::data::Kind;
use crate::evidence::{Carriage, Evidence, Fact, Grade};
use crate::markers::Speaks;
use crate::object_facts::ObjectFacts;
use crate::soname;

/// Whose runtime it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpenMpFamily {
    /// GNU's.
    Libgomp,
    /// LLVM's.
    Libomp,
    /// Intel's build of LLVM's. Together with LLVM's in one process it ends the process ("OMP: Error #15").
    Libiomp5,
    /// LLVM's or Intel's, which of them is not known.
    LibompOrLibiomp5,
    /// Sequential stand-ins: the user interface without a runtime.
    Stubs,
}

impl OpenMpFamily {
    /// The word used in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Libgomp => "libgomp",
            Self::Libomp => "libomp",
            Self::Libiomp5 => "libiomp5",
            Self::LibompOrLibiomp5 => "libomp or libiomp5",
            Self::Stubs => "OpenMP stubs",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "libgomp" => Self::Libgomp,
            "libomp" => Self::Libomp,
            "libiomp5" => Self::Libiomp5,
            "stubs" => Self::Stubs,
            _ => return None,
        })
    }
}

/// One OpenMP runtime of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenMp {
    /// Whose it is.
    pub family: OpenMpFamily,
    /// How the object comes to it.
    pub carriage: Carriage,
    /// The soname: the object's own, or the one that it needs. The loader knows runtimes apart by this alone.
    pub soname: Option<String>,
    /// A repair tool copied it into a wheel: its name has a hash.
    pub vendored: bool,
    /// What that rests on, the best first.
    pub evidence: Vec<Evidence>,
}

/// A runtime exports at least so many symbols of an interface. Measured: libgomp has 127 to 154 `GOMP_*` and 115 to 127
/// `omp_*`; libiomp5 has 612 to 670 `__kmpc_*` and 97 to 135 `GOMP_*`; the stubs have 7 `GOMP_*` and over 200 `omp_*`.
const INTERFACE: usize = 40;

pub(crate) fn detect(facts: &ObjectFacts<'_>) -> Vec<OpenMp> {
    let mut all: Vec<OpenMp> = Vec::new();
    all.extend(exported(facts).or_else(|| hidden(facts)));
    for (name, soname) in facts.needed(Kind::Openmp) {
        let Some(family) = OpenMpFamily::of_name(name) else { continue };
        let mut evidence = vec![Evidence::new(Grade::A, Fact::Needed(soname.to_owned()))];
        evidence.extend(facts.references_to(&["GOMP_", "omp_", "__kmpc_"]).referred("OpenMP functions"));
        all.push(OpenMp {
            family,
            carriage: Carriage::Needs,
            vendored: soname::vendored_hash(soname).is_some(),
            soname: Some(soname.to_owned()),
            evidence,
        });
    }
    if all.is_empty() {
        all.extend(undeclared(facts));
    }
    all.sort_by(|a, b| (a.family, a.carriage, &a.soname).cmp(&(b.family, b.carriage, &b.soname)));
    all
}

/// The object is a runtime or exports one.
fn exported(facts: &ObjectFacts<'_>) -> Option<OpenMp> {
    let gomp = facts.exports_from(&["GOMP_"]);
    let kmpc = facts.exports_from(&["__kmpc_"]);
    let omp = facts.exports_from(&["omp_"]);
    let own = facts.own_family(Kind::Openmp);
    let named = own.and_then(|(name, _)| OpenMpFamily::of_name(name));
    let family = if kmpc.count >= INTERFACE {
        match named {
            Some(family @ (OpenMpFamily::Libomp | OpenMpFamily::Libiomp5)) => family,
            _ => by_version_text(facts),
        }
    } else if gomp.count >= INTERFACE {
        OpenMpFamily::Libgomp
    } else if omp.count >= INTERFACE {
        OpenMpFamily::Stubs
    } else {
        return None;
    };
    let carriage = if own.is_some() { Carriage::Library } else { Carriage::Exports };
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence.extend(own.map(|(_, soname)| Evidence::new(Grade::A, Fact::Soname(soname.to_owned()))));
    evidence.extend(kmpc.exported("__kmpc_*"));
    evidence.extend(gomp.exported("GOMP_*"));
    evidence.extend(omp.exported("omp_*"));
    evidence.extend(facts.texts(Speaks::Libgomp));
    evidence.extend(facts.texts(Speaks::Libomp));
    let soname = facts.soname.clone();
    let vendored = soname.as_deref().and_then(soname::vendored_hash).is_some();
    Some(OpenMp { family, carriage, soname, vendored, evidence })
}

/// The object holds a runtime and exports nothing of it.
fn hidden(facts: &ObjectFacts<'_>) -> Option<OpenMp> {
    let (family, speaks) = if facts.is_proved(Speaks::Libomp) {
        (by_version_text(facts), Speaks::Libomp)
    } else if facts.is_proved(Speaks::Libgomp) {
        (OpenMpFamily::Libgomp, Speaks::Libgomp)
    } else {
        return None;
    };
    let evidence = facts.texts(speaks);
    Some(OpenMp { family, carriage: Carriage::Static, soname: None, vendored: false, evidence })
}

/// The object refers to a runtime that it does not name.
fn undeclared(facts: &ObjectFacts<'_>) -> Option<OpenMp> {
    let kmpc = facts.references_to(&["__kmpc_"]);
    let gomp = facts.references_to(&["GOMP_"]);
    let (family, tally) =
        if kmpc.count > 0 { (OpenMpFamily::LibompOrLibiomp5, kmpc) } else { (OpenMpFamily::Libgomp, gomp) };
    let evidence: Vec<Evidence> = tally.referred("OpenMP functions").into_iter().collect();
    let found = !evidence.is_empty();
    found.then_some(OpenMp { family, carriage: Carriage::Refers, soname: None, vendored: false, evidence })
}

fn by_version_text(facts: &ObjectFacts<'_>) -> OpenMpFamily {
    let text = |start: &str| facts.found(Speaks::Libomp).any(|found| found.marker().text.starts_with(start));
    match (text("Intel(R) OMP version"), text("LLVM OMP version")) {
        (true, false) => OpenMpFamily::Libiomp5,
        (false, true) => OpenMpFamily::Libomp,
        _ => OpenMpFamily::LibompOrLibiomp5,
    }
}
