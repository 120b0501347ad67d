//! The toolchain's `ld`: a wrapper that a compiler driver runs in place of the linker.
//!
//! At this level the command line is final: start files, search path, `-Bstatic -lstdc++ -Bdynamic` in place of
//! `-static-libstdc++`, the linker plugin. So what the split model needs is added in one place, whatever the build
//! system, and one link can be recorded as it was.

mod arguments;
mod edit;
mod gate;
mod record;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use arguments::expand;
pub use edit::{Edited, OutputKind, edit, output_kind, output_path};
pub use gate::check_output;
pub(crate) use gate::read_object;
pub use record::{Input, LOG_VARIABLE, Record, SCHEMA};

use crate::compiler::on_search_path;
use crate::create::LINKERS;
use crate::error::{Error, Result};
use crate::manifest::Manifest;

/// A link that was made.
#[derive(Debug)]
pub struct Linked {
    /// The exit code of the linker.
    pub code: u8,
    /// What was changed that the caller may not expect, for people.
    pub notices: Vec<String>,
}

/// Is this the name by which a compiler driver calls a linker? The command is the wrapper then.
pub fn is_linker_name(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| LINKERS.contains(&name))
}

/// Links: `program` is the path under which the wrapper was called, and so says where the toolchain is and which linker
/// is meant. What the linker prints goes where the caller's output goes.
pub fn run(program: &Path, arguments: impl IntoIterator<Item = OsString>) -> Result<Linked> {
    let directory =
        program.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = directory.canonicalize().map_err(|source| Error::File {
        action: "find",
        path: directory.to_owned(),
        source,
    })?;
    let manifest = Manifest::read(&directory)?;
    let given = expand(arguments)?;
    let linker = real_linker(program, &directory, &manifest)?;
    let kind = output_kind(&given, manifest.arch());
    let edited = if kind == OutputKind::Other {
        Edited { arguments: given.clone(), notices: Vec::new() }
    } else {
        gate::check_inputs(&given, &manifest)?;
        edit(&given, kind, &directory, &manifest, is_gnu_ld(&linker))
    };
    let pending = record::begin(&given, &edited.arguments, &linker, &manifest)?;
    let status = Command::new(&linker).args(&edited.arguments).status().map_err(|source| Error::File {
        action: "run",
        path: linker.clone(),
        source,
    })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    if code == 0 && kind != OutputKind::Other {
        let output = output_path(&given);
        if let Err(error) = check_output(&output, &given, &manifest) {
            // A linker that fails leaves no output.
            let _ = std::fs::remove_file(&output);
            return Err(error);
        }
    }
    if code == 0
        && let Some(pending) = pending
    {
        pending.finish()?;
    }
    Ok(Linked { code, notices: edited.notices })
}

/// The linker that the name stands for: the compiler's own for `ld`, else one beside it or on the search path.
fn real_linker(program: &Path, directory: &Path, manifest: &Manifest) -> Result<PathBuf> {
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or(LINKERS[0]);
    let default = &manifest.linker.path;
    if name == LINKERS[0] {
        return Ok(default.clone());
    }
    // A cross linker is called aarch64-linux-gnu-ld.gold.
    let prefix = default.file_name().and_then(|file| file.to_str()?.strip_suffix("ld")).unwrap_or_default();
    let beside = [format!("{prefix}{name}"), name.to_owned()].map(|file| default.with_file_name(file));
    let found =
        beside.into_iter().find(|path| path.is_file()).or_else(|| on_search_path(name, Some(directory)));
    found.ok_or_else(|| Error::Link(format!("there is no {name} beside {} or on PATH", default.display())))
}

/// GNU ld is called `ld` or `ld.bfd`, alone or behind a prefix: `aarch64-linux-gnu-ld`.
fn is_gnu_ld(linker: &Path) -> bool {
    let name = linker.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == "ld" || name.ends_with("-ld") || name.ends_with("ld.bfd")
}
