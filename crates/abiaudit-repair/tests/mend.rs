//! What is mended in objects before libraries are grafted.

#![allow(clippy::print_stderr, reason = "a skipped test must say so")]

mod support;

use std::collections::BTreeSet;
use std::process::Command;

use abiaudit_elf::{Object, SymbolVersion};
use abiaudit_repair::{Mend, Method, RepairError};
use abiaudit_rules::{Audit, Settings};
use abiaudit_testing::{Arch, ElfWriter, SegmentSpec, TestWheel};
use support::{Bench, TAGS, library, module, names, needed, object, read, wheel};

fn bench(mends: impl IntoIterator<Item = Mend>) -> Bench {
    let mut bench = Bench::new();
    bench.options.mends = BTreeSet::from_iter(mends);
    bench
}

/// Every reference with a version, as `symbol@VERSION of library`.
fn references(object: &Object) -> BTreeSet<String> {
    let text = |symbol| match object.version_of(symbol) {
        SymbolVersion::Needed(need, version) => {
            Some(format!("{}@{} of {}", object.symbols.name_text(symbol), version.name, need.library))
        }
        _ => None,
    };
    object.symbols.undefined().filter_map(text).collect()
}

/// Functions that moved to libc.so.6 with glibc 2.34 are taken from where they were; `arc4random` (2.36) never was.
#[test]
fn glibc_versions_that_the_target_has() {
    let mut bench = bench([Mend::Glibc]);
    bench.options.platform = Some("manylinux_2_28".to_owned());
    let moved = module(&["libm.so.6"])
        .undefined_versioned("pthread_create", "libc.so.6", "GLIBC_2.34")
        .undefined_versioned("dlsym", "libc.so.6", "GLIBC_2.34")
        .undefined_versioned("pow", "libm.so.6", "GLIBC_2.29")
        .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14");
    let repaired = bench.repair(&wheel(&moved)).expect("repaired");
    let subject = read(&repaired.path);
    let mended = object(&subject, "pkg/m.so");
    let expected = [
        "dlsym@GLIBC_2.2.5 of libdl.so.2",
        "memcpy@GLIBC_2.14 of libc.so.6",
        "pow@GLIBC_2.2.5 of libm.so.6",
        "pthread_create@GLIBC_2.2.5 of libpthread.so.0",
    ];
    assert_eq!(references(mended), expected.map(str::to_owned).into());
    let libraries: BTreeSet<String> = needed(mended).into_iter().collect();
    assert_eq!(
        libraries,
        ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"].map(str::to_owned).into()
    );
    let new = moved.undefined_versioned("arc4random", "libc.so.6", "GLIBC_2.36");
    let Err(RepairError::Blocked { reasons, .. }) = bench.repair(&wheel(&new)) else { panic!("a refusal") };
    assert!(reasons[0].contains("arc4random") && !reasons.concat().contains("pthread_create"), "{reasons:?}");
}

/// `__libc_start_main` changed its meaning: a program mended so would not run its constructors.
#[test]
fn glibc_versions_that_mean_something_else_stay() {
    let mut bench = bench([Mend::Glibc]);
    bench.options.platform = Some("manylinux_2_28".to_owned());
    let start = module(&[]).undefined_versioned("__libc_start_main", "libc.so.6", "GLIBC_2.34");
    assert!(matches!(bench.repair(&wheel(&start)), Err(RepairError::Blocked { .. })));
}

#[test]
fn paths_of_the_build_machine_become_relative() {
    let bench = bench([Mend::SearchPath]);
    let objects = |path: &str| {
        TestWheel::new("pkg", "1.0", TAGS)
            .elf("pkg/sub/m.so", &module(&["libown.so"]).runpath(path))
            .elf("pkg/lib/libown.so", &library("libown.so"))
    };
    for (before, after) in [
        ("/home/ci/build/lib", Some("$ORIGIN/../lib")),
        ("/usr/lib:$ORIGIN/../lib", Some("$ORIGIN/../lib")),
        ("lib:$ORIGIN", Some("$ORIGIN:$ORIGIN/../lib")),
    ] {
        let repaired = bench.repair(&objects(before)).expect("repaired");
        let subject = read(&repaired.path);
        let path = object(&subject, "pkg/sub/m.so").dynamic.runpath.as_ref().map(abiaudit_elf::Name::to_text);
        assert_eq!(path.as_deref(), after, "{before}");
    }
    // Nothing of the wheel is found there: the entry goes.
    let alone = wheel(&module(&[]).runpath("/home/ci/build/lib"));
    let subject = read(&bench.repair(&alone).expect("repaired").path);
    assert_eq!(object(&subject, "pkg/m.so").dynamic.runpath, None);
}

#[test]
fn empty_segments_and_executable_stacks_go() {
    let bench = bench([Mend::EmptySegments, Mend::ExecutableStack]);
    let empty = SegmentSpec {
        segment_type: 1,
        flags: 4,
        offset: 0x400,
        address: 0x10_0400,
        file_size: 0x10,
        memory_size: 0x10,
        align: 0x1000,
    };
    let stack = SegmentSpec {
        segment_type: 0x6474_e551,
        flags: 7,
        offset: 0,
        address: 0,
        file_size: 0,
        memory_size: 0,
        align: 16,
    };
    let broken = wheel(&module(&[]).segment(empty).segment(stack));
    let subject = read(&bench.repair(&broken).expect("repaired").path);
    let mended = object(&subject, "pkg/m.so");
    assert!(mended.empty_loads().is_empty());
    assert!(!mended.executable_stack());
}

