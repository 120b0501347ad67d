//! Runs rules on wheels that a test makes.

use abiaudit_testing::TestWheel;

use crate::audit::Audit;
use crate::finding::Finding;
use crate::settings::Settings;

/// The findings of one rule (or of all whose id begins so) on a wheel.
pub(crate) fn findings(rule: &str, wheel: &TestWheel) -> Vec<Finding> {
    findings_with(rule, wheel, |_| {})
}

/// The same with other settings.
pub(crate) fn findings_with(
    rule: &str,
    wheel: &TestWheel,
    change: impl FnOnce(&mut Settings),
) -> Vec<Finding> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = wheel.write(directory.path());
    let subjects = abiaudit_scan::scan(&path, &abiaudit_scan::Options::default()).expect("a wheel");
    let mut settings = Settings { select: vec![rule.to_owned()], ..Settings::default() };
    change(&mut settings);
    subjects.iter().flat_map(|subject| crate::run(&Audit::new(subject, &settings))).collect()
}
