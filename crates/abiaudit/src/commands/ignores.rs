//! Ignores of the configuration that do nothing: stale ones hide what is wrong next time.

use std::sync::atomic::{AtomicUsize, Ordering};

use abiaudit_rules::{Finding, Ignore, RULES, Settings, is_selected, selects};

/// How many findings each ignore is about.
pub struct Ignores<'a> {
    settings: &'a Settings,
    covered: Vec<AtomicUsize>,
}

impl<'a> Ignores<'a> {
    pub fn new(settings: &'a Settings) -> Self {
        Self { settings, covered: settings.suppressions.iter().map(|_| AtomicUsize::new(0)).collect() }
    }

    /// Counts the findings of one input.
    pub fn record(&self, findings: &[Finding]) {
        for (ignore, covered) in self.settings.suppressions.iter().zip(&self.covered) {
            let matching = findings.iter().filter(|finding| ignore.covers(finding)).count();
            covered.fetch_add(matching, Ordering::Relaxed);
        }
    }

    /// Prints what a person should know to standard error.
    pub fn tell(&self, all_read: bool) {
        for note in self.notes(all_read) {
            anstream::eprintln!("note: {note}");
        }
    }

    /// Whether an ignore is of use can be told only if every input was read.
    fn notes(&self, all_read: bool) -> Vec<String> {
        let today = self.settings.today.as_deref();
        let note = |(ignore, covered): (&Ignore, &AtomicUsize)| {
            let covered = covered.load(Ordering::Relaxed);
            let expired = ignore.expires.as_deref().filter(|_| ignore.is_expired(today));
            let what = match (expired, covered) {
                (Some(date), 0) => format!("expired on {date}, and no finding matches it: remove it"),
                (Some(date), 1) => format!("expired on {date}: the finding that it was about counts again"),
                (Some(date), n) => {
                    format!("expired on {date}: the {n} findings that it was about count again")
                }
                (None, 0) if all_read && self.ran(ignore) => {
                    "no finding matches it; remove it if that is so for all your wheels".to_owned()
                }
                (None, _) => return None,
            };
            Some(format!("the ignore of {}: {what}", name(ignore)))
        };
        self.settings.suppressions.iter().zip(&self.covered).filter_map(note).collect()
    }

    /// Some rule that it is about was run.
    fn ran(&self, ignore: &Ignore) -> bool {
        RULES.iter().any(|rule| selects(&ignore.rule, rule) && is_selected(self.settings, rule))
    }
}

/// `ABI101 (member pkg/*.so, evidence GLIBC_2.34)`
fn name(ignore: &Ignore) -> String {
    let part = |key: &str, value: &Option<String>| value.as_ref().map(|value| format!("{key} {value}"));
    let parts: Vec<String> =
        [part("member", &ignore.member), part("evidence", &ignore.evidence)].into_iter().flatten().collect();
    if parts.is_empty() { ignore.rule.clone() } else { format!("{} ({})", ignore.rule, parts.join(", ")) }
}
