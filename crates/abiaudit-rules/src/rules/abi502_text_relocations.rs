//! A library's code has to be changed to be loaded.
//!
//! ## What it does
//! Reports objects with `DT_TEXTREL` or `DF_TEXTREL`: relocations in segments that are not writable.
//!
//! ## Why is this bad?
//! The loader makes the code writable while it relocates. Where SELinux or another hardening denies that
//! (`execmod`), the import fails: `cannot restore segment prot after reloc: Permission denied`. The pages are no
//! longer shared between processes either. glibc and musl both go along otherwise; Android's loader refuses.
//!
//! ## Example
//! An i686 library with one object file that was compiled without `-fPIC`, or with hand-written assembly that uses
//! absolute addresses.
//!
//! ## How to mend it
//! Compile everything with `-fPIC`; link with `-Wl,-z,text`, which makes the linker name the culprit.
//!
//! ## References
//! gABI chapter 5 (`DT_TEXTREL`); glibc elf/dl-reloc.c; musl ldso/dynlink.c (`map_library`).

use crate::audit::Audit;
use crate::finding::Sink;

super::rule!("ABI502", "text-relocations", Warning, "abi502_text_relocations.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in audit.loadable().filter(|(_, entry)| entry.object.dynamic.text_relocations) {
        sink.member(
            &entry.member.name,
            "has text relocations: loading it writes to its code, which SELinux can deny",
        )
        .help("compile with -fPIC; link with -Wl,-z,text to find the object file");
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    fn wheel(elf: &ElfWriter) -> TestWheel {
        TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_i686").elf("p/m.so", elf)
    }

    #[test]
    fn the_tag_and_the_flag_count() {
        const DT_TEXTREL: i64 = 22;
        const DT_FLAGS: i64 = 30;
        let module = ElfWriter::new(Arch::I686).define("PyInit_m");
        assert_eq!(findings("ABI502", &wheel(&module.clone().dynamic(DT_TEXTREL, 0))).len(), 1);
        assert_eq!(findings("ABI502", &wheel(&module.clone().dynamic(DT_FLAGS, 4))).len(), 1);
        // DF_BIND_NOW
        assert!(findings("ABI502", &wheel(&module.dynamic(DT_FLAGS, 8))).is_empty());
    }
}
