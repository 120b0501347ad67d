//! The input needs libraries that no tag promises and that are not in it.
//!
//! ## What it does
//! For an input without a promise (a `linux_*` tag, a bare ELF file, a directory without tags), lists the NEEDED libraries
//! that are neither in it nor on the systems of the newest tag, and says of each what would bring it.
//!
//! ## Why is this bad?
//! It is not, as long as the input stays where it was built: a `linux_*` wheel promises nothing, and a build before its
//! repair has libraries outside by design; so this is information. Elsewhere it ends with `ImportError: libfoo.so.1:
//! cannot open shared object file`. With a `manylinux` or `musllinux` tag the same is an error (ABI103, ABI408).
//!
//! ## Example
//! The wheel that `pip wheel` makes from an extension which links libjpeg of the build image.
//!
//! ## How to mend it
//! Let a repair copy the libraries into the wheel, link them statically, or require the distributions that have them.
//!
//! ## References
//! PEP 513 and PEP 600 (external libraries); PEP 425 (`linux_*`).

use abiaudit_policy::Provider;

use crate::audit::Audit;
use crate::external::{External, Origin};
use crate::finding::{Evidence, Severity, Sink};
use crate::rules::and_more;

super::rule!("ABI411", "library-from-outside", Info, "abi411_library_from_outside.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    if audit.claims.iter().any(|claim| claim.target.is_some()) {
        return;
    }
    let outside: Vec<&External> =
        audit.externals.iter().filter(|external| !external.origin.is_provided()).collect();
    let Some(first) = outside.first() else { return };
    let message = format!(
        "needs {} that no tag promises and that {} not in it: {}",
        if outside.len() == 1 { "a library".to_owned() } else { format!("{} libraries", outside.len()) },
        if outside.len() == 1 { "is" } else { "are" },
        and_more(&first.soname, outside.len() - 1)
    );
    let grafted = outside.iter().filter(|external| is_grafted(&external.origin)).count();
    let help = match grafted {
        0 => "before this gets a manylinux or musllinux tag, do what the lines above say".to_owned(),
        n => format!(
            "before this gets a manylinux or musllinux tag, a repair must copy {n} of them into the wheel"
        ),
    };
    sink.whole(message)
        .severity(Severity::Info)
        .help(help)
        .evidence(outside.into_iter().map(|external| evidence(audit, external)));
}

/// Who has to bring it.
fn evidence(audit: &Audit<'_>, external: &External) -> Evidence {
    let what = match &external.origin {
        Origin::Undeclared(providers) => {
            let mut names: Vec<&str> = providers.iter().filter_map(|p| p.distribution.as_deref()).collect();
            names.dedup();
            format!("comes with {}: require it, or graft the library", names.join(" or "))
        }
        Origin::Host(Provider { note, .. }) => format!("belongs to the host: {note}"),
        Origin::LibPython => "is the interpreter: do not link it".to_owned(),
        _ => "must be grafted, or linked statically".to_owned(),
    };
    let users: Vec<&str> = external.needed_by.iter().map(|&object| audit.member_name(object)).collect();
    let users = users.split_first().map(|(first, rest)| and_more(first, rest.len())).unwrap_or_default();
    Evidence {
        library: Some(external.soname.clone()),
        ..Evidence::note(format!("{what}; needed by {users}"))
    }
}

fn is_grafted(origin: &Origin) -> bool {
    matches!(origin, Origin::Unknown | Origin::Undeclared(_))
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter};

    use crate::finding::Severity;
    use crate::testing::{findings, wheel_for};

    fn module() -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libc.so.6").needed("libm.so.6")
    }

    #[test]
    fn a_build_is_told_what_its_repair_must_graft() {
        let elf = module().needed("libjpeg.so.62").needed("libudev.so.1").needed("libcudart.so.12");
        let found = findings("ABI411", &wheel_for("linux_x86_64", &elf));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Info));
        assert_eq!(
            found[0].message,
            "needs 3 libraries that no tag promises and that are not in it: libcudart.so.12 (and 2 more)"
        );
        let notes: Vec<(&str, &str)> = found[0]
            .evidence
            .iter()
            .map(|e| (e.library.as_deref().unwrap(), e.note.as_deref().unwrap()))
            .collect();
        assert!(notes[0].1.starts_with("comes with nvidia-cuda-runtime-cu12"), "{notes:?}");
        assert_eq!(notes[1], ("libjpeg.so.62", "must be grafted, or linked statically; needed by p/m.so"));
        assert!(notes[2].1.starts_with("belongs to the host"), "{notes:?}");
        assert!(found[0].help.as_deref().unwrap().contains("copy 2 of them"));
    }

    #[test]
    fn silent_about_what_is_in_it_what_systems_have_and_what_is_required() {
        let own = ElfWriter::new(Arch::X86_64).soname("libown.so").define("f");
        let elf = module().needed("libown.so").runpath("$ORIGIN");
        assert!(findings("ABI411", &wheel_for("linux_x86_64", &elf).elf("p/libown.so", &own)).is_empty());
        let torch = wheel_for("linux_x86_64", &module().needed("libc10.so")).requires("torch");
        assert!(findings("ABI411", &torch).is_empty());
    }

    #[test]
    fn a_promise_makes_it_an_error_of_another_rule() {
        let wheel = wheel_for("manylinux_2_17_x86_64", &module().needed("libjpeg.so.62"));
        let rules: Vec<&str> = findings("ABI", &wheel).iter().map(|f| f.rule.id).collect();
        assert!(rules.contains(&"ABI103") && !rules.contains(&"ABI411"), "{rules:?}");
    }
}
