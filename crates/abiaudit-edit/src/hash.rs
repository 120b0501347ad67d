//! `DT_HASH` (gABI chapter 5) and `DT_GNU_HASH` (glibc elf/dl-lookup.c): read, rebuilt, and asked.
//!
//! A rebuilt table keeps the number of buckets and the size of the Bloom filter, so that it never needs more room than
//! the one that the linker made.

use object::elf;

use crate::encoding::Encoding;

/// `DT_HASH`: a chain of symbol indices for each bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SysvHash {
    /// Size of an entry in bytes: 8 on 64-bit s390 and alpha, 4 elsewhere.
    pub entry_size: usize,
    pub buckets: Vec<u32>,
    pub chains: Vec<u32>,
}

impl SysvHash {
    pub(crate) fn read(encoding: Encoding, entry_size: usize, bytes: &[u8]) -> Option<Self> {
        let entry = |index: usize| -> Option<u32> {
            let value = encoding.get(bytes, index.checked_mul(entry_size)?, entry_size)?;
            u32::try_from(value).ok()
        };
        let (nbucket, nchain) = (entry(0)? as usize, entry(1)? as usize);
        let total = nbucket.checked_add(nchain)?.checked_add(2)?;
        if total.checked_mul(entry_size)? > bytes.len() {
            return None;
        }
        let buckets = (2..2 + nbucket).map(entry).collect::<Option<_>>()?;
        let chains = (2 + nbucket..total).map(entry).collect::<Option<_>>()?;
        Some(Self { entry_size, buckets, chains })
    }

    pub(crate) fn size(&self) -> u64 {
        ((2 + self.buckets.len() + self.chains.len()) * self.entry_size) as u64
    }

    pub(crate) fn encode(&self, encoding: Encoding) -> Vec<u8> {
        let mut bytes = Vec::new();
        let counts = [self.buckets.len() as u32, self.chains.len() as u32];
        for value in counts.iter().chain(&self.buckets).chain(&self.chains) {
            encoding.push(&mut bytes, self.entry_size, u64::from(*value));
        }
        bytes
    }

    /// Which symbols can be found.
    pub(crate) fn linked(&self) -> Vec<bool> {
        let mut linked = vec![false; self.chains.len()];
        for &bucket in &self.buckets {
            let mut next = bucket as usize;
            // A symbol seen before ends the walk: chains that join or run in circles are walked once.
            while next != 0 && linked.get(next) == Some(&false) {
                linked[next] = true;
                next = self.chains.get(next).copied().unwrap_or(0) as usize;
            }
        }
        linked
    }

    /// A table with as many buckets over other symbols; `names` gives `None` for symbols that cannot be found.
    pub(crate) fn rebuilt<'n>(&self, names: impl ExactSizeIterator<Item = Option<&'n [u8]>>) -> Self {
        let count = names.len();
        let mut table = Self {
            entry_size: self.entry_size,
            buckets: vec![0; self.buckets.len()],
            chains: vec![0; count],
        };
        let mut last: Vec<usize> = vec![0; self.buckets.len()];
        for (index, name) in names.enumerate() {
            let Some(name) = name.filter(|_| index != 0 && !table.buckets.is_empty()) else { continue };
            let bucket = elf::hash(name) as usize % table.buckets.len();
            match last[bucket] {
                0 => table.buckets[bucket] = index as u32,
                previous => table.chains[previous] = index as u32,
            }
            last[bucket] = index;
        }
        table
    }

    /// Whether a look-up of the name comes to the symbol.
    pub(crate) fn finds(&self, name: &[u8], symbol: u32) -> bool {
        let count = self.buckets.len();
        let Some(bucket) = (elf::hash(name) as usize).checked_rem(count) else { return false };
        let mut next = self.buckets.get(bucket).copied().unwrap_or(0);
        for _ in 0..=self.chains.len() {
            if next == symbol {
                return next != 0;
            }
            match self.chains.get(next as usize) {
                Some(&following) if next != 0 => next = following,
                _ => return false,
            }
        }
        false
    }
}

