//! Compatibility tags (PEP 425) and platform tags (PEP 513, 571, 599, 600, 656, 738).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// One compatibility tag: the three parts of `cp312-cp312-manylinux_2_28_x86_64`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// Interpreter, for instance `cp312`.
    pub python: String,
    /// ABI, for instance `cp312`, `abi3` or `none`.
    pub abi: String,
    /// Platform.
    pub platform: PlatformTag,
}

/// A text that is not a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// It has another form.
    #[error("{text:?} is not a tag of the form python-abi-platform")]
    Form {
        /// The text.
        text: String,
    },
    /// It stands for more than [`TAGS_MAX`] tags.
    #[error("a compressed tag set that stands for {count} tags; at most {TAGS_MAX} are expanded")]
    TooMany {
        /// How many.
        count: usize,
    },
}

/// Most tags that a compressed set, and a whole WHEEL file, may stand for. Real wheels have at most dozens; three sets
/// of a thousand parts in eight kilobytes would be a thousand million.
pub const TAGS_MAX: usize = 10_000;

impl Tag {
    /// Expands a tag that may hold compressed sets (`py2.py3-none-any`) to its product, in order.
    ///
    /// # Errors
    /// [`TagError::Form`] if there are not three parts, or a part of a set is empty or holds other characters than
    /// ASCII letters, digits and `_`; [`TagError::TooMany`] above [`TAGS_MAX`] tags.
    pub fn parse_set(text: &str) -> Result<Vec<Self>, TagError> {
        let error = || TagError::Form { text: text.to_owned() };
        let parts: Vec<&str> = text.split('-').collect();
        let [pythons, abis, platforms] = parts.as_slice() else { return Err(error()) };
        let [pythons, abis, platforms] = [pythons, abis, platforms].map(|part| parse_tag_set(part));
        let (pythons, abis, platforms) =
            (pythons.ok_or_else(error)?, abis.ok_or_else(error)?, platforms.ok_or_else(error)?);
        let count = pythons.len().saturating_mul(abis.len()).saturating_mul(platforms.len());
        if count > TAGS_MAX {
            return Err(TagError::TooMany { count });
        }
        let platforms: Vec<PlatformTag> = platforms.iter().map(|text| PlatformTag::parse(text)).collect();
        Ok(product(&pythons, &abis, &platforms))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.python, self.abi, self.platform)
    }
}

/// The product of three tag sets, the platform varying fastest.
pub(crate) fn product(pythons: &[String], abis: &[String], platforms: &[PlatformTag]) -> Vec<Tag> {
    let mut tags = Vec::new();
    for python in pythons {
        for abi in abis {
            for platform in platforms {
                tags.push(Tag { python: python.clone(), abi: abi.clone(), platform: platform.clone() });
            }
        }
    }
    tags
}

/// Splits a compressed tag set at `.`; `None` if a part is empty or has characters that a tag cannot have.
pub(crate) fn parse_tag_set(text: &str) -> Option<Vec<String>> {
    let valid = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    text.split('.').map(|part| valid(part).then(|| part.to_owned())).collect()
}

/// How a manylinux tag was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ManylinuxSpelling {
    /// `manylinux_2_17` (PEP 600).
    Perennial,
    /// `manylinux1` (PEP 513), `manylinux2010` (PEP 571) or `manylinux2014` (PEP 599), which PEP 600 defines
    /// as aliases of `manylinux_2_5`, `manylinux_2_12` and `manylinux_2_17`.
    Legacy,
}

/// The legacy names and the glibc version each stands for (PEP 600, "Legacy manylinux tags").
const LEGACY_MANYLINUX: [(&str, u16, u16); 3] =
    [("manylinux1", 2, 5), ("manylinux2010", 2, 12), ("manylinux2014", 2, 17)];

