//! Custom policies: what a project promises beyond, or short of, its tags.
//!
//! Asked for in auditwheel #100, #144 and #598: a farm that has one library more, a project that wants `libexpat`
//! bundled although the policy allows it. People patch auditwheel's policy file for it; here it is configuration,
//! `[tool.abiaudit.policy]`, with a reason that the report repeats.

use serde::Deserialize;

/// A custom policy, laid over every target that it names.
///
/// ```
/// # let text = r#"
/// [[libraries]]
/// soname = "libexpat.so.*"
/// action = "bundle"
/// reason = "the system's parser is too old for our security promise"
///
/// [[ceilings]]
/// family = "GLIBC"
/// at_most = "2.26"
/// targets = ["manylinux_2_28"]
/// reason = "the cluster runs Amazon Linux 2"
/// # "#;
/// # let overlay: abiaudit_policy::Overlay = toml::from_str(text).unwrap();
/// # assert_eq!((overlay.libraries.len(), overlay.ceilings.len()), (1, 1));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overlay {
    /// Rules on libraries; the first that matches decides.
    pub libraries: Vec<LibraryRule>,
    /// Lower ceilings.
    pub ceilings: Vec<CeilingRule>,
}

/// What to do about libraries.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibraryRule {
    /// A soname, in which `*` stands for any characters and `?` for one.
    pub soname: String,
    /// What to do about it.
    pub action: Action,
    /// Tags or policies (`manylinux_2_28`, `manylinux2014_x86_64`) that it holds for; without them, for all.
    #[serde(default)]
    pub targets: Option<Vec<String>>,
    /// Why; mandatory, and repeated in the report.
    pub reason: String,
}

/// What an overlay does about a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It may come from the system.
    Allow,
    /// It may be nowhere.
    Deny,
    /// It must be inside the wheel.
    Bundle,
}

/// A lower ceiling. A higher one cannot be had: a tag's promise can be kept better, not worse.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CeilingRule {
    /// The family: `GLIBC`.
    pub family: String,
    /// The newest version, without the family's name: `2.26`. A target whose ceiling is older keeps its own.
    pub at_most: String,
    /// Tags or policies that it holds for; without them, for all.
    #[serde(default)]
    pub targets: Option<Vec<String>>,
    /// Why; mandatory, and repeated in the report.
    pub reason: String,
}

/// An overlay that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayError {
    /// A reason with nothing in it.
    #[error("the rule for {subject:?} gives no reason")]
    NoReason {
        /// The rule's soname or family.
        subject: String,
    },
    /// A rule whose soname is empty.
    #[error("a library rule names no soname")]
    NoSoname,
    /// A name that is neither a tag nor a policy.
    #[error("the rule for {subject:?} names {target:?}, which is neither a platform tag nor a policy")]
    UnknownTarget {
        /// The rule's soname or family.
        subject: String,
        /// What it names.
        target: String,
    },
    /// A family that no policy judges.
    #[error("no policy judges the family {family:?}")]
    UnknownFamily {
        /// The rule's family.
        family: String,
    },
    /// A version that is not dot-separated numbers.
    #[error("{at_most:?} is no version of {family}: expected numbers such as 2.28")]
    BadVersion {
        /// The rule's family.
        family: String,
        /// The rule's version.
        at_most: String,
    },
}
