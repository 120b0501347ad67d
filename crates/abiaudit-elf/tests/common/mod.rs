//! Files for tests: built on the spot by the machine's compiler, and members of real wheels.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rawzip::{CompressionMethod, ZipArchive};

/// One file to look at.
pub struct Sample {
    pub name: String,
    pub bytes: Vec<u8>,
}

const C_SOURCE: &str = r#"
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
__thread int per_thread = 3;
static __thread long own_thread;
int data = 7;
const char *const pointers[] = { "a", "b", "c", "d", "e", "f" };
int weak_reference(void) __attribute__((weak));
__attribute__((visibility("hidden"))) int hidden(void) { return 1; }
__attribute__((visibility("protected"))) int protected_function(void) { return 2; }
__attribute__((weak)) int weak_definition(void) { return 3; }
static int chosen(void) { return 4; }
static void *resolver(void) { return (void *) chosen; }
int chosen_at_run_time(void) __attribute__((ifunc("resolver")));
int answer(int x) { own_thread += x; per_thread++; return printf("%d %s\n", x, pointers[x & 3]) + data; }
void *copy(void *a, const void *b, size_t n) { return memcpy(a, b, n); }
double number(const char *s) { return strtod(s, 0) + (weak_reference ? weak_reference() : 0); }
__attribute__((constructor)) static void begin(void) { data++; }
__attribute__((destructor)) static void end(void) { data--; }
"#;

const VERSION_SCRIPT: &str = "ONE { global: answer; data; local: end_of_one; };\nTWO { global: copy; number; } ONE;\nTHREE { global: *; } TWO;\n";

const PROGRAM: &str = r#"
#include <stdio.h>
extern int data;
extern char **environ;
int answer(int);
int main(void) { fprintf(stderr, "%p\n", (void *) environ); return answer(data); }
"#;

const UNDEFINED_ONLY: &str = "#include <stdio.h>\nextern int elsewhere(void);\nstatic __attribute__((constructor)) void f(void) { puts(\"x\"); elsewhere(); }\n";

const CXX_SOURCE: &str = r"
#include <string>
#include <iostream>
#include <stdexcept>
template <class T> struct Counter { static int count; static T &get() { static T value{}; return value; } };
template <class T> int Counter<T>::count = 1;
inline int &counter() { static int unique; return unique; }
int use(const std::string &s) {
    if (s.empty()) throw std::runtime_error(s);
    std::cout << s << Counter<int>::count << Counter<std::string>::get();
    return ++counter();
}
";

/// Shared libraries, programs and objects of many kinds. Empty, with a loud word, if there is no compiler.
pub fn built() -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, text) in [
        ("lib.c", C_SOURCE),
        ("lib.map", VERSION_SCRIPT),
        ("main.c", PROGRAM),
        ("undefined.c", UNDEFINED_ONLY),
        ("cxx.cc", CXX_SOURCE),
    ] {
        std::fs::write(at.join(name), text).unwrap();
    }
    if !run(at, "gcc --version") {
        eprintln!("SKIPPED: no gcc here, files are not built on the spot");
        return Vec::new();
    }
    let mut samples = Vec::new();
    // The first must work wherever there is a compiler at all; later ones need newer or larger tool sets.
    let commands: &[(&str, &str)] = &[
        ("lib.so", "gcc -shared -fPIC lib.c -o lib.so -Wl,-soname,liblib.so.1"),
        ("sysv.so", "gcc -shared -fPIC lib.c -o sysv.so -Wl,--hash-style=sysv"),
        ("gnu.so", "gcc -shared -fPIC lib.c -o gnu.so -Wl,--hash-style=gnu"),
        ("both.so", "gcc -shared -fPIC lib.c -o both.so -Wl,--hash-style=both"),
        ("relr.so", "gcc -shared -fPIC lib.c -o relr.so -Wl,-z,pack-relative-relocs"),
        ("versions.so", "gcc -shared -fPIC lib.c -o versions.so -Wl,--version-script=lib.map,-z,now"),
        ("rpath.so", "gcc -shared -fPIC lib.c -o rpath.so -Wl,--disable-new-dtags,-rpath,$ORIGIN/a:$ORIGIN"),
        ("runpath.so", "gcc -shared -fPIC lib.c -o runpath.so -Wl,--enable-new-dtags,-rpath,$ORIGIN/b"),
        ("stack.so", "gcc -shared -fPIC lib.c -o stack.so -Wl,-z,execstack,-z,nodelete,-Bsymbolic"),
        ("oneload.so", "gcc -shared -fPIC lib.c -o oneload.so -Wl,-z,noseparate-code,--build-id=sha1"),
        ("isa.so", "gcc -shared -fPIC lib.c -o isa.so -Wl,-z,x86-64-v3"),
        ("undefined.so", "gcc -shared -fPIC undefined.c -o undefined.so -Wl,--hash-style=gnu"),
        ("cxx.so", "g++ -shared -fPIC cxx.cc -o cxx.so"),
        ("static-cxx.so", "g++ -shared -fPIC cxx.cc -o static-cxx.so -static-libstdc++ -static-libgcc"),
        ("lib.o", "gcc -c -g -fPIC lib.c -o lib.o"),
        ("pie", "gcc main.c -o pie lib.so -pie -fPIE"),
        ("copy", "gcc main.c -o copy lib.so -no-pie -fno-pie"),
        ("copy-versions", "gcc main.c -o copy-versions versions.so -no-pie -fno-pie"),
        ("static", "gcc undefined.c main.c lib.c -o static -static -Wl,--unresolved-symbols=ignore-all"),
        ("static-pie", "gcc main.c lib.c -o static-pie -static-pie -fPIE"),
        ("text.so", "gcc -shared -m32 -fno-pic undefined.c -o text.so"),
        ("lib32.so", "gcc -shared -m32 -fPIC lib.c -o lib32.so"),
        ("textrel.so", "gcc -shared -fno-pic -mcmodel=large undefined.c -o textrel.so -Wl,-z,notext"),
        ("debug.so", "gcc -shared -g -fPIC lib.c -o debug.so"),
        ("debug.dbg", "objcopy --only-keep-debug debug.so debug.dbg"),
        ("stripped.so", "strip -o stripped.so debug.so"),
        ("compressed.so", "gcc -shared -g -gz -fPIC lib.c -o compressed.so"),
        ("lld.so", "gcc -shared -fPIC lib.c -o lld.so -fuse-ld=lld"),
        ("gold.so", "gcc -shared -fPIC lib.c -o gold.so -fuse-ld=gold"),
        ("aarch64.so", "aarch64-linux-gnu-gcc -shared -fPIC lib.c -o aarch64.so"),
        ("s390x.so", "s390x-linux-gnu-gcc -shared -fPIC lib.c -o s390x.so"),
    ];
    for (i, (name, command)) in commands.iter().enumerate() {
        if run(at, command) {
            let bytes = std::fs::read(at.join(name)).unwrap();
            samples.push(Sample { name: (*name).to_owned(), bytes });
        } else {
            assert_ne!(i, 0, "the compiler cannot make a shared library: {command}");
            eprintln!("SKIPPED: this machine's tools cannot do: {command}");
        }
    }
    let sstripped: Vec<_> =
        samples.iter().filter(|s| s.name.ends_with(".so")).map(without_sections).collect();
    samples.extend(sstripped);
    samples
}

