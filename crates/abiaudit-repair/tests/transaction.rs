//! Nothing is ever left half done, and nothing changes without need.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use abiaudit_repair::{Control, RepairError, prepare};
use abiaudit_testing::TestWheel;
use support::{Bench, TAGS, content, library, module, names, read, wheel};

fn with_foo() -> (Bench, TestWheel) {
    let bench = Bench::new();
    bench.library("/usr/lib/libfoo.so.1", &library("libfoo.so.1"));
    (bench, wheel(&module(&["libfoo.so.1"])))
}

#[test]
fn a_repaired_wheel_stays_as_it_is() {
    let (bench, wheel) = with_foo();
    let first = bench.repair(&wheel).expect("repaired");
    assert!(!first.unchanged);
    let mut other = Bench::new();
    other.options.root = bench.options.root.clone();
    let second = other.repair_file(&first.path).expect("repaired");
    assert!(second.unchanged);
    assert_eq!(fs::read(&first.path).expect("a file"), fs::read(&second.path).expect("a file"));
}

#[test]
fn the_same_bytes_every_time() {
    let (bench, wheel) = with_foo();
    let (other, _) = with_foo();
    let one = bench.repair(&wheel).expect("repaired");
    let two = other.repair(&wheel).expect("repaired");
    assert_eq!(fs::read(one.path).expect("a file"), fs::read(two.path).expect("a file"));
}

#[test]
fn what_is_not_planned_is_copied() {
    let (bench, wheel) = with_foo();
    let repaired = bench.repair(&wheel).expect("repaired");
    let written: Vec<&str> = repaired.written.keys().map(String::as_str).collect();
    assert!(!written.contains(&"pkg/__init__.py"), "{written:?}");
    assert_eq!(content(&repaired.path, "pkg/__init__.py"), b"import os\n");
}

#[test]
fn input_and_output_are_the_same_only_on_purpose() {
    let (bench, wheel) = with_foo();
    let input = wheel.write(&bench.path(""));
    let before = fs::read(&input).expect("a file");
    let control = |in_place| Control { in_place, tool_version: "0", interrupted: &|| false };
    let mut options = bench.options.clone();
    options.update_tags = false;
    let refused =
        prepare(&input, &options).expect("a plan").write(&bench.path(""), &options, &control(false));
    assert!(matches!(refused, Err(RepairError::SameFile { .. })));
    assert_eq!(fs::read(&input).expect("a file"), before);
    let done = prepare(&input, &options).expect("a plan").write(&bench.path(""), &options, &control(true));
    assert_eq!(done.expect("repaired").path, input);
    assert_ne!(fs::read(&input).expect("a file"), before);
    // With another name the input goes once the output is there.
    let other = wheel.write(&bench.path(""));
    let done = prepare(&other, &bench.options).expect("a plan").write(
        &bench.path(""),
        &bench.options,
        &control(true),
    );
    assert!(done.expect("repaired").path.exists() && !other.exists());
}

#[test]
fn an_interruption_leaves_nothing() {
    let (bench, wheel) = with_foo();
    let input = wheel.write(&bench.path(""));
    let count = std::sync::atomic::AtomicUsize::new(0);
    for stop_at in 0..4 {
        count.store(0, std::sync::atomic::Ordering::Relaxed);
        let interrupted = || count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= stop_at;
        let control = Control { in_place: false, tool_version: "0", interrupted: &interrupted };
        let result = prepare(&input, &bench.options).expect("a plan").write(
            &bench.path("out"),
            &bench.options,
            &control,
        );
        assert!(matches!(result, Err(RepairError::Interrupted)), "{stop_at}: {result:?}");
        assert_eq!(bench.outputs(), Vec::<String>::new());
    }
}

