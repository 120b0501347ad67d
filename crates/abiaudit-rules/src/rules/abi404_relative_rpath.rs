//! A search path depends on the directory that the user happens to be in.
//!
//! ## What it does
//! Reports entries of `DT_RPATH` and `DT_RUNPATH` that are relative (`torch.libs`, `../lib`) or empty (`:$ORIGIN`), which
//! glibc reads as the working directory; musl skips empty ones.
//!
//! ## Why is this bad?
//! Whoever can write to the working directory decides which code is loaded; and where the right file was meant, it is
//! not found.
//!
//! ## Example
//! torch 2.1.0 for aarch64 vendors a libgomp whose search path is `torch.libs`.
//!
//! ## How to mend it
//! Begin the entry with `$ORIGIN`, or remove it; look for shell quoting that ate the `$`.
//!
//! ## References
//! ld.so(8); glibc elf/dl-load.c (`fillin_rpath`); CWE-427; auditwheel #383.

use abiaudit_loader::search::{EntryKind, SearchEntry};
use abiaudit_policy::Libc;

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI404", "relative-rpath", Error, "abi404_relative_rpath.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let musl = audit.platform.is_some_and(|p| p.libc == Libc::Musl);
    let is_bad = |entry: &&SearchEntry| {
        let bad = match entry.kind {
            EntryKind::Relative => true,
            EntryKind::Empty => !musl,
            EntryKind::Origin | EntryKind::Absolute => false,
        };
        entry.effective && bad
    };
    for (index, object) in audit.counted() {
        let paths = audit.resolution.search_paths(index);
        let bad: Vec<&SearchEntry> = paths.iter().filter(is_bad).collect();
        let Some(first) = bad.first() else { continue };
        let message = if first.raw.is_empty() {
            "has an empty search path entry, which means the working directory".to_owned()
        } else {
            format!("searches {:?} in the working directory", first.raw)
        };
        sink.member(&object.member.name, message)
            .help("begin the entry with $ORIGIN, or remove it")
            .evidence(bad.iter().map(|e| Evidence::note(format!("{:?} entry {:?}", e.tag, e.raw))));
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    fn messages(tags: &str, elf: &ElfWriter) -> Vec<String> {
        let wheel = TestWheel::new("p", "1", tags).elf("p/m.so", elf);
        findings("ABI404", &wheel).into_iter().map(|f| f.message).collect()
    }

    #[test]
    fn relative_and_empty_entries() {
        assert_eq!(
            messages(TAGS, &module().rpath("p.libs")),
            ["searches \"p.libs\" in the working directory"]
        );
        let empty = "has an empty search path entry, which means the working directory";
        assert_eq!(messages(TAGS, &module().runpath("$ORIGIN/../lib:")), [empty]);
        assert_eq!(messages(TAGS, &module().runpath("ORIGIN/../lib")).len(), 1, "the shell ate the dollar");
    }

    #[test]
    fn silent_about_origin_and_on_musl_about_empty_entries() {
        assert!(messages(TAGS, &module().rpath("$ORIGIN/../p.libs")).is_empty());
        let musl = ElfWriter::new(Arch::X86_64).needed("libc.musl-x86_64.so.1").runpath("$ORIGIN:");
        assert!(messages("cp312-cp312-musllinux_1_2_x86_64", &musl).is_empty());
    }
}
