//! Builds trees of small shared objects with the machine's compiler and asks the machine's loaders about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use abiaudit_elf::{Object, Wants};
use abiaudit_loader::search::{Libc, Library, Need, Outcome, resolve};

/// The architecture whose loaders are asked.
const ARCH: &str = "x86_64";

/// One shared object to build. `@` in its strings stands for the root of the tree.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// Where, below the root of the tree.
    pub path: &'static str,
    pub soname: Option<String>,
    pub needed: Vec<String>,
    pub rpath: Option<String>,
    /// If there is an `rpath` too, it must end in that.
    pub runpath: Option<String>,
    /// Further options of the linker.
    pub options: Vec<&'static str>,
}

/// A file that is not built but made otherwise.
#[derive(Debug, Clone)]
pub enum Extra {
    Link {
        path: &'static str,
        target: &'static str,
    },
    /// An ELF64 library of another machine.
    OtherMachine(&'static str),
    /// The header of an ELF32 library.
    OtherClass(&'static str),
    Directory(&'static str),
}

/// A tree on disk with the objects in it.
pub struct Tree {
    _directory: tempfile::TempDir,
    root: PathBuf,
    /// Path and position in `objects`.
    members: Vec<(String, usize)>,
    objects: Vec<Object>,
}

/// What a loader did when it loaded one root.
#[derive(Debug, Default)]
pub struct Trace {
    /// Members of the tree in load order.
    pub loaded: Vec<PathBuf>,
    /// Answers per object and name; `None` where nothing was found.
    pub answers: BTreeMap<(PathBuf, String), Option<PathBuf>>,
    /// Names that an object answers to because it was found by them.
    names: BTreeMap<String, PathBuf>,
}

/// What ld.so says of one name that was not known.
struct Request {
    from: PathBuf,
    name: String,
    /// The file that was tried last.
    file: String,
    /// That file was loaded.
    mapped: bool,
}

/// The tools: an empty object file, a program that does nothing, stubs that give `DT_NEEDED` entries.
pub struct Lab {
    directory: tempfile::TempDir,
    libc: Libc,
}

impl Lab {
    /// `None`, with a word about it, if the machine lacks the tools.
    pub fn new(libc: Libc) -> Option<Self> {
        let compiler = match libc {
            Libc::Glibc => "gcc",
            Libc::Musl => "musl-gcc",
        };
        if std::env::consts::ARCH != ARCH {
            eprintln!("SKIPPED: the expectations are those of {ARCH}");
            return None;
        }
        let lab = Self { directory: tempfile::tempdir().unwrap(), libc };
        fs::write(lab.file("empty.c"), "int empty;\n").unwrap();
        fs::write(lab.file("host.c"), HOST).unwrap();
        let program: &[&str] = &[compiler, "host.c", "-o", "host", "-ldl"];
        let object: &[&str] = &["gcc", "-fPIC", "-c", "empty.c"];
        for command in [program, object] {
            match Command::new(command[0]).args(&command[1..]).current_dir(lab.directory.path()).output() {
                Ok(output) if output.status.success() => {}
                other => {
                    eprintln!("SKIPPED: {compiler} does not work here, {libc:?} was not asked: {other:?}");
                    return None;
                }
            }
        }
        if libc == Libc::Glibc && !loader_version().contains("GNU") {
            eprintln!("SKIPPED: the loader of this machine is not glibc's");
            return None;
        }
        Some(lab)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn build(&self, specs: &[Spec], extras: &[Extra]) -> Tree {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let mut tree = Tree { _directory: directory, root, members: Vec::new(), objects: Vec::new() };
        for extra in extras {
            if let Extra::Directory(path) = extra {
                fs::create_dir_all(tree.root.join(path)).unwrap();
            }
        }
        for spec in specs {
            self.link(&tree, spec);
            tree.add(spec.path);
        }
        for extra in extras {
            self.add_extra(&mut tree, extra);
        }
        tree
    }

    fn link(&self, tree: &Tree, spec: &Spec) {
        let output = tree.root.join(spec.path);
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        let mut command = Command::new("ld");
        command.args(["-shared", "--no-as-needed", "--hash-style=gnu", "-o"]).arg(&output);
        command.args(&spec.options).arg(self.file("empty.o"));
        if let Some(soname) = &spec.soname {
            command.args(["-soname", &tree.text(soname)]);
        }
        for name in &spec.needed {
            command.arg(self.stub(&tree.text(name)));
        }
        let (path, tags) = match (&spec.rpath, &spec.runpath) {
            (Some(rpath), None) => (Some(rpath), "--disable-new-dtags"),
            (_, runpath) => (runpath.as_ref(), "--enable-new-dtags"),
        };
        if let Some(path) = path {
            command.args([tags, "-rpath", &tree.text(path)]);
        }
        run(&mut command);
        if let (Some(rpath), Some(runpath)) = (&spec.rpath, &spec.runpath) {
            assert!(runpath.ends_with(rpath));
            let offset = tree.text(runpath).len() - tree.text(rpath).len();
            add_rpath(&output, offset as u64);
        }
    }

    /// A library whose soname is `name`, so that who links it needs `name`.
    fn stub(&self, name: &str) -> PathBuf {
        let path = self.file(&format!("stub-{}", name.replace('/', "%")));
        if !path.exists() {
            run(Command::new("ld")
                .args(["-shared", "-soname", name, "-o"])
                .arg(&path)
                .arg(self.file("empty.o")));
        }
        path
    }

    fn add_extra(&self, tree: &mut Tree, extra: &Extra) {
        let path = match extra {
            Extra::Directory(_) => return,
            Extra::Link { path, target } => {
                let (from, to) = (tree.root.join(path), tree.root.join(target));
                fs::create_dir_all(from.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(&to, &from).unwrap();
                let target = tree.members.iter().find(|(p, _)| Path::new(p) == to).unwrap().1;
                tree.members.push((from.to_str().unwrap().to_owned(), target));
                return;
            }
            Extra::OtherMachine(path) => {
                self.link(tree, &Spec { path, ..Spec::default() });
                let mut bytes = fs::read(tree.root.join(path)).unwrap();
                bytes[18..20].copy_from_slice(&243u16.to_le_bytes());
                fs::write(tree.root.join(path), bytes).unwrap();
                path
            }
            Extra::OtherClass(path) => {
                // As long as an ELF64 header: ld.so gives up on a shorter file before it looks at the class.
                let mut header = [0u8; 64];
                header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
                header[16..24].copy_from_slice(&[3, 0, 3, 0, 1, 0, 0, 0]);
                header[40] = 52;
                header[42] = 32;
                fs::create_dir_all(tree.root.join(path).parent().unwrap()).unwrap();
                fs::write(tree.root.join(path), header).unwrap();
                path
            }
        };
        tree.add(path);
    }

    /// Loads `root` with the machine's loader and listens to what it does.
    pub fn load(&self, tree: &Tree, root: &Path) -> Trace {
        match self.libc {
            Libc::Glibc => self.load_glibc(tree, root),
            Libc::Musl => self.load_musl(tree, root),
        }
    }

    fn host(&self, root: &Path) -> Command {
        let mut command = Command::new(self.file("host"));
        command.env_clear().env("LD_PRELOAD", root).current_dir(self.directory.path());
        command
    }

    fn load_glibc(&self, tree: &Tree, root: &Path) -> Trace {
        let mut host = self.host(root);
        let output = host.env("LD_TRACE_LOADED_OBJECTS", "1").env("LD_DEBUG", "files,libs").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut trace = Trace::default();
        let mut request: Option<Request> = None;
        for line in text.lines().filter_map(|line| line.split_once('\t').map(|l| l.1)) {
            if let Some((name, from)) =
                line.strip_prefix("file=").and_then(|l| l.split_once(" [0];  needed by "))
            {
                trace.close(tree, request.take());
                let from = canonical(from.trim_end_matches(" [0]"));
                request = Some(Request { from, name: name.to_owned(), file: name.to_owned(), mapped: false });
            } else if let (Some(file), Some(request)) = (line.strip_prefix("  trying file="), &mut request) {
                file.clone_into(&mut request.file);
            } else if let (true, Some(request)) = (line.ends_with("generating link map"), &mut request) {
                request.mapped = true;
            }
        }
        trace.close(tree, request);
        trace
    }

    fn load_musl(&self, tree: &Tree, root: &Path) -> Trace {
        let output = Command::new("/lib/ld-musl-x86_64.so.1")
            .arg("--list")
            .arg(self.file("host"))
            .env_clear()
            .env("LD_PRELOAD", root)
            .current_dir(self.directory.path())
            .output()
            .unwrap();
        let mut trace = Trace::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Some((name, file)) = line.trim().split_once(" => ") else { continue };
            let file = canonical(file.rsplit_once(" (").unwrap().0);
            if tree.contains(&file) {
                trace.loaded.push(file.clone());
                trace.names.insert(name.to_owned(), file);
            }
        }
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            let message = line.strip_prefix("Error loading shared library ").unwrap();
            let (name, rest) = message.split_once(": ").unwrap();
            let (_, from) = rest.split_once("(needed by ").unwrap();
            trace.answers.insert((canonical(from.trim_end_matches(')')), name.to_owned()), None);
        }
        trace
    }

    /// Which file answers to each name in a process that has loaded `root`; `None` if it cannot be loaded.
    pub fn names_in_process<'n>(
        &self,
        root: &Path,
        names: impl Iterator<Item = &'n str>,
    ) -> Option<Vec<Option<PathBuf>>> {
        let mut host = self.host(root);
        let Output { status, stdout, .. } =
            host.env_remove("LD_PRELOAD").arg(root).args(names).output().unwrap();
        let lines = String::from_utf8(stdout).unwrap();
        let file = |line: &str| (line != "-").then(|| canonical(line));
        status.success().then(|| lines.lines().map(file).collect())
    }

    /// Demands that the model and the machine agree on every root of a tree; returns how many answers were compared.
    pub fn compare(&self, title: &str, tree: &Tree) -> Compared {
        let libraries = tree.libraries();
        let resolution = resolve(&libraries, self.libc);
        let path = |member: usize| canonical(libraries[member].path);
        let mut compared = Compared::default();
        let mut failed = BTreeSet::new();
        let mut found = BTreeSet::new();
        for &root in &resolution.roots {
            if libraries[root].object.identity.arch() != Some(ARCH) {
                continue;
            }
            let trace = self.load(tree, Path::new(libraries[root].path));
            let order: Vec<PathBuf> = resolution.closure(root).map(path).collect();
            assert_eq!(order, trace.loaded, "{title}: load order of {}", libraries[root].path);
            let is_orphan = resolution.orphans.contains(&root);
            for member in resolution.closure(root) {
                for need in resolution.needs_of(member) {
                    let mut name = need.name.clone();
                    if self.libc == Libc::Glibc {
                        // ld.so speaks of expanded names.
                        let directory = Path::new(libraries[member].path).parent().unwrap();
                        name = name.replace("$ORIGIN", directory.to_str().unwrap());
                    }
                    let answer = trace.answer(&path(member), &name);
                    if need.root == root {
                        check(title, tree, need, &libraries, answer.as_ref());
                        compared.add(need);
                    }
                    if !is_orphan {
                        let set = if answer.is_some() { &mut found } else { &mut failed };
                        set.insert((member, need.name.clone()));
                    }
                }
            }
            if self.libc == Libc::Glibc {
                self.compare_process(title, &libraries, &resolution, root);
            }
        }
        for need in &resolution.needs {
            let key = (need.from, need.name.clone());
            let is_found = matches!(need.outcome, Outcome::Found { .. });
            assert!(!(is_found && failed.contains(&key)), "{title}: not the worst outcome: {need:?}");
            assert!(need.found_in_some_root || !found.contains(&key), "{title}: found somewhere: {need:?}");
        }
        compared
    }

    /// The same by another way: `dlopen(NAME, RTLD_NOLOAD)` in a process that really loaded the root.
    fn compare_process(
        &self,
        title: &str,
        libraries: &[Library<'_>],
        resolution: &abiaudit_loader::search::Resolution,
        root: usize,
    ) {
        let members: Vec<usize> = resolution.closure(root).collect();
        let needs = members.iter().flat_map(|&m| resolution.needs_of(m));
        let needs: Vec<&Need> = needs.filter(|need| need.root == root && !need.name.contains('$')).collect();
        let names = needs.iter().map(|need| need.name.as_str());
        let Some(files) = self.names_in_process(Path::new(libraries[root].path), names) else { return };
        assert_eq!(files.len(), needs.len());
        for (need, file) in needs.iter().zip(files) {
            let Outcome::Found { library, .. } = need.outcome else {
                panic!("{title}: dlopen works: {need:?}")
            };
            assert_eq!(Some(canonical(libraries[library].path)), file, "{title}: {need:?}");
        }
    }
}

/// How many answers were compared, by outcome.
#[derive(Debug, Default, Clone, Copy)]
pub struct Compared {
    pub found: usize,
    pub external: usize,
    pub unreachable: usize,
}

impl Compared {
    fn add(&mut self, need: &Need) {
        match need.outcome {
            Outcome::Found { .. } => self.found += 1,
            Outcome::Unreachable { .. } => self.unreachable += 1,
            _ => self.external += 1,
        }
    }
}

fn check(title: &str, tree: &Tree, need: &Need, libraries: &[Library<'_>], answer: Option<&PathBuf>) {
    let expected = match &need.outcome {
        Outcome::Found { library, .. } => Some(canonical(libraries[*library].path)),
        _ => None,
    };
    let from = libraries[need.from].path.strip_prefix(tree.root.to_str().unwrap()).unwrap();
    assert_eq!(expected.as_ref(), answer, "{title}: {from} needs {}: {need:?}", need.name);
}

impl Trace {
    fn close(&mut self, tree: &Tree, request: Option<Request>) {
        let Some(Request { from, name, file, mapped }) = request else { return };
        let file = canonical(&file);
        let found = mapped || self.loaded.contains(&file);
        if mapped && tree.contains(&file) {
            self.loaded.push(file.clone());
        }
        if found {
            self.names.entry(name.clone()).or_insert_with(|| file.clone());
            if let Some(soname) = tree.soname(&file) {
                self.names.entry(soname).or_insert_with(|| file.clone());
            }
        }
        self.answers.insert((from, name), found.then_some(file));
    }

    /// The answer to one request. One that caused no search was served by a name that was known.
    fn answer(&self, from: &Path, name: &str) -> Option<PathBuf> {
        match self.answers.get(&(from.to_owned(), name.to_owned())) {
            Some(answer) => answer.clone(),
            None => self.names.get(name).cloned().or_else(|| {
                // musl does not say when a path leads to a file that is loaded.
                let known =
                    |file: &&PathBuf| file.ends_with(name) || Some(file.as_path()) == Some(&canonical(name));
                self.loaded.iter().find(known).cloned()
            }),
        }
    }
}

impl Tree {
    fn text(&self, text: &str) -> String {
        text.replace('@', self.root.to_str().unwrap())
    }

    fn add(&mut self, path: &str) {
        let path = self.root.join(path);
        let object = Object::from_bytes(&fs::read(&path).unwrap(), &Wants::default()).unwrap();
        self.members.push((path.to_str().unwrap().to_owned(), self.objects.len()));
        self.objects.push(object);
    }

    pub fn libraries(&self) -> Vec<Library<'_>> {
        self.members.iter().map(|(path, object)| Library { path, object: &self.objects[*object] }).collect()
    }

    fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    fn soname(&self, file: &Path) -> Option<String> {
        let (_, object) = self.members.iter().find(|(path, _)| Path::new(path) == file)?;
        self.objects[*object].dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text)
    }
}

/// The file itself, without links and `..`; the path as it is if there is no such file.
fn canonical(path: &str) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn loader_version() -> String {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    output
        .map(|o| String::from_utf8_lossy(&o.stdout).to_uppercase().replace("GLIBC", "GNU"))
        .unwrap_or_default()
}

/// Adds `DT_RPATH` beside `DT_RUNPATH`, which no linker does: one of the spare entries that the linker leaves after the
/// last gets the same string from `offset` on.
fn add_rpath(file: &Path, offset: u64) {
    const DT_RUNPATH: i64 = 29;
    const DT_RPATH: u64 = 15;
    let mut bytes = fs::read(file).unwrap();
    let object = Object::from_bytes(&bytes, &Wants::default()).unwrap();
    let dynamic = object.segments.first(abiaudit_elf::SegmentType::Dynamic).unwrap();
    let entries = &object.dynamic.entries;
    let runpath = entries.iter().find(|(tag, _)| *tag == DT_RUNPATH).unwrap().1;
    let end = dynamic.offset as usize + entries.len() * 16;
    assert!(entries.len() as u64 * 16 + 32 <= dynamic.file_size);
    bytes[end..end + 8].copy_from_slice(&DT_RPATH.to_le_bytes());
    bytes[end + 8..end + 16].copy_from_slice(&(runpath + offset).to_le_bytes());
    fs::write(file, bytes).unwrap();
}

/// Loads its first argument and says which file answers to each of the others.
const HOST: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
int main(int argc, char **argv) {
    if (argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) return 1;
    for (int i = 2; i < argc; i++) {
        struct link_map *map = dlopen(argv[i], RTLD_NOW | RTLD_NOLOAD);
        puts(map ? map->l_name : "-");
    }
    return 0;
}
"#;
