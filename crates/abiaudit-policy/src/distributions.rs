//! Which distribution releases have which C library and libstdc++.

use std::cmp::Ordering;

use crate::data::DISTRIBUTIONS;
use crate::{Libc, Node, compare_versions};

/// A release of a distribution, from `policies/distributions.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// `Debian`, `Ubuntu`, `RHEL` (which stands for its rebuilds too) ...
    pub name: &'static str,
    /// The release as its users call it: `12`, `22.04`.
    pub release: &'static str,
    /// The C library.
    pub libc: Libc,
    /// The C library's version: `2.36`, `1.2.4`.
    pub libc_version: &'static str,
    /// The GCC release that its libstdc++ comes from, where known. It may be newer than its compiler.
    pub gcc: Option<&'static str>,
    /// The newest `GLIBCXX` node of its libstdc++ on x86_64, without the family's name: `3.4.30`.
    pub glibcxx: Option<&'static str>,
    /// Where the row is from, see `policies/sources.md`.
    pub source: &'static str,
}

/// The table of distribution releases.
#[derive(Debug, Clone, Copy)]
pub struct Distributions {
    rows: &'static [Distribution],
}

/// The distribution releases that the program knows.
pub fn distributions() -> Distributions {
    Distributions { rows: DISTRIBUTIONS }
}

impl Distributions {
    /// Every release, in the order of the file: by distribution, oldest first.
    pub fn iter(self) -> impl Iterator<Item = &'static Distribution> {
        self.rows.iter()
    }

    /// The releases with glibc `at_least` (major, minor) or newer.
    pub fn with_glibc(self, at_least: (u32, u32)) -> impl Iterator<Item = &'static Distribution> {
        self.with_libc(Libc::Glibc, format!("{}.{}", at_least.0, at_least.1))
    }

    /// The releases with musl `at_least` (major, minor, patch) or newer.
    pub fn with_musl(self, at_least: (u32, u32, u32)) -> impl Iterator<Item = &'static Distribution> {
        self.with_libc(Libc::Musl, format!("{}.{}.{}", at_least.0, at_least.1, at_least.2))
    }

    /// The releases whose libstdc++ has the node (`GLIBCXX_3.4.26`); none for a node that is not of the numbered
    /// `GLIBCXX` series.
    pub fn with_glibcxx(self, node: &str) -> impl Iterator<Item = &'static Distribution> {
        let wanted =
            Node::parse(node).filter(|node| node.family == "GLIBCXX").map(|node| node.version.to_owned());
        self.rows.iter().filter(move |row| match (&wanted, row.glibcxx) {
            (Some(wanted), Some(newest)) => reaches(newest, wanted),
            _ => false,
        })
    }

    fn with_libc(self, libc: Libc, at_least: String) -> impl Iterator<Item = &'static Distribution> {
        self.rows.iter().filter(move |row| row.libc == libc && reaches(row.libc_version, &at_least))
    }
}

fn reaches(version: &str, at_least: &str) -> bool {
    matches!(compare_versions(version, at_least), Some(Ordering::Equal | Ordering::Greater))
}
