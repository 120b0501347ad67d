//! What g++ made loads and works after the repair, also once the system has stripped it.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use abiaudit_repair::machine::{LibraryPaths, Root};
use abiaudit_testing::TestWheel;
use support::{Bench, TAGS, names, read};

/// A library whose symbol has a version, one that it needs, a module, a program, and what opens the module.
const DEEP: &str = "extern \"C\" int deep() { return 40; }";
const FOO: &str = "extern \"C\" int deep(); extern \"C\" int foo() { return deep() + 1; }";
const MODULE: &str = "extern \"C\" int foo(); extern \"C\" int PyInit_m() { return foo() + 1; }";
const TOOL: &str = "extern \"C\" int foo(); int main() { return foo(); }";
const OPENER: &str = "#include <dlfcn.h>\n#include <cstdio>\n\
    int main(int, char **argv) {\n\
      void *module = dlopen(argv[1], RTLD_NOW);\n\
      if (!module) { std::puts(dlerror()); return 99; }\n\
      return reinterpret_cast<int (*)()>(dlsym(module, \"PyInit_m\"))();\n\
    }\n";

struct Build {
    folder: PathBuf,
}

impl Build {
    fn make(&self, output: &str, source: &str, flags: &[&str]) -> PathBuf {
        let (input, output) = (self.folder.join("source.cpp"), self.folder.join(output));
        fs::create_dir_all(output.parent().expect("a directory")).expect("a directory");
        fs::write(&input, source).expect("a file");
        let mut command = Command::new("g++");
        command.current_dir(&self.folder).args(["-fPIC", "-g", "-o"]).arg(&output).arg(&input).args(flags);
        let run = command.output().expect("g++");
        assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
        output
    }
}

/// Unpacks a wheel as an installer would, as far as this test needs it.
fn install(wheel: &Path, into: &Path) {
    let run =
        Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(into).output().expect("python3");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

fn open(opener: &Path, module: &Path) -> Output {
    Command::new(opener).arg(module).env_remove("LD_LIBRARY_PATH").output().expect("the opener")
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test must say so")]
fn modules_and_programs() {
    for program in ["g++", "python3", "strip"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no {program} on this machine");
            return;
        }
    }
    let mut bench = Bench::new();
    let build = Build { folder: bench.path("build") };
    fs::create_dir_all(&build.folder).expect("a directory");
    fs::write(build.folder.join("map"), "FOO_1 { global: foo; };").expect("a file");
    build.make("lib/libdeep.so", DEEP, &["-shared", "-Wl,-soname,libdeep.so.1"]);
    fs::rename(build.folder.join("lib/libdeep.so"), build.folder.join("lib/libdeep.so.1")).expect("renamed");
    let foo = ["-shared", "-Wl,-soname,libfoo.so.2", "-Wl,--version-script=map", "-Llib", "-l:libdeep.so.1"];
    build.make("lib/libfoo.so.2.0.1", FOO, &foo);
    std::os::unix::fs::symlink("libfoo.so.2.0.1", build.folder.join("lib/libfoo.so.2")).expect("a link");
    let uses = ["-Llib", "-l:libfoo.so.2", "-Wl,--allow-shlib-undefined"];
    let module = build.make("m.so", MODULE, &[&["-shared"], uses.as_slice()].concat());
    let tool = build.make("tool", TOOL, &[uses.as_slice(), &["-Wl,-rpath-link,lib"]].concat());
    let opener = build.make("opener", OPENER, &["-ldl"]);

    bench.options.root = Root::machine();
    let lib = build.folder.join("lib").to_string_lossy().into_owned();
    bench.options.paths = LibraryPaths { environment: vec![lib], ..LibraryPaths::default() };
    let wheel = TestWheel::new("pkg", "1.0", TAGS)
        .program("pkg/m.so", fs::read(module).expect("the module"))
        .program("pkg-1.0.data/scripts/tool", fs::read(tool).expect("the program"));
    let repaired = bench.repair(&wheel).expect("repaired");
    assert_eq!(names(&read(&repaired.path)).iter().filter(|name| name.starts_with("pkg.libs/")).count(), 2);

    let site = bench.path("site");
    install(&repaired.path, &site);
    fs::remove_dir_all(build.folder.join("lib")).expect("removed");
    let loaded = open(&opener, &site.join("pkg/m.so"));
    assert_eq!(loaded.status.code(), Some(42), "{}", String::from_utf8_lossy(&loaded.stdout));
    let program = site.join("pkg.scripts/tool");
    let chmod = Command::new("chmod").arg("+x").arg(&program).status().expect("chmod");
    assert!(chmod.success());
    assert_eq!(Command::new(&program).status().expect("the program").code(), Some(41));

    for library in fs::read_dir(site.join("pkg.libs")).expect("the libraries") {
        let strip = Command::new("strip").arg(library.expect("a library").path()).status().expect("strip");
        assert!(strip.success());
    }
    let strip = Command::new("strip").arg(site.join("pkg/m.so")).status().expect("strip");
    assert!(strip.success());
    let loaded = open(&opener, &site.join("pkg/m.so"));
    assert_eq!(loaded.status.code(), Some(42), "stripped: {}", String::from_utf8_lossy(&loaded.stdout));
}
