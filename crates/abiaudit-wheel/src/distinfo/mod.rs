//! The dist-info directory: WHEEL, METADATA and RECORD. Nothing here is fatal; what is wrong becomes a
//! [`DistInfoProblem`].

mod headers;
mod marker;
mod metadata;
pub mod record;
mod requirement;
mod wheel_file;

use std::collections::BTreeSet;

pub use marker::{Marker, Operand};
pub use metadata::{Metadata, MetadataProblem};
pub use record::{Record, RecordProblem};
pub use requirement::{Environment, ParsedRequirement, Requirement, RequirementError, UrlText};
pub use wheel_file::{WheelFile, WheelFileProblem};

use crate::archive::{Archive, Member, MemberError, MemberKind, Scratch};
use crate::filename::{WheelName, parse_version};
use crate::name::normalize_name;
use crate::tags::Tag;

/// Largest WHEEL or METADATA that is read; what lies beyond is cut off. METADATA holds a README.
const MAX_HEADER_FILE: u64 = 16 << 20;
/// Largest RECORD that is read. 70,000 rows take about 8 MiB.
const MAX_RECORD: u64 = 256 << 20;

/// What a wheel says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DistInfo {
    /// Name of the directory, without a slash.
    pub directory: Option<String>,
    /// WHEEL.
    pub wheel: Option<WheelFile>,
    /// METADATA.
    pub metadata: Option<Metadata>,
    /// RECORD.
    pub record: Option<Record>,
    /// What is wrong with them, in the order in which they are read.
    pub problems: Vec<DistInfoProblem>,
}

/// What is wrong with a dist-info directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DistInfoProblem {
    /// No top-level directory ends in `.dist-info`.
    NoDistInfo,
    /// Several do; only the one that fits the file name best is read.
    SeveralDistInfos {
        /// All of them, sorted.
        directories: Vec<String>,
    },
    /// The directory's name is not that of the wheel's file.
    DirectoryMismatch {
        /// The directory.
        directory: String,
        /// `name-version` of the file name.
        expected: String,
    },
    /// WHEEL, METADATA or RECORD is missing.
    MissingFile {
        /// Which.
        file: &'static str,
    },
    /// WHEEL, METADATA or RECORD cannot be read.
    Unreadable {
        /// Which.
        file: &'static str,
        /// Why.
        error: MemberError,
    },
    /// WHEEL, METADATA or RECORD is larger than what is read of it.
    TooLarge {
        /// Which.
        file: &'static str,
        /// Its size.
        size: u64,
        /// How much is read.
        limit: u64,
    },
    /// About the content of WHEEL.
    Wheel(WheelFileProblem),
    /// About the content of METADATA.
    Metadata(MetadataProblem),
    /// About the content of RECORD, by itself.
    Record(RecordProblem),
    /// `Name` of METADATA is not that of the file name.
    NameMismatch {
        /// METADATA's.
        metadata: String,
        /// The file name's.
        file_name: String,
    },
    /// `Version` of METADATA is not that of the file name.
    VersionMismatch {
        /// METADATA's.
        metadata: String,
        /// The file name's.
        file_name: String,
    },
    /// `Build` of WHEEL and the build tag of the file name differ.
    BuildMismatch {
        /// WHEEL's.
        wheel: Option<String>,
        /// The file name's.
        file_name: Option<String>,
    },
    /// WHEEL and file name have different tags. Legacy manylinux names and their PEP 600 forms are the same.
    TagMismatch {
        /// Only in the file name, sorted.
        only_in_file_name: Vec<Tag>,
        /// Only in WHEEL, sorted.
        only_in_wheel: Vec<Tag>,
    },
}

impl DistInfo {
    /// Finds and reads the dist-info directory. Without a file name the checks against it are left out.
    #[must_use]
    pub fn read(archive: &Archive, file_name: Option<&WheelName>, scratch: &mut Scratch) -> Self {
        let mut info = Self::default();
        info.directory = info.find_directory(archive, file_name);
        let Some(directory) = info.directory.clone() else { return info };
        if let Some(bytes) = info.read_file(archive, scratch, &directory, "WHEEL", MAX_HEADER_FILE) {
            let (wheel, problems) = WheelFile::parse(&bytes);
            info.wheel = Some(wheel);
            info.problems.extend(problems.into_iter().map(DistInfoProblem::Wheel));
        }
        if let Some(bytes) = info.read_file(archive, scratch, &directory, "METADATA", MAX_HEADER_FILE) {
            let (metadata, problems) = Metadata::parse(&bytes);
            info.metadata = Some(metadata);
            info.problems.extend(problems.into_iter().map(DistInfoProblem::Metadata));
        }
        if let Some(bytes) = info.read_file(archive, scratch, &directory, "RECORD", MAX_RECORD) {
            let (record, problems) = Record::parse(&bytes, &directory);
            info.record = Some(record);
            info.problems.extend(problems.into_iter().map(DistInfoProblem::Record));
        }
        if let Some(file_name) = file_name {
            info.compare_with_file_name(file_name);
        }
        info
    }

