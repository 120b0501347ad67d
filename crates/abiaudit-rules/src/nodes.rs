//! The order of version nodes (`GLIBC_2.34`), in which people read them.

use std::cmp::Ordering;

use abiaudit_policy::compare_versions;

/// The family of a node and what follows it: `GLIBC` and `2.34`.
pub(crate) fn split(node: &str) -> (&str, &str) {
    node.split_once('_').unwrap_or((node, ""))
}

/// Oldest first within a family; glibc's family, which decides most often, before the others by name.
pub(crate) fn oldest_first(a: &str, b: &str) -> Ordering {
    families(a, b).then_with(|| versions(a, b))
}

/// Newest first within a family; the families as in [`oldest_first`].
pub(crate) fn newest_first(a: &str, b: &str) -> Ordering {
    families(a, b).then_with(|| versions(b, a))
}

fn families(a: &str, b: &str) -> Ordering {
    let key = |node| {
        let (family, _) = split(node);
        (family != "GLIBC", family)
    };
    key(a).cmp(&key(b))
}

/// What is no number (`GLIBC_PRIVATE`) comes after all numbers, by its text.
fn versions(a: &str, b: &str) -> Ordering {
    let ((_, a), (_, b)) = (split(a), split(b));
    let is_number = |text| compare_versions(text, text).is_some();
    match (is_number(a), is_number(b)) {
        (true, true) => compare_versions(a, b).unwrap_or(Ordering::Equal),
        (false, false) => a.cmp(b),
        (a, b) => b.cmp(&a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_leads_and_numbers_count() {
        let mut nodes = ["GLIBCXX_3.4.9", "GLIBC_2.4", "CXXABI_1.3", "GLIBC_2.34", "GLIBCXX_3.4.29"];
        nodes.sort_by(|a, b| newest_first(a, b));
        assert_eq!(nodes, ["GLIBC_2.34", "GLIBC_2.4", "CXXABI_1.3", "GLIBCXX_3.4.29", "GLIBCXX_3.4.9"]);
        nodes.sort_by(|a, b| oldest_first(a, b));
        assert_eq!(nodes, ["GLIBC_2.4", "GLIBC_2.34", "CXXABI_1.3", "GLIBCXX_3.4.9", "GLIBCXX_3.4.29"]);
    }

    /// Sorting panics on an order that contradicts itself.
    #[test]
    fn numbers_and_texts_are_never_mixed() {
        let nodes = ["X_9", "X_10", "X_1x", "X_PRIVATE", "X_", "X"];
        for (a, b, c) in nodes.iter().flat_map(|a| nodes.map(|b| nodes.map(|c| (*a, b, c)))).flatten() {
            let (ab, bc) = (oldest_first(a, b), oldest_first(b, c));
            assert!(ab != bc || oldest_first(a, c) == ab, "{a} {b} {c}");
        }
    }
}
