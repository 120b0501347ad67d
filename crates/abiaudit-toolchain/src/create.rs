//! Making a toolchain.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use abiaudit_policy::symbols::glibc;
use abiaudit_policy::{Arch, Target};

use crate::archive;
use crate::compiler::{Compiler, succeed};
use crate::digest;
use crate::error::{Error, Result, read, write};
use crate::library::{Library, glibc_libraries};
use crate::manifest::{CompilerFacts, InputFile, LinkerFacts, MERGED, Manifest, SCHEMA};
use crate::nonshared::{self, Nonshared, Split};
use crate::scripts::scripts;
use crate::shim::{self, Needs, Shim};
use crate::stub;
use crate::verify::verify;

/// What to make.
#[derive(Debug, Clone)]
pub struct Options {
    /// The oldest systems on which programs are to run.
    pub target: Target,
    /// The compiler that is to use it, such as `g++-12`.
    pub compiler: String,
    /// The program that is copied as `ld`: it must do what [`crate::link::run`] does when it is called by that name.
    pub wrapper: PathBuf,
}

/// The names under which drivers look for a linker.
pub const LINKERS: [&str; 5] = ["ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold"];

/// Makes a toolchain in `out`, which must not exist or be a toolchain that is to be replaced. It is made beside, checked
/// and renamed, so that `out` is whole at any time.
pub fn create(options: &Options, out: &Path) -> Result<Manifest> {
    if out.exists() && Manifest::read(out).is_err() && !is_empty(out) {
        return Err(Error::Occupied { path: out.to_owned() });
    }
    let compiler = Compiler::find(&options.compiler)?;
    check_target(&options.target, &compiler)?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(|source| Error::File {
        action: "create",
        path: parent.to_owned(),
        source,
    })?;
    let temporary = |source| Error::File { action: "create a directory in", path: parent.to_owned(), source };
    let staging =
        tempfile::Builder::new().prefix(".abiaudit-toolchain-").tempdir_in(parent).map_err(temporary)?;
    let manifest = fill(options, &compiler, staging.path())?;
    let problems: Vec<String> = verify(staging.path())?
        .into_iter()
        .filter(|check| !check.problems.is_empty())
        .map(|c| c.to_string())
        .collect();
    if !problems.is_empty() {
        return Err(Error::Unsound { problems });
    }
    put_in_place(staging, out)?;
    Ok(manifest)
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Can there be a toolchain for this target and this compiler?
fn check_target(target: &Target, compiler: &Compiler) -> Result<()> {
    let refuse = |reason: String| Err(Error::Target { target: target.tag(), reason });
    if !matches!(target.arch(), Arch::X86_64 | Arch::Aarch64) {
        return refuse(format!("{} is not supported; x86_64 and aarch64 are", target.arch()));
    }
    if target.arch() != compiler.arch() {
        return refuse(format!(
            "{} compiles for {}; name a cross compiler with --cxx, such as {}-linux-gnu-g++",
            compiler.program(),
            compiler.arch(),
            target.arch()
        ));
    }
    match target.glibc_version() {
        None => refuse("musl has no symbol versions: an older musl cannot be linked with".to_owned()),
        Some(release) if release < OLDEST => {
            refuse("libstdc++ has no thread support that this could build on before glibc 2.17".to_owned())
        }
        // DT_RELR and the like: then the compiler's own libraries are as good.
        Some(release) if release > NEWEST => {
            refuse("targets from manylinux_2_17 to manylinux_2_35 are supported".to_owned())
        }
        Some(_) => Ok(()),
    }
}

const OLDEST: (u32, u32) = (2, 17);
const NEWEST: (u32, u32) = (2, 35);

/// Everything, in a directory that is to be renamed.
fn fill(options: &Options, compiler: &Compiler, directory: &Path) -> Result<Manifest> {
    let target = &options.target;
    let mut inputs = Inputs::default();
    let stubs = stubs(target, compiler, &mut inputs)?;
    for library in &stubs.libraries {
        write(&directory.join(&library.soname), stub::write(library, target.arch()))?;
    }
    let sonames: BTreeSet<String> = stubs.libraries.iter().map(|library| library.soname.clone()).collect();
    for (name, text) in scripts(target.arch(), &sonames) {
        write(&directory.join(name), text)?;
    }
    let libc = stubs.linkable_libc();
    let start_main = target.glibc_version() < Some(MERGED);
    let shim =
        build_shim(compiler, &Needs { libc: &libc, start_main, new: &stubs.new, visibility: shim::HIDDEN })?;
    write(&directory.join("libc_compat.a"), archive::write(&shim.libc))?;
    let nonshared = split_libstdcxx(target, compiler, &stubs, &shim, &mut inputs)?;
    let members: Vec<_> = shim.libstdcxx.iter().chain(&nonshared.members).cloned().collect();
    write(&directory.join("libstdc++_nonshared.a"), archive::write(&members))?;
    if start_main {
        for name in ["crt1.o", "Scrt1.o", "gcrt1.o"] {
            write_start_file(compiler, directory, name, &mut inputs)?;
        }
    }
    install_wrapper(&options.wrapper, directory)?;
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        target: target.tag(),
        ceilings: target
            .families()
            .filter_map(|family| Some((family.to_owned(), target.ceiling(family)?.to_owned())))
            .collect(),
        glibc: target.glibc_version().unwrap_or_default(),
        compiler: CompilerFacts {
            program: compiler.program().to_owned(),
            version: compiler.version().to_owned(),
            machine: compiler.machine().to_owned(),
        },
        linker: linker_facts(compiler)?,
        refused: refused(target, compiler, &stubs, &nonshared, &shim, &mut inputs)?,
        inputs: inputs.files,
        files: digests(directory)?,
        libstdcxx: nonshared.report,
        shim: shim.functions,
    };
    manifest.write(directory)?;
    Ok(manifest)
}

