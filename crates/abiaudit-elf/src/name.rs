//! Names inside ELF files are bytes; people and reports want text.

use std::fmt::{self, Write as _};

/// A NUL-terminated string of the file: mostly UTF-8, never trusted to be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name(Vec<u8>);

impl Name {
    /// The bytes as the file has them, without the NUL.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As text; bytes that are not UTF-8 are shown as `\xNN`, so that two different names stay different.
    pub fn to_text(&self) -> String {
        escape(&self.0)
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&escape(&self.0), f)
    }
}

pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_stay_apart() {
        assert_eq!(Name::from(&b"lib\xff\xfe.so"[..]).to_text(), "lib\\xff\\xfe.so");
        assert_ne!(Name::from(&b"a\xff"[..]).to_text(), Name::from(&b"a\xfe"[..]).to_text());
    }
}
