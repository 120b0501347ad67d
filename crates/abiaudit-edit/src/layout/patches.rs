//! New bytes for places of the old file, reduced to what differs.

use super::Write;
use crate::refusal::Refusal;

/// New bytes for places of the old file.
#[derive(Default)]
pub(super) struct Patches(Vec<(u64, Vec<u8>)>);

impl Patches {
    pub(super) fn put(&mut self, offset: u64, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.0.push((offset, bytes));
        }
    }

    /// Only what differs from the old bytes, then the tail.
    pub(super) fn into_writes(
        mut self,
        old: &[u8],
        tail_begin: u64,
        tail: &[u8],
    ) -> Result<Vec<Write>, Refusal> {
        let mut tail = tail.to_vec();
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        self.0.sort_by_key(|(offset, _)| *offset);
        let mut neighbours = self.0.windows(2);
        if neighbours.any(|pair| pair[0].0 + pair[0].1.len() as u64 > pair[1].0) {
            return Err(Refusal::UnknownUser("a structure that overlaps another one".to_owned()));
        }
        for (offset, bytes) in self.0 {
            // Program headers that move are a patch of the tail.
            if let Some(begin) = offset.checked_sub(tail_begin) {
                if let Some(room) = tail.get_mut(begin as usize..begin as usize + bytes.len()) {
                    room.copy_from_slice(&bytes);
                }
                continue;
            }
            runs.extend(differences(old, offset, &bytes));
        }
        if !tail.is_empty() {
            runs.push((tail_begin, tail));
        }
        let writes = runs.into_iter();
        Ok(writes.map(|(offset, bytes)| Write { offset, size: bytes.len() as u64, bytes }).collect())
    }
}

/// Runs in which new bytes differ from old ones; runs with little between them are one.
fn differences(old: &[u8], offset: u64, new: &[u8]) -> Vec<(u64, Vec<u8>)> {
    const GAP: usize = 32;
    let begin = usize::try_from(offset).unwrap_or(usize::MAX);
    let old = old.get(begin..).unwrap_or_default();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, byte) in new.iter().enumerate() {
        if old.get(at) == Some(byte) {
            continue;
        }
        match runs.last_mut() {
            Some(last) if at - last.1 < GAP => last.1 = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs.into_iter().map(|(from, to)| (offset + from as u64, new[from..to].to_vec())).collect()
}
