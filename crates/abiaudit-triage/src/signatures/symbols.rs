//! Symbols that no loaded library has, by what their names say of their origin.

use crate::signature::{Certainty, Check, Sign, Signature};

const UNRESOLVED: Check =
    Check { rule: "ABI402", shows: "references that nothing in the wheel or its declared needs can satisfy" };
const UNDECLARED: Check =
    Check { rule: "ABI408", shows: "a library of another wheel that METADATA does not require" };
const NOT_IN_TARGET: Check =
    Check { rule: "ABI102", shows: "symbols that the target's libraries do not export" };

pub static PYTHON_SYMBOL: Signature = Signature {
    id: "python-symbol-missing",
    name: "The interpreter lacks a function of the C API",
    certainty: Certainty::Certain,
    meaning: "The extension calls the C API of another Python: a newer or older one than it was built for, a private \
              function that went away, or an abi3 claim that does not hold. A program that embeds Python with \
              RTLD_LOCAL gives the same message.",
    checks: &[
        Check { rule: "ABI618", shows: "C API functions that a Python of the wheel's tags does not have" },
        Check { rule: "ABI617", shows: "an extension whose file name disagrees with the tag" },
    ],
    mend: "Build for each Python that the tags name, or with Py_LIMITED_API set to the oldest one for abi3.",
    references: &["PEP 384", "PEP 425", "CPython Doc/data/stable_abi.dat"],
    sign: Sign::MissingSymbol(is_python),
};

pub static CUDA_SYMBOL: Signature = Signature {
    id: "cuda-symbol-missing",
    name: "A CUDA library is another release than the one built against",
    certainty: Certainty::Certain,
    meaning: "NCCL, cuFile, cuSPARSELt and others have no version nodes, and libnvJitLink puts all releases under one: \
              an older or newer library under the same soname loads, and then lacks a function. Wheels of two CUDA \
              releases, a system-wide CUDA in LD_LIBRARY_PATH, or a pin that is looser than the build cause it.",
    checks: &[
        UNDECLARED,
        UNRESOLVED,
        Check { rule: "ABI409", shows: "a declared library that the search path does not reach" },
    ],
    mend: "Pin the nvidia-* wheels to the releases built against (Requires-Dist) and keep other copies out of \
           LD_LIBRARY_PATH; reinstall the pinned releases together.",
    references: &[
        "pytorch #111469, #134929, #140797 (nvJitLink)",
        "pytorch #119932, #119072, #186591 (NCCL)",
        "nccl #1180",
    ],
    sign: Sign::MissingSymbol(is_cuda),
};

pub static STANDARD_LIBRARY_SYMBOL: Signature = Signature {
    id: "standard-library-symbol-missing",
    name: "The C++ standard library lacks a function",
    certainty: Certainty::Certain,
    meaning: "A function of libstdc++ is missing without a word about versions: the reference has no version, as \
              builds against symbol-less stubs and some split toolchains leave it, or no libstdc++ was loaded at all \
              because the file does not name it among its needs.",
    checks: &[NOT_IN_TARGET, UNRESOLVED],
    mend: "Link with g++ (or -lstdc++) so that the need and the versions are recorded, against the libstdc++ of the \
           oldest target.",
    references: &["xgrammar #821", "GCC libstdc++ manual, ABI policy"],
    sign: Sign::MissingSymbol(is_standard_library),
};

pub static CXX11_ABI: Signature = Signature {
    id: "cxx11-abi-mismatch",
    name: "Two sides of a C++ interface disagree on std::string",
    certainty: Certainty::Likely,
    meaning: "The name mentions std::string or std::list in one of libstdc++'s two ABIs (Ss: before GCC 5; __cxx11: \
              since), and the library that should export it was built with the other, or is another release. Both \
              sides must agree on _GLIBCXX_USE_CXX11_ABI.",
    checks: &[UNRESOLVED, UNDECLARED],
    mend: "Build with the -D_GLIBCXX_USE_CXX11_ABI=0 or =1 of the library used (torch: \
           torch.compiled_with_cxx11_abi()), and pin the release of that library.",
    references: &[
        "GCC libstdc++ manual, Dual ABI",
        "pytorch #152790",
        "flash-attention #1644, #975",
        "vllm #13608",
    ],
    sign: Sign::MissingSymbol(is_dual_abi),
};

pub static TORCH_SYMBOL: Signature = Signature {
    id: "torch-symbol-missing",
    name: "The extension was built for another torch",
    certainty: Certainty::Likely,
    meaning: "torch promises no stable C++ ABI: an extension works with the release it was built against.",
    checks: &[UNDECLARED, UNRESOLVED],
    mend: "Pin torch in Requires-Dist to the release built against, or install the extension's build for the torch \
           that is there.",
    references: &["sglang #30562", "flash-attention #919", "NATTEN #220"],
    sign: Sign::MissingSymbol(is_torch),
};

