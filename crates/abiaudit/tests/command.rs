//! The contract of the command line: exit codes, streams, files, configuration, independence of the machine.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use abiaudit_testing::TestWheel;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use common::{abiaudit, broken, check, extension, folder, honest, liar, names, run, run_with_input};

const FORMATS: [&str; 7] = ["text", "json", "sarif", "junit", "github", "markdown", "auditwheel-json"];

#[test]
fn exit_codes() {
    let folder = folder();
    let (good, bad) = (honest().write(folder.path()), liar().write(folder.path()));
    assert_eq!(run(&mut check(&[&good])).code, Some(0));
    assert_eq!(run(&mut check(&[&bad])).code, Some(1));
    assert_eq!(run(&mut check(&[&good, &bad])).code, Some(1));
    assert_eq!(run(&mut check(&[&folder.path().join("absent-1-py3-none-any.whl")])).code, Some(2));
    for wrong in [
        &["check"][..],
        &["check", "--no-such-option", "x"],
        &["no-such-command"],
        &["check", "-j", "0", "x"],
    ] {
        let result = run(abiaudit().args(wrong));
        assert_eq!(result.code, Some(2), "{wrong:?}");
        assert!(result.stdout.is_empty() && !result.stderr.is_empty(), "{wrong:?}: {result:?}");
    }
}

#[test]
fn an_unreadable_wheel_is_named_and_the_others_are_audited() {
    let folder = folder();
    let (good, bad) = (honest().write(folder.path()), liar().write(folder.path()));
    let broken = broken(folder.path());
    let result = run(check(&[&good, &broken, &bad]).args(["--format", "json"]));
    assert_eq!(result.code, Some(2));
    let report = result.json();
    assert_eq!(report["wheels"][0]["verdict"]["tag"], "manylinux_2_17_x86_64");
    assert!(report["wheels"][1]["path"].as_str().expect("a path").contains("broken-1.0"));
    assert!(!report["wheels"][1]["error"]["message"].as_str().expect("a message").is_empty());
    assert_eq!(report["wheels"][2]["verdict"]["claim_ok"], false);
    assert_eq!(report["summary"]["unreadable"], 1);
    let text = run(&mut check(&[&good, &broken, &bad]));
    assert!(text.stdout.contains("broken-1.0-py3-none-any.whl"), "{text:?}");
}

#[test]
fn fail_on_decides() {
    let folder = folder();
    let bad = liar().write(folder.path());
    let base = run(check(&[&bad]).args(["--format", "json"])).json();
    assert!(base["summary"]["errors"].as_u64().expect("a number") > 0);
    assert_eq!(run(check(&[&bad]).args(["--select", "ABI505"])).code, Some(0));
    let relro = run(check(&[&bad]).args(["--select", "ABI505", "--fail-on", "info", "--format", "json"]));
    assert!(relro.json()["wheels"][0]["findings"][0]["rule"] == "ABI505", "{relro:?}");
    assert_eq!(relro.code, Some(1));
}

#[test]
fn a_list_on_standard_input() {
    let folder = folder();
    let (good, bad) = (honest().write(folder.path()), liar().write(folder.path()));
    for separator in [&b"\n"[..], b"\0", b"\r\n"] {
        let mut list = Vec::new();
        for path in [&good, &bad] {
            list.extend_from_slice(path.as_os_str().as_bytes());
            list.extend_from_slice(separator);
        }
        let result = run_with_input(check(&["-".as_ref()]).args(["--format", "json"]), &list);
        assert_eq!(result.code, Some(1), "{separator:?}: {result:?}");
        assert_eq!(result.json()["summary"]["wheels"], 2, "{separator:?}");
    }
    assert_eq!(run_with_input(&mut check(&["-".as_ref()]), b"").code, Some(2));
}

