//! References of AArch64 instructions (Arm Architecture Reference Manual, C4.1).
//!
//! Branches and `adr` hold a distance. `adrp` holds a page, and a later `add` or load completes it: the page that a register
//! was last given is remembered to the end of the fragment, whatever else is written to it, which can give references that
//! are none but loses only those whose `adrp` comes later in the fragment.

use super::{Reference, ReferenceKind};

const PAGE: u64 = 0xfff;

/// See [`super::Decode`].
pub(super) fn references(code: &[u8], address: u64, end: u64, visit: &mut dyn FnMut(Reference)) {
    let mut pages = [None; 32];
    let words = code.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    for (word, from) in words.zip((address..end).step_by(4)) {
        if let Some((to, kind)) = reference(word, from, &mut pages) {
            visit(Reference { from, to, kind });
        }
    }
}

fn reference(word: u32, from: u64, pages: &mut [Option<u64>; 32]) -> Option<(u64, ReferenceKind)> {
    let branch = |kind, low, bits| Some((from.wrapping_add_signed(signed(word, low, bits) * 4), kind));
    match word >> 24 {
        // BL, B
        0x94..=0x97 => branch(ReferenceKind::Call, 0, 26),
        0x14..=0x17 => branch(ReferenceKind::Jump, 0, 26),
        // B.cond, BC.cond; CBZ, CBNZ
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => branch(ReferenceKind::Jump, 5, 19),
        // TBZ, TBNZ
        0x36 | 0x37 | 0xb6 | 0xb7 => branch(ReferenceKind::Jump, 5, 14),
        // LDR, LDRSW, PRFM (literal), and those of SIMD registers
        0x18 | 0x58 | 0x98 | 0xd8 | 0x1c | 0x5c | 0x9c => branch(ReferenceKind::Memory, 5, 19),
        _ => addressed(word, from, pages),
    }
}

/// ADR, ADRP, and what completes the page of an ADRP.
fn addressed(word: u32, from: u64, pages: &mut [Option<u64>; 32]) -> Option<(u64, ReferenceKind)> {
    let register = |low: u32| (word >> low & 31) as usize;
    let offset = u64::from(word >> 10 & 0xfff);
    if word & 0x1f00_0000 == 0x1000_0000 {
        let distance = signed(word, 5, 19) << 2 | i64::from(word >> 29 & 3);
        if word >> 31 == 0 {
            return Some((from.wrapping_add_signed(distance), ReferenceKind::Address));
        }
        pages[register(0)] = Some((from & !PAGE).wrapping_add_signed(distance << 12));
        None
    } else if word & 0xff80_0000 == 0x9100_0000 {
        // ADD (immediate), 64 bits; with the shift of 12 it completes no page.
        let shift = if word >> 22 & 1 == 1 { 12 } else { 0 };
        let page = pages[register(5)]?;
        Some((page.wrapping_add(offset << shift), ReferenceKind::Address))
    } else if word & 0x3b00_0000 == 0x3900_0000 {
        // Load and store with an unsigned offset, scaled by the size of what is moved; of SIMD registers, 128 bits are
        // told by opc.
        let is_128_bits = word >> 26 & 1 == 1 && word >> 30 == 0 && word >> 23 & 1 == 1;
        let scale = if is_128_bits { 4 } else { word >> 30 };
        let page = pages[register(5)]?;
        Some((page.wrapping_add(offset << scale), ReferenceKind::Memory))
    } else {
        None
    }
}

/// `bits` bits of `word` from bit `low` on, as a signed number.
fn signed(word: u32, low: u32, bits: u32) -> i64 {
    let unused = 32 - bits;
    let value = (word >> low) << unused;
    i64::from(value.cast_signed() >> unused)
}
