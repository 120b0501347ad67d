//! A whole libstdc++ is linked in and exported.
//!
//! ## What it does
//! Reports shared objects that hold a whole libstdc++ (`-static-libstdc++`) and export it: the ids of locale facets as
//! `STB_GNU_UNIQUE`, or at least forty functions that every libstdc++ has. With glibc this is an error, with musl a
//! warning, since musl gives `STB_GNU_UNIQUE` no meaning; it is a warning too where the ids are exported as ordinary or
//! weak symbols. A copy that shows nothing is the business of ABI206, parts of a split toolchain are that of ABI207.
//!
//! ## Why is this bad?
//! glibc has one copy of a unique symbol for the whole process, even under `RTLD_LOCAL`, but the table that the facet
//! ids index is an ordinary symbol, of which each copy has its own. The object that is loaded second looks up facets in a
//! table that the first has numbered: streams print nothing or fail, or the process ends in
//! `std::codecvt<...>::do_unshift` below `std::ostream::_M_insert`. The other copy need not be in this wheel: any wheel
//! that uses the system's libstdc++.so.6 will do. `-fvisibility=hidden`, `-fno-gnu-unique`, `-Bsymbolic` and
//! `--gc-sections` do not help: the symbols come from the archive.
//!
//! ## Example
//! `g++ -shared -static-libstdc++ module.cpp`, imported before or after any module built without the flag.
//!
//! ## How to mend it
//! Link libstdc++ dynamically. Where it must be static, hide it: `-Wl,--exclude-libs,ALL`, or a version script
//! `{ global: PyInit_*; local: *; };`. Where it cannot be linked again, `abiaudit repair --mend libstdcxx` shares or hides the
//! copy in the finished file, if that can be proved to work.
//!
//! ## References
//! glibc, elf/dl-lookup.c (`do_lookup_unique`); gABI, symbol binding, and GNU's `STB_GNU_UNIQUE`; duckdb #7921, #7909;
//! pytorch #109923; crosstool-ng #2478.

use abiaudit_detect::{CxxClass, Exposure};
use abiaudit_policy::Libc;

use crate::audit::{Audit, AuditObject};
use crate::finding::{Evidence, Severity, Sink};
use crate::runtimes;

super::rule!("ABI201", "exported-cxx-runtime", Error, "abi201_exported_cxx_runtime.rs");

/// What hides a runtime that was linked in.
pub(super) const HIDE: &str = "link libstdc++ dynamically, or hide it: -Wl,--exclude-libs,ALL or a version script with `local: *`; in the finished \
     file: abiaudit repair --mend libstdcxx";

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for (_, entry) in runtimes::shared(audit) {
        let cxx = &entry.carries.cxx;
        if !holds_all(&cxx.class) || cxx.exposure != Exposure::Exported {
            continue;
        }
        let ids = cxx.unique_facet_ids.len();
        let base = cxx.exported.iter().filter(|definition| definition.base).count();
        let libc = runtimes::libc_of(audit, entry);
        let breaks = libc == Libc::Glibc && (ids > 0 || !exports_facet_ids(entry));
        let what = if ids > 0 {
            format!("{} of locale facets of binding UNIQUE", super::count(ids, "id"))
        } else {
            format!("{} that every libstdc++ has", super::count(base, "symbol"))
        };
        let harm = match (breaks, libc) {
            (true, _) if ids > 0 => "streams and locales break next to any other libstdc++ in the process",
            (true, _) => "next to another libstdc++, objects mix the locale facets of the two",
            (false, Libc::Musl) => "with musl, other objects bind to this copy where it comes first",
            (false, Libc::Glibc) => "other objects bind to this copy where it comes first",
        };
        let message = format!("exports the libstdc++ that is linked into it ({what}): {harm}");
        let ids = cxx.unique_facet_ids.iter().take(3);
        let ids = ids.map(|id| Evidence::symbol(id).with_note("one for the process, whoever is loaded"));
        let base = cxx.exported.iter().filter(|definition| definition.base).take(3);
        let base = base.map(|d| Evidence::symbol(&d.name).with_version(d.node).with_note("exported"));
        sink.member(&entry.member.name, message)
            .severity(if breaks { Severity::Error } else { Severity::Warning })
            .help(HIDE)
            .evidence(ids.chain(base));
    }
}