#[test]
fn output_goes_to_a_file_and_text_to_people() {
    let folder = folder();
    let bad = liar().write(folder.path());
    let direct = run(check(&[&bad]).args(["--format", "json"]));
    let file = folder.path().join("report.json");
    let result = run(check(&[&bad]).args(["--format", "json", "--output"]).arg(&file));
    assert_eq!(result.code, Some(1));
    assert!(result.stdout.contains("liar-1.0") && !result.stdout.starts_with('{'), "{result:?}");
    assert_eq!(fs::read_to_string(&file).expect("the report"), direct.stdout);
    let mode = fs::metadata(&file).expect("the report").permissions().mode();
    assert_eq!(mode & 0o444, 0o444, "{mode:o}");
}

#[test]
fn output_that_cannot_be_written_is_trouble_and_leaves_nothing() {
    let folder = folder();
    let good = honest().write(folder.path());
    let before = names(folder.path());
    for target in ["no/such/folder/report.json", "."] {
        let result = run(check(&[&good]).args(["--format", "json", "-o"]).arg(folder.path().join(target)));
        assert_eq!(result.code, Some(2), "{target}: {result:?}");
        assert!(result.stderr.contains("cannot write"), "{target}: {result:?}");
        assert_eq!(names(folder.path()), before, "{target}");
    }
    // An old report stays as it was when the new one cannot be completed.
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).expect("a folder");
    fs::write(locked.join("report.json"), "old").expect("a file");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).expect("permissions");
    let result = run(check(&[&good]).args(["--format", "json", "-o"]).arg(locked.join("report.json")));
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).expect("permissions");
    // Root may write there all the same.
    assert!(matches!(result.code, Some(0 | 2)), "{result:?}");
    assert_eq!(names(&locked), ["report.json"]);
    if result.code == Some(2) {
        assert_eq!(fs::read_to_string(locked.join("report.json")).expect("the old report"), "old");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder();
    let bad = liar().write(folder.path());
    let mut command = check(&[bad.as_path(); 200]);
    command.args(["--format", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut line = String::new();
    // The reader is dropped with its pipe after one line, as head does.
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let status = child.wait().expect("the command ends");
    let mut errors = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    assert_eq!(errors, "", "{status}");
    assert!(
        status.code().is_some_and(|code| code <= 1) || status.signal() == Some(nix::libc::SIGPIPE),
        "{status}"
    );
}

#[test]
fn colours_only_where_they_belong() {
    let folder = folder();
    let bad = liar().write(folder.path());
    let escape = '\u{1b}';
    assert!(!run(&mut check(&[&bad])).stdout.contains(escape), "a pipe is no terminal");
    assert!(run(check(&[&bad]).args(["--color", "always"])).stdout.contains(escape));
    assert!(!run(check(&[&bad]).env("NO_COLOR", "1")).stdout.contains(escape));
    assert!(
        !run(check(&[&bad]).args(["--color", "never"]).env("CLICOLOR_FORCE", "1")).stdout.contains(escape)
    );
}

#[test]
fn the_nearest_configuration_is_found() {
    let folder = folder();
    let bad = liar().write(folder.path());
    let below = folder.path().join("a/b");
    fs::create_dir_all(&below).expect("folders");
    let code = |directory: &Path, args: &[&str]| {
        run(abiaudit().arg("check").arg(&bad).args(args).current_dir(directory)).code
    };
    fs::write(folder.path().join("pyproject.toml"), "[tool.abiaudit]\nselect = ['ABI501']\n")
        .expect("a file");
    assert_eq!(code(&below, &[]), Some(0), "from a folder above");
    assert_eq!(code(&below, &["--no-config"]), Some(1));
    // A project without the table is passed by; a nearer abiaudit.toml wins.
    fs::write(folder.path().join("a/pyproject.toml"), "[project]\nname = 'x'\n").expect("a file");
    assert_eq!(code(&below, &[]), Some(0));
    fs::write(below.join("abiaudit.toml"), "select = ['ABI1']\n").expect("a file");
    assert_eq!(code(&below, &[]), Some(1));
    let other = folder.path().join("other.toml");
    fs::write(&other, "select = ['ABI501']\n").expect("a file");
    assert_eq!(code(&below, &["--config", other.to_str().expect("UTF-8")]), Some(0));
    assert_eq!(code(&below, &["--config", "no-such-file.toml"]), Some(2));
}

#[test]
fn wrong_configuration_is_explained() {
    let folder = folder();
    let good = honest().write(folder.path());
    let explained = |toml: &str, word: &str| {
        let file = folder.path().join("abiaudit.toml");
        fs::write(&file, toml).expect("a file");
        let result = run(abiaudit().arg("check").arg(&good).arg("--config").arg(&file));
        assert_eq!(result.code, Some(2), "{toml}: {result:?}");
        assert!(result.stderr.contains(word), "{toml}: {}", result.stderr);
    };
    explained("fail_on = 'error'", "fail-on");
    explained("[[ignores]]\nrule = 'ABI101'\n", "reason");
    explained("[[ignores]]\nrule = 'ABI101'\nreason = 'x'\nexpires = 'tomorrow'\n", "YYYY-MM-DD");
    explained("select = ['ABI10l']\n", "ABI101");
    explained("not toml at all", "abiaudit.toml");
    for option in ["--select", "--ignore"] {
        let result = run(check(&[&good]).args([option, "symbol-too-now"]));
        assert_eq!(result.code, Some(2));
        assert!(result.stderr.contains("symbol-too-new"), "{result:?}");
    }
}

#[test]
fn an_ignore_holds_until_it_expires() {
    let folder = folder();
    let module = extension("GLIBC_2.34").stack(7);
    let wheel = honest().elf("honest/stack.so", &module).write(folder.path());
    let config = folder.path().join("abiaudit.toml");
    fs::write(
        &config,
        "select = ['ABI501']\n[[ignores]]\nrule = 'ABI501'\nreason = 'known'\nexpires = '2027-01-31'\n",
    )
    .expect("a file");
    let code = |epoch: &str| {
        let mut command = abiaudit();
        command.args(["check", "--fail-on", "info"]).arg(&wheel).arg("--config").arg(&config);
        run(command.env("SOURCE_DATE_EPOCH", epoch)).code
    };
    // 2027-01-31 and the day after.
    assert_eq!(code("1801353600"), Some(0));
    assert_eq!(code("1801440000"), Some(1));
}

#[test]
fn the_same_bytes_for_any_number_of_threads() {
    let folder = folder();
    let (good, bad) = (honest().write(folder.path()), liar().write(folder.path()));
    for format in FORMATS {
        let with =
            |jobs: &str| run(check(&[&good, &bad, &good]).args(["--format", format, "--jobs", jobs])).stdout;
        assert_eq!(without_time(&with("1")), without_time(&with("8")), "{format}");
    }
}

#[test]
fn same_bytes_everywhere() {
    let folder = folder();
    liar().write(folder.path());
    let name = "liar-1.0-cp312-cp312-manylinux_2_17_x86_64.whl";
    for format in FORMATS {
        let mut here = abiaudit();
        here.args(["check", "--no-config", "--format", format, name]).current_dir(folder.path());
        let here = without_time(&run(&mut here).stdout);
        // Another locale, time zone, umask, home, working directory and environment.
        let elsewhere = common::folder();
        fs::copy(folder.path().join(name), elsewhere.path().join(name)).expect("a copy");
        let mut there = Command::new("sh");
        there.args(["-c", "umask 077; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_abiaudit")]);
        there
            .args(["check", "--no-config", "--format", format, name])
            .current_dir(elsewhere.path())
            .env_clear();
        there.envs([("LC_ALL", "tr_TR.UTF-8"), ("TZ", "Asia/Kathmandu"), ("HOME", "/nonexistent")]);
        assert_eq!(without_time(&run(&mut there).stdout), here, "{format}");
    }
}

/// The last line for people says how long it took.
fn without_time(text: &str) -> String {
    let lines = text.lines().map(|line| match line.rsplit_once(" in ") {
        Some((head, tail)) if tail.ends_with('s') => head,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `SIGINT` is ignored, which children inherit (proc(5), `SigIgn`).
fn ignores_interrupts() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & 1 << (Signal::SIGINT as u32 - 1) != 0
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test must say so")]
fn an_interrupt_leaves_no_temporary_file() {
    if ignores_interrupts() {
        eprintln!("SKIPPED: a shell that runs this in the background ignores interrupts for it");
        return;
    }
    let folder = folder();
    let bad = liar().write(folder.path());
    let before = names(folder.path());
    let file = folder.path().join("report.json");
    let inputs = vec![bad.as_path(); 2000];
    let mut interrupted = 0;
    for delay in [5, 20, 60, 150] {
        let mut command = check(&inputs);
        command.args(["--format", "json", "--output"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the command starts");
        std::thread::sleep(Duration::from_millis(delay));
        let id = Pid::from_raw(child.id().try_into().expect("a process id"));
        kill(id, Signal::SIGINT).expect("the child has not been waited for");
        let status = child.wait().expect("the command ends");
        let mut expected = before.clone();
        if status.signal().is_none() {
            // It was done before the signal came.
            expected.push("report.json".to_owned());
            expected.sort();
        } else {
            interrupted += 1;
        }
        assert_eq!(names(folder.path()), expected, "after {delay} ms: {status}");
        let _ = fs::remove_file(&file);
    }
    assert!(interrupted > 0, "no delay was short enough");
}

#[test]
fn directories_and_bare_files() {
    let folder = folder();
    let site = folder.path().join("site-packages");
    fs::create_dir_all(site.join("pkg")).expect("folders");
    fs::write(site.join("pkg/mod.so"), extension("GLIBC_2.34").build().bytes()).expect("a file");
    let result = run(check(&[&site]).args(["--format", "json"]));
    assert!(matches!(result.code, Some(0 | 1)), "{result:?}");
    let report = result.json();
    assert_eq!(report["wheels"][0]["kind"], "directory");
    assert_eq!(report["wheels"][0]["verdict"]["tag"], "manylinux_2_34_x86_64");
    let file = site.join("pkg/mod.so");
    let report = run(check(&[&file]).args(["--format", "json"])).json();
    assert_eq!(report["wheels"][0]["kind"], "file");
    assert_eq!(report["wheels"][0]["verdict"]["tag"], "manylinux_2_34_x86_64");
    let text = folder.path().join("notes.txt");
    fs::write(&text, "hello").expect("a file");
    assert_eq!(run(&mut check(&[&text])).code, Some(2));
}

#[test]
fn every_format_renders() {
    let folder = folder();
    let (good, bad) = (honest().write(folder.path()), liar().write(folder.path()));
    for format in FORMATS {
        let result = run(check(&[&good, &bad]).args(["--format", format]));
        assert_eq!(result.code, Some(1), "{format}: {result:?}");
        assert_eq!(result.stderr, "", "{format}");
        // auditwheel's format has no file names but the wheel's.
        assert!(
            result.stdout.contains("liar-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"),
            "{format}: {}",
            result.stdout
        );
    }
    for format in ["text", "json", "auditwheel-json"] {
        let result = run(abiaudit().args(["show", "--no-config", "--format", format]).arg(&bad));
        assert_eq!(result.code, Some(0), "{format}: {result:?}");
        assert!(result.stdout.contains("GLIBC_2.34") || result.stdout.contains("2.34"), "{format}");
    }
}

#[test]
fn the_program_describes_itself() {
    let rules = run(abiaudit().arg("rules"));
    assert!(rules.code == Some(0) && rules.stdout.contains("ABI101 symbol-too-new"), "{rules:?}");
    assert_eq!(
        run(abiaudit().args(["explain", "ABI101", "GLIBCXX_3.4.26", "libcudart.so.12"])).code,
        Some(0)
    );
    assert_eq!(run(abiaudit().args(["explain", "nothing_of_the_sort"])).code, Some(2));
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(abiaudit().args(["completions", shell])).stdout.contains("abiaudit"), "{shell}");
    }
    assert!(run(abiaudit().arg("man")).stdout.contains(".TH abiaudit"));
    let folder = folder();
    assert_eq!(run(abiaudit().arg("man").arg(folder.path())).code, Some(0));
    assert!(names(folder.path()).contains(&"abiaudit-check.1".to_owned()));
}

#[test]
fn tags_libraries_and_readable_names_are_explained() {
    let explained = |query: &str, words: &[&str]| {
        let result = run(abiaudit().args(["explain", query]));
        assert_eq!(result.code, Some(0), "{query}: {}", result.stderr);
        for word in words {
            assert!(result.stdout.contains(word), "{query}: no {word:?} in {}", result.stdout);
        }
    };
    explained(
        "manylinux_2_28_x86_64",
        &["glibc 2.28 or newer", "GLIBCXX_3.4.24", "libstdc++.so.6", "Debian 10"],
    );
    explained("manylinux2014", &["manylinux_2_17 (manylinux2014)", "aarch64", "on x86_64"]);
    explained(
        "cp312-cp312-musllinux_1_2_aarch64",
        &["musl 1.2 or newer", "libc.musl-aarch64.so.1", "Alpine"],
    );
    explained("linux_x86_64", &["promises nothing"]);
    explained("libfoo.so.1", &["no platform tag promises it", "copy it into the wheel", "ABI103"]);
    explained("ld-linux-x86-64.so.2", &["the dynamic loader"]);
    explained("std::filesystem::copy", &["_ZNSt10filesystem4copyERKNS_4pathES2_", "@@GLIBCXX_3.4.26"]);
    let json = run(abiaudit().args(["explain", "--json", "manylinux_2_28_x86_64", "libfoo.so.1"])).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json[0]["about"], &json[1]["about"]), (&"tag".into(), &"library".into()));
}

#[test]
fn ignores_that_do_nothing_are_told() {
    let folder = folder();
    let wheel = honest().elf("honest/stack.so", &extension("GLIBC_2.17").stack(7)).write(folder.path());
    let config = folder.path().join("abiaudit.toml");
    let notes = |ignore: &str, arguments: &[&str]| {
        fs::write(&config, format!("[[ignores]]\nreason = 'known'\n{ignore}")).expect("a file");
        let mut command = abiaudit();
        command.arg("check").arg(&wheel).arg("--config").arg(&config).args(arguments);
        // 2027-02-01
        let stderr = run(command.env("SOURCE_DATE_EPOCH", "1801440000")).stderr;
        stderr.lines().filter_map(|line| line.strip_prefix("note: ").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert!(notes("rule = 'ABI501'", &[]).is_empty(), "it is of use");
    assert_eq!(
        notes("rule = 'ABI502'\nmember = 'honest/*'", &[]),
        [
            "the ignore of ABI502 (member honest/*): no finding matches it; remove it if that is so for all your wheels"
        ]
    );
    assert!(notes("rule = 'ABI502'", &["--select", "ABI501"]).is_empty(), "its rule did not run");
    assert_eq!(
        notes("rule = 'ABI501'\nexpires = '2027-01-31'", &[]),
        ["the ignore of ABI501: expired on 2027-01-31: the finding that it was about counts again"]
    );
    assert_eq!(
        notes("rule = 'ABI502'\nexpires = '2027-01-31'", &[]),
        ["the ignore of ABI502: expired on 2027-01-31, and no finding matches it: remove it"]
    );
}

#[test]
fn the_headline_says_what_the_exit_code_says() {
    let folder = folder();
    let bad = liar().write(folder.path());
    let selected = run(check(&[&bad]).args(["--select", "ABI501"]));
    assert_eq!(selected.code, Some(0));
    assert!(!selected.stdout.contains("FAIL"), "{}", selected.stdout);
    assert!(selected.stdout.contains("ok (by the rules that ran; not judged: claims"), "{}", selected.stdout);
}

#[test]
fn wheels_for_other_systems_are_not_judged() {
    let folder = folder();
    let mac =
        TestWheel::new("mac", "1", "cp312-cp312-macosx_11_0_arm64").file("mac/m.so", b"\xcf\xfa\xed\xfe");
    let result = run(&mut check(&[&mac.write(folder.path())]));
    assert_eq!(result.code, Some(0));
    assert!(result.stdout.contains("not judged: not a Linux wheel"), "{}", result.stdout);
}
