//! What a person sees, whole. `SNAPSHOTS=overwrite cargo test -p abiaudit --test golden` writes the files anew.

mod common;

use common::{abiaudit, broken, folder, honest, liar, run};
use snapbox::{assert_data_eq, file};

/// Standard output and exit code of a command on the test wheels, run in their folder.
fn output(args: &[&str]) -> String {
    let folder = folder();
    for wheel in [honest(), liar()] {
        wheel.write(folder.path());
    }
    broken(folder.path());
    let result = run(abiaudit().args(args).current_dir(folder.path()));
    assert_eq!(result.stderr, "");
    let code = result.code.expect("no signal");
    format!("$ abiaudit {}\n{}(exit code {code})\n", args.join(" "), without_time(&result.stdout))
}

/// The last line for people says how long it took.
fn without_time(text: &str) -> String {
    let timeless = |line: &str| match line.rsplit_once(" in ") {
        Some((head, tail)) if tail.ends_with(" s") || tail.ends_with(" ms") => format!("{head} in TIME\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(timeless).collect()
}

const HONEST: &str = "honest-1.0-cp312-cp312-manylinux_2_17_x86_64.whl";
const LIAR: &str = "liar-1.0-cp312-cp312-manylinux_2_17_x86_64.whl";
const BROKEN: &str = "broken-1.0-py3-none-any.whl";

#[test]
fn check() {
    assert_data_eq!(output(&["check", "--no-config", HONEST, LIAR]), file!["golden/check.txt"]);
}

#[test]
fn check_with_a_broken_wheel() {
    assert_data_eq!(output(&["check", "--no-config", HONEST, BROKEN]), file!["golden/check-broken.txt"]);
}

#[test]
fn check_quietly() {
    assert_data_eq!(output(&["check", "--no-config", "-q", HONEST, LIAR]), file!["golden/check-quiet.txt"]);
}

#[test]
fn check_for_continuous_integration() {
    assert_data_eq!(
        output(&["check", "--no-config", "-f", "github", LIAR]),
        file!["golden/check-github.txt"]
    );
}

#[test]
fn show() {
    assert_data_eq!(output(&["show", "--no-config", LIAR]), file!["golden/show.txt"]);
}

#[test]
fn explain() {
    assert_data_eq!(output(&["explain", "GLIBCXX_3.4.26"]), file!["golden/explain.txt"]);
}
