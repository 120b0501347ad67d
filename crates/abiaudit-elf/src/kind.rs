//! What a member is, told from its first bytes, not from its name.

/// Kinds of file that matter to an audit of native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// No bytes at all.
    Empty,
    /// ELF (gABI chapter 4).
    Elf,
    /// A static library (`!<arch>`), or a thin one that holds only names (`!<thin>`).
    StaticArchive,
    /// A GNU ld script where a library is expected, such as glibc's `libc.so`.
    LinkerScript,
    /// Mach-O, thin or universal: macOS.
    MachO,
    /// PE/COFF behind an MZ header: Windows.
    Pe,
    /// A zip archive: a nested wheel, an egg, a jar.
    Zip,
    /// Anything else.
    Other,
}

impl FileKind {
    /// Bytes of a file that [`FileKind::sniff`] wants to see.
    pub const SNIFF_LEN: usize = 512;

    /// Tells the kind from the first [`SNIFF_LEN`](Self::SNIFF_LEN) bytes (fewer if the file is shorter).
    /// `name` decides only whether text that looks like a linker script stands where a library would.
    pub fn sniff(name: &str, head: &[u8]) -> Self {
        match head {
            [] => Self::Empty,
            [0x7f, b'E', b'L', b'F', ..] => Self::Elf,
            [b'!', b'<', b'a', b'r', b'c', b'h', b'>', b'\n', ..]
            | [b'!', b'<', b't', b'h', b'i', b'n', b'>', b'\n', ..] => Self::StaticArchive,
            // A universal binary and a Java class file share 0xcafebabe; a class file has a version >= 45 where
            // a universal binary counts its architectures.
            [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..]
            | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..]
            | [0xca, 0xfe, 0xba, 0xbe | 0xbf, 0, 0, 0, 1..=20, ..] => Self::MachO,
            [b'M', b'Z', ..] if is_pe(head) => Self::Pe,
            [b'P', b'K', 3, 4, ..] => Self::Zip,
            _ if is_library_name(name) && is_linker_script(head) => Self::LinkerScript,
            _ => Self::Other,
        }
    }
}

/// An MZ header is two letters, so text may begin with it; the PE header that it points to decides if it is in sight.
fn is_pe(head: &[u8]) -> bool {
    let Some(at) = head.get(0x3c..0x40) else { return false };
    let at = u32::from_le_bytes([at[0], at[1], at[2], at[3]]) as usize;
    match at.checked_add(4).and_then(|end| head.get(at..end)) {
        Some(signature) => signature == b"PE\0\0",
        None => at >= head.len() && head.len() >= 0x40 && !head.iter().take(0x40).all(u8::is_ascii_graphic),
    }
}

fn is_library_name(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.contains(".so") && (base.ends_with(".so") || base.contains(".so."))
}

fn is_linker_script(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    ["GNU ld script", "GROUP", "INPUT", "OUTPUT_FORMAT"].iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_from_bytes() {
        assert_eq!(FileKind::sniff("a.so", b""), FileKind::Empty);
        assert_eq!(FileKind::sniff("evil.py", b"\x7fELF\x02"), FileKind::Elf);
        assert_eq!(
            FileKind::sniff("a.so", b"/* GNU ld script */\nGROUP ( liba.so.1 )"),
            FileKind::LinkerScript
        );
        assert_eq!(FileKind::sniff("a.py", b"GROUP = 1"), FileKind::Other);
        assert_eq!(FileKind::sniff("MZ.txt", b"MZ is a country code"), FileKind::Other);
        assert_eq!(FileKind::sniff("A.class", b"\xca\xfe\xba\xbe\0\0\0\x34"), FileKind::Other);
        assert_eq!(FileKind::sniff("liba.a", b"!<arch>\n"), FileKind::StaticArchive);
        let mut pe = vec![0; 0x80];
        pe[..2].copy_from_slice(b"MZ");
        pe[0x3c] = 0x40;
        pe[0x40..0x44].copy_from_slice(b"PE\0\0");
        assert_eq!(FileKind::sniff("a.dll", &pe), FileKind::Pe);
    }
}
