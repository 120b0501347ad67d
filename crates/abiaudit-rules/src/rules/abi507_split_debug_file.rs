//! The wheel ships files of debug information.
//!
//! ## What it does
//! Lists ELF files that hold nothing but debug information: their sections for the loader have no bytes.
//!
//! ## Why is this bad?
//! Nothing fails; no loader opens them. They make the wheel larger, and they are not what their headers say, which
//! confuses tools (auditwheel ends with a traceback on some).
//!
//! ## Example
//! `libiomp5.dbg` next to `libiomp5.so`, made by `objcopy --only-keep-debug`.
//!
//! ## How to mend it
//! Keep them out of the wheel; the build-id connects them to the stripped file wherever they are.
//!
//! ## References
//! GDB manual, "Separate Debug Files"; objcopy(1).

use crate::audit::{Audit, Role};
use crate::finding::Sink;
use crate::rules::size;

super::rule!("ABI507", "split-debug-file", Info, "abi507_split_debug_file.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for entry in audit.objects.iter().filter(|entry| entry.role == Role::Debug) {
        let message =
            format!("holds only debug information ({}); no loader opens it", size(entry.member.size));
        sink.member(&entry.member.name, message).help("keep it out of the wheel");
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    /// Turns the sections that the loader would read into `SHT_NOBITS` and overwrites what they held, as
    /// `objcopy --only-keep-debug` does.
    fn debug_file() -> Vec<u8> {
        const SHT_NOBITS: u32 = 8;
        let mut built = ElfWriter::new(Arch::X86_64).define("f").build();
        let headers = built.part("section headers");
        for header in headers.step_by(64).skip(1) {
            let flags = built.bytes()[header + 8];
            if flags & 2 != 0 {
                built.put_u32(header + 4, SHT_NOBITS);
            }
        }
        let dynamic = built.part(".dynamic");
        built.bytes_mut()[dynamic].fill(0);
        built.into_bytes()
    }

    #[test]
    fn a_debug_file_is_noted_and_a_library_is_not() {
        let wheel = TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64")
            .elf("p/m.so", &ElfWriter::new(Arch::X86_64).define("PyInit_m"))
            .file("p/m.debug", debug_file());
        let found = findings("ABI507", &wheel);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].member.as_deref(), Some("p/m.debug"));
    }
}
