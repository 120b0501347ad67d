//! The wheel is larger than its budget.
//!
//! ## What it does
//! Compares the size of the wheel with the budget of the configuration (`size-budget`), and names the members that
//! take most of it. Without a budget it says nothing.
//!
//! ## Why is this bad?
//! A project's quota on PyPI (100 MB a file and 10 GB in all by default) runs out suddenly, and every user pays for
//! what slipped in.
//!
//! ## Example
//! A wheel that grew from 2 MB to 50 MB because a repair grafted a library with all that it needs.
//!
//! ## How to mend it
//! Look at the largest members: strip debug information, ship each library once, leave test data out; or raise the
//! budget on purpose.
//!
//! ## References
//! PyPI help, "File size limit"; natcap/invest #2483.

use std::cmp::Reverse;

use abiaudit_scan::Member;

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};
use crate::rules::size;

super::rule!("ABI615", "size-budget", Error, "abi615_size_budget.rs");

/// Members that are named.
const LARGEST: usize = 10;

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(budget) = audit.settings.size_budget.filter(|&budget| audit.subject.size > budget) else {
        return;
    };
    let mut members: Vec<&Member> = audit.subject.members.iter().collect();
    members.sort_by_key(|member| (Reverse(member.compressed_size), &member.name));
    let note = |m: &Member| format!("{} packed, {} unpacked", size(m.compressed_size), size(m.size));
    sink.whole(format!("{}, the budget is {}", size(audit.subject.size), size(budget)))
        .help("strip debug information, ship each library once, leave test data out")
        .evidence(members.into_iter().take(LARGEST).map(|m| Evidence::member(&m.name).with_note(note(m))));
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::testing::findings_with;

    #[test]
    fn the_largest_members_are_named_first() {
        let wheel = TestWheel::new("p", "1", "py3-none-any").file("p/small", vec![1; 10]).entry(
            "p/large",
            vec![7; 5000],
            |entry| {
                entry.method = 0;
                entry.data = vec![7; 5000];
            },
        );
        let found = findings_with("ABI615", &wheel, |s| s.size_budget = Some(5000));
        assert_eq!(found[0].evidence[0].member.as_deref(), Some("p/large"));
        assert!(findings_with("ABI615", &wheel, |s| s.size_budget = Some(50_000)).is_empty());
        assert!(findings_with("ABI615", &wheel, |s| s.size_budget = None).is_empty());
    }
}
