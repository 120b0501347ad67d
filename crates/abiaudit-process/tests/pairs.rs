//! Pairs of distributions that collide, and the traps: pairs that look as if they did. The traps were each seen in published
//! wheels.

mod common;

use std::path::Path;
use std::process::Command;

use abiaudit_detect::OpenMpFamily;
use abiaudit_process::{Collision, Grade, OpenMpUse};
use abiaudit_testing::{Arch, ElfWriter, SymbolSpec, TestWheel};
use common::{Inputs, TAGS};

const DT_FLAGS: i64 = 30;
const DF_STATIC_TLS: u64 = 0x10;
const SHT_PROGBITS: u32 = 1;
const SHF_ALLOC: u64 = 2;

fn elf() -> ElfWriter {
    ElfWriter::new(Arch::X86_64)
}

/// A module that needs libraries and calls functions.
fn module(needed: &[&str], calls: &[&str]) -> ElfWriter {
    let writer = needed.iter().fold(elf().define("PyInit_m"), ElfWriter::needed);
    calls.iter().fold(writer.runpath("$ORIGIN"), ElfWriter::undefined)
}

fn library(soname: &str, defines: &[&str]) -> ElfWriter {
    defines.iter().fold(elf().soname(soname), ElfWriter::define)
}

fn wheel(name: &str, module: &ElfWriter, libraries: &[(&str, ElfWriter)]) -> TestWheel {
    let wheel = TestWheel::new(name, "1", TAGS).elf(&format!("{name}/m.so"), module);
    libraries.iter().fold(wheel, |wheel, (file, library)| wheel.elf(&format!("{name}/{file}"), library))
}

/// An OpenMP runtime by what it exports.
fn openmp(soname: &str) -> ElfWriter {
    let intel = soname.starts_with("libiomp5") || soname.starts_with("libomp");
    let counts = if intel { [("__kmpc_f", 100), ("GOMP_f", 50)] } else { [("__kmpc_f", 0), ("GOMP_f", 100)] };
    let numbered = counts.iter().flat_map(|(start, count)| (0..*count).map(move |n| format!("{start}{n}")));
    let functions = ["__kmpc_fork_call", "GOMP_parallel", "omp_get_max_threads"];
    let functions =
        functions.iter().filter(|name| intel || !name.starts_with("__kmpc")).map(|n| (*n).to_owned());
    numbered.chain(functions).fold(elf().soname(soname), ElfWriter::define)
}

fn openmp_wheel(name: &str, soname: &str, call: &str) -> TestWheel {
    wheel(name, &module(&[soname], &[call]), &[(soname, openmp(soname))])
}

/// Two OpenMP runtimes, as a test wants to see them.
fn openmp_pairs(found: &[Collision]) -> Vec<(OpenMpFamily, OpenMpFamily, OpenMpUse, Grade)> {
    let pair = |collision: &Collision| match collision {
        Collision::OpenMp { first, second, used } => {
            Some((first.family, second.family, *used, collision.grade()))
        }
        _ => None,
    };
    found.iter().filter_map(pair).collect()
}

#[test]
fn libomp_and_libiomp5_end_the_process_in_either_order() {
    use OpenMpFamily::{Libiomp5, Libomp};
    let inputs = Inputs::new(&[
        openmp_wheel("a", "libomp.so", "__kmpc_fork_call"),
        openmp_wheel("b", "libiomp5.so", "__kmpc_fork_call"),
    ]);
    let lab = inputs.lab();
    assert_eq!(openmp_pairs(&lab.import(&["a", "b"])), [(Libomp, Libiomp5, OpenMpUse::Both, Grade::Broken)]);
    assert_eq!(openmp_pairs(&lab.import(&["b", "a"])), [(Libiomp5, Libomp, OpenMpUse::Both, Grade::Broken)]);
    assert!(lab.import(&["a"]).is_empty());
}