pub static UNDEFINED_SYMBOL: Signature = Signature {
    id: "undefined-symbol",
    name: "A symbol is in no loaded library",
    certainty: Certainty::Certain,
    meaning: "The loader searched every library in the scope and found no definition: the library that has it is not \
              among the needs, is another release, or the symbol belongs to another C library (musl lacks much of \
              glibc).",
    checks: &[
        UNRESOLVED,
        NOT_IN_TARGET,
        Check { rule: "ABI406", shows: "symbols that only a library loaded earlier can supply" },
        Check { rule: "ABI110", shows: "files of glibc and of musl in one wheel" },
    ],
    mend: "Link with -Wl,--no-undefined to see it at build time; name the library that has it; on musl build for musl.",
    references: &["gABI chapter 5, shared object dependencies", "rego-cpp #226"],
    sign: Sign::MissingSymbol(|_| true),
};

/// `Py...` and `_Py...` of the C API; functions of extensions are in lower case by habit (`pybind11`, `py_`).
fn is_python(symbol: &str) -> bool {
    let name = symbol.strip_prefix('_').unwrap_or(symbol);
    name.strip_prefix("Py").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
        && !symbol.starts_with("PyInit_")
}

/// C functions of CUDA's libraries.
const CUDA_PREFIXES: &[&str] = &[
    "nccl",
    "pnccl",
    "nvJitLink",
    "__nvJitLink",
    "nvrtc",
    "nvshmem",
    "cublas",
    "cudnn",
    "cusparse",
    "cufft",
    "cuFile",
    "cusolver",
    "curand",
    "cupti",
    "nvml",
    "nvtx",
];

fn is_cuda(symbol: &str) -> bool {
    // The runtime (cudaMalloc) and the driver (cuMemAlloc).
    let api = |prefix| {
        symbol
            .strip_prefix(prefix)
            .is_some_and(|rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    };
    CUDA_PREFIXES.iter().any(|prefix| symbol.starts_with(prefix)) || api("cuda") || api("cu")
}

/// Names in namespace std, and the C functions of the C++ runtime.
fn is_standard_library(symbol: &str) -> bool {
    [
        "_ZSt", "_ZNSt", "_ZNKSt", "_ZNVSt", "_ZTISt", "_ZTVSt", "_ZTSSt", "_ZNSs", "_ZNKSs", "_ZNSo",
        "_ZNSi", "_ZNSd",
    ]
    .iter()
    .chain(&["__cxa_", "__gxx_personality", "_ZN10__cxxabiv1", "_ZTVN10__cxxabiv1", "_ZTIN10__cxxabiv1"])
    .any(|prefix| symbol.starts_with(prefix))
        || ["_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm"].contains(&symbol)
}

fn is_torch(symbol: &str) -> bool {
    [
        "_ZN3c10",
        "_ZNK3c10",
        "_ZN2at",
        "_ZNK2at",
        "_ZN5torch",
        "_ZNK5torch",
        "_ZN6caffe2",
        "_ZTIN3c10",
        "_ZTVN3c10",
    ]
    .iter()
    .any(|prefix| symbol.starts_with(prefix))
}

/// A name that mentions `std::string` of the old ABI (substitution `Ss`) or anything in `std::__cxx11`
/// (Itanium C++ ABI, 5.1: identifiers are preceded by their length and therefore skipped).
fn is_dual_abi(symbol: &str) -> bool {
    let Some(mangled) = symbol.strip_prefix("_Z") else { return false };
    let mut rest = mangled;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let length: usize = rest[..digits].parse().unwrap_or(usize::MAX);
            let name_onwards = &rest[digits..];
            let Some(name) = name_onwards.get(..length) else { return false };
            if name == "__cxx11" || name == "cxx11" {
                return true;
            }
            rest = &name_onwards[length..];
        } else if rest.starts_with("Ss") {
            return true;
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dual_abi_is_told_from_identifiers() {
        assert!(is_dual_abi("_ZN3c105ErrorC2ENS_14SourceLocationESs"));
        assert!(is_dual_abi("_ZN3lib4openERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"));
        assert!(is_dual_abi("_ZN3lib4nameB5cxx11Ev"));
        // Ss inside of an identifier, a length beyond the end, no C++.
        for other in
            ["_ZN9GLSsystem4openEi", "_ZN99abc", "_ZN99999999999999999999999a", "processSs", "_Z", ""]
        {
            assert!(!is_dual_abi(other), "{other}");
        }
    }

    #[test]
    fn origins() {
        assert!(is_python("PyObject_Call") && is_python("_Py_Dealloc") && !is_python("PyInit_mod"));
        assert!(!is_python("Python3_Foo") && !is_python("pybind11_x"));
        assert!(is_cuda("ncclCommRegister") && is_cuda("__nvJitLinkComplete_12_4") && is_cuda("cuMemAlloc"));
        assert!(is_cuda("cudaMalloc") && !is_cuda("custom_call") && !is_cuda("cudax"));
        assert!(
            is_standard_library("_ZNSt7__cxx1118basic_stringstreamC1Ev")
                && is_standard_library("__cxa_throw")
        );
        assert!(!is_standard_library("_ZN3c105ErrorE"));
        assert!(is_torch("_ZN3c105ErrorE") && !is_torch("_ZN3abcE"));
    }
}
