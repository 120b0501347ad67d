//! The configuration file: `[tool.abiaudit]` in pyproject.toml, or abiaudit.toml.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use abiaudit_policy::{Overlay, Provider};
use abiaudit_rules::{Ignore, Settings, Severity, validate};
use anyhow::{Context, anyhow, bail};
use serde::Deserialize;

use crate::calendar::is_date;

/// The keys of the table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Config {
    /// Judge against this tag instead of the input's own.
    pub target: Option<String>,
    /// `error`, `warning` or `info`.
    pub fail_on: Option<String>,
    /// Rules to run.
    pub select: Vec<String>,
    /// Rules not to run.
    pub ignore: Vec<String>,
    /// Severity by rule: `error`, `warning`, `info` or `off`.
    pub severity: BTreeMap<String, String>,
    /// Findings that do not count.
    pub ignores: Vec<IgnoreEntry>,
    /// Distributions that are installed beside the wheel whatever its metadata says.
    pub assume_installed: Vec<String>,
    /// Largest wheel, such as `100MB`.
    pub size_budget: Option<String>,
    /// Further providers, as in policies/providers.toml.
    pub providers: Vec<Provider>,
    /// Custom policy, laid over the built-in ones.
    pub policy: Overlay,
    /// The file that it was read from, for messages.
    #[serde(skip)]
    file: PathBuf,
}

/// What is read of a pyproject.toml.
#[derive(Deserialize)]
struct PyProject {
    tool: Option<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    abiaudit: Option<Config>,
}

/// One ignore; the reason is mandatory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IgnoreEntry {
    /// Rule id, name or prefix.
    pub rule: String,
    /// Pattern for the member.
    pub member: Option<String>,
    /// Pattern for symbols, libraries and versions of the evidence.
    pub evidence: Option<String>,
    /// Why.
    pub reason: String,
    /// Last day on which it holds, `YYYY-MM-DD`.
    pub expires: Option<String>,
}

/// What the command line says about the configuration file.
pub struct Source<'a> {
    /// `--config`
    pub file: Option<&'a Path>,
    /// `--no-config`
    pub none: bool,
}

/// Reads the file that applies: the one asked for, else the nearest abiaudit.toml or pyproject.toml with a
/// `[tool.abiaudit]` table, from the current directory upwards.
pub fn load(source: &Source<'_>) -> anyhow::Result<Config> {
    if source.none {
        return Ok(Config::default());
    }
    if let Some(path) = source.file {
        let config = read(path)?;
        return config.ok_or_else(|| anyhow!("{} has no [tool.abiaudit] table", path.display()));
    }
    let start = std::env::current_dir().context("cannot tell the current directory")?;
    for directory in start.ancestors() {
        for name in ["abiaudit.toml", "pyproject.toml"] {
            let path = directory.join(name);
            if path.is_file()
                && let Some(config) = read(&path)?
            {
                return Ok(config);
            }
        }
    }
    Ok(Config::default())
}

/// The configuration in a file, `None` for a pyproject.toml that has no table of ours.
fn read(path: &Path) -> anyhow::Result<Option<Config>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> anyhow::Result<Option<Config>> {
    let config = if path.file_name().is_some_and(|name| name == "pyproject.toml") {
        toml::from_str::<PyProject>(text).map(|project| project.tool.and_then(|tool| tool.abiaudit))
    } else {
        toml::from_str::<Config>(text).map(Some)
    };
    let config = config.map_err(|error| anyhow!("{}{}", path.display(), located(text, &error)))?;
    Ok(config.map(|config| Config { file: path.to_owned(), ..config }))
}

/// `:3: unknown key ..., in "fail_on = 3"`: the line, what is wrong with it, and the line itself.
fn located(text: &str, error: &toml::de::Error) -> String {
    let message = explain(error.message());
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return format!(": {message}");
    };
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default().trim();
    format!(":{}: {message}, in {line:?}", number + 1)
}

/// serde lists all keys that it expected; the nearest one is what the user meant.
fn explain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((found, expected)) = quoted.split_first().filter(|_| message.starts_with("unknown field"))
    else {
        return message.to_owned();
    };
    let nearest = expected.iter().min_by_key(|key| abiaudit_rules::distance(found, key));
    match nearest {
        Some(key) => format!("unknown key {found:?}; the nearest is {key:?}"),
        None => format!("unknown key {found:?}"),
    }
}