#[test]
fn what_the_gate_rejects_is_thrown_away() {
    let bench = Bench::new();
    // A library that asks for an executable stack makes the wheel fail on glibc 2.41.
    bench.library("/usr/lib/libfoo.so.1", &library("libfoo.so.1").stack(7));
    let mut bench = bench;
    let error = bench.repair(&wheel(&module(&["libfoo.so.1"]))).expect_err("rejected");
    assert!(error.to_string().contains("ABI501 pkg.libs/libfoo-"), "{error}");
    assert_eq!(bench.outputs(), Vec::<String>::new());
    bench.options.settings.ignore = vec!["ABI501".to_owned()];
    bench.repair(&wheel(&module(&["libfoo.so.1"]))).expect("accepted on request");
}

#[test]
fn a_library_that_changes_in_between_is_noticed() {
    let (bench, wheel) = with_foo();
    let prepared = prepare(&wheel.write(&bench.path("")), &bench.options).expect("a plan");
    bench.library("/usr/lib/libfoo.so.1", &library("libfoo.so.1").define("other"));
    let control = Control { in_place: false, tool_version: "0", interrupted: &|| false };
    let result = prepared.write(&bench.path("out"), &bench.options, &control);
    assert!(matches!(result, Err(RepairError::SourceChanged { .. })));
    assert_eq!(bench.outputs(), Vec::<String>::new());
}

#[test]
fn a_directory_that_cannot_be_written_to() {
    let (bench, wheel) = with_foo();
    let out = bench.path("out");
    fs::write(&out, "a file").expect("a file");
    assert!(matches!(bench.repair(&wheel), Err(RepairError::Io { .. })));
    fs::remove_file(&out).expect("removed");
    fs::create_dir(&out).expect("a directory");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o555)).expect("a mode");
    let result = bench.repair(&wheel);
    fs::set_permissions(&out, fs::Permissions::from_mode(0o755)).expect("a mode");
    // The superuser writes all the same.
    if result.is_err() {
        assert_eq!(bench.outputs(), Vec::<String>::new());
    }
}

#[test]
fn a_wheel_that_was_tampered_with_is_refused() {
    let (bench, wheel) = with_foo();
    let error = bench.repair(&wheel.clone().wrong_hash("pkg/__init__.py")).expect_err("tampered with");
    assert!(matches!(&error, RepairError::Record { members } if members == &["pkg/__init__.py"]), "{error}");
    let error = bench.repair(&wheel.clone().file("pkg/__init__.py", "again")).expect_err("two of one name");
    assert!(error.to_string().contains("2 members are called pkg/__init__.py"), "{error}");
    let error = bench.repair(&wheel.clone().symlink("pkg/l.so", "m.so")).expect_err("a link");
    assert!(error.to_string().contains("symbolic link"), "{error}");
    let error = bench.repair(&wheel.file("../evil", "x")).expect_err("an unsafe name");
    assert!(error.to_string().contains("../evil"), "{error}");
    assert_eq!(bench.outputs(), Vec::<String>::new());
}

#[test]
fn signatures_go_with_a_word() {
    let (bench, wheel) = with_foo();
    let wheel = wheel.unlisted("pkg-1.0.dist-info/RECORD.jws").file("pkg-1.0.dist-info/RECORD.jws", "{}");
    let plan = bench.plan(&wheel).expect("a plan");
    assert_eq!(plan.dropped.len(), 1);
    let repaired = bench.repair(&wheel).expect("repaired");
    assert!(!names(&read(&repaired.path)).contains(&"pkg-1.0.dist-info/RECORD.jws"));
}

#[test]
fn a_wrong_claim_is_corrected() {
    let bench = Bench::new();
    let module = module(&[]).undefined_versioned("fcntl64", "libc.so.6", "GLIBC_2.28");
    let wheel = TestWheel::new("pkg", "1.0", "cp312-cp312-manylinux2014_x86_64.manylinux_2_31_x86_64")
        .elf("pkg/m.so", &module);
    let mut bench = bench;
    bench.options.graft = false;
    let repaired = bench.repair(&wheel).expect("retagged");
    assert!(repaired.path.to_string_lossy().ends_with("-manylinux_2_28_x86_64.manylinux_2_31_x86_64.whl"));
    read(&repaired.path);
}

