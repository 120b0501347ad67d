//! The static tables that the build script makes of `policies/`.

use crate::{Arch, Distribution, Libc, ProviderClass, Scheme};

/// One file of `policies/manylinux` or `policies/musllinux`.
#[derive(Debug)]
pub(crate) struct PolicyRow {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) libc: Libc,
    /// The C library's version, major and minor.
    pub(crate) release: (u32, u32),
    pub(crate) libraries: &'static [&'static str],
    pub(crate) forbidden_symbols: &'static [(&'static str, &'static [&'static str])],
    pub(crate) arches: &'static [ArchRow],
}

/// A policy's version nodes on one architecture.
#[derive(Debug)]
pub(crate) struct ArchRow {
    pub(crate) arch: Arch,
    /// Family and newest version, `None` where no node of the family is there.
    pub(crate) ceilings: &'static [(&'static str, Option<&'static str>)],
    /// Names of the nodes that no ceiling covers.
    pub(crate) extra_nodes: &'static [&'static str],
}

/// The versions of a family that exist on an architecture: numbers in their order, then names.
#[derive(Debug)]
pub(crate) struct KnownRow {
    pub(crate) arch: Arch,
    pub(crate) family: &'static str,
    pub(crate) versions: &'static [&'static str],
}

/// A node newer than every listed policy.
#[derive(Debug)]
pub(crate) struct LaterRow {
    pub(crate) node: &'static str,
    pub(crate) glibc: (u32, u32),
    pub(crate) arches: &'static [Arch],
}

/// One entry of `policies/providers.toml`.
#[derive(Debug)]
pub(crate) struct ProviderRow {
    pub(crate) sonames: &'static [&'static str],
    pub(crate) class: ProviderClass,
    pub(crate) distribution: Option<&'static str>,
    pub(crate) through: &'static [&'static str],
    pub(crate) scheme: Scheme,
    pub(crate) lib_dir: Option<&'static str>,
    pub(crate) note: &'static str,
    pub(crate) source: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/policies.rs"));

/// The versions of `family` that exist on `arch`; empty for a family that no policy judges there.
pub(crate) fn known_versions(arch: Arch, family: &str) -> &'static [&'static str] {
    KNOWN.iter().find(|row| row.arch == arch && row.family == family).map_or(&[], |row| row.versions)
}
