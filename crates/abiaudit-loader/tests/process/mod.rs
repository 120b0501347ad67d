//! Builds programs and libraries with the machine's compiler, runs them, and asks each reference where it leads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_elf::{Object, ObjectType, SegmentType, Wants};
use abiaudit_loader::binding::{Event, File, Process, Program, Provider, Scenario, Target};
use abiaudit_loader::search::{Libc, Library};

/// One library, or the program. Every symbol is an array of characters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spec {
    /// File name.
    pub name: &'static str,
    /// Libraries of the case that it is linked with, in order.
    pub needed: &'static [&'static str],
    pub defines: &'static [Definition],
    /// What it refers to; a weak reference has a `?` behind its name.
    pub refers: &'static [&'static str],
    /// Further options of the compiler.
    pub options: &'static [&'static str],
    /// A version script.
    pub versions: &'static str,
    /// Linked with `needed` as they are, which is then replaced by a later one of the same name.
    pub is_draft: bool,
    /// What is changed in the file after linking, because no linker makes it so.
    pub patches: &'static [Patch],
}

#[derive(Debug, Clone, Copy)]
pub enum Definition {
    Global(&'static str),
    Weak(&'static str),
    Unique(&'static str),
    /// `name@version` or `name@@version`.
    Versioned(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub enum Patch {
    /// Sets `DF_SYMBOLIC`; the linker would bind the references itself.
    Symbolic,
    /// Sets the visibility of a symbol: 2 is hidden, 3 protected.
    Visibility(&'static str, u8),
}

/// What the program does.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Local(&'static str),
    Global(&'static str),
}

#[derive(Debug, Clone, Default)]
pub struct Case {
    pub title: &'static str,
    /// Libraries before those that are linked with them.
    pub libraries: Vec<Spec>,
    pub program: Spec,
    pub preload: &'static [&'static str],
    pub steps: &'static [Step],
}

/// Per object and reference: the object and the offset in it, or nothing.
type Answers = BTreeMap<(String, String), Option<(String, u64)>>;

pub struct Workshop {
    libc: Libc,
    compiler: &'static str,
}

impl Workshop {
    /// `None`, with a word about it, if the machine lacks the tools.
    pub fn new(libc: Libc) -> Option<Self> {
        let compiler = match libc {
            Libc::Glibc => "gcc",
            Libc::Musl => "musl-gcc",
        };
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("empty.c");
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let program = directory.path().join("empty");
        let built = Command::new(compiler).arg(&source).arg("-o").arg(&program).output();
        let works =
            built.is_ok_and(|output| output.status.success()) && Command::new(&program).status().is_ok();
        let is_glibc = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
        let right_libc = libc == Libc::Musl || is_glibc.is_ok_and(|output| output.status.success());
        if !works || !right_libc || std::env::consts::ARCH != "x86_64" {
            eprintln!("SKIPPED: {compiler} for x86_64 does not work here, {libc:?} was not asked");
            return None;
        }
        Some(Self { libc, compiler })
    }

    /// Demands that the simulation says what happens; returns how many references were compared.
    pub fn compare(&self, case: &Case) -> usize {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for spec in case.libraries.iter().chain([&case.program]) {
            self.build(&root, spec);
        }
        let mut real = real(&root, case);
        // What a program defines or copies it finds without a relocation that names the symbol.
        let program = read(&root.join(case.program.name));
        real.retain(|(object, symbol), _| {
            object != case.program.name || program.symbols.definitions(symbol.as_bytes()).is_empty()
        });
        let simulated = self.simulate(&root, case);
        assert_eq!(simulated, real, "{} ({:?})", case.title, self.libc);
        real.len()
    }

    fn build(&self, root: &Path, spec: &Spec) {
        let source = root.join(format!("{}.c", spec.name));
        let is_program = !spec.name.contains(".so");
        fs::write(&source, source_of(spec, is_program)).unwrap();
        let mut command = Command::new(self.compiler);
        command.args(["-O0", "-Wl,--no-as-needed", "-Wl,-z,now", "-Wl,-rpath,$ORIGIN", "-L"]).arg(root);
        if !is_program {
            command
                .args(["-fPIC", "-shared", "-Wl,--hash-style=gnu"])
                .arg(format!("-Wl,-soname,{}", spec.name));
        }
        if !spec.versions.is_empty() {
            let script = root.join(format!("{}.map", spec.name));
            fs::write(&script, spec.versions).unwrap();
            command.arg(format!("-Wl,--version-script={}", script.display()));
        }
        command.arg(&source).arg("-o").arg(root.join(spec.name)).args(spec.options);
        command.args(spec.needed.iter().map(|name| format!("-l:{name}")));
        if is_program {
            command.args(["-Wl,--allow-shlib-undefined", "-ldl"]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        for patch in spec.patches {
            apply(&root.join(spec.name), *patch);
        }
    }

    fn simulate(&self, root: &Path, case: &Case) -> Answers {
        let specs: Vec<&Spec> =
            case.libraries.iter().filter(|spec| !spec.is_draft).chain([&case.program]).collect();
        let path = |spec: &&Spec| root.join(spec.name).to_str().unwrap().to_owned();
        let paths: Vec<String> = specs.iter().map(path).collect();
        let objects: Vec<Object> = paths.iter().map(|path| read(Path::new(path))).collect();
        let libraries = paths.iter().zip(&objects).map(|(path, object)| Library { path, object });
        let files: Vec<File<'_>> = libraries.map(|library| File { library, group: 1 }).collect();
        let position = |name: &str| specs.iter().position(|spec| spec.name == name).unwrap();
        let event = |step: &Step| {
            let (name, global) = match *step {
                Step::Local(name) => (name, false),
                Step::Global(name) => (name, true),
            };
            Event::Dlopen { target: Target::File(position(name)), global, caller: None }
        };
        let events: Vec<Event<'_>> = case.steps.iter().map(event).collect();
        let preload: Vec<Target<'_>> = case.preload.iter().map(|name| Target::File(position(name))).collect();
        let process = Process::run(&Scenario {
            libc: self.libc,
            files: &files,
            system: &[],
            default_directories: &[],
            program: Program::File(position(case.program.name)),
            preload: &preload,
            events: &events,
        });
        let mut answers = Answers::new();
        for binding in process.bindings.iter() {
            let (spec, object) = (specs[binding.file as usize], &objects[binding.file as usize]);
            let symbol = object.symbols.name_text(object.symbols.get(binding.symbol).unwrap());
            let probed = spec.refers.iter().any(|reference| reference.trim_end_matches('?') == symbol);
            if probed
                && !object
                    .symbols
                    .get(binding.symbol)
                    .unwrap()
                    .uses
                    .contains(abiaudit_elf::RelocationUse::COPY)
            {
                let answer = match binding.provider {
                    Provider::File { file, symbol } => {
                        let (provider, object) = (specs[file as usize], &objects[file as usize]);
                        Some((
                            provider.name.to_owned(),
                            object.symbols.get(symbol).unwrap().value - base(object),
                        ))
                    }
                    _ => None,
                };
                answers.insert((spec.name.to_owned(), symbol), answer);
            }
        }
        answers
    }
}

/// Address of the first segment: programs with fixed addresses have one.
fn base(object: &Object) -> u64 {
    let is_fixed = object.identity.object_type == ObjectType::Executable;
    if is_fixed { object.segments.loads().next().unwrap().address } else { 0 }
}

fn read(path: &Path) -> Object {
    Object::from_bytes(&fs::read(path).unwrap(), &Wants::default()).unwrap()
}

/// Runs the program, which tells of all references of all objects that have any.
fn real(root: &Path, case: &Case) -> Answers {
    let file = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let mut command = Command::new(root.join(case.program.name));
    command.env_clear();
    if !case.preload.is_empty() {
        let preload: Vec<String> = case.preload.iter().map(|name| file(name)).collect();
        command.env("LD_PRELOAD", preload.join(":"));
    }
    for step in case.steps {
        match *step {
            Step::Local(name) => command.arg(format!("l{}", file(name))),
            Step::Global(name) => command.arg(format!("g{}", file(name))),
        };
    }
    for spec in case.libraries.iter().filter(|spec| !spec.is_draft && !spec.refers.is_empty()) {
        command.arg(format!("?{}", file(spec.name))).arg(table(spec.name));
    }
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {:?} {error}", case.title, output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let answers = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let provider = match words[2..] {
            [path, offset] => {
                let name = PathBuf::from(path).file_name().unwrap().to_str().unwrap().to_owned();
                Some((name, u64::from_str_radix(offset, 16).unwrap()))
            }
            _ => None,
        };
        let from = PathBuf::from(words[0]).file_name().unwrap().to_str().unwrap().to_owned();
        ((from, words[1].to_owned()), provider)
    });
    answers.collect()
}

/// Name of the array that holds the references of an object.
fn table(name: &str) -> String {
    format!("references_{}", name.replace('.', "_"))
}

fn source_of(spec: &Spec, is_program: bool) -> String {
    let mut source = String::new();
    let mut line = |text: String| {
        source.push_str(&text);
        source.push('\n');
    };
    for definition in spec.defines {
        line(match *definition {
            Definition::Global(name) => format!("char {name}[8] = \"data\";"),
            Definition::Weak(name) => format!("__attribute__((weak)) char {name}[8] = \"data\";"),
            Definition::Unique(name) => format!(
                "extern char {name}[8]; __asm__(\".data\\n.globl {name}\\n.type {name},@gnu_unique_object\\n\
                .size {name},8\\n{name}: .zero 8\\n.text\");"
            ),
            Definition::Versioned(name) => {
                let local = name.replace('@', "_");
                format!("char {local}[8] = \"data\"; __asm__(\".symver {local},{name}\");")
            }
        });
    }
    let defined = |wanted: &str| {
        let name = |definition: &Definition| match *definition {
            Definition::Global(name) | Definition::Weak(name) | Definition::Unique(name) => name,
            Definition::Versioned(_) => "",
        };
        spec.defines.iter().any(|definition| name(definition) == wanted)
    };
    for reference in spec.refers {
        let name = reference.trim_end_matches('?');
        let weak = if reference.ends_with('?') { " __attribute__((weak))" } else { "" };
        if !defined(name) {
            line(format!("extern char {name}[8]{weak};"));
        }
    }
    line("struct reference { const char *name; void *address; };".to_owned());
    line(format!("struct reference {}[] = {{", table(spec.name)));
    for reference in spec.refers {
        let name = reference.trim_end_matches('?');
        line(format!("    {{ \"{name}\", {name} }},"));
    }
    line("    { 0, 0 }\n};".to_owned());
    if is_program {
        line(format!("#define OWN {}", table(spec.name)));
        line(MAIN.to_owned());
    }
    source
}

/// Opens what it is told to, then tells where the references lead: object, reference, object that has the address,
/// offset in it.
const MAIN: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static void tell(const char *from, struct reference *references) {
    for (; references->name; references++) {
        Dl_info info;
        if (!references->address || !dladdr(references->address, &info)) {
            printf("%s %s -\n", from, references->name);
        } else {
            printf("%s %s %s %lx\n", from, references->name, info.dli_fname,
                   (unsigned long) ((char *) references->address - (char *) info.dli_fbase));
        }
    }
}
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void *handle;
        if (argv[i][0] == '?') {
            handle = dlopen(argv[i] + 1, RTLD_NOW | RTLD_NOLOAD);
            if (handle) tell(argv[i] + 1, dlsym(handle, argv[i + 1]));
            i++;
            continue;
        }
        handle = dlopen(argv[i] + 1, RTLD_NOW | (argv[i][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL));
        if (!handle) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }
    tell(argv[0], OWN);
    return 0;
}
"#;

fn apply(path: &Path, patch: Patch) {
    const DT_FLAGS: i64 = 30;
    const DF_SYMBOLIC: u8 = 2;
    const DT_SYMTAB: i64 = 6;
    const DYNAMIC_ENTRY: usize = 16;
    const SYMBOL: usize = 24;
    let object = read(path);
    let mut bytes = fs::read(path).unwrap();
    let entries = &object.dynamic.entries;
    match patch {
        Patch::Symbolic => {
            let dynamic = object.segments.first(SegmentType::Dynamic).unwrap().offset as usize;
            let position = entries.iter().position(|(tag, _)| *tag == DT_FLAGS).unwrap();
            bytes[dynamic + position * DYNAMIC_ENTRY + 8] |= DF_SYMBOLIC;
        }
        Patch::Visibility(name, visibility) => {
            // The first segment holds the symbols, and its addresses are offsets in the file.
            let symbols = entries.iter().find(|(tag, _)| *tag == DT_SYMTAB).unwrap().1 as usize;
            let index =
                1 + object.symbols.iter().position(|s| object.symbols.name(s) == name.as_bytes()).unwrap();
            bytes[symbols + index * SYMBOL + 5] = visibility;
        }
    }
    fs::write(path, bytes).unwrap();
}
