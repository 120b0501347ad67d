//! `abiaudit confirm`: the command on wheels of our own that do what no simulation foresees.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use abiaudit_testing::{Arch, ElfWriter, TestWheel};
use common::{Run, abiaudit, folder, names, run};

/// Whether this machine has a Python that can make environments; says so if not.
#[allow(clippy::print_stderr, reason = "a skipped test must say so")]
fn has_python() -> bool {
    let works = |args: &[&str]| Command::new("python3").args(args).output().is_ok_and(|o| o.status.success());
    let has = works(&["-c", "import venv"]) && works(&["-m", "pip", "--version"]);
    if !has {
        eprintln!("SKIPPED: python3 with venv and pip is not there");
    }
    has
}

/// A package with native code that nobody loads, and this code.
fn wheel(name: &str, tags: &str, code: &str, directory: &Path) -> String {
    let module = ElfWriter::new(Arch::X86_64).needed("libc.so.6").define("nothing");
    let wheel = TestWheel::new(name, "1", tags)
        .file(&format!("{name}/__init__.py"), code)
        .elf(&format!("{name}/data.bin"), &module);
    wheel.write(directory).file_name().expect("a name").to_string_lossy().into_owned()
}

const ANY: &str = "py3-none-any";

/// One package on its own, without the probe.
fn confirm(code: &str, args: &[&str]) -> Run {
    let folder = folder();
    let wheel = wheel("pkg", ANY, code, folder.path());
    run(abiaudit().args(["confirm", &wheel, "--probe", "none"]).args(args).current_dir(folder.path()))
}

#[test]
fn what_is_fine() {
    if !has_python() {
        return;
    }
    let result = confirm("answer = 42\n", &["--check", "pkg.answer == 42"]);
    assert_eq!((result.code, result.stderr.as_str()), (Some(0), ""), "{result:?}");
    assert!(result.stdout.contains("\npkg (RTLD_LOCAL): fine, as predicted\n"), "{result:?}");
    assert!(result.stdout.contains("check holds: pkg.answer == 42"), "{result:?}");
    assert!(result.stdout.ends_with("\n1 process: all as predicted, nothing broken\n"), "{result:?}");
}

#[test]
fn values_crashes_hangs_and_limits_are_seen() {
    if !has_python() {
        return;
    }
    let cases: [(&str, &[&str], &str); 5] = [
        ("answer = 41\n", &["--check", "pkg.answer == 42"], "seen: check: pkg.answer == 42 False"),
        ("import ctypes\nctypes.string_at(0)\n", &[], "seen: process: import of pkg SIGSEGV"),
        (
            "import time\ntime.sleep(1000)\n",
            &["--timeout", "2"],
            "import of pkg no end within the time limit",
        ),
        ("many = bytes(1 << 30)\n", &["--memory", "500MB"], "seen: pkg: import MemoryError"),
        ("import atexit, os\natexit.register(os._exit, 7)\n", &[], "the end of the process exit code 7"),
    ];
    for (code, args, expected) in cases {
        let result = confirm(code, args);
        assert_eq!(result.code, Some(1), "{result:?}");
        assert!(result.stdout.contains("BROKEN, predicted was fine: DIFFERS"), "{result:?}");
        assert!(result.stdout.contains(expected), "{expected}: {result:?}");
    }
}

#[test]
fn the_report_as_json() {
    if !has_python() {
        return;
    }
    let report = confirm("", &["-f", "json", "--mode", "all"]).json();
    assert_eq!(report["schema"], "abiaudit.confirm/1");
    let runs = report["runs"].as_array().expect("a list");
    let modes: Vec<_> = runs.iter().filter_map(|run| run["case"]["mode"].as_str()).collect();
    assert_eq!(modes, ["local", "global", "first-global", "second-global", "preload"]);
    assert!(
        runs.iter().all(|run| run["as_predicted"] == true && run["happened"]["ended"]["how"] == "exited")
    );
}

#[test]
fn unusable_inputs_are_told_from_results() {
    if !has_python() {
        return;
    }
    let folder = folder();
    let run_in = |args: &[&str]| run(abiaudit().arg("confirm").args(args).current_dir(folder.path()));
    let foreign = wheel("foreign", "cp27-cp27m-manylinux1_x86_64", "", folder.path());
    let asking = wheel("asking", ANY, "import not_there_at_all\n", folder.path());
    std::fs::write(folder.path().join("plain.so"), "").expect("the folder can be written to");
    for (args, expected) in [
        (&[foreign.as_str(), "--probe", "none"][..], "is not a supported wheel on this platform"),
        (
            &[&asking, "--probe", "none"],
            "needs the module not_there_at_all, which no input has: add its wheel with --with",
        ),
        (&[&asking, "--import", "other", "--probe", "none"], "no input has the module other"),
        (&[&asking, "--python", "/no/such/python"], "cannot run /no/such/python"),
        (&["plain.so"], "plain.so is no wheel"),
        (&["absent-1-py3-none-any.whl"], "absent-1-py3-none-any.whl is not there"),
    ] {
        let result = run_in(args);
        assert_eq!((result.code, result.stdout.as_str()), (Some(2), ""), "{args:?}: {result:?}");
        assert!(result.stderr.contains(expected), "{expected}: {result:?}");
    }
}

#[test]
fn without_a_compiler_this_is_said() {
    if !has_python() {
        return;
    }
    let folder = folder();
    let wheel = wheel("pkg", ANY, "", folder.path());
    let result = run(abiaudit()
        .args(["confirm", &wheel, "--compiler", "no-such-compiler"])
        .current_dir(folder.path()));
    assert_eq!(result.code, Some(0), "{result:?}");
    assert!(
        result.stdout.starts_with("WARNING: no C++ compiler: no-such-compiler is not there"),
        "{result:?}"
    );
}

#[test]
fn a_signal_ends_everything_and_leaves_nothing() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    if !has_python() {
        return;
    }
    let (folder, temporary) = (folder(), folder());
    let told = folder.path().join("told");
    let code = format!("import os, time\nopen({told:?}, 'w').write(str(os.getpid()))\ntime.sleep(1000)\n");
    let wheel = wheel("pkg", ANY, &code, folder.path());
    let mut child = abiaudit()
        .args(["confirm", &wheel, "--probe", "none"])
        .env("TMPDIR", temporary.path())
        .current_dir(folder.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the command starts");
    let until = Instant::now() + Duration::from_mins(3);
    let python = loop {
        if let Some(pid) = std::fs::read_to_string(&told).ok().and_then(|text| text.parse::<i32>().ok()) {
            break pid;
        }
        assert!(Instant::now() < until, "the module is not imported");
        std::thread::sleep(Duration::from_millis(20));
    };
    let pid = i32::try_from(child.id()).expect("a number");
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
    assert_eq!(names(temporary.path()), Vec::<String>::new());
    // A killed process takes a moment, and may be a zombie until its new parent has waited for it.
    let state = || std::fs::read_to_string(format!("/proc/{python}/stat")).unwrap_or_default();
    let is_gone = |state: &str| state.is_empty() || state.contains(") Z ") || state.contains(") X ");
    while !is_gone(&state()) {
        assert!(Instant::now() < until, "{}", state());
        std::thread::sleep(Duration::from_millis(20));
    }
}
