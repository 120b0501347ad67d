//! A search path names a directory of the build machine.
//!
//! ## What it does
//! Reports absolute entries of `DT_RPATH` and `DT_RUNPATH` that a loader follows. Directories of the system's own
//! (`/usr/lib64`) do no harm and are told as information.
//!
//! ## Why is this bad?
//! The directory does not exist elsewhere; where it does (`/usr/local/lib`, `/opt/...`, `/tmp/...`), the user gets a
//! library that nobody tested, or one that another user of the machine put there.
//!
//! ## Example
//! `DT_RPATH /opt/rh/devtoolset-10/root/usr/lib64:$ORIGIN/../pkg.libs`.
//!
//! ## How to mend it
//! Link without `-rpath` to build directories (CMake: `CMAKE_SKIP_BUILD_RPATH`, `INSTALL_RPATH '$ORIGIN'`), or remove
//! the entry (`patchelf --set-rpath`).
//!
//! ## References
//! ld.so(8); CWE-426; auditwheel #451.

use abiaudit_loader::search::EntryKind;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};

super::rule!("ABI403", "absolute-rpath", Warning, "abi403_absolute_rpath.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (index, entry) in audit.counted() {
        let paths = audit.resolution.search_paths(index);
        let absolute: Vec<&str> = paths
            .iter()
            .filter(|e| e.effective && e.kind == EntryKind::Absolute)
            .map(|e| e.raw.as_str())
            .collect();
        if absolute.is_empty() {
            continue;
        }
        let harmless = absolute.iter().all(|path| is_system(path));
        sink.member(&entry.member.name, format!("searches {}", absolute.join(", ")))
            .severity(if harmless { Severity::Info } else { Severity::Warning })
            .help("link with $ORIGIN instead, or remove the entry; in the finished file: abiaudit repair --mend rpath")
            .evidence(absolute.into_iter().map(Evidence::note));
    }
}

/// Where only the system's administrator installs, and where the loader looks anyway.
fn is_system(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let inside =
        |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !path.contains("..") && ["/lib", "/lib64", "/usr/lib", "/usr/lib64"].iter().any(|root| inside(root))
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::{TAGS, findings, module};

    fn severities(elf: &ElfWriter) -> Vec<Severity> {
        let wheel = TestWheel::new("p", "1", TAGS).elf("p/m.so", elf);
        findings("ABI403", &wheel).iter().map(|f| f.severity).collect()
    }

    #[test]
    fn build_directories_warn_and_system_ones_inform() {
        assert_eq!(severities(&module().rpath("/home/ci/build/lib:$ORIGIN")), [Severity::Warning]);
        assert_eq!(severities(&module().runpath("/usr/local/lib")), [Severity::Warning]);
        assert_eq!(severities(&module().runpath("/usr/lib64/../../tmp")), [Severity::Warning]);
        assert_eq!(severities(&module().runpath("/usr/lib64:/lib/x86_64-linux-gnu")), [Severity::Info]);
    }

    #[test]
    fn silent_about_origin_and_what_the_loader_ignores() {
        assert!(severities(&module().rpath("$ORIGIN/../p.libs:${ORIGIN}")).is_empty());
        // DT_RPATH beside DT_RUNPATH.
        assert!(severities(&module().rpath("/home/ci/build").runpath("$ORIGIN")).is_empty());
    }
}