impl Config {
    /// The settings of an audit. Expiries are compared with `today`, which is asked for only if there are any.
    ///
    /// # Errors
    /// A value that means nothing, with the file and the key.
    pub fn settings(&self, today: impl FnOnce() -> Option<String>) -> anyhow::Result<Settings> {
        self.check_ignores()?;
        let at = |key: &str| self.at(key);
        let mut settings = Settings::default();
        settings.policies = settings.policies.with_overlay(&self.policy).with_context(|| at("policy"))?;
        settings.providers = settings.providers.with(&self.providers);
        if let Some(target) = &self.target {
            settings.policies.target(target).with_context(|| at("target"))?;
        }
        settings.target.clone_from(&self.target);
        settings.assume_installed =
            self.assume_installed.iter().map(|n| abiaudit_policy::normalize_name(n)).collect();
        settings.size_budget =
            self.size_budget.as_deref().map(parse_size).transpose().with_context(|| at("size-budget"))?;
        for (key, selectors) in [("select", &self.select), ("ignore", &self.ignore)] {
            selectors.iter().try_for_each(|selector| validate(selector)).with_context(|| at(key))?;
        }
        settings.select.clone_from(&self.select);
        settings.ignore.clone_from(&self.ignore);
        if let Some(severity) = &self.fail_on {
            parse_severity(severity).with_context(|| at("fail-on"))?;
        }
        for (rule, severity) in &self.severity {
            let at = || at(&format!("severity.{rule}"));
            validate(rule).with_context(at)?;
            let severity = match severity.as_str() {
                "off" => None,
                other => Some(parse_severity(other).with_context(at)?),
            };
            settings.severities.insert(rule.clone(), severity);
        }
        settings.suppressions = self.ignores.iter().map(Ignore::from).collect();
        if settings.suppressions.iter().any(|s| s.expires.is_some()) {
            settings.today = today();
        }
        Ok(settings)
    }

    fn check_ignores(&self) -> anyhow::Result<()> {
        for (number, entry) in self.ignores.iter().enumerate() {
            let at = |key: &str| self.at(&format!("ignores[{number}].{key}"));
            validate(&entry.rule).with_context(|| at("rule"))?;
            if entry.reason.trim().is_empty() {
                bail!("{}: the ignore of {} gives no reason", at("reason"), entry.rule);
            }
            if let Some(date) = entry.expires.as_deref().filter(|date| !is_date(date)) {
                bail!(
                    "{}: {date:?}, when the ignore of {} expires, is no day; expected YYYY-MM-DD",
                    at("expires"),
                    entry.rule
                );
            }
        }
        Ok(())
    }

    /// A key and the file that has it.
    fn at(&self, key: &str) -> String {
        format!("{}: {key}", self.file.display())
    }
}

impl From<&IgnoreEntry> for Ignore {
    fn from(entry: &IgnoreEntry) -> Self {
        Self {
            rule: entry.rule.clone(),
            member: entry.member.clone(),
            evidence: entry.evidence.clone(),
            reason: entry.reason.clone(),
            expires: entry.expires.clone(),
        }
    }
}

/// All selectors name rules, and the target exists.
pub fn check(settings: &Settings) -> anyhow::Result<()> {
    let selectors = settings.select.iter().chain(&settings.ignore).chain(settings.severities.keys());
    for selector in selectors.chain(settings.suppressions.iter().map(|s| &s.rule)) {
        validate(selector)?;
    }
    if let Some(target) = &settings.target {
        settings.policies.target(target)?;
    }
    Ok(())
}

/// `error`, `warning`, `info`.
pub fn parse_severity(text: &str) -> anyhow::Result<Severity> {
    match text {
        "error" => Ok(Severity::Error),
        "warning" => Ok(Severity::Warning),
        "info" => Ok(Severity::Info),
        other => bail!("unknown severity {other:?}; expected error, warning, info or (for a rule) off"),
    }
}

