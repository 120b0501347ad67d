//! Turns the reviewable TOML under `policies/runtimes` into static tables. Every key is checked here: a misspelt one
//! fails the build and names the file.
#![allow(clippy::print_stdout, reason = "cargo reads a build script's instructions from standard output")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The scan looks only at texts that hold a whole aligned word of 8 printable bytes; 15 bytes are sure to.
const SHORTEST_NAME: usize = 15;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    marker: Vec<Marker>,
    #[serde(default)]
    family: Vec<Family>,
    #[serde(default)]
    trap: Vec<Trap>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Marker {
    text: String,
    form: String,
    grade: String,
    speaks_for: String,
    unit: String,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    kind: String,
    name: String,
    stems: Vec<String>,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trap {
    prefixes: Vec<String>,
    reason: String,
    source: String,
}

fn main() -> Result<()> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../policies/runtimes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let (mut markers, mut families, mut traps) = (String::new(), String::new(), String::new());
    for path in files {
        let file: File = toml::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let named = |error| format!("{}: {error}", path.display());
        for marker in &file.marker {
            check_marker(marker).map_err(named)?;
            let Marker { text, form, grade, speaks_for, unit, .. } = marker;
            let (form, speaks_for) = (variant(form), variant(speaks_for));
            writeln!(
                markers,
                "    Marker {{ text: {text:?}, form: Form::{form}, grade: Grade::{grade}, \
                 speaks_for: Speaks::{speaks_for}, unit: {unit:?} }},"
            )?;
        }
        for Family { kind, name, stems, source } in &file.family {
            require_source(name, source).map_err(named)?;
            let kind = variant(kind);
            writeln!(families, "    Family {{ kind: Kind::{kind}, name: {name:?}, stems: &{stems:?} }},")?;
        }
        for Trap { prefixes, reason, source } in &file.trap {
            require_source(reason, source).map_err(named)?;
            writeln!(traps, "    Trap {{ prefixes: &{prefixes:?}, reason: {reason:?} }},")?;
        }
    }
    let tables = format!(
        "pub(crate) static MARKERS: &[Marker] = &[\n{markers}];\n\
         pub(crate) static FAMILIES: &[Family] = &[\n{families}];\n\
         pub(crate) static TRAPS: &[Trap] = &[\n{traps}];\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("runtimes.rs"), tables)?;
    Ok(())
}

fn check_marker(marker: &Marker) -> std::result::Result<(), String> {
    let text = &marker.text;
    require_source(text, &marker.source)?;
    if !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) || text.len() < 6 || text.len() > 120 {
        return Err(format!("marker {text:?} is not 6 to 120 printable characters"));
    }
    if marker.form == "name" && text.len() < SHORTEST_NAME {
        return Err(format!("marker {text:?} is a name of less than {SHORTEST_NAME} bytes"));
    }
    if !matches!(marker.grade.as_str(), "B" | "C") {
        return Err(format!("marker {text:?}: a text has grade B or C, not {:?}", marker.grade));
    }
    Ok(())
}

fn require_source(what: &str, source: &str) -> std::result::Result<(), String> {
    if source.trim().is_empty() { Err(format!("{what:?} has no source")) } else { Ok(()) }
}

/// `libstdcxx-full` is the variant `LibstdcxxFull`; that it exists is for the compiler to check.
fn variant(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').filter(|word| !word.is_empty()).map(capital).collect()
}
