//! What Python sees in an object: is it an extension module, of which interpreter, and what does it use.

use std::collections::BTreeSet;

use abiaudit_elf::{Object, SymbolType};
use abiaudit_scan::{Member, Subject};

/// A Python extension module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The module's name: the file name up to the first dot.
    pub module: String,
    /// The part between module name and `.so`: `cpython-312-x86_64-linux-gnu`, `abi3`, or empty.
    pub suffix: String,
    /// Which entry point it has.
    pub entry: EntryPoint,
}

/// The function that an interpreter looks up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryPoint {
    /// `PyInit_NAME`, or `PyInitU_` for names that are not ASCII (PEP 489).
    Init3,
    /// `initNAME` of Python 2.
    Init2,
    /// `PyModExport_NAME` (PEP 793).
    Export,
    /// `_cffi_pypyinit_NAME`.
    PyPy,
}

/// Recognises an extension module by a defined entry point of its own name. What merely has an `.so` name and no
/// entry point is a library.
pub fn extension(member: &Member, object: &Object) -> Option<Extension> {
    let base = member.base_name();
    let (module, rest) = base.split_once('.').unwrap_or((base, ""));
    let entry = entry_point(module, object)?;
    let suffix = rest.strip_suffix(".so").or_else(|| rest.strip_suffix("so")).unwrap_or(rest);
    Some(Extension { module: module.to_owned(), suffix: suffix.to_owned(), entry })
}

fn entry_point(module: &str, object: &Object) -> Option<EntryPoint> {
    let defines = |name: &str| {
        let function = |t| matches!(t, SymbolType::Function | SymbolType::Ifunc);
        object.symbols.definitions(name.as_bytes()).iter().any(|s| function(s.symbol_type()))
    };
    if module.is_ascii() {
        let found = [
            ("PyInit_", EntryPoint::Init3),
            ("PyModExport_", EntryPoint::Export),
            ("_cffi_pypyinit_", EntryPoint::PyPy),
            ("init", EntryPoint::Init2),
        ]
        .into_iter()
        .find(|(prefix, _)| defines(&format!("{prefix}{module}")));
        return found.map(|(_, entry)| entry);
    }
    // PEP 489 encodes other names with punycode; any PyInitU_ of a module with such a name is its entry.
    let punycode = |s: &abiaudit_elf::Symbol| object.symbols.name(s).starts_with(b"PyInitU_");
    object.symbols.exported().any(punycode).then_some(EntryPoint::Init3)
}

/// The newest Python that markers are evaluated for where the tags promise all later ones.
const NEWEST: (u32, u32) = (3, 15);

/// The Pythons that markers are evaluated for, oldest first: each `cpXY` and `ppXY` of the tags, the newest too where an
/// tag promises all later ones (`abi3`, `abi3t`, `py3-none`), and 3.12 where the wheel names no version.
pub fn versions_of(subject: &Subject) -> Vec<String> {
    let (pythons, abis): (BTreeSet<String>, BTreeSet<String>) = match &subject.file_name {
        Some(name) => (name.pythons.iter().cloned().collect(), name.abis.iter().cloned().collect()),
        None => subject
            .dist_info
            .iter()
            .filter_map(|d| d.wheel.as_ref())
            .flat_map(|w| w.tags.iter().map(|t| (t.python.clone(), t.abi.clone())))
            .unzip(),
    };
    let version = |tag: &String| -> Option<(u32, u32)> {
        let digits = tag.strip_prefix("cp").or_else(|| tag.strip_prefix("pp"))?;
        let (major, minor) = digits.split_at_checked(1)?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let mut versions: BTreeSet<(u32, u32)> = pythons.iter().filter_map(version).collect();
    let only_2 = !pythons.is_empty() && pythons.iter().all(|p| p.starts_with("py2") || p.starts_with("cp2"));
    if versions.is_empty() {
        versions.insert(if only_2 { (2, 7) } else { (3, 12) });
    }
    let later = |abi: &String| abi == "abi3" || abi == "abi3t";
    if abis.iter().any(later) || pythons.iter().any(|p| p.starts_with("py3")) {
        versions.insert(NEWEST);
    }
    versions.into_iter().map(|(major, minor)| format!("{major}.{minor}.0")).collect()
}

/// A symbol of the interpreter's C API: any `Py*` or `_Py*` name.
pub fn is_api(symbol: &[u8]) -> bool {
    symbol.starts_with(b"Py") || symbol.starts_with(b"_Py")
}

/// `libpython3.12.so.1.0` and the like.
pub fn is_libpython(soname: &str) -> bool {
    soname
        .strip_prefix("libpython")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(".so"))
}

/// Undefined symbols of floating-point exception handling that CPython removed in 3.7 and that only builds
/// configured with `--with-fpectl` had: such a module imports nowhere else (PEP 513, auditwheel `PyFPE`).
pub fn fpe_symbols(object: &Object) -> Vec<String> {
    named(object, |name| matches!(name, b"PyFPE_jbuf" | b"PyFPE_dummy" | b"PyFPE_counter"))
}

/// Undefined symbols of Python 2's narrow Unicode build; cp27mu interpreters lack them (PEP 513). Of whatever
/// symbol type: linkers leave undefined ones without a type.
pub fn ucs2_symbols(object: &Object) -> Vec<String> {
    const NEEDLE: &[u8] = b"PyUnicodeUCS2_";
    named(object, |name| name.windows(NEEDLE.len()).any(|w| w == NEEDLE))
}

fn named(object: &Object, wanted: impl Fn(&[u8]) -> bool) -> Vec<String> {
    let symbols = &object.symbols;
    symbols.undefined().filter(|s| wanted(symbols.name(s))).map(|s| symbols.name_text(s)).collect()
}
