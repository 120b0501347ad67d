//! LLVM's C++ runtime is put in the way of GNU's.
//!
//! ## What it does
//! Reports objects that hold or are LLVM's libc++ (libc++abi) and export what GNU's libstdc++ exports too
//! (`__cxa_throw` and the like, the typeinfo of `std::exception`, `operator new`); and objects that need libunwind or
//! libc++ before libgcc_s. In a simulated process (`check` with `--with`, `--import` or `--trace`) an error where LLVM's
//! runtime does serve objects that are built for GNU's, and a warning where it is the reverse.
//!
//! ## Why is this bad?
//! The two runtimes have the same names for the language support and not the same objects behind them: another object may
//! throw with one and catch with the other. With libunwind first, libgcc_s binds half of its own `_Unwind_*` functions
//! to libunwind, and the next throw of any module crashes, also of one that has nothing to do with LLVM.
//!
//! ## Example
//! `clang++ -stdlib=libc++ -shared` on a system where libc++ uses LLVM's libunwind: `NEEDED libc++.so.1, libunwind.so.1,
//! libgcc_s.so.1`.
//!
//! ## How to mend it
//! Build with libstdc++. Where it must be libc++, link it, libc++abi and the unwinder statically and hide them
//! (`-Wl,--exclude-libs,ALL` or a version script with `local: *`), or put libgcc_s first.
//!
//! ## References
//! Itanium C++ ABI: Exception Handling; glibc, elf/dl-lookup.c (the scope of a dependency is that of the object which was
//! opened).

use abiaudit_detect::{CxxClass, LibCxxLinkage, stem};
use abiaudit_elf::Name;
use abiaudit_process::Collision;

use crate::audit::{Audit, AuditObject};
use crate::finding::{Evidence, Severity, Sink};
use crate::runtimes;
use crate::together::Meeting;

super::rule!("ABI205", "two-cxx-abis", Warning, "abi205_two_cxx_abis.rs");

/// What libc++abi and libsupc++ both define.
const COMMON: [&str; 5] =
    ["__cxa_throw", "__cxa_begin_catch", "_ZTISt9exception", "_ZTVSt9exception", "_Znwm"];

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let loaded = runtimes::loaded_by_others(audit);
    for (object, entry) in runtimes::shared(audit) {
        exported(entry, loaded.contains(&object), sink);
        unwinder_first(entry, sink);
    }
    for meeting in &audit.beside.meetings {
        mixed(meeting, sink);
    }
}

/// In a simulated process the one runtime serves what is built for the other.
fn mixed(meeting: &Meeting, sink: &mut Sink) {
    let Collision::CxxAbis { user, provider, symbols, user_is_gnu } = &meeting.collision else { return };
    let (severity, harm) = if *user_is_gnu {
        (Severity::Error, "exceptions are lost or crash")
    } else {
        (Severity::Warning, "an exception that crosses is lost or crashes")
    };
    let message = format!(
        "{} serves {} of the C++ runtime to {}, which is built for another: {harm}, {}",
        meeting.name(*provider),
        super::count(symbols.len(), "name"),
        meeting.name(*user),
        meeting.when
    );
    sink.member(&meeting.member, message)
        .severity(severity)
        .help(meeting.help("hide the C++ runtime (-Wl,--exclude-libs,ALL), or build both with one"))
        .evidence(symbols.iter().map(Evidence::symbol))
        .evidence(meeting.evidence(&[(*provider, "serves"), (*user, "is served")]));
}

