//! Watches a file as it streams by and keeps the bytes that facts come from.
//!
//! What is needed is not known before `PT_DYNAMIC` is read, which mostly lies behind the tables it points to. So
//! the collector learns twice. Once the program headers have gone by it keeps the place where linkers put the
//! tables, the small segments that are read whole, and the section headers; once `PT_DYNAMIC` has gone by it keeps
//! what that names and is still to come (tools that rewrite ELF files put tables at the end). Where that was not
//! enough, [`Object::parse`](crate::Object::parse) says what is missing and the caller streams the member once more
//! with [`Collector::for_ranges`].

use std::ops::Range;

use object::{Endianness, elf};

use crate::dynamic;
use crate::error::Fault;
use crate::image::Image;
use crate::raw::Elf;
use crate::sections;
use crate::segments::{Segment, SegmentType, Segments};

/// Bytes of the file's start that are always kept: headers, and all of a small file.
const HEAD: u64 = 64 << 10;
/// Upper bound of a segment that holds nothing but tables.
const TABLES: u64 = 52 << 20;
/// Upper bound where the first segment holds other things too and the tables come before them.
const TABLES_BEFORE_OTHERS: u64 = 16 << 20;
/// What is not loaded follows the last segment (or lies between two after an editor has appended one): `.comment`,
/// little debug information, section names.
const NOT_LOADED: u64 = 1 << 20;
/// lld puts `.symtab` before the section names and its strings behind them.
const SYMTAB_OF_LLD: u64 = 16 << 20;
/// Section names end at the section headers, or at the symbol table's strings, which do.
const BEFORE_SECTIONS: u64 = 64 << 10;
/// Linkers make four loads, editors add one or two.
const MOST_LOADS: usize = 32;
/// Segments that are wanted whole are small; a larger one is left to a second pass.
const SMALL_SEGMENT: u64 = 4 << 20;
/// What the first pass keeps at most. Ranges are clipped to the file, but a file of zeros is cheap to send.
const MOST_KEPT: u64 = 96 << 20;
/// What a part allocates before its bytes come. The size of the file is only a claim.
const FIRST_ALLOCATION: u64 = 16 << 20;

/// Keeps parts of a stream. Push all chunks in order, then [`finish`](Self::finish).
#[derive(Debug)]
pub struct Collector {
    size: u64,
    position: u64,
    /// Parts that are being filled (only the first) or still to come: sorted, disjoint.
    open: Vec<Part>,
    /// Parts whose bytes have all gone by.
    filled: Vec<Part>,
    stage: Stage,
}

#[derive(Debug)]
struct Part {
    range: Range<u64>,
    bytes: Vec<u8>,
}

/// What the collector waits for: to have seen the file up to here.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Header(u64),
    ProgramHeaders(u64),
    Dynamic(u64),
    /// Nothing more to learn.
    Settled,
}

impl Stage {
    fn wait(self) -> u64 {
        match self {
            Self::Header(at) | Self::ProgramHeaders(at) | Self::Dynamic(at) => at,
            Self::Settled => u64::MAX,
        }
    }
}

impl Collector {
    /// For a file of `size` bytes.
    pub fn new(size: u64) -> Self {
        // The larger of the two ELF headers; a file that is shorter has nothing to learn from.
        const HEADER: u64 = 64;
        let mut collector =
            Self { size, position: 0, open: Vec::new(), filled: Vec::new(), stage: Stage::Header(HEADER) };
        collector.keep([0..HEAD]);
        collector
    }

    /// Keeps exactly these ranges: the second pass.
    pub fn for_ranges(size: u64, ranges: &[Range<u64>]) -> Self {
        let mut collector =
            Self { size, position: 0, open: Vec::new(), filled: Vec::new(), stage: Stage::Settled };
        collector.keep(ranges.iter().cloned());
        collector
    }

    /// The next bytes of the file.
    pub fn push(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        // What is learned in the middle of a chunk counts for the remainder of the chunk.
        while let Some((before, after)) = self.split_at_stage(rest) {
            self.copy(before);
            rest = after;
            self.learn();
        }
        self.copy(rest);
    }

