//! `abiaudit triage` as a command: exit codes, forms, and that what it advises can be run.

mod common;

use std::fs;
use std::process::Command;

use common::{abiaudit, folder, run, run_with_input};

const FACET: &str = "\
#0  0x00007fffe98a0c24 in std::codecvt<char16_t, char, __mbstate_t>::do_unshift(x) const () from /e/a.so
#1  0x00007fffe9907d1d in std::ostream& std::ostream::_M_insert<long>(long) () from /e/a.so
";

fn triage(argument: &str) -> Command {
    let mut command = abiaudit();
    command.args(["triage", argument]);
    command
}

#[test]
fn exit_codes() {
    let folder = folder();
    let path = folder.path().join("log.txt");
    fs::write(&path, FACET).expect("a file");
    let named = path.to_str().expect("a path");
    assert_eq!(run(&mut triage(named)).code, Some(0));
    assert_eq!(run_with_input(&mut triage("-"), FACET.as_bytes()).code, Some(0));
    let nothing = run_with_input(&mut triage("-"), b"all tests passed\n");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(1), "nothing known in 1 lines\n"));
    let binary = run_with_input(&mut triage("-"), b"\x7fELF\x02\x01\x01\0");
    assert_eq!(binary.code, Some(2));
    assert!(binary.stderr.contains("not a text") && binary.stdout.is_empty(), "{binary:?}");
    assert_eq!(run(&mut triage("/no/such/file")).code, Some(2));
    assert_eq!(run(triage("-").arg("--no-such-option")).code, Some(2));
}

#[test]
fn the_text_names_lines_and_cause() {
    let result = run_with_input(&mut triage("-"), FACET.as_bytes());
    for part in
        ["facet-mismatch: ", "       1  0x7fffe98a0c24 in std::codecvt<char16_t", "STB_GNU_UNIQUE", "mend: "]
    {
        assert!(result.stdout.contains(part), "{part}\n{}", result.stdout);
    }
    assert!(result.stdout.lines().skip(3).all(|line| line.len() <= 100), "{}", result.stdout);
}

#[test]
fn the_json_has_all() {
    let text = "/lib/libc.so.6: version `GLIBC_2.34' not found (required by /e/m.so)\n";
    let found = &run_with_input(triage("-").arg("--json"), text.as_bytes()).json();
    assert_eq!(found["schema"], "abiaudit.triage/1");
    let found = &found["recognised"][0];
    assert_eq!(found["id"], "glibc-too-old");
    assert_eq!(found["evidence"][0]["line"], 1);
    assert_eq!(found["details"]["required_by"][0], "/e/m.so");
    assert_eq!(found["checks"][0]["rule"], "ABI101");
    assert_eq!(found["command"], "abiaudit check --select ABI101,ABI601 WHEEL..");
}

#[test]
fn no_escape_sequence_comes_out() {
    let text = "\u{1b}[31mm.so: invalid ELF header\u{1b}]0;title\u{7}\u{9b}2J\n";
    let result = run_with_input(&mut triage("-"), text.as_bytes());
    assert!(result.stdout.contains("wrong-elf"), "{}", result.stdout);
    assert!(result.stdout.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", result.stdout);
}

/// The table names rules by id only, and the command leaves out what this build does not have.
#[test]
fn every_advised_rule_exists() {
    let rules = run(abiaudit().arg("rules")).stdout;
    for signature in abiaudit_triage::SIGNATURES {
        for check in signature.checks {
            let known = rules.lines().any(|line| line.starts_with(check.rule));
            assert!(known, "{}: {}", signature.id, check.rule);
        }
    }
}
