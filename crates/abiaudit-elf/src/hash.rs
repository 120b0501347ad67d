//! The symbol hash tables: how many symbols there are, and how ld.so finds one.

use object::{Endianness, elf};

use crate::error::{Fault, ParseError};
use crate::identity::Identity;
use crate::image::Image;
use crate::raw::Elf;

/// The System V hash of a name (gABI chapter 5), which version tables use too.
pub fn sysv_hash(name: &[u8]) -> u32 {
    elf::hash(name)
}

/// The hash of `DT_GNU_HASH` (glibc elf/dl-new-hash.h).
pub fn gnu_hash(name: &[u8]) -> u32 {
    elf::gnu_hash(name)
}

/// `DT_GNU_HASH`, kept as the loader uses it: a Bloom filter of words, buckets, and a chain word per symbol
/// from [`first_symbol`](Self::first_symbol) on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GnuHash {
    /// Index of the first symbol that the table covers.
    pub first_symbol: u32,
    bloom_shift: u32,
    bloom_bits: u32,
    bloom: Vec<u64>,
    buckets: Vec<u32>,
    chains: Vec<u32>,
}

impl GnuHash {
    /// Symbols whose hash equals that of the name: the caller compares names. Ends at the end of the chain.
    pub fn candidates(&self, hash: u32) -> impl Iterator<Item = u32> + '_ {
        self.chain(hash).filter_map(|(symbol, equal)| equal.then_some(symbol))
    }

    /// Every symbol of the chain that a hash leads to, and whether its own hash is that. Nothing if the Bloom filter
    /// says so.
    pub(crate) fn chain(&self, hash: u32) -> impl Iterator<Item = (u32, bool)> + '_ {
        let mut next = if self.may_contain(hash) { self.bucket(hash) } else { None };
        std::iter::from_fn(move || {
            let symbol = next?;
            let word = *self.chains.get(symbol.checked_sub(self.first_symbol)? as usize)?;
            next = if word & 1 == 1 { None } else { symbol.checked_add(1) };
            Some((symbol, word | 1 == hash | 1))
        })
    }

    fn bucket(&self, hash: u32) -> Option<u32> {
        let count = u32::try_from(self.buckets.len()).ok().filter(|&n| n > 0)?;
        self.buckets.get((hash % count) as usize).copied().filter(|&symbol| symbol != 0)
    }

    fn may_contain(&self, hash: u32) -> bool {
        let (words, bits) = (self.bloom.len() as u64, self.bloom_bits);
        if words == 0 {
            return true;
        }
        let word = self.bloom.get((u64::from(hash / bits) % words) as usize).copied().unwrap_or(0);
        let second = hash.checked_shr(self.bloom_shift).unwrap_or(0) % bits;
        (word >> (hash % bits)) & (word >> second) & 1 == 1
    }
}

/// `nchain` of `DT_HASH`: the number of dynamic symbols.
pub(crate) fn sysv_symbol_count(
    image: &Image,
    identity: &Identity,
    offset: u64,
    endian: Endianness,
) -> Result<u64, Fault> {
    use object::{U32, U64};
    let entry = identity.hash_entry_size();
    let buckets_and_chains = if entry == 8 {
        let header = image.read_slice::<U64<Endianness>>(".hash", offset, 2)?;
        (header[0].get(endian), header[1].get(endian))
    } else {
        let header = image.read_slice::<U32<Endianness>>(".hash", offset, 2)?;
        (u64::from(header[0].get(endian)), u64::from(header[1].get(endian)))
    };
    let (buckets, chains) = buckets_and_chains;
    let size = buckets.checked_add(chains).and_then(|n| n.checked_add(2)).and_then(|n| n.checked_mul(entry));
    match size.and_then(|size| offset.checked_add(size)) {
        Some(end) if end <= image.size() => Ok(chains),
        _ => Err(Fault::malformed(
            "DT_HASH",
            format!("{buckets} buckets and {chains} symbols at offset {offset:#x}"),
            "a table that fits the file",
        )),
    }
}

