//! An ELF file is damaged.
//!
//! ## What it does
//! Names members that begin like ELF and cannot be read, with the reason (error), and members in which something
//! contradicts the format while the rest still stands: an error if it is something that the loader goes by, or if the
//! section table cannot be read, since the file was cut or edited badly; a warning if only tools would notice. Notes
//! that cannot be read are only noted: old versions of `patchelf` moved them and left their segment behind.
//!
//! ## Why is this bad?
//! The loader refuses the file (`file too short`, `invalid ELF header`), or maps something else than was meant and
//! crashes. Tools that read sections (`strip`, `patchelf`, `auditwheel`) fail on it or damage it further.
//!
//! ## Example
//! A library of which a build step copied only the beginning.
//!
//! ## How to mend it
//! Build or copy the file again; compare its size with the original.
//!
//! ## References
//! gABI chapters 4 and 5; glibc elf/dl-load.c (`open_verify`).

use abiaudit_elf::{Object, Problem};
use abiaudit_scan::Content;

use crate::audit::Audit;
use crate::finding::{Evidence, Severity, Sink};
use crate::rules::{and_more, count};

super::rule!("ABI508", "malformed-elf", Error, "abi508_malformed_elf.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let mut without_notes: Vec<&str> = Vec::new();
    for member in &audit.subject.members {
        match &member.content {
            Content::BrokenElf(error) => {
                sink.member(&member.name, format!("not readable as ELF: {error}"))
                    .help("build or copy the file again");
            }
            Content::Object(object) => {
                let (notes, others): (Vec<&Problem>, Vec<&Problem>) =
                    object.problems.iter().partition(|problem| problem.what == "PT_NOTE");
                without_notes.extend((!notes.is_empty()).then_some(member.name.as_str()));
                report(&member.name, object, &others, sink);
            }
            _ => {}
        }
    }
    if !without_notes.is_empty() {
        let files = count(without_notes.len(), "file");
        let message =
            format!("the notes of {files} cannot be read: build-id and processor level are not known");
        sink.whole(message)
            .severity(Severity::Info)
            .evidence(without_notes.into_iter().map(Evidence::member));
    }
}

fn report(member: &str, object: &Object, problems: &[&Problem], sink: &mut Sink) {
    let Some((first, more)) = problems.split_first() else { return };
    sink.member(member, and_more(&first.to_string(), more.len()))
        .severity(problems.iter().map(|problem| severity(problem, object)).max().unwrap_or(Severity::Warning))
        .evidence(problems.iter().map(|problem| Evidence::note(problem.to_string())));
}

/// No linker makes segments that overlap, tables whose counts are wrong, or a section table that cannot be read.
fn severity(problem: &Problem, object: &Object) -> Severity {
    match problem.what {
        // What is not read here, and what a loader does not look at.
        "machine" | "DT_ANDROID_REL" | "DT_ANDROID_RELA" | ".symtab" => Severity::Warning,
        // The table could be read, and says something else than the loader finds: stripped badly, or debug
        // information that kept its bytes.
        "section headers" if !object.sections.headers.is_empty() => Severity::Warning,
        _ => Severity::Error,
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::findings;

    fn wheel(content: &[u8]) -> TestWheel {
        TestWheel::new("p", "1", "cp312-cp312-manylinux_2_17_x86_64").file("p/m.so", content)
    }

    #[test]
    fn a_cut_file_is_an_error_that_names_it() {
        let built = ElfWriter::new(Arch::X86_64).define("PyInit_m").build();
        let sections = built.part("section headers").start;
        for length in [4, 10, 40, 100, sections + 10] {
            let found = findings("ABI508", &wheel(&built.bytes()[..length]));
            assert_eq!(found.len(), 1, "{length}");
            assert_eq!(found[0].severity, Severity::Error, "{length}");
            assert_eq!(found[0].member.as_deref(), Some("p/m.so"));
        }
    }

    #[test]
    fn a_count_that_the_table_contradicts_is_an_error() {
        const DT_VERNEEDNUM: i64 = 0x6fff_ffff;
        let elf = ElfWriter::new(Arch::X86_64).needed("libc.so.6");
        let mut built = elf.undefined_versioned("f", "libc.so.6", "GLIBC_2.17").build();
        let entry = built.dynamic_entry(DT_VERNEEDNUM);
        built.put_word(entry, 0xff_ffff);
        assert_eq!(findings("ABI508", &wheel(built.bytes()))[0].severity, Severity::Error);
    }

    #[test]
    fn broken_notes_are_noted() {
        let mut built = ElfWriter::new(Arch::X86_64).define("PyInit_m").build_id(&[1; 20]).build();
        let note = built.part(".note");
        built.bytes_mut()[note].fill(b'Z');
        let found = findings("ABI508", &wheel(built.bytes()));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].severity, found[0].evidence.len()), (Severity::Info, 1));
    }

    #[test]
    fn whole_files_and_files_without_sections_are_fine() {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit_m");
        assert!(findings("ABI508", &wheel(elf.build().bytes())).is_empty());
        assert!(findings("ABI508", &wheel(elf.sections(false).build().bytes())).is_empty());
    }
}
