//! A symbol is newer than the tag's systems have.
//!
//! ## What it does
//! For every platform tag that the wheel claims, looks at each symbol version that its objects need from a system
//! library and reports those that the oldest system of the tag lacks; with each the object, the library, and since
//! when it exists. References without a version count too: they need the symbol itself to be there.
//!
//! ## Why is this bad?
//! The loader refuses the file: ``ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ...)``.
//! A reference without a version fails later, with `undefined symbol`.
//!
//! ## Example
//! A wheel tagged `manylinux_2_28` whose extension was built on Ubuntu 22.04 and calls `pthread_create@GLIBC_2.34`.
//!
//! ## How to mend it
//! Build in an image whose libraries are as old as the tag: the compilers of the manylinux images link C++ code that is
//! newer than the system's libstdc++ statically, as `abiaudit toolchain create` makes any GCC do. `abiaudit repair` takes
//! older versions of glibc's symbols in the finished file, where there are any. Or give the wheel the tag that it honours.
//!
//! ## References
//! PEP 600; glibc elf/dl-version.c; auditwheel #36, #354 (which symbol is it?).

use std::collections::BTreeMap;

use crate::audit::Audit;
use crate::blockers::{SymbolBlocker, SymbolReason};
use crate::demangle::demangle;
use crate::finding::{Evidence, Sink};
use crate::nodes;

super::rule!("ABI101", "symbol-too-new", Error, "abi101_symbol_too_new.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    for claim in &verdict.claims {
        let mut by_object: BTreeMap<usize, Vec<&SymbolBlocker>> = BTreeMap::new();
        for blocker in claim.blockers.symbols.iter().filter(|b| is_too_new(&b.reason)) {
            by_object.entry(blocker.object).or_default().push(blocker);
        }
        for (object, mut blockers) in by_object {
            // The newest demand first: it decides which tag is honest.
            blockers.sort_by(|a, b| newest_first(a, b));
            let message = message(&claim.tag, &blockers);
            sink.member(audit.member_name(object), message)
                .help(help(&claim.tag, &blockers))
                .evidence(blockers.into_iter().map(evidence));
        }
    }
}

/// What no release has, or newer ones have no longer, is ABI102's, and packed relocations are ABI108's.
fn is_too_new(reason: &SymbolReason) -> bool {
    matches!(reason, SymbolReason::TooNew | SymbolReason::Unversioned)
}

fn newest_first(a: &SymbolBlocker, b: &SymbolBlocker) -> std::cmp::Ordering {
    nodes::newest_first(node(a), node(b)).then_with(|| a.cmp(b))
}

fn node(blocker: &SymbolBlocker) -> &str {
    blocker.node.as_deref().unwrap_or_default()
}

/// How many symbols, and the newest demand of each family, which decides; `blockers` have it first.
fn message(tag: &str, blockers: &[&SymbolBlocker]) -> String {
    let mut families: Vec<&str> = Vec::new();
    let mut demands = Vec::new();
    for blocker in blockers {
        let family = nodes::split(node(blocker)).0;
        if families.contains(&family) {
            continue;
        }
        families.push(family);
        demands.push(match &blocker.ceiling {
            Some(ceiling) => format!("{} ({tag} ends at {ceiling})", node(blocker)),
            None => format!("{} ({tag} has none of that family)", node(blocker)),
        });
    }
    let demands = demands.join(", ");
    match (blockers.len(), blockers[0].symbol.as_deref()) {
        (1, Some(symbol)) => format!("{} needs {demands} from {}", demangle(symbol), blockers[0].library),
        (1, None) => format!("needs {demands} from {}", blockers[0].library),
        (n, _) => format!("{n} symbols are too new, up to {demands}"),
    }
}

fn help(tag: &str, blockers: &[&SymbolBlocker]) -> String {
    let cxx = |b: &&SymbolBlocker| node(b).starts_with("GLIBCXX_") || node(b).starts_with("CXXABI_");
    if blockers.iter().any(cxx) {
        let how = if has_toolchain(tag) {
            format!("build with the split toolchain (abiaudit toolchain create --target {tag}), or ")
        } else {
            "build ".to_owned()
        };
        how + "in an image as old as the tag, whose compiler links newer C++ code statically, or give the wheel the tag \
               that it honours"
    } else {
        "build in an image as old as the tag, take older versions of the symbols where there are any (abiaudit repair), \
         or give the wheel the tag that it honours"
            .to_owned()
    }
}

