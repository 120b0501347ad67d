//! Edits of symbols, proved by the loader: who binds to whom after them.

mod support;

use abiaudit_edit::{
    Binding, Edit, EditError, EditPlan, ElfImage, Options, Place, RequiredVersion, SymbolName, Visibility,
    edit,
};
use support::{Bench, SOURCE, has};

fn apply(bytes: &[u8], edits: impl IntoIterator<Item = Edit>) -> Vec<u8> {
    edit(bytes, &EditPlan::new(edits), &Options::default()).expect("an edited file").bytes
}

fn symbols(names: &[&str]) -> Vec<SymbolName> {
    names.iter().map(|name| SymbolName::from((*name).to_owned())).collect()
}

/// Many functions, so that the hash tables have buckets to get wrong.
fn many(count: usize) -> String {
    let functions = (0..count).map(|i| format!("int function_{i}(void) {{ return {i}; }}\n"));
    let calls: Vec<String> = (0..count).map(|i| format!("function_{i}()")).collect();
    let sum: usize = (0..count).sum();
    let answer = format!("int answer(void) {{ return {} == {sum} ? 42 : 0; }}\n", calls.join(" + "));
    functions.chain([answer]).collect()
}

fn lookup_all(bench: &Bench, bytes: &[u8], count: usize, is_there: impl Fn(usize) -> bool) {
    let loader = format!(
        "#include <dlfcn.h>\n#include <stdio.h>\nint main(int c, char **v) {{ void *l = dlopen(v[1], RTLD_NOW); char n[32];\n\
         if (!l) return 1; for (int i = 0; i < {count}; i++) {{ sprintf(n, \"function_%d\", i);\n\
         int (*f)(void) = (int (*)(void))dlsym(l, n); printf(\"%d\\n\", f && f() == i); }} return 0; }}"
    );
    let Some(runner) = Bench::new("gcc") else { return };
    let program = runner.build(&loader, &["-ldl"]);
    let library = bench.write("looked-up.so", bytes);
    let output = runner.run_with("looker", &program, &library);
    let found: Vec<bool> = output.lines().map(|line| line == "1").collect();
    let expected: Vec<bool> = (0..count).map(is_there).collect();
    assert_eq!(found, expected);
}

#[test]
fn hidden_symbols_are_found_by_nobody_and_the_others_by_all() {
    for style in ["gnu", "sysv", "both"] {
        let Some(bench) = Bench::new("gcc") else { return };
        let flag = format!("-Wl,--hash-style={style}");
        let library = bench.library(&many(100), &[&flag]);
        let names: Vec<String> = (0..100).filter(|i| i % 3 == 0).map(|i| format!("function_{i}")).collect();
        let symbols = names.iter().map(|name| SymbolName::new(name.as_str())).collect();
        let edited = apply(&library, [Edit::Hide { symbols }]);
        assert_eq!(edited.len(), library.len(), "in place");
        bench.survives(&edited);
        lookup_all(&bench, &edited, 100, |i| i % 3 != 0);
    }
}

#[test]
fn renamed_symbols_are_found_by_their_new_names_only() {
    for style in ["gnu", "sysv", "both"] {
        let Some(bench) = Bench::new("gcc") else { return };
        let flag = format!("-Wl,--hash-style={style}");
        let library = bench.library(&many(60), &[&flag]);
        let rename = |i: usize| Edit::RenameSymbol {
            from: SymbolName::new(format!("function_{i}")),
            to: format!("{}_of_another_name_{i}", if i.is_multiple_of(2) { "a" } else { "zz" }),
        };
        let edited = apply(&library, (10..40).map(rename));
        assert_eq!(bench.new_complaints(&library, &edited), Vec::<String>::new());
        bench.survives(&edited);
        lookup_all(&bench, &edited, 60, |i| !(10..40).contains(&i));
        for i in 10_usize..40 {
            let name = format!("{}_of_another_name_{i}", if i.is_multiple_of(2) { "a" } else { "zz" });
            let found = bench.load_symbol("renamed.so", &edited, &name);
            assert!(found.is_err_and(|error| error.contains("exit status: 3")), "it is there, and is not 42");
        }
    }
}

