//! Makes a whole toolchain with this machine's compiler. A machine without g++, or with one whose libstdc++.a is not
//! position-independent, skips these tests, and says so.
#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use abiaudit_policy::PolicySet;
use abiaudit_toolchain::link::{self, OutputKind, Record};
use abiaudit_toolchain::{Compiler, Error, Manifest, Options, create, verify};

fn compiler() -> Option<&'static str> {
    let found = cfg!(target_arch = "x86_64")
        && Compiler::find("g++").is_ok_and(|compiler| compiler.file("libstdc++.a").is_ok());
    if !found {
        eprintln!("SKIPPED: there is no g++ with a libstdc++.a on this machine");
    }
    found.then_some("g++")
}

fn target(tag: &str) -> abiaudit_policy::Target {
    PolicySet::builtin().target(tag).unwrap()
}

/// The linker wrapper.
fn wrapper() -> PathBuf {
    env!("CARGO_BIN_EXE_abiaudit-ld").into()
}

#[test]
fn a_toolchain_is_made_whole_and_the_same_again() {
    let Some(compiler) = compiler() else { return };
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("toolchain");
    let options = Options {
        target: target("manylinux_2_28_x86_64"),
        compiler: compiler.to_owned(),
        wrapper: wrapper(),
    };
    let manifest = create(&options, &out).unwrap();
    for check in verify(&out).unwrap() {
        assert!(check.problems.is_empty(), "{check}");
    }
    assert_eq!(manifest, Manifest::read(&out).unwrap());
    assert_eq!(manifest.ceilings["GLIBCXX"], "3.4.24");
    assert!(manifest.libstdcxx.covered.iter().any(|name| name.contains("filesystem")));
    assert!(manifest.shim.contains_key("__libc_single_threaded"));
    assert!(manifest.refused["_dl_find_object"].contains("2.35"));
    let again = create(&options, &out).unwrap();
    assert_eq!(manifest.files, again.files, "the same bytes");

    // A file that is gone would come from the machine, without a word.
    std::fs::remove_file(out.join("libm.so.6")).unwrap();
    let checks = verify(&out).unwrap();
    assert!(checks[0].problems.iter().any(|problem| problem.contains("libm.so.6")), "{}", checks[0]);
}

#[test]
fn a_directory_of_others_is_left_alone() {
    let Some(compiler) = compiler() else { return };
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("precious"), "").unwrap();
    let options = Options {
        target: target("manylinux_2_28_x86_64"),
        compiler: compiler.to_owned(),
        wrapper: "/bin/true".into(),
    };
    assert!(matches!(create(&options, directory.path()), Err(Error::Occupied { .. })));
    assert!(directory.path().join("precious").is_file());
}

#[test]
fn targets_that_cannot_be_are_refused_with_the_reason() {
    let Some(compiler) = compiler() else { return };
    let directory = tempfile::tempdir().unwrap();
    for (tag, part) in [
        ("musllinux_1_2_x86_64", "musl"),
        ("manylinux_2_28_aarch64", "aarch64-linux-gnu-g++"),
        ("manylinux_2_28_s390x", "not supported"),
        ("manylinux_2_5_x86_64", "2.17"),
    ] {
        let options =
            Options { target: target(tag), compiler: compiler.to_owned(), wrapper: "/bin/true".into() };
        let error = create(&options, &directory.path().join("out")).unwrap_err().to_string();
        assert!(error.contains(part), "{tag}: {error}");
    }
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

#[test]
fn the_kind_of_a_link_is_seen() {
    for (line, kind) in [
        ("-m elf_x86_64 -shared -o a.so x.o", OutputKind::Shared),
        ("-m elf_x86_64 -dynamic-linker /lib64/ld-linux-x86-64.so.2 -o a x.o", OutputKind::Executable),
        ("-m elf_x86_64 -static -o a x.o", OutputKind::Other),
        ("-r -o a.o x.o", OutputKind::Other),
        ("-m elf_i386 -shared -o a.so x.o", OutputKind::Other),
        ("--version", OutputKind::Other),
    ] {
        assert_eq!(link::output_kind(&words(line), "x86_64"), kind, "{line}");
    }
}

#[test]
fn a_record_of_a_link_reads_back() {
    let line = r#"{"schema":"abiaudit.link/1","target":"manylinux_2_28_x86_64","directory":"/b","linker":"/usr/bin/ld",
        "arguments":["-o","a.so"],"linked_with":["-L","/t","-o","a.so"],"environment":{"COLLECT_GCC":"g++"},
        "output":"/b/a.so","sha256":"00","build_id":null,"soname":null,
        "inputs":[{"path":"/b/x.o","sha256":"11","copy":"/l.inputs/11"}]}"#;
    let record: Record = serde_json::from_str(line).unwrap();
    assert_eq!(record.inputs[0].copy, Some(PathBuf::from("/l.inputs/11")));
    assert_eq!(serde_json::from_str::<Record>(&serde_json::to_string(&record).unwrap()).unwrap(), record);
}

