//! Debian packages and the dynamic symbols of the libraries in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_policy::symbols::{Kind, Release};
use anyhow::{Context, Result, bail, ensure};
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, Sym};
use object::{Endianness, FileKind, SymbolIndex};
use sha2::{Digest, Sha256};

/// The libraries of glibc in the tables; the loader's soname depends on the architecture.
pub const GLIBC_LIBRARIES: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libmvec.so.1",
    "libanl.so.1",
    "libnsl.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux.so.2",
    "ld-linux-aarch64.so.1",
    "ld-linux-armhf.so.3",
    "ld64.so.2",
    "ld64.so.1",
    "ld-linux-riscv64-lp64d.so.1",
    "ld-linux-loongarch-lp64d.so.1",
];
/// GCC's runtime libraries.
pub const GCC_LIBRARIES: &[&str] = &["libstdc++.so.6", "libgcc_s.so.1", "libatomic.so.1"];
/// musl: the file is both library and loader.
pub const MUSL_LIBRARIES: &[&str] = &["libc.so"];
/// zlib.
pub const ZLIB_LIBRARIES: &[&str] = &["libz.so.1"];

/// A package file.
pub struct Package {
    pub file_name: String,
    pub sha256: String,
    pub dumps: Vec<Dump>,
}

/// The exports of one library file.
#[derive(Debug, Clone)]
pub struct Dump {
    /// As in platform tags.
    pub arch: &'static str,
    /// Of the upstream project.
    pub release: Release,
    /// The name that others ask for: the soname, and for musl `libc.so`.
    pub library: &'static str,
    /// By symbol and version node (empty: none).
    pub exports: BTreeMap<(String, String), Exported>,
}

/// A symbol in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    pub kind: Kind,
    pub default: bool,
    pub size: u32,
}

/// Reads every package under the directories, in the order of their names.
pub fn read_all(dirs: &[PathBuf]) -> Result<Vec<Package>> {
    let mut files = Vec::new();
    for dir in dirs {
        walk(dir, &mut |path| {
            if path.extension() == Some("deb".as_ref()) {
                files.push(path.to_owned());
            }
        })?;
    }
    files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
    files.dedup_by_key(|path| path.file_name().map(ToOwned::to_owned));
    files.iter().map(|path| read(path).with_context(|| path.display().to_string())).collect()
}

fn read(path: &Path) -> Result<Package> {
    let file_name = path.file_name().context("no file name")?.to_string_lossy().into_owned();
    let name = field(path, "Package")?;
    let base = name.split('-').next().unwrap_or(&name);
    let libraries = match base {
        "libc6" => GLIBC_LIBRARIES,
        "libstdc++6" | "libgcc" | "libatomic1" => GCC_LIBRARIES,
        "musl" => MUSL_LIBRARIES,
        "zlib1g" => ZLIB_LIBRARIES,
        _ => bail!("no library of the tables is in {name}"),
    };
    let arch = match name.strip_suffix("-cross").and_then(|name| name.rsplit('-').next()) {
        Some(arch) => arch.to_owned(),
        None => field(path, "Architecture")?,
    };
    let arch = tag_of(&arch)?;
    let release = upstream_release(&field(path, "Version")?)?;
    let root = tempfile::tempdir()?;
    super::succeed(Command::new("dpkg-deb").arg("-x").arg(path).arg(root.path()))?;
    let mut found = BTreeMap::new();
    walk(root.path(), &mut |file| {
        let file_name = file.file_name().and_then(|name| name.to_str());
        if let Some(&library) = libraries.iter().find(|library| Some(**library) == file_name) {
            found.entry(library).or_insert_with(Vec::new).push(file.to_owned());
        }
    })?;
    let mut dumps = Vec::new();
    for (library, mut candidates) in found {
        candidates.sort();
        // A link to a path that does not exist below the root names a file that is found under another path
        // too.
        let Some(data) = candidates.iter().find_map(|file| fs::read(file).ok()) else { continue };
        let exports = exports(&data).with_context(|| library.to_owned())?;
        dumps.push(Dump { arch, release, library, exports });
    }
    ensure!(!dumps.is_empty(), "none of {libraries:?} is in the package");
    Ok(Package { file_name, sha256: sha256(path)?, dumps })
}

