//! Notes: build-id, ABI tag, GNU properties, and what systemd and distributions put there.

use object::Endianness;
use object::{U32, elf};

use crate::error::{Fault, Problem};
use crate::identity::{Class, Identity};
use crate::image::Image;
use crate::segments::{Segment, SegmentType, Segments};

/// x86-64 micro-architecture levels (x86-64 psABI, "Micro-Architecture Levels").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsaLevel {
    /// x86-64: SSE2.
    Baseline,
    /// x86-64-v2: SSE4.2, POPCNT.
    V2,
    /// x86-64-v3: AVX2, FMA, BMI.
    V3,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ, VL.
    V4,
}

/// `NT_GNU_ABI_TAG`: the oldest kernel that the file runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AbiTag {
    /// 0 is Linux.
    pub os: u32,
    /// Kernel version.
    pub kernel: (u32, u32, u32),
}

/// What the notes in `PT_NOTE` and `PT_GNU_PROPERTY` say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// `NT_GNU_BUILD_ID`, the same for a file and its stripped copy.
    pub build_id: Option<Vec<u8>>,
    /// `NT_GNU_ABI_TAG`
    pub abi_tag: Option<AbiTag>,
    /// `GNU_PROPERTY_X86_ISA_1_NEEDED`, as bits: 1 baseline, 2 v2, 4 v3, 8 v4.
    pub x86_isa_needed: u32,
    /// `GNU_PROPERTY_X86_ISA_1_USED`
    pub x86_isa_used: u32,
    /// `GNU_PROPERTY_X86_FEATURE_1_AND`: 1 IBT, 2 SHSTK.
    pub x86_feature_1: u32,
    /// `GNU_PROPERTY_AARCH64_FEATURE_1_AND`: 1 BTI, 2 PAC.
    pub aarch64_feature_1: u32,
    /// `.note.dlopen` JSON texts (UAPI group "ELF dlopen metadata"): libraries opened at run time.
    pub dlopen: Vec<String>,
    /// `.note.package` JSON text (UAPI group "Package metadata for executable files").
    pub package: Option<String>,
    /// Go's build id is there.
    pub go: bool,
}

impl Notes {
    /// The highest level that `GNU_PROPERTY_X86_ISA_1_NEEDED` asks for; `None` if it asks for nothing.
    pub fn isa_needed(&self) -> Option<IsaLevel> {
        [(8, IsaLevel::V4), (4, IsaLevel::V3), (2, IsaLevel::V2), (1, IsaLevel::Baseline)]
            .into_iter()
            .find_map(|(bit, level)| (self.x86_isa_needed & bit != 0).then_some(level))
    }

    /// The build-id as people write it.
    pub fn build_id_hex(&self) -> Option<String> {
        use std::fmt::Write as _;
        let mut hex = String::new();
        for byte in self.build_id.as_ref()? {
            let _ = write!(hex, "{byte:02x}");
        }
        Some(hex)
    }
}

/// Notes are small; the largest are JSON texts. This is the sum that is looked at.
pub(crate) const ALL_NOTES: u64 = 1 << 20;

/// Reads all note segments. A broken note ends its segment with a problem; nothing else depends on it.
pub(crate) fn read(
    image: &Image,
    segments: &Segments,
    identity: &Identity,
    endian: Endianness,
    problems: &mut Vec<Problem>,
) -> Result<Notes, Fault> {
    let mut notes = Notes::default();
    let mut left = ALL_NOTES;
    for segment in self::segments(segments) {
        let range = segment.file_range();
        if range.end > image.size() {
            let detail = format!("the segment at {:#x} reaches past the end of the file", segment.offset);
            problems.push(Problem { what: "PT_NOTE", detail });
            break;
        }
        left = match left.checked_sub(segment.file_size) {
            Some(left) => left,
            None => {
                let detail = format!("more than {ALL_NOTES} bytes of notes; the rest was not read");
                problems.push(Problem { what: "PT_NOTE", detail });
                break;
            }
        };
        let bytes = image.bytes("PT_NOTE", segment.offset, segment.file_size)?;
        let align = if segment.align == 8 { 8 } else { 4 };
        if !read_segment(bytes, align, identity, endian, &mut notes) {
            let detail = format!("a note in the segment at {:#x} does not fit", segment.offset);
            problems.push(Problem { what: "PT_NOTE", detail });
            break;
        }
    }
    Ok(notes)
}

