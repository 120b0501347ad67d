//! What other editors were reported to break (docs/cases.md): each test builds the smallest file that shows it, edits
//! it, and demands that it loads, before and after `strip`, and that no tool complains.

mod support;

use abiaudit_edit::{
    Edit, EditError, EditPlan, Options, Place, Refusal, SearchPathKind, SymbolName, Warning, edit,
};
use support::{Bench, SOURCE, count, has, program_headers, put, usual_plan};

const LOAD: u32 = 1;
const NOTE: u32 = 4;
const RELRO: u32 = 0x6474_e552;

/// A bench of the machine's own compiler, or the end of the test.
macro_rules! bench {
    () => {
        bench!("gcc")
    };
    ($compiler:literal) => {
        match Bench::new($compiler) {
            Some(bench) => bench,
            None => return,
        }
    };
}

fn apply(bytes: &[u8], edits: impl IntoIterator<Item = Edit>) -> Vec<u8> {
    edit(bytes, &EditPlan::new(edits), &Options::default()).expect("an edited file").bytes
}

fn needed(library: &str, place: Place) -> Edit {
    Edit::AddNeeded { library: library.into(), place }
}

/// An edit of a library as the linker makes it.
#[test]
fn patchelf_10_145_196_371_a_plain_library_survives_strip() {
    let bench = bench!();
    let library = bench.library(SOURCE, &["-Wl,-soname,libplain.so"]);
    let edited = bench.edit_and_judge(&library);
    assert!(edited.layout.growth() < 2500, "growth {}", edited.layout.growth());
}

/// Three edits in one call, or in three, leave no more segments than one, and no hole.
#[test]
fn patchelf_370_62_editing_again_does_not_grow_the_file() {
    let bench = bench!();
    let library = bench.library(SOURCE, &[]);
    let once = bench.edit_and_judge(&library).bytes;
    let mut many = library.clone();
    for edit in usual_plan().edits {
        many = apply(&many, [edit]);
        bench.survives(&many);
    }
    assert_eq!(count(&many, LOAD), count(&once, LOAD));
    assert!(many.len() <= once.len() + 128, "{} bytes in many steps, {} in one", many.len(), once.len());
    let longer = apply(&many, [Edit::SetSoname { soname: "libedited-with-a-still-longer-name.so.1".into() }]);
    assert!(longer.len() <= many.len() + 64);
    bench.survives(&longer);
}

#[test]
fn patchelf_244_strip_between_two_edits() {
    let bench = bench!();
    let library = bench.library(SOURCE, &[]);
    let edited = bench.edit_and_judge(&library).bytes;
    let Some(stripped) = bench.through("strip", &["--strip-unneeded"], &edited) else { return };
    let again = apply(&stripped, [needed("libpthread.so.0", Place::Last)]);
    bench.survives(&again);
}

/// Such files are published; `strip` makes them unloadable. Any edit heals them.
#[test]
fn auditwheel_716_an_empty_segment_is_healed() {
    let bench = bench!();
    let mut broken = bench.library(SOURCE, &["-Wl,--build-id"]);
    let end = program_headers(&broken).iter().filter(|h| h.1 == LOAD).map(|h| h.2[1] + h.2[4]).max();
    let note = program_headers(&broken).into_iter().find(|h| h.1 == NOTE).expect("a note").0;
    let offset = broken.len().next_multiple_of(0x1000);
    broken.resize(offset + 0x100, 0);
    let address = end.expect("segments").next_multiple_of(0x1000);
    let words = [offset as u64, address, address, 0x100, 0x100, 0x1000];
    put(&mut broken, note, &LOAD.to_le_bytes());
    put(&mut broken, note + 4, &6_u32.to_le_bytes());
    for (index, word) in words.iter().enumerate() {
        put(&mut broken, note + 8 + 8 * index, &word.to_le_bytes());
    }
    bench.load("broken.so", &broken).expect("it loads before strip");
    if let Some(stripped) = bench.through("strip", &["--strip-unneeded"], &broken) {
        bench.load("stripped.so", &stripped).expect_err("the file is broken as it was meant to be");
    }
    let healed = apply(&broken, [Edit::Heal]);
    assert_eq!(count(&healed, LOAD), count(&broken, LOAD) - 1);
    bench.survives(&healed);
    bench.survives(&apply(&broken, usual_plan().edits));
}

