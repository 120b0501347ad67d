//! As much of the Itanium C++ ABI's mangling as detection and its users need.

/// Can a symbol be a part of a C++ standard library? A quick look at the start of the mangled name (section 5.1 of
/// the Itanium C++ ABI): names in `std`, the abbreviations for it, GNU's and the ABI library's namespaces, and
/// special names (typeinfo, vtable, guard) of these.
pub fn may_be_standard(name: &[u8]) -> bool {
    if name.starts_with(b"__cxa_") || name.starts_with(b"__once_") || name.starts_with(b"__gxx_") {
        return true;
    }
    let Some(rest) = name.strip_prefix(b"_Z") else { return false };
    let rest = special(rest).unwrap_or(rest);
    let entity = match rest {
        [b'N', b'K' | b'V', rest @ ..] | [b'N', rest @ ..] => rest,
        _ => rest,
    };
    matches!(entity, [b'S', b't' | b'a' | b'b' | b's' | b'i' | b'o' | b'd', ..])
        || entity.starts_with(b"9__gnu_cxx")
        || entity.starts_with(b"10__cxxabiv1")
        || matches!(entity, [b'n' | b'd', b'w' | b'a' | b'l', ..])
}

/// `operator new`, `new[]`, `delete`, `delete[]` in the global namespace (Itanium C++ ABI 5.1.5), which a program may
/// replace ([new.delete] of the C++ standard).
pub(crate) fn is_allocation_operator(name: &[u8]) -> bool {
    matches!(
        name,
        [b'_', b'Z', b'n', b'w' | b'a', b'm' | b'j', ..] | [b'_', b'Z', b'd', b'l' | b'a', b'P', b'v', ..]
    )
}

/// What stands after the mark of a special name: `_ZTV`, `_ZTI`, `_ZTS`, `_ZTT`, `_ZTH`, `_ZTW`, `_ZGV`.
fn special(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b'T', b'V' | b'I' | b'S' | b'T' | b'H' | b'W', rest @ ..] | [b'G', b'V', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// Is this a function or variable that is no template and no member of one? Such a definition of the standard library
/// is never made by the code that uses it, unless it is inline.
///
/// Identifiers are skipped by their length (5.1.3); any `I` left begins template arguments, and the abbreviations
/// `Sa`, `Sb`, `Ss`, `Si`, `So`, `Sd` (5.1.8) are templates too.
pub fn is_plain(name: &str) -> bool {
    // C linkage.
    let Some(mut rest) = name.strip_prefix("_Z").map(str::as_bytes) else { return true };
    rest = special(rest).unwrap_or(rest);
    let mut first = true;
    while let Some(&byte) = rest.first() {
        if byte.is_ascii_digit() {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let length = rest[..digits]
                .iter()
                .fold(0usize, |n, &d| n.saturating_mul(10).saturating_add(usize::from(d - b'0')));
            rest = rest.get(digits.saturating_add(length)..).unwrap_or_default();
            first = false;
            continue;
        }
        match (byte, rest.get(1)) {
            (b'I', _) => return false,
            // Of a parameter, `Ss` says nothing of the function.
            (b'S', Some(b'a' | b'b' | b's' | b'i' | b'o' | b'd')) if first => return false,
            (b'S', Some(b't')) => rest = &rest[1..],
            _ => {}
        }
        rest = &rest[1..];
    }
    true
}

/// The inline namespace in the typeinfo name of libc++'s `locale::facet`: `__1` of `NSt3__16locale5facetE`. `None` for
/// libstdc++'s, which has none, and for other names.
pub(crate) fn namespace_of_facet(name: &str) -> Option<&str> {
    let component = name.strip_prefix("NSt")?.strip_suffix("6locale5facetE")?;
    let digits = component.bytes().take_while(u8::is_ascii_digit).count();
    let (length, namespace) = component.split_at_checked(digits)?;
    (length.parse() == Ok(namespace.len()) && !namespace.is_empty()).then_some(namespace)
}

/// The nested name of a mangled symbol without its marks (const, typeinfo): `St3__14coutE` of `_ZNSt3__14coutE`.
pub(crate) fn nested_name(symbol: &str) -> Option<&str> {
    let rest = symbol.strip_prefix("_Z")?;
    let rest = special(rest.as_bytes()).map_or(rest, |special| &rest[rest.len() - special.len()..]);
    rest.strip_prefix("NK").or_else(|| rest.strip_prefix('N'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_names_are_told_by_their_start() {
        for name in [
            "_ZSt4cout",
            "_ZNSt6locale7classicEv",
            "_ZNKSs4sizeEv",
            "_ZTVSt9exception",
            "_ZGVNSt7num_putIcSt19ostreambuf_iteratorIcSt11char_traitsIcEEE2idE",
            "_ZN9__gnu_cxx18stdio_sync_filebufIcSt11char_traitsIcEE4syncEv",
            "_Znwm",
            "__cxa_throw",
            "__once_proxy",
        ] {
            assert!(may_be_standard(name.as_bytes()), "{name}");
        }
        for name in ["main", "_ZN2at6TensorC1Ev", "_ZN3foo3barESt6vectorIiE", "_Z3barv", "_Z", ""] {
            assert!(!may_be_standard(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn templates_are_not_plain() {
        for name in [
            "_ZSt28__throw_bad_array_new_lengthv",
            "_ZNSt10filesystem7__cxx114path14_M_split_cmptsEv",
            "_ZNSt13runtime_errorC1ERKSs",
            "_ZTVNSt10filesystem7__cxx1116filesystem_errorE",
            "__cxa_throw",
        ] {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm",
            "_ZNSs4_Rep9_S_createEmmRKSaIcE",
            "_ZNKSi6gcountEv",
            "_ZSt9use_facetISt7codecvtIcc11__mbstate_tEERKT_RKSt6locale",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn libcxx_is_told_by_its_inline_namespace() {
        assert_eq!(namespace_of_facet("NSt3__16locale5facetE"), Some("__1"));
        assert_eq!(namespace_of_facet("NSt4__y16locale5facetE"), Some("__y1"));
        assert_eq!(namespace_of_facet("NSt6__ndk16locale5facetE"), Some("__ndk1"));
        assert_eq!(namespace_of_facet("NSt6locale5facetE"), None);
        assert_eq!(namespace_of_facet("NSt9__16locale5facetE"), None);
        assert_eq!(namespace_of_facet("_ZTSNSt3__16locale5facetE"), None);
        assert_eq!(namespace_of_facet("N5boost6locale5facetE"), None);
    }

    #[test]
    fn nested_names_are_found_behind_marks() {
        assert_eq!(nested_name("_ZNSt3__14coutE"), Some("St3__14coutE"));
        assert_eq!(nested_name("_ZNKSt4__y16locale4nameEv"), Some("St4__y16locale4nameEv"));
        assert_eq!(nested_name("_ZTINSt3__16locale5facetE"), Some("St3__16locale5facetE"));
        assert_eq!(nested_name("_ZSt4cout"), None);
        assert_eq!(nested_name("main"), None);
    }
}
