//! Strip, and the file that debuggers read beside the stripped one.

mod support;

use std::process::Command;

use abiaudit_edit::{
    Edit, EditError, EditPlan, Options, Place, StripLevel, debug_file, debug_link, edit, strip,
};
use support::{Bench, SOURCE, has, usual_plan};

fn tool(name: &str, arguments: &[&str]) -> String {
    let run = Command::new(name).args(arguments).output().expect("a tool");
    String::from_utf8_lossy(&run.stdout).into_owned()
}

fn sections(bench: &Bench, bytes: &[u8]) -> String {
    let path = bench.write("sections.so", bytes);
    tool("readelf", &["-SW", &path.display().to_string()])
}

#[test]
fn symbols_and_debug_information_go_and_the_rest_loads() {
    for flags in [&[][..], &["-fuse-ld=lld"], &["-Wl,-z,pack-relative-relocs"], &["-gz"]] {
        let Some(bench) = Bench::new("gcc") else { return };
        if flags.contains(&"-fuse-ld=lld") && !has("ld.lld") {
            continue;
        }
        let library = bench.library(SOURCE, flags);
        let stripped = strip(&library, StripLevel::Symbols, None).expect("a stripped library");
        assert!(stripped.removed.iter().any(|name| name == ".symtab"));
        assert!(stripped.removed.iter().any(|name| name == ".debug_info"));
        assert!(stripped.bytes.len() < library.len());
        assert_eq!(bench.new_complaints(&library, &stripped.bytes), Vec::<String>::new());
        bench.survives(&stripped.bytes);
        let again = strip(&stripped.bytes, StripLevel::Symbols, None).expect("a stripped library");
        assert_eq!((again.bytes, again.removed), (stripped.bytes, Vec::new()));
    }
}

#[test]
fn symbols_stay_if_only_debug_information_is_to_go() {
    let Some(bench) = Bench::new("gcc") else { return };
    let library = bench.library(SOURCE, &[]);
    let stripped = strip(&library, StripLevel::Debug, None).expect("a stripped library");
    assert_eq!(bench.new_complaints(&library, &stripped.bytes), Vec::<String>::new());
    let kept = sections(&bench, &stripped.bytes);
    assert!(kept.contains(".symtab") && !kept.contains(".debug_"), "{kept}");
    let path = bench.write("symbols.so", &stripped.bytes);
    assert!(tool("nm", &[&path.display().to_string()]).contains(" D two\n"));
    bench.survives(&stripped.bytes);
}

/// Not larger than what GNU strip makes of it, but for alignment.
#[test]
fn as_small_as_gnu_strip_makes_it() {
    let Some(bench) = Bench::new("gcc") else { return };
    let library = bench.library(SOURCE, &[]);
    let ours = strip(&library, StripLevel::Symbols, None).expect("a stripped library").bytes;
    let Some(theirs) = bench.through("strip", &["--strip-unneeded"], &library) else { return };
    assert!(ours.len() <= theirs.len() + 64, "{} and {}", ours.len(), theirs.len());
}

#[test]
fn strip_and_edits_in_one_plan_in_either_order_of_time() {
    let Some(bench) = Bench::new("gcc") else { return };
    let library = bench.library(SOURCE, &[]);
    let mut plan = usual_plan();
    plan.push(Edit::Strip { level: StripLevel::Symbols, debug_link: None });
    let both = edit(&library, &plan, &Options::default()).expect("an edited library");
    assert!(!both.stripped.is_empty());
    bench.survives(&both.bytes);
    // The new segments of an edit lie behind the debug information, and move forward when that goes.
    let edited = edit(&library, &usual_plan(), &Options::default()).expect("an edited library").bytes;
    let stripped = strip(&edited, StripLevel::Symbols, None).expect("a stripped library").bytes;
    assert_eq!(bench.new_complaints(&library, &stripped), Vec::<String>::new());
    assert!(stripped.len() <= both.bytes.len() + 8192);
    bench.survives(&stripped);
    let more = EditPlan::new([Edit::AddNeeded { library: "libpthread.so.0".into(), place: Place::First }]);
    bench.survives(&edit(&stripped, &more, &Options::default()).expect("an edited library").bytes);
}

#[test]
fn the_debug_file_has_the_lines_and_the_link_leads_to_it() {
    let Some(bench) = Bench::new("gcc") else { return };
    let library = bench.library(SOURCE, &["-Wl,--build-id"]);
    let debug = debug_file(&library).expect("a debug file");
    let link = debug_link("edited.so.debug", &debug);
    let stripped = strip(&library, StripLevel::Symbols, Some(&link)).expect("a stripped library").bytes;
    assert_eq!(bench.new_complaints(&library, &stripped), Vec::<String>::new());
    bench.survives(&stripped);
    let (whole, apart) = (bench.write("whole.so", &library), bench.write("edited.so.debug", &debug));
    let (whole, apart) = (whole.display().to_string(), apart.display().to_string());
    let symbols = tool("nm", &["-D", &whole]);
    let address =
        symbols.lines().find(|line| line.ends_with(" T answer")).map(|line| format!("0x{}", &line[..16]));
    let address = address.expect("the address of answer");
    let lines = tool("addr2line", &["-f", "-e", &apart, &address]);
    assert!(lines.starts_with("answer\n") && lines.contains("source.c:"), "{lines}");
    assert_eq!(lines, tool("addr2line", &["-f", "-e", &whole, &address]));
    let path = bench.write("linked.so", &stripped).display().to_string();
    let dump = tool("readelf", &["--string-dump=.gnu_debuglink", &path]);
    assert!(dump.contains("edited.so.debug"), "{dump}");
    if has("eu-unstrip") {
        let joined = bench.path("joined.so").display().to_string();
        let run =
            Command::new("eu-unstrip").args([&path, &apart, "-o", &joined]).output().expect("eu-unstrip");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    if has("gdb") {
        let run = tool("gdb", &["-batch", "-nx", "-ex", "info line answer", &path]);
        // gdb looks beside the file, and checks the CRC.
        assert!(run.contains("source.c"), "{run}");
    }
}

#[test]
fn other_architectures_are_stripped_too() {
    for compiler in
        ["aarch64-linux-gnu-gcc", "s390x-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "mips-linux-gnu-gcc"]
    {
        let Some(bench) = Bench::new(compiler) else { continue };
        let library = bench.library(SOURCE, &[]);
        let stripped = strip(&library, StripLevel::Symbols, None).expect("a stripped library");
        assert_eq!(bench.new_complaints(&library, &stripped.bytes), Vec::<String>::new(), "{compiler}");
    }
}

#[test]
fn without_sections_nothing_is_stripped() {
    let Some(bench) = Bench::new("gcc") else { return };
    let mut library = bench.library(SOURCE, &[]);
    support::put(&mut library, 40, &[0; 8]);
    support::put(&mut library, 58, &[0; 6]);
    match strip(&library, StripLevel::Debug, None) {
        Err(EditError::Refused(refusal)) => assert_eq!(refusal.code(), "no-sections"),
        other => panic!("{other:?}"),
    }
}
