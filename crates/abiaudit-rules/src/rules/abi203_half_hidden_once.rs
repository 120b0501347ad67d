//! One half of `std::call_once` is exported.
//!
//! ## What it does
//! Reports shared objects that export `__once_proxy` and not `std::__once_call`, or the reverse. An error with glibc, a
//! warning with musl, on which nobody measured it.
//!
//! ## Why is this bad?
//! `std::call_once` puts the function to call into the thread-local `std::__once_call` and has `pthread_once` call
//! `__once_proxy`, which reads it there. If the two come from different copies of libstdc++, the proxy reads a variable
//! that nobody has set and calls address 0. A version script that hides `extern "C++" { std::*; }` does that: the
//! proxy has C linkage and stays. It bites when another libstdc++ comes into the global scope: with `RTLD_GLOBAL`,
//! `LD_PRELOAD`, or a program that is linked with it. `std::thread`, `std::async` and `std::future` use it too.
//!
//! ## Example
//! A backtrace that ends in `__pthread_once_slow (init_routine=<__once_proxy>)` and `0x0000000000000000 in ?? ()`.
//!
//! ## How to mend it
//! Hide both, with `-Wl,--exclude-libs,ALL` or a version script `{ global: PyInit_*; local: *; };`, or link libstdc++
//! dynamically.
//!
//! ## References
//! libstdc++, src/c++11/mutex.cc (`__once_proxy`, `__once_call`).

use abiaudit_detect::OncePair;
use abiaudit_policy::Libc;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::runtimes;

super::rule!("ABI203", "half-hidden-once", Error, "abi203_half_hidden_once.rs");

const PROXY: &str = "__once_proxy";
const CALL: &str = "_ZSt11__once_call";

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in runtimes::shared(audit) {
        let (shown, hidden) = match entry.carries.cxx.once {
            OncePair::ProxyOnly => (PROXY, CALL),
            OncePair::CallOnly => (CALL, PROXY),
            OncePair::Neither | OncePair::Both => continue,
        };
        let finding = sink.member(
            &entry.member.name,
            format!("exports {shown} and not {hidden}: next to another libstdc++ in the global scope std::call_once calls address 0"),
        );
        finding.help(super::abi201_exported_cxx_runtime::HIDE).evidence([
            Evidence::symbol(shown).with_note("exported: another copy's may be taken for it"),
            Evidence::symbol(hidden).with_note("not exported: this copy's is used"),
        ]);
        if runtimes::libc_of(audit, entry) == Libc::Musl {
            finding.severity(Severity::Warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{Compiler, findings};

    const TAGS: &str = "cp312-cp312-linux_x86_64";

    #[test]
    fn a_version_script_that_hides_cxx_names_alone_tears_it() {
        let Some(compiler) = Compiler::new() else { return };
        let script = compiler.version_script("{ global: *; local: extern \"C++\" { std::*; }; };");
        let module = compiler.module(&["-static-libstdc++", &script]);
        let all = findings("ABI2", &TestWheel::new("p", "1", TAGS).file("p/m.so", module));
        let rules: Vec<&str> = all.iter().map(|finding| finding.rule.id).collect();
        assert!(rules.contains(&"ABI203") && !rules.contains(&"ABI201"), "{rules:?}");
        assert!(
            all[0].message.starts_with("exports __once_proxy and not _ZSt11__once_call"),
            "{}",
            all[0].message
        );
    }

    #[test]
    fn either_half_counts_and_both_or_neither_do_not() {
        let count = |symbols: &[&str]| {
            let writer = ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libc.so.6");
            let writer = symbols.iter().fold(writer, ElfWriter::define);
            findings("ABI203", &TestWheel::new("p", "1", TAGS).elf("p/m.so", &writer)).len()
        };
        assert_eq!(count(&["__once_proxy"]), 1);
        assert_eq!(count(&["_ZSt11__once_call"]), 1);
        assert_eq!(count(&["__once_proxy", "_ZSt11__once_call"]), 0);
        assert_eq!(count(&[]), 0);
    }
}
