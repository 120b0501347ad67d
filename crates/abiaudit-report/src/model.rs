//! The report as data: the JSON contract `abiaudit.report/1`.
//!
//! Names and nesting are stable. Fields may be added within `/1`, never renamed, removed or given another meaning, so
//! readers should ignore what they do not know. A field without a value is written as `null` or as an empty list;
//! only in [`Evidence`] and [`LadderSymbol`], of which there can be tens of thousands, optional fields are left out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Value of [`Report::schema`].
pub const SCHEMA: &str = "abiaudit.report/1";

/// The result of one run over any number of wheels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Name and version of this format: `abiaudit.report/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The program that wrote the report.
    pub tool: Tool,
    /// Totals over all wheels.
    pub summary: Summary,
    /// One entry for each input, in the order in which they were given.
    pub wheels: Vec<Wheel>,
}

impl Report {
    /// A report on `wheels` with its totals computed.
    pub fn new(tool: Tool, wheels: Vec<Wheel>) -> Self {
        Self { schema: SCHEMA.to_owned(), tool, summary: Summary::of(&wheels), wheels }
    }
}

/// The program that wrote a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `abiaudit`.
    pub name: String,
    /// Its version, `0.1.0`.
    pub version: String,
}

/// Totals of a report. Suppressed findings count only as suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Inputs, readable or not.
    pub wheels: usize,
    /// Findings of severity `error`.
    pub errors: usize,
    /// Findings of severity `warning`.
    pub warnings: usize,
    /// Findings of severity `info`.
    pub infos: usize,
    /// Findings that the configuration suppresses.
    #[serde(default)]
    pub suppressed: usize,
    /// Inputs that could not be audited (`error` is set).
    #[serde(default)]
    pub unreadable: usize,
}

impl Summary {
    /// Counts the findings of `wheels`.
    pub fn of(wheels: &[Wheel]) -> Self {
        let mut summary = Self { wheels: wheels.len(), ..Self::default() };
        for wheel in wheels {
            summary.unreadable += usize::from(wheel.error.is_some());
            for finding in &wheel.findings {
                let counter = match (&finding.suppressed, finding.severity) {
                    (Some(_), _) => &mut summary.suppressed,
                    (None, Severity::Error) => &mut summary.errors,
                    (None, Severity::Warning) => &mut summary.warnings,
                    (None, Severity::Info) => &mut summary.infos,
                };
                *counter += 1;
            }
        }
        summary
    }
}

/// What kind of input was audited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// A wheel file.
    #[default]
    Wheel,
    /// A directory: an unpacked wheel or an installed tree.
    Directory,
    /// A single ELF file.
    File,
}

/// One audited input.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Wheel {
    /// Path as it was given.
    pub path: String,
    /// What the path names.
    #[serde(default)]
    pub kind: InputKind,
    /// Name of the distribution; `null` when the input does not say it.
    pub name: Option<String>,
    /// Version of the distribution; `null` when the input does not say it.
    pub version: Option<String>,
    /// SHA-256 of the file, 64 lower-case hexadecimal digits; `null` for a directory.
    pub sha256: Option<String>,
    /// Tags of the wheel, compressed sets expanded: `cp312-cp312-manylinux_2_28_x86_64`.
    pub tags: Vec<String>,
    /// Architecture in the spelling of platform tags (`x86_64`, `aarch64`); `null` when there is no native code.
    pub arch: Option<String>,
    /// `glibc` or `musl`; `null` when there is no native code or it does not say.
    pub libc: Option<String>,
    /// The wheel has no native code.
    #[serde(default)]
    pub pure: bool,
    /// Why the content was not judged, though it could be read: a wheel for another system, an architecture that no policy
    /// covers. `null` when there is a verdict or nothing to judge.
    #[serde(default)]
    pub not_judged: Option<String>,
    /// What the content honours; `null` for a pure wheel and when the wheel could not be audited.
    pub verdict: Option<Verdict>,
    /// The ELF objects, by member.
    pub objects: Vec<Object>,
    /// The libraries that are needed and not in the wheel, by soname.
    pub external: Vec<External>,
    /// What stands in the way of each tag better than `verdict.tag`, nearest tag first. Every better tag is listed,
    /// also one that only other criteria rule out.
    pub ladder: Vec<Rung>,
    /// What the rules have to say.
    pub findings: Vec<Finding>,
    /// Why the wheel could not be audited; `null` when it was.
    pub error: Option<WheelError>,
}

