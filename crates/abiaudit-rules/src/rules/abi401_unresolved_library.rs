//! A library is in the wheel, but the loader will not find it.
//!
//! ## What it does
//! Follows the loader's own rules (`DT_RPATH` of the whole chain of loaders, `DT_RUNPATH` only of the object itself)
//! for each NEEDED library, and reports one that has a file in the wheel and no path that leads there, where no other
//! part of the wheel could have loaded it first (that is ABI406) or a program needs it, which has nobody to help it.
//!
//! ## Why is this bad?
//! `ImportError: libb.so: cannot open shared object file: No such file or directory`, although the file was installed.
//!
//! ## Example
//! An extension has `DT_RUNPATH $ORIGIN/libs` and needs `liba.so`; that one needs `libb.so` beside it and has no path of
//! its own. With `DT_RPATH` it would be found: that is inherited.
//!
//! ## How to mend it
//! Give the object that needs it `DT_RUNPATH $ORIGIN` (or the way to the directory), or link with
//! `-Wl,--disable-new-dtags`.
//!
//! ## References
//! ld.so(8); glibc elf/dl-load.c; auditwheel #531, #562 and its RUNPATH handling.

use abiaudit_loader::search::{Need, Outcome};

use crate::audit::Audit;
use crate::finding::{Evidence, Sink};
use crate::origin;

super::rule!("ABI401", "unresolved-library", Error, "abi401_unresolved_library.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for need in audit.resolution.needs.iter().filter(|n| audit.objects.get(n.from).is_some_and(|o| o.counts))
    {
        let Outcome::Unreachable { present } = &need.outcome else { continue };
        if audit.may_be_preloaded(need) {
            continue;
        }
        let message = match need.blocked_by {
            Some(blocking) => {
                format!("needs {}, but {} cannot be loaded", need.name, audit.member_name(blocking))
            }
            None => format!("needs {}, which is in the wheel where the loader does not look", need.name),
        };
        let mut evidence: Vec<Evidence> =
            present.iter().map(|&p| Evidence::member(audit.member_name(p)).with_note("is here")).collect();
        evidence.push(Evidence::note(paths(audit, need)));
        sink.member(audit.member_name(need.from), message)
            .help(help(audit, need, present))
            .evidence(evidence);
    }
}

/// The entry that leads to the library. One that cannot be loaded is not mended by a path.
fn help(audit: &Audit<'_>, need: &Need, present: &[usize]) -> String {
    if need.blocked_by.is_some() {
        return "mend what keeps that one from being loaded".to_owned();
    }
    let mut entries: Vec<String> = present.iter().filter_map(|&p| entry(audit, need.from, p)).collect();
    entries.sort_by_key(|entry| (entry.len(), entry.clone()));
    entries.dedup();
    format!(
        "add {} to its DT_RUNPATH (patchelf --set-rpath), or let its users have DT_RPATH, which is inherited",
        entries.join(" or ")
    )
}

fn entry(audit: &Audit<'_>, from: usize, to: usize) -> Option<String> {
    let installed = |object: usize| audit.objects.get(object).map(|o| o.member.installed.as_str());
    Some(origin::entry(installed(from)?, origin::parent(installed(to)?)))
}

fn paths(audit: &Audit<'_>, need: &Need) -> String {
    let entries = audit.resolution.search_paths(need.from);
    let own = entries.iter().map(|e| e.raw.as_str()).collect::<Vec<_>>().join(":");
    let chain: Vec<&str> = need.chain.iter().map(|&o| audit.member_name(o)).collect();
    let own =
        if own.is_empty() { "no search path of its own".to_owned() } else { format!("its path is {own:?}") };
    if chain.len() > 1 { format!("{own}; loaded by {}", chain.join(" -> ")) } else { own }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    fn wheel(ext: &ElfWriter) -> TestWheel {
        let a = ElfWriter::new(Arch::X86_64).soname("liba.so").needed("libb.so");
        TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &ext.clone().needed("liba.so"))
            .elf("p/libs/liba.so", &a)
            .elf("p/libs/libb.so", &ElfWriter::new(Arch::X86_64).soname("libb.so"))
    }

    #[test]
    fn runpath_is_not_handed_down() {
        let found = findings("ABI4", &wheel(&module().runpath("$ORIGIN/libs")));
        let rules: Vec<&str> = found.iter().map(|f| f.rule.id).collect();
        assert_eq!(rules, ["ABI401"]);
        assert_eq!(found[0].member.as_deref(), Some("p/libs/liba.so"));
        assert!(found[0].evidence.iter().any(|e| e.member.as_deref() == Some("p/libs/libb.so")));
        assert!(found[0].evidence.iter().any(|e| {
            e.note.as_deref() == Some("no search path of its own; loaded by p/m.so -> p/libs/liba.so")
        }));
        let help = found[0].help.as_deref().unwrap();
        assert!(help.starts_with("add $ORIGIN to its DT_RUNPATH"), "{help}");
    }

    #[test]
    fn silent_as_rpath_is_handed_down() {
        assert!(findings("ABI4", &wheel(&module().rpath("$ORIGIN/libs"))).is_empty());
    }

    #[test]
    fn a_program_has_nobody_to_load_it_first() {
        let program = ElfWriter::new(Arch::X86_64)
            .object_type(2)
            .interpreter("/lib64/ld-linux-x86-64.so.2")
            .needed("libc.so.6")
            .needed("libb.so");
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/bin/tool", &program)
            .elf("p/lib/libb.so", &ElfWriter::new(Arch::X86_64).soname("libb.so"));
        let found = findings("ABI40", &wheel);
        assert_eq!(found.iter().map(|f| f.rule.id).collect::<Vec<_>>(), ["ABI401"]);
        let help = found[0].help.as_deref().unwrap();
        assert!(help.starts_with("add $ORIGIN/../lib to its DT_RUNPATH"), "{help}");
    }
}
