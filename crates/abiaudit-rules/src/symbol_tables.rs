//! Questions to the symbol tables of `abiaudit-policy`, in the terms of an audit.

use std::collections::BTreeSet;

use abiaudit_policy::Libc;
use abiaudit_policy::symbols::{self, Export, Release};

use crate::nodes;
use crate::platform::Platform;

/// All exports of a symbol by the system libraries that the tables know.
pub fn exports(platform: Platform, symbol: &str) -> Vec<Export> {
    let arch = platform.arch;
    let mut all = match platform.libc {
        Libc::Musl => symbols::musl(arch).map(|t| t.exports(symbol)).unwrap_or_default(),
        Libc::Glibc => glibc_exports(platform, symbol),
    };
    all.extend(symbols::libz().exports(symbol));
    all
}

/// All exports of a symbol by glibc and GCC's libraries, whatever C library the platform has.
pub fn glibc_exports(platform: Platform, symbol: &str) -> Vec<Export> {
    let arch = platform.arch;
    let glibc = symbols::glibc(arch).map(|t| t.versions_of(symbol)).unwrap_or_default();
    let gcc = [symbols::libstdcxx(arch), symbols::libgcc(arch), symbols::libatomic(arch)];
    glibc.into_iter().chain(gcc.into_iter().flatten().flat_map(|t| t.exports(symbol))).collect()
}

/// Those of a symbol's exports that are by one of `libraries`, or by the loader, which is in every process. musl is
/// one library under many names, and always there.
pub fn in_libraries(platform: Platform, all: &[Export], libraries: &BTreeSet<String>) -> Vec<Export> {
    let musl = platform.libc == Libc::Musl;
    let is_there = |e: &&Export| {
        libraries.contains(e.library)
            || platform.libc.is_dynamic_linker(e.library)
            || (musl && e.library != "libz.so.1")
    };
    all.iter().filter(is_there).copied().collect()
}

/// The tables know every export of this library on this platform.
pub fn covers(platform: Platform, soname: &str) -> bool {
    let arch = platform.arch;
    if platform.libc.is_dynamic_linker(soname) || soname == "libz.so.1" {
        return true;
    }
    match platform.libc {
        Libc::Musl => {
            symbols::musl(arch).is_some()
                && (soname.starts_with("libc.") || MUSL_OWN.iter().any(|name| soname.starts_with(name)))
        }
        Libc::Glibc => {
            let gcc = [symbols::libstdcxx(arch), symbols::libgcc(arch), symbols::libatomic(arch)];
            symbols::glibc(arch).is_some_and(|t| t.has_library(soname))
                || gcc.into_iter().flatten().any(|t| t.soname() == soname)
        }
    }
}

/// Names that musl's loader takes for itself (`ldso/dynlink.c`, `reserved`).
const MUSL_OWN: [&str; 6] = ["libpthread.", "librt.", "libm.", "libdl.", "libutil.", "libxnet."];

/// Library and node of the export that a reference without a version needs at least: any version satisfies it, so
/// the oldest counts. `None` if one of them has no version. A node that came to a library later than to the symbol's
/// first home (`dlopen@GLIBC_2.2.5` in the libc of 2.34) does not tell since when that library has the symbol.
pub fn oldest(exports: &[Export]) -> Option<(&'static str, &'static str)> {
    let versions: Option<Vec<(&'static str, &'static str)>> =
        exports.iter().filter(|e| !arrived_later(e)).map(|e| Some((e.library, e.version?))).collect();
    versions?.into_iter().min_by(|(_, a), (_, b)| nodes::oldest_first(a, b))
}

fn arrived_later(export: &Export) -> bool {
    let node = export.version.and_then(|v| v.strip_prefix("GLIBC_")?.parse::<Release>().ok());
    export.since_exact && export.since.zip(node).is_some_and(|(since, node)| since > node)
}

/// Since which release musl has a symbol, if that is known of every export; `None` too if zlib may serve it.
pub fn musl_since(exports: &[Export]) -> Option<Release> {
    let dated = exports.iter().all(|e| e.since_exact && e.since.is_some() && e.library != "libz.so.1");
    exports.iter().filter(|_| dated).filter_map(|e| e.since).min()
}

/// The newest glibc release that the tables know, as (major, minor).
pub fn newest_glibc() -> Option<(u32, u32)> {
    let release = symbols::glibc(abiaudit_policy::Arch::X86_64)?.newest_release();
    Some((release.major.into(), release.minor.into()))
}

/// The releases of glibc that the tables know, from `from` on, oldest first.
pub fn glibc_releases(from: Release) -> Vec<Release> {
    let tables = symbols::TABLES.iter().filter(|(name, _)| *name == "glibc.bin");
    tables.flat_map(|(_, pool)| pool.releases()).filter(|release| *release >= from).collect()
}

/// A glibc or musl release by the two numbers of a tag.
pub fn release((major, minor): (u32, u32)) -> Option<Release> {
    Some(Release::new(major.try_into().ok()?, minor.try_into().ok()?))
}

/// Since when a node exists, in words: `glibc 2.34`, `GCC 9.1`; `None` if unknown.
pub fn since(node: &str) -> Option<String> {
    if let Some(version) = node.strip_prefix("GLIBC_")
        && version.starts_with(|c: char| c.is_ascii_digit())
    {
        return Some(format!("glibc {version}"));
    }
    symbols::gcc_release_of(node).map(|release| format!("GCC {release}"))
}
