//! Where functions begin, from the table for unwinding: it is there in stripped files too, since exceptions need it.

use abiaudit_elf::{Object, SegmentType};
use gimli::{BaseAddresses, EhFrameHdr, LittleEndian, Pointer};

/// The addresses that the binary search table of `PT_GNU_EH_FRAME` (LSB, `.eh_frame_hdr`) has, in its order; none where it
/// cannot be read.
pub(super) fn starts(bytes: &[u8], object: &Object) -> Vec<u64> {
    read(bytes, object).unwrap_or_default()
}

fn read(bytes: &[u8], object: &Object) -> Option<Vec<u64>> {
    let segment = object.segments.first(SegmentType::GnuEhFrame)?;
    let range = segment.file_range();
    let table = bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(segment.address);
    let header = EhFrameHdr::new(table, LittleEndian).parse(&bases, 8).ok()?;
    let table = header.table()?;
    let mut entries = table.iter(&bases);
    let mut starts = Vec::new();
    while let Ok(Some((start, _))) = entries.next() {
        if let Pointer::Direct(start) = start {
            starts.push(start);
        }
    }
    Some(starts)
}
