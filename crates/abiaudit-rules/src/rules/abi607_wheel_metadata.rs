//! The dist-info directory is incomplete or contradicts the file name.
//!
//! ## What it does
//! Checks that there is one dist-info directory with WHEEL and METADATA, that these can be read and have their
//! required fields, and that they agree with the file name on name, version, build number and tags. (RECORD is
//! ABI606's.)
//!
//! ## Why is this bad?
//! Installers refuse such wheels (`invalid wheel`, `inconsistent metadata`), or choose by the file name and record
//! what WHEEL says, so that the installed distribution claims tags that it was not installed for.
//!
//! ## Example
//! A wheel that was renamed by hand from `linux_x86_64` to `manylinux_2_28_x86_64`: WHEEL still has the old tag
//! (a warning, since it says less rather than something else).
//!
//! ## How to mend it
//! Change tags with `wheel tags`, which rewrites file name, WHEEL and RECORD together.
//!
//! ## References
//! Binary distribution format; core metadata specification; spglib's and uccl's hand-made tags (uccl PR #776).

use abiaudit_wheel::distinfo::{MetadataProblem, WheelFileProblem};
use abiaudit_wheel::filename::WheelNameProblem;
use abiaudit_wheel::{DistInfoProblem, PlatformTag, Tag};

use crate::audit::Audit;
use crate::finding::{Severity, Sink};

super::rule!("ABI607", "wheel-metadata", Error, "abi607_wheel_metadata.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for problem in audit.subject.file_name.iter().flat_map(abiaudit_wheel::WheelName::problems) {
        if let Some((severity, message)) = about_name(problem) {
            sink.whole(message).severity(severity);
        }
    }
    for problem in audit.subject.dist_info.iter().flat_map(|info| &info.problems) {
        if let Some((severity, message)) = about_dist_info(problem) {
            let help = match problem {
                DistInfoProblem::TagMismatch { .. } | DistInfoProblem::BuildMismatch { .. } => {
                    "change tags with a tool that rewrites file name, WHEEL and RECORD together (wheel tags)"
                }
                _ => "build the wheel again with a current build backend",
            };
            sink.whole(message).severity(severity).help(help);
        }
    }
}

/// Names and versions that are not in normal form are left alone: only new wheels are expected to have them so.
fn about_name(problem: WheelNameProblem) -> Option<(Severity, String)> {
    match problem {
        WheelNameProblem::InvalidVersion { version } => Some((
            Severity::Warning,
            format!("the version {version} in the file name does not follow PEP 440: installers refuse it"),
        )),
        WheelNameProblem::DuplicateTag { tag } => {
            Some((Severity::Info, format!("the file name has the tag {tag} twice")))
        }
        WheelNameProblem::NameNotNormalized { .. } | WheelNameProblem::VersionNotNormalized { .. } => None,
    }
}

fn about_dist_info(problem: &DistInfoProblem) -> Option<(Severity, String)> {
    use Severity::{Error, Warning};
    Some(match problem {
        DistInfoProblem::NoDistInfo => (Error, "no .dist-info directory: not a wheel".to_owned()),
        DistInfoProblem::SeveralDistInfos { directories } => {
            (Error, format!("several .dist-info directories: {}", directories.join(", ")))
        }
        DistInfoProblem::DirectoryMismatch { directory, expected } => {
            (Error, format!("the directory {directory} does not fit the file name ({expected})"))
        }
        DistInfoProblem::MissingFile { file: "RECORD" }
        | DistInfoProblem::Unreadable { file: "RECORD", .. }
        | DistInfoProblem::TooLarge { file: "RECORD", .. }
        | DistInfoProblem::Record(_) => return None,
        DistInfoProblem::MissingFile { file } => {
            (Error, format!("{file} is missing: installers refuse the wheel"))
        }
        DistInfoProblem::Unreadable { file, error } => (Error, format!("{file} cannot be read: {error}")),
        DistInfoProblem::TooLarge { file, size, limit } => {
            (Warning, format!("{file} has {size} bytes; {limit} were read"))
        }
        DistInfoProblem::Wheel(problem) => about_wheel_file(problem),
        DistInfoProblem::Metadata(problem) => about_metadata(problem),
        DistInfoProblem::NameMismatch { metadata, file_name } => {
            (Error, format!("METADATA says the name is {metadata}, the file name says {file_name}"))
        }
        DistInfoProblem::VersionMismatch { metadata, file_name } => {
            (Error, format!("METADATA says the version is {metadata}, the file name says {file_name}"))
        }
        DistInfoProblem::BuildMismatch { wheel, file_name } => {
            let text = |build: &Option<String>| build.clone().unwrap_or_else(|| "none".to_owned());
            (
                Warning,
                format!(
                    "WHEEL says the build number is {}, the file name says {}",
                    text(wheel),
                    text(file_name)
                ),
            )
        }
        DistInfoProblem::TagMismatch { only_in_file_name, only_in_wheel } => {
            let severity = if only_renamed(only_in_file_name, only_in_wheel) { Warning } else { Error };
            (severity, tag_mismatch(only_in_file_name, only_in_wheel))
        }
    })
}

/// Renamed from `linux_*` after the build: WHEEL says less than the file name, but nothing that contradicts it.
fn only_renamed(only_in_file_name: &[Tag], only_in_wheel: &[Tag]) -> bool {
    let says_less = |tag: &Tag| {
        let named = |name: &Tag| {
            name.python == tag.python && name.abi == tag.abi && name.platform.arch() == tag.platform.arch()
        };
        matches!(tag.platform, PlatformTag::Linux { .. }) && only_in_file_name.iter().any(named)
    };
    !only_in_wheel.is_empty() && only_in_wheel.iter().all(says_less)
}