/// The SHA-256 of a file, in hexadecimal.
pub fn sha256(path: &Path) -> Result<String> {
    let digest = Sha256::digest(fs::read(path).with_context(|| path.display().to_string())?);
    Ok(digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

fn field(path: &Path, name: &str) -> Result<String> {
    let output =
        Command::new("dpkg-deb").arg("-f").arg(path).arg(name).output().context("cannot run dpkg-deb")?;
    ensure!(output.status.success(), "dpkg-deb -f failed");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn tag_of(debian: &str) -> Result<&'static str> {
    Ok(match debian {
        "amd64" => "x86_64",
        "i386" => "i686",
        "arm64" => "aarch64",
        "armhf" => "armv7l",
        "ppc64el" => "ppc64le",
        "s390x" => "s390x",
        "riscv64" => "riscv64",
        "loong64" => "loongarch64",
        _ => bail!("no tag for Debian's architecture {debian}"),
    })
}

/// The upstream part of a Debian version: `1:1.3.dfsg+really1.3.2-4` is of 1.3.2.
fn upstream_release(version: &str) -> Result<Release> {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    let version = version.rsplit_once("really").map_or(version, |(_, rest)| rest);
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    Ok(version[..end].trim_end_matches('.').parse()?)
}

fn walk(dir: &Path, visit: &mut impl FnMut(&Path)) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), visit)?;
        } else {
            visit(&entry.path());
        }
    }
    Ok(())
}

fn exports(data: &[u8]) -> Result<BTreeMap<(String, String), Exported>> {
    match FileKind::parse(data)? {
        FileKind::Elf32 => exports_of::<FileHeader32<Endianness>>(data),
        FileKind::Elf64 => exports_of::<FileHeader64<Endianness>>(data),
        kind => bail!("not ELF but {kind:?}"),
    }
}

fn exports_of<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
) -> Result<BTreeMap<(String, String), Exported>> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    let versions = sections.versions(endian, data)?;
    let mut exports = BTreeMap::new();
    for (index, symbol) in symbols.enumerate() {
        let exported = matches!(symbol.st_bind(), elf::STB_GLOBAL | elf::STB_WEAK | elf::STB_GNU_UNIQUE)
            && matches!(symbol.st_visibility(), elf::STV_DEFAULT | elf::STV_PROTECTED);
        // Absolute symbols carry the names of the nodes.
        if symbol.is_undefined(endian) || !exported || symbol.st_shndx(endian) == elf::SHN_ABS {
            continue;
        }
        let name = str::from_utf8(symbol.name(endian, symbols.strings())?)?;
        let (version, default) = version_of(versions.as_ref(), endian, index)?;
        if version.ends_with("_PRIVATE") || name.ends_with("_version_placeholder") {
            continue;
        }
        let kind = match symbol.st_type() {
            elf::STT_FUNC => Kind::Function,
            elf::STT_OBJECT | elf::STT_COMMON => Kind::Object,
            elf::STT_TLS => Kind::Tls,
            elf::STT_GNU_IFUNC => Kind::IFunc,
            _ => Kind::NoType,
        };
        let size = match kind {
            Kind::Object => u32::try_from(symbol.st_size(endian).into())?,
            _ => 0,
        };
        exports.insert((name.to_owned(), version), Exported { kind, default, size });
    }
    Ok(exports)
}

/// The version node of a symbol (empty: none) and whether it is the default one.
fn version_of<Elf: FileHeader<Endian = Endianness>>(
    versions: Option<&object::read::elf::VersionTable<'_, Elf>>,
    endian: Endianness,
    symbol: SymbolIndex,
) -> Result<(String, bool)> {
    let Some(versions) = versions else { return Ok((String::new(), true)) };
    let index = versions.version_index(endian, symbol);
    let version = versions.version(index.into())?;
    let name = version.map(|version| str::from_utf8(version.name())).transpose()?.unwrap_or_default();
    Ok((name.to_owned(), !index.is_hidden()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_versions_name_the_upstream_release() {
        for (version, release) in [
            ("2.36-9+deb12u14", "2.36"),
            ("16.2.0-3cross1", "16.2.0"),
            ("1:1.2.13.dfsg-1", "1.2.13"),
            ("1:1.3.dfsg+really1.3.2-4", "1.3.2"),
            ("1.2.5-3.1~deb13u1", "1.2.5"),
        ] {
            assert_eq!(upstream_release(version).unwrap(), release.parse().unwrap(), "{version}");
        }
    }
}
