//! A version is needed from a library of the wheel that does not define it.
//!
//! ## What it does
//! For each version that an object needs from a library that the loader finds in the wheel, looks whether that library
//! defines it. A library without any versions satisfies every need (the loader only warns), and weak needs may fail.
//!
//! ## Why is this bad?
//! ``ImportError: libcrypto.so.1.1: version `OPENSSL_1_1_1' not found (required by ...)``.
//!
//! ## Example
//! The wheel carries an older `libcrypto.so.1.1` than the one that its extension was linked with, or a library whose
//! rename changed the version node too.
//!
//! ## How to mend it
//! Vendor the very library that was linked, or rebuild against the one that is vendored.
//!
//! ## References
//! glibc elf/dl-version.c (`match_symbol`); auditwheel #217.

use std::collections::BTreeMap;

use abiaudit_loader::search::Outcome;
use abiaudit_policy::Libc;

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI109", "needs-no-such-version", Error, "abi109_needs_no_such_version.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    // musl's loader looks at names only.
    if audit.platform.is_none_or(|p| p.libc == Libc::Musl) {
        return;
    }
    for (index, entry) in audit.counted() {
        let found: BTreeMap<&str, usize> = audit
            .resolution
            .needs_of(index)
            .iter()
            .filter_map(|need| match need.outcome {
                Outcome::Found { library, .. } => Some((need.name.as_str(), library)),
                _ => None,
            })
            .collect();
        for need in &entry.object.versions.needs {
            let name = need.library.to_text();
            let Some((library, provider)) =
                found.get(name.as_str()).and_then(|&l| Some((l, audit.objects.get(l)?)))
            else {
                continue;
            };
            let defined = &provider.object.versions.definitions;
            if defined.is_empty() {
                continue;
            }
            let missing: Vec<String> = need
                .versions
                .iter()
                .filter(|v| !v.weak && !defined.iter().any(|d| d.name == v.name))
                .map(|v| v.name.to_text())
                .collect();
            if let Some(first) = missing.first() {
                let message = format!(
                    "needs {first} from {name}, but {} does not define it",
                    audit.member_name(library)
                );
                let evidence =
                    missing.iter().map(|v| Evidence::default().with_version(v).with_library(&name));
                sink.member(&entry.member.name, message)
                    .help("vendor the very library that was linked, or rebuild against the one in the wheel")
                    .evidence(evidence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    fn wheel(library: &ElfWriter) -> TestWheel {
        let elf = module().needed("libcrypto.so.1.1").runpath("$ORIGIN").undefined_versioned(
            "EVP_new",
            "libcrypto.so.1.1",
            "OPENSSL_1_1_1",
        );
        TestWheel::new("p", "1", TAGS).elf("p/m.so", &elf).elf("p/libcrypto.so.1.1", library)
    }

    fn library() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).soname("libcrypto.so.1.1")
    }

    #[test]
    fn an_older_copy_lacks_the_version() {
        let found = findings("ABI109", &wheel(&library().define_versioned("EVP_new", "OPENSSL_1_1_0")));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].message,
            "needs OPENSSL_1_1_1 from libcrypto.so.1.1, but p/libcrypto.so.1.1 does not define it"
        );
    }

    #[test]
    fn silent_where_it_is_defined_or_nothing_has_a_version() {
        assert!(
            findings("ABI109", &wheel(&library().define_versioned("EVP_new", "OPENSSL_1_1_1"))).is_empty()
        );
        assert!(findings("ABI109", &wheel(&library().define("EVP_new"))).is_empty());
    }
}
