//! Watches a file as it streams by and keeps the bytes that facts come from.
//!
//! What is needed is not known before `PT_DYNAMIC` is read, which mostly lies behind the tables it points to. So
//! the start of the file is kept (linkers put the tables there), the segments that the program headers point
//! out, what `PT_DYNAMIC` names once it has gone by (tools that rewrite ELF files put tables at the end), and the
//! end (section headers). Where that was not enough, [`Object::parse`](crate::Object::parse) says what is missing
//! and the caller streams the member once more with [`Collector::for_ranges`].

use std::ops::Range;

use object::{Endianness, elf};

use crate::dynamic;
use crate::error::Fault;
use crate::image::Image;
use crate::raw::Elf;
use crate::segments::{SegmentType, Segments};

/// Bytes of the file's start that are always kept: headers, and all of a small file.
const HEAD: u64 = 1 << 20;
/// Upper bound of a first segment that holds nothing but tables.
const TABLES: u64 = 96 << 20;
/// Upper bound where the first segment holds code too and the tables come before it.
const TABLES_BEFORE_CODE: u64 = 24 << 20;
/// `.comment` follows the last segment; section headers and their names end the file.
const AFTER_LOADS: u64 = 64 << 10;
const TAIL: u64 = 1 << 20;
/// Segments that are wanted whole are small; a larger one is left to a second pass.
const SMALL_SEGMENT: u64 = 4 << 20;

/// Keeps parts of a stream. Push all chunks in order, then [`finish`](Self::finish).
#[derive(Debug)]
pub struct Collector {
    size: u64,
    position: u64,
    /// Sorted, disjoint.
    parts: Vec<Part>,
    stage: Stage,
}

#[derive(Debug)]
struct Part {
    range: Range<u64>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    /// Program headers have not gone by.
    Headers,
    /// `PT_DYNAMIC` ends here and has not gone by.
    Dynamic(u64),
    /// Nothing more to learn.
    Settled,
}

impl Collector {
    /// For a file of `size` bytes.
    pub fn new(size: u64) -> Self {
        let mut collector = Self { size, position: 0, parts: Vec::new(), stage: Stage::Headers };
        collector.keep(0..HEAD);
        collector.keep(size.saturating_sub(TAIL)..size);
        collector
    }

    /// Keeps exactly these ranges: the second pass.
    pub fn for_ranges(size: u64, ranges: &[Range<u64>]) -> Self {
        let mut collector = Self { size, position: 0, parts: Vec::new(), stage: Stage::Settled };
        for range in ranges {
            collector.keep(range.clone());
        }
        collector
    }

    /// The next bytes of the file.
    pub fn push(&mut self, chunk: &[u8]) {
        let start = self.position;
        let end = start + chunk.len() as u64;
        for part in &mut self.parts {
            let from = part.range.start.max(start);
            let to = part.range.end.min(end);
            if from < to {
                part.bytes.extend_from_slice(&chunk[(from - start) as usize..(to - start) as usize]);
            }
        }
        self.position = end;
        match self.stage {
            Stage::Headers => self.learn(),
            Stage::Dynamic(at) if end >= at => self.learn(),
            _ => {}
        }
    }