#[test]
fn wheels_without_native_code() {
    let mut bench = Bench::new();
    let wheel = TestWheel::new("pkg", "1.0", "py3-none-any").file("pkg/__init__.py", "");
    assert!(matches!(bench.repair(&wheel), Err(RepairError::Pure)));
    bench.options.allow_pure = true;
    let repaired = bench.repair(&wheel).expect("copied");
    assert!(repaired.unchanged);
    assert_eq!(fs::read(repaired.path).expect("a file"), wheel.bytes());
}

#[test]
fn wanted_tags() {
    let (mut bench, wheel) = with_foo();
    for (plat, only, tags) in [
        ("manylinux_2_28", false, "manylinux1_x86_64.manylinux_2_28_x86_64.manylinux_2_5_x86_64"),
        ("manylinux_2_28_x86_64", true, "manylinux_2_28_x86_64"),
        ("manylinux2014", true, "manylinux2014_x86_64.manylinux_2_17_x86_64"),
        ("manylinux_2_33_x86_64", true, "manylinux_2_33_x86_64"),
    ] {
        (bench.options.platform, bench.options.only_platform) = (Some(plat.to_owned()), only);
        let plan = bench.plan(&wheel).expect("a plan");
        assert_eq!(plan.output, format!("pkg-1.0-cp312-cp312-{tags}.whl"), "{plat}");
    }
    for plat in
        ["manylinux_2_28_aarch64", "musllinux_1_2_x86_64", "linux_x86_64", "win_amd64", "manylinux_3_0", ""]
    {
        bench.options.platform = Some(plat.to_owned());
        let error = bench.plan(&wheel).expect_err("not a tag for this wheel");
        assert!(matches!(&error, RepairError::UnknownTarget { .. }), "{plat}: {error}");
    }
}

#[test]
fn without_new_tags_the_name_stays() {
    let (mut bench, wheel) = with_foo();
    bench.options.update_tags = false;
    let repaired = bench.repair(&wheel).expect("repaired");
    assert!(repaired.path.to_string_lossy().ends_with(&format!("pkg-1.0-{TAGS}.whl")));
}

#[test]
fn the_report_fits_and_notices_what_does_not() {
    use abiaudit_repair::{Mismatch, Statement};
    let (bench, wheel) = with_foo();
    let input = wheel.write(&bench.path(""));
    let prepared = prepare(&input, &bench.options).expect("a plan");
    let (plan, digest) = (prepared.plan().clone(), prepared.input_sha256());
    let control = Control { in_place: false, tool_version: "0", interrupted: &|| false };
    let repaired = prepared.write(&bench.path("out"), &bench.options, &control).expect("repaired");
    let statement =
        Statement::new(&plan, &digest, &repaired.path, &repaired.written, "0").expect("a statement");
    // As text and back, since that is how it is kept.
    let text = serde_json::to_string(&statement).expect("JSON");
    let statement: Statement = serde_json::from_str(&text).expect("a statement");
    assert_eq!(statement.verify(&repaired.path, Some(&input)).expect("readable"), []);

    let mut lying = statement.clone();
    lying.predicate.written.retain(|resource| resource.name != "pkg/m.so");
    let found = lying.verify(&repaired.path, Some(&input)).expect("readable");
    assert_eq!(found, [Mismatch::Unexplained("pkg/m.so".to_owned())]);

    let other = wheel.clone().file("pkg/more.py", "").write(&bench.path("out"));
    let found = statement.verify(&repaired.path, Some(&other)).expect("readable");
    assert!(found.contains(&Mismatch::Lost("pkg/more.py".to_owned())), "{found:?}");
    assert!(matches!(found.first(), Some(Mismatch::Digest { .. })), "{found:?}");
}