fn tag_mismatch(only_in_file_name: &[Tag], only_in_wheel: &[Tag]) -> String {
    let list = |tags: &[Tag]| tags.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match (only_in_file_name, only_in_wheel) {
        (name, []) => format!("tags that WHEEL does not have: {}", list(name)),
        ([], wheel) => format!("tags that the file name does not have: {}", list(wheel)),
        (name, wheel) => format!("the file name says {}, WHEEL says {}", list(name), list(wheel)),
    }
}

fn about_wheel_file(problem: &WheelFileProblem) -> (Severity, String) {
    use Severity::{Error, Info, Warning};
    match problem {
        WheelFileProblem::NotUtf8 => (Warning, "WHEEL is not UTF-8".to_owned()),
        WheelFileProblem::BadLine { line } => (Warning, format!("line {line} of WHEEL is no field")),
        // Installers refuse a wheel without a version of the format, and take the others as they please.
        WheelFileProblem::MissingField { field: "Wheel-Version" } => {
            (Error, "WHEEL has no Wheel-Version: installers refuse the wheel".to_owned())
        }
        WheelFileProblem::MissingField { field } => (Warning, format!("WHEEL has no {field}")),
        WheelFileProblem::DuplicateField { field, line } => {
            (Warning, format!("WHEEL has {field} again in line {line}; the first counts here"))
        }
        WheelFileProblem::BadValue { field: "Wheel-Version", value } => {
            (Error, format!("WHEEL has the Wheel-Version {value:?}: installers refuse the wheel"))
        }
        WheelFileProblem::BadValue { field, value } => (Warning, format!("WHEEL has {field}: {value:?}")),
        WheelFileProblem::DuplicateTag { tag } => (Info, format!("WHEEL has the tag {tag} twice")),
        WheelFileProblem::TooManyTags { line } => (
            Error,
            format!("the tags of WHEEL are too many to be true; from line {line} on they were not read"),
        ),
        WheelFileProblem::NewerWheelVersion { version: (major, minor) } => (
            if *major > 1 { Error } else { Warning },
            format!("WHEEL says Wheel-Version {major}.{minor}, which installers of today do not know"),
        ),
    }
}

fn about_metadata(problem: &MetadataProblem) -> (Severity, String) {
    use Severity::{Error, Warning};
    match problem {
        MetadataProblem::NotUtf8 => (Warning, "METADATA is not UTF-8".to_owned()),
        MetadataProblem::BadLine { line } => (Warning, format!("line {line} of METADATA is no field")),
        MetadataProblem::MissingField { field } => (Error, format!("METADATA has no {field}")),
        MetadataProblem::DuplicateField { field, line } => {
            (Warning, format!("METADATA has {field} again in line {line}; the first counts here"))
        }
        MetadataProblem::BadValue { field, value } => (Warning, format!("METADATA has {field}: {value:?}")),
        MetadataProblem::BadRequirement { value, error } => {
            (Warning, format!("METADATA has a requirement that cannot be read: {value:?} ({error})"))
        }
        MetadataProblem::TooManyRequirements { found, read } => {
            (Warning, format!("METADATA has {found} requirements; {read} were read"))
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::finding::Severity;
    use crate::testing::findings;

    fn wheel() -> TestWheel {
        TestWheel::new("p", "1", "cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64").file("p.py", "")
    }

    fn severity(wheel: &TestWheel) -> Severity {
        let found = findings("ABI607", wheel);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].severity
    }

    #[test]
    fn a_complete_wheel_is_silent() {
        assert!(findings("ABI607", &wheel()).is_empty());
        // A legacy name and its PEP 600 form are one tag.
        assert!(findings("ABI607", &wheel().wheel_tags(&["cp312-cp312-manylinux2014_x86_64"])).is_empty());
    }

    #[test]
    fn what_installers_refuse_is_an_error() {
        assert_eq!(severity(&wheel().without("WHEEL")), Severity::Error);
        assert_eq!(severity(&wheel().without("METADATA")), Severity::Error);
        assert_eq!(severity(&wheel().file("other-1.dist-info/RECORD", "")), Severity::Error);
        let renamed = wheel().file_name("p-2-py3-none-any.whl").wheel_tags(&["py3-none-any"]);
        // Both METADATA and the directory's name disagree.
        let found = findings("ABI607", &renamed);
        assert_eq!(found.iter().map(|f| f.severity).collect::<Vec<_>>(), [Severity::Error; 2]);
    }

    #[test]
    fn contradicting_tags_are_named() {
        let found = findings("ABI607", &wheel().wheel_tags(&["cp39-abi3-manylinux_2_5_x86_64"]));
        assert_eq!(found[0].severity, Severity::Error);
        assert!(
            found[0].message.contains("WHEEL says cp39-abi3-manylinux_2_5_x86_64"),
            "{}",
            found[0].message
        );
    }

    #[test]
    fn a_wheel_renamed_from_linux_is_a_warning() {
        let renamed = |tag| findings("ABI607", &wheel().wheel_tags(&[tag]))[0].severity;
        assert_eq!(renamed("cp312-cp312-linux_x86_64"), Severity::Warning);
        assert_eq!(renamed("cp312-cp312-linux_aarch64"), Severity::Error);
        assert_eq!(renamed("py3-none-any"), Severity::Error);
    }

    #[test]
    fn a_missing_record_is_another_rules() {
        assert!(findings("ABI607", &wheel().without("RECORD")).is_empty());
    }

    #[test]
    fn a_requirement_that_cannot_be_read_is_a_warning() {
        assert_eq!(severity(&wheel().requires("a ===")), Severity::Warning);
    }
}
