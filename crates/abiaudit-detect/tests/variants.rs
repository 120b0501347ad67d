//! Objects built on the spot by the machine's g++ in every way that matters, and what is said of them.

mod common;

use abiaudit_detect::{CxxClass, Exposure, OncePair, Replaces, UnwinderKind};

use common::{Bench, carries_of, library_of_compiler};

const MODULE: &str = include_str!("variants/module.cpp");

/// Everything but `probe` is local.
const HIDE_ALL: &str = "{ global: probe; local: *; };";
/// What many projects write: hides C++ names, and leaves `__once_proxy`, which has C linkage.
const HIDE_STD: &str = "{ global: *; local: extern \"C++\" { std::*; }; };";
/// Hides the facet ids alone.
const HIDE_IDS: &str = "{ global: *; local: _ZNSt*2idE; _ZGVNSt*2idE; };";

struct Expected {
    class: CxxClass,
    exposure: Exposure,
    once: OncePair,
    ids: std::ops::RangeInclusive<usize>,
    unwinder: UnwinderKind,
}

/// A whole libstdc++ whose facet ids are exported.
fn exported(unwinder: UnwinderKind) -> Expected {
    // GCC 12 has 40 ids of binding UNIQUE; other releases some more or less.
    let (class, exposure, once) = (CxxClass::Full, Exposure::Exported, OncePair::Both);
    Expected { class, exposure, once, ids: 30..=60, unwinder }
}

/// A whole libstdc++ that shows nothing.
fn hidden(unwinder: UnwinderKind) -> Expected {
    let (class, exposure, once) = (CxxClass::Full, Exposure::Hidden, OncePair::Neither);
    Expected { class, exposure, once, ids: 0..=0, unwinder }
}

#[test]
fn static_libstdcxx_is_told_by_its_exposure() {
    use UnwinderKind::{Private, Shared};
    let Some(bench) = Bench::new() else { return };
    let stat = "-static-libstdc++";
    let all = bench.file("all.map", HIDE_ALL);
    let std = bench.file("std.map", HIDE_STD);
    let ids = bench.file("ids.map", HIDE_IDS);
    let script = |path: &str| format!("-Wl,--version-script={path}");
    let (all, std, ids) = (script(&all), script(&std), script(&ids));
    let without_ids = Expected { ids: 0..=0, ..exported(Shared) };
    let torn = Expected {
        class: CxxClass::Full,
        exposure: Exposure::HalfHidden,
        once: OncePair::ProxyOnly,
        ids: 0..=0,
        unwinder: Shared,
    };
    let dynamic = || Expected {
        class: CxxClass::Dynamic,
        exposure: Exposure::NotApplicable,
        once: OncePair::Neither,
        ids: 0..=0,
        unwinder: Shared,
    };
    // How the module is compiled, and how the objects are linked.
    let plain: &[&str] = &[];
    let hidden_names: &[&str] = &["-fvisibility=hidden", "-fvisibility-inlines-hidden"];
    let compiled = [plain, hidden_names, &["-fno-gnu-unique"], &["-ffunction-sections"]];
    let objects = compiled.map(|flags| {
        let flags = [flags, &["-fPIC", "-std=c++17"]].concat();
        bench.object(&format!("module{}", flags.concat()), MODULE, &flags)
    });
    let [plain, hidden_names, no_unique, sections] = &objects;
    let exclude = "-Wl,--exclude-libs,ALL";
    let variants: Vec<(&str, &str, Vec<&str>, Expected)> = vec![
        ("dynamic", plain, vec![], dynamic()),
        ("dynamic-hidden", hidden_names, vec![], dynamic()),
        ("static", plain, vec![stat], exported(Shared)),
        ("static-libgcc", plain, vec![stat, "-static-libgcc"], exported(Private)),
        ("visibility", hidden_names, vec![stat], exported(Shared)),
        ("no-gnu-unique", no_unique, vec![stat], exported(Shared)),
        ("gc-sections", sections, vec![stat, "-Wl,--gc-sections"], exported(Shared)),
        ("symbolic", plain, vec![stat, "-Wl,-Bsymbolic"], exported(Shared)),
        ("symbolic-functions", plain, vec![stat, "-Wl,-Bsymbolic-functions"], exported(Shared)),
        ("exclude-libs", plain, vec![stat, exclude], hidden(Shared)),
        ("exclude-libs-stripped", plain, vec![stat, exclude, "-s"], hidden(Shared)),
        ("exclude-libs-libgcc", plain, vec![stat, exclude, "-static-libgcc"], hidden(Private)),
        ("version-script", plain, vec![stat, &all], hidden(Shared)),
        ("version-script-libgcc", plain, vec![stat, &all, "-static-libgcc"], hidden(Private)),
        ("version-script-std", plain, vec![stat, &std], torn),
        ("version-script-ids", plain, vec![stat, &ids], without_ids),
    ];
    for (name, object, flags, expected) in variants {
        let carries = carries_of(&bench.link(name, object, &flags));
        let cxx = &carries.cxx;
        let evidence = || cxx.evidence.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(cxx.class, expected.class, "{name}: {:#?}", evidence());
        assert_eq!(cxx.exposure, expected.exposure, "{name}: {:#?}", evidence());
        assert_eq!(cxx.once, expected.once, "{name}");
        let ids = cxx.unique_facet_ids.len();
        assert!(expected.ids.contains(&ids), "{name}: {ids} facet ids");
        assert_eq!(carries.unwinder.kind, expected.unwinder, "{name}: {:?}", carries.unwinder);
        assert_eq!(carries.allocators, [], "{name}: a libstdc++'s own operator new replaces nothing else");
    }
}

