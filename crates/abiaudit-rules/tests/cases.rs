//! What people reported, each as the smallest wheel that shows it: abiaudit must say so. `docs/cases.md` lists them
//! with links; a test keeps page and functions in step. A function is named by tracker and number of the report.

use std::collections::BTreeSet;

use abiaudit_policy::Overlay;
use abiaudit_rules::{Audit, Finding, Settings, Severity, run};
use abiaudit_scan::{Options, Subject, scan};
use abiaudit_testing::{Arch, ElfWriter, SegmentSpec, SymbolSpec, TestWheel};

const X86_64: &str = "cp312-cp312-manylinux_2_28_x86_64";

/// A wheel on disk, read.
fn read(wheel: &TestWheel) -> Subject {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = wheel.write(directory.path());
    scan(&path, &Options::default()).expect("a readable wheel").remove(0)
}

fn findings_with(wheel: &TestWheel, settings: &Settings) -> Vec<Finding> {
    run(&Audit::new(&read(wheel), settings))
}

fn findings(wheel: &TestWheel) -> Vec<Finding> {
    findings_with(wheel, &Settings::default())
}

fn verdict(wheel: &TestWheel) -> String {
    Audit::new(&read(wheel), &Settings::default()).verdict.expect("native code").tag
}

/// The findings of one rule.
fn of<'f>(findings: &'f [Finding], rule: &str) -> Vec<&'f Finding> {
    findings.iter().filter(|f| f.rule.id == rule).collect()
}

fn the<'f>(findings: &'f [Finding], rule: &str) -> &'f Finding {
    let found = of(findings, rule);
    assert_eq!(found.len(), 1, "{rule} in {findings:#?}");
    found[0]
}

fn errors(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|f| f.severity == Severity::Error).collect()
}

fn module() -> ElfWriter {
    ElfWriter::new(Arch::X86_64).needed("libc.so.6").define("PyInit_mod")
}

fn wheel(tags: &str, elf: &ElfWriter) -> TestWheel {
    TestWheel::new("pkg", "1.0", tags).elf("pkg/mod.so", elf)
}

// ---- Explain why

#[test]
fn auditwheel_36_names_the_symbol_that_is_too_new() {
    let elf = module().undefined_versioned("pthread_create", "libc.so.6", "GLIBC_2.34");
    let found = findings(&wheel(X86_64, &elf));
    let finding = the(&found, "ABI101");
    assert_eq!(finding.member.as_deref(), Some("pkg/mod.so"));
    assert_eq!(finding.evidence[0].symbol.as_deref(), Some("pthread_create"));
    assert_eq!(finding.evidence[0].version.as_deref(), Some("GLIBC_2.34"));
    assert_eq!(finding.evidence[0].library.as_deref(), Some("libc.so.6"));
}

#[test]
fn auditwheel_354_says_which_of_several_files_wants_it() {
    let old = module().undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14");
    let new = ElfWriter::new(Arch::X86_64).needed("libc.so.6").define("PyInit_other").undefined_versioned(
        "fcntl64",
        "libc.so.6",
        "GLIBC_2.28",
    );
    let wheel = wheel("cp312-cp312-manylinux_2_17_x86_64", &old).elf("pkg/other.so", &new);
    let found = findings(&wheel);
    assert_eq!(the(&found, "ABI101").member.as_deref(), Some("pkg/other.so"));
}

#[test]
fn auditwheel_675_names_every_library_that_decides() {
    let elf = module().needed("libfoo.so.1").needed("libbar.so.2").undefined_versioned(
        "f",
        "libc.so.6",
        "GLIBC_2.36",
    );
    let found = findings(&wheel(X86_64, &elf));
    let text = format!("{found:?}");
    assert!(
        text.contains("libfoo.so.1") && text.contains("libbar.so.2") && text.contains("GLIBC_2.36"),
        "{text}"
    );
}