/// The library's own definition is switched off, and that of another library takes its place.
#[test]
fn an_undefined_symbol_binds_to_the_library_that_was_added() {
    let Some(bench) = Bench::new("gcc") else { return };
    let provider = bench.path("libprovider.so");
    let source = bench.write("provider.c", "int part(void) { return 41; }\nint other(void) { return 7; }");
    let script = bench.write("provider.map", "P_1 { part; }; P_2 { other; };");
    let built = std::process::Command::new("gcc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libprovider.so"])
        .arg(format!("-Wl,--version-script={}", script.display()))
        .arg("-o")
        .args([&provider, &source])
        .status();
    assert!(built.expect("gcc").success());
    // puts gives the file a version need, and so the tables that the new one is added to.
    let user = "#include <stdio.h>\nint part(void) { return 0; }\nint answer(void) { puts(\"\"); return part() + 1; }";
    let library = bench.library(user, &["-Wl,-rpath,$ORIGIN"]);
    let version = RequiredVersion { library: "libprovider.so".into(), version: "P_1".into() };
    let undefine = Edit::Undefine { symbols: symbols(&["part"]), version: Some(version.clone()) };
    let without = edit(&library, &EditPlan::new([undefine.clone()]), &Options::default());
    match without {
        Err(EditError::Refused(refusal)) => assert_eq!(refusal.code(), "version-need-without-needed"),
        other => panic!("{other:?}"),
    }
    let add = Edit::AddNeeded { library: "libprovider.so".into(), place: Place::Last };
    let edited = apply(&library, [add.clone(), undefine]);
    assert_eq!(bench.new_complaints(&library, &edited), Vec::<String>::new());
    bench.load("before.so", &library).expect_err("its own part is another");
    bench.survives(&edited);
    // Without a version it binds to the same.
    let undefine = Edit::Undefine { symbols: symbols(&["part"]), version: None };
    bench.survives(&apply(&library, [add.clone(), undefine]));
    // The loader looks at the version.
    let wrong = Edit::AssignVersion {
        symbols: symbols(&["part"]),
        library: "libprovider.so".into(),
        version: "P_2".into(),
    };
    let wrong = apply(&edited, [wrong]);
    assert!(bench.load("wrong.so", &wrong).is_err_and(|error| error.contains("part")));
    let right = Edit::AssignVersion {
        symbols: symbols(&["part@P_2"]),
        library: version.library,
        version: version.version,
    };
    bench.survives(&apply(&wrong, [right]));
}

