//! What `auditwheel show --json` prints, for programs written for it.
//!
//! Keys and meaning follow version 1 of `show-schema.json` in auditwheel 6.8.2 (`main_show.py`, `wheel_abi.py`):
//!
//! | key | from the report |
//! |---|---|
//! | `overall_tag` | `verdict.tag` |
//! | `sym_tag` | `verdict.by.symbols` |
//! | `pyfpe`, `ucs2` | `verdict.python_abi` |
//! | `unsupported_isa` | `verdict.by.isa` is the generic `linux` tag |
//! | `versioned_symbols` | union of `objects[].versions_by_library`, without the dynamic loader's own |
//! | `external_libs` | libraries in the way of the best tag; paths are `null`, as with `--ldpaths ""`: no host is looked at |
//! | `policy_upgrades` | `ladder`: `libraries` and `forbidden` of each better tag that has any |
//!
//! The policies are abiaudit's, so `policy_upgrades` can name tags that auditwheel has no policy for.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;

use crate::model::{ExternalClass, Report, Rung, Verdict, Wheel};
use crate::options::RenderOptions;

/// Writes one document, indented like auditwheel's; for several wheels one document a line.
pub fn render(report: &Report, _: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    if let [wheel] = report.wheels.as_slice() {
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut *out, formatter);
        Document::of(wheel).serialize(&mut serializer)?;
        return writeln!(out);
    }
    for wheel in &report.wheels {
        serde_json::to_writer(&mut *out, &Document::of(wheel))?;
        writeln!(out)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    wheel: &'a str,
    #[serde(flatten)]
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Error { error: &'a str },
    Pure { pure: bool },
    Platform(Platform<'a>),
}

#[derive(Serialize)]
struct Platform<'a> {
    pure: bool,
    overall_tag: &'a str,
    sym_tag: &'a str,
    pyfpe: bool,
    ucs2: bool,
    unsupported_isa: bool,
    versioned_symbols: BTreeMap<&'a str, BTreeSet<&'a str>>,
    external_libs: BTreeMap<&'a str, Option<&'a str>>,
    policy_upgrades: BTreeMap<&'a str, Upgrade<'a>>,
}

#[derive(Serialize)]
struct Upgrade<'a> {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    libs_to_eliminate: BTreeSet<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    blacklisted_symbols: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Document<'a> {
    fn of(wheel: &'a Wheel) -> Self {
        let content = match (&wheel.error, &wheel.verdict) {
            (Some(error), _) => Content::Error { error: &error.message },
            (None, Some(verdict)) => Content::Platform(Platform::of(wheel, verdict)),
            (None, None) if wheel.pure => Content::Pure { pure: true },
            (None, None) => Content::Error { error: "no verdict on the native code of this wheel" },
        };
        Self { version: 1, wheel: wheel.file_name(), content }
    }
}

impl<'a> Platform<'a> {
    fn of(wheel: &'a Wheel, verdict: &'a Verdict) -> Self {
        let upgrades = wheel.ladder.iter().map(|rung| (rung.tag.as_str(), Upgrade::of(rung)));
        Self {
            pure: false,
            overall_tag: &verdict.tag,
            sym_tag: &verdict.by.symbols,
            pyfpe: verdict.python_abi.pyfpe,
            ucs2: verdict.python_abi.ucs2,
            unsupported_isa: verdict.by.isa.starts_with("linux_"),
            versioned_symbols: versioned_symbols(wheel),
            external_libs: external_libraries(wheel).into_iter().map(|soname| (soname, None)).collect(),
            policy_upgrades: upgrades.filter(|(_, upgrade)| !upgrade.is_empty()).collect(),
        }
    }
}

impl<'a> Upgrade<'a> {
    fn of(rung: &'a Rung) -> Self {
        let mut blacklisted_symbols: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for symbol in &rung.forbidden {
            let library = symbol.library.as_deref().unwrap_or_default();
            blacklisted_symbols.entry(library).or_default().insert(&symbol.symbol);
        }
        Self { libs_to_eliminate: rung.libraries.iter().map(String::as_str).collect(), blacklisted_symbols }
    }

    fn is_empty(&self) -> bool {
        self.libs_to_eliminate.is_empty() && self.blacklisted_symbols.is_empty()
    }
}

fn versioned_symbols(wheel: &Wheel) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (library, nodes) in wheel.objects.iter().flat_map(|object| &object.versions_by_library) {
        if !is_dynamic_loader(library) && !nodes.is_empty() {
            versions.entry(library).or_default().extend(nodes.iter().map(String::as_str));
        }
    }
    versions
}

/// The names that auditwheel leaves out of `versioned_symbols` (`elf_find_versioned_symbols`).
fn is_dynamic_loader(library: &str) -> bool {
    library.starts_with("ld-linux") || matches!(library, "ld64.so.1" | "ld64.so.2")
}

/// auditwheel lists what its best policy does not allow: here, what stands in the way of the best tag. A wheel that
/// honours the best tag has an empty ladder; what no policy allows is in the way of every tag.
fn external_libraries(wheel: &Wheel) -> BTreeSet<&str> {
    let in_the_way = wheel.ladder.last().map_or(&[][..], |best| &best.libraries).iter().map(String::as_str);
    let never_promised =
        wheel.external.iter().filter(|e| e.class != ExternalClass::System).map(|e| e.soname.as_str());
    in_the_way.chain(never_promised).collect()
}
