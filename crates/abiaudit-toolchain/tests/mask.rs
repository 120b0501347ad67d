//! Masks a library that has an old and a new version node. A machine without g++ skips this test, and says so.
#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::Command;

use abiaudit_policy::PolicySet;
use abiaudit_toolchain::mask::mask;

const LIBRARY: &str = "extern \"C\" int old() { return 1; } extern \"C\" int fresh() { return 2; }";
const NODES: &str = "GLIBCXX_3.4.24 { global: old; }; GLIBCXX_3.4.30 { global: fresh; local: *; };";

fn gxx(directory: &Path, arguments: &[&str]) {
    let output = Command::new("g++").args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_loader_refuses_what_is_masked_and_nothing_else() {
    if Command::new("g++").arg("--version").output().is_err() || !cfg!(target_arch = "x86_64") {
        eprintln!("SKIPPED: there is no g++ for x86_64 on this machine");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
    write("library.cc", LIBRARY);
    write("nodes.map", NODES);
    let script = "-Wl,--version-script=nodes.map";
    gxx(
        directory.path(),
        &["-shared", "-fPIC", "-nostdlib", script, "-Wl,-soname,libx.so", "-o", "libx.so", "library.cc"],
    );
    for name in ["old", "fresh"] {
        write("main.cc", &format!("extern \"C\" int {name}(); int main() {{ return {name}(); }}"));
        gxx(directory.path(), &["-o", name, "main.cc", "-L.", "-lx", "-Wl,-rpath,$ORIGIN"]);
    }
    let run = |name: &str| {
        let output = Command::new(at(name)).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!((run("old").0, run("fresh").0), (Some(1), Some(2)));

    let target = PolicySet::builtin().target("manylinux_2_28_x86_64").unwrap();
    let mut bytes = std::fs::read(at("libx.so")).unwrap();
    let masked = mask(&at("libx.so"), &mut bytes, &target).unwrap();
    assert_eq!(masked.iter().map(String::as_str).collect::<Vec<_>>(), ["GLIBCXX_3.4.30"]);
    std::fs::write(at("libx.so"), &bytes).unwrap();
    assert_eq!(run("old").0, Some(1));
    let (code, message) = run("fresh");
    assert_ne!(code, Some(2));
    assert!(message.contains("version `GLIBCXX_3.4.30' not found"), "{message}");

    // A second time there is nothing to do, and what is no library is said to be none.
    assert!(mask(&at("libx.so"), &mut bytes, &target).unwrap().is_empty());
    assert!(mask(Path::new("x"), &mut b"\x7fELF and nothing more".to_vec(), &target).is_err());
    let mut cut = bytes[..bytes.len() / 2].to_vec();
    let _ = mask(Path::new("x"), &mut cut, &target);
}
