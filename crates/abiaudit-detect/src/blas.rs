//! BLAS and LAPACK.
//!
//! What can collide is a *name*: two objects that export plain `dgemm_` in one scope. scipy's builds of OpenBLAS rename
//! everything (`scipy_dgemm_64_`) and cannot. So beside the family the interface is told: which spellings of the
//! routines are exported.

use crate::data::Kind;
use crate::evidence::{Carriage, Evidence, Fact, Grade};
use crate::markers::Speaks;
use crate::object_facts::{ObjectFacts, Tally};
use crate::openblas::OpenBlasConfig;
use crate::soname;

/// Whose BLAS it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlasFamily {
    /// OpenBLAS, or GotoBLAS before it.
    OpenBlas,
    /// Intel's Math Kernel Library.
    Mkl,
    /// BLIS.
    Blis,
    /// ATLAS.
    Atlas,
    /// NVIDIA's for Arm.
    Nvpl,
    /// The reference implementation, or another one under its name.
    Netlib,
    /// Exports the interface without a sign of its maker.
    Unknown,
}

impl BlasFamily {
    /// The word used in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenBlas => "OpenBLAS",
            Self::Mkl => "MKL",
            Self::Blis => "BLIS",
            Self::Atlas => "ATLAS",
            Self::Nvpl => "NVPL",
            Self::Netlib => "reference BLAS",
            Self::Unknown => "BLAS",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "openblas" => Self::OpenBlas,
            "mkl" => Self::Mkl,
            "blis" => Self::Blis,
            "atlas" => Self::Atlas,
            "nvpl" => Self::Nvpl,
            "netlib" => Self::Netlib,
            _ => return None,
        })
    }
}

/// How it makes threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Threading {
    /// It does not.
    Serial,
    /// Its own pool of POSIX threads.
    Pthreads,
    /// Through an OpenMP runtime.
    OpenMp,
}

/// A spelling of the BLAS interface that an object exports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlasInterface {
    /// What stands before the routine's name: nothing, or `scipy_`.
    pub prefix: &'static str,
    /// What stands behind it: nothing, `64_` or `_64`, which say that integers have 64 bits.
    pub suffix: &'static str,
    /// The routines of it that were looked for and found, such as `dgemm_` and `cblas_dgemm`.
    pub symbols: Vec<String>,
}

impl BlasInterface {
    /// Nothing renames the routines: any other library with the same spelling collides.
    pub fn is_plain(&self) -> bool {
        self.prefix.is_empty() && self.suffix.is_empty()
    }
}

/// One BLAS of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blas {
    /// Whose it is.
    pub family: BlasFamily,
    /// How the object comes to it.
    pub carriage: Carriage,
    /// The soname: the object's own, or the one that it needs.
    pub soname: Option<String>,
    /// A repair tool copied it into a wheel: its name has a hash.
    pub vendored: bool,
    /// The spellings that are exported, sorted.
    pub interfaces: Vec<BlasInterface>,
    /// OpenBLAS's own description, if it was found.
    pub config: Option<OpenBlasConfig>,
    /// How it makes threads, as far as that is known; told of OpenBLAS alone.
    pub threading: Option<Threading>,
    /// What that rests on, the best first.
    pub evidence: Vec<Evidence>,
}

/// Prefixes and suffixes of OpenBLAS builds (`SYMBOLPREFIX`, `SYMBOLSUFFIX` of its Makefile.rule), as threadpoolctl knows
/// them too.
const PREFIXES: [&str; 2] = ["", "scipy_"];
const SUFFIXES: [&str; 3] = ["", "64_", "_64"];
/// A library exports at least so many symbols of its own. Measured: MKL inside of ctranslate2 2,077, ATLAS 3,910, BLIS
/// 6,431.
const OWN_SYMBOLS: usize = 40;

pub(crate) fn detect(facts: &ObjectFacts<'_>) -> Vec<Blas> {
    let mut all: Vec<Blas> = Vec::new();
    all.extend(carried(facts));
    for (name, soname) in facts.needed(Kind::Blas) {
        let Some(family) = BlasFamily::of_name(name) else { continue };
        all.push(Blas {
            family,
            carriage: Carriage::Needs,
            vendored: soname::vendored_hash(soname).is_some(),
            soname: Some(soname.to_owned()),
            interfaces: Vec::new(),
            config: None,
            threading: None,
            evidence: vec![Evidence::new(Grade::A, Fact::Needed(soname.to_owned()))],
        });
    }
    all.sort_by(|a, b| (a.family, a.carriage, &a.soname).cmp(&(b.family, b.carriage, &b.soname)));
    all
}

