//! What a user can set: the target to judge against, custom policies, providers, severities, ignores.

use std::collections::BTreeMap;

use abiaudit_policy::{PolicySet, Providers};

use crate::finding::Severity;

/// Settings of an audit.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Policies, with the user's overlay laid over them.
    pub policies: PolicySet,
    /// Providers, the user's own first.
    pub providers: Providers,
    /// Judge against this tag instead of the input's own.
    pub target: Option<String>,
    /// Further distributions that are installed beside the wheel whatever its metadata says (normalised names).
    pub assume_installed: Vec<String>,
    /// Largest wheel in bytes; ABI615 reports a larger one.
    pub size_budget: Option<u64>,
    /// Rules to run: ids, names or prefixes such as `ABI1`. Empty: all.
    pub select: Vec<String>,
    /// Rules not to run, in the same forms.
    pub ignore: Vec<String>,
    /// Severities by rule id or name, or `None` for off.
    pub severities: BTreeMap<String, Option<Severity>>,
    /// Findings that do not count, with a reason each.
    pub suppressions: Vec<Ignore>,
    /// The date that expiries are compared with, as `YYYY-MM-DD`. Nothing here asks a clock.
    pub today: Option<String>,
}

/// One ignore of the configuration.
#[derive(Debug, Clone)]
pub struct Ignore {
    /// Rule id, name or prefix.
    pub rule: String,
    /// Pattern (`*`, `?`) that the member must match; `None` for every member and the input as a whole.
    pub member: Option<String>,
    /// Pattern that a symbol, library or version of the evidence must match for every piece of evidence.
    pub evidence: Option<String>,
    /// Why.
    pub reason: String,
    /// Until when, `YYYY-MM-DD`, that day included.
    pub expires: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policies: PolicySet::builtin(),
            providers: abiaudit_policy::providers().clone(),
            target: None,
            assume_installed: Vec::new(),
            size_budget: None,
            select: Vec::new(),
            ignore: Vec::new(),
            severities: BTreeMap::new(),
            suppressions: Vec::new(),
            today: None,
        }
    }
}
