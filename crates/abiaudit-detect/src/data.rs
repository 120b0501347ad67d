//! The static tables that the build script makes of `policies/runtimes`.

use crate::evidence::Grade;
use crate::markers::{Form, Marker, Speaks};
use crate::soname;

/// One `[[family]]`.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    /// Stems of sonames; a `*` at the end stands for any rest.
    pub(crate) stems: &'static [&'static str],
}

/// What a family of libraries is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cxx,
    Unwinder,
    Openmp,
    Blas,
    Fortran,
    Allocator,
}

/// One `[[trap]]`: mangled names that look like parts of libstdc++ and are not.
#[derive(Debug)]
pub(crate) struct Trap {
    pub(crate) prefixes: &'static [&'static str],
    #[allow(dead_code, reason = "for the reader of the table")]
    pub(crate) reason: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/runtimes.rs"));

/// The family that a soname belongs to.
pub(crate) fn family_of(soname: &str, kind: Kind) -> Option<&'static str> {
    let stem = soname::stem(soname);
    let fits = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(start) => stem.starts_with(start),
        None => stem == *pattern,
    };
    FAMILIES.iter().find(|f| f.kind == kind && f.stems.iter().any(fits)).map(|f| f.name)
}

/// Is the mangled name one that must not count?
pub(crate) fn is_trap(name: &str) -> bool {
    TRAPS.iter().any(|trap| trap.prefixes.iter().any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sonames_find_their_family() {
        for (soname, kind, family) in [
            ("libstdc++.so.6", Kind::Cxx, Some("libstdc++")),
            ("libstdc++-496613c0.so.6.0.32", Kind::Cxx, Some("libstdc++")),
            ("libc++.so.1", Kind::Cxx, Some("libc++")),
            ("libc10.so", Kind::Cxx, None),
            ("libgomp-e985bcbb.so.1.0.0", Kind::Openmp, Some("libgomp")),
            ("libiomp5.so", Kind::Openmp, Some("libiomp5")),
            ("libiompstubs5.so", Kind::Openmp, Some("stubs")),
            ("libomptarget.so", Kind::Openmp, None),
            ("libscipy_openblas64_-fdde5778.so", Kind::Blas, Some("openblas")),
            ("libopenblasp-r0-2eadb500.3.30.so", Kind::Blas, Some("openblas")),
            ("libmkl_rt.so.2", Kind::Blas, Some("mkl")),
            ("libgfortran-040039e1-0352e75f.so.5.0.0", Kind::Fortran, Some("libgfortran")),
            ("libunwind.so.1", Kind::Unwinder, Some("libunwind")),
        ] {
            assert_eq!(family_of(soname, kind), family, "{soname}");
        }
    }

    /// Overlapping texts would hide each other from a scan that reports matches one after another.
    #[test]
    fn no_marker_hides_another() {
        for (i, a) in MARKERS.iter().enumerate() {
            for (j, b) in MARKERS.iter().enumerate() {
                let nested = i != j && a.text.contains(b.text);
                // The end of libstdc++'s own facet name is libc++'s marker: the longer one is preferred.
                assert!(
                    !nested || (a.speaks_for, b.speaks_for) == (Speaks::LibstdcxxFull, Speaks::LocaleFacet)
                );
            }
        }
    }

    #[test]
    fn full_markers_come_from_different_units() {
        let full = |m: &&Marker| m.speaks_for == Speaks::LibstdcxxFull;
        let mut units: Vec<_> = MARKERS.iter().filter(full).map(|m| m.unit).collect();
        units.sort_unstable();
        units.dedup();
        assert!(units.len() >= 4, "{units:?}");
        assert!(MARKERS.iter().filter(full).all(|m| m.grade == Grade::B));
        assert!(MARKERS.iter().any(|m| m.form == Form::NameEnd));
    }
}
