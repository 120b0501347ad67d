//! External libraries of many kinds come into a wheel, or stay outside for a reason.

mod support;

use abiaudit_repair::{Include, RepairError};
use abiaudit_testing::{Arch, ElfWriter, TestWheel};
use support::{
    Bench, TAGS, content, exports, library, module, module_for, names, needed, object, only, read, rpath,
    wheel,
};

#[test]
fn a_library_and_what_it_needs() {
    let bench = Bench::new();
    bench
        .library("/usr/lib/libfoo.so.1.2", &library("libfoo.so.1").needed("libbar.so.3"))
        .link("/usr/lib/libfoo.so.1", "libfoo.so.1.2")
        .library("/opt/lib/libbar.so.3", &library("libbar.so.3").runpath("/opt/lib:$ORIGIN"))
        .file("/etc/ld.so.conf", "/opt/lib\n");
    let repaired =
        bench.repair(&wheel(&module(&["libfoo.so.1"]).runpath("/build/lib:$ORIGIN/sub"))).expect("repaired");
    assert_eq!(
        repaired.path.file_name().and_then(|name| name.to_str()),
        Some("pkg-1.0-cp312-cp312-manylinux1_x86_64.manylinux_2_5_x86_64.whl")
    );
    let subject = read(&repaired.path);
    let (foo, bar) =
        (only(&subject, "pkg.libs/libfoo-", ".so.1.2"), only(&subject, "pkg.libs/libbar-", ".so.3"));
    let base = |member: &str| member.rsplit('/').next().expect("a name").to_owned();
    let module = object(&subject, "pkg/m.so");
    assert_eq!(needed(module), ["libc.so.6", &base(foo)]);
    // What leads to a place in the wheel stays, the build tree goes.
    assert_eq!(rpath(module).as_deref(), Some("$ORIGIN/sub:$ORIGIN/../pkg.libs"));
    let copy = object(&subject, foo);
    assert_eq!(needed(copy), ["libc.so.6", &base(bar)]);
    assert_eq!(copy.dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text), Some(base(foo)));
    assert_eq!(rpath(copy).as_deref(), Some("$ORIGIN"));
    assert_eq!(rpath(object(&subject, bar)), None);
    let text = content(&repaired.path, "pkg-1.0.dist-info/WHEEL");
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(
        text.ends_with("Tag: cp312-cp312-manylinux1_x86_64\nTag: cp312-cp312-manylinux_2_5_x86_64\n"),
        "{text}"
    );
}

#[test]
fn versions_follow_the_library() {
    let bench = Bench::new();
    bench.library("/usr/lib/libfoo.so.1", &library("libfoo.so.1").define_versioned("f", "FOO_1"));
    let module = module(&["libfoo.so.1"]).undefined_versioned("f", "libfoo.so.1", "FOO_1");
    let repaired = bench.repair(&wheel(&module)).expect("repaired");
    let subject = read(&repaired.path);
    let name = only(&subject, "pkg.libs/", "").trim_start_matches("pkg.libs/");
    let module = object(&subject, "pkg/m.so");
    let libraries: Vec<String> = module.versions.needs.iter().map(|need| need.library.to_text()).collect();
    assert_eq!(libraries, [name]);
}

#[test]
fn a_foreign_architecture_from_a_sysroot() {
    for (arch, tag, expected) in [
        (Arch::Aarch64, "aarch64", "manylinux2014_aarch64.manylinux_2_17_aarch64"),
        (Arch::S390x, "s390x", "manylinux2014_s390x.manylinux_2_17_s390x"),
        (Arch::Riscv64, "riscv64", "manylinux_2_31_riscv64"),
        (Arch::I686, "i686", "manylinux1_i686.manylinux_2_5_i686"),
    ] {
        let bench = Bench::new();
        bench
            // Of the machine that builds: passed over.
            .library("/lib/libfoo.so.1", &library("libfoo.so.1"))
            .library(
                "/usr/lib/libfoo.so.1",
                &ElfWriter::new(if tag == "x" { Arch::X86_64 } else { arch })
                    .soname("libfoo.so.1")
                    .needed("libc.so.6"),
            );
        let wheel = TestWheel::new("pkg", "1.0", &format!("cp312-cp312-linux_{tag}"))
            .elf("pkg/m.so", &module_for(arch, &["libfoo.so.1"]));
        let repaired = bench.repair(&wheel).expect("repaired");
        assert!(
            repaired.path.to_string_lossy().ends_with(&format!("-{expected}.whl")),
            "{}",
            repaired.path.display()
        );
        let subject = read(&repaired.path);
        assert_eq!(rpath(object(&subject, "pkg/m.so")).as_deref(), Some("$ORIGIN/../pkg.libs"));
    }
}

