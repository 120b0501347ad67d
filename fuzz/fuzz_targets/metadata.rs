//! Any bytes as METADATA and as WHEEL.
#![no_main]

use abiaudit_wheel::{Environment, Metadata, WheelFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (metadata, _) = Metadata::parse(bytes);
    let environment = Environment::linux("3.12.4", "x86_64").with_extra("gpu");
    assert!(metadata.requirements_for(&environment).count() <= bytes.len());
    let _ = metadata.required_names();
    let _ = WheelFile::parse(bytes);
});