#[test]
fn auditwheel_608_knows_that_cuda_is_not_the_system() {
    let elf = module().needed("libcudart.so.12").needed("libcuda.so.1");
    let wheel = wheel(X86_64, &elf).requires("nvidia-cuda-runtime-cu12==12.4.127");
    let subject = read(&wheel);
    let settings = Settings::default();
    let audit = Audit::new(&subject, &settings);
    let class = |soname: &str| {
        audit.externals.iter().find(|e| e.soname == soname).map(|e| e.origin.class()).unwrap_or_default()
    };
    assert_eq!(
        (class("libcudart.so.12"), class("libcuda.so.1"), class("libc.so.6")),
        ("provider", "driver", "system")
    );
    assert!(audit.verdict.as_ref().is_some_and(|v| v.claim_ok));
}

#[test]
fn auditwheel_431_finds_a_symbol_that_nobody_provides() {
    let found = findings(&wheel(X86_64, &module().undefined("ucol_open_60")));
    let finding = the(&found, "ABI402");
    assert_eq!(finding.severity, Severity::Error);
    assert!(finding.evidence.iter().any(|e| e.symbol.as_deref() == Some("ucol_open_60")));
}

// ---- False verdicts

#[test]
fn auditwheel_647_looks_at_bundled_libraries_too() {
    let library = ElfWriter::new(Arch::Aarch64)
        .needed("libc.so.6")
        .soname("libfoo-0a1b2c3d.so.1")
        .define("foo")
        .undefined("__cxa_thread_atexit_impl");
    let elf = ElfWriter::new(Arch::Aarch64)
        .needed("libfoo-0a1b2c3d.so.1")
        .needed("libc.so.6")
        .rpath("$ORIGIN/../pkg.libs")
        .define("PyInit_mod");
    let wheel =
        wheel("cp312-cp312-manylinux_2_17_aarch64", &elf).elf("pkg.libs/libfoo-0a1b2c3d.so.1", &library);
    let found = findings(&wheel);
    assert!(
        errors(&found).iter().any(|f| f.member.as_deref() == Some("pkg.libs/libfoo-0a1b2c3d.so.1")),
        "{found:#?}"
    );
}

#[test]
fn auditwheel_663_does_not_count_weak_references() {
    let mut symbol = SymbolSpec::undefined("zcfree");
    symbol.info = 0x20;
    let found = findings(&wheel(X86_64, &module().needed("libz.so.1").symbol(symbol)));
    assert!(of(&found, "ABI104").is_empty(), "{found:#?}");
}

#[test]
fn auditwheel_645_allows_libmvec_where_the_policy_does() {
    let elf =
        module().needed("libmvec.so.1").undefined_versioned("_ZGVbN2v_sin", "libmvec.so.1", "GLIBC_2.22");
    assert!(errors(&findings(&wheel(X86_64, &elf))).is_empty());
    assert!(!errors(&findings(&wheel("cp312-cp312-manylinux_2_17_x86_64", &elf))).is_empty());
}

#[test]
fn auditwheel_272_sees_that_a_symbol_is_asked_of_the_wrong_library() {
    let elf = ElfWriter::new(Arch::X86_64).needed("libc.so.6").define("PyInit_mod").undefined_versioned(
        "lgammaf_r",
        "libc.so.6",
        "GLIBC_2.2.5",
    );
    let found = findings(&wheel("cp312-cp312-manylinux_2_17_x86_64", &elf));
    let finding = the(&found, "ABI102");
    assert!(format!("{finding:?}").contains("libm.so.6"), "{finding:#?}");
}

#[test]
fn auditwheel_634_reports_an_executable_stack() {
    let found = findings(&wheel(X86_64, &module().stack(7)));
    assert_eq!(the(&found, "ABI501").severity, Severity::Error);
}