    /// What was kept. The image has the size of the stream where that was shorter than announced.
    pub fn finish(mut self) -> Image<'static> {
        let mut image = Image::empty(self.size.min(self.position));
        self.filled.append(&mut self.open);
        for part in self.filled {
            image.insert(part.range.start, part.bytes);
        }
        image
    }

    /// The bytes up to where the stage ends, if it ends in `bytes`.
    fn split_at_stage<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
        let left = usize::try_from(self.stage.wait().saturating_sub(self.position)).ok()?;
        bytes.split_at_checked(left)
    }

    fn copy(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (start, end) = (self.position, self.position.saturating_add(bytes.len() as u64));
        while let Some(part) = self.open.first_mut() {
            let (from, to) = (part.range.start.max(start), part.range.end.min(end));
            if from < to {
                if part.bytes.capacity() == 0 {
                    let length = (part.range.end - part.range.start).min(FIRST_ALLOCATION);
                    part.bytes.reserve_exact(length as usize);
                }
                part.bytes.extend_from_slice(&bytes[(from - start) as usize..(to - start) as usize]);
            }
            // A part that ends exactly here stays open: what is learned next may extend it.
            if part.range.end >= end {
                break;
            }
            self.filled.push(self.open.remove(0));
        }
        self.position = end;
    }

    /// Adds ranges to what is kept, as far as they are still to come.
    fn keep(&mut self, ranges: impl IntoIterator<Item = Range<u64>>) {
        let clip = |range: Range<u64>| range.start.max(self.position)..range.end.min(self.size);
        let added = ranges.into_iter().map(clip).filter(|range| range.start < range.end);
        self.open.extend(added.map(|range| Part { range, bytes: Vec::new() }));
        // Only the part that is being filled has bytes, and none starts before it: stable sorting keeps it first.
        self.open.sort_by_key(|part| part.range.start);
        self.open.dedup_by(|next, part| {
            let touches = next.range.start <= part.range.end;
            if touches {
                part.range.end = part.range.end.max(next.range.end);
            }
            touches
        });
    }

    /// Looks at what has gone by and decides what else to keep.
    fn learn(&mut self) {
        let mut image = Image::empty(self.size);
        for part in self.filled.iter().chain(&self.open) {
            image.insert(part.range.start, &part.bytes[..]);
        }
        let plan = match image.get(0..6) {
            Some([0x7f, b'E', b'L', b'F', 1, data]) => {
                plan::<elf::FileHeader32<Endianness>>(&image, endian(*data), self.stage)
            }
            Some([0x7f, b'E', b'L', b'F', 2, data]) => {
                plan::<elf::FileHeader64<Endianness>>(&image, endian(*data), self.stage)
            }
            _ => Ok(Plan::default()),
        };
        // Headers that make no sense are reported by the parser; here they only mean that nothing is learned.
        let plan = plan.unwrap_or_default();
        // A stage that is already behind would wait for ever or be reached at once; both are fine.
        self.stage = plan.next;
        self.keep(plan.ranges);
        self.limit(MOST_KEPT);
    }

    /// Gives up the last parts beyond `most` bytes; the parser asks for them if they matter.
    fn limit(&mut self, most: u64) {
        let mut left =
            self.filled.iter().fold(most, |left, part| left.saturating_sub(part.bytes.len() as u64));
        self.open.retain_mut(|part| {
            let start = part.range.start;
            part.range.end =
                part.range.end.min(start.saturating_add(left)).max(self.position.min(part.range.end));
            left = left.saturating_sub(part.range.end.saturating_sub(start));
            part.range.start < part.range.end
        });
    }
}

fn endian(data: u8) -> Endianness {
    if data == 2 { Endianness::Big } else { Endianness::Little }
}

/// What to keep, and what to wait for then.
#[derive(Debug)]
struct Plan {
    ranges: Vec<Range<u64>>,
    next: Stage,
}

impl Default for Plan {
    fn default() -> Self {
        Self { ranges: Vec::new(), next: Stage::Settled }
    }
}