/// As `sstrip` leaves it: no section header table.
fn without_sections(sample: &Sample) -> Sample {
    let mut bytes = sample.bytes.clone();
    let fields: &[std::ops::Range<usize>] =
        if bytes[4] == 2 { &[0x28..0x30, 0x3c..0x40] } else { &[0x20..0x24, 0x30..0x34] };
    for field in fields {
        bytes[field.clone()].fill(0);
    }
    Sample { name: format!("{} without sections", sample.name), bytes }
}

/// Runs a command of words without quotes; true if it worked.
pub fn run(folder: &Path, command: &str) -> bool {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).current_dir(folder).env("LC_ALL", "C").output();
    output.is_ok_and(|output| output.status.success())
}

/// The wheels in the folder that `ABIAUDIT_CORPUS` names, up to `most` bytes each, smallest first.
pub fn wheels(most: u64) -> Vec<PathBuf> {
    let Ok(folder) = std::env::var("ABIAUDIT_CORPUS") else {
        eprintln!("SKIPPED: ABIAUDIT_CORPUS names no folder of wheels");
        return Vec::new();
    };
    let mut wheels: Vec<(u64, PathBuf)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "whl"))
        .map(|entry| (entry.metadata().unwrap().len(), entry.path()))
        .filter(|&(size, _)| size <= most)
        .collect();
    wheels.sort();
    wheels.into_iter().map(|(_, path)| path).collect()
}

/// Calls `visit` with every ELF member of a wheel.
pub fn each_elf(wheel: &Path, mut visit: impl FnMut(&Sample)) {
    let file = std::fs::read(wheel).unwrap();
    let archive = ZipArchive::from_slice(&file).unwrap();
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry().unwrap() {
        let data = archive.get_entry(entry.wayfinder()).unwrap().data();
        let mut reader: Box<dyn std::io::Read> = match entry.compression_method() {
            CompressionMethod::STORE => Box::new(data),
            CompressionMethod::DEFLATE => Box::new(flate2::read::DeflateDecoder::new(data)),
            other => panic!("{}: method {other:?}", wheel.display()),
        };
        let mut bytes = Vec::new();
        reader.by_ref().take(4).read_to_end(&mut bytes).unwrap();
        if bytes == b"\x7fELF" {
            bytes.reserve(entry.uncompressed_size_hint() as usize);
            reader.read_to_end(&mut bytes).unwrap();
            let member = String::from_utf8_lossy(entry.file_path().as_ref()).into_owned();
            let wheel = wheel.file_name().unwrap().to_string_lossy();
            visit(&Sample { name: format!("{wheel}: {member}"), bytes });
        }
    }
}
