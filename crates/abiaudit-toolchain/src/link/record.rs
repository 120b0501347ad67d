//! The log of links: one JSON object a line, enough to make each link again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::edit::given_output;
use super::read_object;
use crate::digest;
use crate::error::{Error, Result};
use crate::manifest::Manifest;

/// The format of [`Record`].
pub const SCHEMA: &str = "abiaudit.link/1";
/// The environment variable that names the log; without it nothing is recorded.
pub const LOG_VARIABLE: &str = "ABIAUDIT_LINK_LOG";

/// One link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`]
    pub schema: String,
    /// The target of the toolchain that recorded it.
    pub target: String,
    /// The directory in which the linker ran.
    pub directory: PathBuf,
    /// The linker.
    pub linker: PathBuf,
    /// The arguments as the driver gave them, response files expanded.
    pub arguments: Vec<String>,
    /// The arguments that the linker got.
    pub linked_with: Vec<String>,
    /// What of the environment a replay needs: link-time optimisation calls the compiler again by it.
    pub environment: BTreeMap<String, String>,
    /// The output, as an absolute path.
    pub output: PathBuf,
    /// The SHA-256 of the output right after the link.
    pub sha256: String,
    /// Its build id in hexadecimal digits, which stripping and setting an rpath leave alone.
    pub build_id: Option<String>,
    /// Its soname.
    pub soname: Option<String>,
    /// The files that went in.
    pub inputs: Vec<Input>,
}

/// A file that went into a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// As an absolute path.
    pub path: PathBuf,
    /// Its content.
    pub sha256: String,
    /// Where a copy is, if the file lay among temporary files.
    pub copy: Option<PathBuf>,
}

/// A link that has begun.
pub(super) struct Pending {
    log: PathBuf,
    record: Record,
}

/// Variables that a linker, its plugin or the compiler that the plugin calls read.
fn is_recorded(name: &str) -> bool {
    name.starts_with("COLLECT_")
        || [
            "COMPILER_PATH",
            "GCC_EXEC_PREFIX",
            "LIBRARY_PATH",
            "LD_RUN_PATH",
            "SOURCE_DATE_EPOCH",
            "TMPDIR",
            "LC_ALL",
            "LANG",
        ]
        .contains(&name)
}

/// Notes a link before it is made: a driver deletes its temporary inputs afterwards. `None` if it is not to be recorded.
pub(super) fn begin(
    given: &[OsString],
    linked_with: &[OsString],
    linker: &Path,
    manifest: &Manifest,
) -> Result<Option<Pending>> {
    let Some(log) = std::env::var_os(LOG_VARIABLE).filter(|log| !log.is_empty()).map(PathBuf::from) else {
        return Ok(None);
    };
    let directory =
        std::env::current_dir().map_err(|source| Error::File { action: "find", path: ".".into(), source })?;
    let Some(output) = given_output(given).map(|output| directory.join(output)) else { return Ok(None) };
    if is_probe(&output) {
        return Ok(None);
    }
    let text = |words: &[OsString]| words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .filter(|(name, _)| is_recorded(name))
        .collect();
    let record = Record {
        schema: SCHEMA.to_owned(),
        target: manifest.target.clone(),
        linker: linker.to_owned(),
        arguments: text(given),
        linked_with: text(linked_with),
        environment,
        output,
        sha256: String::new(),
        build_id: None,
        soname: None,
        inputs: inputs(linked_with, &directory, &log)?,
        directory,
    };
    Ok(Some(Pending { log, record }))
}

impl Pending {
    /// Notes what came out, and writes the line at once: several linkers may append to one log.
    pub fn finish(mut self) -> Result<()> {
        let output = &self.record.output;
        self.record.sha256 = digest::of_file(output)?;
        if let Ok(object) = read_object(output) {
            self.record.build_id = object.notes.build_id_hex();
            self.record.soname = object.dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text);
        }
        let failed = |source| Error::File { action: "append to", path: self.log.clone(), source };
        let mut line = serde_json::to_vec(&self.record).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        let mut log =
            std::fs::OpenOptions::new().append(true).create(true).open(&self.log).map_err(failed)?;
        log.write_all(&line).map_err(failed)
    }
}

