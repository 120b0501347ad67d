//! The wheel ships debug information.
//!
//! ## What it does
//! Adds up the `.debug_*` sections of all objects. A warning if they are at least 20 MB and a quarter of the
//! unpacked wheel; silent below 1 MB if that is less than a hundredth.
//!
//! ## Why is this bad?
//! Nothing fails, but every user downloads and stores it, and hardly anyone uses it.
//!
//! ## Example
//! A wheel of a `RelWithDebInfo` build that was not stripped.
//!
//! ## How to mend it
//! `strip --strip-debug` before packing (`-Wl,-s`, `strip = true` in Cargo profiles); keep the unstripped files
//! elsewhere, the build-id connects them.
//!
//! ## References
//! auditwheel #491 and #620 (collecting debug files).

use std::cmp::Reverse;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::rules::size;

super::rule!("ABI506", "debug-info", Info, "abi506_debug_info.rs");

/// Bytes from which on a warning is worth while.
const MUCH: u64 = 20_000_000;
/// Bytes that are worth a note even in a large wheel. Rust leaves a `.debug_gdb_scripts` of a few bytes.
const SOME: u64 = 1_000_000;

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let mut with: Vec<(&str, u64)> = audit
        .loadable()
        .map(|(_, entry)| (entry.member.name.as_str(), entry.object.sections.debug_size))
        .filter(|&(_, debug)| debug > 0)
        .collect();
    with.sort_by_key(|&(name, debug)| (Reverse(debug), name));
    let sum = with.iter().fold(0u64, |sum, (_, debug)| sum.saturating_add(*debug));
    let all = audit.subject.members.iter().fold(0u64, |sum, member| sum.saturating_add(member.size));
    if sum < SOME && sum <= all / 100 {
        return;
    }
    let message = match with.as_slice() {
        [_] => format!("{} of {} unpacked are debug information, in 1 file", size(sum), size(all)),
        files => {
            format!("{} of {} unpacked are debug information, in {} files", size(sum), size(all), files.len())
        }
    };
    let severity = if sum >= MUCH && sum >= all / 4 { Severity::Warning } else { Severity::Info };
    sink.whole(message)
        .severity(severity)
        .help("strip --strip-debug before packing")
        .evidence(with.into_iter().map(|(name, debug)| Evidence::member(name).with_note(size(debug))));
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    fn with_debug(bytes: usize) -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m").section(".debug_info", 1, 0, vec![0; bytes])
    }

    fn wheel() -> TestWheel {
        TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64")
    }

    #[test]
    fn a_little_is_worth_a_note_and_much_a_warning() {
        let found = findings("ABI506", &wheel().elf("p/m.so", &with_debug(1000)));
        assert_eq!(found[0].severity, Severity::Info);
        assert!(found[0].message.starts_with("1.0 kB"), "{}", found[0].message);
        let found = findings("ABI506", &wheel().elf("p/m.so", &with_debug(21_000_000)));
        assert_eq!(found[0].severity, Severity::Warning);
    }

    #[test]
    fn much_in_a_far_larger_wheel_is_worth_a_note() {
        let wheel = wheel().elf("p/m.so", &with_debug(21_000_000)).file("p/data", vec![0; 90_000_000]);
        assert_eq!(findings("ABI506", &wheel)[0].severity, Severity::Info);
    }

    #[test]
    fn stripped_files_and_a_few_bytes_are_silent() {
        assert!(findings("ABI506", &wheel().elf("p/m.so", &ElfWriter::new(Arch::X86_64))).is_empty());
        let wheel = wheel().elf("p/m.so", &with_debug(34)).file("p/data", vec![0; 10_000]);
        assert!(findings("ABI506", &wheel).is_empty());
    }
}
