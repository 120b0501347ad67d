//! What was done to a wheel, as an in-toto statement, and the proof that it fits the files.
//!
//! A repair changes the digest that build provenance was made for. The statement
//! (<https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>) closes the gap: its subject is the repaired
//! wheel, its predicate names the input by digest, the plan, and the origin of every byte that was not in the input. It is
//! not signed here; whoever runs the release signs it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use abiaudit_wheel::archive::Scratch;
use abiaudit_wheel::writer::is_record_or_signature;
use abiaudit_wheel::{Archive, Limits};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::RepairError;
use crate::names::hex;
use crate::plan::Plan;

/// Type of the statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// Type of the predicate.
pub const PREDICATE_TYPE: &str = "abiaudit/repair/v1";

/// An in-toto statement about a repaired wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// The repaired wheel.
    pub subject: Vec<Resource>,
    /// [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// What was done.
    pub predicate: Predicate,
}

/// A file, by name and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// File name or path.
    pub name: String,
    /// Digests by algorithm, in hexadecimal digits.
    pub digest: BTreeMap<String, String>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicate {
    /// The program.
    pub tool: Tool,
    /// The wheel as it was.
    pub input: Resource,
    /// What was done to it.
    pub plan: Plan,
    /// Every member that is not a copy of the input's, with its digest.
    pub written: Vec<Resource>,
    /// Files outside of the input whose bytes came in: libraries and licence texts.
    pub sources: Vec<Resource>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
}

/// Where a statement does not fit the files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// It is another kind of statement.
    #[error("it is of type {found}; expected {expected}")]
    Type {
        /// The type.
        found: String,
        /// The type of repairs.
        expected: &'static str,
    },
    /// A file has another digest.
    #[error("{name} has SHA-256 {found}; the report says {expected}")]
    Digest {
        /// The file or member.
        name: String,
        /// As reported.
        expected: String,
        /// As computed.
        found: String,
    },
    /// A member is missing.
    #[error("{0} is not in the wheel")]
    Missing(String),
    /// A member is neither a copy of the input's nor reported.
    #[error("{0} is neither a copy of the input's member nor named in the report")]
    Unexplained(String),
    /// A member of the input is not in the output, and the report does not say why.
    #[error("{0} is in the input, not in the output, and the report does not say why")]
    Lost(String),
}

impl Resource {
    fn new(name: impl Into<String>, sha256: impl Into<String>) -> Self {
        Self { name: name.into(), digest: BTreeMap::from([("sha256".to_owned(), sha256.into())]) }
    }

    fn sha256(&self) -> &str {
        self.digest.get("sha256").map_or("", String::as_str)
    }
}

impl Statement {
    /// The statement on a repair that was carried out. `input` is the SHA-256 of the wheel as it was, which may be gone.
    ///
    /// # Errors
    /// [`RepairError::Io`] if the output cannot be read.
    pub fn new(
        plan: &Plan,
        input: &[u8; 32],
        output: &Path,
        written: &BTreeMap<String, String>,
        tool_version: &str,
    ) -> Result<Self, RepairError> {
        let libraries =
            plan.grafts.iter().map(|graft| Resource::new(graft.source.to_string(), &graft.sha256));
        let licences = plan.licences.iter().map(|licence| Resource::new(&licence.path, &licence.sha256));
        Ok(Self {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: vec![Resource::new(&plan.output, digest(output)?)],
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: Predicate {
                tool: Tool { name: "abiaudit".to_owned(), version: tool_version.to_owned() },
                input: Resource::new(&plan.input, hex(input)),
                plan: plan.clone(),
                written: written.iter().map(|(name, sha256)| Resource::new(name, sha256)).collect(),
                sources: libraries.chain(licences).collect(),
            },
        })
    }

    /// Compares the statement with the files: the output, and the input if it is at hand. With the input every member of the
    /// output is either a copy of the input's or one that the statement names.
    ///
    /// # Errors
    /// [`RepairError`] if a file cannot be read. What does not fit is in the list.
    pub fn verify(&self, output: &Path, input: Option<&Path>) -> Result<Vec<Mismatch>, RepairError> {
        let mut mismatches = Vec::new();
        for (found, expected) in
            [(&self.statement_type, STATEMENT_TYPE), (&self.predicate_type, PREDICATE_TYPE)]
        {
            if found != expected {
                mismatches.push(Mismatch::Type { found: found.clone(), expected });
            }
        }
        let subject = self.subject.first().map_or("", Resource::sha256);
        compare(&output.to_string_lossy(), subject, digest(output)?, &mut mismatches);
        let after = members(output)?;
        for resource in &self.predicate.written {
            match after.get(&resource.name) {
                Some(found) => compare(&resource.name, resource.sha256(), found.clone(), &mut mismatches),
                None => mismatches.push(Mismatch::Missing(resource.name.clone())),
            }
        }
        if let Some(input) = input {
            compare(&input.to_string_lossy(), self.predicate.input.sha256(), digest(input)?, &mut mismatches);
            self.explain(&members(input)?, &after, &mut mismatches);
        }
        Ok(mismatches)
    }

    /// Every member of one side is explained by the other side or by the statement.
    fn explain(
        &self,
        before: &BTreeMap<String, String>,
        after: &BTreeMap<String, String>,
        mismatches: &mut Vec<Mismatch>,
    ) {
        let predicate = &self.predicate;
        let record = |name: &str| is_record_or_signature(name, &predicate.plan.dist_info);
        let written = |name: &str| predicate.written.iter().any(|resource| resource.name == name);
        for (name, sha256) in after {
            if before.get(name) != Some(sha256) && !written(name) && !record(name) {
                mismatches.push(Mismatch::Unexplained(name.clone()));
            }
        }
        let dropped = |name: &str| predicate.plan.dropped.iter().any(|dropped| dropped.member == name);
        for name in before.keys() {
            if !after.contains_key(name) && !dropped(name) {
                mismatches.push(Mismatch::Lost(name.clone()));
            }
        }
    }
}

fn compare(name: &str, expected: &str, found: String, mismatches: &mut Vec<Mismatch>) {
    if expected != found {
        mismatches.push(Mismatch::Digest { name: name.to_owned(), expected: expected.to_owned(), found });
    }
}

/// SHA-256 of a file, read piece by piece.
fn digest(path: &Path) -> Result<String, RepairError> {
    let mut file = File::open(path).map_err(RepairError::io("read", path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut buffer).map_err(RepairError::io("read", path))?;
        let Some(chunk) = buffer.get(..length).filter(|chunk| !chunk.is_empty()) else { break };
        hasher.update(chunk);
    }
    Ok(hex(&hasher.finalize()))
}

/// SHA-256 of every member that is a file.
fn members(path: &Path) -> Result<BTreeMap<String, String>, RepairError> {
    let archive = Archive::open(path, &Limits::default())
        .map_err(|source| abiaudit_scan::ScanError::Archive { path: path.to_owned(), source })?;
    abiaudit_wheel::writer::check(&archive)?;
    let mut scratch = Scratch::new();
    let mut digests = BTreeMap::new();
    for member in archive.members().iter().filter(|member| !member.name.ends_with('/')) {
        let mut hasher = Sha256::new();
        let outcome = archive.read(member, &mut scratch, &mut |chunk| {
            hasher.update(chunk);
            Ok(())
        });
        outcome.map_err(|error| RepairError::DistInfo(error.to_string()))?;
        digests.insert(member.name.clone(), hex(&hasher.finalize()));
    }
    Ok(digests)
}
