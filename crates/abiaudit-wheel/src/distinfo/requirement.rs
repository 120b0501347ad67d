//! Requirements of METADATA and the environments that they ask about (PEP 508).

use std::convert::Infallible;
use std::fmt;
use std::path::Path;

use pep508_rs::{Pep508Url, VersionOrUrl};

use super::marker::Marker;
use crate::name::normalize_name;

/// Longest requirement that is parsed, in bytes; real ones are below 500.
const MAX_LENGTH: usize = 4096;
/// A `Requires-Dist` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// As written.
    pub raw: String,
    /// The required project, normalised after PEP 503. Known even where `parsed` is not, if the text begins
    /// with a name.
    pub name: Option<String>,
    /// The requirement taken apart; `None` if it does not follow PEP 508.
    pub parsed: Option<ParsedRequirement>,
    /// Its marker; `None` if it has none or could not be read.
    pub marker: Option<Marker>,
}

/// A requirement after PEP 508, without its marker. Its URL, if any, is only text: nothing of the host (variables, directories) is
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
    /// It is longer than any honest one.
    #[error("too long to be parsed")]
    TooLong,
}

impl Requirement {
    /// Reads a requirement; if it cannot be taken apart, the error says why.
    #[must_use]
    pub fn parse(raw: &str) -> (Self, Option<RequirementError>) {
        let (parsed, marker, error) = match parse_bounded(raw) {
            Ok((parsed, marker)) => (Some(parsed), marker, None),
            Err(error) => (None, None, Some(error)),
        };
        let name = match &parsed {
            Some(parsed) => Some(normalize_name(parsed.name.as_ref())),
            None => leading_name(raw).map(normalize_name),
        };
        (Self { raw: raw.to_owned(), name, parsed, marker }, error)
    }

    /// Whether the requirement applies in an environment. One that could not be parsed may apply, so it does.
    #[must_use]
    pub fn applies(&self, environment: &Environment) -> bool {
        self.marker.as_ref().is_none_or(|marker| environment.satisfies(marker))
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

fn parse_bounded(raw: &str) -> Result<(ParsedRequirement, Option<Marker>), RequirementError> {
    if raw.len() > MAX_LENGTH {
        return Err(RequirementError::TooLong);
    }
    check_before_parsing(raw)?;
    let (requirement, marker) = split_marker(raw);
    let marker = marker
        .map(|text| {
            let error = || RequirementError::Syntax(format!("not an environment marker: {}", text.trim()));
            Marker::parse(text).ok_or_else(error)
        })
        .transpose()?;
    // The error's own Display slices by characters where it means bytes; only its message is used.
    let parsed = requirement.parse().or_else(|error: pep508_rs::Pep508Error<UrlText>| {
        legacy_form(requirement)
            .filter(|rewritten| check_before_parsing(rewritten).is_ok())
            .and_then(|rewritten| rewritten.parse().ok())
            .ok_or_else(|| RequirementError::Syntax(error.message.to_string()))
    })?;
    Ok((parsed, marker))
}

/// Splits off the marker. In a URL a `;` counts only after white space.
fn split_marker(raw: &str) -> (&str, Option<&str>) {
    let before = raw.split(';').next().unwrap_or(raw);
    let at = if before.contains('@') {
        raw.char_indices()
            .find(|(at, c)| {
                *c == ';' && raw.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace))
            })
            .map(|(at, _)| at)
    } else {
        raw.find(';')
    };
    match at.and_then(|at| raw.split_at_checked(at)) {
        Some((requirement, marker)) => (requirement.trim_end(), marker.get(1..)),
        None => (raw, None),
    }
}

/// Refuses what no requirement may contain and what pep508_rs 0.9.2 answers with a panic: a name or an extra
/// that does not end in a letter or digit; and text other than ASCII, in which its byte offsets go astray.
fn check_before_parsing(raw: &str) -> Result<(), RequirementError> {
    let refuse = |reason: &str| Err(RequirementError::Syntax(reason.to_owned()));
    if !raw.is_ascii() {
        return refuse("a requirement is ASCII text");
    }
    let is_identifier_byte = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = raw.trim_start();
    let after_name = text.trim_start_matches(is_identifier_byte);
    let name = text.strip_suffix(after_name).unwrap_or_default();
    let extras = after_name.trim_start().strip_prefix('[').unwrap_or_default();
    let extras = extras.split(']').next().unwrap_or_default();
    let ends_badly = |word: &str| word.ends_with(['-', '_', '.']);
    if ends_badly(name) || extras.split(|c| !is_identifier_byte(c)).any(ends_badly) {
        return refuse("a name or an extra ends in a letter or a digit");
    }
    Ok(())
}