/// `DT_GNU_HASH`: a Bloom filter, buckets, and a hash for each symbol from `first_symbol` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GnuHash {
    pub first_symbol: u32,
    pub bloom_shift: u32,
    pub bloom: Vec<u64>,
    pub buckets: Vec<u32>,
    pub chains: Vec<u32>,
}

impl GnuHash {
    pub(crate) fn read(encoding: Encoding, bytes: &[u8]) -> Option<Self> {
        let header = |index: usize| encoding.u32(bytes, 4 * index);
        let (buckets, first_symbol, words) = (header(0)? as usize, header(1)?, header(2)? as usize);
        let bloom_shift = header(3)?;
        let word = encoding.word_size();
        let buckets_at = words.checked_mul(word)?.checked_add(16)?;
        let chains_at = buckets.checked_mul(4)?.checked_add(buckets_at)?;
        if chains_at > bytes.len() {
            return None;
        }
        let bloom = (0..words).map(|i| encoding.word(bytes, 16 + i * word)).collect::<Option<_>>()?;
        let buckets: Vec<u32> =
            (0..buckets).map(|i| encoding.u32(bytes, buckets_at + 4 * i)).collect::<Option<_>>()?;
        let last = buckets.iter().copied().max().filter(|&last| last != 0);
        let mut table = Self { first_symbol, bloom_shift, bloom, buckets, chains: Vec::new() };
        if let Some(last) = last {
            table.read_chains(encoding, bytes.get(chains_at..)?, last)?;
        }
        Some(table)
    }

    /// All chain words up to the end of the last chain, which begins at the symbol `last`.
    fn read_chains(&mut self, encoding: Encoding, bytes: &[u8], last: u32) -> Option<()> {
        let begin = last.checked_sub(self.first_symbol)? as usize;
        loop {
            let word = encoding.u32(bytes, self.chains.len().checked_mul(4)?)?;
            self.chains.push(word);
            if self.chains.len() > begin && word & 1 == 1 {
                return Some(());
            }
        }
    }

    /// The number of dynamic symbols, if any symbol can be found.
    pub(crate) fn symbol_count(&self) -> Option<u64> {
        (!self.chains.is_empty()).then(|| u64::from(self.first_symbol) + self.chains.len() as u64)
    }

    pub(crate) fn size(&self, encoding: Encoding) -> u64 {
        let words = self.bloom.len() * encoding.word_size();
        (16 + words + 4 * (self.buckets.len() + self.chains.len())) as u64
    }

    pub(crate) fn encode(&self, encoding: Encoding) -> Vec<u8> {
        let mut bytes = Vec::new();
        let counts =
            [self.buckets.len() as u32, self.first_symbol, self.bloom.len() as u32, self.bloom_shift];
        for value in counts {
            encoding.push(&mut bytes, 4, u64::from(value));
        }
        for &value in &self.bloom {
            encoding.push(&mut bytes, encoding.word_size(), value);
        }
        let words = self.buckets.iter().chain(&self.chains);
        words.for_each(|&value| encoding.push(&mut bytes, 4, u64::from(value)));
        bytes
    }

    /// The bucket of a name; 0 for a table without buckets.
    pub(crate) fn bucket_of(&self, name: &[u8]) -> usize {
        (elf::gnu_hash(name) as usize).checked_rem(self.buckets.len()).unwrap_or(0)
    }