#[test]
fn the_library_itself_is_vendored() {
    let Some(_) = Bench::new() else { return };
    let carries = carries_of(&library_of_compiler("libstdc++.so.6"));
    assert_eq!(carries.cxx.class, CxxClass::Vendored);
    assert_eq!(carries.cxx.exposure, Exposure::Exported);
    assert!(carries.cxx.unique_facet_ids.len() > 30);
    let unwinder = carries_of(&library_of_compiler("libgcc_s.so.1")).unwinder;
    assert_eq!((unwinder.kind, unwinder.exported), (UnwinderKind::Library, true));
}

#[test]
fn exceptions_without_streams_are_minimal() {
    let Some(bench) = Bench::new() else { return };
    let source =
        "extern \"C\" int probe(int n) { try { if (n) throw n; } catch (int m) { return m; } return 0; }";
    let flags = ["-shared", "-fPIC", "-static-libstdc++", "-static-libgcc"];
    let hidden = carries_of(&bench.compile(
        "minimal",
        source,
        &[&flags[..], &["-Wl,--exclude-libs,ALL", "-s"]].concat(),
    ));
    assert_eq!(hidden.cxx.class, CxxClass::Minimal, "{:?}", hidden.cxx.evidence);
    assert_eq!(hidden.cxx.exposure, Exposure::Hidden);
    assert_eq!(hidden.unwinder.kind, UnwinderKind::Private);
    let shown = carries_of(&bench.compile("minimal-exported", source, &flags));
    assert_eq!((shown.cxx.class, shown.cxx.exposure), (CxxClass::Minimal, Exposure::Exported));
}

/// What a nonshared archive adds, by the names it adds: built under their assembler names.
#[test]
fn a_newer_part_is_partial() {
    let Some(bench) = Bench::new() else { return };
    let part = "extern \"C\" __attribute__((VISIBILITY)) void part() __asm__(\"_ZSt28__throw_bad_array_new_lengthv\");\n\
                extern \"C\" void part() { __builtin_trap(); }\n\
                #include <iostream>\n\
                extern \"C\" void probe() { std::cout << 1; part(); }";
    for (visibility, exposure) in [("default", Exposure::Exported), ("hidden", Exposure::Hidden)] {
        let source = part.replace("VISIBILITY", &format!("visibility(\"{visibility}\")"));
        let carries = carries_of(&bench.compile(visibility, &source, &["-shared", "-fPIC"]));
        assert_eq!(
            (&carries.cxx.class, carries.cxx.exposure),
            (&CxxClass::Partial, exposure),
            "{visibility}"
        );
    }
    let source = part.replace("VISIBILITY", "visibility(\"hidden\")");
    let stripped = carries_of(&bench.compile("stripped", &source, &["-shared", "-fPIC", "-s"]));
    assert_eq!(stripped.cxx.class, CxxClass::Dynamic, "a hidden part of a stripped object leaves no trace");
}

#[test]
fn malloc_and_operator_new_are_replaced_by_their_exporters() {
    let Some(bench) = Bench::new() else { return };
    let source = "#include <cstddef>\n#include <new>\n\
        extern \"C\" void *malloc(size_t) { return nullptr; }\n\
        extern \"C\" void free(void *) {}\n\
        void *operator new(size_t) { return nullptr; }\n\
        void operator delete(void *) noexcept {}";
    let carries = carries_of(&bench.compile("allocator", source, &["-shared", "-fPIC"]));
    let replaced: Vec<_> = carries.allocators.iter().map(|allocator| allocator.replaces).collect();
    assert_eq!(replaced, [Replaces::Malloc, Replaces::OperatorNew]);
    // Visibility would not do: g++ knows these functions and gives them the default one.
    let script = format!("-Wl,--version-script={}", bench.file("none.map", "{ local: *; };"));
    let carries = carries_of(&bench.compile("hidden", source, &["-shared", "-fPIC", &script]));
    assert_eq!(carries.allocators, [], "nobody else sees it");
}
