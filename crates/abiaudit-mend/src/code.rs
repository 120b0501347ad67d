//! What the instructions of an object refer to, by address.
//!
//! The loader settles references through relocations, and those can be redirected by changing a symbol. A reference that
//! the linker settled is a distance in an instruction: it stays, whatever a symbol table says. To find those there is no
//! way but to decode the code. Decoded is every section of instructions from its start to its end. Where code is mixed
//! with data that can give references that are none, and lose some until the decoder is in step again, for which the
//! starts of functions (`.eh_frame_hdr`, symbols) set it right.

mod aarch64;
mod frames;
mod x86_64;

use std::ops::Range;

use abiaudit_elf::{Object, Segment, Symbol, SymbolType};

/// One reference from an instruction to an address of the same object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The address of the instruction.
    pub from: u64,
    /// The address that it refers to.
    pub to: u64,
    /// How.
    pub kind: ReferenceKind,
}

/// How an instruction refers to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// A call.
    Call,
    /// A jump, conditional or not.
    Jump,
    /// The address itself is computed: `lea`, `adr`, `adrp` with `add`.
    Address,
    /// What is at the address is read or written, or control goes to where it points.
    Memory,
}

/// A machine whose code is not decoded here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("code for {machine} is not decoded; that of x86_64 and aarch64 is")]
pub struct UnknownMachine {
    /// The machine, for people.
    pub machine: String,
}

/// The code of one file, ready to be decoded.
#[derive(Debug)]
pub struct Code<'a> {
    bytes: &'a [u8],
    object: &'a Object,
    decode: Decode,
    /// Functions and parts of functions, sorted, disjoint; together all code.
    fragments: Vec<Range<u64>>,
}

/// Decodes what lies at `address`: instructions that begin before `end`, an address too.
type Decode = fn(code: &[u8], address: u64, end: u64, visit: &mut dyn FnMut(Reference));

impl<'a> Code<'a> {
    /// Finds the code of a whole file.
    ///
    /// # Errors
    /// [`UnknownMachine`] for all but `x86_64` and `aarch64`.
    pub fn new(bytes: &'a [u8], object: &'a Object) -> Result<Self, UnknownMachine> {
        let decode: Decode = match object.identity.arch() {
            Some("x86_64") => x86_64::references,
            Some("aarch64") => aarch64::references,
            _ => return Err(UnknownMachine { machine: object.identity.machine_name() }),
        };
        let mut starts = frames::starts(bytes, object);
        starts.extend(object.symbols.iter().filter(|s| is_function(s)).map(|s| s.value));
        starts.sort_unstable();
        starts.dedup();
        let fragments = instructions(object).iter().flat_map(|range| split(range, &starts)).collect();
        Ok(Self { bytes, object, decode, fragments })
    }

    /// Functions and parts of functions (compilers move what is rarely run elsewhere), sorted and disjoint; together
    /// all code.
    pub fn fragments(&self) -> &[Range<u64>] {
        &self.fragments
    }

    /// The index of the fragment that an address lies in.
    pub fn fragment_of(&self, address: u64) -> Option<usize> {
        let next = self.fragments.partition_point(|fragment| fragment.start <= address);
        let index = next.checked_sub(1)?;
        self.fragments.get(index)?.contains(&address).then_some(index)
    }

    /// Calls `visit` with every reference of every instruction, in the order of addresses.
    pub fn references(&self, mut visit: impl FnMut(Reference)) {
        for fragment in &self.fragments {
            let Some(code) = self.bytes_at(fragment.start) else { continue };
            (self.decode)(code, fragment.start, fragment.end, &mut visit);
        }
    }

    /// Eight bytes of the file's content at an address, as a little-endian number.
    pub(crate) fn word_at(&self, address: u64) -> Option<u64> {
        let bytes = self.bytes_at(address)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// The bytes from an address to the end of what its segment has of the file.
    fn bytes_at(&self, address: u64) -> Option<&'a [u8]> {
        let load =
            self.object.segments.loads().rev().find(|load| {
                address.checked_sub(load.address).is_some_and(|within| within < load.file_size)
            })?;
        let start = load.offset.checked_add(address - load.address)?;
        let end = load.file_range().end.min(self.bytes.len() as u64);
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }
}

fn is_function(symbol: &Symbol) -> bool {
    !symbol.is_undefined() && matches!(symbol.symbol_type(), SymbolType::Function | SymbolType::Ifunc)
}

/// Address ranges of instructions: the sections that say so, else, without section headers, whole executable segments.
fn instructions(object: &Object) -> Vec<Range<u64>> {
    const EXECINSTR: u64 = 4;
    let sections = object.sections.headers.iter();
    let sections = sections.filter(|s| s.is_alloc() && !s.is_nobits() && s.flags & EXECINSTR != 0);
    let mut ranges: Vec<_> = sections.map(|s| s.address..s.address.saturating_add(s.size)).collect();
    if ranges.is_empty() {
        let segments = object.segments.loads().filter(|load| load.is_executable());
        ranges = segments
            .map(|load: &Segment| load.address..load.address.saturating_add(load.file_size))
            .collect();
    }
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    // Sections that overlap are no sections: what comes later is cut.
    let mut end = 0;
    for range in &mut ranges {
        range.start = range.start.max(end);
        end = end.max(range.end);
    }
    ranges.retain(|range| !range.is_empty());
    ranges
}

/// A range cut at every start that lies in it.
fn split(range: &Range<u64>, starts: &[u64]) -> Vec<Range<u64>> {
    let first = starts.partition_point(|&start| start <= range.start);
    let inside = starts.iter().skip(first).take_while(|&&start| start < range.end).copied();
    let edges: Vec<u64> = std::iter::once(range.start).chain(inside).chain([range.end]).collect();
    edges.windows(2).map(|edge| edge[0]..edge[1]).collect()
}
