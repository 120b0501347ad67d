//! All rules, and running them. A new rule is one new file and one line here.

use crate::audit::Audit;
use crate::finding::{Finding, Sink};
use crate::rule::Rule;
use crate::settings::Settings;
use crate::{rules, suppress};

/// Every rule, by id.
pub static RULES: &[&Rule] = &[
    &rules::abi101_symbol_too_new::RULE,
    &rules::abi102_symbol_not_in_target::RULE,
    &rules::abi103_library_not_allowed::RULE,
    &rules::abi104_symbol_forbidden::RULE,
    &rules::abi105_wrong_architecture::RULE,
    &rules::abi106_mixed_architecture::RULE,
    &rules::abi107_isa_above_baseline::RULE,
    &rules::abi108_relr_unsupported::RULE,
    &rules::abi109_needs_no_such_version::RULE,
    &rules::abi110_mixed_libc::RULE,
    &rules::abi201_exported_cxx_runtime::RULE,
    &rules::abi202_vendored_libstdcxx::RULE,
    &rules::abi203_half_hidden_once::RULE,
    &rules::abi204_private_unwinder::RULE,
    &rules::abi205_two_cxx_abis::RULE,
    &rules::abi206_hidden_cxx_runtime::RULE,
    &rules::abi207_exported_partial::RULE,
    &rules::abi208_cxx_runtimes_collide::RULE,
    &rules::abi209_once_split::RULE,
    &rules::abi210_unwinders_collide::RULE,
    &rules::abi211_cxx_state_duplicated::RULE,
    &rules::abi301_two_openmp_runtimes::RULE,
    &rules::abi302_unvendored_libgomp::RULE,
    &rules::abi303_duplicate_fortran_runtimes::RULE,
    &rules::abi304_static_tls::RULE,
    &rules::abi305_unprefixed_blas::RULE,
    &rules::abi306_openblas_threads::RULE,
    &rules::abi307_openmp_runtimes_collide::RULE,
    &rules::abi308_openblas_picked_up::RULE,
    &rules::abi401_unresolved_library::RULE,
    &rules::abi402_unresolved_symbol::RULE,
    &rules::abi403_absolute_rpath::RULE,
    &rules::abi404_relative_rpath::RULE,
    &rules::abi405_verneed_without_needed::RULE,
    &rules::abi406_needs_preload::RULE,
    &rules::abi407_unused_vendored_library::RULE,
    &rules::abi408_provider_not_declared::RULE,
    &rules::abi409_provider_not_reachable::RULE,
    &rules::abi410_needed_name::RULE,
    &rules::abi411_library_from_outside::RULE,
    &rules::abi501_executable_stack::RULE,
    &rules::abi502_text_relocations::RULE,
    &rules::abi503_empty_load_segment::RULE,
    &rules::abi504_page_alignment::RULE,
    &rules::abi505_relro_missing::RULE,
    &rules::abi506_debug_info::RULE,
    &rules::abi507_split_debug_file::RULE,
    &rules::abi508_malformed_elf::RULE,
    &rules::abi509_writable_code::RULE,
    &rules::abi601_claim_too_low::RULE,
    &rules::abi602_claim_too_high::RULE,
    &rules::abi603_unknown_claim::RULE,
    &rules::abi604_platform_tag_mismatch::RULE,
    &rules::abi605_purelib_with_elf::RULE,
    &rules::abi606_record_mismatch::RULE,
    &rules::abi607_wheel_metadata::RULE,
    &rules::abi608_duplicate_member::RULE,
    &rules::abi609_unsafe_member_name::RULE,
    &rules::abi610_archive_structure::RULE,
    &rules::abi611_symlink_member::RULE,
    &rules::abi612_foreign_binary::RULE,
    &rules::abi613_nested_archive::RULE,
    &rules::abi614_not_linked::RULE,
    &rules::abi615_size_budget::RULE,
    &rules::abi616_duplicate_vendored_copy::RULE,
    &rules::abi617_abi_tag_mismatch::RULE,
    &rules::abi618_python_incompatible::RULE,
    &rules::abi619_libpython_linked::RULE,
];

/// A rule id, name or prefix that no rule has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown rule {name:?}; the nearest is {nearest}")]
pub struct UnknownRule {
    /// As given.
    pub name: String,
    /// The rule whose id or name is most alike.
    pub nearest: String,
}

/// The rule of an id (`ABI101`, any case) or a name (`symbol-too-new`).
pub fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|r| r.id.eq_ignore_ascii_case(name) || r.name == name)
}

/// Checks a selector: an id, a name, or a prefix of ids (`ABI1`).
///
/// # Errors
/// [`UnknownRule`] if it selects nothing.
pub fn validate(selector: &str) -> Result<(), UnknownRule> {
    if RULES.iter().any(|r| selects(selector, r)) {
        return Ok(());
    }
    let nearest = RULES
        .iter()
        .flat_map(|r| [r.id, r.name])
        .min_by_key(|candidate| distance(&selector.to_lowercase(), &candidate.to_lowercase()));
    Err(UnknownRule { name: selector.to_owned(), nearest: nearest.unwrap_or_default().to_owned() })
}

/// A selector means this rule.
pub fn selects(selector: &str, rule: &Rule) -> bool {
    let prefix =
        selector.len() >= 3 && rule.id.to_ascii_lowercase().starts_with(&selector.to_ascii_lowercase());
    prefix || selector == rule.name
}

/// Runs the selected rules. Findings come worst first, then by rule, member and text.
pub fn run(audit: &Audit<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES.iter().copied().filter(|r| is_selected(audit.settings, r)) {
        let mut sink = Sink::new(rule);
        (rule.check)(audit, &mut sink);
        findings.extend(sink.into_findings());
    }
    suppress::apply(audit.settings, &mut findings);
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (f.suppressed.is_some(), std::cmp::Reverse(f.severity));
        key(a)
            .cmp(&key(b))
            .then_with(|| (a.rule.id, &a.member, &a.message).cmp(&(b.rule.id, &b.member, &b.message)))
    });
    findings
}

/// The settings let this rule run.
pub fn is_selected(settings: &Settings, rule: &Rule) -> bool {
    let any = |selectors: &[String]| selectors.iter().any(|s| selects(s, rule));
    (settings.select.is_empty() || any(&settings.select)) && !any(&settings.ignore)
}

/// Levenshtein distance, for "did you mean".
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substitution = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_ordered_and_documented() {
        for pair in RULES.windows(2) {
            assert!(pair[0].id < pair[1].id, "{:?} and {:?}", pair[0], pair[1]);
        }
        for rule in RULES {
            assert!(rule.id.starts_with("ABI") && rule.id.len() == 6, "{rule:?}");
            let text = rule.documentation();
            for heading in
                ["## What it does", "## Why is this bad?", "## Example", "## How to mend it", "## References"]
            {
                assert!(text.contains(heading), "{rule:?} lacks {heading:?}");
            }
            assert!(!rule.summary().is_empty() && rule.summary().len() < 120, "{rule:?}: {}", rule.summary());
        }
    }

    #[test]
    fn selectors_are_ids_names_and_prefixes() {
        assert!(validate("ABI101").is_ok());
        assert!(validate("abi1").is_ok());
        assert!(validate("symbol-too-new").is_ok());
        assert_eq!(validate("symbol-too-now").unwrap_err().nearest, "symbol-too-new");
    }
}