/// Reads `DT_GNU_HASH`; the symbol count is 1 + the last symbol of the last chain, or `None` if the table is
/// empty, which says nothing about the undefined symbols before it.
pub(crate) fn read_gnu_hash<E: Elf>(
    image: &Image,
    offset: u64,
    endian: Endianness,
) -> Result<(GnuHash, Option<u64>), Fault> {
    use object::U32;
    let header = *image.read::<elf::GnuHashHeader<Endianness>>(".gnu.hash", offset)?;
    let word_size: u64 = if E::is_type_64_sized() { 8 } else { 4 };
    let bloom_count = u64::from(header.bloom_count.get(endian));
    let bucket_count = u64::from(header.bucket_count.get(endian));
    // The counts have 32 bits, so only the offset can be too large, and that was just read from.
    let bloom_at = offset.saturating_add(size_of::<elf::GnuHashHeader<Endianness>>() as u64);
    let buckets_at = bloom_at.saturating_add(bloom_count * word_size);
    let chains_at = buckets_at.saturating_add(bucket_count * 4);
    if chains_at > image.size() {
        let found = format!("{bloom_count} bloom words and {bucket_count} buckets at offset {offset:#x}");
        return Err(Fault::malformed("DT_GNU_HASH", found, "a table that fits the file"));
    }
    image.require([bloom_at..chains_at])?;
    let buckets: Vec<u32> = image
        .read_slice::<U32<Endianness>>(".gnu.hash buckets", buckets_at, bucket_count)?
        .iter()
        .map(|b| b.get(endian))
        .collect();
    let first_symbol = header.symbol_base.get(endian);
    let last_chain = buckets.iter().copied().max().filter(|&s| s != 0 && s >= first_symbol);
    let chains = match last_chain {
        Some(start) => read_chains(image, chains_at, first_symbol, start, endian)?,
        None => Vec::new(),
    };
    let count = last_chain.map(|_| u64::from(first_symbol) + chains.len() as u64);
    let bloom = read_bloom(image, bloom_at, bloom_count, word_size, endian)?;
    let bloom_shift = header.bloom_shift.get(endian);
    let table =
        GnuHash { first_symbol, bloom_shift, bloom_bits: word_size as u32 * 8, bloom, buckets, chains };
    Ok((table, count))
}

/// All chain words up to the end of the chain that starts at symbol `start`, the last one.
fn read_chains(
    image: &Image,
    chains_at: u64,
    first_symbol: u32,
    start: u32,
    endian: Endianness,
) -> Result<Vec<u32>, Fault> {
    use object::U32;
    let mut chains = Vec::new();
    let mut count = u64::from(start - first_symbol) + 1;
    loop {
        // Chains are short; reading on in small steps finds the end without knowing the size of the table.
        let available = image.size().saturating_sub(chains_at) / 4;
        if chains.len() as u64 >= available {
            return Err(Fault::malformed("DT_GNU_HASH", "the last chain has no end", "a set low bit"));
        }
        let words =
            image.read_slice::<U32<Endianness>>(".gnu.hash chains", chains_at, count.min(available))?;
        for word in &words[chains.len()..] {
            chains.push(word.get(endian));
            if chains.len() as u64 > u64::from(start - first_symbol) && word.get(endian) & 1 == 1 {
                return Ok(chains);
            }
        }
        count = chains.len() as u64 + 64;
    }
}

fn read_bloom(
    image: &Image,
    offset: u64,
    count: u64,
    word_size: u64,
    endian: Endianness,
) -> Result<Vec<u64>, Fault> {
    use object::{U32, U64};
    Ok(if word_size == 8 {
        let words = image.read_slice::<U64<Endianness>>(".gnu.hash bloom", offset, count)?;
        words.iter().map(|w| w.get(endian)).collect()
    } else {
        let words = image.read_slice::<U32<Endianness>>(".gnu.hash bloom", offset, count)?;
        words.iter().map(|w| u64::from(w.get(endian))).collect()
    })
}

/// How many symbols there are when no hash table says so: what there is room for before the next table, and never
/// fewer than relocations refer to. glibc itself needs no count.
pub(crate) fn estimated_symbol_count<E: Elf>(
    image: &Image,
    symbols_at: u64,
    room: Option<u64>,
    highest_used: Option<u32>,
) -> Result<u64, ParseError> {
    let entry = size_of::<E::Sym>() as u64;
    let used = highest_used.map_or(1, |index| u64::from(index) + 1);
    let available = image.size().saturating_sub(symbols_at) / entry;
    let count = room.unwrap_or(used).max(used);
    if count > available {
        return Err(ParseError::Truncated {
            what: ".dynsym",
            offset: symbols_at,
            size: count.saturating_mul(entry),
            file_size: image.size(),
        });
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_loader() {
        assert_eq!(sysv_hash(b"GLIBC_2.2.5"), 0x0969_1a75);
        assert_eq!(gnu_hash(b"printf"), 0x156b_2bb8);
    }
}
