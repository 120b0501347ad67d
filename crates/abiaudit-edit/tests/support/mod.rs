//! Files that the machine's own compilers make, and what its tools say about them.
//!
//! A test that needs a tool which the machine lacks is skipped, and says so.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use abiaudit_edit::{Edit, EditPlan, Edited, Options, Place, SearchPathKind, edit};

/// Functions that call each other and the C library, data with relocations, and a known answer.
pub const SOURCE: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static int forty(void) { return 40; }
static int (*const table[])(void) = { forty };
int two = 2;
int *pointer_to_two = &two;
char zeros[5000];
int twice_answer(void) { return 84; }
int answer(void) {
    char text[64];
    snprintf(text, sizeof text, "%d", table[0]() + *pointer_to_two + zeros[4999]);
    return atoi(text);
}
"#;

/// Loads a library and demands the answer.
const LOADER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) { puts(dlerror()); return 1; }
    int (*answer)(void) = (int (*)(void))dlsym(library, argc > 2 ? argv[2] : "answer");
    if (!answer) { puts(dlerror()); return 2; }
    return answer() == 42 ? 0 : 3;
}
"#;

/// A folder in which one compiler works.
pub struct Bench {
    folder: tempfile::TempDir,
    compiler: &'static str,
}

impl Bench {
    /// `None`, with a word about it, if the compiler is not there.
    pub fn new(compiler: &'static str) -> Option<Self> {
        if !has(compiler) {
            return None;
        }
        Some(Self { folder: tempfile::tempdir().expect("a temporary directory"), compiler })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file in the temporary directory");
        path
    }

    /// A shared library of a source.
    pub fn library(&self, source: &str, flags: &[&str]) -> Vec<u8> {
        let mut all = vec!["-shared", "-fPIC", "-O1", "-g"];
        all.extend(flags);
        self.build(source, &all)
    }

    pub fn build(&self, source: &str, flags: &[&str]) -> Vec<u8> {
        let (input, output) = (self.write("source.c", source), self.path("built"));
        let mut command = Command::new(self.compiler);
        command.arg("-o").arg(&output).arg(&input).args(flags).arg("-lm");
        require(&mut command);
        std::fs::read(output).expect("what the compiler made")
    }

    /// Loads the library in a process of its own.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.load_symbol(name, bytes, "answer")
    }

    pub fn load_symbol(&self, name: &str, bytes: &[u8], symbol: &str) -> Result<(), String> {
        let loader = self.path("loader");
        if !loader.exists() {
            let source = self.write("loader.c", LOADER);
            require(Command::new("gcc").arg("-o").arg(&loader).arg(source).arg("-ldl"));
        }
        let library = self.write(name, bytes);
        let run = Command::new(loader).arg(library).arg(symbol).output().expect("the loader");
        if run.status.success() { Ok(()) } else { Err(format!("{}: {}", run.status, text(&run))) }
    }

    /// What a tool makes of a file, which it writes to the argument behind `-o`.
    pub fn through(&self, tool: &str, arguments: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
        if !has(tool) {
            return None;
        }
        let (input, output) = (self.write("before", bytes), self.path("after"));
        let mut command = Command::new(tool);
        match tool {
            // objcopy takes the output as its second operand.
            "objcopy" => command.args(arguments).arg(&input).arg(&output),
            _ => command.args(arguments).arg("-o").arg(&output).arg(&input),
        };
        require(&mut command);
        Some(std::fs::read(output).expect("what the tool made"))
    }

    /// Lines of `eu-elflint` and of the warnings of `readelf` that the edited file has and the original has not.
    pub fn new_complaints(&self, before: &[u8], after: &[u8]) -> Vec<String> {
        let path = self.path("judged");
        let complaints = |bytes: &[u8]| -> Vec<String> {
            std::fs::write(&path, bytes).expect("a file in the temporary directory");
            let mut lines = Vec::new();
            if has("eu-elflint") {
                let run = Command::new("eu-elflint").arg("--gnu-ld").arg(&path).output().expect("eu-elflint");
                lines.extend(text(&run).lines().map(str::to_owned));
            }
            let run = Command::new("readelf").arg("-aW").arg(&path).output().expect("readelf");
            lines.extend(String::from_utf8_lossy(&run.stderr).lines().map(str::to_owned));
            lines
        };
        let mut known: Vec<String> = complaints(before).iter().map(|line| without_numbers(line)).collect();
        let mut new = complaints(after);
        // As many of a kind as there were: numbers of entries and segments change.
        new.retain(|line| match known.iter().position(|known| *known == without_numbers(line)) {
            Some(at) => {
                known.swap_remove(at);
                false
            }
            None => line != "No errors",
        });
        new
    }

    /// Demands that a library loads, before and after each tool that strips.
    pub fn survives(&self, bytes: &[u8]) {
        self.load("edited.so", bytes).expect("the edited library loads");
        let tools: [(&str, &[&str]); 3] =
            [("strip", &["--strip-unneeded"]), ("eu-strip", &[]), ("objcopy", &["--strip-debug"])];
        for (tool, arguments) in tools {
            if let Some(stripped) = self.through(tool, arguments, bytes) {
                let loaded = self.load("stripped.so", &stripped);
                loaded.unwrap_or_else(|error| panic!("after {tool}: {error}"));
            }
        }
        self.through("objcopy", &["--only-keep-debug"], bytes);
    }

    /// Edits by the plan of the bar, and demands that tools have no complaint and that it loads.
    pub fn edit_and_judge(&self, bytes: &[u8]) -> Edited {
        let edited = edit(bytes, &usual_plan(), &Options::default()).expect("an edited library");
        assert_eq!(self.new_complaints(bytes, &edited.bytes), Vec::<String>::new());
        let again = edit(&edited.bytes, &usual_plan(), &Options::default()).expect("a second edit");
        assert!(!again.is_changed(), "a second edit changes nothing");
        if self.compiler == "gcc" {
            self.survives(&edited.bytes);
        }
        edited
    }
}

