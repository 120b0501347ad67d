//! GCC's runtime libraries: libstdc++, libgcc_s, libatomic.
//!
//! The rows are the dynamic symbols of Debian's builds of GCC 10, 12, 14 and 16. libstdc++ drops nothing
//! within `libstdc++.so.6`, so the newest build has the nodes of all releases before it; which release
//! brought a node stands in `policies/symbols/gcc-nodes.toml`, after the ABI history in GCC's libstdc++
//! manual.
//!
//! Names differ between architectures where `size_t` mangles differently (`m`, `j`) or `long double` has
//! another format; that is why a list of the right architecture is asked, or none.
//!
//! The libstdc++ of musl distributions is another: Alpine builds it without symbol versions and so without
//! the map that hides its internals. It has these names and about a thousand more.

use super::{Export, Pool, Release, all_exports, exports};
use crate::Arch;

pub(super) const POOL: Pool = Pool::new(include_bytes!("../../../../policies/symbols/gcc.bin"));

/// The exports of one of GCC's runtime libraries on one architecture.
#[derive(Debug, Clone, Copy)]
pub struct GccLibrary {
    bit: u16,
    soname: &'static str,
}

/// `libstdc++.so.6`; `None` if there is no list for the architecture, in which case nothing is known.
pub fn libstdcxx(arch: Arch) -> Option<GccLibrary> {
    library(arch, "libstdc++.so.6")
}

/// `libgcc_s.so.1`; `None` if there is no list for the architecture.
pub fn libgcc(arch: Arch) -> Option<GccLibrary> {
    library(arch, "libgcc_s.so.1")
}

/// `libatomic.so.1`; `None` if there is no list for the architecture.
pub fn libatomic(arch: Arch) -> Option<GccLibrary> {
    library(arch, "libatomic.so.1")
}

/// The GCC release that introduced a version node (`GLIBCXX_3.4.26`: 9.1); `None` for a node that is not
/// listed.
pub fn gcc_release_of(node: &str) -> Option<Release> {
    POOL.versions().find(|(name, _)| *name == node && !name.is_empty())?.1
}

fn library(arch: Arch, soname: &'static str) -> Option<GccLibrary> {
    Some(GccLibrary { bit: POOL.arch_bit(arch.tag())?, soname })
}

impl GccLibrary {
    /// The soname.
    pub fn soname(&self) -> &'static str {
        self.soname
    }

    /// Every version of a symbol, oldest first; empty if the library does not export it.
    pub fn exports(&self, symbol: &str) -> Vec<Export> {
        let mut rows = exports(POOL, self.bit, symbol);
        rows.retain(|row| row.library == self.soname);
        rows
    }

    /// Does the library export the symbol, at any version, in the newest GCC known?
    pub fn contains(&self, symbol: &str) -> bool {
        self.exports(symbol).iter().any(|row| row.until.is_none())
    }

    /// The node of the oldest version of a symbol (`GLIBCXX_3.4.26`): what has it offers the name.
    pub fn node_of(&self, symbol: &str) -> Option<&'static str> {
        self.exports(symbol).iter().find_map(|row| row.version)
    }

    /// The symbols at a version node, sorted by name. Reads the whole table.
    pub fn symbols_at(&self, node: &str) -> Vec<String> {
        let Some(version) = POOL.version_index(node) else { return Vec::new() };
        POOL.symbols()
            .filter(|(_, records)| {
                let mut records = records.clone();
                records.any(|record| {
                    record.version == version
                        && record.archs & self.bit != 0
                        && POOL.library(record.library) == Some(self.soname)
                })
            })
            .map(|(name, _)| name)
            .collect()
    }

    /// Every symbol with its versions, sorted by name. Reads the whole table.
    pub fn symbols(&self) -> impl Iterator<Item = (String, Vec<Export>)> {
        let soname = self.soname;
        all_exports(POOL, self.bit).filter_map(move |(name, mut rows)| {
            rows.retain(|row| row.library == soname);
            (!rows.is_empty()).then_some((name, rows))
        })
    }

    /// The newest GCC release that the table knows.
    pub fn newest_release(&self) -> Release {
        POOL.releases().last().unwrap_or(Release::new(0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Arch; 8] = [
        Arch::X86_64,
        Arch::I686,
        Arch::Aarch64,
        Arch::Armv7l,
        Arch::Ppc64le,
        Arch::S390x,
        Arch::Riscv64,
        Arch::Loongarch64,
    ];

    #[test]
    fn nodes_name_their_gcc() {
        for (node, release) in [
            ("GLIBCXX_3.4", Release::new(3, 4)),
            ("GLIBCXX_3.4.19", Release::with_patch(4, 8, 3)),
            ("GLIBCXX_3.4.21", Release::new(5, 1)),
            ("GLIBCXX_3.4.26", Release::new(9, 1)),
            ("GLIBCXX_3.4.29", Release::new(11, 1)),
            ("GLIBCXX_3.4.32", Release::new(13, 2)),
            ("CXXABI_1.3.13", Release::new(11, 1)),
            ("GCC_4.8.0", Release::new(4, 8)),
            ("GCC_7.0.0", Release::new(7, 1)),
        ] {
            assert_eq!(gcc_release_of(node), Some(release), "{node}");
        }
        assert_eq!(gcc_release_of("GLIBCXX_3.4.99"), None);
        assert_eq!(gcc_release_of(""), None);
    }

    #[test]
    fn every_architecture_has_the_same_landmarks() {
        for arch in ALL {
            let table = libstdcxx(arch).unwrap();
            for (symbol, node) in [
                ("_ZSt28__throw_bad_array_new_lengthv", "GLIBCXX_3.4.29"),
                ("_ZSt21ios_base_library_initv", "GLIBCXX_3.4.32"),
                ("_ZNSt10filesystem7__cxx114path14_M_split_cmptsEv", "GLIBCXX_3.4.26"),
                ("__cxa_throw", "CXXABI_1.3"),
            ] {
                assert_eq!(table.node_of(symbol), Some(node), "{symbol} {arch}");
                assert!(table.contains(symbol));
            }
            assert!(!table.contains("memcpy"), "{arch}");
            assert!(libgcc(arch).unwrap().contains("_Unwind_Resume"), "{arch}");
            assert!(!libgcc(arch).unwrap().contains("__cxa_throw"), "{arch}");
        }
    }

    #[test]
    fn size_t_is_mangled_as_the_architecture_has_it() {
        let append = |t| format!("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKc{t}");
        assert!(libstdcxx(Arch::X86_64).unwrap().contains(&append("m")));
        assert!(!libstdcxx(Arch::X86_64).unwrap().contains(&append("j")));
        assert!(libstdcxx(Arch::Armv7l).unwrap().contains(&append("j")));
    }

    #[test]
    fn a_node_lists_its_symbols() {
        let symbols = libstdcxx(Arch::X86_64).unwrap().symbols_at("GLIBCXX_3.4.32");
        assert!(symbols.contains(&"_ZSt21ios_base_library_initv".to_owned()), "{symbols:?}");
        assert!(symbols.len() < 10, "{symbols:?}");
        assert!(libstdcxx(Arch::X86_64).unwrap().symbols_at("GLIBCXX_3.4.99").is_empty());
    }
}