#[test]
fn auditwheel_395_holds_the_file_suffix_against_the_abi_tag() {
    let wheel = TestWheel::new("pkg", "1.0", "cp38-abi3-manylinux_2_28_x86_64")
        .elf("pkg/mod.cpython-312-x86_64-linux-gnu.so", &module());
    assert_eq!(of(&findings(&wheel), "ABI617").len(), 1);
}

#[test]
fn auditwheel_23_finds_an_interpreter_inside_an_extension() {
    let names =
        ["Py_Initialize", "Py_Main", "PyEval_EvalCode", "PyObject_Call", "PyType_Type", "_Py_NoneStruct"];
    let mut elf = names.iter().fold(module(), |elf, name| elf.define(*name));
    for i in 0..400 {
        elf = elf.define(format!("PyObject_Function{i}"));
    }
    assert_eq!(of(&findings(&wheel(X86_64, &elf)), "ABI619").len(), 1);
}

#[test]
fn auditwheel_589_reports_libpython_as_a_need() {
    let found = findings(&wheel(X86_64, &module().needed("libpython3.12.so.1.0")));
    assert!(!of(&found, "ABI619").is_empty(), "{found:#?}");
}

#[test]
fn auditwheel_535_reads_the_declared_processor_level() {
    let elf = module().property(0xc000_8002, 0x7);
    let found = findings(&wheel(X86_64, &elf));
    assert_eq!(the(&found, "ABI107").severity, Severity::Error);
    assert_eq!(verdict(&wheel(X86_64, &elf)), "linux_x86_64");
}

#[test]
fn auditwheel_598_bundles_what_the_user_wants_bundled() {
    let overlay: Overlay = toml::from_str(
        "[[libraries]]\nsoname = 'libexpat.so.1'\naction = 'bundle'\nreason = 'CVE response must be ours'",
    )
    .expect("an overlay");
    let mut settings = Settings::default();
    settings.policies = settings.policies.with_overlay(&overlay).expect("a valid overlay");
    let wheel = wheel(X86_64, &module().needed("libexpat.so.1"));
    assert!(errors(&findings(&wheel)).is_empty());
    let found = findings_with(&wheel, &settings);
    let text = format!("{:?}", errors(&found));
    assert!(text.contains("CVE response must be ours"), "{found:#?}");
}

#[test]
fn auditwheel_144_allows_a_library_of_a_farm_of_its_own() {
    let overlay: Overlay =
        toml::from_str("[[libraries]]\nsoname = 'libfarm.so.*'\naction = 'allow'\nreason = 'on every node'")
            .expect("toml");
    let mut settings = Settings::default();
    settings.policies = settings.policies.with_overlay(&overlay).expect("a valid overlay");
    let wheel = wheel(X86_64, &module().needed("libfarm.so.3"));
    assert!(!errors(&findings(&wheel)).is_empty());
    assert!(errors(&findings_with(&wheel, &settings)).is_empty());
}

#[test]
fn auditwheel_531_finds_libraries_inside_the_wheel() {
    let elf = module().needed("libinner.so.1").runpath("$ORIGIN/lib");
    let library = ElfWriter::new(Arch::X86_64).soname("libinner.so.1").define("inner");
    let wheel = wheel(X86_64, &elf).elf("pkg/lib/libinner.so.1", &library);
    assert!(errors(&findings(&wheel)).is_empty());
}

#[test]
fn auditwheel_737_does_not_hand_runpath_down() {
    let a = ElfWriter::new(Arch::X86_64).soname("liba.so").needed("libb.so").define("a");
    let b = ElfWriter::new(Arch::X86_64).soname("libb.so").define("b");
    let with = |elf: ElfWriter| {
        wheel(X86_64, &elf.needed("liba.so")).elf("pkg/libs/liba.so", &a).elf("pkg/libs/libb.so", &b)
    };
    assert_eq!(verdict(&with(module().runpath("$ORIGIN/libs"))), "linux_x86_64");
    assert_eq!(verdict(&with(module().rpath("$ORIGIN/libs"))), "manylinux_2_5_x86_64");
}

