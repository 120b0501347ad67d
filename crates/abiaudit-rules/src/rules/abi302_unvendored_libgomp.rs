//! The system's libgomp is needed beside one that is in the wheel.
//!
//! ## What it does
//! Reports objects that need a libgomp which is not in the input, while other objects load one that is, under another
//! soname. A warning if one import loads both, else an info.
//!
//! ## Why is this bad?
//! The loader takes them for two libraries: two pools of threads in one process, and a setting that reaches only one. And
//! the system need not have libgomp at all: no platform tag promises it.
//!
//! ## Example
//! `p.libs/libgomp-e985bcbb.so.1.0.0` for most modules, and one that was added after the repair and needs `libgomp.so.1`.
//!
//! ## How to mend it
//! Repair the whole wheel at once, so that all modules need the vendored one.
//!
//! ## References
//! PEP 599 (libgomp.so.1 is on no list of allowed libraries); pytorch #98836.

use abiaudit_detect::OpenMpFamily;

use super::abi301_two_openmp_runtimes::{common_root, providers};
use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};

super::rule!("ABI302", "unvendored-libgomp", Warning, "abi302_unvendored_libgomp.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let mut providers = providers(audit);
    providers.retain(|(family, _), _| *family == OpenMpFamily::Libgomp);
    for ((_, wanted), outside) in providers.iter().filter(|(_, provider)| provider.outside) {
        let inside = providers.iter().filter(|(_, provider)| !provider.outside);
        for ((_, vendored), inside) in inside.filter(|((_, name), _)| name != wanted) {
            let root = common_root(audit, outside, inside);
            let severity = if root.is_some() { Severity::Warning } else { Severity::Info };
            let when = root.map_or_else(
                || "different modules load them".to_owned(),
                |root| format!("{} loads both", audit.member_name(root)),
            );
            let message = format!("needs {wanted} of the system beside its own {vendored}: {when}");
            let users = outside.objects.iter().take(3);
            let users = users.map(|user| Evidence::member(audit.member_name(*user)).with_library(wanted));
            let own = inside.objects.iter().take(1);
            let own = own.map(|own| Evidence::member(audit.member_name(*own)).with_library(vendored));
            sink.whole(message)
                .severity(severity)
                .help("repair the wheel as a whole, so that all modules need the vendored libgomp")
                .evidence(users.chain(own));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::abi301_two_openmp_runtimes::tests::{module, wheel};
    use crate::finding::Severity;
    use crate::testing::findings;

    const OWN: &str = "libgomp-1a2b3c4d.so.1";

    #[test]
    fn the_systems_beside_a_vendored_one() {
        let both = wheel(&[OWN]).elf("p/n.so", &module(&[OWN, "libgomp.so.1"]));
        let found = findings("ABI3", &both);
        assert_eq!(
            found.iter().map(|f| (f.rule.id, f.severity)).collect::<Vec<_>>(),
            [("ABI302", Severity::Warning)]
        );
        assert_eq!(
            found[0].message,
            format!("needs libgomp.so.1 of the system beside its own {OWN}: p/n.so loads both")
        );
        let apart = wheel(&[OWN]).elf("p/n.so", &module(&["libgomp.so.1"]));
        assert_eq!(findings("ABI302", &apart)[0].severity, Severity::Info);
    }

    #[test]
    fn silent_with_one_of_them() {
        assert!(findings("ABI302", &wheel(&[OWN])).is_empty());
        assert!(findings("ABI302", &wheel(&[]).elf("p/n.so", &module(&["libgomp.so.1"]))).is_empty());
        // The one that is there answers to the name.
        let own_name = wheel(&["libgomp.so.1"]).elf("p/n.so", &module(&["libgomp.so.1"]));
        assert!(findings("ABI302", &own_name).is_empty());
    }
}