    /// What was kept.
    pub fn finish(self) -> Image<'static> {
        // A stream that is shorter than announced is what it is; the caller compares sizes.
        let mut image = Image::empty(self.size.min(self.position.max(1)));
        if self.position == 0 {
            image = Image::empty(0);
        }
        for part in self.parts {
            image.insert(part.range.start, part.bytes);
        }
        image
    }

    /// Adds a range to what is kept; of what has gone by only parts that were kept anyway remain.
    fn keep(&mut self, range: Range<u64>) {
        let mut range = range.start.max(self.position)..range.end.min(self.size);
        if range.start >= range.end {
            return;
        }
        // Join with a part that reaches into or up to the range and is still being filled, swallow later ones.
        let mut bytes = Vec::new();
        let mut rest = Vec::with_capacity(self.parts.len() + 1);
        for part in self.parts.drain(..) {
            let touches = part.range.start <= range.end && part.range.end >= range.start;
            let open = part.range.end >= self.position;
            if touches && open && (part.bytes.is_empty() || part.range.start <= range.start) {
                range = part.range.start.min(range.start)..part.range.end.max(range.end);
                if !part.bytes.is_empty() {
                    bytes = part.bytes;
                }
            } else {
                rest.push(part);
            }
        }
        rest.push(Part { range, bytes });
        rest.sort_by_key(|p| p.range.start);
        self.parts = rest;
    }

    /// Looks at what has gone by and decides what else to keep.
    fn learn(&mut self) {
        let mut image = Image::empty(self.size);
        for part in &self.parts {
            image.insert(part.range.start, &part.bytes[..]);
        }
        let wanted = match image.get(4..6) {
            Some([1, data]) => plan::<elf::FileHeader32<Endianness>>(&image, endian(*data), &self.stage),
            Some([2, data]) => plan::<elf::FileHeader64<Endianness>>(&image, endian(*data), &self.stage),
            _ => Err(Fault::Missing(Vec::new())),
        };
        match wanted {
            Ok((ranges, stage)) => {
                for range in ranges {
                    self.keep(range);
                }
                self.stage = stage;
            }
            // The headers are not complete yet, or lie somewhere else: a second pass will do.
            Err(Fault::Missing(_)) if self.position < HEAD => {}
            Err(_) => self.stage = Stage::Settled,
        }
    }
}

fn endian(data: u8) -> Endianness {
    if data == 2 { Endianness::Big } else { Endianness::Little }
}

type Plan = (Vec<Range<u64>>, Stage);

fn plan<E: Elf>(image: &Image<'_>, endian: Endianness, stage: &Stage) -> Result<Plan, Fault> {
    let header = *image.read::<E>("ELF header", 0)?;
    let segments = Segments::read(image, &header, endian)?;
    match stage {
        Stage::Dynamic(_) => Ok((plan_tables::<E>(image, &segments, endian)?, Stage::Settled)),
        _ => Ok(plan_segments::<E>(&header, &segments, endian)),
    }
}

/// From the program headers: the tables' likely place, the small segments that are read whole, section headers.
fn plan_segments<E: Elf>(header: &E, segments: &Segments, endian: Endianness) -> Plan {
    use SegmentType::{Dynamic, GnuProperty, Interp, Note};
    let mut ranges = Vec::new();
    if let Some(first) = segments.loads().min_by_key(|l| l.offset) {
        let bound = if first.is_executable() { TABLES_BEFORE_CODE } else { TABLES };
        ranges.push(first.offset..first.file_range().end.min(first.offset.saturating_add(bound)));
    }
    if let Some(end) = segments.loads().map(|l| l.file_range().end).max() {
        ranges.push(end..end.saturating_add(AFTER_LOADS));
    }
    let small = segments.iter().filter(|s| matches!(s.segment_type, Dynamic | Note | GnuProperty | Interp));
    ranges.extend(small.map(crate::Segment::file_range).filter(|r| r.end - r.start <= SMALL_SEGMENT));
    let sections: u64 = header.e_shoff(endian).into();
    if sections != 0 {
        let size = u64::from(header.e_shnum(endian)) * u64::from(header.e_shentsize(endian));
        ranges.push(sections..sections.saturating_add(size));
    }
    let stage = match segments.first(Dynamic) {
        Some(dynamic) => Stage::Dynamic(dynamic.file_range().end),
        None => Stage::Settled,
    };
    (ranges, stage)
}

/// From the dynamic entries: tables that are still to come. Those without a size reach to the next table.
fn plan_tables<E: Elf>(
    image: &Image<'_>,
    segments: &Segments,
    endian: Endianness,
) -> Result<Vec<Range<u64>>, Fault> {
    let Some((_, pointers)) = dynamic::read_entries::<E>(image, segments, endian)? else {
        return Ok(Vec::new());
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
    Ok(located.iter().map(range).collect())
}
