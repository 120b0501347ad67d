//! Unwind tables: records that belong to functions, all in one section.
//!
//! `.eh_frame` is a row of records (LSB Core, "Exception Frames"): a CIE, which several functions share, and one FDE for
//! each function, whose second word is its distance from its CIE. To leave out a function's FDE, the rest is moved up
//! and the distances are set anew.

use super::{Relocatable, Relocation, Section};
use crate::error::{Error, Result};

/// One record, with the relocations within it.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Offset in the section.
    pub start: usize,
    /// Offset of the next one.
    pub end: usize,
    /// For an FDE the index of its CIE among the records.
    pub cie: Option<usize>,
    /// Indices into the section's relocations.
    pub relocations: Vec<usize>,
}

/// Is this the section?
pub(super) fn is_eh_frame(section: &Section) -> bool {
    section.name == b".eh_frame"
}

/// Splits the section into its records.
pub(super) fn records(file: &Relocatable, section: &Section) -> Result<Vec<Record>> {
    let malformed = |found: String| Error::Malformed { path: file.origin.clone(), what: ".eh_frame", found };
    let word = |at: usize| -> Result<usize> {
        let bytes = section.data.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let bytes = bytes.ok_or_else(|| malformed(format!("ends within the record at {at:#x}")))?;
        Ok(u32::from_le_bytes(*bytes) as usize)
    };
    let mut records: Vec<Record> = Vec::new();
    let mut start = 0;
    while start < section.data.len() {
        let length = word(start)?;
        // A record of length zero ends the table; GCC's crtend.o has it, no other file.
        if length == 0 || length == 0xffff_ffff {
            return Err(malformed(format!("a record of length {length:#x} at {start:#x}")));
        }
        let end = start.saturating_add(4).saturating_add(length);
        let distance = word(start + 4)?;
        if end > section.data.len() {
            return Err(malformed(format!("the record at {start:#x} is longer than the section")));
        }
        let cie = if distance == 0 {
            None
        } else {
            let at = (start + 4).checked_sub(distance);
            let cie = at.and_then(|at| records.iter().position(|r| r.start == at && r.cie.is_none()));
            Some(cie.ok_or_else(|| malformed(format!("the record at {start:#x} has no CIE")))?)
        };
        records.push(Record { start, end, cie, relocations: Vec::new() });
        start = end;
    }
    for (index, relocation) in section.relocations.iter().enumerate() {
        let at = relocation.offset as usize;
        let after = records.partition_point(|record| record.start <= at);
        let record = after.checked_sub(1).and_then(|i| records.get_mut(i)).filter(|record| at < record.end);
        record.ok_or_else(|| malformed(format!("a relocation at {at:#x}")))?.relocations.push(index);
    }
    Ok(records)
}

/// The relocation that says which function an FDE is for: its first field after length and distance.
pub(super) fn function_of<'a>(section: &'a Section, record: &Record) -> Option<&'a Relocation> {
    let begins = record.start as u64 + 8;
    let mut relocations = record.relocations.iter().filter_map(|index| section.relocations.get(*index));
    relocations.find(|relocation| relocation.offset == begins)
}

/// The section with only those FDEs whose index `keeps` accepts, and the CIEs that they use.
pub(super) fn prune(section: &Section, records: &[Record], keeps: impl Fn(usize) -> bool) -> Section {
    let is_used = |cie: usize| records.iter().enumerate().any(|(i, r)| r.cie == Some(cie) && keeps(i));
    let mut pruned = Section { data: Vec::new(), relocations: Vec::new(), ..section.clone() };
    let mut moved = vec![0; records.len()];
    for (index, record) in records.iter().enumerate() {
        let kept = if record.cie.is_some() { keeps(index) } else { is_used(index) };
        if !kept {
            continue;
        }
        let start = pruned.data.len();
        moved[index] = start;
        pruned.data.extend_from_slice(&section.data[record.start..record.end]);
        if let Some(cie) = record.cie {
            let distance = (start + 4 - moved[cie]) as u32;
            pruned.data[start + 4..start + 8].copy_from_slice(&distance.to_le_bytes());
        }
        for relocation in record.relocations.iter().filter_map(|i| section.relocations.get(*i)) {
            let offset = relocation.offset - record.start as u64 + start as u64;
            pruned.relocations.push(Relocation { offset, ..*relocation });
        }
    }
    pruned.size = pruned.data.len() as u64;
    pruned
}