/// Error #15 comes from the second that starts; where the first serves all, none does.
#[test]
fn a_runtime_that_serves_nobody_does_not_start() {
    let inputs = Inputs::new(&[
        openmp_wheel("a", "libomp.so", "__kmpc_fork_call"),
        openmp_wheel("b", "libiomp5.so", "__kmpc_fork_call"),
    ]);
    let (_, found) = inputs.lab().open(&[("a", true), ("b", false)]);
    let [(_, _, used, grade)] = openmp_pairs(&found)[..] else { panic!("{found:?}") };
    assert!(matches!(used, OpenMpUse::TakenOver { .. }), "{used:?}");
    assert_eq!(grade, Grade::Duplicated);
}

#[test]
fn two_libgomp_are_slow_and_one_soname_is_one_runtime() {
    let gomp = |name, soname| openmp_wheel(name, soname, "GOMP_parallel");
    let different = Inputs::new(&[gomp("a", "libgomp-1a2b3c4d.so.1"), gomp("b", "libgomp-e985bcbb.so.1")]);
    let found = openmp_pairs(&different.lab().import(&["a", "b"]));
    let expected = (OpenMpFamily::Libgomp, OpenMpFamily::Libgomp, OpenMpUse::Both, Grade::Performance);
    assert_eq!(found, [expected]);
    let same = Inputs::new(&[gomp("a", "libgomp-e985bcbb.so.1"), gomp("b", "libgomp-e985bcbb.so.1")]);
    assert_eq!(same.lab().import(&["a", "b"]), []);
}

/// libgomp of the system has a table.
#[test]
fn the_systems_libgomp_beside_a_vendored_one() {
    let unvendored = wheel("a", &module(&["libgomp.so.1"], &["GOMP_parallel"]), &[]);
    let inputs = Inputs::new(&[unvendored, openmp_wheel("b", "libgomp-e985bcbb.so.1", "GOMP_parallel")]);
    let lab = inputs.lab();
    let found = lab.import(&["a", "b"]);
    let [Collision::OpenMp { first, second, used: OpenMpUse::Both }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (lab.name(first.object), lab.name(second.object)),
        ("libgomp.so.1", "b/libgomp-e985bcbb.so.1")
    );
    assert_eq!(first.user.map(|user| lab.name(user)), Some("a/m.so"));
}

