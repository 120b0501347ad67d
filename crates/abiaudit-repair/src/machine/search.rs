//! Library search on the build machine, as its loader does it.
//!
//! glibc (elf/dl-load.c): `DT_RPATH` of the object and of what loaded it, unless the object has `DT_RUNPATH`;
//! `LD_LIBRARY_PATH`; `DT_RUNPATH` of the object; ld.so.cache; the default directories. musl (ldso/dynlink.c):
//! `LD_LIBRARY_PATH`, then the search paths of the object and of what loaded it, then `/etc/ld-musl-ARCH.path` or the
//! defaults. Files of another class or machine are passed over.
//!
//! Copies in `glibc-hwcaps` directories are never taken: a wheel must run on every processor of its target.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use abiaudit_elf::Identity;
use abiaudit_policy::{Arch, Libc};

use super::cache;
use super::library::Library;
use super::root::Root;

/// Most files of configuration that `include` may lead to.
const MAX_CONFIGURATION_FILES: usize = 1000;

/// Directories to search beside those that objects name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibraryPaths {
    /// Searched before all else: `AUDITWHEEL_LD_LIBRARY_PATH`.
    pub first: Vec<String>,
    /// `LD_LIBRARY_PATH`.
    pub environment: Vec<String>,
    /// `--ldpaths`: taken instead of `LD_LIBRARY_PATH`, the cache, the configuration and the default directories.
    pub instead: Option<Vec<String>>,
}

/// What is looked for, and by whom.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// The entry of `DT_NEEDED`.
    pub name: &'a str,
    /// Directories of the object's own `DT_RPATH` and of its ancestors', in order; empty where they do not count.
    pub rpath: &'a [String],
    /// Directories of the object's own `DT_RUNPATH`; with musl of its ancestors too.
    pub runpath: &'a [String],
}

/// A library that is nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// Directories that were searched.
    pub searched: Vec<String>,
    /// Files of that name that are for another machine, or no ELF files at all, with what they are.
    pub unfit: Vec<(String, String)>,
}

/// Searches one tree for libraries of one architecture, and remembers what it has read.
pub struct Searcher {
    root: Root,
    arch: Arch,
    libc: Libc,
    paths: LibraryPaths,
    cache: BTreeMap<String, Vec<String>>,
    system: Vec<String>,
    /// Libraries that were given by hand or are members of other wheels, by soname and by file name.
    given: BTreeMap<String, Rc<Library>>,
    read: RefCell<BTreeMap<PathBuf, Option<Rc<Library>>>>,
}

impl Searcher {
    /// Reads the loader's configuration.
    pub fn new(root: Root, arch: Arch, libc: Libc, paths: LibraryPaths) -> Self {
        let instead = paths.instead.is_some();
        let cache = match libc {
            Libc::Glibc if !instead => {
                root.read("/etc/ld.so.cache").map(|b| cache::read(&b)).unwrap_or_default()
            }
            _ => BTreeMap::new(),
        };
        let system = match (&paths.instead, libc) {
            (Some(directories), _) => directories.clone(),
            (None, Libc::Glibc) => glibc_directories(&root, arch),
            (None, Libc::Musl) => musl_directories(&root, arch),
        };
        Self { root, arch, libc, paths, cache, system, given: BTreeMap::new(), read: RefCell::default() }
    }

    /// The tree.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Adds a library that goes before what a search finds.
    pub fn give(&mut self, library: Library) -> Rc<Library> {
        let library = Rc::new(library);
        for name in library.soname().into_iter().chain([library.source.file_name()]) {
            self.given.entry(name).or_insert_with(|| Rc::clone(&library));
        }
        library
    }

    /// Whether a library of that name was given by hand.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Finds a library.
    ///
    /// # Errors
    /// [`NotFound`] with where it was looked for.
    pub fn find(&self, request: &Request<'_>) -> Result<Rc<Library>, NotFound> {
        if let Some(library) = self.given.get(request.name) {
            return Ok(Rc::clone(library));
        }
        let mut search = Search {
            searcher: self,
            seen: BTreeSet::new(),
            failure: NotFound { searched: Vec::new(), unfit: Vec::new() },
        };
        let found =
            if request.name.contains('/') { search.file(request.name) } else { search.by_name(request) };
        found.ok_or(search.failure)
    }

    /// The library at a path inside the tree.
    fn library(&self, path: &str) -> Result<Rc<Library>, Option<String>> {
        let real = self.root.real(path).filter(|real| real.is_file()).ok_or(None)?;
        let mut read = self.read.borrow_mut();
        let library = read
            .entry(real.clone())
            .or_insert_with(|| Library::read(Path::new(path), &real).map(Rc::new))
            .clone()
            .ok_or_else(|| Some("not an ELF file".to_owned()))?;
        let identity = library.object().map(|object| &object.identity);
        match identity {
            Some(identity) if fits(identity, self.arch) => Ok(library),
            Some(identity) => Err(Some(format!("for {}", identity.machine_name()))),
            None => Err(Some("not an ELF file".to_owned())),
        }
    }
}

