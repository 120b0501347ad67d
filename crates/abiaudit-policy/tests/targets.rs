//! What targets answer: nodes, libraries, names, derived targets, overlays.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use NodeVerdict::{Allowed, NotCovered, TooNew, Unknown};
use abiaudit_policy::{
    Arch, Libc, LibraryVerdict, NodeVerdict, Overlay, OverlayError, PolicySet, Target, UnknownTarget,
    WhyUnknown,
};

fn target(tag: &str) -> Target {
    PolicySet::builtin().target(tag).unwrap()
}

fn too_new(ceiling: &str) -> NodeVerdict {
    TooNew { ceiling: Some(ceiling.into()) }
}

#[test]
fn nodes_up_to_the_ceiling_are_allowed() {
    let x86_64 = target("manylinux_2_28_x86_64");
    assert_eq!(x86_64.allows_node("GLIBC_2.28"), Allowed);
    assert_eq!(x86_64.allows_node("GLIBC_2.2.5"), Allowed);
    assert_eq!(x86_64.allows_node("GLIBC_2.29"), too_new("2.28"));
    assert_eq!(x86_64.allows_node("GLIBCXX_3.4.25"), too_new("3.4.24"), "RHEL 8 has it, others do not");
    assert_eq!(x86_64.allows_node("CXXABI_FLOAT128"), Allowed);
    assert_eq!(x86_64.allows_node("GLIBC_ABI_DT_RELR"), too_new("2.28"));
    assert_eq!(x86_64.allows_node("GLIBC_2.77"), too_new("2.28"), "no list can know it, yet it is too new");
}

#[test]
fn a_node_that_exists_nowhere_is_unknown() {
    let x86_64 = target("manylinux_2_41_x86_64");
    for node in ["GLIBC_PRIVATE", "GLIBC_2.0", "GLIBC_2.37", "GLIBC_02.17", "GLIBC_2.17.", "CXXABI_ARM_1.3.3"]
    {
        assert_eq!(x86_64.allows_node(node), Unknown, "{node}");
    }
    assert_eq!(target("manylinux_2_41_armv7l").allows_node("CXXABI_ARM_1.3.3"), Allowed);
    assert_eq!(target("manylinux_2_41_i686").allows_node("GLIBC_2.0"), Allowed);
}

#[test]
fn a_family_without_a_policy_is_not_covered() {
    let x86_64 = target("manylinux_2_28_x86_64");
    for node in ["OPENSSL_3.0.0", "GOMP_4.0", "libcudart.so.12", "", "_"] {
        assert_eq!(x86_64.allows_node(node), NotCovered, "{node:?}");
    }
    assert_eq!(target("musllinux_1_2_x86_64").allows_node("GLIBC_2.17"), NotCovered);
}

#[test]
fn a_judged_family_may_have_no_node_at_all() {
    let old = target("manylinux_2_5_x86_64");
    assert_eq!(old.ceiling("ZLIB"), None);
    assert_eq!(old.allows_node("ZLIB_1.2.0"), TooNew { ceiling: None });
    assert_eq!(old.allows_node("LIBATOMIC_1.0"), TooNew { ceiling: None });
}

#[test]
fn oddities_of_architectures() {
    let aarch64 = target("manylinux_2_17_aarch64");
    let glibc: Vec<String> = aarch64.nodes().filter(|node| node.starts_with("GLIBC_")).collect();
    assert_eq!(glibc, ["GLIBC_2.0", "GLIBC_2.17", "GLIBC_2.18"]);
    assert!(aarch64.forbidden_symbols("libc.so.6").contains(&"__cxa_thread_atexit_impl"));
    assert_eq!(aarch64.ceiling("GCC"), Some("4.7.0"));
    assert_eq!(target("manylinux_2_34_aarch64").ceiling("GCC"), Some("11.0"));
    let ppc64le = target("manylinux_2_34_ppc64le");
    assert_eq!(ppc64le.allows_node("GLIBCXX_IEEE128_3.4.29"), Allowed);
    assert_eq!(ppc64le.allows_node("GLIBCXX_IEEE128_3.4.30"), too_new("3.4.29"));
    assert_eq!(ppc64le.allows_node("GLIBCXX_LDBL_3.4.29"), Allowed);
    assert_eq!(target("manylinux_2_36_riscv64").allows_node("GLIBC_ABI_DT_RELR"), too_new("2.36"));
}

