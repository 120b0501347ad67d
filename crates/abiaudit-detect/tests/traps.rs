//! What looks like a runtime and is not, or like another one: each was seen in a published wheel.

mod common;

use std::process::Command;

use abiaudit_detect::{
    BlasFamily, Carriage, CompilerKind, CxxClass, Exposure, LibCxxLinkage, OpenMpFamily, Replaces,
    UnwinderKind,
};
use abiaudit_elf::test_support::{Arch, ElfWriter, SymbolSpec};

use common::{Bench, carries_of, path_of_library, run};

const SHT_PROGBITS: u32 = 1;
const SHF_ALLOC: u64 = 2;

/// Read-only data with these texts, each ended by NUL.
fn with_texts(writer: ElfWriter, texts: &[&str]) -> ElfWriter {
    let mut bytes = vec![0];
    for text in texts {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    writer.section(".rodata", SHT_PROGBITS, SHF_ALLOC, bytes)
}

const CLASS_TYPE_INFO: &str = "N10__cxxabiv117__class_type_infoE";
const TERMINATE: &str = "terminate called after throwing an instance of '";

/// Trap (a): templates and inline functions of the headers are weak definitions of every object that uses them.
#[test]
fn weak_definitions_from_headers_are_not_a_runtime() {
    let Some(bench) = Bench::new() else { return };
    let source = include_str!("variants/module.cpp");
    let bytes = bench.compile("headers", source, &["-shared", "-fPIC", "-O0", "-std=c++17"]);
    let object = abiaudit_elf::Object::from_bytes(&bytes, &abiaudit_elf::Wants::default()).unwrap();
    let standard = object.symbols.exported().filter(|s| object.symbols.name(s).starts_with(b"_ZNSt")).count();
    assert!(standard > 200, "the module exports {standard} names in std");
    let cxx = carries_of(&bytes).cxx;
    assert_eq!((cxx.class, cxx.exported), (CxxClass::Dynamic, vec![]));
}

/// Trap (b): allocator proxies define operator new and delete, which libstdc++ has at its oldest node.
#[test]
fn an_allocator_proxy_is_not_a_runtime() {
    let mut writer = ElfWriter::new(Arch::X86_64).soname("libtbbmalloc_proxy.so.2").needed("libstdc++.so.6");
    for name in ["_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZnwmRKSt9nothrow_t", "_ZdlPvRKSt9nothrow_t"] {
        writer = writer.define(name);
    }
    let writer = writer.undefined_versioned("__cxa_throw", "libstdc++.so.6", "CXXABI_1.3");
    let carries = carries_of(writer.build().bytes());
    assert_eq!((carries.cxx.class, carries.cxx.exported), (CxxClass::Dynamic, vec![]));
    assert_eq!(carries.allocators.len(), 1);
    assert_eq!(
        (carries.allocators[0].replaces, carries.allocators[0].name),
        (Replaces::OperatorNew, Some("tbbmalloc"))
    );
}

/// Sized delete is newer than GCC 4.8, so that nonshared archives bring it; it replaces nothing (scikit-learn 1.6).
#[test]
fn a_sized_delete_is_part_of_a_runtime_and_no_allocator() {
    let writer = ElfWriter::new(Arch::X86_64).needed("libstdc++.so.6").define("_ZdlPvm");
    let carries = carries_of(writer.build().bytes());
    assert_eq!((carries.cxx.class, carries.allocators), (CxxClass::Partial, vec![]));
}

/// Trap (c): a program has copies of the variables of libstdc++ that it uses (COPY relocations).
#[test]
fn copies_of_variables_in_a_program_are_not_a_runtime() {
    let Some(bench) = Bench::new() else { return };
    let source = "#include <iostream>\nint main() { std::cout << 1; std::cerr << 2; std::clog << 3; }";
    let bytes = bench.compile("program", source, &["-no-pie", "-fno-pie"]);
    let object = abiaudit_elf::Object::from_bytes(&bytes, &abiaudit_elf::Wants::default()).unwrap();
    assert!(object.relocations.copy > 0 && !object.symbols.definitions(b"_ZSt4cout").is_empty());
    let cxx = carries_of(&bytes).cxx;
    assert_eq!((cxx.class, cxx.exported), (CxxClass::Dynamic, vec![]));
}

/// Trap (d): nonshared archives bring a few definitions at the oldest node too.
#[test]
fn old_names_from_nonshared_archives_are_not_a_whole_runtime() {
    let mut writer = ElfWriter::new(Arch::X86_64).needed("libstdc++.so.6");
    for name in [
        "_ZNSt8ios_base7failureC1ERKSs",
        "_ZNSt8ios_base7failureD0Ev",
        "_ZNKSt8ios_base7failure4whatEv",
        "_ZTINSt8ios_base7failureE",
        "_ZNSt14numeric_limitsIiE3maxEv",
        "_ZNSt21__numeric_limits_base6digitsE",
    ] {
        writer = writer.define(name);
    }
    let writer = writer.undefined_versioned("_ZSt4cout", "libstdc++.so.6", "GLIBCXX_3.4");
    assert_eq!(carries_of(writer.build().bytes()).cxx.class, CxxClass::Dynamic);
    let newer = writer.define("_ZSt28__throw_bad_array_new_lengthv").build();
    let cxx = carries_of(newer.bytes()).cxx;
    assert_eq!((cxx.class, cxx.exposure, cxx.exported.len()), (CxxClass::Partial, Exposure::Exported, 1));
}

/// Link-time optimisation makes weak definitions global: llvmlite 0.50 exports instances of std::string so.
#[test]
fn global_instances_of_templates_are_not_a_runtime() {
    let mut writer = ElfWriter::new(Arch::X86_64).needed("libstdc++.so.6");
    for name in [
        "_ZNSs7reserveEm",
        "_ZNSs12_S_constructIPKcEEPcT_S3_RKSaIcESt20forward_iterator_tag",
        "_ZNSs4_Rep11_S_terminalE",
    ] {
        writer = writer.define(name);
    }
    let writer = writer.undefined_versioned("_ZSt4cout", "libstdc++.so.6", "GLIBCXX_3.4");
    let cxx = carries_of(writer.build().bytes()).cxx;
    assert_eq!((cxx.class, cxx.exported), (CxxClass::Dynamic, vec![]));
}

/// Trap (e): Rust unwinds and walks program headers for its backtraces, and has no C++ runtime.
#[test]
fn rust_is_not_cxx() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.file("rusty.rs", "#[unsafe(no_mangle)] pub extern \"C\" fn f(n: i32) -> i32 { let v: Vec<i32> = (0..n).collect(); println!(\"{v:?}\"); v[3] }");
    let output = bench.path("librusty.so");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    run(rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-o"]).arg(&output).arg(source));
    let carries = carries_of(&std::fs::read(output).unwrap());
    assert_eq!(carries.cxx.class, CxxClass::None, "{:?}", carries.cxx.evidence);
    assert_eq!(carries.unwinder.kind, UnwinderKind::Shared);
    assert!(carries.compilers.iter().any(|c| c.kind == CompilerKind::Rustc), "{:?}", carries.compilers);
}

/// Trap (e): Go programs have nothing of the kind.
#[test]
fn go_is_not_cxx() {
    let texts = ["Go build ID: \"0Kb4ygNsFtmhiVF9k5zH/MUe\"", "runtime: mcall called on m->g0 stack"];
    let carries = carries_of(with_texts(ElfWriter::new(Arch::X86_64), &texts).build().bytes());
    assert_eq!(carries.cxx.class, CxxClass::None);
    assert_eq!(carries.unwinder.kind, UnwinderKind::None);
    assert_eq!(carries.compilers[0].kind, CompilerKind::Go);
}

/// Trap (f): a needed libstdc++ that nothing refers to (Cython modules linked by g++).
#[test]
fn an_unused_libstdcxx_is_not_cxx() {
    let Some(bench) = Bench::new() else { return };
    let source = "extern \"C\" int probe(int n) { return n + 1; }";
    let bytes = bench.compile("unused", source, &["-shared", "-fPIC", "-Wl,--no-as-needed"]);
    let cxx = carries_of(&bytes).cxx;
    assert!(cxx.needs_library);
    assert_eq!((cxx.class, cxx.exposure), (CxxClass::None, Exposure::NotApplicable));
}

/// Trap (g): libc++abi has the names of libsupc++.
#[test]
fn libcxx_is_not_libsupcxx() {
    for (namespace, name) in [("__y1", "NSt4__y112bad_weak_ptrE"), ("__1", "NSt3__112bad_weak_ptrE")] {
        let texts = [CLASS_TYPE_INFO, TERMINATE, name];
        let cxx = carries_of(with_texts(ElfWriter::new(Arch::X86_64), &texts).build().bytes()).cxx;
        let expected = CxxClass::LibCxx { namespace: namespace.to_owned(), linkage: LibCxxLinkage::Static };
        assert_eq!((cxx.class, cxx.exposure), (expected, Exposure::Hidden));
    }
    // An inline namespace that nobody has heard of, told by the facet's name.
    let texts = [CLASS_TYPE_INFO, "NSt5__own6locale5facetE", "0123456789abcdefABCDEFxX+-pPiInN"];
    let cxx = carries_of(with_texts(ElfWriter::new(Arch::Aarch64), &texts).build().bytes()).cxx;
    let own = CxxClass::LibCxx { namespace: "__own".to_owned(), linkage: LibCxxLinkage::Static };
    assert_eq!(cxx.class, own);
    // Headers alone: the library is elsewhere.
    let user =
        ElfWriter::new(Arch::X86_64).needed("libc++.so.1").symbol(SymbolSpec::undefined("_ZNSt3__14coutE"));
    let cxx = carries_of(with_texts(user, &["NSt3__112bad_weak_ptrE"]).build().bytes()).cxx;
    let dynamic = CxxClass::LibCxx { namespace: "__1".to_owned(), linkage: LibCxxLinkage::Dynamic };
    assert_eq!((cxx.class, cxx.exposure), (dynamic, Exposure::NotApplicable));
    // The same names without libc++ are libsupc++.
    let texts = [CLASS_TYPE_INFO, TERMINATE];
    let cxx = carries_of(with_texts(ElfWriter::new(Arch::X86_64), &texts).build().bytes()).cxx;
    assert_eq!(cxx.class, CxxClass::Minimal);
}

/// Trap (h): static programs have no dynamic section at all.
#[test]
fn a_static_program_has_a_hidden_runtime() {
    let Some(bench) = Bench::new() else { return };
    let source = "#include <iostream>\nint main(int n, char **) { try { throw n; } catch (int m) { std::cout << m; } }";
    let carries = carries_of(&bench.compile("static", source, &["-static", "-s"]));
    assert_eq!((carries.cxx.class, carries.cxx.exposure), (CxxClass::Full, Exposure::Hidden));
    assert_eq!(carries.unwinder.kind, UnwinderKind::Private, "{:?}", carries.unwinder);
}

/// Trap (i): a static library with its own libstdc++ inside of an object that needs the shared one.
#[test]
fn needed_and_static_at_once() {
    let Some(bench) = Bench::new() else { return };
    let inner = bench.path("inner.o");
    let source = bench.file("inner.cpp", include_str!("variants/module.cpp"));
    let object = bench.path("inner-1.o");
    run(Command::new("g++").args(["-c", "-fPIC", "-std=c++17", "-o"]).arg(&object).arg(source));
    // One relocatable file with the whole library, all of it local but the entry.
    let mut ld = Command::new("ld");
    run(ld.arg("-r").arg("-o").arg(&inner).arg(&object).arg(path_of_library("libstdc++.a")));
    run(Command::new("objcopy").arg("--keep-global-symbol=probe").arg(&inner));
    let outer = "#include <iostream>\nextern \"C\" int probe(int); extern \"C\" void outer() { std::cout << probe(1); }";
    // objcopy leaves what is UNIQUE.
    let script = bench.file("both.map", "{ global: outer; local: *; };");
    let script = format!("-Wl,--version-script={script}");
    let bytes = bench.compile("both", outer, &["-shared", "-fPIC", inner.to_str().unwrap(), &script]);
    let cxx = carries_of(&bytes).cxx;
    assert_eq!((cxx.class, cxx.exposure), (CxxClass::FullAndNeeded, Exposure::Hidden), "{:?}", cxx.evidence);
    assert!(cxx.needs_library && cxx.references > 0);
}

/// Trap (j): names of environment variables prove nothing.
#[test]
fn environment_variables_are_not_a_runtime() {
    let texts = [
        "GOMP_SPINCOUNT",
        "  GOMP_SPINCOUNT = '%lu'",
        "KMP_AFFINITY",
        "KMP_DUPLICATE_LIB_OK",
        "OPENBLAS_NUM_THREADS",
        "GOTO_NUM_THREADS",
        "MKL_NUM_THREADS",
        "GFORTRAN_UNBUFFERED_PRECONNECTED",
    ];
    let carries = carries_of(with_texts(ElfWriter::new(Arch::X86_64), &texts).build().bytes());
    assert_eq!((carries.openmp, carries.blas, carries.fortran), (vec![], vec![], vec![]));
}

/// Trap (k): section headers can be stripped; nothing may depend on them.
#[test]
fn stripped_section_headers_change_nothing() {
    let Some(bench) = Bench::new() else { return };
    let source = include_str!("variants/module.cpp");
    let flags = [
        "-shared",
        "-fPIC",
        "-std=c++17",
        "-static-libstdc++",
        "-static-libgcc",
        "-Wl,--exclude-libs,ALL",
        "-s",
    ];
    let mut bytes = bench.compile("sections", source, &flags);
    let before = carries_of(&bytes);
    // ELF64: e_shoff at 40, e_shentsize, e_shnum and e_shstrndx at 58.
    bytes[40..48].fill(0);
    bytes[58..64].fill(0);
    let after = carries_of(&bytes);
    assert_eq!(before.cxx.class, CxxClass::Full);
    assert_eq!((after.cxx, after.unwinder), (before.cxx, before.unwinder));
}

/// One witness is not enough, and two from one translation unit are one.
#[test]
fn one_text_does_not_make_a_runtime() {
    for texts in [
        &["NSt6locale5facetE"][..],
        &["-+xX0123456789abcdef0123456789ABCDEF"],
        &[CLASS_TYPE_INFO],
        &[TERMINATE],
    ] {
        let cxx = carries_of(with_texts(ElfWriter::new(Arch::X86_64), texts).build().bytes()).cxx;
        assert_eq!(cxx.class, CxxClass::None, "{texts:?}");
    }
    let texts = ["NSt6locale5facetE", "-+xX0123456789abcdef0123456789ABCDEF"];
    let cxx = carries_of(with_texts(ElfWriter::new(Arch::S390x), &texts).build().bytes()).cxx;
    assert_eq!((cxx.class, cxx.exposure), (CxxClass::Full, Exposure::Hidden));
}

/// Debug information and symbol tables are not the program's own texts.
#[test]
fn texts_that_are_not_loaded_do_not_count() {
    let texts = b"\0NSt6locale5facetE\0-+xX0123456789abcdef0123456789ABCDEF\0";
    let file = ElfWriter::new(Arch::X86_64).section(".debug_str", SHT_PROGBITS, 0, texts).build();
    assert_eq!(carries_of(file.bytes()).cxx.class, CxxClass::None);
}

/// LLVM's and Intel's runtime exports GNU's interface too.
#[test]
fn an_exporter_of_gomp_is_not_always_libgomp() {
    let with = |kmpc: usize, gomp: usize, omp: usize| {
        let mut writer = ElfWriter::new(Arch::X86_64);
        for (prefix, count) in [("__kmpc_", kmpc), ("GOMP_", gomp), ("omp_", omp)] {
            for i in 0..count {
                writer = writer.define(format!("{prefix}{i}"));
            }
        }
        writer
    };
    let family = |writer: ElfWriter| {
        let found = carries_of(writer.build().bytes()).openmp;
        found.first().map(|openmp| (openmp.family, openmp.carriage))
    };
    assert_eq!(
        family(with(0, 130, 120).soname("libgomp.so.1")),
        Some((OpenMpFamily::Libgomp, Carriage::Library))
    );
    assert_eq!(
        family(with(600, 100, 120).soname("libiomp5.so")),
        Some((OpenMpFamily::Libiomp5, Carriage::Library))
    );
    assert_eq!(
        family(with(0, 7, 200).soname("libiompstubs5.so")),
        Some((OpenMpFamily::Stubs, Carriage::Library))
    );
    let intel =
        with_texts(with(600, 100, 120).soname("libown.so"), &["@(#) Intel(R) OMP version: 5.0.20240320"]);
    assert_eq!(family(intel), Some((OpenMpFamily::Libiomp5, Carriage::Exports)));
    assert_eq!(family(with(600, 100, 120)), Some((OpenMpFamily::LibompOrLibiomp5, Carriage::Exports)));
    assert_eq!(family(with(3, 5, 0)), None, "a few shims are no runtime");
}

/// What renames its routines cannot collide; what does not can.
#[test]
fn spellings_of_blas_are_told_apart() {
    for (symbols, plain) in [
        (["scipy_dgemm_64_", "scipy_cblas_dgemm64_", "scipy_openblas_get_config64_"], false),
        (["dgemm_64_", "cblas_dgemm64_", "openblas_get_config64_"], false),
        (["dgemm_", "cblas_dgemm", "openblas_get_config"], true),
    ] {
        let mut writer = ElfWriter::new(Arch::X86_64).soname("libown.so");
        for symbol in symbols {
            writer = writer.define(symbol);
        }
        let blas = carries_of(writer.build().bytes()).blas;
        assert_eq!(
            (blas.len(), blas[0].family, blas[0].carriage),
            (1, BlasFamily::OpenBlas, Carriage::Exports)
        );
        assert_eq!(blas[0].interfaces.len(), 1);
        assert_eq!(blas[0].interfaces[0].is_plain(), plain, "{symbols:?}");
    }
}
