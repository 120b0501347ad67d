//! Names for people.

/// A C++ or Rust name as its author wrote it; the name itself if it is not mangled or cannot be read within
/// bounds (names come from untrusted files).
pub fn demangle(name: &str) -> String {
    const LONGEST: usize = 16 << 10;
    if name.len() > LONGEST {
        return name.to_owned();
    }
    if let Some(text) = rust(name) {
        return text;
    }
    if name.starts_with("_Z") || name.starts_with("__Z") {
        return cpp(name).unwrap_or_else(|| name.to_owned());
    }
    name.to_owned()
}

fn rust(name: &str) -> Option<String> {
    // The legacy scheme is valid C++ mangling too: only the hash at its end tells it apart.
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let text = format!("{demangled:#}");
    let with_hash = format!("{demangled}");
    (name.starts_with("_R") || with_hash != text).then_some(text)
}

fn cpp(name: &str) -> Option<String> {
    let recursion = cpp_demangle::ParseOptions::default().recursion_limit(96);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &recursion).ok()?;
    let options = cpp_demangle::DemangleOptions::default().no_return_type().recursion_limit(96);
    symbol.demangle_with_options(&options).ok()
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_are_for_people() {
        assert_eq!(
            demangle("_ZNSt10filesystem4copyERKNS_7__cxx114pathES3_"),
            "std::filesystem::copy(std::filesystem::__cxx11::path const&, std::filesystem::__cxx11::path const&)"
        );
        assert_eq!(demangle("memcpy"), "memcpy");
        assert_eq!(demangle("_Zxx"), "_Zxx");
        assert_eq!(demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
    }
}
