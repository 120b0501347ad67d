//! The order in which people read findings: worst first, those of one rule together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::{Finding, Severity, Wheel};

/// The active findings of one rule at one severity.
pub(crate) struct RuleGroup<'a> {
    pub(crate) rule: &'a str,
    pub(crate) name: &'a str,
    pub(crate) severity: Severity,
    /// In the order of the report.
    pub(crate) findings: Vec<&'a Finding>,
}

impl RuleGroup<'_> {
    /// What would mend them, each text once, in order of appearance.
    pub(crate) fn helps(&self) -> Vec<&str> {
        let mut helps: Vec<&str> = Vec::new();
        for help in self.findings.iter().filter_map(|finding| finding.help.as_deref()) {
            if !helps.contains(&help) {
                helps.push(help);
            }
        }
        helps
    }
}

/// Groups the active findings of `wheel` at or above `least`, worst first, then by rule.
pub(crate) fn by_rule(wheel: &Wheel, least: Severity) -> Vec<RuleGroup<'_>> {
    let mut groups: BTreeMap<(Reverse<Severity>, &str), RuleGroup<'_>> = BTreeMap::new();
    for finding in wheel.active_findings().filter(|finding| finding.severity >= least) {
        groups
            .entry((Reverse(finding.severity), &finding.rule))
            .or_insert_with(|| RuleGroup {
                rule: &finding.rule,
                name: &finding.name,
                severity: finding.severity,
                findings: Vec::new(),
            })
            .findings
            .push(finding);
    }
    groups.into_values().collect()
}
