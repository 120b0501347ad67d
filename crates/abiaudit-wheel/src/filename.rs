//! Wheel file names, after the binary distribution format (PEP 427 and its living copy in the Python
//! packaging specifications, "File name convention").

use std::fmt;
use std::str::FromStr;

use pep440_rs::Version;

use crate::name::normalize_name;
use crate::tags::{PlatformTag, Tag, parse_tag_set, product};

/// Longest variant label (PEP 825 draft).
const MAX_VARIANT_LABEL: usize = 16;

/// A wheel's file name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelName {
    /// The distribution name as written.
    pub name: String,
    /// The version as written.
    pub version_text: String,
    /// The version; `None` if it does not follow PEP 440, which old wheels may be excused for.
    pub version: Option<Version>,
    /// Build tag: a number and what follows it, for instance `1` and `_local`.
    pub build: Option<BuildTag>,
    /// Interpreter tags of the compressed set.
    pub pythons: Vec<String>,
    /// ABI tags of the compressed set.
    pub abis: Vec<String>,
    /// Platform tags of the compressed set.
    pub platforms: Vec<PlatformTag>,
    /// Variant label. **Experimental**: PEP 817 and PEP 825, which define it, are drafts. A last part after
    /// the platform tag is taken for a label if it is at most 16 characters of `0-9a-z._`; with six parts
    /// there is one if the third does not begin with a digit, since a build tag does and an interpreter tag
    /// does not.
    pub variant: Option<String>,
}

/// A build tag, which orders wheels of one version: by number, then by text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BuildTag {
    /// The leading digits, without leading zeros (of any length; compare by length first).
    pub number: String,
    /// What follows them.
    pub suffix: String,
    /// As written.
    pub text: String,
}

/// A file name that is not a wheel's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WheelNameError {
    /// No `.whl` at the end.
    #[error("{file_name:?}: expected a name that ends in .whl")]
    Extension {
        /// The name.
        file_name: String,
    },
    /// Not five to seven parts.
    #[error(
        "{file_name:?}: expected name-version[-build]-python-abi-platform[-variant].whl, found {found} parts"
    )]
    Parts {
        /// The name.
        file_name: String,
        /// Number of parts.
        found: usize,
    },
    /// A part is empty or has characters that it cannot have.
    #[error("{file_name:?}: {text:?} is not a valid {part}")]
    Part {
        /// The name.
        file_name: String,
        /// Which part: `name`, `version`, `build tag`, `python tag`, `abi tag`, `platform tag`, `variant label`.
        part: &'static str,
        /// Its text.
        text: String,
    },
}

impl WheelNameError {
    /// The file name that is not a wheel's.
    #[must_use]
    pub fn file_name(&self) -> &str {
        match self {
            Self::Extension { file_name } | Self::Parts { file_name, .. } | Self::Part { file_name, .. } => {
                file_name
            }
        }
    }
}

/// A name that can be read, but is not written as the specification wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WheelNameProblem {
    /// The version does not follow PEP 440; current installers refuse the wheel.
    InvalidVersion {
        /// As written.
        version: String,
    },
    /// The name is not normalised: lower case, and `_` for each run of `-`, `_`, `.`. Only new wheels are
    /// expected to have it so.
    NameNotNormalized {
        /// As written.
        name: String,
        /// As it should be.
        expected: String,
    },
    /// The version is not in its normal form.
    VersionNotNormalized {
        /// As written.
        version: String,
        /// As it should be.
        expected: String,
    },
    /// A tag occurs twice in a compressed set.
    DuplicateTag {
        /// The tag.
        tag: String,
    },
}

