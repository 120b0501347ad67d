//! Any bytes as RECORD.
#![no_main]

use abiaudit_wheel::Record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (record, _) = Record::parse(bytes, "pkg-1.0.dist-info");
    let _ = record.is_exempt("pkg-1.0.dist-info/RECORD");
});
