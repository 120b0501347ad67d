//! Requirements of METADATA and the environments that they ask about (PEP 508).

use std::convert::Infallible;
use std::fmt;
use std::path::Path;

use pep440_rs::VersionParseError;
use pep508_rs::{ExtraName, MarkerEnvironment, MarkerEnvironmentBuilder, Pep508Url, VersionOrUrl};

use crate::name::normalize_name;

/// Longest requirement that is parsed, in bytes; real ones are below 500.
const MAX_LENGTH: usize = 4096;
/// Deepest nesting of parentheses that is parsed: the parser recurses.
const MAX_DEPTH: usize = 32;

/// A `Requires-Dist` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// As written.
    pub raw: String,
    /// The required project, normalised after PEP 503. Known even where `parsed` is not, if the text begins
    /// with a name.
    pub name: Option<String>,
    /// The requirement taken apart; `None` if it does not follow PEP 508 or is too complex to be honest.
    pub parsed: Option<ParsedRequirement>,
}

/// A requirement after PEP 508. Its URL, if any, is only text: nothing of the host (variables, directories) is
/// looked at.
pub type ParsedRequirement = pep508_rs::Requirement<UrlText>;

/// The URL of `name @ url`, unread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UrlText(pub String);

impl fmt::Display for UrlText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pep508Url for UrlText {
    type Err = Infallible;

    fn parse_url(url: &str, _working_dir: Option<&Path>) -> Result<Self, Infallible> {
        Ok(Self(url.to_owned()))
    }
}

/// Why a requirement was not parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// It does not follow PEP 508.
    #[error("{0}")]
    Syntax(String),
    /// It is longer, deeper nested or has more alternatives than is parsed.
    #[error("too complex to be parsed")]
    TooComplex,
}

/// Work left for markers. Markers are kept as decision diagrams, whose size can double with each pair of
/// operators, so a hostile file must not have arbitrarily many.
#[derive(Debug)]
pub(super) struct MarkerBudget(u64);

impl MarkerBudget {
    pub fn new() -> Self {
        Self(1 << 18)
    }

