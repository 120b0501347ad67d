//! The policies against auditwheel's, and the ceilings that everyone knows.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use abiaudit_policy::{Arch, Libc, LibraryVerdict, NodeVerdict, PolicySet, Target};
use sha2::{Digest, Sha256};

/// SHA-256 of the text that [`canonical`] makes, made once from the JSON files of auditwheel 6.8.2 by other means.
const AUDITWHEEL_6_8_2: &str = "72667c5bf14819909c1faf9eb35b1f5a3e0e8208133d39c9c6abf53ca706cc79";

fn listed(libc: Libc) -> BTreeMap<(u32, u32), Vec<Target>> {
    let mut policies: BTreeMap<(u32, u32), Vec<Target>> = BTreeMap::new();
    for target in PolicySet::builtin().targets().filter(|target| target.libc() == libc) {
        let release = target.glibc_version().or(target.musl_version()).unwrap();
        policies.entry(release).or_default().push(target.clone());
    }
    for targets in policies.values_mut() {
        targets.sort_by_key(Target::tag);
    }
    policies
}

fn forbidden(target: &Target) -> BTreeMap<String, BTreeSet<&'static str>> {
    let libraries = target.libraries().map(|library| {
        let symbols = target.forbidden_symbols(&library).iter().copied().collect();
        (library.into_owned(), symbols)
    });
    libraries.filter(|(_, symbols): &(_, BTreeSet<_>)| !symbols.is_empty()).collect()
}

/// The libraries under the names that auditwheel's file has.
fn libraries(target: &Target) -> BTreeSet<String> {
    target
        .libraries()
        .map(std::borrow::Cow::into_owned)
        .filter(|name| !name.starts_with("libc.musl-"))
        .collect()
}

fn join<'a>(items: impl IntoIterator<Item = &'a (impl AsRef<str> + 'a + ?Sized)>) -> String {
    items.into_iter().map(AsRef::as_ref).collect::<Vec<_>>().join(",")
}

/// One line a row (tag, aliases, all nodes), then one a policy (libraries, forbidden symbols).
fn canonical() -> String {
    let mut text = String::new();
    for targets in listed(Libc::Glibc).into_values().chain(listed(Libc::Musl).into_values()) {
        for target in &targets {
            let nodes: BTreeSet<String> = target.nodes().collect();
            writeln!(text, "{target}|{}|{}", target.aliases().join(","), join(&nodes)).unwrap();
        }
        let policy = &targets[0];
        let forbidden: Vec<String> = forbidden(policy)
            .iter()
            .map(|(library, symbols)| format!("{library}:{}", join(symbols.iter().copied())))
            .collect();
        writeln!(text, "{}|{}|{}", policy.policy(), join(&libraries(policy)), forbidden.join(";")).unwrap();
    }
    text
}

#[test]
fn all_rows_have_the_digest_of_auditwheels() {
    let digest = Sha256::digest(canonical());
    let digest = digest.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    assert_eq!(digest, AUDITWHEEL_6_8_2, "a policy changed: if on purpose, compare with auditwheel's files");
}

#[test]
fn there_are_16_glibc_policies_in_104_rows_and_2_of_musl() {
    let glibc = listed(Libc::Glibc);
    assert_eq!(glibc.len(), 16);
    assert_eq!(glibc.values().map(Vec::len).sum::<usize>(), 104);
    let arches =
        |release| glibc[&release].iter().map(|target| target.arch().tag()).collect::<Vec<_>>().join(" ");
    assert_eq!(arches((2, 5)), "i686 x86_64");
    assert_eq!(arches((2, 17)), "aarch64 armv7l i686 ppc64 ppc64le s390x x86_64");
    assert_eq!(arches((2, 28)), "aarch64 armv7l i686 ppc64le s390x x86_64");
    assert_eq!(arches((2, 31)), "aarch64 armv7l i686 ppc64le riscv64 s390x x86_64");
    assert_eq!(arches((2, 41)), "aarch64 armv7l i686 loongarch64 ppc64le riscv64 s390x x86_64");
    let musl = listed(Libc::Musl);
    assert_eq!(musl.keys().copied().collect::<Vec<_>>(), [(1, 1), (1, 2)]);
    assert_eq!(musl.values().map(Vec::len).collect::<Vec<_>>(), [7, 8]);
}

