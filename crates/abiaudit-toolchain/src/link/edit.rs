//! What a link through the toolchain is given beyond, or in place of, what the driver said.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::manifest::Manifest;

/// What comes out of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// A shared library.
    Shared,
    /// An executable that the dynamic loader starts.
    Executable,
    /// Nothing that uses shared libraries: `-r`, a static executable, `--help`.
    Other,
}

/// The changed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The arguments for the linker.
    pub arguments: Vec<OsString>,
    /// What was changed against the wish of the caller.
    pub notices: Vec<String>,
}

/// Libraries of the toolchain that a program must not get from an archive: their shared ones are one per process.
const SHARED_ONLY: &[&str] =
    &["stdc++", "gcc_s", "c", "m", "pthread", "dl", "rt", "util", "resolv", "mvec", "anl", "atomic"];

/// Options whose value is the next word, which may look like a file of the toolchain and is not to be replaced.
const VALUED: &[&str] = &[
    "-o",
    "--output",
    "-soname",
    "--soname",
    "-h",
    "-rpath",
    "--rpath",
    "-rpath-link",
    "--rpath-link",
    "-L",
    "-m",
    "-plugin",
    "--plugin",
    "-plugin-opt",
    "--plugin-opt",
    "-dynamic-linker",
    "--dynamic-linker",
    "-I",
    "-e",
    "--entry",
    "-u",
    "--undefined",
    "-init",
    "-fini",
    "-Map",
    "--Map",
    "-T",
    "--script",
    "-R",
    "-y",
    "-Y",
    "-f",
    "-F",
    "-A",
    "-b",
    "--version-script",
    "--dynamic-list",
    "--defsym",
    "--wrap",
    "--sysroot",
    "--exclude-libs",
];

/// What the arguments make, on the target's architecture.
pub fn output_kind(arguments: &[OsString], arch: &str) -> OutputKind {
    // A compiler for another machine may run in the same environment (`-m32`, a cross compiler).
    if emulation(arguments).is_some_and(|emulation| !emulation.contains(arch)) {
        return OutputKind::Other;
    }
    let has = |names: &[&str]| arguments.iter().any(|argument| names.iter().any(|name| argument == name));
    if has(&["-r", "-i", "--relocatable", "-relocatable", "-Ur"]) {
        OutputKind::Other
    } else if has(&["-shared", "--shared", "-Bshareable", "-G"]) {
        OutputKind::Shared
    } else if has(&["-dynamic-linker", "--dynamic-linker", "-I"])
        || arguments
            .iter()
            .any(|a| a.to_string_lossy().trim_start_matches('-').starts_with("dynamic-linker="))
    {
        OutputKind::Executable
    } else {
        OutputKind::Other
    }
}

/// `-m elf_x86_64`, `-maarch64linux`: what every driver says. The linkers' names contain the architecture's.
fn emulation(arguments: &[OsString]) -> Option<String> {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let apart = words.windows(2).filter(|pair| pair[0] == "-m").map(|pair| &*pair[1]);
    let joined = words.iter().filter_map(|word| word.strip_prefix("-m"));
    // Not the -mllvm of lld.
    let mut names = apart.chain(joined).filter(|name| name.starts_with("elf") || name.starts_with("aarch64"));
    names.next().map(str::to_owned)
}

/// The file that comes out (`-o`; `a.out` if not said).
pub fn output_path(arguments: &[OsString]) -> PathBuf {
    given_output(arguments).unwrap_or_else(|| PathBuf::from("a.out"))
}

/// The file that the arguments name.
pub(super) fn given_output(arguments: &[OsString]) -> Option<PathBuf> {
    let mut words = arguments.iter();
    let mut output = None;
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if text == "-o" || text == "--output" {
            output = words.next().map(PathBuf::from);
        } else if let Some(path) = text.strip_prefix("--output=") {
            output = Some(PathBuf::from(path));
        } else if let Some(path) = text.strip_prefix("-o").filter(|_| !text.starts_with("-o-")) {
            // Written together (`-oa.so`); no option of the linkers begins so.
            output = Some(PathBuf::from(path));
        }
    }
    output
}

