//! Any bytes as a wheel: no panic, no memory without bound, every member ends or says why not.
#![no_main]

use abiaudit_wheel::{Archive, DistInfo, Limits, Scratch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Bombs are for the hostile tests; here they would only be slow.
    let limits = Limits {
        max_member_size: 1 << 22,
        max_total_size: 1 << 24,
        max_dictionary: 1 << 22,
        ..Limits::default()
    };
    let Ok(archive) = Archive::from_bytes(bytes.to_vec(), &limits) else { return };
    let mut scratch = Scratch::new();
    let _ = DistInfo::read(&archive, None, &mut scratch);
    for member in archive.members() {
        let mut length = 0_u64;
        let _ = archive.read(member, &mut scratch, &mut |chunk| {
            length += chunk.len() as u64;
            Ok(())
        });
        assert!(length <= member.size, "{length} bytes of {} declared", member.size);
    }
});