/// What has libunwind before libgcc_s pulls in a libgcc_s that calls it: exceptions of others crash.
#[test]
fn an_unwinder_that_comes_first_serves_libgcc_s() {
    let llvm =
        library("libunwind.so.1", &["_Unwind_SetGR", "_Unwind_SetIP", "_Unwind_GetCFA", "_Unwind_Resume"]);
    let with = |needed: &[&str]| {
        wheel("a", &module(needed, &["_Unwind_Resume"]), &[("libunwind.so.1", llvm.clone())])
    };
    let innocent = wheel("b", &module(&["libstdc++.so.6", "libgcc_s.so.1"], &["__cxa_throw"]), &[]);
    let first = Inputs::new(&[with(&["libunwind.so.1", "libgcc_s.so.1"]), innocent.clone()]);
    let lab = first.lab();
    let found = lab.import(&["a", "b"]);
    let [Collision::UnwinderInterposed { unwinder, provider, symbols }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((lab.name(*unwinder), lab.name(*provider)), ("libgcc_s.so.1", "a/libunwind.so.1"));
    assert!(symbols.contains(&"_Unwind_SetGR".to_owned()), "{symbols:?}");
    // The other way round libgcc_s is there already and serves itself.
    assert_eq!(lab.import(&["b", "a"]), []);
    let last = Inputs::new(&[with(&["libgcc_s.so.1", "libunwind.so.1"]), innocent]);
    assert_eq!(last.lab().import(&["a", "b"]), []);
}

#[test]
fn exceptions_of_one_runtime_that_the_other_serves() {
    let abi = library("libc++abi.so.1", &["__cxa_throw", "__cxa_begin_catch", "_ZTISt9exception"]);
    let gnu = ["_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm", "__cxa_throw"];
    let user = |needed: &[&str]| wheel("a", &module(needed, &gnu), &[("libc++abi.so.1", abi.clone())]);
    let llvm = wheel(
        "b",
        &module(&["libc++abi.so.1"], &["_ZNSt3__14coutE", "__cxa_throw"]),
        &[("libc++abi.so.1", abi.clone())],
    );
    let before = Inputs::new(&[user(&["libc++abi.so.1", "libstdc++.so.6"]), llvm.clone()]);
    let lab = before.lab();
    let found = lab.import(&["a", "b"]);
    let users = found.iter().map(|collision| match collision {
        Collision::CxxAbis { user, provider, .. } => (lab.name(*user), lab.name(*provider)),
        other => panic!("{other:?}"),
    });
    let users: Vec<_> = users.collect();
    assert_eq!(users.iter().filter(|pair| **pair == ("a/m.so", "a/libc++abi.so.1")).count(), 1, "{users:?}");
    assert!(found.iter().all(|collision| collision.grade() == Grade::Broken));
    // Each with its own: two C++ libraries in a process are no collision.
    let apart = Inputs::new(&[user(&["libstdc++.so.6"]), llvm]);
    assert_eq!(apart.lab().import(&["a", "b"]), []);
}

#[test]
fn a_plain_blas_in_the_global_scope_serves_the_users_of_another() {
    let blas = |soname| library(soname, &["dgemm_", "ddot_"]);
    let user = |name, soname, call: &str| wheel(name, &module(&[soname], &[call]), &[(soname, blas(soname))]);
    let inputs = Inputs::new(&[user("a", "libone.so", "dgemm_"), user("b", "libother.so", "dgemm_")]);
    let lab = inputs.lab();
    assert_eq!(lab.import(&["a", "b"]), [], "local scopes keep them apart");
    let (_, found) = lab.open(&[("a", true), ("b", false)]);
    let [Collision::Blas { user, meant, provider, symbols }] = &found[..] else { panic!("{found:?}") };
    let names = [user, meant, provider].map(|object| lab.name(*object));
    assert_eq!(
        (names, &symbols[..]),
        (["b/m.so", "b/libother.so", "a/libone.so"], &["dgemm_".to_owned()][..])
    );
    // Names that are changed cannot collide, nor can the parts of MKL.
    let renamed = library("libother.so", &["scipy_dgemm_"]);
    let renamed = wheel("b", &module(&["libother.so"], &["scipy_dgemm_"]), &[("libother.so", renamed)]);
    let inputs = Inputs::new(&[
        wheel("a", &module(&["libone.so"], &["dgemm_"]), &[("libone.so", blas("libone.so"))]),
        renamed,
    ]);
    assert_eq!(inputs.lab().open(&[("a", true), ("b", false)]).1, []);
    let mkl = |name, soname| wheel(name, &module(&[soname], &["dgemm_"]), &[(soname, blas(soname))]);
    let inputs = Inputs::new(&[mkl("a", "libmkl_rt.so.2"), mkl("b", "libmkl_intel_lp64.so.2")]);
    assert_eq!(inputs.lab().open(&[("a", true), ("b", false)]).1, []);
}

#[test]
fn static_storage_of_all_adds_up() {
    let greedy = |name, size| {
        let module = module(&[], &["memcpy"]).tls(size, 16).dynamic(DT_FLAGS, DF_STATIC_TLS);
        wheel(name, &module, &[])
    };
    let inputs = Inputs::new(&[greedy("a", 1000), greedy("b", 700), greedy("c", 600)]);
    let lab = inputs.lab();
    let found = lab.import(&["a", "b"]);
    let [Collision::StaticTls { bytes: 1712, objects }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(objects.len(), 2);
    assert_eq!(lab.import(&["a", "c"]), [], "1616 bytes");
    let musl = |name: &str| {
        let module = module(&[], &["memcpy"]).tls(5000, 16).dynamic(DT_FLAGS, DF_STATIC_TLS);
        TestWheel::new(name, "1", "cp312-cp312-musllinux_1_2_x86_64").elf(&format!("{name}/m.so"), &module)
    };
    assert_eq!(Inputs::new(&[musl("a"), musl("b")]).lab().import(&["a", "b"]), []);
}

#[test]
fn fortran_runtimes_of_two_names() {
    let fortran = |name, soname: &str| {
        let runtime = library(soname, &["_gfortran_st_write"]);
        wheel(name, &module(&[soname], &["_gfortran_st_write"]), &[(soname, runtime)])
    };
    let one = "libgfortran-040039e1.so.5.0.0";
    let inputs = Inputs::new(&[fortran("a", one), fortran("b", "libgfortran-83c28eba.so.5.0.0")]);
    let found = inputs.lab().import(&["a", "b"]);
    let [Collision::DuplicateRuntime { family: "libgfortran", objects }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((objects.len(), found[0].grade()), (2, Grade::Duplicated));
    let same = Inputs::new(&[fortran("a", one), fortran("b", one)]);
    assert_eq!(same.lab().import(&["a", "b"]), []);
}

#[test]
fn a_partial_runtime_harms_only_from_the_global_scope() {
    let part = module(&["libstdc++.so.6"], &["_ZSt4cout"]).define("_ZSt28__throw_bad_array_new_lengthv");
    let user = module(&["libstdc++.so.6"], &["_ZSt28__throw_bad_array_new_lengthv"]);
    let inputs = Inputs::new(&[wheel("a", &part, &[]), wheel("b", &user, &[])]);
    let lab = inputs.lab();
    assert_eq!(lab.import(&["a", "b"]), [], "exported, and local");
    let (_, found) = lab.open(&[("a", true), ("b", false)]);
    let [Collision::PartialInGlobalScope { object, symbols }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((lab.name(*object), symbols.len()), ("a/m.so", 1));
    assert_eq!(found[0].grade(), Grade::Differs);
}

/// Nothing above duplicated state, in either order, locally and globally.
fn assert_silent(wheels: &[TestWheel], why: &str) {
    let inputs = Inputs::new(wheels);
    let lab = inputs.lab();
    for global in [false, true] {
        for order in [["a", "b"], ["b", "a"]] {
            let (_, found) = lab.open(&order.map(|name| (name, global)));
            let bad: Vec<_> =
                found.iter().filter(|collision| collision.grade() > Grade::Performance).collect();
            assert!(bad.is_empty(), "{why}, {order:?} global {global}: {bad:?}");
        }
    }
}

/// A module that uses the system's libstdc++ through and through.
fn ordinary() -> TestWheel {
    let calls = ["_ZNSolsEi", "__once_proxy", "_ZSt11__once_call", "__cxa_throw", "_ZNKSt6locale2id5_M_idEv"];
    wheel("b", &module(&["libstdc++.so.6", "libgcc_s.so.1"], &calls), &[])
}

fn weak(name: &str) -> SymbolSpec {
    SymbolSpec { info: 0x22, ..SymbolSpec::function(name) }
}

fn unique(name: &str) -> SymbolSpec {
    SymbolSpec { info: 0xa1, ..SymbolSpec::function(name) }
}

/// Trap (a): templates and inline functions of headers are weak definitions of every object that uses them, and facets of a
/// program's own iterators are UNIQUE too.
#[test]
fn header_code_is_silent() {
    let own_facet = "_ZNSt7num_putIcPcE2idE";
    let headers = module(&["libstdc++.so.6"], &["_ZNSolsEi", own_facet, "_ZNKSt6locale2id5_M_idEv"])
        .symbol(weak("_ZNSt6vectorIiSaIiEE9push_backERKi"))
        .symbol(unique(own_facet))
        .symbol(unique("_ZZNSt19_Sp_make_shared_tag5_S_tiEvE5__tag"));
    assert_silent(&[wheel("a", &headers, &[]), ordinary()], "header code");
    // An implicit instance of a standard facet has its id in the object and its number from libstdc++.
    let standard = "_ZNSt7num_putIcSt19ostreambuf_iteratorIcSt11char_traitsIcEEE2idE";
    let implicit = module(&["libstdc++.so.6"], &["_ZNSolsEi", standard, "_ZNKSt6locale2id5_M_idEv"]);
    assert_silent(&[wheel("a", &implicit.symbol(unique(standard)), &[]), ordinary()], "implicit instance");
}

/// Trap (b): allocators define operator new and delete.
#[test]
fn allocators_are_silent() {
    let names = ["_Znwm", "_ZdlPv", "_ZnwmRKSt9nothrow_t", "malloc", "free", "calloc", "realloc"];
    let proxy = names.iter().fold(module(&["libstdc++.so.6"], &["__cxa_throw"]), ElfWriter::define);
    assert_silent(&[wheel("a", &proxy, &[]), ordinary()], "an allocator");
}

/// Trap (d): nonshared archives bring a few definitions at the oldest node.
#[test]
fn old_names_of_nonshared_archives_are_silent() {
    let names =
        ["_ZNSt8ios_base7failureC1ERKSs", "_ZTINSt8ios_base7failureE", "_ZNSt14numeric_limitsIiE3maxEv"];
    let old = names.iter().fold(module(&["libstdc++.so.6"], &["_ZSt4cout"]), ElfWriter::define);
    assert_silent(&[wheel("a", &old, &[]), ordinary()], "old names");
}

/// Trap (e): Rust and Go unwind, and have no C++ runtime.
#[test]
fn rust_is_silent() {
    let rust = module(&["libgcc_s.so.1"], &["_Unwind_Resume", "_Unwind_Backtrace", "dl_iterate_phdr"]);
    assert_silent(&[wheel("a", &rust, &[]), ordinary()], "Rust");
}

/// Trap (f): a libstdc++ that is needed and not used.
#[test]
fn an_unused_libstdcxx_is_silent() {
    assert_silent(&[wheel("a", &module(&["libstdc++.so.6"], &["memcpy"]), &[]), ordinary()], "unused");
}

/// Trap (j): names of environment variables.
#[test]
fn texts_alone_are_silent() {
    let texts = b"\0GOMP_SPINCOUNT\0KMP_AFFINITY\0KMP_DUPLICATE_LIB_OK\0OPENBLAS_NUM_THREADS\0";
    let texts = module(&[], &["memcpy"]).section(".rodata", SHT_PROGBITS, SHF_ALLOC, texts);
    let openmp = openmp_wheel("b", "libiomp5.so", "__kmpc_fork_call");
    assert_silent(&[wheel("a", &texts, &[]), openmp], "texts");
}

/// Builds with g++; `None` without it.
fn compiled(steps: &[&[&str]], sources: &[(&str, &str)]) -> Option<Vec<u8>> {
    Command::new("g++").arg("--version").output().ok()?;
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in sources {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    for step in steps {
        let [program, args @ ..] = step else { continue };
        run(folder.path(), program, args);
    }
    Some(std::fs::read(folder.path().join("m.so")).expect("m.so"))
}

fn run(folder: &Path, program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).current_dir(folder).output().expect("a program");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

const MODULE: &str = include_str!("collisions/module.cpp");

fn with_module(bytes: Vec<u8>) -> TestWheel {
    TestWheel::new("a", "1", TAGS).file("a/m.so", bytes)
}

/// Traps (h) and (c): programs have processes of their own, static ones and those with COPY relocations.
#[test]
#[allow(clippy::print_stderr, reason = "a skipped test must say so")]
fn programs_are_not_part_of_the_process() {
    let source = [("p.cpp", "#include <iostream>\nint main() { std::cout << 1; }")];
    for flags in [&["-static"][..], &["-no-pie", "-fno-pie"]] {
        let step = [&["g++", "p.cpp", "-o", "m.so"][..], flags].concat();
        let Some(program) = compiled(&[&step], &source) else {
            eprintln!("SKIPPED: there is no g++ on this machine");
            return;
        };
        let module = module(&["libstdc++.so.6"], &["_ZSt4cout"]);
        let wheel = wheel("a", &module, &[]).program("a-1.data/scripts/p", program);
        assert_silent(&[wheel, ordinary()], "a program");
    }
}

/// Trap (i): a hidden libstdc++ inside of an object that needs the shared one; trap (k): without section headers.
#[test]
#[allow(clippy::print_stderr, reason = "a skipped test must say so")]
fn a_hidden_copy_beside_a_needed_one_is_silent() {
    let archive = Command::new("g++").arg("-print-file-name=libstdc++.a").output();
    let Ok(archive) = archive else {
        eprintln!("SKIPPED: there is no g++ on this machine");
        return;
    };
    let archive = String::from_utf8_lossy(&archive.stdout).trim().to_owned();
    let outer = "#include <iostream>\nextern \"C\" int inner_m(int); extern \"C\" void PyInit_m() { std::cout << inner_m(1); }";
    let inner = MODULE.replace("PyInit_m", "inner_m");
    let steps: [&[&str]; 4] = [
        &["g++", "-c", "-fPIC", "-std=c++17", "-o", "1.o", "inner.cpp"],
        &["ld", "-r", "-o", "inner.o", "1.o", &archive],
        &["objcopy", "--keep-global-symbol=inner_m", "inner.o"],
        &["g++", "-shared", "-fPIC", "outer.cpp", "inner.o", "-o", "m.so", "-Wl,--version-script=hide.map"],
    ];
    let sources =
        [("outer.cpp", outer), ("inner.cpp", &inner), ("hide.map", "{ global: PyInit_m; local: *; };")];
    let Some(mut bytes) = compiled(&steps, &sources) else { return };
    assert_silent(&[with_module(bytes.clone()), ordinary()], "hidden and needed");
    // ELF64: e_shoff at 40, e_shentsize, e_shnum and e_shstrndx at 58.
    bytes[40..48].fill(0);
    bytes[58..64].fill(0);
    assert_silent(&[with_module(bytes), ordinary()], "without section headers");
}

/// Trap (g): LLVM's runtime, hidden, has the names of GNU's in its texts.
#[test]
fn a_hidden_libcxx_is_silent() {
    let texts = b"\0N10__cxxabiv117__class_type_infoE\0terminate called after throwing an instance of '\0NSt3__112bad_weak_ptrE\0";
    let hidden =
        module(&[], &["memcpy", "dl_iterate_phdr"]).section(".rodata", SHT_PROGBITS, SHF_ALLOC, texts);
    assert_silent(&[wheel("a", &hidden, &[]), ordinary()], "libc++");
}

/// A private unwinder harms nobody until C++ calls cross.
#[test]
#[allow(clippy::print_stderr, reason = "a skipped test must say so")]
fn a_private_unwinder_where_cxx_calls_cross() {
    let flags = ["-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL"];
    let step = [&["g++", "-shared", "-fPIC", "-std=c++17", "m.cpp", "-o", "m.so"][..], &flags].concat();
    let source = format!("{MODULE}\nvoid thrower() {{ throw 1; }}\n");
    let Some(bytes) = compiled(&[&step], &[("m.cpp", &source)]) else {
        eprintln!("SKIPPED: there is no g++ on this machine");
        return;
    };
    let apart = Inputs::new(&[with_module(bytes.clone()), ordinary()]);
    assert_eq!(apart.lab().import(&["a", "b"]), [], "nobody calls it");
    let caller =
        wheel("b", &module(&["libstdc++.so.6", "libgcc_s.so.1"], &["_Z7throwerv", "_ZSt4cout"]), &[]);
    let inputs = Inputs::new(&[with_module(bytes), caller]);
    let lab = inputs.lab();
    let (_, found) = lab.open(&[("a", true), ("b", false)]);
    let [Collision::PrivateUnwinder { object, other, symbol }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((lab.name(*object), lab.name(*other), symbol.as_str()), ("a/m.so", "b/m.so", "_Z7throwerv"));
    assert_eq!(found[0].grade(), Grade::Crosses);
}
