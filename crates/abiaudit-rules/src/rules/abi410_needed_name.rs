//! A NEEDED entry is a path, or a name that no library has.
//!
//! ## What it does
//! Reports `DT_NEEDED` entries with a slash, which the loader takes as paths and does not search for, entries that are
//! empty, and entries that are not text. A path with `$ORIGIN` that leads to a member is fine.
//!
//! ## Why is this bad?
//! An absolute path names a file of the build machine: `ImportError: /home/ci/build/libx.so: cannot open shared object
//! file`. A relative one depends on the working directory, so that whoever controls that directory runs code in the
//! process. A name that is not text was damaged on its way.
//!
//! ## Example
//! A library without DT_SONAME that was given to the linker as `/home/ci/build/libx.so`: the path becomes the need.
//!
//! ## How to mend it
//! Give the library a soname (`-Wl,-soname,libx.so.1`) and link with `-L` and `-l`, or rewrite the entry
//! (`patchelf --replace-needed`).
//!
//! ## References
//! gABI chapter 5, "Shared Object Dependencies"; glibc elf/dl-load.c (a name with a slash is not searched for).

use abiaudit_loader::search::Outcome;

use crate::audit::Audit;
use crate::finding::Sink;

super::rule!("ABI410", "needed-name", Error, "abi410_needed_name.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (index, entry) in audit.loadable() {
        for name in &entry.object.dynamic.needed {
            let text = name.to_text();
            let need = audit.resolution.needs_of(index).iter().find(|n| n.name == text);
            let found = need.is_some_and(|n| matches!(n.outcome, Outcome::Found { .. }));
            let what = if name.as_bytes().is_empty() {
                "an empty name".to_owned()
            } else if std::str::from_utf8(name.as_bytes()).is_err() {
                format!("{text}, which is not text")
            } else if text.starts_with('/') {
                format!("{text}, a path of the build machine")
            } else if text.contains('/') && !found {
                format!("{text}, a path that depends on the working directory")
            } else {
                continue;
            };
            sink.member(&entry.member.name, format!("needs {what}"))
                .help("give the library a soname and link with -l, or rewrite the entry (patchelf --replace-needed)");
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    fn messages(needed: &[u8]) -> Vec<String> {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libc.so.6").needed(needed);
        let library = ElfWriter::new(Arch::X86_64).soname("libx.so.1").define("x");
        let wheel = TestWheel::new("p", "1", "cp312-cp312-linux_x86_64")
            .elf("p/m.so", &elf)
            .elf("p/lib/libx.so.1", &library);
        findings("ABI410", &wheel).into_iter().map(|f| f.message).collect()
    }

    #[test]
    fn paths_and_damaged_names_are_reported_under_any_tag() {
        assert_eq!(messages(b"/etc/passwd"), ["needs /etc/passwd, a path of the build machine"]);
        assert_eq!(
            messages(b"lib/libx.so.1"),
            ["needs lib/libx.so.1, a path that depends on the working directory"]
        );
        assert_eq!(messages(b"lib\xff\xfe.so.1"), ["needs lib\\xff\\xfe.so.1, which is not text"]);
        assert_eq!(messages(b""), ["needs an empty name"]);
    }

    #[test]
    fn names_and_paths_into_the_wheel_are_fine() {
        assert!(messages(b"libx.so.1").is_empty());
        assert!(messages(b"$ORIGIN/lib/libx.so.1").is_empty());
    }
}
