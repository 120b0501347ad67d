//! Version nodes (`GLIBCXX_3.4.26`) and their families.

use std::cmp::Ordering;

/// A symbol version node as an object requires it in `.gnu.version_r`, split at the first underscore into the
/// family, which names the series, and the version inside it.
///
/// The split is auditwheel's, so that a verdict names the same families: the long-double nodes of powerpc and
/// s390x (`GLIBCXX_LDBL_3.4.21`) are versions `LDBL_3.4.21` of the family `GLIBCXX`.
///
/// ```
/// use abiaudit_policy::Node;
///
/// let node = Node::parse("GLIBCXX_3.4.26").unwrap();
/// assert_eq!((node.family, node.version), ("GLIBCXX", "3.4.26"));
/// assert!(node < Node::parse("GLIBCXX_3.4.100").unwrap());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node<'a> {
    /// The text before the first underscore: `GLIBC`.
    pub family: &'a str,
    /// The text after it: `2.17`, `PRIVATE`, `ABI_DT_RELR`.
    pub version: &'a str,
}

impl<'a> Node<'a> {
    /// Splits a node's name. `None` for a name without an underscore, which belongs to no family: many
    /// libraries name their only node after their soname (`libcudart.so.12`).
    pub fn parse(name: &'a str) -> Option<Self> {
        let (family, version) = name.split_once('_')?;
        (!family.is_empty() && !version.is_empty()).then_some(Self { family, version })
    }

    /// Is the version dot-separated numbers, so that it has a place in the family's order?
    pub fn is_numeric(self) -> bool {
        is_numeric(self.version)
    }
}

/// Nodes of one family are ordered by their numbers; a node that is no number, and nodes of two families, are
/// not comparable.
impl PartialOrd for Node<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        if self.family != other.family {
            return None;
        }
        compare_versions(self.version, other.version).filter(|order| order.is_ne())
    }
}

pub(crate) fn is_numeric(version: &str) -> bool {
    version.split('.').all(|part| number(part).is_some())
}

/// Compares two dot-separated versions number by number; the shorter of two that begin alike is older
/// (`3.4` before `3.4.1`). `None` if either has a part that is not a decimal number of 32 bits.
pub fn compare_versions(left: &str, right: &str) -> Option<Ordering> {
    let (mut lefts, mut rights) = (left.split('.'), right.split('.'));
    let mut order = Ordering::Equal;
    loop {
        let step = match (lefts.next(), rights.next()) {
            (None, None) => return Some(order),
            (None, Some(part)) => number(part).map(|_| Ordering::Less)?,
            (Some(part), None) => number(part).map(|_| Ordering::Greater)?,
            (Some(left), Some(right)) => number(left)?.cmp(&number(right)?),
        };
        order = order.then(step);
    }
}

/// Only digits: `u32::from_str` would take `+3` too.
fn number(part: &str) -> Option<u32> {
    part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Node<'_> {
        Node::parse(name).unwrap()
    }

    #[test]
    fn the_family_ends_at_the_first_underscore() {
        assert_eq!(node("GLIBC_2.2.5"), Node { family: "GLIBC", version: "2.2.5" });
        assert_eq!(node("CXXABI_LDBL_1.3"), Node { family: "CXXABI", version: "LDBL_1.3" });
        assert_eq!(node("GLIBC_ABI_DT_RELR").version, "ABI_DT_RELR");
        assert_eq!(Node::parse("libcudart.so.12"), None);
        assert_eq!(Node::parse("_2.3"), None);
        assert_eq!(Node::parse("GLIBC_"), None);
        assert_eq!(Node::parse(""), None);
    }

    #[test]
    fn numbers_order_nodes_and_names_do_not() {
        assert!(node("GLIBC_2.9") < node("GLIBC_2.10"));
        assert!(node("GLIBC_2.2") < node("GLIBC_2.2.5"));
        assert!(node("GCC_14.0") < node("GCC_14.0.0"));
        assert!(node("GCC_4.8.0") < node("GCC_12.0.0"));
        assert_eq!(node("GLIBC_2.2").partial_cmp(&node("GLIBC_PRIVATE")), None);
        assert_eq!(node("GLIBC_2.2").partial_cmp(&node("GLIBCXX_3.4")), None);
        assert_eq!(node("GLIBC_PRIVATE").partial_cmp(&node("GLIBC_PRIVATE")), Some(Ordering::Equal));
    }

    #[test]
    fn odd_numbers_are_no_numbers() {
        for version in ["", "2.", ".2", "2..3", "+2", "-1", "2.4294967296", "2.x", "２"] {
            assert!(!is_numeric(version), "{version:?}");
            assert_eq!(compare_versions(version, "2.17"), None, "{version:?}");
            assert_eq!(compare_versions("2.17", version), None, "{version:?}");
        }
    }
}