impl WheelName {
    /// Takes a file name (no directories) apart.
    ///
    /// # Errors
    /// [`WheelNameError`].
    pub fn parse(file_name: &str) -> Result<Self, WheelNameError> {
        let stem = file_name
            .strip_suffix(".whl")
            .ok_or_else(|| WheelNameError::Extension { file_name: file_name.to_owned() })?;
        let parts: Vec<&str> = stem.split('-').collect();
        let (head, build, tags, variant) = match *parts.as_slice() {
            [name, version, python, abi, platform] => ([name, version], None, [python, abi, platform], None),
            [name, version, build, python, abi, platform] if begins_with_digit(build) => {
                ([name, version], Some(build), [python, abi, platform], None)
            }
            [name, version, python, abi, platform, variant] => {
                ([name, version], None, [python, abi, platform], Some(variant))
            }
            [name, version, build, python, abi, platform, variant] => {
                ([name, version], Some(build), [python, abi, platform], Some(variant))
            }
            _ => return Err(WheelNameError::Parts { file_name: file_name.to_owned(), found: parts.len() }),
        };
        let bad = |part, text: &str| WheelNameError::Part {
            file_name: file_name.to_owned(),
            part,
            text: text.to_owned(),
        };
        let [name, version_text] = head;
        if !is_distribution_name(name) {
            return Err(bad("name", name));
        }
        if version_text.is_empty() || version_text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(bad("version", version_text));
        }
        let build =
            build.map(|text| BuildTag::parse(text).ok_or_else(|| bad("build tag", text))).transpose()?;
        let [python, abi, platform] = tags;
        if variant.is_some_and(|label| !is_variant_label(label)) {
            return Err(bad("variant label", variant.unwrap_or_default()));
        }
        Ok(Self {
            name: name.to_owned(),
            version_text: version_text.to_owned(),
            version: parse_version(version_text),
            build,
            pythons: parse_tag_set(python).ok_or_else(|| bad("python tag", python))?,
            abis: parse_tag_set(abi).ok_or_else(|| bad("abi tag", abi))?,
            platforms: parse_tag_set(platform)
                .ok_or_else(|| bad("platform tag", platform))?
                .iter()
                .map(|text| PlatformTag::parse(text))
                .collect(),
            variant: variant.map(str::to_owned),
        })
    }

    /// The name as PEP 503 normalises it.
    #[must_use]
    pub fn normalized_name(&self) -> String {
        normalize_name(&self.name)
    }

    /// All tags of the compressed sets, the platform varying fastest.
    #[must_use]
    pub fn tags(&self) -> Vec<Tag> {
        product(&self.pythons, &self.abis, &self.platforms)
    }

    /// The platform tags of the oldest systems among [`WheelName::platforms`]: see [`crate::tags::promise`].
    #[must_use]
    pub fn promise(&self) -> Vec<PlatformTag> {
        crate::tags::promise(&self.platforms)
    }

    /// Where the name departs from the specification.
    #[must_use]
    pub fn problems(&self) -> Vec<WheelNameProblem> {
        let mut problems = Vec::new();
        let expected = self.normalized_name().replace('-', "_");
        if expected != self.name {
            problems.push(WheelNameProblem::NameNotNormalized { name: self.name.clone(), expected });
        }
        match &self.version {
            None => {
                problems.push(WheelNameProblem::InvalidVersion { version: self.version_text.clone() });
            }
            Some(version) => {
                let expected = version.to_string();
                if expected != self.version_text {
                    let version = self.version_text.clone();
                    problems.push(WheelNameProblem::VersionNotNormalized { version, expected });
                }
            }
        }
        let platforms: Vec<String> = self.platforms.iter().map(ToString::to_string).collect();
        for set in [&self.pythons, &self.abis, &platforms] {
            let mut sorted: Vec<&String> = set.iter().collect();
            sorted.sort();
            let mut repeated: Vec<&String> = sorted
                .iter()
                .zip(sorted.iter().skip(1))
                .filter(|(one, next)| one == next)
                .map(|(one, _)| *one)
                .collect();
            repeated.dedup();
            problems
                .extend(repeated.into_iter().map(|tag| WheelNameProblem::DuplicateTag { tag: tag.clone() }));
        }
        problems
    }
}

impl FromStr for WheelName {
    type Err = WheelNameError;

    fn from_str(text: &str) -> Result<Self, WheelNameError> {
        Self::parse(text)
    }
}

impl fmt::Display for WheelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.name, self.version_text)?;
        if let Some(build) = &self.build {
            write!(f, "-{}", build.text)?;
        }
        let platforms: Vec<String> = self.platforms.iter().map(ToString::to_string).collect();
        write!(f, "-{}-{}-{}", self.pythons.join("."), self.abis.join("."), platforms.join("."))?;
        if let Some(variant) = &self.variant {
            write!(f, "-{variant}")?;
        }
        f.write_str(".whl")
    }
}

