//! One file a rule. The head comment of a file is the rule's documentation, in these headings: What it does, Why
//! is this bad?, Example, How to mend it, References.

use crate::rule::rule;

pub mod abi101_symbol_too_new;
pub mod abi102_symbol_not_in_target;
pub mod abi103_library_not_allowed;
pub mod abi104_symbol_forbidden;
pub mod abi105_wrong_architecture;
pub mod abi106_mixed_architecture;
pub mod abi107_isa_above_baseline;
pub mod abi108_relr_unsupported;
pub mod abi109_needs_no_such_version;
pub mod abi110_mixed_libc;
pub mod abi201_exported_cxx_runtime;
pub mod abi202_vendored_libstdcxx;
pub mod abi203_half_hidden_once;
pub mod abi204_private_unwinder;
pub mod abi205_two_cxx_abis;
pub mod abi206_hidden_cxx_runtime;
pub mod abi207_exported_partial;
pub mod abi208_cxx_runtimes_collide;
pub mod abi209_once_split;
pub mod abi210_unwinders_collide;
pub mod abi211_cxx_state_duplicated;
pub mod abi301_two_openmp_runtimes;
pub mod abi302_unvendored_libgomp;
pub mod abi303_duplicate_fortran_runtimes;
pub mod abi304_static_tls;
pub mod abi305_unprefixed_blas;
pub mod abi306_openblas_threads;
pub mod abi307_openmp_runtimes_collide;
pub mod abi308_openblas_picked_up;
pub mod abi401_unresolved_library;
pub mod abi402_unresolved_symbol;
pub mod abi403_absolute_rpath;
pub mod abi404_relative_rpath;
pub mod abi405_verneed_without_needed;
pub mod abi406_needs_preload;
pub mod abi407_unused_vendored_library;
pub mod abi408_provider_not_declared;
pub mod abi409_provider_not_reachable;
pub mod abi410_needed_name;
pub mod abi411_library_from_outside;
pub mod abi501_executable_stack;
pub mod abi502_text_relocations;
pub mod abi503_empty_load_segment;
pub mod abi504_page_alignment;
pub mod abi505_relro_missing;
pub mod abi506_debug_info;
pub mod abi507_split_debug_file;
pub mod abi508_malformed_elf;
pub mod abi509_writable_code;
pub mod abi601_claim_too_low;
pub mod abi602_claim_too_high;
pub mod abi603_unknown_claim;
pub mod abi604_platform_tag_mismatch;
pub mod abi605_purelib_with_elf;
pub mod abi606_record_mismatch;
pub mod abi607_wheel_metadata;
pub mod abi608_duplicate_member;
pub mod abi609_unsafe_member_name;
pub mod abi610_archive_structure;
pub mod abi611_symlink_member;
pub mod abi612_foreign_binary;
pub mod abi613_nested_archive;
pub mod abi614_not_linked;
pub mod abi615_size_budget;
pub mod abi616_duplicate_vendored_copy;
pub mod abi617_abi_tag_mismatch;
pub mod abi618_python_incompatible;
pub mod abi619_libpython_linked;

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The first of several things, and how many follow: `a.so (and 2 more)`.
pub(crate) fn and_more(first: &str, more: usize) -> String {
    if more == 0 { first.to_owned() } else { format!("{first} (and {more} more)") }
}

/// Bytes for people, in decimal units: `7.6 MB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = "bytes";
    for next in UNITS {
        if tenths < 10_000 {
            break;
        }
        tenths = tenths.div_euclid(1000);
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}