#[test]
fn x86_64_ceilings() {
    let expected = [
        ("2_5", "2.5 3.4.8 1.3.1 4.2.0 - -"),
        ("2_12", "2.12 3.4.13 1.3.3 4.3.0 1.2.2.4 -"),
        ("2_17", "2.17 3.4.19 1.3.7 4.8.0 1.2.5.2 -"),
        ("2_24", "2.24 3.4.22 1.3.10 4.8.0 1.2.5.2 1.2"),
        ("2_26", "2.26 3.4.22 1.3.10 4.8.0 1.2.5.2 1.2"),
        ("2_28", "2.28 3.4.24 1.3.11 7.0.0 1.2.9 1.2"),
        ("2_31", "2.31 3.4.28 1.3.12 7.0.0 1.2.9 1.2"),
        ("2_34", "2.34 3.4.29 1.3.13 7.0.0 1.2.9 1.2"),
        ("2_35", "2.35 3.4.30 1.3.13 12.0.0 1.2.9 1.2"),
        ("2_37", "2.36 3.4.30 1.3.13 12.0.0 1.2.12 1.2"),
        ("2_39", "2.39 3.4.33 1.3.15 14.0.0 1.2.12 1.2"),
        ("2_41", "2.41 3.4.33 1.3.15 14.0.0 1.2.12 1.2"),
    ];
    let policies = PolicySet::builtin();
    for (name, ceilings) in expected {
        let target = policies.target(&format!("manylinux_{name}_x86_64")).unwrap();
        let found = ["GLIBC", "GLIBCXX", "CXXABI", "GCC", "ZLIB", "LIBATOMIC"];
        let found = found.map(|family| target.ceiling(family).unwrap_or("-")).join(" ");
        assert_eq!(found, ceilings, "{name}");
    }
}

/// PEP 600: what an older target has, a newer one has too.
#[test]
fn a_ladder_only_grows() {
    let policies = PolicySet::builtin();
    for arch in Arch::ALL {
        for pair in policies.ladder(Libc::Glibc, arch).windows(2) {
            let [older, newer] = pair else { unreachable!() };
            assert!(older.glibc_version() < newer.glibc_version());
            for node in older.nodes() {
                assert_eq!(
                    newer.allows_node(&node),
                    NodeVerdict::Allowed,
                    "{node} is in {older}, not in {newer}"
                );
            }
            for library in older.libraries() {
                assert_eq!(newer.library(&library), LibraryVerdict::Allowed, "{library}");
            }
        }
    }
}

/// Row by row against the files themselves, which are not ours to keep.
#[test]
fn every_row_equals_auditwheels() {
    let Ok(directory) = std::env::var("ABIAUDIT_AUDITWHEEL_POLICY") else {
        // Written past the test harness, which hides what the print macros say in a test that passes.
        let notice =
            "SKIPPED: ABIAUDIT_AUDITWHEEL_POLICY does not name the directory of auditwheel's policy files";
        writeln!(std::io::stderr(), "{notice}").unwrap();
        return;
    };
    let read = |name: &str| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(Path::new(&directory).join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let mut rows = 0;
    let policies = PolicySet::builtin();
    for policy in read("manylinux-policy.json").iter().chain(&read("musllinux-policy.json")) {
        let name = policy["name"].as_str().unwrap();
        for (arch, families) in policy["symbol_versions"].as_object().unwrap() {
            rows += 1;
            let target = policies.target(&format!("{name}_{arch}")).unwrap();
            assert!(!target.is_provisional() && target.based_on() == name, "{target} is not listed");
            let expected: BTreeSet<String> = families
                .as_object()
                .unwrap()
                .iter()
                .flat_map(|(family, versions)| {
                    versions
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(move |v| format!("{family}_{}", v.as_str().unwrap()))
                })
                .collect();
            assert_eq!(target.nodes().collect::<BTreeSet<_>>(), expected, "{target}");
            let families: Vec<&String> = families.as_object().unwrap().keys().collect();
            assert_eq!(
                target.families().collect::<BTreeSet<_>>(),
                families.iter().map(|f| f.as_str()).collect()
            );
            assert_eq!(libraries(&target), strings(&policy["lib_whitelist"]), "{target}");
            let blacklist: BTreeMap<String, BTreeSet<String>> = policy["blacklist"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(library, symbols)| (library.clone(), strings(symbols)))
                .collect();
            let forbidden: BTreeMap<String, BTreeSet<String>> = forbidden(&target)
                .into_iter()
                .map(|(library, symbols)| (library, symbols.into_iter().map(str::to_owned).collect()))
                .collect();
            assert_eq!(forbidden, blacklist, "{target}");
            for alias in strings(&policy["aliases"]) {
                assert_eq!(policies.target(&format!("{alias}_{arch}")).unwrap(), target);
            }
        }
    }
    assert_eq!(rows, 104 + 15, "a newer auditwheel has other rows");
}

fn strings(list: &serde_json::Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}