/// Class, machine and byte order are those of the architecture.
fn fits(identity: &Identity, arch: Arch) -> bool {
    identity.arch() == Some(arch.tag())
}

struct Search<'a> {
    searcher: &'a Searcher,
    seen: BTreeSet<String>,
    failure: NotFound,
}

impl Search<'_> {
    fn by_name(&mut self, request: &Request<'_>) -> Option<Rc<Library>> {
        let searcher = self.searcher;
        let paths = &searcher.paths;
        let environment: &[String] = if paths.instead.is_some() { &[] } else { &paths.environment };
        let order: [&[String]; 4] = match searcher.libc {
            Libc::Glibc => [&paths.first, request.rpath, environment, request.runpath],
            Libc::Musl => [&paths.first, environment, request.rpath, request.runpath],
        };
        for directory in order.into_iter().flatten() {
            if let Some(library) = self.directory(directory, request.name) {
                return Some(library);
            }
        }
        for path in searcher.cache.get(request.name).into_iter().flatten() {
            if let Some(library) = self.file(path) {
                return Some(library);
            }
        }
        searcher.system.iter().find_map(|directory| self.directory(directory, request.name))
    }

    fn directory(&mut self, directory: &str, name: &str) -> Option<Rc<Library>> {
        if !self.seen.insert(directory.to_owned()) {
            return None;
        }
        self.failure.searched.push(directory.to_owned());
        self.file(&format!("{}/{name}", directory.trim_end_matches('/')))
    }

    fn file(&mut self, path: &str) -> Option<Rc<Library>> {
        match self.searcher.library(path) {
            Ok(library) => Some(library),
            Err(Some(what)) => {
                self.failure.unfit.push((path.to_owned(), what));
                None
            }
            Err(None) => None,
        }
    }
}

/// What ldconfig would look at, then the directories that ld.so knows by itself. Debian and its children build glibc with
/// multiarch directories, others with `lib64`.
fn glibc_directories(root: &Root, arch: Arch) -> Vec<String> {
    let mut directories = Vec::new();
    let mut budget = MAX_CONFIGURATION_FILES;
    configuration(root, "/etc/ld.so.conf", &mut budget, &mut directories);
    let triplet = multiarch(arch);
    for base in ["/lib", "/usr/lib"] {
        directories.push(format!("{base}/{triplet}"));
        directories.push(format!("{base}64"));
        directories.push(base.to_owned());
    }
    directories
}

/// One file of ldconfig's configuration: directories and `include` patterns, `#` begins a comment.
fn configuration(root: &Root, path: &str, budget: &mut usize, directories: &mut Vec<String>) {
    if *budget == 0 {
        return;
    }
    *budget -= 1;
    let Some(bytes) = root.read(path) else { return };
    for line in String::from_utf8_lossy(&bytes).lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.strip_prefix("include") {
            Some(patterns) if patterns.starts_with([' ', '\t']) => {
                for pattern in patterns.split_whitespace() {
                    let base = path.rsplit_once('/').map_or("", |(base, _)| base);
                    let pattern = if pattern.starts_with('/') {
                        pattern.to_owned()
                    } else {
                        format!("{base}/{pattern}")
                    };
                    let (directory, pattern) = pattern.rsplit_once('/').unwrap_or(("", &pattern));
                    for name in root.list(directory) {
                        if abiaudit_policy::glob_matches(pattern, &name) {
                            configuration(root, &format!("{directory}/{name}"), budget, directories);
                        }
                    }
                }
            }
            _ if line.starts_with('/') => {
                directories.push(line.split('=').next().unwrap_or(line).trim().to_owned());
            }
            _ => {}
        }
    }
}

fn musl_directories(root: &Root, arch: Arch) -> Vec<String> {
    let configured = root.read(&format!("/etc/ld-musl-{}.path", arch.musl_name()));
    match configured {
        Some(bytes) => String::from_utf8_lossy(&bytes)
            .split([':', '\n'])
            .map(str::trim)
            .filter(|directory| !directory.is_empty())
            .map(str::to_owned)
            .collect(),
        None => ["/lib", "/usr/local/lib", "/usr/lib"].map(str::to_owned).to_vec(),
    }
}

/// Debian's name for the architecture's directory of libraries.
fn multiarch(arch: Arch) -> &'static str {
    match arch.tag() {
        "x86_64" => "x86_64-linux-gnu",
        "i686" => "i386-linux-gnu",
        "aarch64" => "aarch64-linux-gnu",
        "armv7l" => "arm-linux-gnueabihf",
        "ppc64le" => "powerpc64le-linux-gnu",
        "ppc64" => "powerpc64-linux-gnu",
        "s390x" => "s390x-linux-gnu",
        "riscv64" => "riscv64-linux-gnu",
        "loongarch64" => "loongarch64-linux-gnu",
        _ => "unknown-linux-gnu",
    }
}