/// lld leaves no free dynamic entries, so that the dynamic section has to move.
#[test]
fn patchelf_146_152_639_lld_leaves_no_room_in_the_dynamic_section() {
    let bench = bench!();
    if !has("ld.lld") {
        return;
    }
    let library = bench.library(SOURCE, &["-fuse-ld=lld"]);
    let edited = bench.edit_and_judge(&library);
    let writable: Vec<bool> = edited.layout.added.iter().map(|segment| segment.is_writable).collect();
    assert_eq!(writable, [false, true], "tables stay read-only, the dynamic section stays writable");
    assert_eq!(edited.layout.warnings, [Warning::DynamicLeftRelro]);
}

#[test]
fn patchelf_664_version_definitions_move_with_the_rest() {
    let bench = bench!();
    let script =
        bench.write("versions", "V_1 { global: twice_answer; }; V_2 { global: answer; local: *; } V_1;");
    let flag = format!("-Wl,--version-script={}", script.display());
    bench.edit_and_judge(&bench.library(SOURCE, &[&flag]));
    if has("ld.lld") {
        bench.edit_and_judge(&bench.library(SOURCE, &[&flag, "-fuse-ld=lld"]));
    }
}

#[test]
fn object_rewrite_relative_relocations_are_kept() {
    let bench = bench!();
    let library = bench.library(SOURCE, &["-Wl,-z,pack-relative-relocs"]);
    bench.edit_and_judge(&library);
}

/// Entries of `DT_HASH` have eight bytes on s390x, and its byte order is the other one.
#[test]
fn polyfill_glibc_entries_of_eight_bytes_in_the_hash_table_of_s390x() {
    let bench = bench!("s390x-linux-gnu-gcc");
    let library = bench.library(SOURCE, &["-Wl,--hash-style=both"]);
    bench.edit_and_judge(&library);
    let symbols = vec![SymbolName::new("twice_answer")];
    let hidden = apply(&library, [Edit::Hide { symbols }]);
    // eu-elflint reports what was asked for.
    let complaints = bench.new_complaints(&library, &hidden);
    assert!(complaints.iter().all(|line| line.contains("non-default visibility")), "{complaints:?}");
}

const BLOCKED: &str =
    "const char blocker[] __attribute__((section(\".blocker\"))) = \"something that cannot move\";";

fn blocked(bench: &Bench) -> Vec<u8> {
    let script = bench.write("script.ld", "SECTIONS { .blocker : { *(.blocker) } } INSERT BEFORE .gnu.hash;");
    let flag = format!("-Wl,-T,{}", script.display());
    bench.library(&format!("{SOURCE}\n{BLOCKED}"), &[&flag, "-Wl,-z,noseparate-code"])
}