impl BuildTag {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, suffix) = text.split_at_checked(digits)?;
        let clean = suffix.bytes().all(|byte| byte.is_ascii_graphic());
        let stripped = number.trim_start_matches('0');
        let number = if stripped.is_empty() { "0" } else { stripped };
        (digits > 0 && clean).then(|| Self {
            number: number.to_owned(),
            suffix: suffix.to_owned(),
            text: text.to_owned(),
        })
    }
}

/// A version of a file name. `-` is the separator there, so local versions were escaped with `_` by old tools:
/// `1.0_cu117` is then tried as `1.0+cu117`.
pub(crate) fn parse_version(text: &str) -> Option<Version> {
    text.parse().ok().or_else(|| text.replacen('_', "+", 1).parse().ok())
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Letters, digits, `_` and `.`, with a letter or digit at both ends (PEP 508 names, escaped).
fn is_distribution_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

fn is_variant_label(label: &str) -> bool {
    (1..=MAX_VARIANT_LABEL).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase() || matches!(b, b'.' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_name() {
        let name =
            WheelName::parse("numpy-1.26.4-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
                .expect("valid");
        assert_eq!(name.name, "numpy");
        assert_eq!(name.version, Some(Version::new([1, 26, 4])));
        assert_eq!((name.build.clone(), name.variant.clone()), (None, None));
        assert_eq!(name.tags().len(), 2);
        assert_eq!(name.promise().len(), 1);
        assert_eq!(name.problems(), []);
    }

    #[test]
    fn build_tags_and_variant_labels_are_told_apart_by_the_digit() {
        let build = WheelName::parse("a-1-2_local-py3-none-any.whl").expect("valid");
        let tag = build.build.expect("build tag");
        assert_eq!((tag.number.as_str(), tag.suffix.as_str()), ("2", "_local"));
        let variant = WheelName::parse("a-1-py3-none-any-cu126.whl").expect("valid");
        assert_eq!((variant.build, variant.variant.as_deref()), (None, Some("cu126")));
        let both = WheelName::parse("a-1-003-py3-none-any-x86_64_v3.whl").expect("valid");
        assert_eq!(both.build.expect("build tag").number, "3");
        assert_eq!(both.variant.as_deref(), Some("x86_64_v3"));
    }

    #[test]
    fn what_is_not_a_wheel_name_is_said() {
        let error = |text| WheelName::parse(text).expect_err("invalid");
        assert!(matches!(error("wheel.whl"), WheelNameError::Parts { found: 1, .. }));
        assert!(matches!(error("a-1-py3-none-any.zip"), WheelNameError::Extension { .. }));
        assert!(matches!(error("-1-py3-none-any.whl"), WheelNameError::Part { part: "name", .. }));
        assert!(matches!(error("a--py3-none-any.whl"), WheelNameError::Part { part: "version", .. }));
        assert!(matches!(error("a-1-py3-none-.whl"), WheelNameError::Part { part: "platform tag", .. }));
        assert!(matches!(error("a-1-py3-none-any-.whl"), WheelNameError::Part { part: "variant label", .. }));
        assert!(matches!(
            error("a-1-b-py3-none-any-x.whl"),
            WheelNameError::Part { part: "build tag", text, .. } if text == "b"
        ));
        assert!(matches!(error("a/b-1-py3-none-any.whl"), WheelNameError::Part { part: "name", .. }));
    }

    #[test]
    fn departures_from_the_normal_form_are_problems() {
        let name = WheelName::parse("Zope.Interface-1.0.RC1-py3.py3-none-any.whl").expect("valid");
        assert_eq!(
            name.problems(),
            [
                WheelNameProblem::NameNotNormalized {
                    name: "Zope.Interface".to_owned(),
                    expected: "zope_interface".to_owned()
                },
                WheelNameProblem::VersionNotNormalized {
                    version: "1.0.RC1".to_owned(),
                    expected: "1.0rc1".to_owned()
                },
                WheelNameProblem::DuplicateTag { tag: "py3".to_owned() },
            ]
        );
        let name = WheelName::parse("a-not.a.version-py3-none-any.whl").expect("valid");
        assert_eq!(name.version, None);
    }

    proptest! {
        #[test]
        fn display_gives_back_what_was_parsed(text in "[a-z0-9._]{1,4}(-[a-z0-9._+]{0,6}){3,7}\\.whl") {
            if let Ok(name) = WheelName::parse(&text) {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }
}