#[test]
fn auditwheel_571_says_that_it_does_not_know_an_architecture() {
    let elf = ElfWriter::new(Arch::X86_64).machine(8).define("PyInit_mod");
    let found = findings(&wheel("cp312-cp312-linux_mips64", &elf));
    let text: String = found.iter().map(|f| f.message.clone()).collect();
    assert!(text.contains("mips"), "{found:#?}");
}

#[test]
fn auditwheel_333_does_not_judge_by_a_folder_name() {
    let wheel = TestWheel::new("pkg", "1.0", X86_64).elf("pkg/purelib/mod.so", &module());
    assert!(errors(&findings(&wheel)).is_empty());
    let wheel = TestWheel::new("pkg", "1.0", X86_64).elf("pkg-1.0.data/purelib/mod.so", &module());
    assert!(!of(&findings(&wheel), "ABI605").is_empty());
}

#[test]
fn auditwheel_731_knows_glibc_newer_than_the_newest_policy() {
    let elf = module().undefined_versioned("pthread_gettid_np", "libc.so.6", "GLIBC_2.42");
    assert_eq!(verdict(&wheel("cp312-cp312-linux_x86_64", &elf)), "manylinux_2_42_x86_64");
}

// ---- Mis-tagged wheels that reached the index

#[test]
fn cibuildwheel_343_a_tag_older_than_the_content() {
    let elf = module().undefined_versioned("getrandom", "libc.so.6", "GLIBC_2.25");
    let found = findings(&wheel("cp312-cp312-manylinux1_x86_64", &elf));
    assert!(the(&found, "ABI601").message.contains("manylinux_2_26"), "{found:#?}");
}

#[test]
fn xgrammar_821_a_reference_without_version_needs_the_symbol_all_the_same() {
    let stream = "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev";
    let elf = module().needed("libstdc++.so.6").undefined(stream);
    let found = findings(&wheel(X86_64, &elf));
    let finding = the(&found, "ABI101");
    assert_eq!(finding.evidence[0].symbol.as_deref(), Some(stream));
    assert_eq!(finding.evidence[0].version.as_deref(), Some("GLIBCXX_3.4.26"));
}

#[test]
fn xberg_1495_a_vendored_runtime_newer_than_the_tag() {
    let runtime = ElfWriter::new(Arch::X86_64)
        .soname("libstdc++-0a1b2c3d.so.6.0.33")
        .needed("libc.so.6")
        .define("_ZSt4cout")
        .undefined_versioned("__isoc23_strtoul", "libc.so.6", "GLIBC_2.38");
    let elf = module().needed("libstdc++-0a1b2c3d.so.6.0.33").rpath("$ORIGIN/../pkg.libs");
    let wheel = wheel(X86_64, &elf).elf("pkg.libs/libstdc++-0a1b2c3d.so.6.0.33", &runtime);
    let found = findings(&wheel);
    assert_eq!(the(&found, "ABI101").member.as_deref(), Some("pkg.libs/libstdc++-0a1b2c3d.so.6.0.33"));
}

#[test]
fn pytorch_160425_a_newer_glibc_on_aarch64() {
    let elf = ElfWriter::new(Arch::Aarch64).needed("libm.so.6").define("PyInit_mod").undefined_versioned(
        "exp",
        "libm.so.6",
        "GLIBC_2.29",
    );
    let found = findings(&wheel("py3-none-manylinux_2_17_aarch64", &elf));
    assert_eq!(of(&found, "ABI101").len(), 1);
}

#[test]
fn sqlite_vec_0_1_6_one_of_several_tags_is_false() {
    let elf = module().undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.14");
    let tags = "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.manylinux1_x86_64";
    let found = findings(&wheel(tags, &elf));
    assert_eq!(of(&found, "ABI601").len(), 1);
    assert!(the(&found, "ABI601").message.contains("manylinux1"), "{found:#?}");
}

