//! Symbols by the names that people and compilers write: `std::filesystem::copy`.

use abiaudit_policy::explain::{Explanation, SymbolExplanation, explain};
use abiaudit_policy::symbols;
use abiaudit_policy::{Arch, Libc, PolicySet};
use abiaudit_rules::demangle;

/// The symbols of libstdc++ whose name is this, with or without the arguments; all overloads of a name.
pub fn find(query: &str) -> Vec<SymbolExplanation> {
    if !query.contains("::") && !query.contains('(') && !query.contains("operator") {
        return Vec::new();
    }
    let wanted = plain(query);
    let mut mangled: Vec<String> = architectures()
        .filter_map(symbols::libstdcxx)
        .flat_map(|table| table.symbols().map(|(name, _)| name).collect::<Vec<_>>())
        .filter(|name| is_named(name, &wanted))
        .collect();
    mangled.sort();
    mangled.dedup();
    let explained = |name: String| match explain(&name) {
        Some(Explanation::Symbol(symbol)) => Some(symbol),
        _ => None,
    };
    mangled.into_iter().filter_map(explained).collect()
}

/// One of 64 bits and one of 32: `size_t` is mangled in two ways.
fn architectures() -> impl Iterator<Item = Arch> {
    let policies = PolicySet::builtin();
    let covered = move |arch: &Arch| !policies.ladder(Libc::Glibc, *arch).is_empty();
    [Arch::X86_64, Arch::I686].into_iter().filter(covered)
}

fn is_named(mangled: &str, wanted: &str) -> bool {
    let readable = demangle(mangled);
    if readable == mangled {
        return false;
    }
    let readable = plain(&readable);
    readable == wanted || readable.split('(').next() == Some(wanted)
}

/// Without blanks, and without what GCC's second ABI adds to names: nobody writes that.
fn plain(name: &str) -> String {
    name.replace("__cxx11::", "").replace("[abi:cxx11]", "").split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn names_are_found_with_and_without_arguments() {
        let all = find("std::filesystem::copy");
        assert!(all.len() > 1, "overloads: {all:?}");
        let path = "std::filesystem::path const&";
        let one = find(&format!("std::filesystem::copy({path}, {path}, std::filesystem::copy_options)"));
        let mangled = "_ZNSt10filesystem4copyERKNS_7__cxx114pathES3_NS_12copy_optionsE";
        assert!(one.iter().any(|s| s.symbol == mangled), "{one:?}");
        assert!(one.len() < all.len() && one.iter().all(|s| all.contains(s)));
    }

    #[test]
    fn what_nobody_exports_is_not_found() {
        assert!(find("std::no_such_thing").is_empty());
        assert!(find("memcpy").is_empty(), "C names need no demangling");
    }
}
