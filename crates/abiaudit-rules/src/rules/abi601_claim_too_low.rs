//! The wheel promises older systems than it runs on.
//!
//! ## What it does
//! Compares each platform tag with what the content honours, libraries of declared providers accepted, and names
//! the tag that would be honest. What exactly stands in the way, symbol by symbol, is said by the rules ABI1xx and
//! ABI4xx; this is the sum.
//!
//! ## Why is this bad?
//! Installers choose the wheel for systems on which its import then fails: ``version `GLIBC_2.28' not found``, or
//! `libfoo.so.1: cannot open shared object file`. Users of those systems would have got an older wheel or the
//! source otherwise.
//!
//! ## Example
//! A wheel that was given a `manylinux1` tag by hand, with a program in it that needs glibc 2.28.
//!
//! ## How to mend it
//! Give the wheel the tag that it honours (`wheel tags --platform-tag ...`), or mend what the
//! other findings name.
//!
//! ## References
//! PEP 600 ("package maintainers must not lie"); llvmlite #393, TensorFlow #60738, pydantic-core #853.

use abiaudit_wheel::PlatformTag;

use crate::audit::Audit;
use crate::blockers::{Blockers, LibraryReason, SymbolBlocker, SymbolReason};
use crate::demangle::demangle;
use crate::finding::{Evidence, Sink};
use crate::nodes::newest_first;
use crate::rules::and_more;
use crate::verdict::{ClaimVerdict, Verdict};

super::rule!("ABI601", "claim-too-low", Error, "abi601_claim_too_low.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    for (claim, judged) in audit.claims.iter().zip(&verdict.claims) {
        // A tag that no policy covers is ABI603's.
        if judged.holds || matches!(claim.target, Some(Err(_))) {
            continue;
        }
        let verb = if claim.requested { "asked for" } else { "claims" };
        let arch = audit.platform.map(|p| p.arch.tag());
        if claim.tag.arch() != arch {
            let arch = arch.unwrap_or_default();
            sink.whole(format!("{verb} {}, but the native code is for {arch}", judged.tag))
                .help("build a wheel for each architecture");
            continue;
        }
        let message = format!("{verb} {}, {}: {}", judged.tag, honest(&claim.tag, verdict), why(judged));
        sink.whole(message).help(help(&claim.tag, verdict)).evidence(evidence(audit, &judged.blockers));
    }
}

/// The verdict is about one C library; of a tag for the other one nothing better is known.
fn honest(claim: &PlatformTag, verdict: &Verdict) -> String {
    let tag = PlatformTag::parse(&verdict.tag_with_providers);
    if matches!(tag, PlatformTag::Linux { .. }) {
        format!("honours no better tag than {tag}")
    } else if same_libc(claim, &tag) {
        format!("honours {tag}")
    } else {
        "which it does not honour".to_owned()
    }
}

fn help(claim: &PlatformTag, verdict: &Verdict) -> String {
    let tag = PlatformTag::parse(&verdict.tag_with_providers);
    if matches!(tag, PlatformTag::Linux { .. }) {
        "mend what the other findings name; no tag that an index accepts is honest".to_owned()
    } else if same_libc(claim, &tag) {
        format!("tag it {tag}, or mend what the other findings name")
    } else {
        format!("drop {claim} from the tags, or mend what the other findings name")
    }
}

fn same_libc(a: &PlatformTag, b: &PlatformTag) -> bool {
    matches!(
        (a, b),
        (PlatformTag::Manylinux { .. }, PlatformTag::Manylinux { .. })
            | (PlatformTag::Musllinux { .. }, PlatformTag::Musllinux { .. })
    )
}

/// One reason of each kind, and how many more there are.
fn why(judged: &ClaimVerdict) -> String {
    let blockers = &judged.blockers;
    let mut reasons = Vec::new();
    let mut missing: Vec<&SymbolBlocker> = blockers.symbols.iter().collect();
    missing.sort_by(|a, b| leading_first(a, b));
    missing.dedup_by(|a, b| a.node.is_some() && a.node == b.node);
    if let Some((first, rest)) = missing.split_first() {
        reasons.push(and_more(&format!("{} is not there", what(first)), rest.len()));
    }
    if let Some((first, rest)) = blockers.libraries.split_first() {
        let what = match &first.reason {
            LibraryReason::NotPromised => format!("{} is not part of it", first.soname),
            LibraryReason::MustBundle(_) => format!("{} should be in the wheel", first.soname),
            LibraryReason::Denied(_) => format!("{} is denied", first.soname),
            LibraryReason::Unreachable { .. } => format!("{} is not reachable", first.soname),
        };
        reasons.push(and_more(&what, rest.len()));
    }
    if let Some((first, rest)) = blockers.forbidden.split_first() {
        let what = format!("{} of {} must not be used", demangle(&first.symbol), first.library);
        reasons.push(and_more(&what, rest.len()));
    }
    if !blockers.isa.is_empty() {
        reasons.push("it needs a newer processor".to_owned());
    }
    if !blockers.python.is_empty() {
        reasons.push("it needs a Python that is not there".to_owned());
    }
    reasons.join("; ")
}

