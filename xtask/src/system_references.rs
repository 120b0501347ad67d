//! `system-references`: writes `policies/system-references.toml` from real libraries of a system.
//!
//! The tables of `policies/symbols` say what GCC's runtime libraries export. What these libraries ask the loader for
//! themselves, their own exports included, stands in their relocations alone.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use abiaudit_elf::{Object, Symbol, SymbolVersion, Wants};
use anyhow::{Context, Result, ensure};

use crate::shell;

const HELP: &str = "usage: cargo xtask system-references SOURCE LIBRARY...\n  \
                    SOURCE   whence the libraries are, such as \"Debian 12, GCC 12.2, amd64\"\n  \
                    LIBRARY  libstdc++.so.6, libgcc_s.so.1, libgomp.so.1";

/// Libraries whose exports `policies/symbols` does not have.
const WITHOUT_TABLE: &[&str] = &["libgomp.so.1"];

/// Writes the file.
pub fn run(args: &[String]) -> Result<()> {
    let [source, libraries @ ..] = args else { anyhow::bail!(HELP) };
    ensure!(!libraries.is_empty(), HELP);
    let mut text = HEAD.to_owned();
    for path in libraries {
        text.push_str(&library(Path::new(path), source).with_context(|| path.clone())?);
    }
    std::fs::write(shell::root().join("policies/system-references.toml"), text)?;
    Ok(())
}

const HEAD: &str = "\
# What libraries of the system ask the loader for themselves: their own exports that they refer to through the GOT or the
# PLT, and what they need of each other. Written by `cargo xtask system-references` from the relocations of real libraries.
#
# soname      the library
# source      whence the file is
# references  SYMBOL or SYMBOL@VERSION; only what the predicates of abiaudit-process look at: facet ids, their numbering,
#             call_once, the unwinder, exceptions, and identities. On another architecture, those that the library does
#             not have there are left out.
# exports     SYMBOL or SYMBOL@VERSION, for a library that has no table in policies/symbols
";

fn library(path: &Path, source: &str) -> Result<String> {
    let bytes = std::fs::read(path)?;
    let object = Object::from_bytes(&bytes, &Wants::default()).context("not an ELF file")?;
    let soname = object.dynamic.soname.as_ref().context("it has no DT_SONAME")?.to_text();
    let refers = |symbol: &&Symbol| {
        let name = object.symbols.name(symbol);
        !symbol.uses.is_empty() && std::str::from_utf8(name).is_ok_and(is_wanted)
    };
    let references = names(&object, object.symbols.iter().filter(refers));
    let mut text = format!("\n[[library]]\nsoname = \"{soname}\"\nsource = \"{source}\"\n");
    text.push_str(&array("references", &references));
    if WITHOUT_TABLE.contains(&soname.as_str()) {
        const SHN_ABS: u16 = 0xfff1;
        // Absolute symbols are the names of version nodes.
        let exported = object.symbols.exported().filter(|symbol| symbol.section != SHN_ABS);
        text.push_str(&array("exports", &names(&object, exported)));
    }
    Ok(text)
}

/// Whether a predicate of `abiaudit_process::collisions` looks at the symbol.
fn is_wanted(name: &str) -> bool {
    const ONE: &[&str] = &[
        "_ZNKSt6locale2id5_M_idEv",
        "_ZNSt6locale2id11_S_refcountE",
        "_ZNSt6locale7classicEv",
        "_ZNSt3_V216generic_categoryEv",
        "_ZSt4cout",
        "__once_proxy",
        "_ZSt11__once_call",
        "_ZSt15__once_callable",
        "__gxx_personality_v0",
        "_ZTISt9exception",
    ];
    /// These are the C library's.
    const OF_LIBC: &[&str] = &["__cxa_atexit", "__cxa_finalize", "__cxa_thread_atexit_impl"];
    let facet_id = name.starts_with("_ZNSt") && name.ends_with("E2idE");
    let exceptions = name.starts_with("__cxa_") && !OF_LIBC.contains(&name);
    facet_id || exceptions || name.starts_with("_Unwind_") || ONE.contains(&name)
}

/// `SYMBOL` or `SYMBOL@VERSION`, sorted.
fn names<'o>(object: &'o Object, symbols: impl Iterator<Item = &'o Symbol>) -> BTreeSet<String> {
    let with_version = |symbol: &Symbol| {
        let name = object.symbols.name_text(symbol);
        match object.version_of(symbol) {
            SymbolVersion::Needed(_, needed) => format!("{name}@{}", needed.name.to_text()),
            SymbolVersion::Defined(defined, _) => format!("{name}@{}", defined.name.to_text()),
            SymbolVersion::Unversioned | SymbolVersion::Unknown(_) => name,
        }
    };
    symbols.map(with_version).collect()
}

fn array(key: &str, values: &BTreeSet<String>) -> String {
    let mut text = format!("{key} = [\n");
    for value in values {
        let _ = writeln!(text, "  \"{value}\",");
    }
    text + "]\n"
}
