//! Any bytes as an ELF file: no panic, and the stream gives the same facts as the whole file.
#![no_main]

use abiaudit_elf::{Collector, Object, Parsed, Wants};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = Object::from_bytes(bytes, &Wants::default());
    let mut collector = Collector::new(bytes.len() as u64);
    for chunk in bytes.chunks(97) {
        collector.push(chunk);
    }
    match Object::parse(&collector.finish(), &Wants::default()) {
        Ok(Parsed::Complete(streamed)) => {
            let whole = whole.expect("what the stream gives, the whole file gives");
            assert_eq!(whole.dynamic.needed, streamed.dynamic.needed);
            assert_eq!(whole.symbols.iter().count(), streamed.symbols.iter().count());
        }
        Ok(Parsed::Missing(ranges)) => assert!(!ranges.is_empty()),
        Err(_) => assert!(whole.is_err()),
    }
});