/// Search path, name and one more library: all strings are longer than what was there.
pub fn usual_plan() -> EditPlan {
    EditPlan::new([
        Edit::SetSearchPath { kind: SearchPathKind::Runpath, path: "$ORIGIN/../some-package.libs".into() },
        Edit::SetSoname { soname: "libedited-0123456789abcdef.so.1".into() },
        Edit::AddNeeded { library: "libm.so.6".into(), place: Place::Last },
        Edit::AddNeeded { library: "libdl.so.2".into(), place: Place::First },
    ])
}

pub fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no {tool}");
    }
    found
}

fn require(command: &mut Command) {
    let run = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(run.status.success(), "{command:?}: {}", text(&run));
}

fn text(run: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

/// One program header of a 64-bit little-endian file: its offset in the file, and its words.
pub fn program_headers(bytes: &[u8]) -> Vec<(usize, u32, [u64; 6])> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (begin, count) = (word(32) as usize, u16::from_le_bytes([bytes[56], bytes[57]]));
    let header = |index: usize| {
        let at = begin + index * 56;
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        (at, kind, std::array::from_fn(|field| word(at + 8 + 8 * field)))
    };
    (0..usize::from(count)).map(header).collect()
}

/// Number of program headers of a kind.
pub fn count(bytes: &[u8], kind: u32) -> usize {
    program_headers(bytes).iter().filter(|(_, found, _)| *found == kind).count()
}

pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub fn dynamic(path: &Path) -> String {
    let run = Command::new("readelf").arg("-dW").arg(path).output().expect("readelf");
    text(&run)
}

/// Path in `.interp`.
pub fn interpreter(bytes: &[u8]) -> Option<String> {
    let (_, _, words) = program_headers(bytes).into_iter().find(|header| header.1 == 3)?;
    let path = bytes.get(words[0] as usize..(words[0] + words[3]) as usize)?;
    Some(String::from_utf8_lossy(path).trim_end_matches('\0').to_owned())
}

impl Bench {
    /// Runs a program and demands success.
    pub fn run(&self, name: &str, bytes: &[u8]) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, bytes);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("a mode");
        require(&mut Command::new(path));
    }
}

fn without_numbers(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).collect()
}

impl Bench {
    /// What a program prints that is given a file.
    pub fn run_with(&self, name: &str, program: &[u8], argument: &Path) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, program);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("a mode");
        let run = Command::new(path).arg(argument).output().expect("the program");
        assert!(run.status.success(), "{}", text(&run));
        String::from_utf8_lossy(&run.stdout).into_owned()
    }
}