/// A wheel with a module that g++ links.
fn linked(flags: &[&str]) -> Option<TestWheel> {
    const SOURCE: &str = "#include <mutex>\n#include <sstream>\n#include <stdexcept>\n\
        static std::once_flag flag;\n\
        extern \"C\" int PyInit_m(int n) {\n\
          std::call_once(flag, [] {});\n\
          std::ostringstream out;\n\
          out << n << 1.5;\n\
          try { if (n > 100) throw std::runtime_error(out.str()); } catch (const std::exception &) { return 1; }\n\
          return static_cast<int>(out.str().size());\n\
        }\n";
    if Command::new("g++").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no g++ on this machine");
        return None;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (input, output) = (folder.path().join("m.cpp"), folder.path().join("m.so"));
    std::fs::write(&input, SOURCE).expect("a file");
    let mut command = Command::new("g++");
    command.args(["-shared", "-fPIC", "-std=c++17", "-o"]).arg(&output).arg(&input).args(flags);
    assert!(command.status().expect("g++").success());
    let module = std::fs::read(output).expect("what g++ made");
    Some(TestWheel::new("pkg", "1.0", TAGS).file("pkg/__init__.py", "").file("pkg/m.so", module))
}

fn rules_of(subject: &abiaudit_scan::Subject) -> BTreeSet<&'static str> {
    let settings = Settings { select: vec!["ABI2".to_owned()], ..Settings::default() };
    abiaudit_rules::run(&Audit::new(subject, &settings)).into_iter().map(|finding| finding.rule.id).collect()
}

#[test]
fn a_static_libstdcxx_is_shared_or_hidden() {
    let Some(plain) = linked(&["-static-libstdc++"]) else { return };
    let symbolic = linked(&["-static-libstdc++", "-Wl,-Bsymbolic"]).expect("g++");
    for (wheel, method, needs) in [(&plain, "share", true), (&symbolic, "hide", false)] {
        let bench = bench([Mend::Libstdcxx]);
        let plan = bench.plan(wheel).expect("a plan");
        let methods: Vec<&[String]> = plan.mends.iter().map(|mend| mend.mends.as_slice()).collect();
        assert_eq!(methods, [[method.to_owned()]]);
        let subject = read(&bench.repair(wheel).expect("repaired").path);
        assert_eq!(needed(object(&subject, "pkg/m.so")).contains(&"libstdc++.so.6".to_owned()), needs);
        let left = rules_of(&subject);
        assert!(!left.contains("ABI201") && !left.contains("ABI203"), "{method}: {left:?}");
        assert!(names(&subject).contains(&"pkg/__init__.py"));
    }
}

/// Of two members that ask for a symbol, only the second one loads the module: its wish counts.
#[test]
fn what_a_member_that_loads_the_copy_uses_is_not_hidden() {
    let Some(wheel) = linked(&["-static-libstdc++", "-Wl,-Bsymbolic", "-Wl,-soname,m.so"]) else { return };
    let stranger = module(&["libstdc++.so.6"]).undefined("_ZNSt6locale7classicEv");
    let user = module(&["m.so"]).undefined("_ZNSt6locale7classicEv").runpath("$ORIGIN");
    let wheel = wheel.elf("pkg/a.so", &stranger).elf("pkg/user.so", &user);
    let bench = bench([Mend::LibstdcxxBy(Method::Hide)]);
    let Err(RepairError::Incurable { reasons, .. }) = bench.repair(&wheel) else { panic!("a refusal") };
    assert!(reasons[0].1.starts_with("pkg/user.so uses _ZNSt6locale7classicEv"), "{reasons:?}");
}

#[test]
fn what_cannot_be_proved_is_refused_with_the_reason_of_each_method() {
    let Some(wheel) = linked(&["-static-libstdc++", "-static-libgcc", "-Wl,-Bsymbolic"]) else { return };
    let bench = bench([Mend::Libstdcxx]);
    let Err(error @ RepairError::Incurable { .. }) = bench.repair(&wheel) else { panic!("a refusal") };
    let text = error.to_string();
    assert!(text.contains("share: it was linked with -Bsymbolic"), "{text}");
    assert!(text.contains("hide: it has an unwinder of its own"), "{text}");
    assert!(bench.outputs().is_empty());
    let mut bench = bench;
    bench.options.mends = BTreeSet::from([Mend::LibstdcxxBy(Method::Demote)]);
    let Err(error) = bench.repair(&wheel) else { panic!("a refusal") };
    assert!(!error.to_string().contains("share"), "{error}");
}

/// A wheel without faults is copied as it is, whatever may be mended.
#[test]
fn nothing_to_mend_changes_nothing() {
    let all = [Mend::Libstdcxx, Mend::Glibc, Mend::SearchPath, Mend::EmptySegments, Mend::ExecutableStack];
    let bench = bench(all);
    let honest = ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libc.so.6");
    let wheel = TestWheel::new("pkg", "1.0", "cp312-cp312-manylinux1_x86_64.manylinux_2_5_x86_64")
        .elf("pkg/m.so", &honest);
    let repaired = bench.repair(&wheel).expect("repaired");
    assert!(repaired.unchanged);
}
