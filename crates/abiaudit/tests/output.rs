//! What the report is written to must not change what the gate says, nor what was audited.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use common::{abiaudit, broken, check, folder, honest, liar, names, run, run_with_input};

#[test]
fn a_reader_that_goes_away_does_not_make_a_liar_clean() {
    let folder = folder();
    let many = |path: PathBuf| vec![path; 3];
    let (good, bad) = (many(honest().write(folder.path())), many(liar().write(folder.path())));
    let mixed: Vec<PathBuf> = bad.iter().cloned().chain([broken(folder.path())]).collect();
    for (paths, expected) in [(good, 0), (bad, 1), (mixed, 2)] {
        for format in ["text", "json", "junit"] {
            let mut command = abiaudit();
            command.args(["check", "--no-config", "--all", "--format", format]).args(&paths);
            let mut child = command.stdout(Stdio::piped()).spawn().expect("the command starts");
            drop(child.stdout.take());
            assert_eq!(child.wait().expect("the command ends").code(), Some(expected), "{format}");
        }
    }
}

#[test]
fn a_report_does_not_replace_an_input() {
    let folder = folder();
    let bad = liar().write(folder.path());
    let before = fs::read(&bad).expect("the wheel");
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink(&bad, &link).expect("a link");
    let detour = folder.path().join("../").join(folder.path().file_name().expect("a name"));
    let name = bad.file_name().expect("a name");
    for output in [&bad, &link, &detour.join(name)] {
        let result = run(check(&[&bad]).arg("-o").arg(output));
        assert_eq!(result.code, Some(2), "{result:?}");
        assert!(result.stderr.contains("is an input"), "{result:?}");
    }
    assert_eq!(fs::read(&bad).expect("the wheel"), before);
    assert_eq!(names(folder.path()).len(), 2, "nothing was left behind");
}

#[test]
fn what_is_asked_for_does_not_steer_the_terminal() {
    let hostile =
        ["\u{1b}[31m", "memcpy\u{1b}[1m@GLIBC_2.14", "memcpy@GLIBC_2.14\u{202e}", "libcudart.so.12\u{1b}[5m"];
    for query in hostile {
        let text = run(abiaudit().args(["explain", query])).stdout;
        assert!(!text.is_empty() && !text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
}

#[test]
fn a_list_of_inputs_has_any_name_that_files_can_have() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let folder = folder();
    let bad = liar().write(folder.path());
    for name in [&b"a\xff\xfe.so"[..], b"two words.so", b"new\nline.so"] {
        let path = folder.path().join(std::ffi::OsStr::from_bytes(name));
        fs::copy(&bad, &path).expect("a copy");
        let list = [path.into_os_string().into_vec(), vec![0]].concat();
        let result = run_with_input(abiaudit().args(["check", "--no-config", "-"]), &list);
        assert!(!result.stderr.contains("standard input"), "{result:?}");
        assert!(!result.stdout.contains("No such file"), "{result:?}");
    }
}