impl Wheel {
    /// The findings that no suppression covers.
    pub fn active_findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.suppressed.is_none())
    }

    /// The last component of [`Wheel::path`].
    pub fn file_name(&self) -> &str {
        let path = self.path.trim_end_matches('/');
        path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&self.path)
    }
}

/// What a wheel's content honours, in platform tags: `manylinux_2_17_x86_64`, `musllinux_1_2_aarch64`, or
/// `linux_x86_64` when no policy holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The oldest tag that the content honours by itself.
    pub tag: String,
    /// The oldest tag that it honours when declared dependencies provide their libraries.
    pub tag_with_providers: String,
    /// The oldest tag by each criterion alone.
    pub by: Criteria,
    /// The promise holds: `tag_with_providers` is at least as good as `claim`, or nothing is promised.
    pub claim_ok: bool,
    /// The platform tag that the file name promises, the lowest of a compressed set; `null` when none is promised.
    #[serde(default)]
    pub claim: Option<String>,
    /// What decided the verdict, one line each.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Traits of old Python builds that no tag admits (PEP 513).
    #[serde(default)]
    pub python_abi: PythonAbi,
}

/// The oldest tag by each criterion alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Criteria {
    /// By the versions and names of symbols.
    pub symbols: String,
    /// By the libraries that must come from the system.
    pub libraries: String,
    /// By the symbols that a policy forbids.
    pub forbidden: String,
    /// By the instruction set.
    pub isa: String,
    /// By the Python ABI (`PyFPE_jbuf`, UCS-2).
    pub python: String,
}

impl Criteria {
    /// The criteria with their JSON names, in the order of the contract.
    pub fn named(&self) -> [(&'static str, &str); 5] {
        [
            ("symbols", &self.symbols),
            ("libraries", &self.libraries),
            ("forbidden", &self.forbidden),
            ("isa", &self.isa),
            ("python", &self.python),
        ]
    }
}

/// Traits of old Python builds that no manylinux or musllinux tag admits (PEP 513).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PythonAbi {
    /// An extension module references `PyFPE_jbuf`.
    pub pyfpe: bool,
    /// An extension module references `PyUnicodeUCS2_*`.
    pub ucs2: bool,
}

