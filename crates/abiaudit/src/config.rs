//! The configuration file: `[tool.abiaudit]` in pyproject.toml, or abiaudit.toml.

use std::collections::BTreeMap;
use std::path::Path;

use abiaudit_policy::{Overlay, Provider};
use abiaudit_rules::{Ignore, Settings, Severity, validate};
use anyhow::{Context, anyhow, bail};
use serde::Deserialize;

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
        let table = read_table(path)?;
        let table = table.ok_or_else(|| anyhow!("{} has no [tool.abiaudit] table", path.display()))?;
        return parse(table, path);
    }
    let start = std::env::current_dir().context("cannot tell the current directory")?;
    for directory in start.ancestors() {
        for name in ["abiaudit.toml", "pyproject.toml"] {
            let path = directory.join(name);
            if path.is_file()
                && let Some(table) = read_table(&path)?
            {
                return parse(table, &path);
            }
        }
    }
    Ok(Config::default())
}

/// The table, `None` for a pyproject.toml that has none of ours.
fn read_table(path: &Path) -> anyhow::Result<Option<toml::Table>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let document: toml::Table =
        text.parse().map_err(|e: toml::de::Error| anyhow!("{}: {}", path.display(), e.message()))?;
    if path.file_name().is_some_and(|name| name == "pyproject.toml") {
        let tool = document.get("tool").and_then(toml::Value::as_table);
        return Ok(tool.and_then(|t| t.get("abiaudit")).and_then(toml::Value::as_table).cloned());
    }
    Ok(Some(document))
}

fn parse(table: toml::Table, path: &Path) -> anyhow::Result<Config> {
    let config: Config = table
        .try_into()
        .map_err(|e: toml::de::Error| anyhow!("{}: {}", path.display(), explain(e.message())))?;
    for entry in &config.ignores {
        if entry.reason.trim().is_empty() {
            bail!("{}: the ignore of {} gives no reason", path.display(), entry.rule);
        }
        if let Some(date) = entry.expires.as_deref().filter(|d| !is_date(d)) {
            bail!("{}: the ignore of {} expires {date:?}; expected YYYY-MM-DD", path.display(), entry.rule);
        }
    }
    Ok(config)
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

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |text: &str, digits: usize, range: std::ops::RangeInclusive<u32>| {
        text.len() == digits && text.parse().is_ok_and(|n: u32| range.contains(&n))
    };
    matches!(parts.as_slice(), [y, m, d] if number(y, 4, 1970..=9999) && number(m, 2, 1..=12) && number(d, 2, 1..=31))
}

impl Config {
    /// The settings of an audit. Expiries are compared with `today`, which is asked for only if there are any.
    pub fn settings(&self, today: impl FnOnce() -> Option<String>) -> anyhow::Result<Settings> {
        let mut settings = Settings::default();
        settings.policies = settings.policies.with_overlay(&self.policy).context("in the custom policy")?;
        settings.providers = settings.providers.with(&self.providers);
        settings.target.clone_from(&self.target);
        settings.assume_installed =
            self.assume_installed.iter().map(|n| abiaudit_policy::normalize_name(n)).collect();
        settings.size_budget = self.size_budget.as_deref().map(parse_size).transpose()?;
        settings.select.clone_from(&self.select);
        settings.ignore.clone_from(&self.ignore);
        for (rule, severity) in &self.severity {
            let severity = match severity.as_str() {
                "off" => None,
                other => Some(parse_severity(other)?),
            };
            settings.severities.insert(rule.clone(), severity);
        }
        settings.suppressions = self.ignores.iter().map(Ignore::from).collect();
        if settings.suppressions.iter().any(|s| s.expires.is_some()) {
            settings.today = today();
        }
        Ok(settings)
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
        parse(text.parse().expect("toml"), Path::new("abiaudit.toml"))
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let error = config("fail_on = 'error'").expect_err("must fail").to_string();
        assert_eq!(error, "abiaudit.toml: unknown key \"fail_on\"; the nearest is \"fail-on\"");
        let error =
            config("[[ignores]]\nrule='ABI1'\nreson='x'\nreason='y'").expect_err("must fail").to_string();
        assert!(error.contains("the nearest is \"reason\""), "{error}");
    }

    #[test]
    fn ignores_need_reasons_and_real_dates() {
        assert!(config("[[ignores]]\nrule='ABI101'").is_err());
        assert!(config("[[ignores]]\nrule='ABI101'\nreason=' '").is_err());
        assert!(config("[[ignores]]\nrule='ABI101'\nreason='x'\nexpires='soon'").is_err());
        assert!(config("[[ignores]]\nrule='ABI101'\nreason='x'\nexpires='2027-01-31'").is_ok());
    }

    /// The page shows every key, and every key that it shows is real.
    #[test]
    fn the_page_on_configuration_is_true() {
        let page = include_str!("../../../docs/configuration.md");
        let text =
            page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let document: toml::Table = text.parse().expect("toml");
        let table = document["tool"]["abiaudit"].as_table().expect("a table").clone();
        let config = parse(table, Path::new("pyproject.toml")).expect("a valid configuration");
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