/// The segments that hold notes.
pub(crate) fn segments(segments: &Segments) -> impl Iterator<Item = &Segment> {
    segments.iter().filter(|s| matches!(s.segment_type, SegmentType::Note | SegmentType::GnuProperty))
}

/// False if a note claims more than the segment has.
fn read_segment(
    mut bytes: &[u8],
    align: usize,
    identity: &Identity,
    endian: Endianness,
    notes: &mut Notes,
) -> bool {
    const HEADER: usize = 12;
    while bytes.len() >= HEADER {
        let name_size = word(bytes, 0, endian) as usize;
        let desc_size = word(bytes, 4, endian) as usize;
        let note_type = word(bytes, 8, endian);
        let Some((name, rest)) = bytes.get(HEADER..).and_then(|rest| rest.split_at_checked(name_size)) else {
            return false;
        };
        // The descriptor starts aligned, counted from the start of the note.
        let padding = padding(HEADER + name_size, align);
        let desc = rest.get(padding..).and_then(|rest| rest.split_at_checked(desc_size));
        let Some((desc, rest)) = desc else { return false };
        note(name, note_type, desc, identity, endian, notes);
        let padding = self::padding(desc_size, align);
        bytes = rest.get(padding..).unwrap_or_default();
    }
    true
}

/// How many bytes are missing from `size` to a multiple of `align`.
fn padding(size: usize, align: usize) -> usize {
    (align - size % align) % align
}

fn note(
    name: &[u8],
    note_type: u32,
    desc: &[u8],
    identity: &Identity,
    endian: Endianness,
    notes: &mut Notes,
) {
    const FDO_DLOPEN: u32 = 0x407c_0c0a;
    const FDO_PACKAGE: u32 = 0xcafe_1a7e;
    let text = || String::from_utf8_lossy(desc).trim_end_matches('\0').to_owned();
    match (name, note_type) {
        (b"GNU\0", 1) if desc.len() >= 16 => {
            let part = |i: usize| word(desc, i * 4, endian);
            notes.abi_tag = Some(AbiTag { os: part(0), kernel: (part(1), part(2), part(3)) });
        }
        (b"GNU\0", 3) => notes.build_id = notes.build_id.take().or_else(|| Some(desc.to_vec())),
        (b"GNU\0", 5) => properties(desc, identity, endian, notes),
        (b"FDO\0", FDO_DLOPEN) if notes.dlopen.len() < 1000 => notes.dlopen.push(text()),
        (b"FDO\0", FDO_PACKAGE) => notes.package = Some(text()),
        (b"Go\0\0", _) => notes.go = true,
        _ => {}
    }
}

/// `NT_GNU_PROPERTY_TYPE_0`: a list of (type, size, data), each padded to the word of the class.
fn properties(mut desc: &[u8], identity: &Identity, endian: Endianness, notes: &mut Notes) {
    let align = if identity.class == Class::Elf64 { 8 } else { 4 };
    let x86 = matches!(elf::Machine(identity.machine), elf::EM_X86_64 | elf::EM_386);
    let aarch64 = elf::Machine(identity.machine) == elf::EM_AARCH64;
    while desc.len() >= 8 {
        let (property, size) = (word(desc, 0, endian), word(desc, 4, endian) as usize);
        let Some(data) = desc.get(8..).and_then(|data| data.get(..size)) else { return };
        if size == 4 {
            let value = word(data, 0, endian);
            match property {
                0xc000_8002 if x86 => notes.x86_isa_needed |= value,
                0xc001_0002 if x86 => notes.x86_isa_used |= value,
                0xc000_0002 if x86 => notes.x86_feature_1 |= value,
                0xc000_0000 if aarch64 => notes.aarch64_feature_1 |= value,
                _ => {}
            }
        }
        let next = size.checked_add(8 + padding(size, align));
        desc = next.and_then(|next| desc.get(next..)).unwrap_or_default();
    }
}

/// The 32-bit word at `at`; 0 past the end.
fn word(bytes: &[u8], at: usize, endian: Endianness) -> u32 {
    let word =
        bytes.get(at..at.saturating_add(4)).and_then(|b| object::pod::from_bytes::<U32<Endianness>>(b).ok());
    word.map_or(0, |(word, _)| word.get(endian))
}
