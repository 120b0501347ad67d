//! `.gnu.version_r` and `.gnu.version_d` (LSB core, "Symbol Versioning").

use object::elf;

use crate::encoding::Encoding;
use crate::text::Text;

/// Sizes of `Verneed` and `Vernaux`, the same in both classes.
const NEED_SIZE: usize = 16;
/// Versions of one file, or files, beyond this are a malformed chain: indices have 15 bits.
const MOST_VERSIONS: usize = 0x8000;

/// One `Verneed`: versions that are needed of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionNeed<'a> {
    pub file: Text<'a>,
    pub versions: Vec<NeededVersion<'a>>,
    /// Where the record was in the table.
    pub at: Option<usize>,
}

/// One `Vernaux`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NeededVersion<'a> {
    pub name: Text<'a>,
    pub flags: u16,
    /// `vna_other`: the index by which `.gnu.version` means it, with the hidden bit if it was set.
    pub index: u16,
    pub at: Option<usize>,
}

/// One `Verdef` with its first name, which is the version's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionDefinition<'a> {
    pub flags: u16,
    pub index: u16,
    pub names: Vec<Text<'a>>,
}

/// Reads `count` records of `.gnu.version_r` and says how many bytes they take; `None` if the chain leaves the bytes.
pub(crate) fn read_needs<'a>(
    encoding: Encoding,
    bytes: &[u8],
    count: u64,
    text: &dyn Fn(u32) -> Option<Text<'a>>,
) -> Option<(Vec<VersionNeed<'a>>, usize)> {
    let (mut needs, mut at, mut end) = (Vec::new(), 0, 0);
    let mut total = 0;
    for number in 0..count {
        total += 1;
        let versions = usize::from(encoding.u16(bytes, at + 2)?);
        let file = text(encoding.u32(bytes, at + 4)?)?;
        let mut need = VersionNeed { file, versions: Vec::new(), at: Some(at) };
        let mut aux = at.checked_add(encoding.u32(bytes, at + 8)? as usize)?;
        for position in 0..versions {
            total += 1;
            need.versions.push(NeededVersion {
                name: text(encoding.u32(bytes, aux + 8)?)?,
                flags: encoding.u16(bytes, aux + 4)?,
                index: encoding.u16(bytes, aux + 6)?,
                at: Some(aux),
            });
            end = end.max(aux + NEED_SIZE);
            let next = encoding.u32(bytes, aux + 12)? as usize;
            if position + 1 < versions {
                aux = aux.checked_add(next).filter(|_| next != 0)?;
            }
            if total > MOST_VERSIONS {
                return None;
            }
        }
        end = end.max(at + NEED_SIZE);
        needs.push(need);
        let next = encoding.u32(bytes, at + 12)? as usize;
        if number + 1 < count {
            at = at.checked_add(next).filter(|_| next != 0)?;
        }
        if total > MOST_VERSIONS {
            return None;
        }
    }
    (end <= bytes.len()).then_some((needs, end))
}

/// Writes the table: into the original's bytes where each record has its place there, else as GNU ld lays it out.
///
/// `offset` gives a name's place in `.dynstr`.
pub(crate) fn encode_needs<'a>(
    encoding: Encoding,
    original: &[u8],
    needs: &[VersionNeed<'a>],
    is_same_shape: bool,
    offset: &dyn Fn(&Text<'a>) -> u32,
) -> Vec<u8> {
    if is_same_shape {
        return patch_needs(encoding, original, needs, offset);
    }
    let mut bytes = Vec::new();
    for (number, need) in needs.iter().enumerate() {
        let size = NEED_SIZE * (1 + need.versions.len());
        let next = if number + 1 < needs.len() { size } else { 0 };
        encoding.push(&mut bytes, 2, 1);
        encoding.push(&mut bytes, 2, need.versions.len() as u64);
        encoding.push(&mut bytes, 4, u64::from(offset(&need.file)));
        encoding.push(&mut bytes, 4, NEED_SIZE as u64);
        encoding.push(&mut bytes, 4, next as u64);
        for (position, version) in need.versions.iter().enumerate() {
            let next = if position + 1 < need.versions.len() { NEED_SIZE } else { 0 };
            encoding.push(&mut bytes, 4, u64::from(elf::hash(version.name.bytes())));
            encoding.push(&mut bytes, 2, u64::from(version.flags));
            encoding.push(&mut bytes, 2, u64::from(version.index));
            encoding.push(&mut bytes, 4, u64::from(offset(&version.name)));
            encoding.push(&mut bytes, 4, next as u64);
        }
    }
    bytes
}

fn patch_needs<'a>(
    encoding: Encoding,
    original: &[u8],
    needs: &[VersionNeed<'a>],
    offset: &dyn Fn(&Text<'a>) -> u32,
) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for need in needs {
        if let Some(at) = need.at {
            encoding.put(&mut bytes, at + 4, 4, u64::from(offset(&need.file)));
        }
        for version in &need.versions {
            let Some(at) = version.at else { continue };
            if version.name.original().is_none() {
                encoding.put(&mut bytes, at, 4, u64::from(elf::hash(version.name.bytes())));
            }
            encoding.put(&mut bytes, at + 4, 2, u64::from(version.flags));
            encoding.put(&mut bytes, at + 6, 2, u64::from(version.index));
            encoding.put(&mut bytes, at + 8, 4, u64::from(offset(&version.name)));
        }
    }
    bytes
}

/// Reads `count` records of `.gnu.version_d` and says how many bytes they take.
pub(crate) fn read_definitions<'a>(
    encoding: Encoding,
    bytes: &[u8],
    count: u64,
    text: &dyn Fn(u32) -> Option<Text<'a>>,
) -> Option<(Vec<VersionDefinition<'a>>, usize)> {
    const DEFINITION_SIZE: usize = 20;
    const AUX_SIZE: usize = 8;
    let (mut definitions, mut at, mut end, mut total) = (Vec::new(), 0_usize, 0, 0);
    for number in 0..count {
        total += 1;
        let mut definition = VersionDefinition {
            flags: encoding.u16(bytes, at + 2)?,
            index: encoding.u16(bytes, at + 4)?,
            names: Vec::new(),
        };
        let names = usize::from(encoding.u16(bytes, at + 6)?);
        let mut aux = at.checked_add(encoding.u32(bytes, at + 12)? as usize)?;
        for position in 0..names {
            total += 1;
            definition.names.push(text(encoding.u32(bytes, aux)?)?);
            end = end.max(aux + AUX_SIZE);
            let next = encoding.u32(bytes, aux + 4)? as usize;
            if position + 1 < names {
                aux = aux.checked_add(next).filter(|_| next != 0)?;
            }
            if total > MOST_VERSIONS {
                return None;
            }
        }
        end = end.max(at + DEFINITION_SIZE);
        definitions.push(definition);
        let next = encoding.u32(bytes, at + 16)? as usize;
        if number + 1 < count {
            at = at.checked_add(next).filter(|_| next != 0)?;
        }
        if total > MOST_VERSIONS {
            return None;
        }
    }
    (end <= bytes.len()).then_some((definitions, end))
}
