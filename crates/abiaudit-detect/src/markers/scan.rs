//! The streaming scan.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::windows::each_text;
use super::{Form, Found, Marker, Markers};
use crate::data::MARKERS;

/// All markers in one automaton, made at the first scan. Of two that begin at one place the longer is taken.
static AUTOMATON: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let texts = MARKERS.iter().map(|marker| marker.text);
    let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
    built.expect("some dozens of short texts make a small automaton")
});

/// How much text on each side of a marker a find can hold.
const CONTEXT: usize = 160;
/// Bytes that must be there on both sides of a marker's start for the find to be whole: context, the marker itself
/// (at most 120 bytes, which the build script checks), and the blocks of the text test.
const REACH: usize = 512;
/// Small pieces are put together up to this size before they are searched.
const SMALL: usize = 16 << 10;
/// Texts that are sure to be seen by the test for text, however their bytes are aligned. Shorter ones never count, so
/// that nothing depends on the alignment.
const SHORTEST_TEXT: usize = 15;
/// Distinct texts that are kept of one marker.
const MOST_TEXTS: usize = 8;

/// Looks for all markers in a file that arrives in pieces. Push all of them in order, then
/// [`finish`](Self::finish). What is found does not depend on where the file was cut.
///
/// ```
/// use abiaudit_detect::{MarkerScan, Speaks};
/// let mut scan = MarkerScan::new();
/// for piece in [&b"\0NSt6locale"[..], &b"5facetE\0"[..]] {
///     scan.push(piece);
/// }
/// let markers = scan.finish();
/// let found = markers.iter().next().unwrap();
/// assert_eq!((found.marker().speaks_for, found.offset), (Speaks::LibstdcxxFull, 1));
/// ```
#[derive(Debug, Default)]
pub struct MarkerScan {
    /// The last bytes that were pushed: what the next border needs, or small pieces that wait.
    carry: Vec<u8>,
    /// Offset in the file of the end of `carry`.
    position: u64,
    /// Finds that begin before this offset are reported already.
    reported: u64,
    /// By the marker's index in the table, so that a file full of one marker costs no search among the others.
    found: BTreeMap<u16, Vec<Found>>,
}

impl MarkerScan {
    /// At the start of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next bytes of the file.
    pub fn push(&mut self, piece: &[u8]) {
        let end = self.position + piece.len() as u64;
        if self.carry.len() + piece.len() <= SMALL {
            self.carry.extend_from_slice(piece);
            self.position = end;
            return;
        }
        // First across the border, then within the piece; each reports the markers that it sees whole.
        let head = piece.len().min(2 * REACH);
        let carry_start = self.position - self.carry.len() as u64;
        let mut border = std::mem::take(&mut self.carry);
        border.extend_from_slice(&piece[..head]);
        self.search(&border, carry_start, (self.position + head as u64).saturating_sub(REACH as u64));
        if head < piece.len() {
            self.search(piece, self.position, end.saturating_sub(REACH as u64));
        }
        let last = if head < piece.len() { piece } else { &border };
        let keep = last.len().saturating_sub(2 * REACH);
        if head < piece.len() {
            border.clear();
            border.extend_from_slice(&piece[keep..]);
        } else {
            border.drain(..keep);
        }
        self.carry = border;
        self.position = end;
    }

    /// What was found.
    pub fn finish(mut self) -> Markers {
        let carry = std::mem::take(&mut self.carry);
        let start = self.position - carry.len() as u64;
        self.search(&carry, start, u64::MAX);
        // Finds of one marker were made in the order of the file.
        Markers(self.found.into_values().flatten().collect())
    }

    /// Searches `window`, which begins at `offset` of the file, and reports markers that begin before `until` and are
    /// not reported yet.
    fn search(&mut self, window: &[u8], offset: u64, until: u64) {
        let own = self.reported..until;
        each_text(window, |range| {
            for hit in AUTOMATON.find_iter(&window[range.clone()]) {
                let place = range.start + hit.start()..range.start + hit.end();
                if own.contains(&(offset + place.start as u64)) {
                    self.report(hit.pattern().as_usize(), window, place, offset);
                }
            }
        });
        self.reported = self.reported.max(until);
    }

    fn report(&mut self, index: usize, window: &[u8], place: Range<usize>, offset: u64) {
        let Some(text) = text_of(&MARKERS[index], window, &place) else { return };
        let index = index as u16;
        let known = self.found.entry(index).or_default();
        let same = known.iter().position(|found| found.text.as_bytes() == text);
        let place_of = same.or((known.len() >= MOST_TEXTS).then_some(MOST_TEXTS - 1));
        if let Some(found) = place_of.and_then(|place| known.get_mut(place)) {
            found.count += 1;
            return;
        }
        let text = String::from_utf8_lossy(text).into_owned();
        known.push(Found { index, text, offset: offset + place.start as u64, count: 1 });
    }
}

