//! Which version nodes a target has.

use std::cmp::Ordering;

use abiaudit_policy::{Node, NodeVerdict, Target, compare_versions};

/// Has the target this node of one of GCC's runtime libraries?
///
/// Unlike [`Target::allows_node`] this judges a node of libgcc_s called `GLIBC_2.0` by its number alone: glibc has no
/// such node on x86_64, libgcc_s has (GCC libgcc/config/i386/libgcc-glibc.ver).
pub(crate) fn admits(target: &Target, node: &str) -> bool {
    let Some(Node { family, version }) = Node::parse(node) else { return false };
    if target.allows_node(node) == NodeVerdict::Allowed {
        return true;
    }
    target.ceiling(family).is_some_and(|ceiling| {
        matches!(compare_versions(version, ceiling), Some(Ordering::Less | Ordering::Equal))
    })
}

/// Orders the nodes of one library: by family, then by number; nodes without a number come last in their family.
pub(crate) fn order(left: &str, right: &str) -> Ordering {
    let parts = |node| Node::parse(node).map_or((node, ""), |n| (n.family, n.version));
    let ((left_family, left_version), (right_family, right_version)) = (parts(left), parts(right));
    let numeric = |version| compare_versions(version, version).is_some();
    left_family
        .cmp(right_family)
        .then_with(|| numeric(right_version).cmp(&numeric(left_version)))
        .then_with(|| compare_versions(left_version, right_version).unwrap_or(Ordering::Equal))
        .then_with(|| left_version.cmp(right_version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abiaudit_policy::PolicySet;

    #[test]
    fn a_target_has_what_its_policy_says() {
        let target = PolicySet::builtin().target("manylinux_2_28_x86_64").expect("a target");
        for node in
            ["GLIBCXX_3.4.24", "CXXABI_1.3.11", "CXXABI_TM_1", "CXXABI_FLOAT128", "GCC_7.0.0", "GLIBC_2.0"]
        {
            assert!(admits(&target, node), "{node}");
        }
        for node in ["GLIBCXX_3.4.25", "CXXABI_1.3.12", "GCC_12.0.0", "GLIBC_2.29", "CXXABI_NEW", "libfoo"] {
            assert!(!admits(&target, node), "{node}");
        }
        let old = PolicySet::builtin().target("manylinux_2_17_x86_64").expect("a target");
        assert!(!admits(&old, "CXXABI_FLOAT128"));
    }

    #[test]
    fn numbers_come_before_names() {
        let mut nodes = ["GLIBCXX_3.4.10", "CXXABI_TM_1", "GLIBCXX_3.4.9", "CXXABI_1.3.11", "GLIBCXX_3.4"];
        nodes.sort_by(|a, b| order(a, b));
        assert_eq!(nodes, ["CXXABI_1.3.11", "CXXABI_TM_1", "GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.10"]);
    }
}
