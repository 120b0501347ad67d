//! SHA-256 of files.

use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// The SHA-256 of bytes in lower-case hexadecimal digits.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of a file, which is not held in memory.
pub(crate) fn of_file(path: &Path) -> Result<String> {
    let failed = |source| Error::File { action: "read", path: path.to_owned(), source };
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = file.read(&mut buffer).map_err(failed)?;
        if length == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..length]);
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|d| char::from_digit(d.into(), 16).unwrap_or('?'));
    bytes.iter().flat_map(digits).collect()
}