    fn find_directory(&mut self, archive: &Archive, file_name: Option<&WheelName>) -> Option<String> {
        let directories: BTreeSet<&str> = archive
            .members()
            .iter()
            .filter_map(|member| member.name.split_once('/'))
            .map(|(top, _)| top)
            .filter(|top| top.ends_with(".dist-info"))
            .collect();
        // The first of the best: sorting is stable and the set is sorted.
        let mut ranked: Vec<&str> = directories.iter().copied().collect();
        ranked.sort_by_key(|directory| file_name.map_or(0, |name| misfit(directory, name)));
        let best = ranked.first().copied();
        match (directories.len(), best, file_name) {
            (0, ..) => self.problems.push(DistInfoProblem::NoDistInfo),
            (1, Some(directory), Some(name)) if misfit(directory, name) > 0 => {
                self.problems.push(DistInfoProblem::DirectoryMismatch {
                    directory: directory.to_owned(),
                    expected: format!("{}-{}", name.name, name.version_text),
                });
            }
            (1, ..) => {}
            _ => self.problems.push(DistInfoProblem::SeveralDistInfos {
                directories: directories.iter().map(|&directory| directory.to_owned()).collect(),
            }),
        }
        best.map(str::to_owned)
    }

    fn read_file(
        &mut self,
        archive: &Archive,
        scratch: &mut Scratch,
        directory: &str,
        file: &'static str,
        limit: u64,
    ) -> Option<Vec<u8>> {
        let Some(member) = file_member(archive, &format!("{directory}/{file}")) else {
            self.problems.push(DistInfoProblem::MissingFile { file });
            return None;
        };
        if member.size > limit {
            self.problems.push(DistInfoProblem::TooLarge { file, size: member.size, limit });
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match archive.read_prefix(member, scratch, limit) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                self.problems.push(DistInfoProblem::Unreadable { file, error });
                None
            }
        }
    }

    fn compare_with_file_name(&mut self, file_name: &WheelName) {
        if let Some(metadata) = &self.metadata {
            if let Some(name) = &metadata.name
                && normalize_name(name) != file_name.normalized_name()
            {
                self.problems.push(DistInfoProblem::NameMismatch {
                    metadata: name.clone(),
                    file_name: file_name.name.clone(),
                });
            }
            if let Some(version) = &metadata.version_text
                && !same_version(version, &file_name.version_text)
            {
                self.problems.push(DistInfoProblem::VersionMismatch {
                    metadata: version.clone(),
                    file_name: file_name.version_text.clone(),
                });
            }
        }
        if let Some(wheel) = &self.wheel {
            let named = file_name.build.as_ref().map(|build| build.text.clone());
            if wheel.build != named {
                self.problems
                    .push(DistInfoProblem::BuildMismatch { wheel: wheel.build.clone(), file_name: named });
            }
            self.problems.extend(compare_tags(&file_name.tags(), &wheel.tags));
        }
    }
}

/// The last file of that name, which is the one that Python's `zipfile` gives.
fn file_member<'a>(archive: &'a Archive, name: &str) -> Option<&'a Member> {
    archive.member(name).filter(|member| member.kind == MemberKind::File)
}

/// How badly a dist-info directory fits a file name: 0 name and version agree, 1 the name does, 2 nothing does.
fn misfit(directory: &str, file_name: &WheelName) -> u8 {
    let stem = directory.strip_suffix(".dist-info").unwrap_or(directory);
    let (name, version) = stem.rsplit_once('-').unwrap_or((stem, ""));
    if normalize_name(name) == file_name.normalized_name() {
        u8::from(!same_version(version, &file_name.version_text))
    } else {
        2
    }
}

fn same_version(a: &str, b: &str) -> bool {
    match (parse_version(a), parse_version(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn compare_tags(file_name: &[Tag], wheel: &[Tag]) -> Option<DistInfoProblem> {
    let perennial = |tags: &[Tag]| -> BTreeSet<Tag> {
        tags.iter().map(|tag| Tag { platform: tag.platform.perennial(), ..tag.clone() }).collect()
    };
    let (in_name, in_wheel) = (perennial(file_name), perennial(wheel));
    // Without a readable tag there is nothing to compare; that is a problem of WHEEL by itself.
    (in_name != in_wheel && !wheel.is_empty()).then(|| DistInfoProblem::TagMismatch {
        only_in_file_name: in_name.difference(&in_wheel).cloned().collect(),
        only_in_wheel: in_wheel.difference(&in_name).cloned().collect(),
    })
}

#[cfg(test)]
mod tests;