/// A version that no symbol refers to any more is not demanded any more.
#[test]
fn an_older_version_takes_the_place_of_a_newer_one() {
    let Some(bench) = Bench::new("gcc") else { return };
    let source = "#include <stdlib.h>\n#include <dlfcn.h>\nint answer(void) { return dlsym(0, \"answer\") ? 42 : abs(-42); }";
    let library = bench.library(source, &[]);
    let readelf = |bytes: &[u8]| {
        let path = bench.write("read.so", bytes);
        let run = std::process::Command::new("readelf").arg("-VW").arg(path).output().expect("readelf");
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    if ElfImage::parse(&library).expect("a library").machine() != 62
        || !readelf(&library).contains("GLIBC_2.34")
    {
        return;
    }
    let old = Edit::AssignVersion {
        symbols: symbols(&["dlsym@GLIBC_2.34"]),
        library: "libdl.so.2".into(),
        version: "GLIBC_2.2.5".into(),
    };
    let edited = apply(&library, [Edit::AddNeeded { library: "libdl.so.2".into(), place: Place::Last }, old]);
    assert!(!readelf(&edited).contains("GLIBC_2.34"), "{}", readelf(&edited));
    bench.load("old.so", &edited).expect("it loads, and dlsym works");
}

#[test]
fn unique_symbols_become_weak_in_place() {
    let Some(bench) = Bench::new("gcc") else { return };
    if !has("g++") {
        return;
    }
    let (source, output) = (bench.path("unique.cpp"), bench.path("unique.so"));
    let text = "template <class T> struct S { static T value; }; template <class T> T S<T>::value = 42;\n\
                extern \"C\" int answer() { return S<int>::value; }";
    std::fs::write(&source, text).expect("a source");
    let mut built = std::process::Command::new("g++");
    built.args(["-shared", "-fPIC", "-fgnu-unique", "-o"]).args([&output, &source]);
    assert!(built.status().expect("g++").success());
    let library = std::fs::read(&output).expect("a library");
    let unique = |bytes: &[u8]| {
        let path = bench.write("read.so", bytes);
        let run = std::process::Command::new("readelf")
            .args(["--dyn-syms", "-W"])
            .arg(path)
            .output()
            .expect("readelf");
        String::from_utf8_lossy(&run.stdout).matches("UNIQUE").count()
    };
    assert_eq!(unique(&library), 1);
    let edited = apply(&library, [Edit::DemoteUnique { to: Binding::Weak }]);
    assert_eq!((unique(&edited), edited.len()), (0, library.len()));
    let changed = edited.iter().zip(&library).filter(|(a, b)| a != b).count();
    assert_eq!(changed, 1, "one byte");
    bench.survives(&edited);
}

#[test]
fn binding_and_visibility_are_set_in_place() {
    let Some(bench) = Bench::new("gcc") else { return };
    let library = bench.library(SOURCE, &[]);
    let edited = apply(
        &library,
        [
            Edit::SetBinding { symbols: symbols(&["answer"]), binding: Binding::Weak },
            Edit::SetVisibility { symbols: symbols(&["two"]), visibility: Visibility::Protected },
            Edit::ClearExecutableStack,
        ],
    );
    let changed = edited.iter().zip(&library).filter(|(a, b)| a != b).count();
    assert_eq!((changed, edited.len()), (2, library.len()));
    bench.survives(&edited);
}

#[test]
fn an_executable_stack_is_cleared() {
    let Some(bench) = Bench::new("gcc") else { return };
    let library = bench.library(SOURCE, &["-Wl,-z,execstack"]);
    let edited = apply(&library, [Edit::ClearExecutableStack]);
    let flags = |bytes: &[u8]| {
        let header = support::program_headers(bytes).into_iter().find(|header| header.1 == 0x6474_e551);
        header.map(|(at, ..)| bytes[at + 4])
    };
    assert_eq!((flags(&library), flags(&edited)), (Some(7), Some(6)));
    bench.survives(&edited);
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let Some(bench) = Bench::new("gcc") else { return };
    let library = bench.library(SOURCE, &[]);
    let code = |edit: Edit| match super_edit(&library, edit) {
        Err(EditError::Refused(refusal)) => refusal.code(),
        other => panic!("{other:?}"),
    };
    assert_eq!(code(Edit::Hide { symbols: symbols(&["no_such"]) }), "symbol-not-found");
    assert_eq!(code(Edit::Hide { symbols: symbols(&["snprintf"]) }), "wrong-symbol-state");
    assert_eq!(
        code(Edit::RenameSymbol { from: SymbolName::new("no_such"), to: "x".into() }),
        "symbol-not-found"
    );
    assert_eq!(code(Edit::SetInterpreter { path: "/lib/ld.so".into() }), "no-interpreter");
    assert_eq!(code(Edit::OrderNeeded { libraries: vec!["no_such.so".into()] }), "unknown-needed");
    assert_eq!(code(Edit::SetSoname { soname: "a\0b".into() }), "bad-name");
    let versions = Edit::RenameVersionFile { from: "libc.so.6".into(), to: "libnone.so".into() };
    assert_eq!(code(versions), "version-need-without-needed");
}

fn super_edit(bytes: &[u8], wanted: Edit) -> Result<abiaudit_edit::Edited, EditError> {
    edit(bytes, &EditPlan::new([wanted]), &Options::default())
}
