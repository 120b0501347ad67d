//! Findings folded into SARIF results.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::fingerprint::{digest, normalised_member, wheel_identity};
use super::schema::{Level, Location, Message, ResultObject, SuppressionObject};
use crate::escape::brief;
use crate::layout::Labelled;
use crate::model::{Evidence, Finding, Report, Severity, Suppression, Wheel};
use crate::options::RuleInfo;

/// Locations that GitHub accepts in a result.
const MOST_LOCATIONS: usize = 1_000;

/// All findings of one rule about one member of one wheel that share a severity and a suppression.
pub(super) struct RuleResult<'a> {
    wheel: &'a Wheel,
    rule: &'a str,
    member: Option<&'a str>,
    severity: Severity,
    suppressed: Option<&'a Suppression>,
    findings: Vec<&'a Finding>,
}

/// Folds the findings of `report`, worst first, active ones before suppressed ones, otherwise in the order of wheels.
pub(super) fn by_rule_and_member(report: &Report) -> Vec<RuleResult<'_>> {
    type Key<'a> = (bool, Reverse<Severity>, usize, &'a str, Option<&'a str>, Option<&'a str>);
    let mut results: BTreeMap<Key<'_>, RuleResult<'_>> = BTreeMap::new();
    for (index, wheel) in report.wheels.iter().enumerate() {
        for finding in &wheel.findings {
            let suppressed = finding.suppressed.as_ref();
            let reason = suppressed.map(|suppression| suppression.reason.as_str());
            let member = finding.member.as_deref();
            let key = (
                suppressed.is_some(),
                Reverse(finding.severity),
                index,
                finding.rule.as_str(),
                member,
                reason,
            );
            results
                .entry(key)
                .or_insert_with(|| RuleResult {
                    wheel,
                    rule: &finding.rule,
                    member,
                    severity: finding.severity,
                    suppressed,
                    findings: Vec::new(),
                })
                .findings
                .push(finding);
        }
    }
    results.into_values().collect()
}

impl RuleResult<'_> {
    fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.findings.iter().flat_map(|finding| &finding.evidence)
    }

    /// Occurrences that the message does not name when it shows `most` pieces of evidence.
    pub(super) fn unnamed_after(&self, most: usize) -> usize {
        let total: usize = self.findings.iter().map(|finding| finding.unnamed_after(0) + 1).sum();
        let without_evidence = self.findings.iter().filter(|finding| finding.evidence.is_empty()).count();
        total.saturating_sub(self.evidence().count().min(most) + without_evidence)
    }

    pub(super) fn to_sarif(&self, rules: &[RuleInfo], most_evidence: usize) -> ResultObject {
        ResultObject {
            rule_id: brief(self.rule).into_owned(),
            rule_index: rules.iter().position(|rule| rule.id == self.rule),
            level: Level::of(self.severity),
            message: Message::text(self.message(most_evidence)),
            locations: vec![Location::of(&self.wheel.path, self.member)],
            related_locations: self.related_locations(most_evidence),
            partial_fingerprints: self.fingerprints(),
            suppressions: self.suppressed.map(suppression).into_iter().collect(),
        }
    }

    /// What is wrong, the first pieces of evidence, and what would mend it: one a line, as GitHub shows them.
    fn message(&self, most_evidence: usize) -> String {
        let mut lines: Vec<String> =
            self.findings.iter().take(most_evidence).map(|f| brief(&f.message).into_owned()).collect();
        if let (Some(member), Some(first)) = (self.member, lines.first_mut()) {
            *first = format!("{}: {first}", brief(member));
        }
        let shown = self.evidence().take(most_evidence);
        lines.extend(
            shown.map(|piece| format!("- {}", Labelled::from_evidence(piece, self.member, false).to_line())),
        );
        let hidden = self.unnamed_after(most_evidence);
        if hidden > 0 {
            lines.push(format!("... {hidden} more"));
        }
        let helps: BTreeSet<&str> =
            self.findings.iter().filter_map(|finding| finding.help.as_deref()).collect();
        lines.extend(helps.into_iter().take(most_evidence).map(|help| format!("mend: {}", brief(help))));
        lines.join("\n")
    }

    /// The other members that the evidence names.
    fn related_locations(&self, most_evidence: usize) -> Vec<Location> {
        let members: BTreeSet<&str> =
            self.evidence().filter_map(|e| e.member.as_deref()).filter(|m| Some(*m) != self.member).collect();
        let most = most_evidence.min(MOST_LOCATIONS - 1);
        members.into_iter().take(most).map(|member| Location::of(&self.wheel.path, Some(member))).collect()
    }

    /// Two fingerprints: one on rule and member, which stays while symbols come and go, and one that also covers the
    /// symbols. GitHub looks at `primaryLocationLineHash` alone, and would otherwise compute it from the first line of
    /// the wheel, the same for all results.
    fn fingerprints(&self) -> BTreeMap<&'static str, String> {
        let identity = wheel_identity(self.wheel);
        let member = self.member.map(|member| normalised_member(member, self.wheel)).unwrap_or_default();
        let place = [self.rule, identity.as_str(), member.as_ref()];
        let symbols: BTreeSet<&str> = self.evidence().filter_map(|piece| piece.symbol.as_deref()).collect();
        let stable = digest(place);
        BTreeMap::from([
            ("abiauditRuleMember/v1", stable.clone()),
            ("abiauditRuleMemberSymbols/v1", digest(place.into_iter().chain(symbols))),
            ("primaryLocationLineHash", format!("{stable}:1")),
        ])
    }
}

fn suppression(suppression: &Suppression) -> SuppressionObject {
    let expiry =
        suppression.expires.as_deref().map(|day| format!(" (until {})", brief(day))).unwrap_or_default();
    SuppressionObject {
        kind: "external",
        status: "accepted",
        justification: format!("{}{expiry}", brief(&suppression.reason)),
    }
}