fn plan<E: Elf>(image: &Image<'_>, endian: Endianness, stage: Stage) -> Result<Plan, Fault> {
    let header = *image.read::<E>("ELF header", 0)?;
    if let Stage::Header(_) = stage {
        return Ok(plan_headers::<E>(&header, endian));
    }
    let segments = Segments::read(image, &header, endian)?;
    match stage {
        Stage::Dynamic(_) => plan_tables::<E>(image, &segments, endian),
        _ => Ok(plan_segments(&segments, header.e_entry(endian).into())),
    }
}

/// From the ELF header: program headers, section headers.
fn plan_headers<E: Elf>(header: &E, endian: Endianness) -> Plan {
    let offset: u64 = header.e_phoff(endian).into();
    let size = u64::from(header.e_phnum(endian)) * u64::from(header.e_phentsize(endian));
    let segments = offset..offset.saturating_add(size);
    let mut ranges = vec![segments.clone()];
    if let Some(table) = sections::table(header, endian) {
        // A count of 0 stands in section 0 (gABI chapter 4): such a table is mostly the end of the file.
        let end = if table.is_empty() { u64::MAX } else { table.end };
        let most = table.start.saturating_add(SMALL_SEGMENT);
        ranges.push(table.start.saturating_sub(BEFORE_SECTIONS)..end.min(most));
    }
    Plan { ranges, next: Stage::ProgramHeaders(segments.end) }
}

/// From the program headers: the tables' likely places, and the small segments that are read whole.
fn plan_segments(segments: &Segments, entry: u64) -> Plan {
    use SegmentType::{GnuProperty, Interp, Note};
    let mut loads: Vec<&Segment> =
        segments.loads().filter(|load| load.file_size > 0).take(MOST_LOADS).collect();
    loads.sort_by_key(|load| load.offset);
    let mut ranges = Vec::new();
    for (i, load) in loads.iter().enumerate() {
        let end = load.file_range().end;
        let next = loads.get(i + 1).map_or(u64::MAX, |next| next.offset);
        ranges.push(end..next.min(end.saturating_add(NOT_LOADED)));
    }
    let linker = Linker::guess(&loads);
    if let Some(first) = loads.first() {
        ranges.push(first_of(first, linker.most_tables(first, entry)));
    }
    let end = loads.iter().map(|load| load.file_range().end).max();
    if let Some(end) = end.filter(|_| linker == Linker::Lld) {
        ranges.push(after(end, SYMTAB_OF_LLD));
    }
    let small = segments.iter().filter(|s| matches!(s.segment_type, Note | GnuProperty | Interp));
    ranges.extend(small.map(Segment::file_range).filter(|r| r.end - r.start <= SMALL_SEGMENT));
    let Some(dynamic) = segments.dynamic().map(Segment::file_range) else {
        return Plan { ranges, next: Stage::Settled };
    };
    if dynamic.end - dynamic.start <= SMALL_SEGMENT {
        ranges.push(dynamic.clone());
    }
    // A linker puts PT_DYNAMIC into the first writable segment. Where it lies in a later one an editor has appended
    // that, and what else it moved lies before it.
    let writable = loads.iter().filter(|load| load.is_writable());
    let appended = writable.skip(1).filter(|load| load.offset < dynamic.start);
    ranges.extend(appended.map(|load| first_of(load, TABLES)));
    Plan { ranges, next: Stage::Dynamic(dynamic.end) }
}

fn after(offset: u64, size: u64) -> Range<u64> {
    offset..offset.saturating_add(size)
}

/// The first bytes of what a segment has in the file.
fn first_of(segment: &Segment, most: u64) -> Range<u64> {
    after(segment.offset, segment.file_size.min(most))
}

/// Whose order of sections the loads have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linker {
    /// GNU ld with `-z separate-code`: tables, code, read-only data, data.
    SeparateCode,
    /// lld: tables with read-only data, code, data.
    Lld,
    /// GNU ld without it, gold: tables with code and read-only data, data.
    CodeFirst,
}

impl Linker {
    fn guess(loads: &[&Segment]) -> Self {
        let code = loads.iter().position(|load| load.is_executable());
        let behind_code = &loads[code.map_or(loads.len(), |index| index + 1)..];
        match code {
            Some(0) => Self::CodeFirst,
            _ if behind_code.iter().any(|load| !load.is_writable() && !load.is_executable()) => {
                Self::SeparateCode
            }
            _ => Self::Lld,
        }
    }

