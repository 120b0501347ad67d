//! The table of known failures. One file a family; a new failure is one row.

mod cxx_runtime;
mod loading;
mod numeric;
mod process;
mod symbols;
mod versions;

use crate::signature::Signature;

/// All signatures. Of those for missing symbols and libraries the first that fits counts.
pub static SIGNATURES: &[&Signature] = &[
    &cxx_runtime::FACET_MISMATCH,
    &cxx_runtime::BAD_CAST_IN_STREAM,
    &cxx_runtime::ONCE_NULL_CALL,
    &cxx_runtime::PRIVATE_UNWINDER,
    &cxx_runtime::TWO_UNWINDERS,
    &cxx_runtime::HEAP_ACROSS_RUNTIMES,
    &versions::GLIBCXX_TOO_OLD,
    &versions::GLIBC_TOO_OLD,
    &versions::RELR,
    &versions::OTHER_VERSION,
    &versions::VERNEED_WITHOUT_NEEDED,
    &symbols::PYTHON_SYMBOL,
    &symbols::CUDA_SYMBOL,
    &symbols::STANDARD_LIBRARY_SYMBOL,
    &symbols::CXX11_ABI,
    &symbols::TORCH_SYMBOL,
    &symbols::UNDEFINED_SYMBOL,
    &loading::LIBPYTHON_MISSING,
    &loading::DRIVER_MISSING,
    &loading::LIBRARY_MISSING,
    &loading::STATIC_TLS,
    &loading::PAGE_ALIGNMENT,
    &loading::SEGMENT_OFFSET,
    &loading::EXECUTABLE_STACK,
    &loading::TEXT_RELOCATION,
    &loading::WRONG_ELF,
    &numeric::OMP_TWO_RUNTIMES,
    &numeric::OPENBLAS_TWO_POOLS,
    &process::ILLEGAL_INSTRUCTION,
    &process::FATAL_PYTHON_ERROR,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::SIGNATURES;

    #[test]
    fn ids_are_unique_and_rows_complete() {
        let ids: BTreeSet<&str> = SIGNATURES.iter().map(|signature| signature.id).collect();
        assert_eq!(ids.len(), SIGNATURES.len());
        for signature in SIGNATURES {
            let id = signature.id;
            assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{id}");
            for text in [signature.name, signature.meaning, signature.mend] {
                assert!(!text.is_empty(), "{id}");
            }
            assert!(!signature.references.is_empty(), "{id}");
            for check in signature.checks {
                assert!(check.rule.len() == 6 && check.rule.starts_with("ABI"), "{id}: {}", check.rule);
            }
        }
    }
}
