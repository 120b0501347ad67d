//! A wheel, put together from what a test says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use abiaudit_elf::test_support::ElfWriter;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::zip::{Entry, Zip};

/// A wheel to be written. Without further words its dist-info is complete and true.
#[derive(Debug, Clone)]
pub struct TestWheel {
    name: String,
    version: String,
    tags: String,
    file_name: Option<String>,
    /// Members with their content, before the dist-info ones.
    members: Vec<(Entry, Vec<u8>)>,
    wheel_tags: Option<Vec<String>>,
    purelib: bool,
    metadata: String,
    without: BTreeSet<String>,
    unlisted: BTreeSet<String>,
    wrong_hash: BTreeSet<String>,
    record_rows: Vec<String>,
    prefix: Vec<u8>,
    trailing: Vec<u8>,
}

impl TestWheel {
    /// A wheel of this distribution, version and tags; the tags may be compressed sets.
    pub fn new(name: &str, version: &str, tags: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            tags: tags.to_owned(),
            file_name: None,
            members: Vec::new(),
            wheel_tags: None,
            purelib: false,
            metadata: format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
            without: BTreeSet::new(),
            unlisted: BTreeSet::new(),
            wrong_hash: BTreeSet::new(),
            record_rows: Vec::new(),
            prefix: Vec::new(),
            trailing: Vec::new(),
        }
    }

    /// Adds a file with mode 644; the same name may come again.
    #[must_use]
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(name, content, |_| {})
    }

    /// Adds a file that may be run.
    #[must_use]
    pub fn program(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(name, content, |entry| entry.mode = 0o100_755)
    }

    /// Adds an ELF file with mode 755.
    #[must_use]
    pub fn elf(self, name: &str, writer: &ElfWriter) -> Self {
        self.program(name, writer.build().bytes())
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(name, target, |entry| entry.mode = 0o120_777)
    }

    /// Adds a file and lets the test change its entry. RECORD has the content as given.
    #[must_use]
    pub fn entry(mut self, name: &str, content: impl AsRef<[u8]>, change: impl FnOnce(&mut Entry)) -> Self {
        let mut entry = Entry::new(name, content.as_ref());
        change(&mut entry);
        self.members.push((entry, content.as_ref().to_vec()));
        self
    }

    /// Adds a `Requires-Dist`.
    #[must_use]
    pub fn requires(self, requirement: &str) -> Self {
        self.metadata(&format!("Requires-Dist: {requirement}"))
    }

    /// Adds a line to METADATA.
    #[must_use]
    pub fn metadata(mut self, line: &str) -> Self {
        let _ = writeln!(self.metadata, "{line}");
        self
    }

    /// The tags in WHEEL, one a line, instead of those of the file name.
    #[must_use]
    pub fn wheel_tags(mut self, tags: &[&str]) -> Self {
        self.wheel_tags = Some(tags.iter().map(|&tag| tag.to_owned()).collect());
        self
    }

    /// `Root-Is-Purelib`.
    #[must_use]
    pub fn purelib(mut self, purelib: bool) -> Self {
        self.purelib = purelib;
        self
    }

    /// Another file name than the one that distribution, version and tags make.
    #[must_use]
    pub fn file_name(mut self, name: &str) -> Self {
        self.file_name = Some(name.to_owned());
        self
    }

    /// Leaves out `WHEEL`, `METADATA` or `RECORD`.
    #[must_use]
    pub fn without(mut self, file: &str) -> Self {
        self.without.insert(file.to_owned());
        self
    }

    /// Leaves a member out of RECORD.
    #[must_use]
    pub fn unlisted(mut self, member: &str) -> Self {
        self.unlisted.insert(member.to_owned());
        self
    }

    /// Gives a member a wrong hash in RECORD.
    #[must_use]
    pub fn wrong_hash(mut self, member: &str) -> Self {
        self.wrong_hash.insert(member.to_owned());
        self
    }

    /// Adds a row to RECORD as it is given: `path,hash,size`.
    #[must_use]
    pub fn record_row(mut self, row: &str) -> Self {
        self.record_rows.push(row.to_owned());
        self
    }

    /// Puts bytes before the archive.
    #[must_use]
    pub fn prefix(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.prefix = bytes.as_ref().to_vec();
        self
    }

    /// Puts bytes after the archive.
    #[must_use]
    pub fn trailing(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.trailing = bytes.as_ref().to_vec();
        self
    }

    /// The archive.
    pub fn bytes(&self) -> Vec<u8> {
        let directory = format!("{}-{}.dist-info", self.name, self.version);
        let mut members = self.members.clone();
        for (file, content) in [("METADATA", self.metadata.clone()), ("WHEEL", self.wheel())] {
            if !self.without.contains(file) {
                let name = format!("{directory}/{file}");
                members.push((Entry::new(&name, content.as_bytes()), content.into_bytes()));
            }
        }
        let record = self.record(&members, &directory);
        let mut entries: Vec<Entry> = members.into_iter().map(|(entry, _)| entry).collect();
        if !self.without.contains("RECORD") {
            entries.push(Entry::new(format!("{directory}/RECORD"), record.as_bytes()));
        }
        Zip { entries, prefix: self.prefix.clone(), trailing: self.trailing.clone() }.write()
    }

    /// Writes the archive into a directory and gives its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, directory: &Path) -> PathBuf {
        let made = format!("{}-{}-{}.whl", self.name, self.version, self.tags);
        let path = directory.join(self.file_name.as_ref().unwrap_or(&made));
        std::fs::write(&path, self.bytes()).expect("the directory can be written to");
        path
    }

    fn wheel(&self) -> String {
        let tags = self.wheel_tags.clone().unwrap_or_else(|| expand(&self.tags));
        let mut text = format!(
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: {}\n",
            if self.purelib { "true" } else { "false" }
        );
        for tag in tags {
            let _ = writeln!(text, "Tag: {tag}");
        }
        text
    }

    fn record(&self, members: &[(Entry, Vec<u8>)], directory: &str) -> String {
        let mut text = String::new();
        for (entry, content) in members {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            if self.unlisted.contains(&name) {
                continue;
            }
            let mut hasher = Sha256::new();
            hasher.update(content);
            if self.wrong_hash.contains(&name) {
                hasher.update(b"something else");
            }
            let hash = URL_SAFE_NO_PAD.encode(hasher.finalize());
            let _ = writeln!(text, "{name},sha256={hash},{}", content.len());
        }
        for row in &self.record_rows {
            let _ = writeln!(text, "{row}");
        }
        let _ = writeln!(text, "{directory}/RECORD,,");
        text
    }
}

/// `py2.py3-none-any` as its single tags.
fn expand(tags: &str) -> Vec<String> {
    let parts: Vec<Vec<&str>> = tags.split('-').map(|part| part.split('.').collect()).collect();
    let [pythons, abis, platforms] = parts.as_slice() else { return vec![tags.to_owned()] };
    let mut all = Vec::new();
    for python in pythons {
        for abi in abis {
            all.extend(platforms.iter().map(|platform| format!("{python}-{abi}-{platform}")));
        }
    }
    all
}