/// The command line for a shared library or an executable.
pub fn edit(
    given: &[OsString],
    kind: OutputKind,
    directory: &Path,
    manifest: &Manifest,
    is_gnu_ld: bool,
) -> Edited {
    let mut editor = Editor { directory, out: Vec::new(), notices: Vec::new(), modes: vec![false] };
    // First, so that no -L of a build comes before it.
    editor.out.extend(["-L".into(), directory.into()]);
    let mut words = given.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-z") => {
                let keyword = words.next();
                if keyword.is_some_and(|keyword| keyword == "pack-relative-relocs") {
                    editor.refuse_packing(manifest);
                } else {
                    editor.out.push(word.clone());
                    editor.out.extend(keyword.cloned());
                }
            }
            Some(text) if VALUED.contains(&text) => {
                editor.out.push(word.clone());
                editor.out.extend(words.next().cloned());
            }
            Some("-zpack-relative-relocs") => editor.refuse_packing(manifest),
            Some(text)
                if text.trim_start_matches('-').starts_with("pack-dyn-relocs=") && text.contains("relr") =>
            {
                editor.refuse_packing(manifest);
            }
            _ => editor.word(word),
        }
    }
    if manifest.linker.packs_relocations && is_gnu_ld {
        editor.out.extend(["-z", "nopack-relative-relocs"].map(OsString::from));
    }
    let uses_cxx =
        given.iter().any(|word| word == "-lstdc++" || word.to_string_lossy().contains("libstdc++."));
    if uses_cxx && manifest.has_libpthread() {
        force_threads(&mut editor.out);
    }
    if kind == OutputKind::Executable {
        // Libraries of this machine that an executable links with need newer symbols than the stubs have.
        editor.out.push("--allow-shlib-undefined".into());
    }
    Edited { arguments: editor.out, notices: editor.notices }
}

/// Has libpthread loaded with the output. Objects compiled with a glibc from 2.34 on do not refer to it, and an old libstdc++
/// refers to it weakly: without it the first std::thread jumps to address 0.
///
/// It goes before whatever else leads to libpthread, as needed only: mold takes a library as it is first mentioned.
fn force_threads(arguments: &mut Vec<OsString>) {
    let force = ["--push-state", "--no-as-needed", "-l:libpthread.so.0", "--pop-state"];
    let first = arguments.iter().position(|word| word == "-lpthread" || word == "-lc");
    let at = first.unwrap_or(arguments.len());
    arguments.splice(at..at, force.map(OsString::from));
}

struct Editor<'a> {
    directory: &'a Path,
    out: Vec<OsString>,
    notices: Vec<String>,
    /// `-Bstatic` is in force; a stack for `--push-state`.
    modes: Vec<bool>,
}

impl Editor<'_> {
    fn word(&mut self, word: &OsStr) {
        let Some(text) = word.to_str() else {
            self.out.push(word.to_owned());
            return;
        };
        match text {
            "-Bstatic" | "-dn" | "-non_shared" | "-static" => self.set_mode(true),
            "-Bdynamic" | "-dy" | "-call_shared" => self.set_mode(false),
            "--push-state" => self.modes.push(self.is_static()),
            "--pop-state" if self.modes.len() > 1 => {
                self.modes.pop();
            }
            _ => {}
        }
        match text {
            // What -static-libgcc becomes: an unwinder of one's own, which others' exceptions cannot pass.
            "-lgcc_eh" => {
                self.notice("-static-libgcc is undone: the unwinder must be one per process");
                self.push(&["--push-state", "-Bdynamic", "--as-needed", "-lgcc_s", "--pop-state"]);
            }
            "-plugin-opt=-pass-through=-lgcc_eh" => self.push(&["-plugin-opt=-pass-through=-lgcc_s"]),
            "-l:libstdc++.a" => self.shared_libstdcxx(),
            _ => match text.strip_prefix("-l") {
                Some("stdc++") if self.is_static() => self.shared_libstdcxx(),
                Some(name) if self.is_static() && SHARED_ONLY.contains(&name) => {
                    self.push(&["-Bdynamic", text, "-Bstatic"]);
                }
                _ => self.file(text),
            },
        }
    }

    /// A file: start files and libraries of the machine are replaced by the toolchain's.
    fn file(&mut self, text: &str) {
        let path = Path::new(text);
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let is_option = text.starts_with('-');
        let elsewhere =
            || path.parent().and_then(|parent| parent.canonicalize().ok()).as_deref() != Some(self.directory);
        if !is_option && name == "libstdc++.a" {
            return self.shared_libstdcxx();
        }
        if is_option || !is_ours(name) || !self.directory.join(name).is_file() || !elsewhere() {
            self.out.push(text.into());
            return;
        }
        if !name.ends_with("crt1.o") {
            self.notice(&format!("{text} is replaced by the target's {name}"));
        }
        self.out.push(self.directory.join(name).into());
    }

    fn shared_libstdcxx(&mut self) {
        self.notice(
            "-static-libstdc++ is undone: the process must have one libstdc++; what the target's lacks comes from the \
             nonshared archive",
        );
        if self.is_static() {
            self.push(&["-Bdynamic", "-lstdc++", "-Bstatic"]);
        } else {
            self.push(&["-lstdc++"]);
        }
    }

    fn refuse_packing(&mut self, manifest: &Manifest) {
        self.notice(&format!("relative relocations are not packed: {} cannot read DT_RELR", manifest.target));
    }

    fn is_static(&self) -> bool {
        self.modes.last().copied().unwrap_or(false)
    }

    fn set_mode(&mut self, is_static: bool) {
        if let Some(mode) = self.modes.last_mut() {
            *mode = is_static;
        }
    }

    fn push(&mut self, words: &[&str]) {
        self.out.extend(words.iter().map(OsString::from));
    }

    fn notice(&mut self, text: &str) {
        let text = text.to_owned();
        if !self.notices.contains(&text) {
            self.notices.push(text);
        }
    }
}