#[test]
fn names_and_aliases_are_the_same_target() {
    for (alias, tag) in [
        ("manylinux1_i686", "manylinux_2_5_i686"),
        ("manylinux2010_x86_64", "manylinux_2_12_x86_64"),
        ("manylinux2014_ppc64le", "manylinux_2_17_ppc64le"),
        ("manylinux2014_ppc64", "manylinux_2_17_ppc64"),
    ] {
        assert_eq!(target(alias).tag(), tag);
    }
    let musl = target("musllinux_1_2_armv7l");
    assert_eq!((musl.libc(), musl.arch(), musl.musl_version()), (Libc::Musl, Arch::Armv7l, Some((1, 2))));
    assert_eq!(musl.glibc_version(), None);
    let glibc = target("manylinux_2_28_x86_64");
    assert_eq!(glibc.glibc_version(), Some((2, 28)));
    assert_eq!(glibc.baseline_isa(), Some("x86-64-v1"));
}

#[test]
fn between_two_policies_the_older_one_lends_all_but_glibc() {
    let between = target("manylinux_2_33_x86_64");
    assert_eq!(between.tag(), "manylinux_2_33_x86_64");
    assert_eq!((between.based_on(), between.is_provisional()), ("manylinux_2_31", false));
    assert_eq!(between.ceiling("GLIBC"), Some("2.33"));
    assert_eq!(between.ceiling("GLIBCXX"), Some("3.4.28"));
    assert_eq!(between.allows_node("GLIBC_2.34"), too_new("2.33"));
    assert_eq!(
        between.forbidden_symbols("libz.so.1"),
        target("manylinux_2_31_x86_64").forbidden_symbols("libz.so.1")
    );
    // glibc 2.19 to 2.21 brought no node on x86_64.
    assert_eq!(target("manylinux_2_20_x86_64").ceiling("GLIBC"), Some("2.18"));
    assert_eq!(target("manylinux_2_19_s390x").ceiling("GLIBC"), Some("2.19"));
}

#[test]
fn after_the_last_policy_targets_are_provisional() {
    let next = target("manylinux_2_42_x86_64");
    assert!(next.is_provisional());
    assert_eq!(next.allows_node("GLIBC_2.42"), Allowed);
    assert_eq!(next.allows_node("GLIBC_2.43"), too_new("2.42"));
    assert_eq!(next.allows_node("GLIBC_ABI_GNU2_TLS"), too_new("2.42"));
    assert_eq!(next.allows_node("GLIBCXX_3.4.34"), too_new("3.4.33"));
    assert_eq!(target("manylinux_2_43_x86_64").allows_node("GLIBC_ABI_GNU2_TLS"), Allowed);
    assert_eq!(target("manylinux_2_43_aarch64").allows_node("GLIBC_ABI_GNU2_TLS"), Unknown);
    let future = target("manylinux_2_50_x86_64");
    assert_eq!(future.ceiling("GLIBC"), Some("2.50"));
    assert_eq!(future.allows_node("GLIBC_2.50"), Allowed);
    assert_eq!(future.allows_node("GLIBC_2.51"), too_new("2.50"));
    assert_eq!(future.allows_node("GLIBC_2.37"), Unknown);
    assert_eq!(future.allows_node("GLIBC_PRIVATE"), Unknown);
}

