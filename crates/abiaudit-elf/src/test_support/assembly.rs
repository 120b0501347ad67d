//! How the parts of a file are laid out and written.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf;

use super::{Built, ElfWriter, HashStyle, SegmentSpec, SymbolSpec};
use crate::hash::{gnu_hash, sysv_hash};
use crate::{Class, Endian};

/// Bytes in one class and byte order.
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    pub(super) class: Class,
    pub(super) endian: Endian,
    pub(super) data: Vec<u8>,
}

impl Bytes {
    pub(super) fn word_size(&self) -> usize {
        if self.class == Class::Elf64 { 8 } else { 4 }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
    }

    fn u16(&mut self, value: u16) {
        self.raw(&if self.endian == Endian::Big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.raw(&if self.endian == Endian::Big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn u64(&mut self, value: u64) {
        self.raw(&if self.endian == Endian::Big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn word(&mut self, value: u64) {
        match self.class {
            Class::Elf32 => self.u32(value as u32),
            Class::Elf64 => self.u64(value),
        }
    }

    pub(super) fn align(&mut self, align: usize) {
        self.data.resize(self.data.len().next_multiple_of(align), 0);
    }

    pub(super) fn word_at(&self, at: usize) -> u64 {
        let bytes = &self.data[at..at + self.word_size()];
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self.endian {
            Endian::Big => bytes.iter().fold(0, fold),
            Endian::Little => bytes.iter().rev().fold(0, fold),
        }
    }
}

/// The string table as it grows: equal strings are written once, as linkers do.
#[derive(Default)]
struct Strings {
    data: Vec<u8>,
    at: BTreeMap<Vec<u8>, u32>,
}

impl Strings {
    fn add(&mut self, text: &[u8]) -> u32 {
        if self.data.is_empty() {
            self.data.push(0);
        }
        if text.is_empty() {
            return 0;
        }
        *self.at.entry(text.to_vec()).or_insert_with(|| {
            let at = self.data.len() as u32;
            self.data.extend_from_slice(text);
            self.data.push(0);
            at
        })
    }
}

/// One section header to write: name, type, flags, part, link, info, entry size.
struct Header {
    name: &'static str,
    section_type: u32,
    flags: u64,
    link: u32,
    info: u32,
    entry_size: u64,
}

/// The file as it grows.
pub(super) struct Assembly<'w> {
    writer: &'w ElfWriter,
    out: Bytes,
    strings: Strings,
    symbols: Vec<&'w SymbolSpec>,
    parts: BTreeMap<&'static str, Range<usize>>,
    headers: Vec<Header>,
}

impl<'w> Assembly<'w> {
    pub(super) fn new(writer: &'w ElfWriter) -> Self {
        // DT_GNU_HASH covers the end of the table only, so definitions come last.
        let (undefined, defined): (Vec<_>, Vec<_>) = writer.symbols.iter().partition(|s| s.section == 0);
        let symbols = undefined.into_iter().chain(defined).collect();
        Self {
            writer,
            out: writer.bytes(),
            strings: Strings::default(),
            symbols,
            parts: BTreeMap::new(),
            headers: Vec::new(),
        }
    }

    fn is_64(&self) -> bool {
        self.writer.class == Class::Elf64
    }

    /// Writes one part at an aligned place, with a section header for later.
    fn part(&mut self, align: usize, header: Header, write: impl FnOnce(&mut Self)) {
        self.out.align(align);
        let start = self.out.data.len();
        write(self);
        self.parts.insert(header.name, start..self.out.data.len());
        self.headers.push(header);
    }

    pub(super) fn finish(mut self) -> Built {
        let writer = self.writer;
        let (header, program_header) = if self.is_64() { (64, 56) } else { (52, 32) };
        let count = 2
            + usize::from(writer.interpreter.is_some())
            + usize::from(!writer.notes.is_empty())
            + usize::from(writer.stack.is_some())
            + usize::from(writer.tls.is_some())
            + writer.segments.len();
        self.out.data.resize(header + count * program_header, 0);
        self.parts.insert("program headers", header..self.out.data.len());
        if let Some(path) = &writer.interpreter {
            self.part(1, plain(".interp", elf::SHT_PROGBITS.0), |a| {
                a.out.raw(path);
                a.out.raw(b"\0");
            });
        }
        if !writer.notes.is_empty() {
            self.part(8, plain(".note", elf::SHT_NOTE.0), |a| a.out.raw(&writer.notes));
        }
        self.symbols();
        self.hash_tables();
        self.versions();
        self.jump_slots();
        self.dynamic();
        self.extra_sections(true);
        let loaded = self.out.data.len();
        self.extra_sections(false);
        let section_count = if writer.sections { self.section_headers() } else { 0 };
        self.elf_header(count as u16, section_count);
        self.program_headers(loaded);
        Built { out: self.out, parts: self.parts }
    }

    fn symbols(&mut self) {
        let entry_size = if self.is_64() { 24 } else { 16 };
        let header = Header {
            name: ".dynsym",
            section_type: elf::SHT_DYNSYM.0,
            flags: 2,
            link: 0,
            info: 1,
            entry_size,
        };
        self.part(8, header, |a| {
            let null = SymbolSpec { info: 0, version: 0, ..SymbolSpec::undefined("") };
            for symbol in std::iter::once(&null).chain(a.symbols.clone()) {
                let name = a.strings.add(&symbol.name);
                a.out.u32(name);
                if a.is_64() {
                    a.out.raw(&[symbol.info, symbol.other]);
                    a.out.u16(symbol.section);
                    a.out.u64(symbol.value);
                    a.out.u64(symbol.size);
                } else {
                    a.out.word(symbol.value);
                    a.out.word(symbol.size);
                    a.out.raw(&[symbol.info, symbol.other]);
                    a.out.u16(symbol.section);
                }
            }
        });
    }

    fn hash_tables(&mut self) {
        let style = self.writer.hash;
        if matches!(style, HashStyle::Sysv | HashStyle::Both) {
            self.part(8, plain(".hash", elf::SHT_HASH.0), Self::sysv_hash);
        }
        if matches!(style, HashStyle::Gnu | HashStyle::Both) {
            self.part(8, plain(".gnu.hash", elf::SHT_GNU_HASH.0), Self::gnu_hash);
        }
    }

    /// One bucket, whose chain runs through all symbols.
    fn sysv_hash(&mut self) {
        let count = self.symbols.len() as u64 + 1;
        let chain = (1..count).map(|i| if i + 1 < count { i + 1 } else { 0 });
        let words = [1, count, u64::from(count > 1), 0].into_iter().chain(chain);
        let wide = self.is_64() && matches!(elf::Machine(self.writer.machine), elf::EM_S390 | elf::EM_ALPHA);
        for word in words.collect::<Vec<_>>() {
            if wide { self.out.u64(word) } else { self.out.u32(word as u32) }
        }
    }

    /// One bucket, whose chain runs through all definitions, behind a Bloom filter that lets everything through.
    fn gnu_hash(&mut self) {
        let undefined = self.symbols.iter().filter(|s| s.section == 0).count() as u32;
        let defined: Vec<u32> =
            self.symbols.iter().skip(undefined as usize).map(|s| gnu_hash(&s.name)).collect();
        let (first, bucket, bloom) =
            if defined.is_empty() { (1, 0, 0) } else { (undefined + 1, undefined + 1, u64::MAX) };
        for word in [1, first, 1, 6] {
            self.out.u32(word);
        }
        self.out.word(bloom);
        self.out.u32(bucket);
        for (i, hash) in defined.iter().enumerate() {
            self.out.u32(if i + 1 == defined.len() { hash | 1 } else { hash & !1 });
        }
    }

    fn versions(&mut self) {
        let writer = self.writer;
        if !writer.needs.is_empty() {
            let count = writer.needs.len() as u32;
            self.part(8, versions(".gnu.version_r", elf::SHT_GNU_VERNEED.0, count), Self::version_needs);
        }
        if !writer.definitions.is_empty() {
            let count = writer.definitions.len() as u32 + 1;
            self.part(8, versions(".gnu.version_d", elf::SHT_GNU_VERDEF.0, count), Self::version_definitions);
        }
        if !writer.needs.is_empty() || !writer.definitions.is_empty() {
            self.part(2, versions(".gnu.version", elf::SHT_GNU_VERSYM.0, 0), |a| {
                a.out.u16(0);
                for symbol in a.symbols.clone() {
                    a.out.u16(symbol.version);
                }
            });
        }
    }

    fn version_needs(&mut self) {
        const RECORD: u32 = 16;
        let needs = &self.writer.needs;
        for (i, (library, versions)) in needs.iter().enumerate() {
            let name = self.strings.add(library);
            let size = RECORD + RECORD * versions.len() as u32;
            self.out.u16(1);
            self.out.u16(versions.len() as u16);
            self.out.u32(name);
            self.out.u32(RECORD);
            self.out.u32(if i + 1 == needs.len() { 0 } else { size });
            for (j, (version, index)) in versions.iter().enumerate() {
                let name = self.strings.add(version);
                self.out.u32(sysv_hash(version));
                self.out.u16(0);
                self.out.u16(*index);
                self.out.u32(name);
                self.out.u32(if j + 1 == versions.len() { 0 } else { RECORD });
            }
        }
    }

    /// The base definition (the file's own name) and the versions.
    fn version_definitions(&mut self) {
        let base = self.writer.soname.clone().unwrap_or_else(|| b"base".to_vec());
        let definitions = &self.writer.definitions;
        let all = std::iter::once((base, 1)).chain(definitions.iter().cloned());
        for (i, (name, index)) in all.enumerate() {
            let name_at = self.strings.add(&name);
            self.out.u16(1);
            self.out.u16(u16::from(i == 0));
            self.out.u16(index);
            self.out.u16(1);
            self.out.u32(sysv_hash(&name));
            self.out.u32(20);
            self.out.u32(if i == definitions.len() { 0 } else { 28 });
            self.out.u32(name_at);
            self.out.u32(0);
        }
    }

    /// One PLT relocation for each undefined symbol.
    fn jump_slots(&mut self) {
        let undefined = self.symbols.iter().filter(|s| s.section == 0).count() as u64;
        if undefined == 0 {
            return;
        }
        let (addends, slot) = (self.writer.arch.addends(), u64::from(self.writer.arch.jump_slot()));
        let section_type = if addends { elf::SHT_RELA.0 } else { elf::SHT_REL.0 };
        self.part(8, plain(".rel.plt", section_type), |a| {
            for symbol in 1..=undefined {
                a.out.word(0x1000 + symbol * 8);
                a.out.word(if a.is_64() { symbol << 32 | slot } else { symbol << 8 | slot });
                if addends {
                    a.out.word(0);
                }
            }
        });
    }

    fn dynamic(&mut self) {
        let writer = self.writer;
        let mut entries: Vec<(i64, u64)> = Vec::new();
        for name in &writer.needed {
            entries.push((elf::DT_NEEDED.0, self.strings.add(name).into()));
        }
        let paths = [
            (elf::DT_SONAME, &writer.soname),
            (elf::DT_RPATH, &writer.rpath),
            (elf::DT_RUNPATH, &writer.runpath),
        ];
        for (tag, text) in paths {
            if let Some(text) = text {
                entries.push((tag.0, self.strings.add(text).into()));
            }
        }
        // All strings are known now.
        self.part(1, plain(".dynstr", elf::SHT_STRTAB.0), |a| {
            let _ = a.strings.add(b"");
            a.out.raw(&a.strings.data);
        });
        let start = |name: &str| self.parts.get(name).map(|part| part.start as u64);
        let size = |name: &str| self.parts.get(name).map(|part| part.len() as u64);
        let (symbol_size, needs, definitions) = (
            if self.is_64() { 24 } else { 16 },
            writer.needs.len() as u64,
            writer.definitions.len() as u64 + 1,
        );
        let plt_kind = if writer.arch.addends() { elf::DT_RELA } else { elf::DT_REL }.0.cast_unsigned();
        let pointers = [
            (elf::DT_STRTAB, start(".dynstr")),
            (elf::DT_STRSZ, size(".dynstr")),
            (elf::DT_SYMTAB, start(".dynsym")),
            (elf::DT_SYMENT, Some(symbol_size)),
            (elf::DT_HASH, start(".hash")),
            (elf::DT_GNU_HASH, start(".gnu.hash")),
            (elf::DT_VERSYM, start(".gnu.version")),
            (elf::DT_VERNEED, start(".gnu.version_r")),
            (elf::DT_VERNEEDNUM, start(".gnu.version_r").map(|_| needs)),
            (elf::DT_VERDEF, start(".gnu.version_d")),
            (elf::DT_VERDEFNUM, start(".gnu.version_d").map(|_| definitions)),
            (elf::DT_JMPREL, start(".rel.plt")),
            (elf::DT_PLTRELSZ, size(".rel.plt")),
            (elf::DT_PLTREL, start(".rel.plt").map(|_| plt_kind)),
        ];
        entries.extend(pointers.into_iter().filter_map(|(tag, value)| Some((tag.0, value?))));
        entries.extend(&writer.dynamic);
        entries.push((0, 0));
        let header = Header { flags: 3, ..plain(".dynamic", elf::SHT_DYNAMIC.0) };
        self.part(8, header, |a| {
            for (tag, value) in entries {
                a.out.word(tag.cast_unsigned());
                a.out.word(value);
            }
        });
    }

    fn extra_sections(&mut self, allocated: bool) {
        let writer = self.writer;
        for section in writer.extra_sections.iter().filter(|s| (s.flags & 2 != 0) == allocated) {
            let header = Header { flags: section.flags, ..plain(section.name, section.section_type) };
            self.part(8, header, |a| a.out.raw(&section.content));
        }
    }

    /// Gives their number, with the null section and `.shstrtab`, which is the last.
    fn section_headers(&mut self) -> u16 {
        if let Some(text) = self.writer.comment.clone() {
            self.part(1, Header { flags: 0, ..plain(".comment", elf::SHT_PROGBITS.0) }, |a| {
                a.out.raw(&text);
                a.out.raw(b"\0");
            });
        }
        let mut names = Strings::default();
        let header = Header { flags: 0, ..plain(".shstrtab", elf::SHT_STRTAB.0) };
        let mut name_of: Vec<u32> = self.headers.iter().map(|h| names.add(h.name.as_bytes())).collect();
        name_of.push(names.add(header.name.as_bytes()));
        self.part(1, header, |a| a.out.raw(&names.data));
        let headers = std::mem::take(&mut self.headers);
        let index_of = |name: &str| headers.iter().position(|h| h.name == name).map_or(0, |i| i as u32 + 1);
        let links = [index_of(".dynsym"), index_of(".dynstr")];
        self.out.align(8);
        let start = self.out.data.len();
        self.section_header(0, &plain("", 0), 0..0, 0);
        for (header, name) in headers.iter().zip(name_of) {
            let link = match header.name {
                ".hash" | ".gnu.hash" | ".gnu.version" | ".rel.plt" => links[0],
                ".dynsym" | ".dynamic" | ".gnu.version_r" | ".gnu.version_d" => links[1],
                _ => header.link,
            };
            let part = self.parts.get(header.name).cloned().unwrap_or_default();
            self.section_header(name, header, part, link);
        }
        self.parts.insert("section headers", start..self.out.data.len());
        headers.len() as u16 + 1
    }

    fn section_header(&mut self, name: u32, header: &Header, part: Range<usize>, link: u32) {
        let flags = if header.section_type == 0 { 0 } else { header.flags };
        self.out.u32(name);
        self.out.u32(header.section_type);
        self.out.word(flags);
        self.out.word(if flags == 0 { 0 } else { part.start as u64 });
        self.out.word(part.start as u64);
        self.out.word(part.len() as u64);
        self.out.u32(link);
        self.out.u32(header.info);
        self.out.word(1);
        self.out.word(header.entry_size);
    }

    fn elf_header(&mut self, segments: u16, sections: u16) {
        let writer = self.writer;
        let (is_64, big) = (self.is_64(), writer.endian == Endian::Big);
        let (header, program_header, section_header) = if is_64 { (64, 56, 64) } else { (52, 32, 40) };
        let mut out = writer.bytes();
        out.raw(b"\x7fELF");
        out.raw(&[if is_64 { 2 } else { 1 }, if big { 2 } else { 1 }, 1, 0]);
        out.raw(&[0; 8]);
        out.u16(writer.object_type);
        out.u16(writer.machine);
        out.u32(1);
        out.word(0);
        out.word(header.into());
        out.word(self.parts.get("section headers").map_or(0, |part| part.start as u64));
        out.u32(writer.flags);
        out.u16(header);
        out.u16(program_header);
        out.u16(segments);
        out.u16(if sections == 0 { 0 } else { section_header });
        out.u16(sections);
        out.u16(sections.saturating_sub(1));
        self.out.data[..out.data.len()].copy_from_slice(&out.data);
    }

    fn program_headers(&mut self, loaded: usize) {
        let writer = self.writer;
        let part = |name: &str| self.parts.get(name).cloned().unwrap_or_default();
        let mut headers = Vec::new();
        if writer.interpreter.is_some() {
            headers.push((elf::PT_INTERP.0, 4, part(".interp"), None, 1));
        }
        headers.push((elf::PT_LOAD.0, writer.load_flags, 0..loaded, None, writer.load_align));
        headers.push((elf::PT_DYNAMIC.0, 6, part(".dynamic"), None, 8));
        if !writer.notes.is_empty() {
            headers.push((elf::PT_NOTE.0, 4, part(".note"), None, self.out.word_size() as u64));
        }
        if let Some(flags) = writer.stack {
            headers.push((elf::PT_GNU_STACK.0, flags, 0..0, None, 16));
        }
        if let Some((size, align)) = writer.tls {
            headers.push((elf::PT_TLS.0, 4, 0..0, Some(size), align));
        }
        let planned = headers.into_iter().map(|(segment_type, flags, range, memory, align)| {
            let (start, size) = (range.start as u64, range.len() as u64);
            SegmentSpec {
                segment_type,
                flags,
                offset: start,
                address: start,
                file_size: size,
                memory_size: memory.unwrap_or(size),
                align,
            }
        });
        let mut out = writer.bytes();
        for segment in planned.chain(writer.segments.iter().cloned()) {
            out.u32(segment.segment_type);
            if self.is_64() {
                out.u32(segment.flags);
            }
            for word in
                [segment.offset, segment.address, segment.address, segment.file_size, segment.memory_size]
            {
                out.word(word);
            }
            if !self.is_64() {
                out.u32(segment.flags);
            }
            out.word(segment.align);
        }
        let at = part("program headers");
        self.out.data[at].copy_from_slice(&out.data);
    }
}

fn plain(name: &'static str, section_type: u32) -> Header {
    Header { name, section_type, flags: 2, link: 0, info: 0, entry_size: 0 }
}

fn versions(name: &'static str, section_type: u32, info: u32) -> Header {
    Header { info, ..plain(name, section_type) }
}
