//! A library is needed that neither the wheel nor the target's systems have.
//!
//! ## What it does
//! For every library that is NEEDED and not in the wheel, asks the claimed tag, then the providers: a distribution
//! that `Requires-Dist` declares, or a device's driver. Reports what remains, with who needs it. Also what the project's
//! own policy wants in the wheel or nowhere. (A distribution that is known but not declared is ABI408's.)
//!
//! ## Why is this bad?
//! `ImportError: libodbc.so.2: cannot open shared object file: No such file or directory` on every machine that is not
//! the build machine.
//!
//! ## Example
//! lightgbm 4.x needs `libgomp.so.1`, which no manylinux policy promises and which minimal images lack.
//!
//! ## How to mend it
//! Copy it into the wheel (`auditwheel repair`), link it statically, or depend on a distribution that brings it. A host
//! library that talks to the user's system (`libOpenCL.so.1`, `libudev.so.1`) stays outside: open it at run time with
//! `dlopen` and tell the user when it is not there.
//!
//! ## References
//! PEP 600; auditwheel #368, #675.

use crate::audit::Audit;
use crate::blockers::{LibraryBlocker, LibraryReason};
use crate::external::Origin;
use crate::finding::{Evidence, Finding, Sink};

super::rule!("ABI103", "library-not-allowed", Error, "abi103_library_not_allowed.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    for claim in &verdict.claims {
        for blocker in &claim.blockers.libraries {
            let soname = &blocker.soname;
            match &blocker.reason {
                LibraryReason::Unreachable { .. } => {}
                LibraryReason::NotPromised => not_promised(audit, &claim.tag, blocker, sink),
                LibraryReason::MustBundle(reason) => {
                    let message = format!("{soname} must come with the wheel: {reason}");
                    let finding = sink.whole(message).help("copy it into the wheel (auditwheel repair)");
                    add_users(audit, blocker, finding);
                }
                LibraryReason::Denied(reason) => {
                    let finding = sink.whole(format!("{soname} must not be used: {reason}"));
                    add_users(audit, blocker, finding.help("build without it"));
                }
            }
        }
    }
}

fn not_promised(audit: &Audit<'_>, tag: &str, blocker: &LibraryBlocker, sink: &mut Sink) {
    let soname = &blocker.soname;
    let origin = audit.external(soname).map(|e| &e.origin);
    let (message, help) = match origin {
        // Other rules' business: ABI408 and the one about libpython.
        Some(Origin::Undeclared(_) | Origin::LibPython) => return,
        Some(Origin::Host(host)) => (
            format!("{soname} belongs to the host and {tag} does not promise it"),
            format!("{}; open it at run time (dlopen) instead of linking, or allow it in the configuration", host.note),
        ),
        _ => (
            format!("{soname} is not in the wheel and {tag} does not promise it"),
            "copy it into the wheel (auditwheel repair), link it statically, or depend on a distribution that has it and \
             declare that as a provider"
                .to_owned(),
        ),
    };
    add_users(audit, blocker, sink.whole(message).help(help));
}

fn add_users(audit: &Audit<'_>, blocker: &LibraryBlocker, finding: &mut Finding) {
    let user = |&object: &usize| Evidence::member(audit.member_name(object)).with_note("needs it");
    finding.evidence(blocker.needed_by.iter().map(user));
}

#[cfg(test)]
mod tests {
    use abiaudit_policy::{Action, LibraryRule, Overlay};
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{findings, findings_with, module, wheel};

    #[test]
    fn names_the_library_and_who_needs_it() {
        let found = findings("ABI103", &wheel(&module().needed("libgomp.so.1")));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.starts_with("libgomp.so.1 is not in the wheel"), "{}", found[0].message);
        assert_eq!(found[0].evidence[0].member.as_deref(), Some("p/m.so"));
    }

    #[test]
    fn each_of_many_libraries_is_told_by_its_own_origin() {
        let names: Vec<String> = (0..3000).map(|n| format!("lib{n}.so")).collect();
        let elf = names.iter().fold(module().needed("libudev.so.1"), ElfWriter::needed);
        let start = std::time::Instant::now();
        let found = findings("ABI103", &wheel(&elf));
        assert_eq!(found.len(), 3001);
        assert_eq!(found.iter().filter(|f| f.message.contains("belongs to the host")).count(), 1);
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }

    #[test]
    fn a_host_library_is_explained() {
        let found = findings("ABI103", &wheel(&module().needed("libudev.so.1")));
        assert!(found[0].message.contains("belongs to the host"), "{}", found[0].message);
        assert!(found[0].help.as_deref().unwrap().contains("dlopen"));
    }

    #[test]
    fn silent_about_promised_vendored_and_provided_libraries() {
        let own = ElfWriter::new(Arch::X86_64).soname("libown.so");
        let elf = module()
            .needed("libm.so.6")
            .needed("ld-linux-x86-64.so.2")
            .needed("libcuda.so.1")
            .needed("libc10.so")
            .needed("libown.so")
            .runpath("$ORIGIN");
        assert!(
            findings("ABI103", &wheel(&elf).elf("p/libown.so", &own).requires("torch==2.6.0")).is_empty()
        );
    }

    #[test]
    fn silent_under_a_tag_that_promises_nothing() {
        let wheel = TestWheel::new("p", "1", "cp312-cp312-linux_x86_64");
        assert!(findings("ABI103", &wheel.elf("p/m.so", &module().needed("libgomp.so.1"))).is_empty());
    }

    #[test]
    fn the_projects_own_policy_has_the_last_word() {
        let rule = |soname: &str, action, reason: &str| LibraryRule {
            soname: soname.to_owned(),
            action,
            reason: reason.to_owned(),
            targets: None,
        };
        let overlay = Overlay {
            libraries: vec![
                rule("libz.so.1", Action::Bundle, "one zlib for all"),
                rule("libssl.so.3", Action::Deny, "no OpenSSL here"),
                rule("libgomp.so.1", Action::Allow, "our image has it"),
            ],
            ..Overlay::default()
        };
        let elf = module().needed("libz.so.1").needed("libssl.so.3").needed("libgomp.so.1");
        let found = findings_with("ABI103", &wheel(&elf), |settings| {
            settings.policies = settings.policies.with_overlay(&overlay).unwrap();
        });
        let messages: Vec<&str> = found.iter().map(|f| f.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "libssl.so.3 must not be used: no OpenSSL here",
                "libz.so.1 must come with the wheel: one zlib for all"
            ]
        );
    }
}
