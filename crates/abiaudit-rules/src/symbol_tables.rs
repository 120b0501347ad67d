//! Questions to the symbol tables of `abiaudit-policy`, in the terms of an audit.

use std::collections::BTreeSet;

use abiaudit_loader::search::Outcome;
use abiaudit_policy::symbols::{self, Export};
use abiaudit_policy::{Libc, compare_versions};

use crate::audit::Audit;
use crate::platform::Platform;
use crate::python;

/// The library and version node at which a system has a symbol first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// soname.
    pub library: &'static str,
    /// The oldest node.
    pub node: String,
}

/// Where a reference without a version finds its symbol on a glibc system: any version satisfies it, so the
/// oldest counts. `None` for what these libraries do not have.
pub fn first_node(platform: Platform, symbol: &str) -> Option<Home> {
    if platform.libc != Libc::Glibc || python::is_api(symbol.as_bytes()) {
        return None;
    }
    let exports = if symbol.starts_with("_Z") || symbol.starts_with("__cxa_") || symbol.starts_with("__once")
    {
        symbols::libstdcxx(platform.arch)?.exports(symbol)
    } else {
        symbols::glibc(platform.arch)?.versions_of(symbol)
    };
    let named = exports.iter().filter_map(|e| Some((e, e.version?)));
    let oldest = named.min_by(|(_, a), (_, b)| compare_nodes(a, b))?;
    Some(Home { library: oldest.0.library, node: oldest.1.to_owned() })
}

/// All exports of a symbol by the system libraries that the tables know.
pub fn exports(platform: Platform, symbol: &str) -> Vec<Export> {
    let arch = platform.arch;
    match platform.libc {
        Libc::Musl => symbols::musl(arch).map(|t| t.exports(symbol)).unwrap_or_default(),
        Libc::Glibc => {
            let glibc = symbols::glibc(arch).map(|t| t.versions_of(symbol));
            let gcc = [symbols::libstdcxx(arch), symbols::libgcc(arch), symbols::libatomic(arch)];
            let gcc = gcc.into_iter().flatten().flat_map(|t| t.exports(symbol));
            glibc.unwrap_or_default().into_iter().chain(gcc).collect()
        }
    }
}

fn compare_nodes(a: &str, b: &str) -> std::cmp::Ordering {
    let version = |node: &str| node.split_once('_').map_or(node.to_owned(), |(_, v)| v.to_owned());
    compare_versions(&version(a), &version(b)).unwrap_or_else(|| a.cmp(b))
}

/// The sonames of all external libraries that the objects of a closure need.
pub fn system_libraries<'a>(audit: &'a Audit<'_>, closure: &[usize]) -> BTreeSet<&'a str> {
    closure
        .iter()
        .flat_map(|&i| audit.resolution.needs_of(i))
        .filter(|need| matches!(need.outcome, Outcome::External | Outcome::Libc))
        .map(|need| need.name.as_str())
        .collect()
}

/// The newest glibc release that the tables know, as (major, minor).
pub fn newest_glibc() -> Option<(u32, u32)> {
    let release = symbols::glibc(abiaudit_policy::Arch::X86_64)?.newest_release();
    Some((release.major.into(), release.minor.into()))
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
