//! The METADATA file (core metadata specification).

use std::collections::BTreeSet;

use pep440_rs::{Version, VersionSpecifiers};

use super::headers::Headers;
use super::requirement::{Environment, Requirement, RequirementError};
use crate::name::normalize_name;

/// Most `Requires-Dist` fields that are read.
const MAX_REQUIREMENTS: usize = 8192;

/// The part of METADATA that an audit needs. Fields that may occur once hold the first value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `Metadata-Version`, as written.
    pub metadata_version: Option<String>,
    /// `Name`, as written.
    pub name: Option<String>,
    /// `Version`, as written.
    pub version_text: Option<String>,
    /// `Version`, if it follows PEP 440.
    pub version: Option<Version>,
    /// `Requires-Python`, as written.
    pub requires_python_text: Option<String>,
    /// `Requires-Python`, if it follows PEP 440.
    pub requires_python: Option<VersionSpecifiers>,
    /// `Provides-Extra`, in file order.
    pub provides_extra: Vec<String>,
    /// `Requires-Dist`, in file order.
    pub requires_dist: Vec<Requirement>,
}

/// What is wrong with METADATA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataProblem {
    /// Bytes that are not UTF-8; they are read as U+FFFD.
    NotUtf8,
    /// A line before the first empty one that is no field.
    BadLine {
        /// Line number, from 1.
        line: usize,
    },
    /// A required field is missing.
    MissingField {
        /// Its name.
        field: &'static str,
    },
    /// A field that may occur once occurs again; the first one counts.
    DuplicateField {
        /// Its name.
        field: &'static str,
        /// Line number of the later one.
        line: usize,
    },
    /// A value cannot be read.
    BadValue {
        /// The field.
        field: &'static str,
        /// As written.
        value: String,
    },
    /// A `Requires-Dist` that was kept as text only.
    BadRequirement {
        /// As written.
        value: String,
        /// Why.
        error: RequirementError,
    },
    /// More `Requires-Dist` fields than are read.
    TooManyRequirements {
        /// How many there are.
        found: usize,
        /// How many were read.
        read: usize,
    },
}

impl Metadata {
    /// Reads METADATA; what cannot be read is a problem.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> (Self, Vec<MetadataProblem>) {
        let text = String::from_utf8_lossy(bytes);
        let mut problems = Vec::new();
        if std::str::from_utf8(bytes).is_err() {
            problems.push(MetadataProblem::NotUtf8);
        }
        let headers = Headers::parse(&text);
        problems.extend(headers.bad_lines.iter().map(|line| MetadataProblem::BadLine { line: *line }));
        let mut once = |field: &'static str, required: bool| {
            let mut values = headers.all(field);
            let first = values.next().map(|first| first.value.clone());
            problems.extend(values.map(|again| MetadataProblem::DuplicateField { field, line: again.line }));
            if first.is_none() && required {
                problems.push(MetadataProblem::MissingField { field });
            }
            first
        };
        let mut metadata = Self {
            metadata_version: once("Metadata-Version", true),
            name: once("Name", true),
            version_text: once("Version", true),
            requires_python_text: once("Requires-Python", false),
            ..Self::default()
        };
        metadata.read_versions(&mut problems);
        metadata.provides_extra = headers.all("Provides-Extra").map(|field| field.value.clone()).collect();
        metadata.read_requirements(&headers, &mut problems);
        (metadata, problems)
    }

    fn read_versions(&mut self, problems: &mut Vec<MetadataProblem>) {
        if let Some(value) = &self.version_text {
            self.version = value.parse().ok();
            if self.version.is_none() {
                problems.push(MetadataProblem::BadValue { field: "Version", value: value.clone() });
            }
        }
        if let Some(value) = &self.requires_python_text {
            self.requires_python = value.parse().ok();
            if self.requires_python.is_none() {
                problems.push(MetadataProblem::BadValue { field: "Requires-Python", value: value.clone() });
            }
        }
    }

    fn read_requirements(&mut self, headers: &Headers, problems: &mut Vec<MetadataProblem>) {
        for field in headers.all("Requires-Dist").take(MAX_REQUIREMENTS) {
            let (requirement, error) = Requirement::parse(&field.value);
            if let Some(error) = error {
                problems.push(MetadataProblem::BadRequirement { value: field.value.clone(), error });
            }
            self.requires_dist.push(requirement);
        }
        let found = headers.all("Requires-Dist").count();
        if found > MAX_REQUIREMENTS {
            problems.push(MetadataProblem::TooManyRequirements { found, read: MAX_REQUIREMENTS });
        }
    }

    /// The project's name, normalised after PEP 503.
    #[must_use]
    pub fn normalized_name(&self) -> Option<String> {
        self.name.as_deref().map(normalize_name)
    }

    /// The requirements that apply in an environment, in file order.
    pub fn requirements_for<'a>(
        &'a self,
        environment: &'a Environment,
    ) -> impl Iterator<Item = &'a Requirement> {
        self.requires_dist.iter().filter(|requirement| requirement.applies(environment))
    }

    /// The normalised names of all required projects, whatever their markers say.
    #[must_use]
    pub fn required_names(&self) -> BTreeSet<&str> {
        self.requires_dist.iter().filter_map(|requirement| requirement.name.as_deref()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_interest() {
        let (metadata, problems) = Metadata::parse(
            b"Metadata-Version: 2.1\nName: Foo.Bar\nVersion: 1.0+cu117\nRequires-Python: >=3.8\n\
              Provides-Extra: test\nRequires-Dist: NumPy (>=1.7)\nRequires-Dist: pytest; extra == 'test'\n\n\
              Requires-Dist: body\n",
        );
        assert_eq!(problems, []);
        assert_eq!(metadata.normalized_name().as_deref(), Some("foo-bar"));
        assert_eq!(metadata.required_names().into_iter().collect::<Vec<_>>(), ["numpy", "pytest"]);
        let environment = Environment::linux("3.12.1", "x86_64");
        let names: Vec<_> =
            metadata.requirements_for(&environment).filter_map(|one| one.name.as_deref()).collect();
        assert_eq!(names, ["numpy"]);
    }

    #[test]
    fn every_defect_is_named() {
        let (metadata, problems) = Metadata::parse(
            b"Name: a\nName: b\nVersion: x y\nRequires-Python: nope\nRequires-Dist: !\nSummary: \xff\n",
        );
        assert_eq!(metadata.name.as_deref(), Some("a"));
        assert!(matches!(
            problems.as_slice(),
            [
                MetadataProblem::NotUtf8,
                MetadataProblem::MissingField { field: "Metadata-Version" },
                MetadataProblem::DuplicateField { field: "Name", line: 2 },
                MetadataProblem::BadValue { field: "Version", .. },
                MetadataProblem::BadValue { field: "Requires-Python", .. },
                MetadataProblem::BadRequirement { .. },
            ]
        ));
    }
}
