//! The checks that a toolchain must pass before it is used.
//!
//! A link that succeeds and a scan of versions that finds nothing prove little: each of these checks is for something that
//! passed both and failed when it ran (see [`crate::nonshared`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use abiaudit_elf::{Binding, Object, SymbolVersion, Visibility};
use abiaudit_policy::symbols::{GccLibrary, libgcc, libstdcxx};
use abiaudit_policy::{PolicySet, Target};
use object::elf;

use crate::archive;
use crate::compiler::{Compiler, succeed};
use crate::create::LINKERS;
use crate::digest;
use crate::environment::needs_old_strings;
use crate::error::{Error, Result, read, write};
use crate::library::{Library, glibc_libraries};
use crate::link::check_output;
use crate::manifest::Manifest;
use crate::nonshared::{INITIALIZERS, expose, is_allowed_state, is_unique};
use crate::relocatable::{Place, Relocatable};
use crate::shim::{IOS_INIT_SYMBOL, START_MAIN_SYMBOL};
use crate::version::admits;

/// A check, and what it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What is checked.
    pub name: &'static str,
    /// How much was looked at: `5370 symbols`.
    pub scope: String,
    /// One line each; none if all is well.
    pub problems: Vec<String>,
}

/// So many problems of one check are shown.
const SHOWN: usize = 20;

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.problems.is_empty() { "ok    " } else { "FAILED" };
        write!(f, "{verdict} {} ({})", self.name, self.scope)?;
        for problem in self.problems.iter().take(SHOWN) {
            write!(f, "\n         {problem}")?;
        }
        match self.problems.len().checked_sub(SHOWN) {
            Some(more) if more > 0 => write!(f, "\n         and {more} more"),
            _ => Ok(()),
        }
    }
}

/// Checks a toolchain, with the compiler that it was made for.
pub fn verify(directory: &Path) -> Result<Vec<Check>> {
    let directory = directory.canonicalize().map_err(|source| Error::File {
        action: "find",
        path: directory.to_owned(),
        source,
    })?;
    let manifest = Manifest::read(&directory)?;
    let target = PolicySet::builtin()
        .target(&manifest.target)
        .map_err(|error| Error::Target { target: manifest.target.clone(), reason: error.to_string() })?;
    let files = check_files(&directory, &manifest);
    if !files.problems.is_empty() {
        // What is missing comes from the machine, unnoticed: nothing else is worth checking.
        return Ok(vec![files]);
    }
    let scratch = tempfile::tempdir().map_err(|source| Error::File {
        action: "create a directory in",
        path: std::env::temp_dir(),
        source,
    })?;
    let verifier = Verifier {
        compiler: Compiler::find(&manifest.compiler.program)?,
        nonshared: Parsed::read(&directory.join("libstdc++_nonshared.a"))?,
        stub: Library::read(&directory.join("libstdc++.so.6"))?,
        directory: &directory,
        scratch: scratch.path(),
        manifest: &manifest,
        target: &target,
    };
    Ok(vec![
        files,
        verifier.stubs()?,
        verifier.baseline(),
        verifier.coverage(),
        verifier.hidden(),
        verifier.unique()?,
        verifier.state(),
        verifier.aliases(),
        verifier.whole_archive()?,
        verifier.exposed()?,
        verifier.shim()?,
        verifier.probe("a C++ module", MODULE, &["-shared", "-fPIC"])?,
        verifier.probe("a C++ executable", PROGRAM, &[])?,
        verifier.probe("a module linked with -static-libstdc++ -static-libgcc", MODULE, STATIC)?,
    ])
}

/// Is every file there, and the one that was made?
fn check_files(directory: &Path, manifest: &Manifest) -> Check {
    let mut problems = Vec::new();
    for (name, sha256) in &manifest.files {
        match digest::of_file(&directory.join(name)) {
            Ok(found) if found == *sha256 => {}
            Ok(_) => problems.push(format!("{name} was changed")),
            Err(error) => problems.push(error.to_string()),
        }
    }
    let links = LINKERS.iter().filter(|name| !directory.join(name).is_file());
    problems.extend(links.map(|name| format!("{name} is missing")));
    let scope = format!("{} files", manifest.files.len() + LINKERS.len() - 1);
    Check { name: "every file is there and unchanged", scope, problems }
}

