//! Any text as the file name of a wheel.
#![no_main]

use abiaudit_wheel::WheelName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(name) = WheelName::parse(text) {
        let _ = (name.normalized_name(), name.promise(), name.problems());
        // Compressed tag sets multiply; long names must not.
        assert!(name.tags().len() <= text.len().pow(3));
    }
});
