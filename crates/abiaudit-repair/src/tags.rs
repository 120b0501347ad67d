//! Platform tags of a repaired wheel.

use std::cmp::Ordering;

use abiaudit_policy::Target;
use abiaudit_wheel::{PlatformTag, WheelName};

/// The tags: the target's and, unless only that is to be there, what is wanted beside it, each with its older names (PEP
/// 600); and those of the old ones that hold, since what the target's systems can run newer ones can too. Sorted by their
/// text, as auditwheel and pip's own names have it.
///
/// `refuted` are tags of the input that the gate found not to hold.
pub(crate) fn platforms(
    name: &WheelName,
    target: &Target,
    wanted: Option<&Target>,
    only: bool,
    refuted: &[String],
) -> Vec<PlatformTag> {
    let best = PlatformTag::parse(&target.tag());
    let mut platforms: Vec<PlatformTag> = Vec::new();
    for target in wanted.into_iter().chain((!only || wanted.is_none()).then_some(target)) {
        let tag = PlatformTag::parse(&target.tag());
        platforms.extend(tag.alias());
        platforms.push(tag);
    }
    let stays = |old: &&PlatformTag| holds(old, &best) && !refuted.contains(&old.to_string());
    platforms.extend(name.platforms.iter().filter(stays).cloned());
    let text = |tag: &PlatformTag| tag.to_string();
    platforms.sort_by_key(text);
    platforms.dedup();
    platforms
}

/// Whether a tag of the input holds where `best` does: the same family and architecture, and no older. Tags of another C
/// library are for the gate to refute.
fn holds(old: &PlatformTag, best: &PlatformTag) -> bool {
    match (old, best) {
        (PlatformTag::Manylinux { .. }, PlatformTag::Manylinux { .. })
        | (PlatformTag::Musllinux { .. }, PlatformTag::Musllinux { .. }) => {
            matches!(old.compare_age(best), Some(Ordering::Equal | Ordering::Greater))
        }
        (PlatformTag::Manylinux { .. } | PlatformTag::Musllinux { .. }, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_policy::PolicySet;

    use super::*;

    fn after(platforms: &str, best: &str, wanted: Option<&str>, only: bool) -> String {
        let name = WheelName::parse(&format!("p-1-cp312-cp312-{platforms}.whl")).expect("a name");
        let policies = PolicySet::builtin();
        let target = |tag: &str| policies.target(tag).expect("a target");
        let wanted = wanted.map(target);
        let tags = super::platforms(&name, &target(best), wanted.as_ref(), only, &[]);
        tags.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
    }

    #[test]
    fn as_auditwheel_names_them() {
        assert_eq!(
            after("linux_x86_64", "manylinux_2_5_x86_64", Some("manylinux_2_28_x86_64"), false),
            "manylinux1_x86_64.manylinux_2_28_x86_64.manylinux_2_5_x86_64"
        );
        assert_eq!(
            after("linux_x86_64", "manylinux_2_5_x86_64", Some("manylinux_2_28_x86_64"), true),
            "manylinux_2_28_x86_64"
        );
        assert_eq!(
            after("any", "manylinux_2_17_x86_64", None, false),
            "manylinux2014_x86_64.manylinux_2_17_x86_64"
        );
        assert_eq!(after("linux_aarch64", "musllinux_1_2_aarch64", None, false), "musllinux_1_2_aarch64");
    }

    #[test]
    fn claims_that_hold_stay_and_others_go() {
        assert_eq!(
            after("manylinux2014_x86_64.manylinux_2_31_x86_64", "manylinux_2_28_x86_64", None, false),
            "manylinux_2_28_x86_64.manylinux_2_31_x86_64"
        );
        let repaired = "manylinux1_x86_64.manylinux_2_28_x86_64.manylinux_2_5_x86_64";
        assert_eq!(after(repaired, "manylinux_2_5_x86_64", None, false), repaired);
    }
}
