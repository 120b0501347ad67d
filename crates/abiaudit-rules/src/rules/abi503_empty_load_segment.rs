//! A file will not survive `strip`.
//!
//! ## What it does
//! Reports objects with a `PT_LOAD` segment into which no allocated section falls. Only files with section headers
//! can be judged.
//!
//! ## Why is this bad?
//! The file loads as it is. But `strip` and `objcopy` of binutils lay segments out by their sections: one without
//! sections is written with a size of zero and an offset that does not fit its address, and glibc then refuses the
//! file: `ELF load command address/offset not page-aligned`. Distributions, container builds and size-conscious
//! users strip what they install.
//!
//! ## Example
//! A library that `patchelf` edited more than once, or in several ways at once: each edit appends a segment for the
//! string table, and the earlier ones are left behind empty.
//!
//! ## How to mend it
//! Strip before editing, not after; make all edits of a file at once with an editor that leaves no empty segment
//! behind.
//!
//! ## References
//! auditwheel #716 and #717; gABI chapter 5 (program header).

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI503", "empty-load-segment", Warning, "abi503_empty_load_segment.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in audit.loadable() {
        let empty = entry.object.empty_loads();
        if empty.is_empty() {
            continue;
        }
        let message = match empty.len() {
            1 => "a PT_LOAD segment has no section in it: strip would make the file unloadable".to_owned(),
            n => {
                format!("{n} PT_LOAD segments have no section in them: strip would make the file unloadable")
            }
        };
        sink.member(&entry.member.name, message)
            .help(
                "strip before editing the file; edit it once, with an editor that drops emptied segments; abiaudit repair \
                 --mend heal drops them",
            )
            .evidence(empty.into_iter().map(|load| {
                Evidence::note(format!(
                    "segment at address {:#x}, {} bytes at offset {:#x}",
                    load.address, load.file_size, load.offset
                ))
            }));
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, SegmentSpec};

    use crate::testing::{findings, wheel};

    fn load(address: u64, size: u64) -> SegmentSpec {
        SegmentSpec {
            segment_type: 1,
            flags: 4,
            offset: 0,
            address,
            file_size: size,
            memory_size: size,
            align: 0x10000,
        }
    }

    #[test]
    fn a_segment_without_sections_is_reported() {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m").segment(load(0x10_0000, 0x40));
        let found = findings("ABI503", &wheel(&elf));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence.len(), 1);
    }

    #[test]
    fn without_section_headers_or_without_size_nothing_is_known() {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        assert!(findings("ABI503", &wheel(&elf)).is_empty());
        let stripped = elf.clone().sections(false).segment(load(0x10_0000, 0x40));
        assert!(findings("ABI503", &wheel(&stripped)).is_empty());
        assert!(findings("ABI503", &wheel(&elf.segment(load(0x10_0000, 0)))).is_empty());
    }
}
