//! Static libraries: `ar` archives with the symbol index that linkers want (System V; GNU's long names).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;

use crate::error::{Error, Result};

/// A member of an archive that is to be written.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name, such as `fs_ops.o`. Names may repeat.
    pub name: String,
    /// Its content.
    pub data: Vec<u8>,
    /// The symbols by which a linker finds it.
    pub symbols: Vec<Vec<u8>>,
}

/// The members of an archive in memory: name and content. `path` is for errors.
pub(crate) fn members<'a>(path: &Path, bytes: &'a [u8]) -> Result<Vec<(String, &'a [u8])>> {
    let malformed = |error: object::Error| Error::Malformed {
        path: path.to_owned(),
        what: "archive",
        found: error.to_string(),
    };
    let archive = ArchiveFile::parse(bytes).map_err(malformed)?;
    let mut members = Vec::new();
    for member in archive.members() {
        let member = member.map_err(malformed)?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        members.push((name, member.data(bytes).map_err(malformed)?));
    }
    Ok(members)
}

/// The symbols in an archive's index.
pub(crate) fn symbols(path: &Path, bytes: &[u8]) -> Result<BTreeSet<String>> {
    let malformed = |found: String| Error::Malformed { path: path.to_owned(), what: "archive", found };
    let archive = ArchiveFile::parse(bytes).map_err(|e| malformed(e.to_string()))?;
    let index = archive.symbols().map_err(|e| malformed(e.to_string()))?;
    let mut names = BTreeSet::new();
    for symbol in index.ok_or_else(|| malformed("no index of symbols".to_owned()))? {
        let symbol = symbol.map_err(|e| malformed(e.to_string()))?;
        names.insert(String::from_utf8_lossy(symbol.name()).into_owned());
    }
    Ok(names)
}

/// `archive(member)`
pub(crate) fn member_path(archive: &Path, member: &str) -> PathBuf {
    PathBuf::from(format!("{}({member})", archive.display()))
}

/// The bytes of an archive. Times, owners and modes are those of `ar D`: zero, so that the same members give the same
/// bytes.
pub fn write(members: &[Member]) -> Vec<u8> {
    let mut names = Vec::new();
    let short_names: Vec<String> =
        members.iter().map(|member| short_name(&member.name, &mut names)).collect();
    if names.len() % 2 == 1 {
        names.push(b'\n');
    }
    let count: usize = members.iter().map(|member| member.symbols.len()).sum();
    let strings: usize = members.iter().flat_map(|member| &member.symbols).map(|name| name.len() + 1).sum();
    let index_len = (4 + 4 * count + strings).next_multiple_of(2);
    let names_len = if names.is_empty() { 0 } else { HEADER_LEN + names.len() };
    let mut offset = MAGIC.len() + HEADER_LEN + index_len + names_len;

    let mut index = Vec::with_capacity(index_len);
    index.extend((count as u32).to_be_bytes());
    for member in members {
        for _ in &member.symbols {
            index.extend((offset as u32).to_be_bytes());
        }
        offset += HEADER_LEN + member.data.len().next_multiple_of(2);
    }
    for name in members.iter().flat_map(|member| &member.symbols) {
        index.extend(name);
        index.push(0);
    }
    index.resize(index_len, 0);

    let mut bytes = MAGIC.to_vec();
    push_member(&mut bytes, "/", &index);
    if !names.is_empty() {
        push_member(&mut bytes, "//", &names);
    }
    for (member, name) in members.iter().zip(short_names) {
        push_member(&mut bytes, &name, &member.data);
    }
    bytes
}

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER_LEN: usize = 60;
/// The longest name that fits into a header with its final slash.
const SHORT_NAME: usize = 15;

/// The name as it stands in the header; a long one goes to the table of names.
fn short_name(name: &str, names: &mut Vec<u8>) -> String {
    if name.len() <= SHORT_NAME {
        return format!("{name}/");
    }
    let at = names.len();
    names.extend(name.as_bytes());
    names.extend(b"/\n");
    format!("/{at}")
}

fn push_member(bytes: &mut Vec<u8>, name: &str, data: &[u8]) {
    let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, data.len());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    if data.len() % 2 == 1 {
        bytes.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let member = |name: &str, data: &[u8], symbols: &[&str]| Member {
            name: name.to_owned(),
            data: data.to_vec(),
            symbols: symbols.iter().map(|s| s.as_bytes().to_vec()).collect(),
        };
        let written = [
            member("a.o", b"odd", &["f", "g"]),
            member("a_name_that_is_longer_than_fits.o", b"even", &["h"]),
            member("a.o", b"", &[]),
        ];
        let bytes = write(&written);
        let path = Path::new("x.a");
        let read = members(path, &bytes).expect("an archive");
        let names: Vec<_> = read.iter().map(|(name, data)| (name.as_str(), *data)).collect();
        assert_eq!(names, written.iter().map(|m| (m.name.as_str(), &m.data[..])).collect::<Vec<_>>());
        let archive = ArchiveFile::parse(&*bytes).expect("an archive");
        for symbol in archive.symbols().expect("an index").expect("an index") {
            let symbol = symbol.expect("an entry");
            let member = archive.member(symbol.offset()).expect("a member");
            let owner =
                written.iter().find(|m| m.symbols.iter().any(|s| s == symbol.name())).expect("an owner");
            assert_eq!(member.name(), owner.name.as_bytes());
        }
        assert!(members(path, b"no archive").is_err());
    }
}
