//! Two OpenMP or BLAS runtimes in one process.

use crate::signature::{Certainty, Check, Sign, Signature};
use crate::stack::Frame;

pub static OMP_TWO_RUNTIMES: Signature = Signature {
    id: "omp-two-runtimes",
    name: "LLVM's and Intel's OpenMP runtimes were both loaded",
    certainty: Certainty::Certain,
    meaning: "libomp and libiomp5 (or two copies of one) are the same runtime under two names, and the second to start \
              stops the process. libgomp does not take part in this check.",
    checks: &[Check { rule: "ABI301", shows: "the files that bring the runtimes" }],
    mend: "Build all wheels of the process against one runtime, or depend on the wheel that brings it instead of \
           vendoring it. KMP_DUPLICATE_LIB_OK=TRUE silences the check, and wrong results may follow.",
    references: &["pytorch #78490, #83540", "threadpoolctl multiple_openmp.md", "xgboost #1715"],
    sign: Sign::Message {
        any: &[
            r"OMP: Error #15: Initializing (?P<second>[^ ,]+), but found (?P<first>[^ ]+) already initialized",
            r"OMP: Error #15:",
        ],
        also: &[],
    },
};

pub static OPENBLAS_TWO_POOLS: Signature = Signature {
    id: "openblas-two-pools",
    name: "Two OpenBLAS libraries run thread pools",
    certainty: Certainty::Hint,
    meaning: "Threads wait in blas_thread_server of two files: two OpenBLAS were loaded, each with a pool for all \
              processors. By itself this costs memory and speed; it is a crash only where both export the same names \
              into one scope. If the reference build of the project has no OpenBLAS, the build picked up one that \
              happened to be installed.",
    // Two pools alone are not wrong: which wheel should have none is a question of parity with a reference build.
    checks: &[Check { rule: "ABI305", shows: "libraries that export the same BLAS names into one scope" }],
    mend: "Remove OpenBLAS from the build environment if it was not meant, or name the BLAS explicitly; compare the \
           vendored libraries with those of the reference wheel. Look at the crashing thread for the cause of the crash.",
    references: &["OpenBLAS #3436, #2880", "pytorch #93161", "threadpoolctl #63"],
    sign: Sign::TwoFiles(is_pool),
};

fn is_pool(frame: &Frame) -> bool {
    let openblas = frame.file_name().is_some_and(|name| name.contains("openblas"));
    frame.calls("blas_thread_server") || (openblas && frame.text.starts_with("??"))
}
