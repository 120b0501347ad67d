//! Tables of pointers stay writable.
//!
//! ## What it does
//! Lists the dynamically linked objects without a `PT_GNU_RELRO` segment.
//!
//! ## Why is this bad?
//! Nothing fails. With RELRO the loader makes the relocated pointer tables (GOT, vtables) read-only; without it a
//! write out of bounds can redirect calls. Security scanners of distributions and companies report such files.
//!
//! ## Example
//! A library that was linked with `-Wl,-z,norelro`, or by a linker that does not know RELRO for the architecture.
//!
//! ## How to mend it
//! Link with `-Wl,-z,relro` (the default of current linkers), and `-Wl,-z,now` to cover the whole GOT.
//!
//! ## References
//! glibc elf/dl-reloc.c (`_dl_protect_relro`); ld(1), `-z relro`.

use abiaudit_elf::SegmentType;

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};

super::rule!("ABI505", "relro-missing", Info, "abi505_relro_missing.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let lacking: Vec<&str> = audit
        .loadable()
        .filter(|(_, entry)| entry.object.dynamic.present)
        .filter(|(_, entry)| entry.object.segments.first(SegmentType::GnuRelro).is_none())
        .map(|(_, entry)| entry.member.name.as_str())
        .collect();
    let message = match lacking.as_slice() {
        [] => return,
        [member] => {
            sink.member(member, "no PT_GNU_RELRO: pointer tables stay writable")
                .help("link with -Wl,-z,relro");
            return;
        }
        many => format!("{} files have no PT_GNU_RELRO: pointer tables stay writable", many.len()),
    };
    sink.whole(message).help("link with -Wl,-z,relro").evidence(lacking.into_iter().map(Evidence::member));
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, SegmentSpec, TestWheel};

    use crate::testing::findings;

    const RELRO: SegmentSpec = SegmentSpec {
        segment_type: 0x6474_e552,
        flags: 4,
        offset: 0,
        address: 0,
        file_size: 16,
        memory_size: 16,
        align: 1,
    };

    #[test]
    fn only_files_without_relro_are_listed() {
        let without = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        let with = without.clone().segment(RELRO);
        let wheel = TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64").elf("p/with.so", &with);
        assert!(findings("ABI505", &wheel).is_empty());
        let wheel = wheel.elf("p/a.so", &without);
        assert_eq!(findings("ABI505", &wheel)[0].member.as_deref(), Some("p/a.so"));
        let wheel = wheel.elf("p/b.so", &without);
        let found = findings("ABI505", &wheel);
        assert_eq!((found.len(), found[0].evidence.len()), (1, 2));
    }
}
