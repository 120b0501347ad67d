//! An unwinder is linked in, and exceptions can cross to other objects.
//!
//! ## What it does
//! Reports shared objects that hold a C++ runtime of their own and an unwinder of their own (`-static-libgcc`), and
//! export or use C++ functions across objects, or export the runtime or the unwinder. Silent where only C functions meet
//! the outside, and about objects without C++ (Rust and Go).
//!
//! ## Why is this bad?
//! Unwinding calls the personality function of each frame that it passes. That of this object belongs to its own
//! unwinder, whose register table is set up only when it throws itself. If another object throws with libgcc_s, the
//! process ends in `_Unwind_SetGR` as soon as the exception passes through here.
//!
//! ## Example
//! `g++ -shared -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL` for a library with a C++ interface.
//!
//! ## How to mend it
//! Link libgcc_s dynamically (leave out `-static-libgcc`): every manylinux system has it. Or let no exception out:
//! export C functions alone.
//!
//! ## References
//! GCC, libgcc/unwind-dw2.c (`_Unwind_SetGR`, `init_dwarf_reg_size_table`), and the manual on `-static-libgcc`, which
//! says that exceptions need the shared one; duckdb #7909.

use abiaudit_detect::{CxxClass, Exposure, UnwinderKind};
use abiaudit_elf::SymbolType;

use crate::audit::{Audit, AuditObject};
use crate::finding::{Evidence, Sink};
use crate::runtimes;

super::rule!("ABI204", "private-unwinder", Warning, "abi204_private_unwinder.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in runtimes::shared(audit) {
        let carries = &entry.carries;
        let own_cxx = carries.cxx.has_own_copy() && carries.cxx.class != CxxClass::Vendored;
        if carries.unwinder.kind != UnwinderKind::Private || !own_cxx {
            continue;
        }
        let Some((how, symbol)) = crossing(entry) else { continue };
        let message =
            format!("has an unwinder of its own and {how}: an exception that crosses ends the process");
        let about = carries.unwinder.evidence.iter().map(|evidence| Evidence::note(evidence.to_string()));
        sink.member(&entry.member.name, message)
            .help("link libgcc_s dynamically (no -static-libgcc), or let no exception leave a C interface")
            .evidence([Evidence::symbol(symbol)].into_iter().chain(about.take(3)));
    }
}

/// How an exception gets in or out, by what symbol.
fn crossing(entry: &AuditObject<'_>) -> Option<(&'static str, String)> {
    let symbols = &entry.object.symbols;
    if entry.carries.unwinder.exported {
        let mut names = symbols.exported().map(|symbol| symbols.name_text(symbol));
        return Some(("exports it", names.find(|name| name.starts_with("_Unwind_"))?));
    }
    let cxx = &entry.carries.cxx;
    if let (Exposure::Exported, Some(first)) = (cxx.exposure, cxx.exported.first()) {
        return Some(("exports its C++ runtime", first.name.clone()));
    }
    let exported = symbols.exported().filter(|s| s.symbol_type() == SymbolType::Function);
    if let Some(name) = exported.map(|s| symbols.name(s)).find(|name| is_interface(name)) {
        return Some(("exports C++ functions", String::from_utf8_lossy(name).into_owned()));
    }
    // libstdc++ itself refers weakly to transactional clones (_ZGTt) that nobody has.
    let mut references = symbols.undefined().filter(|s| !s.is_weak()).map(|s| symbols.name(s));
    let name = references.find(|name| name.starts_with(b"_Z"))?;
    Some(("calls C++ functions of other objects", String::from_utf8_lossy(name).into_owned()))
}

/// A C++ function that is no part of `std`, no operator new or delete, and no table or thunk.
fn is_interface(name: &[u8]) -> bool {
    const NOT: [&[u8]; 11] = [
        b"_ZS",
        b"_ZNS",
        b"_ZNKS",
        b"_ZT",
        b"_ZG",
        b"_Zn",
        b"_Zd",
        b"_ZNVS",
        b"_ZN9__gnu_cxx",
        b"_ZNK9__gnu_cxx",
        b"_ZN10__cxxabiv",
    ];
    name.starts_with(b"_Z") && !NOT.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::{Compiler, findings};

    const TAGS: &str = "cp312-cp312-linux_x86_64";
    const HIDDEN: [&str; 3] = ["-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL"];
    const INTERFACE: &str = "void api(int n) { if (n) throw std::runtime_error(\"api\"); }\n";

    fn severities(module: &[u8]) -> Vec<Severity> {
        let wheel = TestWheel::new("p", "1", TAGS).file("p/m.so", module);
        findings("ABI204", &wheel).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn a_cxx_interface_lets_exceptions_cross() {
        let Some(compiler) = Compiler::new() else { return };
        assert_eq!(severities(&compiler.module_with(INTERFACE, &HIDDEN)), [Severity::Warning]);
        assert_eq!(
            severities(&compiler.module(&HIDDEN[..2])),
            [Severity::Warning],
            "the runtime is exported"
        );
    }

    #[test]
    fn silent_where_nothing_crosses_and_with_the_shared_unwinder() {
        let Some(compiler) = Compiler::new() else { return };
        let script = compiler.version_script("{ global: PyInit_*; local: *; };");
        let flags = [&HIDDEN[..], &[&script]].concat();
        assert!(severities(&compiler.module_with(INTERFACE, &flags)).is_empty());
        assert!(severities(&compiler.module_with(INTERFACE, &["-static-libstdc++"])).is_empty());
        assert!(
            severities(&compiler.module_with(INTERFACE, &["-static-libgcc"])).is_empty(),
            "no runtime of its own"
        );
    }

    /// Trap (e): a Rust module for musl exports `_Unwind_*` and has no C++ (orjson).
    #[test]
    fn silent_about_what_is_not_cxx() {
        let module = ElfWriter::new(Arch::X86_64)
            .define("PyInit_m")
            .define("_Unwind_Resume")
            .define("_Unwind_RaiseException")
            .undefined("dl_iterate_phdr");
        assert!(severities(module.build().bytes()).is_empty());
    }
}