fn exported(entry: &AuditObject<'_>, loaded: bool, sink: &mut Sink) {
    let CxxClass::LibCxx { linkage, .. } = &entry.carries.cxx.class else { return };
    match linkage {
        LibCxxLinkage::Static => {}
        LibCxxLinkage::Library if loaded => {}
        LibCxxLinkage::Library | LibCxxLinkage::Dynamic => return,
    }
    let symbols = &entry.object.symbols;
    let shown: Vec<&str> =
        COMMON.into_iter().filter(|name| !symbols.definitions(name.as_bytes()).is_empty()).collect();
    let Some(first) = shown.first() else { return };
    let message = format!(
        "exports {} of LLVM's C++ runtime ({first}) that libstdc++ has too: exceptions can be thrown by one and caught by the other",
        super::count(shown.len(), "name")
    );
    sink.member(&entry.member.name, message)
        .help("hide libc++ and libc++abi: -Wl,--exclude-libs,ALL or a version script with `local: *`; or build with libstdc++")
        .evidence(shown.iter().map(|name| Evidence::symbol(*name)));
}

fn unwinder_first(entry: &AuditObject<'_>, sink: &mut Sink) {
    let needed: Vec<String> = entry.object.dynamic.needed.iter().map(Name::to_text).collect();
    let position = |wanted: &[&str]| needed.iter().position(|name| wanted.contains(&stem(name)));
    let (Some(llvm), Some(gnu)) = (position(&["libunwind", "libc++", "libc++abi"]), position(&["libgcc_s"]))
    else {
        return;
    };
    if llvm > gnu {
        return;
    }
    let (Some(llvm), Some(gnu)) = (needed.get(llvm), needed.get(gnu)) else { return };
    let message = format!(
        "needs {llvm} before {gnu}: libgcc_s binds to the other's _Unwind_* and exceptions of any module crash"
    );
    sink.member(&entry.member.name, message)
        .help("put libgcc_s first, or build with libstdc++")
        .evidence([Evidence::default().with_library(llvm), Evidence::default().with_library(gnu)]);
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    const TAGS: &str = "cp312-cp312-linux_x86_64";

    fn module(needed: &[&str]) -> ElfWriter {
        let writer = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        needed.iter().fold(writer, ElfWriter::needed)
    }

    fn messages(wheel: &TestWheel) -> Vec<String> {
        findings("ABI205", wheel).into_iter().map(|finding| finding.message).collect()
    }

    fn of(writer: &ElfWriter) -> Vec<String> {
        messages(&TestWheel::new("p", "1", TAGS).elf("p/m.so", writer))
    }

    #[test]
    fn the_order_of_the_unwinders_counts() {
        let found = of(&module(&["libc++.so.1", "libunwind.so.1", "libgcc_s.so.1", "libc.so.6"]));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("needs libc++.so.1 before libgcc_s.so.1"), "{found:?}");
        assert!(of(&module(&["libgcc_s.so.1", "libunwind.so.1"])).is_empty());
        assert!(of(&module(&["libunwind.so.1", "libc.so.6"])).is_empty());
        assert!(of(&module(&["libstdc++.so.6", "libgcc_s.so.1"])).is_empty());
    }

    #[test]
    fn a_vendored_libcxx_that_is_loaded() {
        let library = |name: &str| {
            ElfWriter::new(Arch::X86_64)
                .soname("libc++-1a2b3c4d.so.1")
                .define("_ZNSt3__15mutex4lockEv")
                .define(name)
        };
        let wheel = |needed: &str, symbol: &str| {
            TestWheel::new("p", "1", TAGS)
                .elf("p/m.so", &module(&[needed]).rpath("$ORIGIN"))
                .elf("p/libc++-1a2b3c4d.so.1", &library(symbol))
        };
        let vendored = "libc++-1a2b3c4d.so.1";
        assert_eq!(messages(&wheel(vendored, "__cxa_throw")).len(), 1);
        assert!(
            messages(&wheel(vendored, "_ZNSt3__15mutex6unlockEv")).is_empty(),
            "its own names collide with nobody"
        );
        assert!(messages(&wheel("libc.so.6", "__cxa_throw")).is_empty(), "nobody loads it");
    }

    /// Trap (g): `__cxa_*` alone does not make an object LLVM's, nor GNU's.
    #[test]
    fn silent_about_names_alone() {
        assert!(of(&module(&["libstdc++.so.6"]).define("__cxa_throw").define("_ZTISt9exception")).is_empty());
    }
}