#[test]
fn unknown_tags_name_the_nearest() {
    let cases = [
        ("manylinux_2_17_riscv64", WhyUnknown::TooOld, Some("manylinux_2_31_riscv64")),
        ("manylinux2014_loongarch64", WhyUnknown::TooOld, Some("manylinux_2_36_loongarch64")),
        ("manylinux_2_4_x86_64", WhyUnknown::TooOld, Some("manylinux_2_5_x86_64")),
        ("manylinux_2_28_amd64", WhyUnknown::Architecture, Some("manylinux_2_28_x86_64")),
        ("manylinx2014_aarch64", WhyUnknown::Policy, Some("manylinux2014_aarch64")),
        ("manylinux_2_028_x86_64", WhyUnknown::Policy, Some("manylinux_2_28_x86_64")),
        ("musllinux_1_0_x86_64", WhyUnknown::TooOld, Some("musllinux_1_1_x86_64")),
        ("musllinux_1_3_x86_64", WhyUnknown::TooNew, Some("musllinux_1_2_x86_64")),
        ("musllinux_1_1_loongarch64", WhyUnknown::TooOld, Some("musllinux_1_2_loongarch64")),
        ("musllinux_1_2_ppc64", WhyUnknown::NotCovered, None),
    ];
    for (tag, why, nearest) in cases {
        let error = PolicySet::builtin().target(tag).unwrap_err();
        let expected = UnknownTarget { tag: tag.into(), why, nearest: nearest.map(str::to_owned) };
        assert_eq!(error, expected);
        assert!(error.to_string().contains(tag));
    }
    for tag in [
        "",
        "_",
        "_x86_64",
        "x86_64",
        "any",
        "linux_x86_64",
        "manylinux_2_99999999999_x86_64",
        "manylinux_2_+3_x86_64",
    ] {
        assert!(PolicySet::builtin().target(tag).is_err(), "{tag:?}");
    }
    let long = format!("{}_x86_64", "m".repeat(100_000));
    assert_eq!(PolicySet::builtin().target(&long).unwrap_err().nearest, None);
}

#[test]
fn libraries_of_glibc_and_musl() {
    let glibc = target("manylinux_2_17_x86_64");
    assert_eq!(glibc.library("libc.so.6"), LibraryVerdict::Allowed);
    assert_eq!(glibc.library("libmvec.so.1"), LibraryVerdict::NotAllowed);
    assert_eq!(target("manylinux_2_24_x86_64").library("libmvec.so.1"), LibraryVerdict::Allowed);
    assert_eq!(glibc.library("ld-linux-x86-64.so.2"), LibraryVerdict::DynamicLinker);
    assert_eq!(target("manylinux_2_17_ppc64le").library("ld64.so.2"), LibraryVerdict::DynamicLinker);
    assert_eq!(glibc.library("libexpat.so.1"), LibraryVerdict::Allowed);
    assert_eq!(target("manylinux1_x86_64").library("libexpat.so.1"), LibraryVerdict::NotAllowed);
    for (tag, own) in [
        ("musllinux_1_2_x86_64", "libc.musl-x86_64.so.1"),
        ("musllinux_1_1_i686", "libc.musl-x86.so.1"),
        ("musllinux_1_2_armv7l", "libc.musl-armv7.so.1"),
    ] {
        let musl = target(tag);
        for soname in [own, "libc.so", "libz.so.1"] {
            assert_eq!(musl.library(soname), LibraryVerdict::Allowed, "{tag} {soname}");
        }
        assert_eq!(musl.library("libc.musl-s390x.so.1"), LibraryVerdict::NotAllowed);
        assert_eq!(musl.library("libstdc++.so.6"), LibraryVerdict::NotAllowed);
        assert_eq!(musl.library("ld-musl-x86_64.so.1"), LibraryVerdict::DynamicLinker);
    }
}

const OVERLAY: &str = r#"
[[libraries]]
soname = "libexpat.so.*"
action = "bundle"
reason = "we need the new parser"

[[libraries]]
soname = "libhdf5.so.310"
action = "allow"
targets = ["manylinux_2_28"]
reason = "the farm has it"