#[test]
fn triton_3_9_0_a_plugin_that_counts_on_its_importer() {
    let library =
        ElfWriter::new(Arch::X86_64).soname("libtriton.so").needed("libc.so.6").define("PyInit_libtriton");
    let plugin = ElfWriter::new(Arch::X86_64).needed("libtriton.so").needed("libc.so.6").define("plugin");
    let wheel = TestWheel::new("triton", "3.9.0", X86_64)
        .elf("triton/_C/libtriton.so", &library)
        .elf("triton/plugins/libplugin.so", &plugin);
    let found = findings(&wheel);
    let finding = the(&found, "ABI406");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(format!("{finding:?}").contains("triton/_C/libtriton.so"));
    assert!(errors(&found).is_empty(), "{found:#?}");
}

// ---- The ecosystem's threads

#[test]
fn sglang_30562_a_torch_extension_that_does_not_require_torch() {
    let elf = module().needed("libc10.so").needed("libtorch_cpu.so");
    let found = findings(&wheel(X86_64, &elf));
    let undeclared = of(&found, "ABI408");
    assert_eq!(undeclared.len(), 2, "{found:#?}");
    assert!(undeclared.iter().all(|f| f.message.contains("torch")), "{found:#?}");
    assert!(errors(&findings(&wheel(X86_64, &elf).requires("torch>=2.0"))).is_empty());
}

#[test]
fn rego_cpp_226_a_symbol_that_musl_does_not_have() {
    let elf = ElfWriter::new(Arch::X86_64)
        .needed("libc.musl-x86_64.so.1")
        .define("PyInit_mod")
        .undefined("__cxa_thread_atexit_impl");
    let found = findings(&wheel("cp312-cp312-musllinux_1_2_x86_64", &elf));
    assert!(
        the(&found, "ABI102")
            .evidence
            .iter()
            .any(|e| e.symbol.as_deref() == Some("__cxa_thread_atexit_impl"))
    );
}

#[test]
fn ctranslate2_1849_an_executable_stack_on_a_new_glibc() {
    let found = findings(&wheel(X86_64, &module().stack(7)));
    assert!(the(&found, "ABI501").message.contains("stack"));
}

#[test]
fn pytorch_53597_pages_of_4k_on_aarch64() {
    let elf = ElfWriter::new(Arch::Aarch64).needed("libc.so.6").define("PyInit_mod").load_align(0x1000);
    let found = findings(&wheel("cp312-cp312-manylinux_2_28_aarch64", &elf));
    assert_eq!(the(&found, "ABI504").severity, Severity::Error);
}

#[test]
fn uccl_1038_a_version_need_whose_library_was_renamed() {
    let mut elf = module().needed("libibverbs-0a1b2c3d.so.1").rpath("$ORIGIN");
    let index = elf.need_version("libibverbs.so.1", "IBVERBS_1.1");
    let mut symbol = SymbolSpec::undefined("ibv_open_device");
    symbol.version = index;
    let library = ElfWriter::new(Arch::X86_64).soname("libibverbs-0a1b2c3d.so.1").define("ibv_open_device");
    let wheel = wheel(X86_64, &elf.symbol(symbol)).elf("pkg/libibverbs-0a1b2c3d.so.1", &library);
    assert_eq!(the(&findings(&wheel), "ABI405").severity, Severity::Error);
}

#[test]
fn torch_2_1_0_a_search_path_that_depends_on_the_current_directory() {
    let library = ElfWriter::new(Arch::X86_64)
        .soname("libgomp-0a1b2c3d.so.1")
        .needed("libc.so.6")
        .rpath("torch.libs")
        .define("GOMP_parallel");
    let elf = module().needed("libgomp-0a1b2c3d.so.1").rpath("$ORIGIN/../torch.libs");
    let wheel = TestWheel::new("torch", "2.1.0", X86_64)
        .elf("torch/mod.so", &elf)
        .elf("torch.libs/libgomp-0a1b2c3d.so.1", &library);
    assert_eq!(the(&findings(&wheel), "ABI404").member.as_deref(), Some("torch.libs/libgomp-0a1b2c3d.so.1"));
}

