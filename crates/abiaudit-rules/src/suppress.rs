//! Severities and ignores of the configuration.

use crate::finding::{Evidence, Finding, Suppression};
use crate::registry::selects;
use crate::settings::{Ignore, Settings};

/// Applies configured severities (off removes a finding) and marks what an ignore covers.
pub(crate) fn apply(settings: &Settings, findings: &mut Vec<Finding>) {
    findings.retain_mut(|finding| {
        let configured =
            settings.severities.iter().rev().find(|(selector, _)| selects(selector, finding.rule));
        match configured {
            Some((_, None)) => return false,
            Some((_, Some(severity))) => finding.severity = *severity,
            None => {}
        }
        true
    });
    for finding in findings {
        let today = settings.today.as_deref();
        let live = |ignore: &&Ignore| !ignore.is_expired(today) && ignore.covers(finding);
        let ignore = settings.suppressions.iter().find(live);
        finding.suppressed =
            ignore.map(|i| Suppression { reason: i.reason.clone(), expires: i.expires.clone() });
    }
}

impl Ignore {
    /// Its last day has gone by. Without a date of today nothing has expired.
    pub fn is_expired(&self, today: Option<&str>) -> bool {
        // ISO dates compare as text.
        self.expires.as_deref().zip(today).is_some_and(|(until, today)| until < today)
    }

    /// It is about this finding, expired or not.
    pub fn covers(&self, finding: &Finding) -> bool {
        let member = match (&self.member, &finding.member) {
            (None, _) => true,
            (Some(pattern), Some(member)) => matches(pattern, member),
            (Some(_), None) => false,
        };
        let evidence = self.evidence.as_ref().is_none_or(|pattern| {
            !finding.evidence.is_empty() && finding.evidence.iter().all(|e| evidence_matches(pattern, e))
        });
        selects(&self.rule, finding.rule) && member && evidence
    }
}

fn evidence_matches(pattern: &str, evidence: &Evidence) -> bool {
    [&evidence.symbol, &evidence.library, &evidence.version, &evidence.member]
        .into_iter()
        .flatten()
        .any(|text| matches(pattern, text))
}

/// `*` stands for any characters, `?` for one.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        assert!(matches("torch/lib/*.so", "torch/lib/libc10.so"));
        assert!(matches("*", ""));
        assert!(matches("a?c*", "abcd"));
        assert!(!matches("a?c", "abcd"));
        assert!(!matches("", "a"));
    }
}