    /// How much of the first segment can be tables, which come first in it. GNU ld before binutils 2.36 wrote the
    /// start of the code into `e_entry` even of libraries.
    fn most_tables(self, first: &Segment, entry: u64) -> u64 {
        let before_code =
            entry.checked_sub(first.address).filter(|&within| 0 < within && within < first.file_size);
        match (self, before_code) {
            (Self::SeparateCode, _) => TABLES,
            (Self::CodeFirst, Some(within)) => within.min(TABLES_BEFORE_OTHERS),
            _ => TABLES_BEFORE_OTHERS,
        }
    }
}

/// From the dynamic entries: tables that are still to come. Those without a size reach to the next table.
fn plan_tables<E: Elf>(image: &Image<'_>, segments: &Segments, endian: Endianness) -> Result<Plan, Fault> {
    let mut ignored = Vec::new();
    let Some((_, pointers)) = dynamic::read_entries::<E>(image, segments, endian, &mut ignored)? else {
        return Ok(Plan::default());
    };
    let tags = [
        (elf::DT_STRTAB, Some(elf::DT_STRSZ)),
        (elf::DT_RELA, Some(elf::DT_RELASZ)),
        (elf::DT_REL, Some(elf::DT_RELSZ)),
        (elf::DT_JMPREL, Some(elf::DT_PLTRELSZ)),
        (elf::DT_SYMTAB, None),
        (elf::DT_HASH, None),
        (elf::DT_GNU_HASH, None),
        (elf::DT_VERSYM, None),
        (elf::DT_VERNEED, None),
        (elf::DT_VERDEF, None),
    ];
    let located: Vec<(u64, Option<u64>)> = tags
        .into_iter()
        .filter_map(|(tag, size)| {
            let offset = segments.offset_of("table", pointers.get(tag)?).ok()?;
            Some((offset, size.map(|size| pointers.get(size).unwrap_or(0))))
        })
        .collect();
    let next = |offset: u64| located.iter().map(|l| l.0).filter(|&o| o > offset).min();
    let range = |&(offset, size): &(u64, Option<u64>)| {
        let end = match size {
            Some(size) => offset.saturating_add(size),
            None => next(offset).unwrap_or(u64::MAX).min(offset.saturating_add(TABLES_BEFORE_OTHERS)),
        };
        offset..end
    };
    Ok(Plan { ranges: located.iter().map(range).collect(), next: Stage::Settled })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with 32 writable loads of 1 GiB each, then zeros for ever.
    #[test]
    fn a_bomb_costs_no_more_than_the_limit() {
        const SIZE: u64 = 64 << 30;
        let mut header = vec![0; 64 + 33 * 56];
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        header[32] = 64;
        header[54] = 56;
        header[56] = 33;
        for i in 0..33u64 {
            let at = 64 + i as usize * 56;
            header[at] = if i == 0 { 2 } else { 1 };
            header[at + 4] = 6;
            let offset = if i == 0 { SIZE - 4096 } else { i << 30 };
            header[at + 8..at + 16].copy_from_slice(&offset.to_le_bytes());
            header[at + 32..at + 40].copy_from_slice(&(1u64 << 30).to_le_bytes());
        }
        let mut collector = Collector::new(SIZE);
        collector.push(&header);
        let planned: u64 = collector.open.iter().map(|part| part.range.end - part.range.start).sum();
        assert!(planned > MOST_KEPT / 2 && planned <= MOST_KEPT, "{planned}");
    }

    #[test]
    fn ranges_join_and_are_kept_in_order() {
        let mut collector = Collector::for_ranges(100, &[50..60, 10..20, 15..30, 90..200, 30..31]);
        collector.push(&(0..100).collect::<Vec<u8>>());
        let image = collector.finish();
        assert_eq!(image.kept(), 21 + 10 + 10);
        assert_eq!(image.get(10..31).map(<[u8]>::len), Some(21));
        assert_eq!(image.get(90..100), Some(&(90..100).collect::<Vec<u8>>()[..]));
        assert_eq!(image.get(60..61), None);
    }
}
