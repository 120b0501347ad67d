//! Release numbers of C libraries and of GCC.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A release: `2.34` of glibc, `9.1` of GCC, `1.2.5` of musl. A missing third number counts as 0, and is not
/// written: GCC 9.1.0 reads and writes `9.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
    /// The third number.
    pub patch: u16,
}

impl Release {
    /// The release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, patch: 0 }
    }

    /// The release `major.minor.patch`.
    pub const fn with_patch(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch == 0 { Ok(()) } else { write!(f, ".{}", self.patch) }
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is not one to three decimal numbers of 16 bits with dots between.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a release number: {0:?}")]
pub struct BadRelease(pub String);

impl FromStr for Release {
    type Err = BadRelease;

    fn from_str(text: &str) -> Result<Self, BadRelease> {
        let bad = || BadRelease(text.to_owned());
        let mut numbers = [0_u16; 3];
        let mut parts = text.split('.');
        for (index, number) in numbers.iter_mut().enumerate() {
            match parts.next() {
                Some(part) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => {
                    *number = part.parse().map_err(|_| bad())?;
                }
                None if index > 0 => {}
                _ => return Err(bad()),
            }
        }
        if parts.next().is_some() {
            return Err(bad());
        }
        let [major, minor, patch] = numbers;
        Ok(Self { major, minor, patch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_numbers_in_order() {
        let release = |text: &str| text.parse::<Release>().unwrap();
        assert!(release("2.9") < release("2.10"));
        assert!(release("2.2") < release("2.2.5"));
        assert_eq!(release("9.1.0").to_string(), "9.1");
        assert_eq!(release("2.2.5").to_string(), "2.2.5");
        for bad in ["", ".", "2.", "2.x", "2.3.4.5", "+2.1", "70000.1"] {
            assert!(bad.parse::<Release>().is_err(), "{bad}");
        }
    }
}