/// The form of PEP 345, `name (1.0)` or `name (==1.0)`, with parentheses around what PEP 508 reads bare and a
/// bare version for `==`.
fn legacy_form(requirement: &str) -> Option<String> {
    let (name, rest) = requirement.split_once('(')?;
    let (specifiers, after) = rest.split_once(')')?;
    if !after.trim().is_empty() {
        return None;
    }
    let bare = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let specifiers: Vec<String> = specifiers
        .split(',')
        .map(str::trim)
        .map(|one| if bare(one) { format!("=={one}") } else { one.to_owned() })
        .collect();
    Some(format!("{} {}", name.trim(), specifiers.join(",")))
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    python_full_version: String,
    python_version: String,
    machine: String,
    extras: Vec<String>,
}

impl Environment {
    /// CPython of a full version (`3.12.0`) on Linux of an architecture (`x86_64`). `platform_release` and
    /// `platform_version` are empty.
    #[must_use]
    pub fn linux(python_full_version: &str, machine: &str) -> Self {
        let python_version: Vec<&str> = python_full_version.split('.').take(2).collect();
        Self {
            python_full_version: python_full_version.to_owned(),
            python_version: python_version.join("."),
            machine: machine.to_owned(),
            extras: Vec::new(),
        }
    }

    /// The same with an extra that is asked for.
    #[must_use]
    pub fn with_extra(mut self, extra: &str) -> Self {
        self.extras.push(extra.to_owned());
        self
    }

    /// Whether a marker holds: without an extra, or with one of those asked for.
    #[must_use]
    pub fn satisfies(&self, marker: &Marker) -> bool {
        let extras = std::iter::once("").chain(self.extras.iter().map(String::as_str));
        extras.into_iter().any(|extra| marker.holds(&|variable| self.value(variable, extra)))
    }

    fn value<'a>(&'a self, variable: &str, extra: &'a str) -> &'a str {
        match variable {
            "python_full_version" | "implementation_version" => &self.python_full_version,
            "python_version" => &self.python_version,
            "os_name" => "posix",
            "sys_platform" => "linux",
            "platform_machine" => &self.machine,
            "platform_python_implementation" => "CPython",
            "platform_system" => "Linux",
            "implementation_name" => "cpython",
            "extra" => extra,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(raw: &str) -> (Requirement, Option<RequirementError>) {
        Requirement::parse(raw)
    }

    #[test]
    fn markers_decide_whether_a_requirement_applies() {
        let (requirement, error) = parse(
            "nvidia-cuda-nvrtc-cu12==12.4.127; platform_system == \"Linux\" and platform_machine == \"x86_64\"",
        );
        assert_eq!(error, None);
        assert_eq!(requirement.name.as_deref(), Some("nvidia-cuda-nvrtc-cu12"));
        assert_eq!(requirement.specifiers(), "==12.4.127");
        assert!(requirement.applies(&Environment::linux("3.12.0", "x86_64")));
        assert!(!requirement.applies(&Environment::linux("3.12.0", "aarch64")));

        let (requirement, _) = parse("pytest; extra == 'Test'");
        let plain = Environment::linux("3.12.0", "x86_64");
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
        assert!(requirement.applies(&Environment::linux("3.12.0", "x86_64")));
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
    fn hostile_markers_take_no_time() {
        let deep = format!("a; {}os_name == 'x'{}", "(".repeat(1000), ")".repeat(1000));
        assert!(matches!(parse(&deep).1, Some(RequirementError::Syntax(_))));
        let pairs: Vec<String> = (0..100).map(|i| format!("extra=='a{i}' and extra=='b{i}'")).collect();
        let (requirement, error) = parse(&format!("a; {}", pairs.join(" or ")));
        assert_eq!(error, None);
        assert!(
            !requirement.applies(&Environment::linux("3.12.0", "x86_64").with_extra("a1").with_extra("b1"))
        );
        assert_eq!(parse(&"a".repeat(5000)).1, Some(RequirementError::TooLong));
        for text in ["a.(", "a[b.]", "a[b. ]", "\u{e9}", "a[\u{e9}"] {
            assert!(matches!(parse(text).1, Some(RequirementError::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn a_semicolon_in_a_url_begins_no_marker() {
        let (requirement, error) = parse("x @ https://h/a;b ; os_name == 'nt'");
        assert_eq!(error, None);
        assert!(!requirement.applies(&Environment::linux("3.12.0", "x86_64")));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(raw in "\\PC{0,60}") {
            parse(&raw);
        }

        #[test]
        fn anything_like_a_requirement_is_read_without_panic(
            name in "[ab.]{1,3}",
            extras in "(\\[[a., ü]{0,4}\\]?)?",
            version in "( ?\\(?(==|>=|~=|!=|<|>|===|@)? ?[0-9.*a+é]{0,5}\\)?,?){0,2}",
            marker in "(;? ?[(]?(extra|python_version|python_full_version|os_name|implementation_version|x)? ?(<|==|~=|>=|!=|===|in|not in)? ?['\"]?[3.0a+*ö]{0,4}['\"]?[)]?( and | or )?){0,3}",
        ) {
            let (requirement, _) = parse(&format!("{name}{extras}{version}{marker}"));
            let _ = requirement.applies(&Environment::linux("3.12.0", "x86_64"));
            let _ = requirement.specifiers();
        }
    }
}