/// The text that a find stands for, or `None` if the marker does not stand there as it must.
fn text_of<'w>(marker: &Marker, window: &'w [u8], place: &Range<usize>) -> Option<&'w [u8]> {
    let before = &window[..place.start];
    let after = &window[place.end..];
    let text_before = before.iter().rev().take(SHORTEST_TEXT).take_while(|b| is_text(**b)).count();
    let text_after = after.iter().take(SHORTEST_TEXT).take_while(|b| is_text(**b)).count();
    if text_before + place.len() + text_after < SHORTEST_TEXT {
        return None;
    }
    let name_before = before.iter().rev().take(CONTEXT).take_while(|b| is_identifier(**b)).count();
    let name_after = after.iter().take(CONTEXT).take_while(|b| is_identifier(**b)).count();
    let ends = |length: usize| after.get(length).is_none_or(|&byte| byte == 0);
    match marker.form {
        Form::String => {
            let rest = after.iter().take(CONTEXT).take_while(|b| (0x20..0x7f).contains(*b)).count();
            Some(&window[place.start..place.end + rest])
        }
        Form::Name => (name_before == 0 && name_after == 0 && ends(0)).then_some(&window[place.clone()]),
        Form::NameStart => {
            (name_before == 0 && ends(name_after)).then_some(&window[place.start..place.end + name_after])
        }
        Form::NameEnd => (name_before < CONTEXT && name_after == 0 && ends(0))
            .then_some(&window[place.start - name_before..place.end]),
    }
}

fn is_text(byte: u8) -> bool {
    (0x20..0x80).contains(&byte)
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::markers::Speaks;

    fn scan(pieces: &[&[u8]]) -> Markers {
        let mut scan = MarkerScan::new();
        for piece in pieces {
            scan.push(piece);
        }
        scan.finish()
    }

    fn found(bytes: &[u8]) -> Vec<(Speaks, String, u64, u64)> {
        let list = scan(&[bytes]);
        list.iter().map(|f| (f.marker().speaks_for, f.text.clone(), f.offset, f.count)).collect()
    }

    #[test]
    fn a_symbol_table_is_not_read_only_data() {
        assert_eq!(found(b"\0_ZTSNSt6locale5facetE\0_ZTINSt6locale5facetE\0"), []);
        assert_eq!(found(b"\0NSt6locale5facetEX\0"), []);
        let facet = (Speaks::LibstdcxxFull, "NSt6locale5facetE".to_owned(), 1, 1);
        assert_eq!(found(b"\0NSt6locale5facetE\0"), [facet]);
        let anonymous = found(b"\0*N12_GLOBAL__N_122generic_error_categoryE\0");
        assert_eq!(anonymous.len(), 1, "a name of internal linkage begins with a star");
    }

    #[test]
    fn texts_are_told_whole() {
        let config = found(b"\0OpenBLAS 0.3.30 USE64BITINT DYNAMIC_ARCH NO_AFFINITY \0next");
        assert_eq!(config[0].1, "OpenBLAS 0.3.30 USE64BITINT DYNAMIC_ARCH NO_AFFINITY ");
        let facet = found(b"\0\0NSt4__y16locale5facetE\0");
        let names: Vec<_> = facet.iter().map(|f| (f.0, f.1.as_str())).collect();
        let name = "NSt4__y16locale5facetE";
        assert_eq!(names, [(Speaks::LocaleFacet, name), (Speaks::LibcxxName, name)]);
    }

    #[test]
    fn many_texts_of_one_marker_are_counted() {
        let mut bytes = Vec::new();
        for i in 0..1000 {
            bytes.extend_from_slice(format!("\0/rustc/{i}/library/core.rs\0").as_bytes());
        }
        let all = found(&bytes);
        assert_eq!(all.len(), MOST_TEXTS);
        assert_eq!(all.iter().map(|f| f.3).sum::<u64>(), 1000);
    }

    /// A buffer of text and other bytes with markers in it, and places to cut it.
    fn stream() -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
        let filler = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..3000),
            proptest::collection::vec(0x20u8..0x7f, 0..3000),
            proptest::collection::vec(Just(0u8), 0..12000),
        ];
        let part = (filler, 0..MARKERS.len(), any::<bool>());
        let parts = proptest::collection::vec(part, 1..6);
        let cuts = proptest::collection::vec(1usize..20000, 0..12);
        (parts, cuts).prop_map(|(parts, cuts)| {
            let mut bytes = Vec::new();
            for (filler, marker, whole) in parts {
                bytes.extend_from_slice(&filler);
                bytes.push(0);
                bytes.extend_from_slice(MARKERS[marker].text.as_bytes());
                if whole {
                    bytes.push(0);
                }
            }
            (bytes, cuts)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn cuts_make_no_difference((bytes, cuts) in stream()) {
            let whole = scan(&[&bytes]);
            let mut pieces = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            prop_assert_eq!(scan(&pieces), whole);
        }

        #[test]
        fn every_marker_is_found_wherever_it_stands(at in 0usize..70000, index in 0..MARKERS.len()) {
            let mut bytes = vec![0u8; at + 1];
            bytes.extend_from_slice(MARKERS[index].text.as_bytes());
            // Short ones stand within a longer text; the others are whole.
            if MARKERS[index].text.len() < 15 && MARKERS[index].form != Form::NameEnd {
                bytes.extend_from_slice(b"and_fifteen_letters");
            }
            bytes.extend_from_slice(&[0; 700]);
            let markers = scan(&bytes.chunks(9973).collect::<Vec<_>>());
            let short = MARKERS[index].form == Form::NameEnd;
            let here = |f: &Found| f.marker() == &MARKERS[index] && f.offset == at as u64 + 1;
            prop_assert!(short || markers.iter().any(here));
        }
    }
}