/// A link by which a build system only finds out what works.
fn is_probe(output: &Path) -> bool {
    const DIRECTORIES: [&str; 5] =
        ["CMakeScratch", "CMakeTmp", "CompilerIdC", "CompilerIdCXX", "meson-private"];
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("conftest")
        || name.starts_with("cmTC_")
        || output == Path::new("/dev/null")
        || output.components().any(|part| DIRECTORIES.iter().any(|name| part.as_os_str() == *name))
}

/// Options whose value, the next word, is a path and no input.
const NO_INPUT: &[&str] = &[
    "-o",
    "--output",
    "-plugin",
    "--plugin",
    "-plugin-opt",
    "--plugin-opt",
    "-dynamic-linker",
    "--dynamic-linker",
    "-I",
    "-rpath",
    "--rpath",
    "-rpath-link",
    "--rpath-link",
    "-soname",
    "--soname",
    "-h",
    "-Map",
    "--Map",
    "--sysroot",
];

/// The files that the arguments name, and the libraries that `-l` finds in the directories of `-L`.
fn inputs(arguments: &[OsString], directory: &Path, log: &Path) -> Result<Vec<Input>> {
    let mut inputs: Vec<Input> = Vec::new();
    let mut search: Vec<PathBuf> = Vec::new();
    let mut libraries: Vec<String> = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if NO_INPUT.contains(&&*text) {
            words.next();
        } else if text == "-L" {
            search.extend(words.next().map(|path| directory.join(path)));
        } else if let Some(path) = text.strip_prefix("-L") {
            search.push(directory.join(path));
        } else if let Some(name) = text.strip_prefix("-l") {
            if !libraries.iter().any(|known| known == name) {
                libraries.push(name.to_owned());
            }
        } else {
            // --version-script=FILE, --dynamic-list=FILE and others; what the plugin is told names no inputs.
            let file = match text.strip_prefix('-') {
                Some(option) if option.starts_with("plugin-opt") => None,
                Some(option) => option.split_once('=').map(|(_, value)| value),
                None => Some(&*text),
            };
            if let Some(file) = file {
                push_input(&mut inputs, &directory.join(file), log)?;
            }
        }
    }
    for name in libraries {
        let files = match name.strip_prefix(':') {
            Some(file) => vec![file.to_owned()],
            None => vec![format!("lib{name}.so"), format!("lib{name}.a")],
        };
        let candidates = search.iter().flat_map(|place| files.iter().map(move |file| place.join(file)));
        if let Some(path) = candidates.into_iter().find(|path| path.is_file()) {
            push_input(&mut inputs, &path, log)?;
        }
    }
    Ok(inputs)
}

fn push_input(inputs: &mut Vec<Input>, path: &Path, log: &Path) -> Result<()> {
    if !path.is_file() || inputs.iter().any(|input| input.path == path) {
        return Ok(());
    }
    let sha256 = digest::of_file(path)?;
    let copy = if is_temporary(path) { Some(keep_copy(path, &sha256, log)?) } else { None };
    inputs.push(Input { path: path.to_owned(), sha256, copy });
    Ok(())
}

fn is_temporary(path: &Path) -> bool {
    let among = |directory: &Path| path.starts_with(directory);
    among(&std::env::temp_dir()) || among(Path::new("/tmp")) || among(Path::new("/var/tmp"))
}

/// Copies a file beside the log, under the name of its content, so that the same file is kept once.
fn keep_copy(path: &Path, sha256: &str, log: &Path) -> Result<PathBuf> {
    let mut directory = log.as_os_str().to_owned();
    directory.push(".inputs");
    let directory = PathBuf::from(directory);
    let failed = |source| Error::File { action: "copy", path: path.to_owned(), source };
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let copy = directory.join(sha256);
    if !copy.is_file() {
        // Another linker may be copying the same file: only a whole copy gets the name.
        let mut file = tempfile::NamedTempFile::new_in(&directory).map_err(failed)?;
        std::io::copy(&mut std::fs::File::open(path).map_err(failed)?, &mut file).map_err(failed)?;
        file.persist(&copy).map_err(|error| failed(error.error))?;
    }
    Ok(copy)
}