/// An archive, taken apart.
struct Parsed {
    path: PathBuf,
    bytes: Vec<u8>,
    members: Vec<(String, Relocatable)>,
}

impl Parsed {
    fn read(path: &Path) -> Result<Self> {
        let bytes = read(path)?;
        let mut members = Vec::new();
        for (name, data) in archive::members(path, &bytes)? {
            if let Some(file) = Relocatable::parse(&archive::member_path(path, &name), data)? {
                members.push((name, file));
            }
        }
        Ok(Self { path: path.to_owned(), bytes, members })
    }

    /// Name of the member, and the symbol.
    fn definitions(&self) -> impl Iterator<Item = (&str, &crate::relocatable::Symbol)> {
        self.members
            .iter()
            .flat_map(|(name, file)| file.definitions().map(move |(_, symbol)| (name.as_str(), symbol)))
    }

    fn defined_names(&self) -> BTreeSet<String> {
        self.definitions().map(|(_, symbol)| symbol.name_text()).collect()
    }
}

struct Verifier<'a> {
    compiler: Compiler,
    nonshared: Parsed,
    stub: Library,
    directory: &'a Path,
    scratch: &'a Path,
    manifest: &'a Manifest,
    target: &'a Target,
}

/// Uses threads, streams, locales, exceptions and what is newer than most targets.
const MODULE: &str = "#include <thread>\n#include <sstream>\n#include <memory>\n#include <stdexcept>\n#include <sys/stat.h>\n\
    #if __cplusplus >= 201703L\n#include <filesystem>\n#include <charconv>\n#endif\n\
    extern \"C\" int probe(int n) {\n\
      int sum = 0;\n\
      std::thread([&] { sum += n; }).join();\n\
      std::ostringstream out;\n\
      out << sum << 1.5 << std::make_shared<int>(n).use_count();\n\
      struct stat status;\n\
      sum += stat(\"/\", &status);\n\
      char text[64]; (void)text;\n\
    #if __cplusplus >= 201703L\n\
      sum += std::filesystem::exists(std::filesystem::path(\"/\")) ? 1 : 0;\n\
      sum += static_cast<int>(std::to_chars(text, text + 64, 0.1).ptr - text);\n\
    #endif\n\
      try { if (n > 1000) throw std::runtime_error(out.str()); } catch (const std::exception &) { return 1; }\n\
      return sum + static_cast<int>(out.str().size());\n\
    }\n";
const PROGRAM: &str = "#include <cstdio>\n#include <string>\n\
    static std::string text(\"constructed\");\n\
    int main() { std::puts(text.c_str()); return text.size() == 11 ? 0 : 1; }\n";
const STATIC: &[&str] = &["-shared", "-fPIC", "-static-libstdc++", "-static-libgcc"];

