//! `/etc/ld.so.cache`: which file answers to a soname (glibc elf/cache.c, sysdeps/generic/dl-cache.h).

use std::collections::BTreeMap;

/// Magic and version of the format that every glibc since 2.2 writes; older layouts put another table before it.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// `struct cache_file_new` up to its entries.
const HEADER: usize = 48;
/// `struct file_entry_new`.
const ENTRY: usize = 24;
/// Low bits of `cache_file_new.flags`: the byte order, 2 little and 3 big; 0 where an old ldconfig did not say.
const BIG: u8 = 3;

/// Paths by soname in the order of the cache, which is the order in which the loader prefers them. Entries for
/// glibc-hwcaps subdirectories are left out: they serve some processors only. Empty if the file is no cache.
pub(super) fn read(bytes: &[u8]) -> BTreeMap<String, Vec<String>> {
    parse(bytes).unwrap_or_default()
}

fn parse(bytes: &[u8]) -> Option<BTreeMap<String, Vec<String>>> {
    let start = memchr::memmem::find(bytes, MAGIC)?;
    // Offsets of strings count from here.
    let cache = bytes.get(start..)?;
    let big = *cache.get(28)? & 3 == BIG;
    let u32_at = |at: usize| {
        let field = *cache.get(at..)?.first_chunk::<4>()?;
        Some(if big { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) })
    };
    let text_at = |at: u32| {
        let text = cache.get(usize::try_from(at).ok()?..)?;
        let end = memchr::memchr(0, text)?;
        std::str::from_utf8(text.get(..end)?).ok()
    };
    let count = usize::try_from(u32_at(20)?).ok()?.min(cache.len() / ENTRY);
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for index in 0..count {
        let at = HEADER + index * ENTRY;
        let hwcap = (u32_at(at + 16)?, u32_at(at + 20)?);
        let (Some(soname), Some(path)) = (text_at(u32_at(at + 4)?), text_at(u32_at(at + 8)?)) else {
            continue;
        };
        if hwcap == (0, 0) {
            paths.entry(soname.to_owned()).or_default().push(path.to_owned());
        }
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(big: bool, entries: &[(&str, &str, u64)]) -> Vec<u8> {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut strings = Vec::new();
        let mut table = Vec::new();
        let base = HEADER + ENTRY * entries.len();
        for (soname, path, hwcap) in entries {
            let mut put = |text: &str| {
                let at = u32::try_from(base + strings.len()).expect("small");
                strings.extend_from_slice(text.as_bytes());
                strings.push(0);
                at
            };
            let (key, value) = (put(soname), put(path));
            for field in [0x0303, key, value, 0] {
                table.extend_from_slice(&word(field));
            }
            table.extend_from_slice(&if big { hwcap.to_be_bytes() } else { hwcap.to_le_bytes() });
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&word(u32::try_from(entries.len()).expect("small")));
        bytes.extend_from_slice(&word(u32::try_from(strings.len()).expect("small")));
        bytes.push(if big { 3 } else { 2 });
        bytes.resize(HEADER, 0);
        [bytes, table, strings].concat()
    }

    #[test]
    fn both_byte_orders() {
        let entries = [
            ("libx.so.1", "/lib/a/libx.so.1", 0),
            ("libx.so.1", "/lib/glibc-hwcaps/x86-64-v3/libx.so.1", 1 << 62),
            ("libx.so.1", "/lib32/libx.so.1", 0),
        ];
        for big in [false, true] {
            let read = read(&cache(big, &entries));
            assert_eq!(read["libx.so.1"], ["/lib/a/libx.so.1", "/lib32/libx.so.1"]);
        }
    }

    #[test]
    fn anything_else_is_no_cache() {
        let whole = cache(false, &[("libx.so.1", "/lib/a/libx.so.1", 0)]);
        for length in 0..whole.len() {
            let _ = read(&whole[..length]);
        }
        let mut lying = whole.clone();
        lying[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        let _ = read(&lying);
        assert!(read(b"something else").is_empty());
    }
}