/// One toolchain for what follows: an old one, so that every measure is in it.
fn old_toolchain() -> Option<(tempfile::TempDir, PathBuf)> {
    let compiler = compiler()?.to_owned();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("toolchain");
    let options = Options { target: target("manylinux_2_17_x86_64"), compiler, wrapper: wrapper() };
    create(&options, &out).unwrap();
    Some((directory, out))
}

const OLD: &str = "-D_GLIBCXX_USE_CXX11_ABI=0";

#[test]
fn links_are_gated_and_recorded() {
    let Some((directory, toolchain)) = old_toolchain() else { return };
    let log = directory.path().join("links.jsonl");
    let gxx = |source: &str, flags: &[&str]| {
        let input = directory.path().join("m.cc");
        std::fs::write(&input, source).unwrap();
        let mut command = Command::new("g++");
        command.env("COMPILER_PATH", &toolchain).env(link::LOG_VARIABLE, &log).current_dir(directory.path());
        let output = command.args(["-fPIC", "-shared", "-o", "m.so", "m.cc"]).args(flags).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (ok, text) = gxx("#include <string>\nint f(const std::string &s) { return s.size(); }", &[]);
    assert!(!ok && text.contains(OLD), "the new string ABI: {text}");
    assert!(!directory.path().join("m.so").exists());

    let (ok, text) = gxx(
        "extern \"C\" void *_dl_find_object(void *, void *); void *f() { return _dl_find_object(0, 0); }",
        &[OLD],
    );
    assert!(
        !ok && text.contains("_dl_find_object") && text.contains("2.35"),
        "a symbol that nobody has: {text}"
    );

    let source = "#include <thread>\nvoid f() { std::thread([] {}).join(); }";
    let (ok, text) =
        gxx(source, &[OLD, "-static-libstdc++", "-static-libgcc", "-Wl,-z,pack-relative-relocs"]);
    assert!(ok, "{text}");
    for undone in ["-static-libstdc++ is undone", "-static-libgcc is undone", "not packed"] {
        assert!(text.contains(undone), "{undone}: {text}");
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let records: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [record] = &records[..] else { panic!("only the link that was made is recorded: {records:?}") };
    assert_eq!(record.output, directory.path().join("m.so"));
    assert!(record.environment.contains_key("COLLECT_GCC"), "{:?}", record.environment);
    let object = record.inputs.iter().find(|input| input.path.extension().is_some_and(|e| e == "o")).unwrap();
    let kept = record.inputs.iter().filter(|input| input.copy.as_ref().is_some_and(|copy| copy.is_file()));
    assert!(kept.count() > 0, "the compiler's temporary object is kept: {object:?}");
    assert!(record.build_id.is_some() || !record.linked_with.iter().any(|word| word.contains("--build-id")));
}