#[test]
fn patchelf_531_data_behind_the_program_headers_is_refused_with_its_name() {
    let bench = bench!();
    let library = blocked(&bench);
    bench.load("blocked.so", &library).expect("it loads");
    match edit(&library, &usual_plan(), &Options::default()) {
        Err(EditError::Refused(refusal @ Refusal::ProgramHeadersBlocked { .. })) => {
            assert_eq!(refusal.code(), "program-headers-blocked");
            assert!(refusal.to_string().contains(".blocker"), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
}

/// With the insistence of the caller the headers move; a file whose headers have moved is edited too.
#[test]
fn patchelf_544_program_headers_at_the_end_of_the_file() {
    let bench = bench!();
    let library = blocked(&bench);
    let moved = edit(&library, &usual_plan(), &Options { allow_phdr_move: true }).expect("an edited file");
    assert!(moved.layout.warnings.contains(&Warning::ProgramHeadersMoved));
    bench.load("moved.so", &moved.bytes).expect("it loads");
    let edits = [needed("libpthread.so.0", Place::Last)];
    let again = edit(&moved.bytes, &EditPlan::new(edits), &Options { allow_phdr_move: true });
    bench.load("again.so", &again.expect("an edited file").bytes).expect("it loads");
}

const NOTES: &str = r#"
__asm__(".pushsection .note.four,\"a\",@note\n.p2align 2\n.long 5,4,1\n.asciz \"Four\"\n.p2align 2\n.long 4\n.popsection");
__asm__(".pushsection .note.eight,\"a\",@note\n.p2align 3\n.long 4,8,2\n.asciz \"GNU\"\n.p2align 3\n.quad 8\n.popsection");
"#;

#[test]
fn patchelf_275_255_403_notes_of_two_alignments() {
    let bench = bench!();
    let library = bench.library(&format!("{SOURCE}{NOTES}"), &["-Wl,--build-id"]);
    assert!(count(&library, NOTE) >= 1);
    bench.edit_and_judge(&library);
}

#[test]
fn patchelf_446_processor_properties_move_with_their_notes() {
    let bench = bench!();
    let library = bench.library(SOURCE, &["-fcf-protection=full", "-Wl,-z,ibt,-z,shstk"]);
    assert_eq!(count(&library, 0x6474_e553), 1, "a PT_GNU_PROPERTY");
    bench.edit_and_judge(&library);
}

/// The address space has room; the file gets no holes.
#[test]
fn patchelf_47_92_474_pages_of_two_megabytes_cost_no_bytes() {
    let bench = bench!();
    let library = bench.library(SOURCE, &["-Wl,-z,max-page-size=0x200000,-z,common-page-size=0x200000"]);
    let edited = bench.edit_and_judge(&library);
    assert!(edited.layout.growth() < 2500, "growth {}", edited.layout.growth());
}

#[test]
fn lief_1366_pages_of_64k_on_aarch64() {
    let bench = bench!("aarch64-linux-gnu-gcc");
    let edited = bench.edit_and_judge(&bench.library(SOURCE, &[]));
    for (_, _, words) in program_headers(&edited.bytes).iter().filter(|h| h.1 == LOAD) {
        assert_eq!(words[0] % 0x10000, words[1] % 0x10000, "offset and address modulo 64K");
    }
    // A linker that was told of small pages does not make the new segments unloadable on large ones.
    let small = bench.library(SOURCE, &["-Wl,-z,max-page-size=0x1000"]);
    let edited = bench.edit_and_judge(&small);
    let added = edited.layout.added.first().expect("a segment").extent;
    assert_eq!(added.offset % 0x10000, added.address % 0x10000);
}

#[test]
fn patchelf_622_pages_of_16k() {
    let bench = bench!();
    let edited = bench.edit_and_judge(&bench.library(SOURCE, &["-Wl,-z,max-page-size=0x4000"]));
    let headers = program_headers(&edited.bytes);
    assert!(headers.iter().filter(|h| h.1 == LOAD).all(|h| h.2[5] == 0x4000));
}

#[test]
fn patchelf_465_without_section_headers() {
    let bench = bench!();
    let mut library = bench.library(SOURCE, &[]);
    put(&mut library, 40, &[0; 8]);
    put(&mut library, 58, &[0; 6]);
    let edited = edit(&library, &usual_plan(), &Options::default()).expect("an edited file");
    bench.load("edited.so", &edited.bytes).expect("it loads");
    assert_eq!(edited.bytes[32..40], library[32..40], "program headers stay where they are");
}

#[test]
fn object_rewrite_appended_bytes_are_kept() {
    let bench = bench!();
    let mut library = bench.library(SOURCE, &[]);
    library.extend(b"PK: an archive behind the library".repeat(300));
    let end = library.len();
    let edited = edit(&library, &usual_plan(), &Options::default()).expect("an edited file");
    assert_eq!(edited.bytes[end - 33..end], library[end - 33..]);
    assert!(edited.layout.warnings.contains(&Warning::OverlayNotLast));
    bench.survives(&edited.bytes);
}

/// `answer` is the end of `twice_answer` in the string table.
#[test]
fn patchelf_45_315_a_string_that_is_the_end_of_another() {
    let bench = bench!();
    let library = bench.library(SOURCE, &[]);
    let rename = Edit::RenameSymbol { from: SymbolName::new("twice_answer"), to: "x".into() };
    let edited = edit(&library, &EditPlan::new([rename]), &Options::default()).expect("an edited file");
    assert_eq!(bench.new_complaints(&library, &edited.bytes), Vec::<String>::new());
    bench.survives(&edited.bytes);
    bench.load_symbol("renamed.so", &edited.bytes, "x").expect_err("84, not 42, but it is there");
    bench.load_symbol("gone.so", &edited.bytes, "twice_answer").expect_err("the old name is gone");
}

#[test]
fn lief_886_a_library_is_not_needed_twice() {
    let bench = bench!();
    let library = bench.library(SOURCE, &["-Wl,--no-as-needed"]);
    let same = edit(&library, &EditPlan::new([needed("libm.so.6", Place::First)]), &Options::default());
    assert!(!same.expect("an edited file").is_changed());
    let replace = Edit::ReplaceNeeded { from: "libm.so.6".into(), to: "libc.so.6".into() };
    let edited = apply(&library, [replace]);
    let path = bench.write("merged.so", &edited);
    assert_eq!(support::dynamic(&path).matches("(NEEDED)").count(), 1, "{}", support::dynamic(&path));
    bench.survives(&edited);
}

#[test]
fn patchelf_193_359_auditwheel_722_needed_replaced_twice_and_the_path_set() {
    let bench = bench!();
    let library = bench.library(SOURCE, &["-Wl,--no-as-needed"]);
    let plan = [
        Edit::ReplaceNeeded { from: "libm.so.6".into(), to: "libdl.so.2".into() },
        Edit::ReplaceNeeded { from: "libdl.so.2".into(), to: "libpthread.so.0".into() },
        Edit::SetSearchPath { kind: SearchPathKind::Rpath, path: "$ORIGIN".into() },
    ];
    let edited = apply(&library, plan);
    let path = bench.write("replaced.so", &edited);
    let dynamic = support::dynamic(&path);
    assert!(dynamic.contains("[libpthread.so.0]") && !dynamic.contains("[libdl.so.2]"), "{dynamic}");
    bench.survives(&edited);
}

/// glibc fails an assertion if a version is needed of a library that is not.
#[test]
fn patchelf_192_versions_follow_their_library() {
    let bench = bench!();
    let dependency = bench.write("d.c", "int value(void) { return 42; }");
    let script = bench.write("d.map", "D_1 { value; };");
    let library = bench.path("libdependency.so");
    let built = std::process::Command::new("gcc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libdependency.so"])
        .arg(format!("-Wl,--version-script={}", script.display()))
        .arg("-o")
        .args([&library, &dependency])
        .status();
    assert!(built.expect("gcc").success());
    let user = "extern int value(void); int answer(void) { return value(); }";
    let here = bench.path("").display().to_string();
    let user = bench.library(user, &[&format!("-L{here}"), "-ldependency", "-Wl,-rpath,$ORIGIN"]);
    let renamed = "libdependency-0123456789.so.1";
    std::fs::copy(&library, bench.path(renamed)).expect("a copy");
    let edited = apply(&user, [Edit::ReplaceNeeded { from: "libdependency.so".into(), to: renamed.into() }]);
    std::fs::remove_file(&library).expect("the old name");
    bench.survives(&edited);
    let without = Edit::RemoveNeeded { library: renamed.into() };
    let edited = apply(&edited, [without, needed(renamed, Place::Last)]);
    bench.survives(&edited);
}

#[test]
fn patchelf_265_one_of_two_search_paths_stays() {
    let bench = bench!();
    let with_runpath = bench.library(SOURCE, &["-Wl,--enable-new-dtags,-rpath,/run/path"]);
    let converted = apply(&with_runpath, [Edit::ConvertSearchPath { to: SearchPathKind::Rpath }]);
    assert_eq!(converted.len(), with_runpath.len(), "in place");
    let path = bench.write("converted.so", &converted);
    let dynamic = support::dynamic(&path);
    assert!(dynamic.contains("(RPATH)") && !dynamic.contains("(RUNPATH)"), "{dynamic}");
    let set = Edit::SetSearchPath { kind: SearchPathKind::Runpath, path: "/run".into() };
    let set = apply(&converted, [set]);
    assert_eq!(set.len(), with_runpath.len(), "a shorter path fits where the longer one was");
    let removed = apply(&set, [Edit::RemoveSearchPath]);
    let path = bench.write("removed.so", &removed);
    assert!(!support::dynamic(&path).contains("PATH"));
    bench.survives(&removed);
}

/// Free entries behind the end are used, and flags set, without moving anything.
#[test]
fn patchelf_446_flags_use_the_free_entries() {
    let bench = bench!();
    let library = bench.library(SOURCE, &[]);
    let edited = apply(&library, [Edit::SetFlags1 { set: 8, clear: 0 }, Edit::SetFlags { set: 8, clear: 0 }]);
    assert_eq!(edited.len(), library.len());
    let path = bench.write("flags.so", &edited);
    let dynamic = support::dynamic(&path);
    assert!(dynamic.contains("BIND_NOW") && dynamic.contains("NODELETE"), "{dynamic}");
    bench.survives(&edited);
}

#[test]
fn lief_98_143_new_segments_lie_behind_the_bss() {
    let bench = bench!();
    let source = format!("{SOURCE}\nchar large[3000000]; int *at(int i) {{ return (int *)(large + i); }}");
    let edited = bench.edit_and_judge(&bench.library(&source, &[]));
    let end = program_headers(&edited.bytes).iter().filter(|h| h.1 == LOAD).map(|h| h.2[1] + h.2[4]).max();
    assert!(edited.layout.added.iter().all(|new| new.extent.address + new.extent.size <= end.unwrap_or(0)));
    assert!(edited.layout.growth() < 2500);
}

#[test]
fn patchelf_82_364_408_elf32_of_the_other_byte_order() {
    let bench = bench!("mips-linux-gnu-gcc");
    bench.edit_and_judge(&bench.library(SOURCE, &[]));
    // DT_MIPS_RLD_MAP_REL counts from its own entry.
    let program =
        bench.build(&format!("{SOURCE}\nint main(void) {{ return answer(); }}"), &["-pie", "-fPIE"]);
    let edited = edit(&program, &usual_plan(), &Options::default()).expect("an edited program");
    assert_eq!(bench.new_complaints(&program, &edited.bytes), Vec::<String>::new());
}

#[test]
fn patchelf_585_elf32_of_arm() {
    let bench = bench!("arm-linux-gnueabihf-gcc");
    bench.edit_and_judge(&bench.library(SOURCE, &[]));
}

#[test]
fn patchelf_93_a_stripped_library() {
    let bench = bench!();
    bench.edit_and_judge(&bench.library(SOURCE, &["-s"]));
}

#[test]
fn patchelf_75_relro_and_the_dynamic_symbol_are_kept() {
    let bench = bench!();
    let library = bench.library(SOURCE, &["-Wl,-z,relro,-z,now"]);
    let edited = bench.edit_and_judge(&library);
    let relro = |bytes: &[u8]| program_headers(bytes).into_iter().find(|h| h.1 == RELRO).map(|h| h.2);
    assert_eq!(relro(&library), relro(&edited.bytes));
    assert_eq!(edited.layout.warnings, []);
}

#[test]
fn patchelf_193_interpreter_and_path_of_a_program() {
    let bench = bench!();
    let source = format!("{SOURCE}\nint main(void) {{ return answer() == 42 ? 0 : 1; }}");
    let program = bench.build(&source, &["-pie", "-fPIE"]);
    let Some(found) = support::interpreter(&program) else { return };
    let longer = bench.path("a-longer-name-for-the-program-interpreter-of-this-machine.so.2");
    std::fs::copy(&found, &longer).expect("a copy of the interpreter");
    let mut plan = usual_plan();
    plan.push(Edit::SetInterpreter { path: longer.display().to_string() });
    let edited = edit(&program, &plan, &Options::default()).expect("an edited program");
    assert_eq!(bench.new_complaints(&program, &edited.bytes), Vec::<String>::new());
    bench.run("program", &edited.bytes);
    if let Some(stripped) = bench.through("strip", &[], &edited.bytes) {
        bench.run("stripped", &stripped);
    }
    let empty = EditPlan::new([Edit::SetInterpreter { path: String::new() }]);
    match edit(&program, &empty, &Options::default()) {
        Err(EditError::Refused(refusal)) => assert_eq!(refusal.code(), "bad-name"),
        other => panic!("patchelf#373: {other:?}"),
    }
}