#[test]
fn two_files_of_one_soname() {
    let bench = Bench::new();
    bench
        .library("/a/libfoo.so.1", &library("libfoo.so.1").define("one"))
        .library("/b/libfoo.so.1", &library("libfoo.so.1").define("two"));
    let wheel = TestWheel::new("pkg", "1.0", TAGS)
        .elf("pkg/a.so", &module(&["libfoo.so.1"]).define("PyInit_a").runpath("/a"))
        .elf("pkg/b.so", &module(&["libfoo.so.1"]).define("PyInit_b").rpath("/b"));
    let repaired = bench.repair(&wheel).expect("repaired");
    let subject = read(&repaired.path);
    let defines = |member: &str, symbol: &str| {
        let needed = needed(object(&subject, member));
        let library = object(&subject, &format!("pkg.libs/{}", needed.last().expect("a library")));
        exports(library, symbol)
    };
    assert!(defines("pkg/a.so", "one") && defines("pkg/b.so", "two"));
}

#[test]
fn no_soname_links_and_one_file_under_two_names() {
    let bench = Bench::new();
    bench
        .library("/usr/lib/foo-real.so", &ElfWriter::new(Arch::X86_64).needed("libc.so.6"))
        .link("/usr/lib/libfoo.so.1", "foo-real.so")
        .link("/usr/lib/libfoo.so", "libfoo.so.1");
    let wheel = wheel(&module(&["libfoo.so.1"])).elf("pkg/n.so", &module(&["libfoo.so"]).define("PyInit_n"));
    let repaired = bench.repair(&wheel).expect("repaired");
    let subject = read(&repaired.path);
    let member = only(&subject, "pkg.libs/foo-real-", ".so");
    let name = member.trim_start_matches("pkg.libs/");
    for user in ["pkg/m.so", "pkg/n.so"] {
        assert_eq!(needed(object(&subject, user)), ["libc.so.6", name]);
    }
    assert!(object(&subject, member).dynamic.soname.as_ref().is_some_and(|soname| *soname == name));
}

#[test]
fn libpython_goes_and_is_never_grafted() {
    let bench = Bench::new();
    bench.library("/usr/lib/libpython3.12.so.1.0", &library("libpython3.12.so.1.0"));
    let plan = bench.plan(&wheel(&module(&["libpython3.12.so.1.0"]))).expect("a plan");
    assert_eq!(plan.grafts, []);
    assert!(plan.notes.iter().any(|note| note.contains("libpython3.12.so.1.0")), "{:?}", plan.notes);
    let repaired = bench.repair(&wheel(&module(&["libpython3.12.so.1.0"]))).expect("repaired");
    assert_eq!(needed(object(&read(&repaired.path), "pkg/m.so")), ["libc.so.6"]);
}

#[test]
fn what_others_bring_stays_outside() {
    let mut bench = Bench::new();
    bench.library("/usr/lib/libexcluded.so.1", &library("libexcluded.so.1"));
    bench.options.exclude = vec!["libexcl*.so.?".to_owned()];
    let module = module(&["libcudart.so.12", "libcuda.so.1", "libexcluded.so.1"]);
    let plan = bench.plan(&wheel(&module).requires("nvidia-cuda-runtime-cu12")).expect("a plan");
    assert_eq!((plan.grafts.len(), plan.edits.len()), (0, 0));
    assert_eq!(plan.target.as_deref(), Some("manylinux_2_5_x86_64"));
    assert!(plan.notes.iter().any(|note| note.contains("nvidia-cuda-runtime-cu12")), "{:?}", plan.notes);
    // A path can be excluded too.
    bench.options.exclude = vec!["*/root/usr/lib/*".to_owned()];
    let error = bench.plan(&wheel(&support::module(&["libexcluded.so.1"]))).expect_err("nobody brings it");
    assert!(error.to_string().contains("libexcluded.so.1"), "{error}");
}

#[test]
fn missing_libraries_are_named_all_at_once() {
    let bench = Bench::new();
    let error = bench.repair(&wheel(&module(&["libnowhere.so.1", "libneither.so.2"]))).expect_err("missing");
    let RepairError::Missing(missing) = &error else { panic!("{error}") };
    let sonames: Vec<&str> = missing.iter().map(|library| library.soname.as_str()).collect();
    assert_eq!(sonames, ["libneither.so.2", "libnowhere.so.1"]);
    let text = error.to_string();
    assert!(text.contains("pkg/m.so") && text.contains("/usr/lib") && text.contains("--exclude"), "{text}");
    assert_eq!(bench.outputs(), Vec::<String>::new());
}

