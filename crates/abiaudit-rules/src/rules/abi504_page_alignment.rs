//! A segment is not aligned to the page size of some machines.
//!
//! ## What it does
//! Reports `PT_LOAD` segments whose `p_align` is smaller than the largest page size that kernels of the
//! architecture use (64 KiB on aarch64, ppc64le and ppc64, 16 KiB on loongarch64, 4 KiB elsewhere), and those whose offset
//! and address differ modulo `p_align`.
//!
//! ## Why is this bad?
//! `ImportError: ...: ELF load command alignment not page-aligned` on the machines with large pages: RHEL 7 and 8
//! for aarch64, Nvidia Grace systems, most ppc64le systems. It works where it was built. If offset and address do
//! not agree, no machine can load the file: `ELF load command address/offset not properly aligned`.
//!
//! ## Example
//! An aarch64 library that was edited by a `patchelf` which assumed pages of 4 KiB, or linked with
//! `-z max-page-size=4096`.
//!
//! ## How to mend it
//! Link without `-z max-page-size`, or with 65536; edit with `patchelf --page-size 65536`.
//!
//! ## References
//! PyTorch #53597, NumPy #16677, manylinux #735; glibc elf/dl-load.c (`_dl_map_object_from_fd`; until 2.34 all of
//! `p_align` is checked, later ones check the page size).

use abiaudit_elf::{Object, Segment};

use crate::audit::Audit;
use crate::finding::Sink;

super::rule!("ABI504", "page-alignment", Error, "abi504_page_alignment.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in audit.loadable() {
        let Some(arch) = entry.object.identity.arch() else { continue };
        if let Some(load) = entry.object.segments.loads().find(|load| is_incongruent(load)) {
            let message = format!(
                "the segment at address {:#x} is at offset {:#x}, which differs modulo its alignment of {:#x}: \
                 it cannot be mapped",
                load.address, load.offset, load.align
            );
            sink.member(&entry.member.name, message).help("link again, or edit with another tool");
        } else if let Some(align) = smallest_alignment(entry.object).filter(|&a| a < largest_page(arch)) {
            let page = largest_page(arch) >> 10;
            let message = format!(
                "segments are aligned to {align:#x}: {arch} systems with pages of {page} KiB refuse to load it"
            );
            sink.member(&entry.member.name, message)
                .help(format!("link with -Wl,-z,max-page-size={}", largest_page(arch)));
        }
    }
}

/// The largest page size in use. aarch64: Linux `CONFIG_ARM64_64K_PAGES`; ppc64 of both byte orders:
/// `CONFIG_PPC_64K_PAGES`, the default of 64-bit server kernels; GNU ld aligns to that (bfd, `ELF_MAXPAGESIZE` of
/// `elfnn-aarch64.c` and `elf64-ppc.c`). loongarch64: `CONFIG_PAGE_SIZE_16KB`, the default of
/// `arch/loongarch/Kconfig`; kernels with 64 KiB can be built, and no distribution ships one. x86, s390x and riscv64
/// have pages of 4 KiB only, and 32-bit Arm kernels use no others.
fn largest_page(arch: &str) -> u64 {
    match arch {
        "aarch64" | "ppc64le" | "ppc64" => 0x10000,
        "loongarch64" => 0x4000,
        _ => 0x1000,
    }
}

/// An alignment of 0 or 1 asks for none, but glibc until 2.34 refuses 1.
fn smallest_alignment(object: &Object) -> Option<u64> {
    object.segments.loads().map(|load| load.align).filter(|&align| align > 0).min()
}

fn is_incongruent(load: &Segment) -> bool {
    load.align.is_power_of_two() && load.address.wrapping_sub(load.offset) & (load.align - 1) != 0
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, SegmentSpec};

    use crate::testing::{findings, wheel_for};

    #[test]
    fn four_kib_are_too_few_on_aarch64_only() {
        let elf = |arch| ElfWriter::new(arch).define("PyInit_m").load_align(0x1000);
        assert_eq!(findings("ABI504", &wheel_for("manylinux_2_17_aarch64", &elf(Arch::Aarch64))).len(), 1);
        assert_eq!(findings("ABI504", &wheel_for("manylinux_2_17_ppc64le", &elf(Arch::Ppc64le))).len(), 1);
        assert!(findings("ABI504", &wheel_for("manylinux_2_17_x86_64", &elf(Arch::X86_64))).is_empty());
        assert!(findings("ABI504", &wheel_for("manylinux_2_17_s390x", &elf(Arch::S390x))).is_empty());
        let wide = ElfWriter::new(Arch::Aarch64).define("PyInit_m").load_align(0x10000);
        assert!(findings("ABI504", &wheel_for("manylinux_2_17_aarch64", &wide)).is_empty());
        let sixteen = ElfWriter::new(Arch::Loongarch64).define("PyInit_m").load_align(0x4000);
        assert!(findings("ABI504", &wheel_for("manylinux_2_38_loongarch64", &sixteen)).is_empty());
    }

    #[test]
    fn every_architecture_of_a_policy_has_its_page_size() {
        let pages =
            abiaudit_policy::Arch::ALL.map(|arch| (arch.tag(), super::largest_page(arch.tag()) >> 10));
        let large: Vec<_> = pages.into_iter().filter(|(_, page)| *page > 4).collect();
        let expected = [("aarch64", 64), ("ppc64", 64), ("ppc64le", 64), ("loongarch64", 16)];
        assert!(expected.iter().all(|row| large.contains(row)) && large.len() == 4, "{large:?}");
    }

    #[test]
    fn offset_and_address_must_agree() {
        let load = |offset| SegmentSpec {
            segment_type: 1,
            flags: 4,
            offset,
            address: 0x20_0040,
            file_size: 16,
            memory_size: 16,
            align: 0x1000,
        };
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        let found = findings("ABI504", &wheel_for("manylinux_2_17_x86_64", &elf.clone().segment(load(0x48))));
        assert!(found[0].message.contains("0x200040") && found[0].message.contains("0x48"));
        assert!(findings("ABI504", &wheel_for("manylinux_2_17_x86_64", &elf.segment(load(0x40)))).is_empty());
    }
}
