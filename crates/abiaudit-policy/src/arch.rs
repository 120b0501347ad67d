//! The architectures of Linux wheels.

use std::fmt;
use std::str::FromStr;

/// An architecture, spelt as in a platform tag (PEP 600, PEP 656: what `sysconfig.get_platform()` ends in).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    I686,
    /// 64-bit Arm, little-endian.
    Aarch64,
    /// 32-bit Arm, EABI 5 with hard float.
    Armv7l,
    /// 64-bit PowerPC, little-endian (ELFv2).
    Ppc64le,
    /// 64-bit PowerPC, big-endian (ELFv1).
    Ppc64,
    /// IBM Z, 64-bit.
    S390x,
    /// 64-bit RISC-V.
    Riscv64,
    /// 64-bit LoongArch.
    Loongarch64,
}

impl Arch {
    /// Every architecture that some policy covers.
    pub const ALL: [Self; 9] = [
        Self::X86_64,
        Self::I686,
        Self::Aarch64,
        Self::Armv7l,
        Self::Ppc64le,
        Self::Ppc64,
        Self::S390x,
        Self::Riscv64,
        Self::Loongarch64,
    ];

    /// The spelling in a platform tag: `x86_64`.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::I686 => "i686",
            Self::Aarch64 => "aarch64",
            Self::Armv7l => "armv7l",
            Self::Ppc64le => "ppc64le",
            Self::Ppc64 => "ppc64",
            Self::S390x => "s390x",
            Self::Riscv64 => "riscv64",
            Self::Loongarch64 => "loongarch64",
        }
    }

    /// The spelling in the soname that Alpine gives musl, `libc.musl-x86.so.1`: it differs from the tag for
    /// `i686` and `armv7l`.
    pub const fn musl_name(self) -> &'static str {
        match self {
            Self::I686 => "x86",
            Self::Armv7l => "armv7",
            _ => self.tag(),
        }
    }

    /// The instruction set that code may use without asking the processor first, or `None` where neither a PEP
    /// nor the ABI supplement names one that all distributions of a policy share.
    ///
    /// For x86_64 it is the psABI's baseline, also called `x86-64-v1`: no policy promises `x86-64-v2`, although
    /// RHEL 9 and with it the `manylinux_2_34` images need it (auditwheel #535).
    pub const fn baseline_isa(self) -> Option<&'static str> {
        match self {
            Self::X86_64 => Some("x86-64-v1"),
            Self::I686 => Some("i686"),
            Self::Aarch64 => Some("armv8-a"),
            Self::Armv7l => Some("armv7-a"),
            Self::Ppc64le => Some("power8"),
            Self::Riscv64 => Some("rv64gc"),
            Self::Ppc64 | Self::S390x | Self::Loongarch64 => None,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.tag())
    }
}

/// A name that is no architecture of a Linux platform tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown architecture {0:?}")]
pub struct UnknownArch(pub String);

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(name: &str) -> Result<Self, UnknownArch> {
        Self::ALL.into_iter().find(|arch| arch.tag() == name).ok_or_else(|| UnknownArch(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_spelling_reads_back() {
        for arch in Arch::ALL {
            assert_eq!(arch.to_string().parse(), Ok(arch));
        }
        assert_eq!("amd64".parse::<Arch>(), Err(UnknownArch("amd64".into())));
        assert!("X86_64".parse::<Arch>().is_err(), "tags are lower case");
    }

    #[test]
    fn musl_spells_two_architectures_its_own_way() {
        assert_eq!(Arch::I686.musl_name(), "x86");
        assert_eq!(Arch::Armv7l.musl_name(), "armv7");
        assert_eq!(Arch::Aarch64.musl_name(), "aarch64");
    }
}