#[test]
fn no_graft_makes_the_c_library_older() {
    let bench = Bench::new();
    bench.library("/usr/lib/libstdc++.so.6", &library("libstdc++.so.6"));
    let module = module(&["libstdc++.so.6"]).undefined_versioned("dlopen", "libc.so.6", "GLIBC_2.34");
    let mut bench = bench;
    bench.options.platform = Some("manylinux_2_28".to_owned());
    let error = bench.repair(&wheel(&module)).expect_err("too new");
    assert!(
        matches!(&error, RepairError::Blocked { target, .. } if target == "manylinux_2_28_x86_64"),
        "{error}"
    );
    assert!(error.to_string().contains("dlopen GLIBC_2.34 of libc.so.6"), "{error}");
    bench.options.platform = None;
    let plan = bench.plan(&wheel(&module)).expect("a newer target has it");
    assert_eq!((plan.grafts.len(), plan.target.as_deref()), (0, Some("manylinux_2_34_x86_64")));
}

#[test]
fn the_fewest_copies_decide() {
    // libexpat is on systems from manylinux_2_12 on, so that manylinux_2_5 would cost a copy.
    let bench = Bench::new();
    bench.library("/usr/lib/libexpat.so.1", &library("libexpat.so.1"));
    let mut bench = bench;
    let plan = bench.plan(&wheel(&module(&["libexpat.so.1"]))).expect("a plan");
    assert_eq!((plan.grafts.len(), plan.target.as_deref()), (0, Some("manylinux_2_12_x86_64")));
    bench.options.platform = Some("manylinux1_x86_64".to_owned());
    let plan = bench.plan(&wheel(&module(&["libexpat.so.1"]))).expect("a plan");
    assert_eq!((plan.grafts.len(), plan.target.as_deref()), (1, Some("manylinux_2_5_x86_64")));
}

#[test]
fn programs_among_the_scripts_move() {
    let bench = Bench::new();
    bench.library("/usr/lib/libfoo.so.1", &library("libfoo.so.1"));
    let program = ElfWriter::new(Arch::X86_64)
        .object_type(2)
        .interpreter("/lib64/ld-linux-x86-64.so.2")
        .needed("libfoo.so.1");
    let program = program.needed("libc.so.6").build();
    let wheel = TestWheel::new("pkg", "1.0", "py3-none-linux_x86_64")
        .program("pkg-1.0.data/scripts/tool", program.bytes());
    let repaired = bench.repair(&wheel).expect("repaired");
    let subject = read(&repaired.path);
    assert_eq!(rpath(object(&subject, "pkg.scripts/tool")).as_deref(), Some("$ORIGIN/../pkg.libs"));
    let launcher = content(&repaired.path, "pkg-1.0.data/scripts/tool");
    let launcher = String::from_utf8(launcher).expect("UTF-8");
    assert!(launcher.starts_with("#!python\n") && launcher.contains("'pkg.scripts/tool'"), "{launcher}");
    let executable =
        |name: &str| subject.members.iter().any(|member| member.name == name && member.executable);
    assert!(executable("pkg-1.0.data/scripts/tool") && executable("pkg.scripts/tool"));
}

#[test]
fn a_member_outside_site_packages_cannot_reach_a_copy() {
    let bench = Bench::new();
    bench.library("/usr/lib/libfoo.so.1", &library("libfoo.so.1"));
    let wheel =
        TestWheel::new("pkg", "1.0", TAGS).elf("pkg-1.0.data/data/lib/m.so", &module(&["libfoo.so.1"]));
    assert!(matches!(bench.repair(&wheel), Err(RepairError::Unplaceable { .. })));
    // The same module in platlib is in site-packages.
    let wheel =
        TestWheel::new("pkg", "1.0", TAGS).elf("pkg-1.0.data/platlib/pkg/m.so", &module(&["libfoo.so.1"]));
    let repaired = bench.repair(&wheel).expect("repaired");
    let subject = read(&repaired.path);
    assert_eq!(
        rpath(object(&subject, "pkg-1.0.data/platlib/pkg/m.so")).as_deref(),
        Some("$ORIGIN/../pkg.libs")
    );
}

