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
use crate::segments::{Segment, SegmentType, Segments};

/// Bytes of the file's start that are always kept: headers, and all of a small file.
const HEAD: u64 = 64 << 10;
/// Upper bound of a first segment that holds nothing but tables.
const TABLES: u64 = 48 << 20;
/// Upper bound where the first segment holds code too and the tables come before it.
const TABLES_BEFORE_CODE: u64 = 24 << 20;
/// `.comment` follows the last segment.
const AFTER_LOADS: u64 = 4 << 10;
/// Section names end at the section headers, or at the symbol table's strings, which do.
const BEFORE_SECTIONS: u64 = 64 << 10;
/// Segments that are wanted whole are small; a larger one is left to a second pass.
const SMALL_SEGMENT: u64 = 4 << 20;
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
    let table = |offset: u64, count: u16, entry_size: u16| {
        offset..offset.saturating_add(u64::from(count) * u64::from(entry_size))
    };
    let segments = table(header.e_phoff(endian).into(), header.e_phnum(endian), header.e_phentsize(endian));
    let mut ranges = vec![segments.clone()];
    let sections = table(header.e_shoff(endian).into(), header.e_shnum(endian), header.e_shentsize(endian));
    if sections.start != 0 {
        // A count of 0 stands in section 0 (gABI chapter 4): such a table is mostly the end of the file.
        let end = if sections.is_empty() { u64::MAX } else { sections.end };
        ranges.push(
            sections.start.saturating_sub(BEFORE_SECTIONS)
                ..end.min(sections.start.saturating_add(SMALL_SEGMENT)),
        );
    }
    Plan { ranges, next: Stage::ProgramHeaders(segments.end) }
}

/// From the program headers: the tables' likely place, and the small segments that are read whole.
fn plan_segments(segments: &Segments, entry: u64) -> Plan {
    use SegmentType::{Dynamic, GnuProperty, Interp, Note};
    let mut ranges = Vec::new();
    if let Some(first) = segments.loads().min_by_key(|l| l.offset) {
        let bound = likely_tables(first, entry);
        ranges.push(first.offset..first.file_range().end.min(first.offset.saturating_add(bound)));
    }
    if let Some(end) = segments.loads().map(|l| l.file_range().end).max() {
        ranges.push(end..end.saturating_add(AFTER_LOADS));
    }
    let small = segments.iter().filter(|s| matches!(s.segment_type, Dynamic | Note | GnuProperty | Interp));
    ranges.extend(small.map(Segment::file_range).filter(|r| r.end - r.start <= SMALL_SEGMENT));
    let dynamic = segments.dynamic();
    let next = dynamic.map_or(Stage::Settled, |segment| Stage::Dynamic(segment.file_range().end));
    Plan { ranges, next }
}

/// How much of the first segment can be tables. Where it holds code too, they come before the code; GNU ld before
/// binutils 2.36 wrote the start of `.text` into `e_entry` even of libraries.
fn likely_tables(first: &Segment, entry: u64) -> u64 {
    if !first.is_executable() {
        return TABLES;
    }
    match entry.checked_sub(first.address) {
        Some(within) if within > 0 && within < first.file_size => within.min(TABLES_BEFORE_CODE),
        _ => TABLES_BEFORE_CODE,
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
            None => next(offset).unwrap_or(u64::MAX).min(offset.saturating_add(TABLES_BEFORE_CODE)),
        };
        offset..end
    };
    Ok(Plan { ranges: located.iter().map(range).collect(), next: Stage::Settled })
}
