//! Runtimes that look old: copies of shared libraries in which newer version nodes have another name.
//!
//! The dynamic loader refuses an object that needs a version which a library does not define (glibc elf/dl-version.c), by
//! name and hash. So a copy of a new library whose newer nodes are called `ZLIBCXX_3.4.30` in place of
//! `GLIBCXX_3.4.30` is to a module what an old library is, down to the message. The needs of the copies among themselves
//! are renamed in the same way, so that they still load together.
//!
//! It stands in for what an old system *has*, not for how it *behaves*: the code is the new one, and references without
//! a version are bound as ever.

use std::collections::BTreeSet;
use std::path::Path;

use abiaudit_policy::{Node, Target};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{Endianness, elf};

use crate::error::{Error, Result, read, write};
use crate::version::admits;

/// Libraries of a C and C++ runtime; of those that are there, each is copied.
const LIBRARIES: &[&str] = &[
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "libc.so.6",
    "libm.so.6",
    "libmvec.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libatomic.so.1",
];

/// What takes the place of a node's first letter.
const MASK: u8 = b'Z';

/// Copies the runtime that lies in `directories` (the first that has a library counts) to `out`, as `target` has it. Gives
/// the names of the libraries.
pub fn mask_runtime(directories: &[&Path], target: &Target, out: &Path) -> Result<Vec<String>> {
    std::fs::create_dir_all(out).map_err(|source| Error::File {
        action: "create",
        path: out.to_owned(),
        source,
    })?;
    let mut copied = Vec::new();
    for name in LIBRARIES {
        let Some(path) = directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file())
        else {
            continue;
        };
        let mut bytes = read(&path)?;
        mask(&path, &mut bytes, target)?;
        let copy = out.join(name);
        write(&copy, bytes)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&copy, mode).map_err(|source| Error::File {
            action: "write",
            path: copy,
            source,
        })?;
        copied.push((*name).to_owned());
    }
    Ok(copied)
}

/// Renames the version nodes that `target` has not, where the library defines and where it needs them. Gives their names;
/// `path` is for errors.
pub fn mask(path: &Path, bytes: &mut [u8], target: &Target) -> Result<BTreeSet<String>> {
    let tables = tables(path, bytes)?;
    let mut masked = BTreeSet::new();
    for table in tables {
        let mut editor = Editor { path, bytes, target, strings: table.strings, masked: &mut masked };
        editor.walk(&table)?;
    }
    Ok(masked)
}

/// A table of definitions or of needs.
struct Table {
    definitions: bool,
    offset: usize,
    count: u32,
    strings: usize,
}

fn tables(path: &Path, bytes: &[u8]) -> Result<Vec<Table>> {
    let malformed = |what, error: object::Error| Error::Malformed {
        path: path.to_owned(),
        what,
        found: error.to_string(),
    };
    let header = elf::FileHeader64::<Endianness>::parse(bytes).map_err(|e| malformed("ELF header", e))?;
    let endian = header.endian().map_err(|e| malformed("ELF header", e))?;
    let sections = header.sections(endian, bytes).map_err(|e| malformed("sections", e))?;
    let mut tables = Vec::new();
    for section in sections.iter() {
        let kind = section.sh_type(endian);
        if kind != elf::SHT_GNU_VERDEF && kind != elf::SHT_GNU_VERNEED {
            continue;
        }
        let strings =
            sections.section(section.link(endian)).map_err(|e| malformed("strings of versions", e))?;
        tables.push(Table {
            definitions: kind == elf::SHT_GNU_VERDEF,
            offset: usize::try_from(section.sh_offset(endian)).unwrap_or(usize::MAX),
            count: section.sh_info(endian),
            strings: usize::try_from(strings.sh_offset(endian)).unwrap_or(usize::MAX),
        });
    }
    Ok(tables)
}

/// Private nodes tie a release's libraries together; `GLIBC_ABI_DT_RELR` the loader itself looks for, by this name.
fn is_maskable(version: &str) -> bool {
    version != "PRIVATE" && !version.starts_with("ABI_")
}

struct Editor<'a> {
    path: &'a Path,
    bytes: &'a mut [u8],
    target: &'a Target,
    strings: usize,
    masked: &'a mut BTreeSet<String>,
}

impl Editor<'_> {
    /// `Elf64_Verdef`: flags at 2, hash at 8, first name at 12, next at 16; its `Elf64_Verdaux`: name at 0.
    /// `Elf64_Verneed`: count at 2, first version at 8, next at 12; its `Elf64_Vernaux`: hash at 0, name at 8, next at 12.
    fn walk(&mut self, table: &Table) -> Result<()> {
        let mut at = table.offset;
        for _ in 0..table.count {
            let next = if table.definitions {
                let auxiliary = at.saturating_add(self.word(at + 12)?);
                let name = self.word(auxiliary)?;
                let is_base = self.word(at)? >> 16 & usize::from(elf::VER_FLG_BASE.0) != 0;
                if !is_base {
                    self.rename(name, at + 8)?;
                }
                self.word(at + 16)?
            } else {
                let mut auxiliary = at.saturating_add(self.word(at + 8)?);
                for _ in 0..self.word(at)? >> 16 {
                    let name = self.word(auxiliary + 8)?;
                    self.rename(name, auxiliary)?;
                    auxiliary = auxiliary.saturating_add(self.word(auxiliary + 12)?);
                }
                self.word(at + 12)?
            };
            at = at.saturating_add(next);
        }
        Ok(())
    }

    /// Renames the node at `name` in the strings, unless it is one of the target's; the hash at `hash` follows the name.
    fn rename(&mut self, name: usize, hash: usize) -> Result<()> {
        let start = self.strings.saturating_add(name);
        let text = self.bytes.get(start..).and_then(|rest| rest.split(|byte| *byte == 0).next());
        let text = text.ok_or_else(|| self.malformed(start))?;
        let node = String::from_utf8_lossy(text).into_owned();
        // One string serves all tables of a file: it may be renamed already.
        let is_masked = node.as_bytes().first() == Some(&MASK);
        let is_judged = Node::parse(&node).is_some_and(|n| {
            self.target.families().any(|family| family == n.family) && is_maskable(n.version)
        });
        if !is_masked && (!is_judged || admits(self.target, &node)) {
            return Ok(());
        }
        if !is_masked {
            self.bytes[start] = MASK;
            self.masked.insert(node.clone());
        }
        let mut renamed = node.into_bytes();
        renamed[0] = MASK;
        let place = self.bytes.get_mut(hash..).and_then(|rest| rest.first_chunk_mut::<4>());
        match place {
            Some(place) => *place = elf::hash(&renamed).to_le_bytes(),
            None => return Err(self.malformed(hash)),
        }
        Ok(())
    }

    fn word(&self, at: usize) -> Result<usize> {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map(|bytes| u32::from_le_bytes(*bytes) as usize).ok_or_else(|| self.malformed(at))
    }

    fn malformed(&self, at: usize) -> Error {
        let found = format!("an entry beyond the file, at {at:#x}");
        Error::Malformed { path: self.path.to_owned(), what: "version tables", found }
    }
}
