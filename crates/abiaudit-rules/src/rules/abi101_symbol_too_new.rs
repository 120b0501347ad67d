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
//! Build in an image whose libraries are as old as the tag, or link through the split toolchain
//! (`abiaudit toolchain create`), which keeps new C++ code on old systems; or give the wheel the tag that it honours.
//!
//! ## References
//! PEP 600; glibc elf/dl-version.c; auditwheel #36, #354 (which symbol is it?).

use std::collections::BTreeMap;

use crate::audit::Audit;
use crate::blockers::{SymbolBlocker, SymbolReason};
use crate::demangle::demangle;
use crate::finding::{Evidence, Sink};
use crate::symbol_tables::since;

super::rule!("ABI101", "symbol-too-new", Error, "abi101_symbol_too_new.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    for claim in &verdict.claims {
        let mut by_object: BTreeMap<usize, Vec<&SymbolBlocker>> = BTreeMap::new();
        for blocker in claim.blockers.symbols.iter().filter(|b| b.reason != SymbolReason::NoSuchNode) {
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

fn newest_first(a: &SymbolBlocker, b: &SymbolBlocker) -> std::cmp::Ordering {
    let key = |s: &SymbolBlocker| s.node.split_once('_').map(|(f, v)| (f.to_owned(), v.to_owned()));
    let (Some((family_a, a_version)), Some((family_b, b_version))) = (key(a), key(b)) else {
        return a.cmp(b);
    };
    let newer = abiaudit_policy::compare_versions(&b_version, &a_version);
    family_a
        .cmp(&family_b)
        .then(newer.unwrap_or(std::cmp::Ordering::Equal))
        .then_with(|| a.symbol.cmp(&b.symbol))
}

/// Names the newest demand of each family; `blockers` have it first.
fn message(tag: &str, blockers: &[&SymbolBlocker]) -> String {
    let mut families: Vec<&str> = Vec::new();
    let mut texts = Vec::new();
    for blocker in blockers {
        let family = blocker.node.split_once('_').map_or(blocker.node.as_str(), |(family, _)| family);
        if families.contains(&family) {
            continue;
        }
        families.push(family);
        let ceiling = match &blocker.ceiling {
            Some(ceiling) => format!("{tag} ends at {ceiling}"),
            None => format!("{tag} has none of that family"),
        };
        let what = match &blocker.symbol {
            Some(symbol) => format!("{} needs {}", demangle(symbol), blocker.node),
            None => format!("needs {}", blocker.node),
        };
        texts.push(format!("{what} from {} ({ceiling})", blocker.library));
    }
    let more = match blockers.len() - texts.len() {
        0 => String::new(),
        1 => ", and 1 more symbol".to_owned(),
        n => format!(", and {n} more symbols"),
    };
    format!("{}{more}", texts.join("; "))
}

fn help(tag: &str, blockers: &[&SymbolBlocker]) -> String {
    let cxx = |b: &&&SymbolBlocker| b.node.starts_with("GLIBCXX_") || b.node.starts_with("CXXABI_");
    if blockers.iter().any(|b| cxx(&b)) {
        format!(
            "link through the split toolchain (abiaudit toolchain create --target {tag}), build in an image as old as the tag, or retag"
        )
    } else {
        "build in an image as old as the tag, or give the wheel the tag that it honours".to_owned()
    }
}

fn evidence(blocker: &SymbolBlocker) -> Evidence {
    let mut notes: Vec<String> = since(&blocker.node).into_iter().collect();
    if blocker.reason == SymbolReason::Unversioned {
        notes.push("reference without a version".to_owned());
    }
    Evidence {
        symbol: blocker.symbol.clone(),
        version: Some(blocker.node.clone()),
        library: Some(blocker.library.clone()),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        member: None,
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    const TAGS: &str = "cp312-cp312-manylinux_2_17_x86_64";

    fn module() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libc.so.6")
    }

    fn wheel(elf: &ElfWriter) -> TestWheel {
        TestWheel::new("p", "1", TAGS).elf("p/m.so", elf)
    }

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
            "dlopen needs GLIBC_2.34 from libc.so.6 (manylinux_2_17_x86_64 ends at 2.17), and 1 more symbol"
        );
        let nodes: Vec<_> = found[0].evidence.iter().map(|e| e.version.as_deref().unwrap()).collect();
        assert_eq!(nodes, ["GLIBC_2.34", "GLIBC_2.25"], "memcpy is old enough; the newest comes first");
        assert_eq!(found[0].evidence[0].note.as_deref(), Some("glibc 2.34"));
    }

    #[test]
    fn each_family_is_named() {
        let elf = module()
            .needed("libstdc++.so.6")
            .undefined_versioned("dlopen", "libc.so.6", "GLIBC_2.34")
            .undefined_versioned("_ZSt28__throw_bad_array_new_lengthv", "libstdc++.so.6", "GLIBCXX_3.4.29");
        let found = findings("ABI101", &wheel(&elf));
        assert!(found[0].message.contains("dlopen needs GLIBC_2.34"), "{}", found[0].message);
        let cxx = "std::__throw_bad_array_new_length() needs GLIBCXX_3.4.29 from libstdc++.so.6";
        assert!(found[0].message.contains(cxx), "{}", found[0].message);
        assert!(found[0].help.as_deref().unwrap().contains("split toolchain"));
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