/// Files of the compiler that were read.
#[derive(Default)]
struct Inputs {
    files: BTreeMap<String, InputFile>,
}

impl Inputs {
    fn read(&mut self, name: &str, path: PathBuf) -> Result<Vec<u8>> {
        let bytes = read(&path)?;
        let sha256 = digest::of_bytes(&bytes);
        self.files.insert(name.to_owned(), InputFile { path, sha256 });
        Ok(bytes)
    }
}

/// The shared libraries of the target, and what the compiler's have beyond them.
struct Stubs {
    libraries: Vec<Library>,
    /// What the target's libstdc++ exports.
    baseline: BTreeSet<String>,
    /// What the compiler's libstdc++ exports beyond that.
    new: BTreeSet<String>,
    /// What the compiler's libgcc_s exports beyond the target's.
    new_libgcc: BTreeSet<String>,
}

impl Stubs {
    fn linkable_libc(&self) -> BTreeSet<String> {
        let is_gcc = |soname: &str| GCC_LIBRARIES.contains(&soname);
        let libc = self.libraries.iter().filter(|library| !is_gcc(&library.soname));
        libc.flat_map(|library| library.linkable().map(str::to_owned)).collect()
    }
}

/// Libraries of GCC of which the target's version is a part of the installed one.
const GCC_LIBRARIES: [&str; 3] = ["libstdc++.so.6", "libgcc_s.so.1", "libatomic.so.1"];

fn stubs(target: &Target, compiler: &Compiler, inputs: &mut Inputs) -> Result<Stubs> {
    let mut libraries = glibc_libraries(target)?;
    let (mut baseline, mut new, mut new_libgcc) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for soname in GCC_LIBRARIES {
        let path = match soname {
            "libatomic.so.1" => match compiler.optional_file(soname)? {
                Some(path) => path,
                None => continue,
            },
            _ => compiler.file(soname)?,
        };
        let bytes = inputs.read(soname, path.clone())?;
        let installed = Library::parse(&path, &bytes)?;
        let old = installed.at(target);
        let names = |library: &Library| -> BTreeSet<String> {
            library.exports.iter().map(|export| export.name.clone()).collect()
        };
        let (all, has) = (names(&installed), names(&old));
        let beyond = all.difference(&has).cloned().collect();
        match soname {
            "libstdc++.so.6" => (baseline, new) = (has, beyond),
            "libgcc_s.so.1" => new_libgcc = beyond,
            _ if old.exports.is_empty() => continue,
            _ => {}
        }
        libraries.push(old);
    }
    Ok(Stubs { libraries, baseline, new, new_libgcc })
}

fn build_shim(compiler: &Compiler, needs: &Needs<'_>) -> Result<Shim> {
    let scratch = tempfile::tempdir().map_err(|source| Error::File {
        action: "create a directory in",
        path: std::env::temp_dir(),
        source,
    })?;
    shim::build(compiler, scratch.path(), needs)
}

fn split_libstdcxx(
    target: &Target,
    compiler: &Compiler,
    stubs: &Stubs,
    shim: &Shim,
    inputs: &mut Inputs,
) -> Result<Nonshared> {
    let path = compiler.file("libstdc++.a")?;
    let bytes = inputs.read("libstdc++.a", path.clone())?;
    let glibcxx = target.ceiling("GLIBCXX").unwrap_or_default();
    let refused: BTreeMap<String, String> = stubs
        .new
        .iter()
        .filter_map(|name| Some((name.clone(), nonshared::refusal(name, glibcxx)?)))
        .collect();
    let replaced: BTreeSet<String> =
        stubs.new.iter().filter(|name| shim.functions.contains_key(*name)).cloned().collect();
    let split = Split { baseline: &stubs.baseline, new: &stubs.new, replaced: &replaced, refused: &refused };
    nonshared::split(&path, &bytes, &split)
}

