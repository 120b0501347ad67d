//! A C++ runtime is linked in and hidden.
//!
//! ## What it does
//! Tells of shared objects that hold a whole libstdc++, its language support alone, or LLVM's libc++, and export nothing
//! of it.
//!
//! ## Why is this bad?
//! It is not: a hidden copy harms nobody else. Its state is its own: streams, the global locale, the terminate handler
//! and the current exception exist once more, and its security updates come with this wheel alone. An exception that it
//! throws through another object's code is the business of ABI204.
//!
//! ## Example
//! NVIDIA's CUDA libraries, libclang, and whatever is linked with `-static-libstdc++ -Wl,--exclude-libs,ALL`.
//!
//! ## How to mend it
//! Nothing needs mending. Linking libstdc++ dynamically saves one to two megabytes for each object.
//!
//! ## References
//! GCC's manual on `-static-libstdc++`.

use abiaudit_detect::{CxxClass, Exposure, LibCxxLinkage};

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};
use crate::runtimes;

super::rule!("ABI206", "hidden-cxx-runtime", Info, "abi206_hidden_cxx_runtime.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in runtimes::shared(audit) {
        let cxx = &entry.carries.cxx;
        let what = match &cxx.class {
            CxxClass::Full => "a whole libstdc++",
            CxxClass::FullAndNeeded => "a whole libstdc++ beside the one that it needs",
            CxxClass::Minimal => "the language support of libstdc++",
            CxxClass::LibCxx { linkage: LibCxxLinkage::Static, .. } => "LLVM's libc++",
            _ => continue,
        };
        if cxx.exposure != Exposure::Hidden {
            continue;
        }
        let evidence = cxx.evidence.iter().take(3).map(|evidence| Evidence::note(evidence.to_string()));
        let message =
            format!("holds {what}, hidden: its state exists once more, and nothing else is touched");
        sink.member(&entry.member.name, message).evidence(evidence);
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{Compiler, findings};

    const TAGS: &str = "cp312-cp312-linux_x86_64";

    #[test]
    fn hidden_copies_are_told_and_nothing_else_is_said() {
        let Some(compiler) = Compiler::new() else { return };
        let script = compiler.version_script("{ global: PyInit_*; local: *; };");
        for flags in [
            &["-static-libstdc++", "-Wl,--exclude-libs,ALL"][..],
            &["-static-libstdc++", &script],
            &["-static-libstdc++", &script, "-s"],
        ] {
            let wheel = TestWheel::new("p", "1", TAGS).file("p/m.so", compiler.module(flags));
            let rules: Vec<&str> = findings("ABI2", &wheel).iter().map(|f| f.rule.id).collect();
            assert_eq!(rules, ["ABI206"], "{flags:?}");
        }
    }

    /// Traps (f), (j): a need without use, and the names of environment variables, are no runtime.
    #[test]
    fn silent_about_users() {
        let module = ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libstdc++.so.6");
        let module = module.section(".rodata", 1, 2, b"\0OMP_NUM_THREADS\0KMP_AFFINITY\0GOMP_SPINCOUNT\0");
        let wheel = TestWheel::new("p", "1", TAGS).elf("p/m.so", &module);
        assert!(findings("ABI2", &wheel).is_empty());
        assert!(findings("ABI3", &wheel).is_empty());
    }
}