/// A platform tag, taken apart. What cannot be taken apart without loss is [`PlatformTag::Other`], so that
/// `Display` always gives back the text that was parsed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlatformTag {
    /// `any`.
    Any,
    /// `linux_x86_64`: a Linux, unsaid which.
    Linux {
        /// Architecture, for instance `x86_64`.
        arch: String,
    },
    /// `manylinux_2_28_x86_64`: any Linux with at least that glibc.
    Manylinux {
        /// glibc major version.
        major: u16,
        /// glibc minor version.
        minor: u16,
        /// Architecture.
        arch: String,
        /// Which of its names was used.
        spelling: ManylinuxSpelling,
    },
    /// `musllinux_1_2_x86_64`: any Linux with at least that musl.
    Musllinux {
        /// musl major version.
        major: u16,
        /// musl minor version.
        minor: u16,
        /// Architecture.
        arch: String,
    },
    /// `android_21_arm64_v8a`.
    Android {
        /// API level.
        api: u16,
        /// Android ABI, with `_` for `-`.
        arch: String,
    },
    /// `macosx_11_0_arm64`.
    MacOs {
        /// Oldest macOS, major version.
        major: u16,
        /// Oldest macOS, minor version.
        minor: u16,
        /// Architecture, for instance `universal2`.
        arch: String,
    },
    /// `win32`, `win_amd64`.
    Windows {
        /// `32` for `win32`, else what follows `win_`.
        arch: String,
    },
    /// Anything else.
    Other(String),
}

impl PlatformTag {
    /// Takes a platform tag apart.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::parse_known(text).unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    fn parse_known(text: &str) -> Option<Self> {
        if text == "any" {
            return Some(Self::Any);
        }
        if text == "win32" {
            return Some(Self::Windows { arch: "32".to_owned() });
        }
        let (family, rest) = text.split_once('_')?;
        if rest.is_empty() {
            return None;
        }
        if let Some((_, major, minor)) = LEGACY_MANYLINUX.iter().find(|(name, ..)| *name == family) {
            return Some(Self::Manylinux {
                major: *major,
                minor: *minor,
                arch: rest.to_owned(),
                spelling: ManylinuxSpelling::Legacy,
            });
        }
        match family {
            "linux" => Some(Self::Linux { arch: rest.to_owned() }),
            "win" => Some(Self::Windows { arch: rest.to_owned() }),
            "manylinux" => {
                let (major, minor, arch) = two_numbers(rest)?;
                Some(Self::Manylinux { major, minor, arch, spelling: ManylinuxSpelling::Perennial })
            }
            "musllinux" => {
                let (major, minor, arch) = two_numbers(rest)?;
                Some(Self::Musllinux { major, minor, arch })
            }
            "macosx" => {
                let (major, minor, arch) = two_numbers(rest)?;
                Some(Self::MacOs { major, minor, arch })
            }
            "android" => {
                let (api, arch) = number(rest)?;
                Some(Self::Android { api, arch: arch.to_owned() })
            }
            _ => None,
        }
    }

    /// The architecture, where the tag names one.
    #[must_use]
    pub fn arch(&self) -> Option<&str> {
        match self {
            Self::Linux { arch }
            | Self::Manylinux { arch, .. }
            | Self::Musllinux { arch, .. }
            | Self::Android { arch, .. }
            | Self::MacOs { arch, .. }
            | Self::Windows { arch } => Some(arch),
            Self::Any | Self::Other(_) => None,
        }
    }

    /// Whether wheels with this tag are for Linux: `linux_*`, `manylinux*`, `musllinux*`.
    #[must_use]
    pub fn is_linux(&self) -> bool {
        matches!(self, Self::Linux { .. } | Self::Manylinux { .. } | Self::Musllinux { .. })
    }

    /// The same tag in its PEP 600 form: `manylinux2014_x86_64` becomes `manylinux_2_17_x86_64`.
    #[must_use]
    pub fn perennial(&self) -> Self {
        let mut tag = self.clone();
        if let Self::Manylinux { spelling, .. } = &mut tag {
            *spelling = ManylinuxSpelling::Perennial;
        }
        tag
    }

    /// The other name of the same tag (`manylinux2014_x86_64` for `manylinux_2_17_x86_64` and back), if
    /// PEP 600 gives it one.
    #[must_use]
    pub fn alias(&self) -> Option<Self> {
        let Self::Manylinux { major, minor, arch, spelling } = self else { return None };
        LEGACY_MANYLINUX.iter().find(|(_, x, y)| (x, y) == (major, minor))?;
        let spelling = match spelling {
            ManylinuxSpelling::Legacy => ManylinuxSpelling::Perennial,
            ManylinuxSpelling::Perennial => ManylinuxSpelling::Legacy,
        };
        Some(Self::Manylinux { major: *major, minor: *minor, arch: arch.clone(), spelling })
    }

    /// Orders two tags of one family and architecture by the age of what they ask for: the less, the older
    /// the systems that accept it. `linux_*` asks for nothing and tells nothing, so it compares with itself
    /// only. `None` for tags of different families or architectures.
    #[must_use]
    pub fn compare_age(&self, other: &Self) -> Option<Ordering> {
        if self.arch() != other.arch() {
            return None;
        }
        match (self, other) {
            (Self::Manylinux { major: a, minor: b, .. }, Self::Manylinux { major: c, minor: d, .. })
            | (Self::Musllinux { major: a, minor: b, .. }, Self::Musllinux { major: c, minor: d, .. })
            | (Self::MacOs { major: a, minor: b, .. }, Self::MacOs { major: c, minor: d, .. }) => {
                Some((a, b).cmp(&(c, d)))
            }
            (Self::Android { api: a, .. }, Self::Android { api: b, .. }) => Some(a.cmp(b)),
            _ => (self == other).then_some(Ordering::Equal),
        }
    }
}

