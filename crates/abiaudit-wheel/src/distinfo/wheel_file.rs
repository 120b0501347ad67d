//! The WHEEL file (binary distribution format, "File contents").

use super::headers::Headers;
use crate::tags::{TAGS_MAX, Tag, TagError};

/// Content of a WHEEL file. Fields that may occur once hold the first value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WheelFile {
    /// `Wheel-Version`, major and minor.
    pub wheel_version: Option<(u32, u32)>,
    /// `Generator`.
    pub generator: Option<String>,
    /// `Root-Is-Purelib`.
    pub root_is_purelib: Option<bool>,
    /// `Tag` fields, compressed sets expanded, in file order.
    pub tags: Vec<Tag>,
    /// `Build`.
    pub build: Option<String>,
}

/// What is wrong with a WHEEL file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WheelFileProblem {
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
    /// The same tag is listed twice.
    DuplicateTag {
        /// The tag.
        tag: String,
    },
    /// The fields stand for more than [`TAGS_MAX`] tags; those of this line and after it are left out.
    TooManyTags {
        /// Line number.
        line: usize,
    },
    /// `Wheel-Version` is above 1: installers must refuse a greater major version and warn of a greater
    /// minor one.
    NewerWheelVersion {
        /// The version.
        version: (u32, u32),
    },
}

impl WheelFile {
    /// Reads a WHEEL file; what cannot be read is a problem.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> (Self, Vec<WheelFileProblem>) {
        let text = String::from_utf8_lossy(bytes);
        let mut problems = Vec::new();
        if std::str::from_utf8(bytes).is_err() {
            problems.push(WheelFileProblem::NotUtf8);
        }
        let headers = Headers::parse(&text);
        problems.extend(headers.bad_lines.iter().map(|line| WheelFileProblem::BadLine { line: *line }));
        let mut once = |field: &'static str, required: bool| {
            let mut values = headers.all(field);
            let first = values.next().map(|first| first.value.clone());
            problems.extend(values.map(|again| WheelFileProblem::DuplicateField { field, line: again.line }));
            if first.is_none() && required {
                problems.push(WheelFileProblem::MissingField { field });
            }
            first
        };
        let version = once("Wheel-Version", true);
        let generator = once("Generator", true);
        let purelib = once("Root-Is-Purelib", true);
        let build = once("Build", false);
        let mut file = Self { generator, build, ..Self::default() };
        if let Some(value) = version {
            file.wheel_version = parse_wheel_version(&value);
            match file.wheel_version {
                None => problems.push(WheelFileProblem::BadValue { field: "Wheel-Version", value }),
                Some(version) if version > (1, 0) => {
                    problems.push(WheelFileProblem::NewerWheelVersion { version });
                }
                Some(_) => {}
            }
        }
        if let Some(value) = purelib {
            file.root_is_purelib = match value.to_ascii_lowercase().as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            };
            if file.root_is_purelib.is_none() {
                problems.push(WheelFileProblem::BadValue { field: "Root-Is-Purelib", value });
            }
        }
        read_tags(&headers, &mut file, &mut problems);
        (file, problems)
    }
}

fn read_tags(headers: &Headers, file: &mut WheelFile, problems: &mut Vec<WheelFileProblem>) {
    let mut any = false;
    let mut expanded = 0;
    let mut seen = std::collections::BTreeSet::new();
    for field in headers.all("Tag") {
        any = true;
        let tags = match Tag::parse_set(&field.value) {
            Ok(tags) if tags.len() <= TAGS_MAX - expanded => tags,
            Ok(_) | Err(TagError::TooMany { .. }) => {
                problems.push(WheelFileProblem::TooManyTags { line: field.line });
                break;
            }
            Err(TagError::Form { text }) => {
                problems.push(WheelFileProblem::BadValue { field: "Tag", value: text });
                continue;
            }
        };
        expanded += tags.len();
        for tag in tags {
            if seen.insert(tag.clone()) {
                file.tags.push(tag);
            } else {
                problems.push(WheelFileProblem::DuplicateTag { tag: tag.to_string() });
            }
        }
    }
    if !any {
        problems.push(WheelFileProblem::MissingField { field: "Tag" });
    }
}

fn parse_wheel_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_file() {
        let (file, problems) = WheelFile::parse(
            b"Wheel-Version: 1.0\nGenerator: x 1\nRoot-Is-Purelib: false\nTag: py2.py3-none-any\nBuild: 3\n",
        );
        assert_eq!(problems, []);
        assert_eq!(file.wheel_version, Some((1, 0)));
        assert_eq!(file.root_is_purelib, Some(false));
        assert_eq!(file.tags.len(), 2);
        assert_eq!(file.build.as_deref(), Some("3"));
    }

    #[test]
    fn every_defect_is_named() {
        let (file, problems) = WheelFile::parse(
            b"Wheel-Version: 2.0\nWheel-Version: 1.0\nRoot-Is-Purelib: maybe\nTag: nonsense\nTag: a-b-any\n\
              Tag: a-b-any\nno field\n\xff: x\n",
        );
        assert_eq!(file.tags.len(), 1);
        assert_eq!(
            problems,
            [
                WheelFileProblem::NotUtf8,
                WheelFileProblem::BadLine { line: 7 },
                WheelFileProblem::BadLine { line: 8 },
                WheelFileProblem::DuplicateField { field: "Wheel-Version", line: 2 },
                WheelFileProblem::MissingField { field: "Generator" },
                WheelFileProblem::NewerWheelVersion { version: (2, 0) },
                WheelFileProblem::BadValue { field: "Root-Is-Purelib", value: "maybe".to_owned() },
                WheelFileProblem::BadValue { field: "Tag", value: "nonsense".to_owned() },
                WheelFileProblem::DuplicateTag { tag: "a-b-any".to_owned() },
            ]
        );
        let (_, problems) = WheelFile::parse(b"");
        assert_eq!(problems.len(), 4);
    }

    #[test]
    fn tags_are_bounded() {
        let set =
            |prefix: &str, n: usize| (0..n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(".");
        let cube = format!("Tag: {}-{}-{}\n", set("cp", 1000), set("abi", 1000), set("linux_", 1000));
        let (file, problems) = WheelFile::parse(format!("Tag: py3-none-any\n{cube}").as_bytes());
        assert_eq!(file.tags.len(), 1);
        assert!(problems.contains(&WheelFileProblem::TooManyTags { line: 2 }), "{problems:?}");

        let square = format!("Tag: {}-{}-any\n", set("cp", 100), set("abi", 90));
        let (file, problems) = WheelFile::parse(square.repeat(1000).as_bytes());
        assert_eq!(file.tags.len(), 9000);
        assert!(problems.contains(&WheelFileProblem::TooManyTags { line: 2 }), "{problems:?}");
    }
}