fn write_start_file(compiler: &Compiler, directory: &Path, name: &str, inputs: &mut Inputs) -> Result<()> {
    let Some(path) = compiler.optional_file(name)? else { return Ok(()) };
    let bytes = inputs.read(name, path.clone())?;
    match shim::redirect_start(&path, &bytes)? {
        Some(redirected) => write(&directory.join(name), redirected),
        None => Ok(()),
    }
}

fn install_wrapper(wrapper: &Path, directory: &Path) -> Result<()> {
    let target = directory.join(LINKERS[0]);
    std::fs::copy(wrapper, &target).map_err(|source| Error::File {
        action: "copy",
        path: wrapper.to_owned(),
        source,
    })?;
    for name in &LINKERS[1..] {
        let link = directory.join(name);
        std::os::unix::fs::symlink(LINKERS[0], &link).map_err(|source| Error::File {
            action: "link",
            path: link.clone(),
            source,
        })?;
    }
    Ok(())
}

fn linker_facts(compiler: &Compiler) -> Result<LinkerFacts> {
    let path = compiler.linker()?;
    let help = succeed(std::process::Command::new(&path).arg("--help").env("LC_ALL", "C"))?;
    let packs_relocations = String::from_utf8_lossy(&help.stdout).contains("nopack-relative-relocs");
    Ok(LinkerFacts { path, packs_relocations })
}

/// Everything that an object compiled here may ask for and will not get.
fn refused(
    target: &Target,
    compiler: &Compiler,
    stubs: &Stubs,
    nonshared: &Nonshared,
    shim: &Shim,
    inputs: &mut Inputs,
) -> Result<BTreeMap<String, String>> {
    let mut refused = nonshared.report.refused.clone();
    for name in &nonshared.report.missing {
        refused
            .insert(name.clone(), "libstdc++.so.6 has it, but the compiler's libstdc++.a has not".to_owned());
    }
    let path = compiler.file("libgcc.a")?;
    let bytes = inputs.read("libgcc.a", path.clone())?;
    let static_libgcc = archive::symbols(&path, &bytes)?;
    for name in stubs.new_libgcc.difference(&static_libgcc) {
        refused.insert(name.clone(), "libgcc_s.so.1 has it since a newer GCC, libgcc.a has not".to_owned());
    }
    let libc = stubs.linkable_libc();
    let Some(table) = glibc(target.arch()) else { return Ok(refused) };
    let newest = table.newest_release();
    for (name, rows) in table.symbols() {
        let Some(row) = rows.iter().find(|row| row.default && row.is_in(newest)) else { continue };
        if libc.contains(&name) || shim.functions.contains_key(&name) {
            continue;
        }
        let since = rows.iter().filter_map(|row| row.since).min();
        let since = since.map_or_else(|| "a newer glibc".to_owned(), |release| format!("glibc {release}"));
        refused.insert(name, format!("in {} since {since}, and nothing stands in for it", row.library));
    }
    Ok(refused)
}

/// The SHA-256 of each file; of links, none.
fn digests(directory: &Path) -> Result<BTreeMap<String, String>> {
    let failed = |source| Error::File { action: "read", path: directory.to_owned(), source };
    let mut digests = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_file() {
            digests.insert(entry.file_name().to_string_lossy().into_owned(), digest::of_file(&entry.path())?);
        }
    }
    Ok(digests)
}

fn put_in_place(staging: tempfile::TempDir, out: &Path) -> Result<()> {
    let failed = |source| Error::File { action: "rename to", path: out.to_owned(), source };
    // A directory of the temporary kind is for its owner only; a toolchain is for everyone.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(staging.path(), mode).map_err(failed)?;
    let old = staging.path().with_extension("old");
    let replaces = out.exists();
    if replaces {
        std::fs::rename(out, &old).map_err(failed)?;
    }
    let new = staging.keep();
    if let Err(source) = std::fs::rename(&new, out) {
        if replaces {
            let _ = std::fs::rename(&old, out);
        }
        let _ = std::fs::remove_dir_all(&new);
        return Err(failed(source));
    }
    if replaces {
        std::fs::remove_dir_all(&old).map_err(failed)?;
    }
    Ok(())
}