fn carried(facts: &ObjectFacts<'_>) -> Option<Blas> {
    let own = facts.own_family(Kind::Blas);
    let interfaces = interfaces(facts);
    let (maker, exports) = maker_by_exports(facts);
    let by_text = [(BlasFamily::OpenBlas, Speaks::Openblas), (BlasFamily::Mkl, Speaks::Mkl)]
        .into_iter()
        .find(|&(_, speaks)| facts.is_proved(speaks));
    let family = own
        .and_then(|(name, _)| BlasFamily::of_name(name))
        .or(maker)
        .or(by_text.map(|(family, _)| family))
        .or((!interfaces.is_empty()).then_some(BlasFamily::Unknown))?;
    let carriage = if own.is_some() {
        Carriage::Library
    } else if maker.is_some() || !interfaces.is_empty() {
        Carriage::Exports
    } else {
        Carriage::Static
    };
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence.extend(own.map(|(_, soname)| Evidence::new(Grade::A, Fact::Soname(soname.to_owned()))));
    evidence.extend(exports);
    for interface in &interfaces {
        let mut tally = Tally::default();
        interface.symbols.iter().for_each(|symbol| tally.add(symbol));
        let what =
            if interface.is_plain() { "BLAS routines under their plain names" } else { "BLAS routines" };
        evidence.extend(tally.exported(what));
    }
    evidence.extend(facts.texts(Speaks::Openblas));
    evidence.extend(facts.texts(Speaks::Mkl));
    let is_openblas = family == BlasFamily::OpenBlas;
    let mut texts = facts.found(Speaks::Openblas).filter(|_| is_openblas);
    let config = texts.find_map(|found| OpenBlasConfig::parse(&found.text));
    let threading = if is_openblas { threading(facts, own.map(|o| o.1), config.as_ref()) } else { None };
    let soname = facts.soname.clone();
    let vendored = soname.as_deref().and_then(soname::vendored_hash).is_some();
    Some(Blas { family, carriage, soname, vendored, interfaces, config, threading, evidence })
}

/// The spellings of `dgemm`, `dgesv` and `xerbla` that are exported.
fn interfaces(facts: &ObjectFacts<'_>) -> Vec<BlasInterface> {
    let mut found = Vec::new();
    for prefix in PREFIXES {
        for suffix in SUFFIXES {
            let fortran = ["dgemm", "dgesv", "xerbla"].map(|routine| format!("{prefix}{routine}_{suffix}"));
            let c = [format!("{prefix}cblas_dgemm{suffix}")];
            let symbols: Vec<String> =
                fortran.into_iter().chain(c).filter(|symbol| facts.defines(symbol)).collect();
            // LAPACK alone (a netlib build in two libraries) is an interface; its error handler alone is not.
            if symbols.iter().any(|symbol| !symbol.contains("xerbla")) {
                found.push(BlasInterface { prefix, suffix, symbols });
            }
        }
    }
    found.sort();
    found
}

/// Whose symbols beside the common interface are exported.
fn maker_by_exports(facts: &ObjectFacts<'_>) -> (Option<BlasFamily>, Option<Evidence>) {
    for prefix in PREFIXES {
        for suffix in SUFFIXES {
            let name = format!("{prefix}openblas_get_config{suffix}");
            if facts.defines(&name) {
                let mut tally = Tally::default();
                tally.add(&name);
                return (Some(BlasFamily::OpenBlas), tally.exported("function of OpenBLAS"));
            }
        }
    }
    for (family, prefixes, what) in [
        (BlasFamily::Mkl, &["mkl_", "MKL_"][..], "functions of MKL"),
        (BlasFamily::Blis, &["bli_"], "functions of BLIS"),
        (BlasFamily::Atlas, &["ATL_"], "functions of ATLAS"),
        (BlasFamily::Nvpl, &["nvpl_"], "functions of NVPL"),
    ] {
        let tally = facts.exports_from(prefixes);
        if tally.count >= OWN_SYMBOLS {
            return (Some(family), tally.exported(what));
        }
    }
    (None, None)
}

/// In this order: what it says of itself, what it is linked to, what it is called, what it calls. `USE_OPENMP` counts only
/// within the configuration: builds with POSIX threads have it in other texts. What an object refers to that holds OpenBLAS
/// among other code says nothing of OpenBLAS (gmsh 4.13).
fn threading(
    facts: &ObjectFacts<'_>,
    soname: Option<&str>,
    config: Option<&OpenBlasConfig>,
) -> Option<Threading> {
    if config.and_then(|config| config.openmp) == Some(true) {
        return Some(Threading::OpenMp);
    }
    let soname = soname?;
    if facts.references_to(&["GOMP_", "__kmpc_"]).count > 0 {
        return Some(Threading::OpenMp);
    }
    // The letter that distributions and MacPython's builds add: p for POSIX threads, o for OpenMP.
    let rest = soname::stem(soname).strip_prefix("libopenblas").unwrap_or_default();
    match rest.trim_start_matches("64_") {
        "p" => return Some(Threading::Pthreads),
        "o" => return Some(Threading::OpenMp),
        _ => {}
    }
    let has_threads = facts.refers("pthread_create");
    Some(if has_threads { Threading::Pthreads } else { Threading::Serial })
}