/// Nodes, the newest first, before symbols without one.
fn leading_first(a: &SymbolBlocker, b: &SymbolBlocker) -> std::cmp::Ordering {
    let by_node = match (&a.node, &b.node) {
        (Some(a), Some(b)) => newest_first(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    };
    by_node.then_with(|| a.cmp(b))
}

/// A node stands for all its symbols, unless it is there and only the symbol is not.
fn what(blocker: &SymbolBlocker) -> String {
    let symbol = blocker.symbol.as_deref().map(demangle);
    match (&blocker.node, symbol, &blocker.reason) {
        (Some(node), Some(symbol), SymbolReason::Gone(_)) => {
            format!("{symbol}@{node} of {}", blocker.library)
        }
        (Some(node), ..) => node.clone(),
        (None, symbol, _) => symbol.unwrap_or_default(),
    }
}

/// The members that break the claim; what in them does is in the other findings.
fn evidence(audit: &Audit<'_>, blockers: &Blockers) -> Vec<Evidence> {
    let symbols = blockers.symbols.iter().map(|b| b.object);
    let libraries = blockers.libraries.iter().flat_map(|b| b.needed_by.iter().copied());
    let forbidden = blockers.forbidden.iter().map(|b| b.object);
    let others = blockers
        .isa
        .iter()
        .map(|(object, _)| *object)
        .chain(blockers.python.iter().map(|(object, _)| *object));
    let mut objects: Vec<usize> = symbols.chain(libraries).chain(forbidden).chain(others).collect();
    objects.sort_unstable();
    objects.dedup();
    objects.into_iter().map(|object| Evidence::member(audit.member_name(object))).collect()
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter};

    use crate::finding::Severity;
    use crate::testing::{findings, wheel_for};

    fn needs(version: &str) -> ElfWriter {
        ElfWriter::new(Arch::X86_64)
            .needed("libc.so.6")
            .undefined_versioned("f", "libc.so.6", version)
            .define("PyInit_m")
    }

    #[test]
    fn the_honest_tag_and_the_reason_are_named() {
        let found = findings("ABI601", &wheel_for("manylinux_2_17_x86_64", &needs("GLIBC_2.34")));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].message,
            "claims manylinux_2_17_x86_64, honours manylinux_2_34_x86_64: GLIBC_2.34 is not there"
        );
        assert_eq!(found[0].evidence[0].member.as_deref(), Some("p/m.so"));
    }

    #[test]
    fn of_several_tags_the_oldest_counts() {
        let wheel = wheel_for("manylinux_2_5_x86_64.manylinux_2_34_x86_64", &needs("GLIBC_2.34"));
        assert!(findings("ABI601", &wheel)[0].message.starts_with("claims manylinux_2_5_x86_64"));
    }

    #[test]
    fn an_honest_tag_and_a_tag_without_promise_are_fine() {
        assert!(findings("ABI601", &wheel_for("manylinux_2_34_x86_64", &needs("GLIBC_2.34"))).is_empty());
        assert!(findings("ABI601", &wheel_for("linux_x86_64", &needs("GLIBC_2.34"))).is_empty());
    }

    #[test]
    fn no_false_promise_is_without_an_error() {
        for platform in [
            "manylinux_2_17_x86_64",
            "manylinux_2_34_x86_64.manylinux_2_34_aarch64",
            "linux_aarch64.linux_x86_64",
            "musllinux_1_2_x86_64.manylinux_2_5_x86_64",
            "musllinux_1_0_x86_64",
            "manylinux_x86_64",
            "macosx_11_0_arm64.manylinux_2_34_x86_64",
            "any",
        ] {
            let wheel = wheel_for(platform, &needs("GLIBC_2.34"));
            let errors = findings("ABI60", &wheel).into_iter().filter(|f| f.severity == Severity::Error);
            assert!(errors.count() > 0, "{platform}");
        }
    }

    #[test]
    fn a_library_of_a_declared_requirement_does_not_count() {
        let elf = needs("GLIBC_2.17").needed("libtorch.so");
        let wheel = wheel_for("manylinux_2_17_x86_64", &elf);
        assert!(findings("ABI601", &wheel)[0].message.contains("libtorch.so is not part of it"));
        assert!(findings("ABI601", &wheel.requires("torch>=2")).is_empty());
    }
}