impl Verifier<'_> {
    /// The stubs hold exactly what the target's release has, by our own tables and not by the installed library.
    fn stubs(&self) -> Result<Check> {
        let mut problems = Vec::new();
        let mut count = 0;
        for expected in glibc_libraries(self.target)? {
            let found = Library::read(&self.directory.join(&expected.soname))?;
            count += found.exports.len();
            problems.extend(difference(&expected.soname, &triples(&expected), &triples(&found)));
        }
        let tables = [
            ("libstdc++.so.6", libstdcxx(self.target.arch())),
            ("libgcc_s.so.1", libgcc(self.target.arch())),
        ];
        for (soname, table) in tables {
            let Some(table) = table else { continue };
            let found = Library::read(&self.directory.join(soname))?;
            count += found.exports.len();
            let found: BTreeSet<_> =
                found.exports.iter().map(|e| (e.name.clone(), e.version.clone())).collect();
            problems.extend(difference(soname, &self.expected(table), &found));
        }
        let sonames = self.directory;
        for name in self.manifest.files.keys().filter(|name| name.contains(".so.")) {
            let library = Library::read(&sonames.join(name))?;
            if library.soname != *name {
                problems.push(format!("{name} calls itself {}", library.soname));
            }
        }
        Ok(Check { name: "the stubs have what the target has", scope: format!("{count} symbols"), problems })
    }

    fn expected(&self, table: GccLibrary) -> BTreeSet<(String, String)> {
        let rows =
            table.symbols().flat_map(|(name, rows)| rows.into_iter().map(move |row| (name.clone(), row)));
        let versions = rows.filter_map(|(name, row)| Some((name, row.version?.to_owned())));
        versions.filter(|(_, version)| admits(self.target, version)).collect()
    }

    fn baseline(&self) -> Check {
        let baseline: BTreeSet<&str> = self.stub.exports.iter().map(|export| export.name.as_str()).collect();
        let mut problems = Vec::new();
        let mut count = 0;
        for (member, symbol) in self.nonshared.definitions() {
            count += 1;
            if baseline.contains(symbol.name_text().as_str()) {
                problems.push(format!("{member} defines {}", symbol.name_text()));
            }
        }
        let name = "nothing that the target's libstdc++ has is defined again";
        Check { name, scope: format!("{count} definitions"), problems }
    }

    fn coverage(&self) -> Check {
        let report = &self.manifest.libstdcxx;
        let defined = self.nonshared.defined_names();
        let mut problems: Vec<String> =
            report.covered.difference(&defined).map(|name| format!("{name} is missing")).collect();
        let is_leak = |name: &&String| {
            defined.contains(*name) && !report.helpers.contains(*name) && *name != IOS_INIT_SYMBOL
        };
        for name in report.refused.keys().filter(is_leak) {
            problems.push(format!("{name} is refused and defined"));
        }
        let scope = format!(
            "{} symbols, {} more refused, {} not in libstdc++.a",
            report.covered.len(),
            report.refused.len(),
            report.missing.len()
        );
        Check { name: "the archive defines what is newer", scope, problems }
    }

    fn hidden(&self) -> Check {
        let defined = self.nonshared.defined_names();
        let mut problems = Vec::new();
        let mut count = 0;
        for (member, file) in &self.nonshared.members {
            for symbol in &file.symbols {
                let is_reference = symbol.is_global() && symbol.place == Place::Undefined;
                let name = symbol.name_text();
                // Each link has a __dso_handle of its own (crtbeginS.o).
                if is_reference
                    && symbol.visibility != elf::STV_DEFAULT
                    && name != "__dso_handle"
                    && !defined.contains(&name)
                {
                    problems.push(format!("{member} refers to {name}, which is hidden and nowhere"));
                }
                if symbol.is_definition() {
                    count += 1;
                    if symbol.visibility == elf::STV_DEFAULT && !is_unique(symbol) {
                        problems.push(format!("{member} exports {name}"));
                    }
                }
            }
        }
        Check {
            name: "nothing of the archive can be seen or missed",
            scope: format!("{count} definitions"),
            problems,
        }
    }

    /// Compared with the compiler's own archive, if it is still the one that was split.
    fn unique(&self) -> Result<Check> {
        let mut original: BTreeMap<Vec<u8>, (elf::SymbolBind, elf::SymbolVisibility)> = BTreeMap::new();
        if let Some(input) = self.manifest.inputs.get("libstdc++.a")
            && digest::of_file(&input.path).is_ok_and(|sha256| sha256 == input.sha256)
        {
            for (_, symbol) in
                Parsed::read(&input.path)?.definitions().filter(|(_, symbol)| is_unique(symbol))
            {
                original.insert(symbol.name.clone(), (symbol.binding, symbol.visibility));
            }
        }
        let mut problems = Vec::new();
        let mut count = 0;
        for (member, symbol) in self.nonshared.definitions() {
            let Some((binding, visibility)) = original.get(&symbol.name) else { continue };
            count += 1;
            if (symbol.binding, symbol.visibility) != (*binding, *visibility) {
                problems
                    .push(format!("{member}: {} binds differently than in libstdc++.a", symbol.name_text()));
            }
        }
        if count == 0 && !self.manifest.libstdcxx.unique.is_empty() {
            problems.push(
                "the libstdc++.a that was split is gone or changed: make the toolchain anew".to_owned(),
            );
        }
        let name = "statics of inline functions stay one for the process";
        Ok(Check { name, scope: format!("{count} symbols"), problems })
    }

    fn state(&self) -> Check {
        let mut problems = Vec::new();
        let mut count = 0;
        for (member, file) in &self.nonshared.members {
            let unique: BTreeSet<usize> = file
                .symbols
                .iter()
                .filter(|symbol| is_unique(symbol))
                .filter_map(|symbol| match symbol.place {
                    Place::Section(section) => Some(section),
                    _ => None,
                })
                .collect();
            for (index, section) in file.sections.iter().enumerate().filter(|(_, section)| section.is_state())
            {
                count += 1;
                let name = String::from_utf8_lossy(&section.name);
                let is_allowed = is_allowed_state(member, &name, section.size) || member == "ios_init.o";
                if !is_allowed && !unique.contains(&index) {
                    problems.push(format!("{member} brings {} bytes of state: {name}", section.size));
                }
            }
            if file.initializers().next().is_some()
                && !INITIALIZERS.contains(&member.as_str())
                && member != "ios_init.o"
            {
                problems.push(format!("{member} brings an initialiser"));
            }
        }
        Check { name: "no state has a second home", scope: format!("{count} variables"), problems }
    }

    /// New names of old functions are copies of code; none of them is what initialises the streams.
    fn aliases(&self) -> Check {
        let report = &self.manifest.libstdcxx;
        let mut problems = Vec::new();
        for (member, symbol) in self.nonshared.definitions() {
            let name = symbol.name_text();
            if name == IOS_INIT_SYMBOL && member != "ios_init.o" {
                problems.push(format!("{member} initialises streams of its own"));
            }
            if name.starts_with("_ZNSt") && name.ends_with("2idE") {
                problems.push(format!("{member} defines {name}, a std::locale::id"));
            }
        }
        let name = "no new symbol is an old one's state by another name";
        Check { name, scope: format!("{} harmless aliases", report.aliases.len()), problems }
    }

    /// Everything in one library, with nothing left undefined: the link that Red Hat's packages are tested with.
    fn whole_archive(&self) -> Result<Check> {
        let object = self.link_whole("whole.so", &self.nonshared.path, &[])?;
        let mut problems = Vec::new();
        for symbol in object.symbols.exported() {
            if symbol.binding() != Binding::Unique && symbol.visibility() == Visibility::Default {
                let name = object.symbols.name_text(symbol);
                if !LINKER_SYMBOLS.contains(&name.as_str()) && !self.manifest.libstdcxx.unique.contains(&name)
                {
                    problems.push(format!("{name} is exported"));
                }
            }
        }
        problems.extend(undefined(&object));
        let name = "the whole archive links, and exports nothing but unique symbols";
        Ok(Check { name, scope: format!("{} bytes", self.nonshared.bytes.len()), problems })
    }

    /// The archive as a companion library would have it exports exactly what is newer.
    fn exposed(&self) -> Result<Check> {
        let covered = &self.manifest.libstdcxx.covered;
        let path = self.scratch.join("libexposed.a");
        write(&path, expose(&self.nonshared.path, &self.nonshared.bytes, covered)?)?;
        let object = self.link_whole("exposed.so", &path, &[])?;
        let exported: BTreeSet<String> =
            object.symbols.exported().map(|symbol| object.symbols.name_text(symbol)).collect();
        let mut problems: Vec<String> =
            covered.difference(&exported).map(|name| format!("{name} is not exported")).collect();
        let expected = |name: &&String| {
            covered.contains(*name)
                || self.manifest.libstdcxx.unique.contains(*name)
                || LINKER_SYMBOLS.contains(&name.as_str())
        };
        problems
            .extend(exported.iter().filter(|name| !expected(name)).map(|name| format!("{name} is exported")));
        let name = "made visible, it exports exactly what is newer";
        Ok(Check { name, scope: format!("{} symbols", covered.len()), problems })
    }

    /// The same for the functions of the C library.
    fn shim(&self) -> Result<Check> {
        let archive = Parsed::read(&self.directory.join("libc_compat.a"))?;
        let stand_ins: BTreeSet<String> = archive.defined_names();
        // The start of executables refers to what only an executable has.
        let members: Vec<_> = archive
            .members
            .iter()
            .filter(|(_, file)| file.definitions().all(|(_, s)| s.name != START_MAIN_SYMBOL.as_bytes()))
            .map(|(name, file)| crate::nonshared::member(name, file))
            .collect();
        let path = self.scratch.join("libshim.a");
        write(&path, archive::write(&members))?;
        let object = self.link_whole("shim.so", &path, &[])?;
        let mut problems = undefined(&object);
        let exported = object.symbols.exported().map(|symbol| object.symbols.name_text(symbol));
        problems.extend(
            exported.filter(|name| stand_ins.contains(name)).map(|name| format!("{name} is exported")),
        );
        let name = "the functions that stand in for newer ones link, hidden";
        Ok(Check { name, scope: format!("{} functions", stand_ins.len()), problems })
    }

    /// An ordinary link through the wrapper.
    fn probe(&self, scope: &str, source: &str, flags: &[&str]) -> Result<Check> {
        let (input, output) = (self.scratch.join("probe.cc"), self.scratch.join("probe.out"));
        write(&input, source)?;
        let mut command = self.compiler.command(flags);
        command.arg(self.prefix()).args(["-pthread", "-O1", "-Wl,-z,defs", "-o"]).arg(&output).arg(&input);
        if needs_old_strings(self.manifest) {
            command.arg("-D_GLIBCXX_USE_CXX11_ABI=0");
        }
        command.env_remove(crate::link::LOG_VARIABLE);
        let name = "what is linked needs nothing newer";
        let mut problems = Vec::new();
        if let Err(error) = succeed(&mut command) {
            problems.push(error.to_string());
        } else {
            if let Err(error) = check_output(&output, &[], self.manifest) {
                problems.push(error.to_string());
            }
            let object = crate::link::read_object(&output)?;
            problems.extend(undefined(&object));
            if self.manifest.has_libpthread()
                && !object.dynamic.needed.iter().any(|name| *name == "libpthread.so.0")
            {
                problems.push("libpthread.so.0 is not needed".to_owned());
            }
            if !object.dynamic.needed.iter().any(|name| *name == "libstdc++.so.6") {
                problems.push("libstdc++.so.6 is not needed".to_owned());
            }
        }
        Ok(Check { name, scope: scope.to_owned(), problems })
    }

    fn prefix(&self) -> String {
        format!("-B{}/", self.directory.display())
    }

    fn link_whole(&self, output: &str, archive: &Path, flags: &[&str]) -> Result<Object> {
        let output = self.scratch.join(output);
        let mut command = self.compiler.command(flags);
        command.arg(self.prefix()).args(["-shared", "-Wl,-z,defs", "-Wl,--whole-archive"]).arg(archive);
        command.args(["-Wl,--no-whole-archive", "-o"]).arg(&output).env_remove(crate::link::LOG_VARIABLE);
        succeed(&mut command)?;
        crate::link::read_object(&output)
    }
}

/// Names that linkers give to places in every library.
const LINKER_SYMBOLS: [&str; 5] = ["_edata", "_end", "__bss_start", "_init", "_fini"];

/// Strong references without a version: nothing of the target has them.
fn undefined(object: &Object) -> Vec<String> {
    let is_dangling = |symbol: &&abiaudit_elf::Symbol| {
        !symbol.is_weak() && object.version_of(symbol) == SymbolVersion::Unversioned
    };
    let names = object.symbols.undefined().filter(is_dangling).map(|symbol| object.symbols.name_text(symbol));
    names.filter(|name| !name.is_empty()).map(|name| format!("{name} is undefined")).collect()
}

fn triples(library: &Library) -> BTreeSet<(String, String)> {
    library.exports.iter().map(|export| (export.name.clone(), export.version.clone())).collect()
}

fn difference(
    library: &str,
    expected: &BTreeSet<(String, String)>,
    found: &BTreeSet<(String, String)>,
) -> Vec<String> {
    let missing =
        expected.difference(found).map(|(name, version)| format!("{library} lacks {name}@{version}"));
    let beyond = found.difference(expected).map(|(name, version)| format!("{library} has {name}@{version}"));
    missing.chain(beyond).collect()
}
