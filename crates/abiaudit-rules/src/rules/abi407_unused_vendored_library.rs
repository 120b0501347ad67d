//! A vendored library that nothing in the wheel needs.
//!
//! ## What it does
//! Looks at libraries that a repair tool put there (`NAME-1a2b3c4d.so.N` in a `*.libs` directory) and at copies of
//! compiler runtimes (libgfortran, libquadmath, libgomp, libstdc++, libgcc_s, libopenblas), which nobody opens by name
//! for their own sake. Reports those that no `DT_NEEDED` of the wheel asks for, by soname or file name, and no
//! `.note.dlopen` names.
//!
//! ## Why is this bad?
//! Every user downloads it, it wants updates, and what *it* needs may be missing.
//!
//! ## Example
//! torch 2.15.0 has `torch/lib/libgfortran.so.5` that no file needs, and which itself needs a `libquadmath.so.0` that is
//! not there.
//!
//! ## How to mend it
//! Leave it out. If the package opens it at run time, say so in a `.note.dlopen`, or ignore this with a reason.
//!
//! ## References
//! UAPI group, "ELF dlopen metadata"; auditwheel #197.

use std::collections::BTreeSet;

use abiaudit_elf::Name;

use crate::audit::{Audit, AuditObject, Role};
use crate::finding::{Evidence, Sink};

super::rule!("ABI407", "unused-vendored-library", Warning, "abi407_unused_vendored_library.rs");

const RUNTIMES: [&str; 8] = [
    "libgfortran",
    "libquadmath",
    "libgomp",
    "libstdc++",
    "libgcc_s",
    "libopenblas",
    "libopenblasp",
    "libscipy_openblas",
];

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let mut asked: BTreeSet<String> = BTreeSet::new();
    for entry in &audit.objects {
        for name in &entry.object.dynamic.needed {
            let text = name.to_text();
            asked.insert(text.rsplit('/').next().unwrap_or_default().to_owned());
        }
    }
    let notes: Vec<&str> =
        audit.objects.iter().flat_map(|o| &o.object.notes.dlopen).map(String::as_str).collect();
    for (_, entry) in audit.counted().filter(|(_, o)| is_vendored(o)) {
        let soname = entry.object.dynamic.soname.as_ref().map(Name::to_text);
        let names: Vec<&str> = soname.as_deref().into_iter().chain([entry.member.base_name()]).collect();
        let wanted = names.iter().any(|n| asked.contains(*n) || notes.iter().any(|note| note.contains(n)));
        if wanted || is_the_point(audit, entry) {
            continue;
        }
        let message = format!("nothing in the wheel needs it ({} bytes)", entry.member.size);
        sink.member(&entry.member.name, message)
            .help("leave it out")
            .evidence(soname.iter().map(|s| Evidence::default().with_library(s).with_note("its soname")));
    }
}

/// A wheel whose only business is the library (`scipy-openblas32`, `intel-openmp`): nothing else is in it.
fn is_the_point(audit: &Audit<'_>, entry: &AuditObject<'_>) -> bool {
    let extensions = audit.counted().any(|(_, o)| matches!(o.role, Role::Extension(_)));
    !extensions && !is_hashed(entry)
}

fn is_vendored(entry: &AuditObject<'_>) -> bool {
    let base = entry.member.base_name();
    let stem = base.split(".so").next().unwrap_or(base);
    let stem = if is_hashed(entry) { stem.rsplit_once('-').map_or(stem, |(name, _)| name) } else { stem };
    entry.role == Role::Library && (is_hashed(entry) || RUNTIMES.contains(&stem))
}

/// As auditwheel names what it copies: `libfoo-1a2b3c4d.so.1` below `*.libs/`.
fn is_hashed(entry: &AuditObject<'_>) -> bool {
    let Some((directory, base)) = entry.member.name.rsplit_once('/') else { return false };
    let hash = base.split('.').next().and_then(|stem| stem.rsplit_once('-')).map(|(_, hash)| hash);
    let is_hex = |h: &str| h.len() == 8 && h.bytes().all(|b| b.is_ascii_hexdigit());
    directory.ends_with(".libs") && hash.is_some_and(is_hex)
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    fn library(soname: &str) -> ElfWriter {
        ElfWriter::new(Arch::X86_64).soname(soname)
    }

    fn members(wheel: &TestWheel) -> Vec<String> {
        findings("ABI407", wheel).into_iter().filter_map(|f| f.member).collect()
    }

    #[test]
    fn grafted_and_runtime_libraries_that_nobody_needs() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module())
            .elf("p.libs/libpng16-0a1b2c3d.so.16", &library("libpng16-0a1b2c3d.so.16"))
            .elf("p/lib/libgfortran.so.5", &library("libgfortran.so.5"));
        assert_eq!(members(&wheel), ["p.libs/libpng16-0a1b2c3d.so.16", "p/lib/libgfortran.so.5"]);
    }

    #[test]
    fn silent_about_what_is_needed_and_what_may_be_opened_by_name() {
        let wheel = TestWheel::new("p", "1", TAGS)
            .elf("p/m.so", &module().needed("libpng16-0a1b2c3d.so.16").rpath("$ORIGIN/../p.libs"))
            .elf(
                "p.libs/libpng16-0a1b2c3d.so.16",
                &library("libpng16-0a1b2c3d.so.16").needed("libgfortran.so.5"),
            )
            .elf("p.libs/libgfortran.so.5", &library("libgfortran.so.5"))
            .elf("p/lib/libplugin.so", &library("libplugin.so"));
        assert!(members(&wheel).is_empty());
    }

    #[test]
    fn silent_where_the_library_is_the_point() {
        let wheel = TestWheel::new("openblas", "1", "py3-none-manylinux_2_17_x86_64")
            .elf("openblas/lib/libopenblas.so.0", &library("libopenblas.so.0"));
        assert!(members(&wheel).is_empty());
    }
}
