//! A segment is writable and executable.
//!
//! ## What it does
//! Reports objects with a `PT_LOAD` segment that has both flags.
//!
//! ## Why is this bad?
//! SELinux (`execmem`) and hardened kernels refuse to map it, so the import fails there; elsewhere whoever can
//! write to the segment can run code.
//!
//! ## Example
//! A library linked with `-Wl,-N` (omagic) or by a linker script of its own; a packed program (UPX).
//!
//! ## How to mend it
//! Link without `-N` and without packing; separate data from code in linker scripts.
//!
//! ## References
//! gABI chapter 5 (segment permissions); ld(1), `--warn-rwx-segments`.

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI509", "writable-code", Warning, "abi509_writable_code.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in audit.loadable() {
        let loads = entry.object.segments.loads().filter(|load| load.is_writable() && load.is_executable());
        let notes: Vec<Evidence> = loads
            .map(|load| {
                Evidence::note(format!(
                    "segment at {:#x}, {} bytes in memory",
                    load.address, load.memory_size
                ))
            })
            .collect();
        if !notes.is_empty() {
            sink.member(&entry.member.name, "has a segment that is writable and executable")
                .help("link without -N and without a linker script that joins code and data")
                .evidence(notes);
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    #[test]
    fn both_flags_together_are_reported() {
        let elf = |flags| ElfWriter::new(Arch::X86_64).define("PyInit_m").load_flags(flags);
        let wheel = TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64")
            .elf("p/code.so", &elf(5))
            .elf("p/data.so", &elf(6))
            .elf("p/both.so", &elf(7));
        let found = findings("ABI509", &wheel);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].member.as_deref(), Some("p/both.so"));
    }
}