    fn spend(&mut self, operators: usize) -> bool {
        let cost = 1u64.checked_shl(u32::try_from(operators / 2).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
        match self.0.checked_sub(cost) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

impl Requirement {
    pub(super) fn parse(raw: &str, budget: &mut MarkerBudget) -> (Self, Option<RequirementError>) {
        let result = parse_bounded(raw, budget);
        let (parsed, error) = match result {
            Ok(parsed) => (Some(parsed), None),
            Err(error) => (None, Some(error)),
        };
        let name = match &parsed {
            Some(parsed) => Some(normalize_name(parsed.name.as_ref())),
            None => leading_name(raw).map(normalize_name),
        };
        (Self { raw: raw.to_owned(), name, parsed }, error)
    }

    /// Whether the requirement applies in an environment. One that could not be parsed may apply, so it does.
    #[must_use]
    pub fn applies(&self, environment: &Environment) -> bool {
        self.parsed
            .as_ref()
            .is_none_or(|parsed| parsed.evaluate_markers(&environment.markers, &environment.extras))
    }

    /// The version specifiers as text, for instance `==12.4.127`; empty if any version will do.
    #[must_use]
    pub fn specifiers(&self) -> String {
        match self.parsed.as_ref().and_then(|parsed| parsed.version_or_url.as_ref()) {
            Some(VersionOrUrl::VersionSpecifier(specifiers)) => specifiers.to_string(),
            _ => String::new(),
        }
    }
}

fn parse_bounded(raw: &str, budget: &mut MarkerBudget) -> Result<ParsedRequirement, RequirementError> {
    let operators = raw
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| matches!(*word, "and" | "or" | "in"))
        .count();
    if raw.len() > MAX_LENGTH || nesting(raw) > MAX_DEPTH || !budget.spend(operators) {
        return Err(RequirementError::TooComplex);
    }
    // The error's own Display slices by characters where it means bytes; only its message is used.
    raw.parse().or_else(|error: pep508_rs::Pep508Error<UrlText>| {
        legacy_form(raw)
            .and_then(|rewritten| rewritten.parse().ok())
            .ok_or_else(|| RequirementError::Syntax(error.message.to_string()))
    })
}

fn nesting(text: &str) -> usize {
    let mut depth = 0usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The form of PEP 345, `name (1.0)` or `name (==1.0)`, with parentheses around what PEP 508 reads bare and a
/// bare version for `==`.
fn legacy_form(raw: &str) -> Option<String> {
    let (requirement, marker) = raw.split_once(';').unwrap_or((raw, ""));
    let (name, rest) = requirement.split_once('(')?;
    let (specifiers, after) = rest.split_once(')')?;
    if !after.trim().is_empty() {
        return None;
    }
    let specifiers: Vec<String> =
        specifiers
            .split(',')
            .map(str::trim)
            .map(|one| {
                if one.starts_with(|c: char| c.is_ascii_digit()) {
                    format!("=={one}")
                } else {
                    one.to_owned()
                }
            })
            .collect();
    let marker = if marker.is_empty() { String::new() } else { format!("; {marker}") };
    Some(format!("{} {}{marker}", name.trim(), specifiers.join(",")))
}

/// The name at the beginning of a requirement (PEP 508 `identifier`).
fn leading_name(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(text.len());
    let name = text.get(..end)?.trim_end_matches(['-', '_', '.']);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(name)
}

/// What markers ask about, for one Linux system. Nothing is taken from the host.
#[derive(Debug, Clone)]
pub struct Environment {
    markers: MarkerEnvironment,
    extras: Vec<ExtraName>,
}

impl Environment {
    /// CPython of a full version (`3.12.0`) on Linux of an architecture (`x86_64`). `platform_release` and
    /// `platform_version` are empty.
    ///
    /// # Errors
    /// If the version does not follow PEP 440.
    pub fn linux(python_full_version: &str, machine: &str) -> Result<Self, VersionParseError> {
        let python_version: Vec<&str> = python_full_version.split('.').take(2).collect();
        let markers = MarkerEnvironment::try_from(MarkerEnvironmentBuilder {
            implementation_name: "cpython",
            implementation_version: python_full_version,
            os_name: "posix",
            platform_machine: machine,
            platform_python_implementation: "CPython",
            platform_release: "",
            platform_system: "Linux",
            platform_version: "",
            python_full_version,
            python_version: &python_version.join("."),
            sys_platform: "linux",
        })?;
        Ok(Self { markers, extras: Vec::new() })
    }

    /// The same with an extra that is asked for; a name that is not valid for an extra is ignored, since no
    /// requirement can ask for it.
    #[must_use]
    pub fn with_extra(mut self, extra: &str) -> Self {
        self.extras.extend(extra.parse::<ExtraName>().ok());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(raw: &str) -> (Requirement, Option<RequirementError>) {
        Requirement::parse(raw, &mut MarkerBudget::new())
    }

    #[test]
    fn markers_decide_whether_a_requirement_applies() {
        let (requirement, error) = parse(
            "nvidia-cuda-nvrtc-cu12==12.4.127; platform_system == \"Linux\" and platform_machine == \"x86_64\"",
        );
        assert_eq!(error, None);
        assert_eq!(requirement.name.as_deref(), Some("nvidia-cuda-nvrtc-cu12"));
        assert_eq!(requirement.specifiers(), "==12.4.127");
        assert!(requirement.applies(&Environment::linux("3.12.0", "x86_64").expect("valid")));
        assert!(!requirement.applies(&Environment::linux("3.12.0", "aarch64").expect("valid")));

        let (requirement, _) = parse("pytest; extra == 'Test'");
        let plain = Environment::linux("3.12.0", "x86_64").expect("valid");
        assert!(!requirement.applies(&plain));
        assert!(requirement.applies(&plain.with_extra("test")));
    }

    #[test]
    fn old_forms_are_read() {
        for (raw, specifiers) in [
            ("numpy (>=1.7)", ">=1.7"),
            ("nvidia-cublas-cu11 (==11.10.3.66)", "==11.10.3.66"),
            ("zope.interface (3.0)", "==3.0"),
            ("six (>=1.4,<2) ; python_version < '3'", ">=1.4, <2"),
            ("enum34 (1.1.6); python_version < '3.4'", "==1.1.6"),
        ] {
            let (requirement, error) = parse(raw);
            assert_eq!(error, None, "{raw}");
            assert_eq!(requirement.specifiers(), specifiers, "{raw}");
        }
        assert_eq!(parse("zope.interface (3.0)").0.name.as_deref(), Some("zope-interface"));
    }

    #[test]
    fn what_cannot_be_parsed_keeps_its_text_and_name() {
        let (requirement, error) = parse("Foo_Bar >>> 1");
        assert!(matches!(error, Some(RequirementError::Syntax(_))));
        assert_eq!(requirement.raw, "Foo_Bar >>> 1");
        assert_eq!(requirement.name.as_deref(), Some("foo-bar"));
        assert!(requirement.applies(&Environment::linux("3.12.0", "x86_64").expect("valid")));
        assert_eq!(parse("").0.name, None);
    }

    #[test]
    fn urls_are_only_text() {
        let (requirement, error) = parse("pip @ file://${HOME}/../x.whl");
        assert_eq!(error, None);
        let parsed = requirement.parsed.expect("parsed");
        assert_eq!(
            parsed.version_or_url,
            Some(VersionOrUrl::Url(UrlText("file://${HOME}/../x.whl".to_owned())))
        );
    }

    #[test]
    fn hostile_markers_are_refused_in_bounded_time() {
        let deep = format!("a; {}os_name == 'x'{}", "(".repeat(1000), ")".repeat(1000));
        assert_eq!(parse(&deep).1, Some(RequirementError::TooComplex));
        let pairs: Vec<String> = (0..60).map(|i| format!("extra=='a{i}' and extra=='b{i}'")).collect();
        assert_eq!(parse(&format!("a; {}", pairs.join(" or "))).1, Some(RequirementError::TooComplex));
        // Moderate ones are parsed until the file's budget is used up.
        let line = format!("a; {}", pairs[..12].join(" or "));
        let mut budget = MarkerBudget::new();
        let outcomes: Vec<bool> =
            (0..200).map(|_| Requirement::parse(&line, &mut budget).1.is_none()).collect();
        assert!(outcomes[0] && !outcomes[199]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(raw in "\\PC{0,60}") {
            parse(&raw);
        }

        #[test]
        fn anything_like_a_requirement_is_read_without_panic(
            raw in "[a-zé.\\[\\]]{0,5} ?(\\(|@|==|>=|~=|;|,)?[ 0-9.*a-zü]{0,5}(\\)|;)? ?(extra|python_version|os_name)? ?(<|==|in|not in)? ?['\"]?[3.a-zö]{0,4}['\"]?( and | or |\\))?"
        ) {
            parse(&raw);
        }
    }
}