fn holds_all(class: &CxxClass) -> bool {
    matches!(class, CxxClass::Full | CxxClass::FullAndNeeded)
}

/// `std::num_put<char>::id` is exported with whatever binding. If it is not, and the rest is, another object that binds to
/// this copy takes the ids from elsewhere: the same break by another way.
fn exports_facet_ids(entry: &AuditObject<'_>) -> bool {
    const NUM_PUT: &[u8] = b"_ZNSt7num_putIcSt19ostreambuf_iteratorIcSt11char_traitsIcEEE2idE";
    entry.object.symbols.definitions(NUM_PUT).iter().any(|symbol| symbol.is_exported())
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::finding::{Finding, Severity};
    use crate::testing::{Compiler, findings};

    const TAGS: &str = "cp312-cp312-linux_x86_64";

    fn found(module: &[u8]) -> Vec<Finding> {
        findings("ABI201", &TestWheel::new("p", "1", TAGS).file("p/m.so", module))
    }

    #[test]
    fn a_static_libstdcxx_is_exported_unless_it_is_hidden() {
        let Some(compiler) = Compiler::new() else { return };
        let all = found(&compiler.module(&["-static-libstdc++"]));
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].severity, all[0].member.as_deref()), (Severity::Error, Some("p/m.so")));
        assert!(all[0].message.contains("binding UNIQUE"), "{}", all[0].message);
        assert!(all[0].evidence[0].symbol.as_ref().unwrap().ends_with("2idE"));
        for flags in [
            &["-fvisibility=hidden", "-fvisibility-inlines-hidden"][..],
            &["-fno-gnu-unique"],
            &["-Wl,-Bsymbolic"],
        ] {
            let all = found(&compiler.module(&[&["-static-libstdc++"], flags].concat()));
            assert_eq!(all.len(), 1, "{flags:?} hides nothing");
        }
    }

    #[test]
    fn silent_about_hidden_and_dynamic_ones() {
        let Some(compiler) = Compiler::new() else { return };
        let script = compiler.version_script("{ global: PyInit_*; local: *; };");
        for flags in
            [&[][..], &["-static-libstdc++", "-Wl,--exclude-libs,ALL"], &["-static-libstdc++", &script]]
        {
            let all = found(&compiler.module(flags));
            assert!(all.is_empty(), "{flags:?}: {all:?}");
        }
    }

    /// Trap (a): what the headers define is weak, and thousands of it are exported.
    #[test]
    fn silent_about_templates_of_the_headers() {
        let Some(compiler) = Compiler::new() else { return };
        let more = "#include <map>\n#include <regex>\n#include <string>\n\
            std::regex words(const std::map<std::string, int> &m) { return std::regex(m.begin()->first); }\n";
        assert!(found(&compiler.module_with(more, &["-O0"])).is_empty());
    }

    #[test]
    fn musl_has_no_unique_symbols() {
        let Some(compiler) = Compiler::new() else { return };
        // What is needed tells the C library; a module that needs nothing takes that of the tag.
        let flags = ["-nodefaultlibs", "-Wl,-Bstatic", "-lstdc++", "-Wl,-Bdynamic"];
        let module = compiler.module(&flags);
        let wheel = TestWheel::new("p", "1", "cp312-cp312-musllinux_1_2_x86_64").file("p/m.so", module);
        let all = findings("ABI201", &wheel);
        assert_eq!(all.iter().map(|f| f.severity).collect::<Vec<_>>(), [Severity::Warning]);
    }
}