/// `abiaudit toolchain create` makes toolchains for these (`abiaudit-toolchain`), short of manylinux_2_17, which has no
/// `std::string` of today's compilers.
fn has_toolchain(tag: &str) -> bool {
    ["manylinux_2_24_", "manylinux_2_28_", "manylinux_2_31_", "manylinux_2_34_"]
        .iter()
        .any(|policy| tag.strip_prefix(policy).is_some_and(|arch| matches!(arch, "x86_64" | "aarch64")))
}

fn evidence(blocker: &SymbolBlocker) -> Evidence {
    let unversioned = blocker.reason == SymbolReason::Unversioned;
    Evidence {
        symbol: blocker.symbol.clone(),
        version: blocker.node.clone(),
        library: Some(blocker.library.clone()),
        note: unversioned.then(|| "reference without a version".to_owned()),
        member: None,
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module, wheel};

    #[test]
    fn names_symbol_node_library_and_ceiling() {
        let elf = module()
            .undefined_versioned("dlopen", "libc.so.6", "GLIBC_2.34")
            .undefined_versioned("getrandom", "libc.so.6", "GLIBC_2.25")
            .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14");
        let found = findings("ABI101", &wheel(&elf));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].message,
            "2 symbols are too new, up to GLIBC_2.34 (manylinux_2_17_x86_64 ends at 2.17)"
        );
        let nodes: Vec<_> = found[0].evidence.iter().map(|e| e.version.as_deref().unwrap()).collect();
        assert_eq!(nodes, ["GLIBC_2.34", "GLIBC_2.25"], "memcpy is old enough; the newest comes first");
    }

    #[test]
    fn each_family_is_named() {
        let elf = module()
            .needed("libstdc++.so.6")
            .undefined_versioned("dlopen", "libc.so.6", "GLIBC_2.34")
            .undefined_versioned("_ZSt28__throw_bad_array_new_lengthv", "libstdc++.so.6", "GLIBCXX_3.4.29");
        let found = findings("ABI101", &wheel(&elf));
        assert_eq!(
            found[0].message,
            "2 symbols are too new, up to GLIBC_2.34 (manylinux_2_17_x86_64 ends at 2.17), \
             GLIBCXX_3.4.29 (manylinux_2_17_x86_64 ends at 3.4.19)"
        );
        assert!(found[0].help.as_deref().unwrap().contains("C++"));
    }

    #[test]
    fn a_reference_without_a_version_counts_too() {
        let found = findings("ABI101", &wheel(&module().undefined("arc4random")));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence[0].version.as_deref(), Some("GLIBC_2.36"));
        assert!(found[0].evidence[0].note.as_deref().unwrap().contains("without a version"));
    }

    #[test]
    fn a_program_has_only_the_libraries_that_it_asks_for() {
        let program = ElfWriter::new(Arch::X86_64)
            .object_type(2)
            .interpreter("/lib64/ld-linux-x86-64.so.2")
            .needed("libc.so.6")
            .undefined("dlopen");
        let found =
            findings("ABI101", &TestWheel::new("p", "1", TAGS).program("p/bin/tool", elf_bytes(&program)));
        assert_eq!(found[0].evidence[0].version.as_deref(), Some("GLIBC_2.34"), "libdl is not NEEDED");
        let needed = program.needed("libdl.so.2");
        let wheel = TestWheel::new("p", "1", TAGS).program("p/bin/tool", elf_bytes(&needed));
        assert!(findings("ABI101", &wheel).is_empty());
        assert!(findings("ABI101", &wheel_of_module_with_dlopen()).is_empty(), "the interpreter has libdl");
    }

    fn elf_bytes(elf: &ElfWriter) -> Vec<u8> {
        elf.build().into_bytes()
    }

    fn wheel_of_module_with_dlopen() -> TestWheel {
        wheel(&module().undefined("dlopen"))
    }

    #[test]
    fn silent_where_the_wheel_itself_has_the_symbol() {
        let library = ElfWriter::new(Arch::X86_64).soname("libown.so").define("arc4random");
        let elf = module().needed("libown.so").runpath("$ORIGIN").undefined("arc4random");
        assert!(findings("ABI101", &wheel(&elf).elf("p/libown.so", &library)).is_empty());
    }

    #[test]
    fn silent_about_versions_of_a_vendored_library() {
        let library =
            ElfWriter::new(Arch::X86_64).soname("libown.so").define_versioned("f", "GLIBCXX_3.4.99");
        let elf = module().needed("libown.so").runpath("$ORIGIN").undefined_versioned(
            "f",
            "libown.so",
            "GLIBCXX_3.4.99",
        );
        assert!(findings("ABI101", &wheel(&elf).elf("p/libown.so", &library)).is_empty());
    }
}