/// A decimal number without sign or leading zeros and the text after the `_` that follows it.
fn number(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_once('_')?;
    let canonical = digits == "0" || !digits.starts_with('0');
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !canonical || !all_digits || rest.is_empty() {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

fn two_numbers(text: &str) -> Option<(u16, u16, String)> {
    let (major, rest) = number(text)?;
    let (minor, arch) = number(rest)?;
    Some((major, minor, arch.to_owned()))
}

impl FromStr for PlatformTag {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::parse(text))
    }
}

impl fmt::Display for PlatformTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Linux { arch } => write!(f, "linux_{arch}"),
            Self::Manylinux { major, minor, arch, spelling } => {
                let legacy = LEGACY_MANYLINUX.iter().find(|(_, x, y)| (x, y) == (major, minor));
                match (spelling, legacy) {
                    (ManylinuxSpelling::Legacy, Some((name, ..))) => write!(f, "{name}_{arch}"),
                    _ => write!(f, "manylinux_{major}_{minor}_{arch}"),
                }
            }
            Self::Musllinux { major, minor, arch } => write!(f, "musllinux_{major}_{minor}_{arch}"),
            Self::Android { api, arch } => write!(f, "android_{api}_{arch}"),
            Self::MacOs { major, minor, arch } => write!(f, "macosx_{major}_{minor}_{arch}"),
            Self::Windows { arch } if arch == "32" => f.write_str("win32"),
            Self::Windows { arch } => write!(f, "win_{arch}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// What a set of platform tags promises: for each libc and architecture the tag of the oldest system, since a
/// wheel must work wherever one of its tags is accepted. `linux_*` tags come along as they are; tags of other
/// systems are left out. Sorted; of equal tags the first spelling is kept.
#[must_use]
pub fn promise(platforms: &[PlatformTag]) -> Vec<PlatformTag> {
    let mut oldest: BTreeMap<(u8, &str), &PlatformTag> = BTreeMap::new();
    for tag in platforms {
        let key = match tag {
            PlatformTag::Linux { arch } => (0, arch.as_str()),
            PlatformTag::Manylinux { arch, .. } => (1, arch.as_str()),
            PlatformTag::Musllinux { arch, .. } => (2, arch.as_str()),
            _ => continue,
        };
        let known = oldest.entry(key).or_insert(tag);
        if tag.compare_age(known) == Some(Ordering::Less) {
            *known = tag;
        }
    }
    oldest.into_values().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn platforms(texts: &[&str]) -> Vec<PlatformTag> {
        texts.iter().map(|text| PlatformTag::parse(text)).collect()
    }

    #[test]
    fn platform_tags_round_trip() {
        let known = [
            "any",
            "linux_x86_64",
            "linux_armv7l",
            "manylinux1_i686",
            "manylinux2010_x86_64",
            "manylinux2014_ppc64le",
            "manylinux_2_5_x86_64",
            "manylinux_2_28_aarch64",
            "musllinux_1_2_riscv64",
            "android_21_arm64_v8a",
            "macosx_10_9_x86_64",
            "macosx_11_0_universal2",
            "win32",
            "win_amd64",
        ];
        for text in known {
            let tag = PlatformTag::parse(text);
            assert_eq!(tag.to_string(), text);
            assert!(!matches!(tag, PlatformTag::Other(_)), "{text}");
        }
        let others = [
            "manylinux_2_x86_64",
            "manylinux_2_17",
            "manylinux_2_017_x86_64",
            "manylinux_99999_1_x86_64",
            "manylinux_2_17_",
            "linux_",
            "manylinux2024_x86_64",
            "ios_13_0_arm64_iphoneos",
            "",
            "win",
            "manylinux_+2_17_x86_64",
        ];
        for text in others {
            assert_eq!(PlatformTag::parse(text), PlatformTag::Other(text.to_owned()));
        }
    }

    #[test]
    fn legacy_names_are_aliases_that_keep_their_spelling() {
        let legacy = PlatformTag::parse("manylinux2014_x86_64");
        let perennial = PlatformTag::parse("manylinux_2_17_x86_64");
        assert_ne!(legacy, perennial);
        assert_eq!(legacy.perennial(), perennial);
        assert_eq!(legacy.alias(), Some(perennial.clone()));
        assert_eq!(perennial.alias(), Some(legacy.clone()));
        assert_eq!(legacy.compare_age(&perennial), Some(Ordering::Equal));
        assert_eq!(PlatformTag::parse("manylinux_2_28_x86_64").alias(), None);
    }

    #[test]
    fn the_oldest_tag_is_the_promise() {
        let set = platforms(&["manylinux_2_28_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64"]);
        assert_eq!(promise(&set), platforms(&["manylinux2014_x86_64"]));
        // Minor versions are numbers: 2_5 is older than 2_28.
        let set = platforms(&[
            "musllinux_1_10_x86_64",
            "manylinux_2_28_x86_64",
            "musllinux_1_2_x86_64",
            "manylinux_2_5_x86_64",
            "manylinux_2_12_i686",
            "win32",
            "any",
        ]);
        assert_eq!(
            promise(&set),
            platforms(&["manylinux_2_12_i686", "manylinux_2_5_x86_64", "musllinux_1_2_x86_64"])
        );
        assert_eq!(promise(&platforms(&["linux_x86_64"])), platforms(&["linux_x86_64"]));
    }

    #[test]
    fn compressed_sets_expand_to_their_product() {
        let tags: Vec<String> = Tag::parse_set("py2.py3-none-manylinux1_x86_64.manylinux_2_5_x86_64")
            .expect("valid")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            tags,
            [
                "py2-none-manylinux1_x86_64",
                "py2-none-manylinux_2_5_x86_64",
                "py3-none-manylinux1_x86_64",
                "py3-none-manylinux_2_5_x86_64",
            ]
        );
        for bad in ["", "py3", "py3-none", "py3--any", "py3-none-any-x", "py2..py3-none-any", "py 3-none-any"]
        {
            assert!(Tag::parse_set(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn display_gives_back_what_was_parsed(
            text in "(manylinux|musllinux|linux|win|macosx|android|any|manylinux1)?[_0-9a-z]{0,20}"
        ) {
            prop_assert_eq!(PlatformTag::parse(&text).to_string(), text);
        }
    }
}
