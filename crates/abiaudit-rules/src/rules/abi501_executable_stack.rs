//! A library asks for an executable stack.
//!
//! ## What it does
//! Reports objects whose `PT_GNU_STACK` is executable, and those without `PT_GNU_STACK` where the C library then
//! assumes an executable stack: on x86_64, i686, armv7l and s390x. On aarch64, ppc64le, riscv64 and loongarch64 a
//! missing `PT_GNU_STACK` means a stack that is not executable (`DEFAULT_STACK_PERMS` in glibc's
//! `sysdeps/*/stackinfo.h`), so nothing is said there. A missing header is a warning: every linker in use writes it, so
//! that the file was made in an unusual way, and no wheel that was looked at lacks it.
//!
//! ## Why is this bad?
//! Since glibc 2.41 `dlopen`, and so `import`, refuses it: `cannot enable executable stack as shared object
//! requires: Invalid argument`. Older ones make the stack of the whole process executable, which SELinux denies
//! and which turns every overflow of a buffer into running code. musl ignores the wish; programs get their stack
//! from the kernel, so these are not refused.
//!
//! ## Example
//! An extension with an assembly file that lacks `.section .note.GNU-stack,"",@progbits`: one such object file
//! decides for the whole library.
//!
//! ## How to mend it
//! Mark the assembly files, or link with `-Wl,-z,noexecstack` if no nested C functions need the stack. In a finished
//! file: `patchelf --clear-execstack FILE`.
//!
//! ## References
//! auditwheel #634; glibc 2.41 NEWS (executable stacks), glibc elf/dl-load.c; gABI chapter 5.

use abiaudit_elf::SegmentType;
use abiaudit_policy::Libc;

use crate::audit::{Audit, AuditObject, Role};
use crate::finding::{Severity, Sink};

super::rule!("ABI501", "executable-stack", Error, "abi501_executable_stack.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in audit.loadable() {
        let Some((why, weight)) = reason(entry) else { continue };
        let libc = entry.libc.or(audit.platform.map(|p| p.libc)).unwrap_or(Libc::Glibc);
        let (severity, effect) = match (&entry.role, libc) {
            (Role::Program, _) => (Severity::Warning, "the program runs with an executable stack"),
            (_, Libc::Glibc) => (weight, "glibc 2.41 and later refuse to load it"),
            (_, Libc::Musl) => (Severity::Info, "musl ignores it"),
        };
        sink.member(&entry.member.name, format!("{why}: {effect}"))
            .severity(severity)
            .help("link with -Wl,-z,noexecstack, or patchelf --clear-execstack on the finished file");
    }
}

/// Why the stack would be executable, and what that weighs under glibc.
fn reason(entry: &AuditObject<'_>) -> Option<(&'static str, Severity)> {
    match entry.object.segments.first(SegmentType::GnuStack) {
        Some(stack) => {
            let asks = ("PT_GNU_STACK asks for an executable stack", Severity::Error);
            stack.is_executable().then_some(asks)
        }
        // Without a dynamic section there is no loader that would assume anything.
        None if !entry.object.dynamic.present => None,
        None => executable_by_default(entry.object.identity.arch())
            .then_some(("no PT_GNU_STACK, which means an executable stack", Severity::Warning)),
    }
}

/// `DEFAULT_STACK_PERMS` has `PF_X`.
fn executable_by_default(arch: Option<&str>) -> bool {
    matches!(arch, Some("x86_64" | "i686" | "armv7l" | "s390x"))
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter};

    use crate::finding::Severity;
    use crate::testing::{findings, wheel_for};

    fn module(arch: Arch) -> ElfWriter {
        ElfWriter::new(arch).define("PyInit_m")
    }

    #[test]
    fn an_executable_flag_is_an_error_and_a_missing_header_on_x86_a_warning() {
        let cases = [
            (module(Arch::X86_64).stack(7), Severity::Error),
            (module(Arch::X86_64).without_stack(), Severity::Warning),
        ];
        for (elf, severity) in cases {
            let found = findings("ABI501", &wheel_for("manylinux_2_17_x86_64", &elf));
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].severity, severity);
            assert_eq!(found[0].member.as_deref(), Some("p/m.so"));
        }
    }

    #[test]
    fn what_a_missing_header_means_depends_on_the_architecture() {
        let count =
            |arch, platform| findings("ABI501", &wheel_for(platform, &module(arch).without_stack())).len();
        assert_eq!(count(Arch::I686, "manylinux_2_17_i686"), 1);
        assert_eq!(count(Arch::Armv7l, "manylinux_2_31_armv7l"), 1);
        assert_eq!(count(Arch::S390x, "manylinux_2_17_s390x"), 1);
        assert_eq!(count(Arch::Aarch64, "manylinux_2_17_aarch64"), 0);
        assert_eq!(count(Arch::Ppc64le, "manylinux_2_17_ppc64le"), 0);
        assert_eq!(count(Arch::Riscv64, "manylinux_2_31_riscv64"), 0);
        assert_eq!(count(Arch::Loongarch64, "manylinux_2_38_loongarch64"), 0);
    }

    #[test]
    fn an_explicit_flag_counts_on_aarch64_too() {
        assert_eq!(
            findings("ABI501", &wheel_for("manylinux_2_17_aarch64", &module(Arch::Aarch64).stack(7))).len(),
            1
        );
    }

    #[test]
    fn musl_and_programs_are_not_refused() {
        let musl = module(Arch::X86_64).needed("libc.musl-x86_64.so.1").stack(7);
        let found = findings("ABI501", &wheel_for("musllinux_1_2_x86_64", &musl));
        assert_eq!(found[0].severity, Severity::Info);
        let program = ElfWriter::new(Arch::X86_64).interpreter("/lib64/ld-linux-x86-64.so.2").stack(7);
        let found = findings("ABI501", &wheel_for("manylinux_2_17_x86_64", &program));
        assert_eq!(found[0].severity, Severity::Warning);
    }

    #[test]
    fn a_usual_stack_is_fine() {
        assert!(findings("ABI501", &wheel_for("manylinux_2_17_x86_64", &module(Arch::X86_64))).is_empty());
    }

    #[test]
    fn an_object_file_without_the_header_is_no_library() {
        let object_file = ElfWriter::new(Arch::X86_64).object_type(1).without_stack();
        assert!(findings("ABI501", &wheel_for("manylinux_2_17_x86_64", &object_file)).is_empty());
    }
}
