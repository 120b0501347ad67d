//! The `abilists` file of Zig: every glibc's ABI lists merged into one (format: ziglang/zig,
//! `src/libs/glibc.zig`).
//!
//! ```text
//! u8 count, then NUL-terminated names       libraries: c, m, pthread ...
//! u8 count, then u8 major, minor, patch     glibc releases, which are also the version nodes
//! u8 count, then NUL-terminated triples     targets
//! u16 count, inclusions                     functions
//! u16 count, inclusions                     objects
//! ```
//! Zig 0.16 and later append a third list, of thread-local objects; it is in the same form as the objects.
//!
//! An inclusion: the symbol's name with a NUL (only after an inclusion that ended its symbol), ULEB128
//! target bits, for objects ULEB128 size, u8 library with bit 7 on the last inclusion of the symbol, then
//! u8 version indices with bit 7 on the last.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use abiaudit_policy::symbols::{Kind, Release};
use anyhow::{Context, Result, ensure};

/// The merged lists.
pub struct AbiLists {
    libraries: Vec<String>,
    versions: Vec<Release>,
    targets: Vec<String>,
    inclusions: Vec<Inclusion>,
}

struct Inclusion {
    symbol: String,
    kind: Kind,
    size: u32,
    targets: u64,
    library: usize,
    versions: Vec<usize>,
}

/// One fact of the lists for one target.
pub struct Entry<'a> {
    /// The library, as in `libc.abilist` without `lib`: `c`, `pthread`, `ld`.
    pub library: &'a str,
    pub symbol: &'a str,
    pub version: Release,
    pub kind: Kind,
    pub size: u32,
}

/// Reads the file out of a `ziglang` wheel; any other file is taken for the lists themselves.
pub fn extract(path: &Path) -> Result<Vec<u8>> {
    if path.extension() != Some("whl".as_ref()) {
        return std::fs::read(path).with_context(|| path.display().to_string());
    }
    let member = "ziglang/lib/libc/glibc/abilists";
    let output =
        Command::new("unzip").arg("-p").arg(path).arg(member).output().context("cannot run unzip")?;
    ensure!(output.status.success(), "{}: no member {member}", path.display());
    Ok(output.stdout)
}

impl AbiLists {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader { rest: bytes };
        let libraries = (0..reader.u8()?).map(|_| reader.name()).collect::<Result<_>>()?;
        let versions = (0..reader.u8()?)
            .map(|_| {
                let (major, minor, patch) = (reader.u8()?, reader.u8()?, reader.u8()?);
                Ok(Release::with_patch(major.into(), minor.into(), patch.into()))
            })
            .collect::<Result<_>>()?;
        let targets = (0..reader.u8()?).map(|_| reader.name()).collect::<Result<_>>()?;
        let mut inclusions = Vec::new();
        for kind in [Kind::Function, Kind::Object, Kind::Tls] {
            if kind == Kind::Tls && reader.rest.is_empty() {
                break;
            }
            reader.inclusions(kind, &mut inclusions)?;
        }
        ensure!(reader.rest.is_empty(), "{} bytes after the abilists", reader.rest.len());
        Ok(Self { libraries, versions, targets, inclusions })
    }

    /// Every release that the lists cover.
    pub fn releases(&self) -> BTreeSet<Release> {
        self.versions.iter().copied().collect()
    }

    /// The facts of one target (`x86_64-linux-gnu`).
    pub fn entries(&self, target: &str) -> Result<Vec<Entry<'_>>> {
        let bit = self.targets.iter().position(|name| name == target);
        let bit = bit.with_context(|| format!("the abilists have no target {target}"))?;
        let mut entries = Vec::new();
        for inclusion in self.inclusions.iter().filter(|inclusion| inclusion.targets >> bit & 1 != 0) {
            let library = self.libraries.get(inclusion.library).context("library index")?;
            for &version in &inclusion.versions {
                entries.push(Entry {
                    library,
                    symbol: &inclusion.symbol,
                    version: *self.versions.get(version).context("version index")?,
                    kind: inclusion.kind,
                    size: inclusion.size,
                });
            }
        }
        Ok(entries)
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn inclusions(&mut self, kind: Kind, into: &mut Vec<Inclusion>) -> Result<()> {
        let count = u16::from_le_bytes([self.u8()?, self.u8()?]);
        let mut symbol = None;
        for _ in 0..count {
            let name = match symbol.take() {
                Some(name) => name,
                None => self.name()?,
            };
            let targets = self.uleb128()?;
            let size = if kind == Kind::Function { 0 } else { u32::try_from(self.uleb128()?)? };
            let library = self.u8()?;
            let mut versions = Vec::new();
            loop {
                let version = self.u8()?;
                versions.push(usize::from(version & 0x7f));
                if version & 0x80 != 0 {
                    break;
                }
            }
            if library & 0x80 == 0 {
                symbol = Some(name.clone());
            }
            let library = usize::from(library & 0x7f);
            into.push(Inclusion { symbol: name, kind, size, targets, library, versions });
        }
        Ok(())
    }

    fn u8(&mut self) -> Result<u8> {
        let (&byte, rest) = self.rest.split_first().context("the abilists end early")?;
        self.rest = rest;
        Ok(byte)
    }

    fn uleb128(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        anyhow::bail!("a number of the abilists is too long")
    }

    fn name(&mut self) -> Result<String> {
        let end =
            self.rest.iter().position(|&byte| byte == 0).context("a name of the abilists has no end")?;
        let name = str::from_utf8(&self.rest[..end])?.to_owned();
        self.rest = &self.rest[end + 1..];
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inclusions_of_one_symbol_share_its_name() {
        let mut bytes = b"\x02c\0pthread\0\x02\x02\x02\x05\x02\x22\x00\x01x86_64-linux-gnu\0".to_vec();
        bytes.extend(b"\x02\x00pthread_create\0\x01\x00\x81\x01\x81\x80"); // libc 2.34; libpthread 2.2.5
        bytes.extend(b"\x01\x00environ\0\x01\x08\x80\x80");
        let lists = AbiLists::parse(&bytes).unwrap();
        let entries = lists.entries("x86_64-linux-gnu").unwrap();
        let facts: Vec<_> =
            entries.iter().map(|e| (e.library, e.symbol, e.version.to_string(), e.size)).collect();
        assert_eq!(
            facts,
            [
                ("c", "pthread_create", "2.34".into(), 0),
                ("pthread", "pthread_create", "2.2.5".into(), 0),
                ("c", "environ", "2.2.5".into(), 8),
            ]
        );
        assert!(lists.entries("vax-linux-gnu").is_err());
        for end in 0..bytes.len() {
            assert!(AbiLists::parse(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