#[test]
fn torch_2_15_0_a_runtime_that_nothing_needs() {
    let library = ElfWriter::new(Arch::X86_64)
        .soname("libgfortran.so.5")
        .needed("libquadmath.so.0")
        .needed("libc.so.6")
        .define("_gfortran_st_write");
    let wheel = TestWheel::new("torch", "2.15.0", X86_64)
        .elf("torch/mod.so", &module())
        .elf("torch/lib/libgfortran.so.5", &library);
    let found = findings(&wheel);
    assert_eq!(the(&found, "ABI407").member.as_deref(), Some("torch/lib/libgfortran.so.5"));
    assert!(format!("{found:?}").contains("libquadmath.so.0"));
}

#[test]
fn auditwheel_716_a_file_that_will_not_survive_strip() {
    // A PT_LOAD that no section falls into is what strip rewrites into something that glibc refuses.
    let elf = module().segment(SegmentSpec {
        segment_type: 1,
        flags: 4,
        address: 0x20_0000,
        offset: 0,
        file_size: 64,
        memory_size: 64,
        align: 0x1000,
    });
    let found = findings(&wheel(X86_64, &elf));
    assert_eq!(of(&found, "ABI503").len(), 1, "{found:#?}");
}

#[test]
fn wheel_400_links_that_became_copies() {
    let library = ElfWriter::new(Arch::X86_64).soname("libtbb.so.12").build_id(&[7; 20]).define("tbb");
    let elf = module().needed("libtbb.so.12").rpath("$ORIGIN/lib");
    let wheel = ["libtbb.so", "libtbb.so.12", "libtbb.so.12.3"]
        .iter()
        .fold(wheel(X86_64, &elf), |wheel, name| wheel.elf(&format!("pkg/lib/{name}"), &library));
    assert_eq!(of(&findings(&wheel), "ABI616").len(), 1);
}

#[test]
fn invest_2483_a_wheel_that_has_grown_beyond_its_budget() {
    let settings = Settings { size_budget: Some(1000), ..Settings::default() };
    let noise: Vec<u8> = (0..20_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let wheel = wheel(X86_64, &module()).file("pkg/model.bin", noise);
    assert_eq!(of(&findings_with(&wheel, &settings), "ABI615").len(), 1);
}

#[test]
fn pytorch_38624_a_wheel_retagged_by_hand() {
    let elf = module().undefined_versioned("pthread_create", "libc.so.6", "GLIBC_2.34");
    let wheel = wheel("cp312-cp312-manylinux2014_x86_64", &elf).wheel_tags(&["cp312-cp312-linux_x86_64"]);
    let found = findings(&wheel);
    assert!(!of(&found, "ABI101").is_empty() && !of(&found, "ABI607").is_empty(), "{found:#?}");
}

#[test]
fn the_page_and_the_functions_are_in_step() {
    let page = include_str!("../../../docs/cases.md");
    let is_name = |t: &&str| {
        t.contains('_') && t.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let listed: BTreeSet<&str> = page.split('`').filter(is_name).collect();
    let sources = [include_str!("cases.rs"), include_str!("../../abiaudit-edit/tests/cases.rs")];
    let functions = |source: &'static str| {
        let lines = source.lines().zip(source.lines().skip(1));
        let tests = lines.filter(|(attribute, _)| *attribute == "#[test]");
        tests.filter_map(|(_, line)| line.strip_prefix("fn ")?.split('(').next())
    };
    let defined: BTreeSet<&str> =
        sources.into_iter().flat_map(functions).filter(|name| !name.starts_with("the_page")).collect();
    assert_eq!(listed, defined);
}