    /// A table of the same shape over other names, which are in the order of their buckets and begin at symbol
    /// `first_symbol`.
    pub(crate) fn rebuilt(&self, encoding: Encoding, first_symbol: u32, names: &[&[u8]]) -> Self {
        let mut table = Self {
            first_symbol,
            bloom_shift: self.bloom_shift,
            bloom: vec![0; self.bloom.len()],
            buckets: vec![0; self.buckets.len()],
            chains: Vec::with_capacity(names.len()),
        };
        for (index, name) in names.iter().enumerate() {
            let hash = elf::gnu_hash(name);
            let bucket = table.bucket_of(name);
            table.add_to_bloom(encoding, hash);
            if let Some(first @ 0) = table.buckets.get_mut(bucket) {
                *first = first_symbol.saturating_add(index as u32);
            }
            let is_last = names.get(index + 1).is_none_or(|next| table.bucket_of(next) != bucket);
            table.chains.push((hash & !1) | u32::from(is_last));
        }
        table
    }

    fn bloom_bits(&self, encoding: Encoding, hash: u32) -> Option<(usize, u64)> {
        let bits = encoding.word_size() as u32 * 8;
        let word = ((hash / bits) as usize).checked_rem(self.bloom.len())?;
        let second = hash.checked_shr(self.bloom_shift).unwrap_or(0);
        Some((word, (1 << (hash % bits)) | (1 << (second % bits))))
    }

    fn add_to_bloom(&mut self, encoding: Encoding, hash: u32) {
        if let Some((word, mask)) = self.bloom_bits(encoding, hash) {
            self.bloom[word] |= mask;
        }
    }

    /// Whether a look-up of the name comes to the symbol.
    pub(crate) fn finds(&self, encoding: Encoding, name: &[u8], symbol: u32) -> bool {
        let hash = elf::gnu_hash(name);
        let in_bloom =
            self.bloom_bits(encoding, hash).is_some_and(|(word, mask)| self.bloom[word] & mask == mask);
        let first = self.buckets.get(self.bucket_of(name)).copied().filter(|&first| first != 0);
        let Some(mut at) = first.filter(|_| in_bloom) else { return false };
        while let Some(word) = at.checked_sub(self.first_symbol).and_then(|i| self.chains.get(i as usize)) {
            if at == symbol && word | 1 == hash | 1 {
                return true;
            }
            if word & 1 == 1 {
                return false;
            }
            at += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENCODING: Encoding = Encoding { is_64: true, is_big_endian: false };

    #[test]
    fn a_rebuilt_gnu_table_finds_every_name_and_no_other() {
        let shape = GnuHash {
            first_symbol: 1,
            bloom_shift: 6,
            bloom: vec![0; 2],
            buckets: vec![0; 3],
            chains: Vec::new(),
        };
        let mut names: Vec<&[u8]> = vec![b"printf", b"malloc", b"free", b"_Znwm", b"a"];
        names.sort_by_key(|name| shape.bucket_of(name));
        let table = shape.rebuilt(ENCODING, 4, &names);
        let read = GnuHash::read(ENCODING, &table.encode(ENCODING)).expect("a table");
        assert_eq!(read, table);
        assert_eq!(table.symbol_count(), Some(9));
        for (index, name) in names.iter().enumerate() {
            assert!(table.finds(ENCODING, name, 4 + index as u32));
        }
        assert!(!table.finds(ENCODING, b"calloc", 4));
    }

    #[test]
    fn a_rebuilt_sysv_table_finds_what_is_linked() {
        let shape = SysvHash { entry_size: 8, buckets: vec![0; 2], chains: Vec::new() };
        let names = [None, Some(b"a".as_slice()), None, Some(b"b"), Some(b"c")];
        let table = shape.rebuilt(names.into_iter());
        let read = SysvHash::read(ENCODING, 8, &table.encode(ENCODING)).expect("a table");
        assert_eq!(read, table);
        assert_eq!(table.linked(), [false, true, false, true, true]);
        assert!(table.finds(b"b", 3) && !table.finds(b"b", 4));
    }

    #[test]
    fn circles_end() {
        let table = SysvHash { entry_size: 4, buckets: vec![1], chains: vec![0, 2, 1] };
        assert_eq!(table.linked(), [false, true, true]);
        assert!(!table.finds(b"x", 9));
    }
}
