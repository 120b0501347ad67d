//! The file that debuggers read beside a stripped one (GDB manual, "Separate Debug Files").

use super::{append, is_debug};
use crate::abi::{SHT_NOBITS, SHT_NOTE, SHT_NULL, SHT_STRTAB, SHT_SYMTAB};
use crate::encoding::align_up;
use crate::error::EditError;
use crate::headers::FileHeader;
use crate::image::ElfImage;
use crate::plan::DebugLink;
use crate::refusal::Refusal;

/// A file with the symbols and the debug information, with the notes by which it is found (the build-id), and with
/// every other section as a mere header, as `objcopy --only-keep-debug` makes it.
///
/// # Errors
/// [`Refusal::NoSections`] if section headers cannot be relied upon.
pub fn debug_file(bytes: &[u8]) -> Result<Vec<u8>, EditError> {
    let image = ElfImage::parse(bytes)?;
    if !image.sections_agree {
        let reason = "the section headers are missing, or contradict the program headers";
        return Err(Refusal::NoSections(reason.to_owned()).into());
    }
    let encoding = image.encoding;
    let phoff = encoding.file_header_size();
    let mut bytes = vec![0; phoff as usize];
    // Segments say at which addresses the file was linked; none of their bytes are here.
    for segment in &image.segments {
        let mut segment = *segment;
        (segment.offset, segment.filesz) = (0, 0);
        segment.push(encoding, &mut bytes);
    }
    let mut sections = image.sections.clone();
    for (index, section) in sections.iter_mut().enumerate() {
        let name = image.section_name_bytes(index).unwrap_or_default();
        let is_names = !section.is_allocated() && section.kind == SHT_STRTAB;
        let is_kept = is_debug(name) || is_names || matches!(section.kind, SHT_SYMTAB | SHT_NOTE);
        if section.kind == SHT_NULL {
            continue;
        }
        if is_kept && section.kind != SHT_NOBITS {
            let content = image.slice("a section", section.offset, section.size)?;
            append(&mut bytes, section, content)?;
        } else {
            section.kind = SHT_NOBITS;
            section.offset = bytes.len() as u64;
        }
    }
    let shoff = align_up(bytes.len() as u64, 8).unwrap_or(bytes.len() as u64);
    bytes.resize(shoff as usize, 0);
    for section in &sections {
        section.push(encoding, &mut bytes);
    }
    let header = FileHeader { phoff, shoff, ..image.header };
    let header = header.rewritten(encoding, image.bytes);
    bytes[..header.len()].copy_from_slice(&header);
    Ok(bytes)
}

/// What `.gnu_debuglink` says about a debug file of this name (without directory) and content.
pub fn debug_link(name: &str, debug_file: &[u8]) -> DebugLink {
    DebugLink { name: name.to_owned(), crc: crc32fast::hash(debug_file) }
}
