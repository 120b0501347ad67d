//! The part of the SARIF 2.1.0 object model that we write. Section numbers are those of the OASIS standard.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::escape::visible;
use crate::model::Severity;

/// `sarifLog` (3.13).
#[derive(Serialize)]
pub(super) struct Log<'a> {
    #[serde(rename = "$schema")]
    pub(super) schema: &'static str,
    pub(super) version: &'static str,
    pub(super) runs: Vec<Run<'a>>,
}

/// `run` (3.14).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run<'a> {
    pub(super) tool: Tool<'a>,
    pub(super) invocations: Vec<Invocation>,
    pub(super) column_kind: &'static str,
    pub(super) results: Vec<ResultObject>,
}

/// `tool` (3.18).
#[derive(Serialize)]
pub(super) struct Tool<'a> {
    pub(super) driver: Driver<'a>,
}

/// `toolComponent` (3.19).
#[derive(Serialize)]
pub(super) struct Driver<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) rules: Vec<Descriptor<'a>>,
}

/// `reportingDescriptor` (3.49).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) short_description: Message,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) help: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) help_uri: Option<String>,
    pub(super) default_configuration: Configuration,
    pub(super) properties: Properties,
}

/// `reportingConfiguration` (3.50).
#[derive(Serialize)]
pub(super) struct Configuration {
    pub(super) level: Level,
}

/// `propertyBag` (3.8) with its one standard property.
#[derive(Serialize)]
pub(super) struct Properties {
    pub(super) tags: Vec<&'static str>,
}

/// `message` (3.11) and `multiformatMessageString` (3.12).
#[derive(Serialize)]
pub(super) struct Message {
    pub(super) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) markdown: Option<String>,
}

impl Message {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), markdown: None }
    }
}

/// `level` (3.27.10).
#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    pub(super) fn of(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Note,
            Severity::Warning => Self::Warning,
            Severity::Error => Self::Error,
        }
    }
}

/// `invocation` (3.20).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invocation {
    pub(super) execution_successful: bool,
    pub(super) tool_execution_notifications: Vec<Notification>,
}

/// `notification` (3.58).
#[derive(Serialize)]
pub(super) struct Notification {
    pub(super) level: Level,
    pub(super) descriptor: DescriptorReference,
    pub(super) message: Message,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) locations: Vec<Location>,
}

/// `reportingDescriptorReference` (3.52).
#[derive(Serialize)]
pub(super) struct DescriptorReference {
    pub(super) id: String,
}

/// `result` (3.27).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultObject {
    pub(super) rule_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule_index: Option<usize>,
    pub(super) level: Level,
    pub(super) message: Message,
    pub(super) locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) related_locations: Vec<Location>,
    pub(super) partial_fingerprints: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) suppressions: Vec<SuppressionObject>,
}

/// `suppression` (3.35).
#[derive(Serialize)]
pub(super) struct SuppressionObject {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    pub(super) justification: String,
}

/// `location` (3.28).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    pub(super) physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) logical_locations: Vec<LogicalLocation>,
}

impl Location {
    /// A wheel file, or a member of it.
    pub(super) fn of(path: &str, member: Option<&str>) -> Self {
        let logical = member.map(|member| LogicalLocation {
            name: visible(member.rsplit('/').next().unwrap_or(member)).into_owned(),
            fully_qualified_name: visible(member).into_owned(),
            kind: "module",
        });
        Self {
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation { uri: uri(path) },
                region: Region { start_line: 1 },
            },
            logical_locations: logical.into_iter().collect(),
        }
    }
}

/// `physicalLocation` (3.29).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PhysicalLocation {
    pub(super) artifact_location: ArtifactLocation,
    /// A binary file has no lines, but GitHub shows no result without a region.
    pub(super) region: Region,
}

/// `artifactLocation` (3.4).
#[derive(Serialize)]
pub(super) struct ArtifactLocation {
    pub(super) uri: String,
}

/// `region` (3.30).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Region {
    pub(super) start_line: usize,
}

/// `logicalLocation` (3.33).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogicalLocation {
    pub(super) name: String,
    pub(super) fully_qualified_name: String,
    pub(super) kind: &'static str,
}

/// `path` as a URI reference (RFC 3986): relative as it was given, or `file:` for an absolute path. Everything but
/// unreserved characters and slashes is percent-encoded, so a colon in the first segment cannot read as a scheme.
pub(super) fn uri(path: &str) -> String {
    let relative = path.strip_prefix("./").unwrap_or(path);
    let scheme = if relative.starts_with('/') { "file://" } else { "" };
    let encoded = relative.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    std::iter::once(scheme.to_owned()).chain(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_become_uri_references() {
        assert_eq!(uri("dist/a-1.0-py3-none-any.whl"), "dist/a-1.0-py3-none-any.whl");
        assert_eq!(uri("./a+cpu b%.whl"), "a%2Bcpu%20b%25.whl");
        assert_eq!(uri("c:x/é.whl"), "c%3Ax/%C3%A9.whl");
        assert_eq!(uri("/srv/a.whl"), "file:///srv/a.whl");
    }
}