/// A size in bytes: `100MB` (decimal), `64MiB` (binary), or plain bytes.
pub fn parse_size(text: &str) -> anyhow::Result<u64> {
    const UNITS: [(&str, u64); 9] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("KB", 1_000),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
        ("", 1),
    ];
    let parsed = UNITS.iter().find_map(|(unit, factor)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "checked: finite and not negative"
        )]
        (number.is_finite() && number >= 0.0).then_some((number * *factor as f64) as u64)
    });
    parsed.ok_or_else(|| anyhow!("{text:?} is not a size; expected something like 100MB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> anyhow::Result<Config> {
        parse(text, Path::new("abiaudit.toml")).map(|config| config.expect("a configuration"))
    }

    /// What is wrong with it, read or used.
    fn error(text: &str) -> String {
        let error = match config(text) {
            Ok(config) => config.settings(|| None).expect_err("must fail"),
            Err(error) => error,
        };
        format!("{error:#}")
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        assert_eq!(
            error("\nfail_on = 'error'"),
            "abiaudit.toml:2: unknown key \"fail_on\"; the nearest is \"fail-on\", in \"fail_on = 'error'\""
        );
        let nested = error("[[ignores]]\nrule='ABI1'\nreson='x'\nreason='y'");
        assert!(
            nested.starts_with("abiaudit.toml:3: ") && nested.contains("the nearest is \"reason\""),
            "{nested}"
        );
    }

    /// The file, and the key or the line that has it.
    #[test]
    fn every_error_says_where_it_is() {
        let wrong = [
            (
                "select = 3",
                "abiaudit.toml:1: invalid type: integer `3`, expected a sequence, in \"select = 3\"",
            ),
            ("select = ['ABI9']", "abiaudit.toml: select: unknown rule \"ABI9\""),
            ("ignore = ['ABI9']", "abiaudit.toml: ignore: unknown rule \"ABI9\""),
            ("target = 'manylinux_9'", "abiaudit.toml: target: "),
            ("fail-on = 'fatal'", "abiaudit.toml: fail-on: unknown severity \"fatal\""),
            ("size-budget = 'big'", "abiaudit.toml: size-budget: \"big\" is not a size"),
            ("[severity]\nABI101 = 'loud'", "abiaudit.toml: severity.ABI101: unknown severity \"loud\""),
            ("[severity]\nABI9 = 'off'", "abiaudit.toml: severity.ABI9: unknown rule \"ABI9\""),
            ("[[ignores]]\nrule='ABI9'\nreason='x'", "abiaudit.toml: ignores[0].rule: unknown rule \"ABI9\""),
            ("[[ignores]]\nrule='ABI101'", "abiaudit.toml:1: missing field `reason`"),
            ("[[ignores]]\nrule='ABI101'\nreason=' '", "abiaudit.toml: ignores[0].reason: "),
            ("[[policy.ceilings]]\nfamily='X'\nat_most='y'\nreason='z'", "abiaudit.toml: policy: "),
            ("a = ", "abiaudit.toml:1: "),
        ];
        for (text, expected) in wrong {
            assert!(error(text).starts_with(expected), "{text}: {}", error(text));
        }
        let project =
            parse("[tool.abiaudit]\nselect = 3", Path::new("pyproject.toml")).expect_err("must fail");
        assert!(project.to_string().starts_with("pyproject.toml:2: "), "{project}");
        assert!(parse("[tool.other]\nx = 1", Path::new("pyproject.toml")).expect("toml").is_none());
    }

    #[test]
    fn ignores_expire_on_days_that_there_are() {
        let expiring = |date: &str| format!("[[ignores]]\nrule='ABI101'\nreason='x'\nexpires='{date}'");
        for date in ["soon", "2027-02-31", "2027-13-01"] {
            assert!(error(&expiring(date)).starts_with("abiaudit.toml: ignores[0].expires: "), "{date}");
        }
        let settings = config(&expiring("2027-01-31")).expect("toml").settings(|| None).expect("settings");
        assert_eq!(settings.suppressions[0].expires.as_deref(), Some("2027-01-31"));
    }

    /// The page shows every key, and every key that it shows is real.
    #[test]
    fn the_page_on_configuration_is_true() {
        let page = include_str!("../../../docs/configuration.md");
        let text =
            page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let document: toml::Table = text.parse().expect("toml");
        let config = parse(text, Path::new("pyproject.toml")).expect("a valid configuration");
        let config = config.expect("a table");
        check(&config.settings(|| None).expect("settings")).expect("known rules and targets");
        for key in [
            "target",
            "fail-on",
            "select",
            "ignore",
            "severity",
            "ignores",
            "assume-installed",
            "size-budget",
            "providers",
            "policy",
        ] {
            assert!(document["tool"]["abiaudit"].get(key).is_some(), "{key} is not on the page");
        }
    }

    #[test]
    fn sizes_are_decimal_or_binary() {
        assert_eq!(parse_size("100MB").expect("size"), 100_000_000);
        assert_eq!(parse_size("1.5 GiB").expect("size"), 1_610_612_736);
        assert_eq!(parse_size("7").expect("size"), 7);
        assert!(parse_size("-1MB").is_err());
        assert!(parse_size("big").is_err());
    }
}
