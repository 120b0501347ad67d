//! What the process itself says when it dies.

use crate::signature::{Certainty, Check, Sign, Signature};

pub static ILLEGAL_INSTRUCTION: Signature = Signature {
    id: "illegal-instruction",
    name: "The processor does not know an instruction",
    certainty: Certainty::Likely,
    meaning: "Code was compiled for a newer processor than this one (-march=native, x86-64-v3) and runs without asking \
              first. A trap that the compiler put in for impossible paths shows the same.",
    checks: &[Check { rule: "ABI107", shows: "files that declare a level above the baseline of their tag" }],
    mend: "Build for the baseline of the architecture and dispatch at run time.",
    references: &["x86-64 psABI, micro-architecture levels", "PEP 600"],
    sign: Sign::Message {
        any: &[
            r"Fatal Python error: Illegal instruction",
            r"(?:terminated with signal|received signal) (?:SIGILL|4)[^0-9]",
            r"Illegal instruction \(core dumped\)",
        ],
        also: &[],
    },
};

pub static FATAL_PYTHON_ERROR: Signature = Signature {
    id: "fatal-python-error",
    name: "Native code died; faulthandler lists what was loaded",
    certainty: Certainty::Hint,
    meaning: "A signal stopped the interpreter in native code. The Python frames say which call or import it was; the \
              list of extension modules says which wheels shared the process, and is the list to check. A frame in \
              create_module means that the process died while a library was being loaded.",
    checks: &[
        Check { rule: "ABI201", shows: "a C++ runtime that breaks others" },
        Check { rule: "ABI202", shows: "a wheel brings a libstdc++ of its own" },
        Check { rule: "ABI203", shows: "a C++ runtime hidden by half" },
        Check { rule: "ABI301", shows: "two OpenMP runtimes" },
    ],
    mend: "Run abiaudit over the wheels that own the listed modules; get the native frames with gdb: gdb -batch -ex run \
           -ex bt -ex 'thread apply all bt' --args python -c 'import ...', and triage those.",
    references: &["Python library reference, faulthandler"],
    sign: Sign::Message {
        any: &[
            r"Fatal Python error: (?P<signal>Segmentation fault|Aborted|Bus error|Floating-point exception)",
        ],
        also: &[
            r"Extension modules: (?P<extension_modules>[^()]+) \(total: [0-9]+\)",
            r#"File "(?P<importer><frozen importlib[^>]*>)", line [0-9]+ in (?P<during>create_module|exec_module)"#,
        ],
    },
};
