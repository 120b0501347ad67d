//! The two C libraries of Linux wheels.

use std::fmt;

/// The C library that a tag promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Libc {
    /// The GNU C library: `manylinux` tags (PEP 600).
    Glibc,
    /// musl: `musllinux` tags (PEP 656).
    Musl,
}

impl Libc {
    /// The first word of this C library's tags.
    pub const fn tag_family(self) -> &'static str {
        match self {
            Self::Glibc => "manylinux",
            Self::Musl => "musllinux",
        }
    }

    /// Is this the soname of the dynamic loader itself? An object may NEED it without any library being
    /// missing: the process has it before all others.
    ///
    /// glibc: `ld-linux-x86-64.so.2`, `ld-linux.so.2`, `ld-linux-aarch64.so.1` ..., `ld64.so.1` (ppc64, s390x) and
    /// `ld64.so.2` (ppc64le); musl: `ld-musl-x86_64.so.1` ...
    pub fn is_dynamic_linker(self, soname: &str) -> bool {
        match self {
            Self::Glibc => soname.starts_with("ld-linux") || matches!(soname, "ld64.so.1" | "ld64.so.2"),
            Self::Musl => soname.starts_with("ld-musl-"),
        }
    }
}

impl fmt::Display for Libc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Glibc => "glibc",
            Self::Musl => "musl",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_libc_knows_its_own_loader() {
        for soname in ["ld-linux-x86-64.so.2", "ld-linux-riscv64-lp64d.so.1", "ld64.so.2"] {
            assert!(Libc::Glibc.is_dynamic_linker(soname), "{soname}");
            assert!(!Libc::Musl.is_dynamic_linker(soname), "{soname}");
        }
        assert!(Libc::Musl.is_dynamic_linker("ld-musl-armhf.so.1"));
        assert!(!Libc::Glibc.is_dynamic_linker("ld-musl-x86_64.so.1"));
    }
}