[[libraries]]
soname = "libgomp*"
action = "deny"
targets = ["manylinux2014_x86_64"]
reason = "one OpenMP only"

[[ceilings]]
family = "GLIBC"
at_most = "2.26"
reason = "Amazon Linux 2"
"#;

#[test]
fn an_overlay_changes_the_targets_it_names() {
    let overlay: Overlay = toml::from_str(OVERLAY).unwrap();
    let policies = PolicySet::builtin().with_overlay(&overlay).unwrap();
    let new = policies.target("manylinux_2_28_x86_64").unwrap();
    let old = policies.target("manylinux_2_17_x86_64").unwrap();
    let derived = policies.target("manylinux_2_29_x86_64").unwrap();
    let bundle = LibraryVerdict::MustBundle { reason: "we need the new parser".into() };
    for target in [&new, &old, &derived] {
        assert_eq!(target.library("libexpat.so.1"), bundle);
    }
    assert_eq!(new.library("libhdf5.so.310"), LibraryVerdict::Allowed);
    assert_eq!(old.library("libhdf5.so.310"), LibraryVerdict::NotAllowed);
    assert_eq!(derived.library("libhdf5.so.310"), LibraryVerdict::NotAllowed);
    assert_eq!(old.library("libgomp.so.1"), LibraryVerdict::Denied { reason: "one OpenMP only".into() });
    assert_eq!(new.library("libgomp.so.1"), LibraryVerdict::NotAllowed);
    assert_eq!(new.allows_node("GLIBC_2.27"), too_new("2.26"));
    assert_eq!(derived.ceiling("GLIBC"), Some("2.26"));
    assert_eq!(old.ceiling("GLIBC"), Some("2.17"), "an overlay never raises a ceiling");
    let newest = policies.target("manylinux_2_41_x86_64").unwrap();
    assert_eq!(newest.allows_node("GLIBC_ABI_DT_RELR"), too_new("2.26"), "the node came with 2.36");
    assert_eq!(newest.allows_node("CXXABI_FLOAT128"), Allowed);
    let ladder = policies.ladder(Libc::Glibc, Arch::X86_64);
    assert_eq!(ladder.len(), 16);
    assert!(ladder.iter().all(|target| target.library("libexpat.so.1") == bundle));
}

#[test]
fn an_overlay_that_cannot_be_meant_is_refused() {
    let refuse = |text: &str| {
        let overlay: Overlay = toml::from_str(text).unwrap();
        PolicySet::builtin().with_overlay(&overlay).unwrap_err()
    };
    let library = |rest: &str| format!("[[libraries]]\nsoname = 'liba.so'\naction = 'allow'\n{rest}");
    let ceiling = |rest: &str| format!("[[ceilings]]\nreason = 'r'\n{rest}");
    assert_eq!(refuse(&library("reason = ' '")), OverlayError::NoReason { subject: "liba.so".into() });
    assert_eq!(
        refuse(&library("reason = 'r'\ntargets = ['manylinux2015']")),
        OverlayError::UnknownTarget { subject: "liba.so".into(), target: "manylinux2015".into() }
    );
    assert_eq!(
        refuse(&ceiling("family = 'GLIB'\nat_most = '2.17'")),
        OverlayError::UnknownFamily { family: "GLIB".into() }
    );
    assert_eq!(
        refuse(&ceiling("family = 'GLIBC'\nat_most = 'GLIBC_2.17'")),
        OverlayError::BadVersion { family: "GLIBC".into(), at_most: "GLIBC_2.17".into() }
    );
    for broken in [
        library(""),
        library("reason = 'r'\ntarget = ['manylinux2014']"),
        "library = []".to_owned(),
        ceiling("family = 'GLIBC'"),
        library("reason = 'r'").replace("allow", "permit"),
    ] {
        assert!(toml::from_str::<Overlay>(&broken).is_err(), "{broken}");
    }
}
