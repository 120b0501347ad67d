//! Native code brings or needs Python as a library.
//!
//! ## What it does
//! Reports libraries and extension modules that need `libpythonX.Y.so` (an error if the wheel does not have it, else
//! a warning) and those that carry an interpreter: they define `Py_Initialize` and at least a hundred other
//! functions of the C API (warning). Programs that embed Python are noted only if they need `libpython` from outside.
//!
//! ## Why is this bad?
//! Most Pythons are not built with `--enable-shared`: `ImportError: libpython3.12.so.1.0: cannot open shared object
//! file`. Where it is there, or is in the wheel, the process has two interpreters with two sets of types and
//! thread states, which crash when objects pass between them.
//!
//! ## Example
//! A module linked with `-lpython3.12` because a `python-config --ldflags --embed` said so, or with CMake's
//! `Python::Python` in place of `Python::Module`.
//!
//! ## How to mend it
//! Link extension modules without libpython: the running interpreter has the symbols (CMake: `Python::Module`;
//! Meson: `py.extension_module`; Cargo: pyo3's `extension-module` feature).
//!
//! ## References
//! PEP 513 ("libpythonX.Y.so.1"); auditwheel #23 and #589; Python 3.8 "What's New" (extension modules are no longer
//! linked to libpython).

use abiaudit_elf::Object;
use abiaudit_loader::search::Outcome;

use crate::audit::{Audit, Role};
use crate::finding::{Evidence, Severity, Sink};
use crate::python;

super::rule!("ABI619", "libpython-linked", Warning, "abi619_libpython_linked.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (index, entry) in audit.loadable() {
        let program = entry.role == Role::Program;
        for need in audit.resolution.needs_of(index).iter().filter(|need| python::is_libpython(&need.name)) {
            let outside = matches!(need.outcome, Outcome::External | Outcome::Libc);
            let (severity, message) = match (outside, program) {
                (true, false) => {
                    (Severity::Error, format!("needs {}, which most Pythons do not have", need.name))
                }
                (true, true) => (Severity::Info, format!("needs {} of the host", need.name)),
                (false, false) => {
                    (Severity::Warning, format!("needs {} of the wheel: a second interpreter", need.name))
                }
                (false, true) => continue,
            };
            sink.member(&entry.member.name, message)
                .severity(severity)
                .help("link extension modules without libpython")
                .evidence([Evidence::default().with_library(&need.name)]);
        }
        if !program && !is_interpreter_library(entry.object) && carries_interpreter(entry.object) {
            sink.member(&entry.member.name, "has an interpreter linked into it (it defines Py_Initialize)")
                .help("link extension modules without libpython");
        }
    }
}

fn is_interpreter_library(object: &Object) -> bool {
    object.dynamic.soname.as_ref().is_some_and(|name| {
        let name = name.to_text();
        python::is_libpython(&name) || name.starts_with("libpython") || name.starts_with("libpypy")
    })
}

fn carries_interpreter(object: &Object) -> bool {
    const MANY: usize = 100;
    if object.symbols.definitions(b"Py_Initialize").is_empty() {
        return false;
    }
    let api = object.symbols.exported().filter(|symbol| python::is_api(object.symbols.name(symbol)));
    api.take(MANY).count() == MANY
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    fn severity(elf: &ElfWriter) -> Option<Severity> {
        let wheel = TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64").elf("p/m.so", elf);
        findings("ABI619", &wheel).first().map(|f| f.severity)
    }

    fn module() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).needed("libc.so.6").define("PyInit_m")
    }

    #[test]
    fn a_module_that_needs_libpython_is_an_error_and_a_program_is_noted() {
        assert_eq!(severity(&module().needed("libpython3.12.so.1.0")), Some(Severity::Error));
        let program = ElfWriter::new(Arch::X86_64)
            .interpreter("/lib64/ld-linux-x86-64.so.2")
            .needed("libpython3.12.so.1.0");
        assert_eq!(severity(&program), Some(Severity::Info));
    }

    #[test]
    fn a_module_with_an_interpreter_inside_is_a_warning() {
        let carrying =
            (0..120).fold(module().define("Py_Initialize"), |elf, i| elf.define(format!("PyObject_F{i}")));
        assert_eq!(severity(&carrying), Some(Severity::Warning));
        assert_eq!(severity(&carrying.soname("libpython3.12.so.1.0")), None);
    }

    #[test]
    fn modules_that_use_the_interpreters_symbols_are_fine() {
        assert_eq!(severity(&module().undefined("Py_Initialize")), None);
        // A few definitions: an emulation of the API, or its own functions with such names.
        assert_eq!(severity(&module().define("Py_Initialize").define("PyMine")), None);
        assert_eq!(severity(&module().needed("libpythonic.so.1")), None);
    }
}