/// One ELF file of a wheel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Object {
    /// Path inside the wheel.
    pub member: String,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED` in file order.
    pub needed: Vec<String>,
    /// Entries of `DT_RPATH`, split at colons.
    pub rpath: Vec<String>,
    /// Entries of `DT_RUNPATH`, split at colons.
    pub runpath: Vec<String>,
    /// Highest version needed of each family: `{"GLIBC": "2.17", "GLIBCXX": "3.4.19"}`.
    pub versions: BTreeMap<String, String>,
    /// Language and numeric runtimes that the object carries.
    pub runtimes: Vec<Runtime>,
    /// Architecture in the spelling of platform tags.
    #[serde(default)]
    pub arch: Option<String>,
    /// ELF type: `shared`, `executable`, `pie`, `relocatable`, `core` or `other`.
    #[serde(default, rename = "type")]
    pub object_type: Option<String>,
    /// GNU build-id in lower-case hexadecimal.
    #[serde(default)]
    pub build_id: Option<String>,
    /// Version nodes needed of each library (`DT_VERNEED`): `{"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.14"]}`.
    #[serde(default)]
    pub versions_by_library: BTreeMap<String, Vec<String>>,
    /// Compilers and linkers that `.comment` names, and what else says who compiled parts of it.
    #[serde(default)]
    pub compilers: Vec<String>,
    /// Producers that DWARF names, with the options of the compiler. Only `show` reads them.
    #[serde(default)]
    pub producers: Vec<String>,
}

/// A language or numeric runtime inside an object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    /// Which: `libstdc++`, `openmp`, `blas`, `unwinder` and the like.
    pub kind: String,
    /// How much of it: `full`, `partial`, `minimal`.
    pub class: String,
    /// How it shows: `exported`, `half-hidden`, `hidden`.
    pub exposure: String,
    /// What says so, one line each.
    pub evidence: Vec<String>,
}

/// Where an external library comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExternalClass {
    /// The target's policy allows it.
    System,
    /// A declared dependency of the wheel provides it.
    Provider,
    /// A device driver's user-space library, which only the machine can have (`libcuda.so.1`).
    Driver,
    /// The process that loads the wheel has it already (`libpython3.12.so.1.0`).
    Host,
    /// Nothing declared provides it.
    Unprovided,
}

impl ExternalClass {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Provider => "provider",
            Self::Driver => "driver",
            Self::Host => "host",
            Self::Unprovided => "unprovided",
        }
    }
}

/// A library that objects of the wheel need and that is not in the wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct External {
    /// The name in `DT_NEEDED`.
    pub soname: String,
    /// Members that need it.
    pub needed_by: Vec<String>,
    /// The distribution that provides it; `null` unless `class` is `provider`.
    pub provider: Option<Provider>,
    /// Where it comes from.
    pub class: ExternalClass,
}

/// A distribution that provides a library.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Provider {
    /// Normalised name of the distribution.
    pub distribution: String,
    /// Directory of the library below site-packages, where known.
    pub lib_dir: Option<String>,
    /// The `Requires-Dist` line that declares it, where there is one.
    pub declared_as: Option<String>,
}

/// What stands in the way of one tag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// The better tag, `manylinux_2_17_x86_64`.
    pub tag: String,
    /// Symbols that the target lacks, all of them.
    pub symbols: Vec<LadderSymbol>,
    /// Sonames that the target does not promise.
    pub libraries: Vec<String>,
    /// Symbols that the tag's policy forbids although the target has them.
    #[serde(default)]
    pub forbidden: Vec<LadderSymbol>,
    /// Anything else, one line each: instruction set, relocation format, Python ABI.
    #[serde(default)]
    pub other: Vec<String>,
}

/// A symbol that stands in the way of a tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct LadderSymbol {
    /// Member that references it.
    pub member: String,
    /// Name as in the symbol table.
    pub symbol: String,
    /// Version node, `GLIBCXX_3.4.26`; `null` for an unversioned reference.
    pub version: Option<String>,
    /// Library that the reference is bound to (`libstdc++.so.6`); `null` for an unversioned reference.
    pub library: Option<String>,
    /// The name as written in the source; left out when it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
    /// The first release that has it: `GCC 9`, `glibc 2.34`; left out when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// How bad a finding is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    #[default]
    Info,
    /// Will hurt somebody.
    Warning,
    /// The wheel does not do what it promises.
    Error,
}

impl Severity {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A rule's answer about a wheel or one of its members.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Identifier of the rule, `ABI101`.
    pub rule: String,
    /// Name of the rule, `symbol-too-new`.
    pub name: String,
    /// How bad it is, after configuration.
    pub severity: Severity,
    /// Member that it is about; `null` when it is about the whole wheel.
    pub member: Option<String>,
    /// What is wrong, on one line.
    pub message: String,
    /// What would mend it, on one line; `null` when nothing is known to.
    pub help: Option<String>,
    /// What says so.
    pub evidence: Vec<Evidence>,
    /// Occurrences that the finding stands for; at least the number of `evidence` entries.
    #[serde(default)]
    pub count: usize,
    /// The configuration's reason not to count this finding; `null` when it counts.
    #[serde(default)]
    pub suppressed: Option<Suppression>,
}

impl Finding {
    /// Occurrences that remain unnamed when the first `most` pieces of evidence are shown. A finding without evidence
    /// is named by its message.
    pub fn unnamed_after(&self, most: usize) -> usize {
        let named = self.evidence.len().min(most).max(1);
        self.count.max(self.evidence.len()).saturating_sub(named)
    }
}

/// One piece of evidence. Only what is known is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Name as in the symbol table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The symbol's name as written in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
    /// Version node, `GLIBCXX_3.4.26`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The first release that has the symbol: `GCC 9`, `glibc 2.34`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Soname of the library concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Member, where it is not the finding's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Anything else, on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Why a finding does not count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Suppression {
    /// The reason that the configuration gives.
    pub reason: String,
    /// Last day on which the suppression holds, `2026-12-31`; `null` when it does not expire.
    pub expires: Option<String>,
}

/// Why a wheel could not be audited.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WheelError {
    /// Stable name of the kind of error, `not-a-zip`.
    pub kind: String,
    /// What happened, on one line.
    pub message: String,
}