impl NotFound {
    /// In words, for a message.
    pub fn to_text(&self) -> String {
        let searched = if self.searched.is_empty() {
            "no directory was searched".to_owned()
        } else {
            format!("searched {}", self.searched.join(", "))
        };
        let unfit = self.unfit.iter().map(|(path, what)| format!("{path} is {what}"));
        std::iter::once(searched).chain(unfit).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use abiaudit_testing::{Arch as TestArch, ElfWriter};

    use super::*;
    use crate::machine::Source;

    struct Tree {
        directory: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().expect("a temporary directory") }
        }

        fn file(&self, path: &str, content: &[u8]) -> &Self {
            let path = self.directory.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, content).expect("a file");
            self
        }

        fn elf(&self, path: &str, arch: TestArch) -> &Self {
            let name = path.rsplit('/').next().unwrap_or_default();
            self.file(path, ElfWriter::new(arch).soname(name).build().bytes())
        }

        fn find(&self, libc: Libc, paths: LibraryPaths, request: &Request<'_>) -> Result<String, NotFound> {
            let root = Root::sysroot(self.directory.path());
            let arch: Arch = "x86_64".parse().expect("an architecture");
            let searcher = Searcher::new(root, arch, libc, paths);
            searcher.find(request).map(|library| match &library.source {
                Source::File { found, .. } => found.to_string_lossy().into_owned(),
                Source::Wheel { member, .. } => member.clone(),
            })
        }
    }

    fn list(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|&path| path.to_owned()).collect()
    }

    #[test]
    fn the_order_of_glibc_and_of_musl() {
        let tree = Tree::new();
        for directory in ["first", "rpath", "env", "runpath", "conf", "usr/lib"] {
            tree.elf(&format!("/{directory}/libx.so"), TestArch::X86_64);
        }
        tree.file("/etc/ld.so.conf", b"# a comment\ninclude ld.so.conf.d/*.conf\n")
            .file("/etc/ld.so.conf.d/a.conf", b"/conf # another\n");
        let all = LibraryPaths { first: list(&["/first"]), environment: list(&["/env"]), instead: None };
        let (rpath, runpath) = (list(&["/rpath"]), list(&["/runpath"]));
        let request = Request { name: "libx.so", rpath: &rpath, runpath: &runpath };
        let expected = [
            (Libc::Glibc, ["/first", "/rpath", "/env", "/runpath", "/conf"]),
            (Libc::Musl, ["/first", "/env", "/rpath", "/runpath", "/usr/lib"]),
        ];
        for (libc, order) in expected {
            let mut paths = all.clone();
            let mut request = request.clone();
            for directory in order {
                let found = tree.find(libc, paths.clone(), &request).expect("found");
                assert_eq!(found, format!("{directory}/libx.so"));
                match directory {
                    "/first" => paths.first.clear(),
                    "/rpath" => request.rpath = &[],
                    "/env" => paths.environment.clear(),
                    _ => request.runpath = &[],
                }
            }
        }
    }

    #[test]
    fn given_paths_replace_the_system() {
        let tree = Tree::new();
        tree.elf("/usr/lib/libx.so", TestArch::X86_64).elf("/env/libx.so", TestArch::X86_64);
        let paths = LibraryPaths {
            environment: list(&["/env"]),
            instead: Some(list(&["/mine"])),
            ..LibraryPaths::default()
        };
        let request = Request { name: "libx.so", ..Request::default() };
        let failure = tree.find(Libc::Glibc, paths, &request).expect_err("not there");
        assert_eq!(failure.searched, ["/mine"]);
    }

    #[test]
    fn other_machines_are_passed_over() {
        let tree = Tree::new();
        tree.elf("/lib/libx.so", TestArch::Aarch64)
            .file("/lib64/libx.so", b"INPUT(-lx)")
            .elf("/usr/lib/libx.so", TestArch::X86_64);
        let request = Request { name: "libx.so", ..Request::default() };
        assert_eq!(
            tree.find(Libc::Glibc, LibraryPaths::default(), &request),
            Ok("/usr/lib/libx.so".to_owned())
        );
        fs::remove_file(tree.directory.path().join("usr/lib/libx.so")).expect("removed");
        let failure = tree.find(Libc::Glibc, LibraryPaths::default(), &request).expect_err("none fits");
        assert_eq!(failure.unfit.len(), 2);
        assert!(failure.to_text().contains("/lib64/libx.so is not an ELF file"), "{}", failure.to_text());
    }
}