#[test]
fn plug_ins_and_libraries_given_by_hand() {
    let mut bench = Bench::new();
    bench
        .library("/usr/lib/libfoo.so.1", &library("libfoo.so.1"))
        .library(
            "/elsewhere/plugin.so",
            &ElfWriter::new(Arch::X86_64).needed("libfoo.so.1").needed("libc.so.6"),
        )
        .library("/elsewhere/libfoo.so.1", &library("libfoo.so.1").define("given"));
    let outside = |path: &str| bench.path("root").join(path);
    bench.options.include = vec![
        Include { path: outside("elsewhere/plugin.so"), member: Some("pkg/plugins/plugin.so".to_owned()) },
        Include { path: outside("elsewhere/libfoo.so.1"), member: None },
    ];
    let repaired = bench.repair(&wheel(&module(&["libfoo.so.1"]))).expect("repaired");
    let subject = read(&repaired.path);
    let plug_in = object(&subject, "pkg/plugins/plugin.so");
    assert_eq!(rpath(plug_in).as_deref(), Some("$ORIGIN/../../pkg.libs"));
    let given = object(&subject, only(&subject, "pkg.libs/libfoo", ""));
    assert!(exports(given, "given"));
}

#[test]
fn from_another_wheel() {
    let mut bench = Bench::new();
    let other = TestWheel::new("other", "1.0", TAGS).elf("other/lib/libfoo.so.1", &library("libfoo.so.1"));
    bench.options.from_wheels = vec![other.write(&bench.path(""))];
    let repaired = bench.repair(&wheel(&module(&["libfoo.so.1"]))).expect("repaired");
    let subject = read(&repaired.path);
    only(&subject, "pkg.libs/libfoo-", ".so.1");
}

#[test]
fn names_can_be_kept() {
    let mut bench = Bench::new();
    bench.library("/usr/lib/libfoo.so.1", &library("libfoo.so.1"));
    bench.options.keep_name = vec!["libfoo.*".to_owned()];
    let repaired = bench.repair(&wheel(&module(&["libfoo.so.1"]))).expect("repaired");
    let subject = read(&repaired.path);
    assert_eq!(needed(object(&subject, "pkg/m.so")), ["libc.so.6", "libfoo.so.1"]);
    assert!(names(&subject).contains(&"pkg.libs/libfoo.so.1"));
}

#[test]
fn a_sibling_that_no_path_leads_to_gets_one() {
    let bench = Bench::new();
    let module = module(&["libours.so"]).runpath("/build/tree");
    let wheel = wheel(&module).elf("pkg/lib/libours.so", &library("libours.so"));
    let repaired = bench.repair(&wheel).expect("repaired");
    let subject = read(&repaired.path);
    assert_eq!(rpath(object(&subject, "pkg/m.so")).as_deref(), Some("$ORIGIN/lib"));
}

#[test]
fn owners_licences_and_the_bill_of_materials() {
    let bench = Bench::new();
    bench
        .library("/usr/lib/libfoo.so.1", &library("libfoo.so.1").build_id(&[0xab, 0xcd]))
        .file("/etc/os-release", "ID=debian\nVERSION_ID=12\n")
        .file(
            "/var/lib/dpkg/status",
            "Package: libfoo1\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.2-3\n",
        )
        .file("/var/lib/dpkg/info/libfoo1.list", "/usr/lib/libfoo.so.1\n/usr/share/doc/libfoo1/copyright\n")
        .file("/usr/share/doc/libfoo1/copyright", "do what you like");
    let repaired = bench.repair(&wheel(&module(&["libfoo.so.1"]))).expect("repaired");
    let text = content(&repaired.path, "pkg-1.0.dist-info/sboms/abiaudit.cdx.json");
    let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let component = &document["components"][0];
    assert_eq!(document["specVersion"], "1.6");
    assert_eq!(component["purl"], "pkg:deb/debian/libfoo1@1.2-3?arch=amd64&distro=debian-12");
    let before = std::fs::read(bench.path("root/usr/lib/libfoo.so.1")).expect("the library");
    let digest = |bytes: &[u8]| {
        use sha2::Digest as _;
        use std::fmt::Write as _;
        sha2::Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to memory");
            text
        })
    };
    assert_eq!(component["pedigree"]["ancestors"][0]["hashes"][0]["content"], digest(&before));
    let member = component["evidence"]["occurrences"][0]["location"].as_str().expect("a member");
    assert_eq!(component["hashes"][0]["content"], digest(&content(&repaired.path, member)));
    assert!(component["properties"].as_array().expect("properties").iter().any(|p| p["value"] == "abcd"));
    assert_eq!(content(&repaired.path, "pkg-1.0.dist-info/licenses/libfoo1/copyright"), b"do what you like");

    // A second repair that brings something more keeps what the first one said.
    let mut second = Bench::new();
    second.options.include = vec![Include { path: bench.path("root/usr/lib/libmore.so"), member: None }];
    bench.library("/usr/lib/libmore.so", &library("libmore.so"));
    let again = second.repair_file(&repaired.path).expect("repaired");
    let text = content(&again.path, "pkg-1.0.dist-info/sboms/abiaudit.cdx.json");
    let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(document["components"].as_array().map(Vec::len), Some(2));
}