/// Could the toolchain have a file of this name that stands for the machine's?
fn is_ours(name: &str) -> bool {
    let is_library = name.starts_with("lib") && name.contains(".so");
    is_library || name.starts_with("ld-linux") || name.ends_with("crt1.o")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{CompilerFacts, LinkerFacts, Manifest, SCHEMA};

    fn manifest(glibc: (u32, u32)) -> Manifest {
        Manifest {
            schema: SCHEMA.to_owned(),
            target: format!("manylinux_{}_{}_x86_64", glibc.0, glibc.1),
            ceilings: std::collections::BTreeMap::new(),
            glibc,
            compiler: CompilerFacts {
                program: "g++".into(),
                version: "12".into(),
                machine: "x86_64-linux-gnu".into(),
            },
            linker: LinkerFacts { path: "/usr/bin/ld".into(), packs_relocations: true },
            inputs: std::collections::BTreeMap::new(),
            files: std::collections::BTreeMap::new(),
            libstdcxx: crate::nonshared::Report::default(),
            shim: std::collections::BTreeMap::new(),
            refused: std::collections::BTreeMap::new(),
        }
    }

    fn edited(line: &str, kind: OutputKind, glibc: (u32, u32)) -> (String, usize) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let edited = edit(&words, kind, Path::new("/t"), &manifest(glibc), true);
        let words: Vec<String> = edited.arguments.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        (words.join(" "), edited.notices.len())
    }

    #[test]
    fn the_directory_comes_first_and_threads_before_libc() {
        let (line, notices) = edited("-shared -L/usr/lib x.o -lstdc++ -lm -lc", OutputKind::Shared, (2, 28));
        assert_eq!(
            line,
            "-L /t -shared -L/usr/lib x.o -lstdc++ -lm --push-state --no-as-needed -l:libpthread.so.0 --pop-state -lc -z \
             nopack-relative-relocs"
        );
        assert_eq!(notices, 0);
        let (line, _) = edited("-shared x.o -lstdc++", OutputKind::Shared, (2, 34));
        assert!(!line.contains("libpthread"), "libc has the threads: {line}");
        let (line, _) = edited("-shared x.o -lc", OutputKind::Shared, (2, 28));
        assert!(!line.contains("libpthread"), "C code says what it needs: {line}");
    }

    #[test]
    fn static_runtimes_are_undone() {
        let line = "-shared x.o -Bstatic -lstdc++ -lz -lm -Bdynamic -lgcc -lgcc_eh";
        let (line, notices) = edited(line, OutputKind::Shared, (2, 34));
        let expected = "-Bstatic -Bdynamic -lstdc++ -Bstatic -lz -Bdynamic -lm -Bstatic -Bdynamic -lgcc --push-state \
                        -Bdynamic --as-needed -lgcc_s --pop-state";
        assert!(line.contains(expected), "{line}");
        assert_eq!(notices, 2);
        let (line, _) = edited("--push-state -Bstatic --pop-state -lstdc++", OutputKind::Shared, (2, 34));
        assert!(line.contains("--pop-state -lstdc++"), "not static any more: {line}");
        let (line, notices) = edited("-shared /usr/lib/libstdc++.a", OutputKind::Shared, (2, 34));
        assert!(line.contains("-lstdc++") && !line.contains("libstdc++.a") && notices == 1, "{line}");
    }

    #[test]
    fn packed_relocations_are_refused_however_they_are_spelt() {
        for line in
            ["-z pack-relative-relocs x.o", "-zpack-relative-relocs x.o", "--pack-dyn-relocs=relr x.o"]
        {
            let (line, notices) = edited(line, OutputKind::Shared, (2, 28));
            assert_eq!((line.as_str(), notices), ("-L /t x.o -z nopack-relative-relocs", 1));
        }
    }

    #[test]
    fn values_of_options_are_no_files() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("ld-linux-x86-64.so.2"), "").expect("a file");
        std::fs::write(directory.path().join("libm.so.6"), "").expect("a file");
        let words =
            ["-dynamic-linker", "/lib64/ld-linux-x86-64.so.2", "/lib64/libm.so.6"].map(OsString::from);
        let edited = edit(&words, OutputKind::Executable, directory.path(), &manifest((2, 34)), false);
        assert_eq!(edited.arguments[3], "/lib64/ld-linux-x86-64.so.2");
        assert_eq!(edited.arguments[4], directory.path().join("libm.so.6"));
        assert_eq!(edited.arguments[5], "--allow-shlib-undefined");
    }

    #[test]
    fn the_output_is_found() {
        for line in ["-o a.so", "-oa.so", "--output=a.so", "--output a.so"] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(output_path(&words), Path::new("a.so"), "{line}");
        }
        assert_eq!(output_path(&[]), Path::new("a.out"));
    }
}
