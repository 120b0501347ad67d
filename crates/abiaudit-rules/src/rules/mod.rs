//! One file a rule. The head comment of a file is the rule's documentation, in these headings: What it does, Why
//! is this bad?, Example, How to mend it, References.

use crate::rule::rule;

pub mod abi101_symbol_too_new;
pub mod abi501_executable_stack;
pub mod abi502_text_relocations;
pub mod abi503_empty_load_segment;
pub mod abi504_page_alignment;
pub mod abi505_relro_missing;
pub mod abi506_debug_info;
pub mod abi507_split_debug_file;
pub mod abi508_malformed_elf;
pub mod abi509_writable_code;

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
