//! Which definition of one object satisfies a reference: glibc and musl.

use abiaudit_elf::{Binding, Object, Symbol, SymbolType, SymbolVersion, Visibility};

use crate::search::Libc;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a [u8],
    /// `gnu_hash` of the name.
    pub(crate) hash: u32,
    pub(crate) version: Option<WantedVersion<'a>>,
}

/// The version that a reference asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedVersion<'a> {
    pub(crate) name: &'a [u8],
    /// The hidden bit of `vna_other`: a definition without a version will not do.
    exact: bool,
}

impl<'a> WantedVersion<'a> {
    pub(crate) fn new(name: &'a [u8]) -> Self {
        Self { name, exact: false }
    }
}

/// Where the two loaders differ.
pub(crate) trait Rules {
    /// Index of the definition in `object` that satisfies `wanted`. `steps` counts the work.
    fn select(&self, object: &Object, wanted: &Wanted<'_>, steps: &mut u64) -> Option<u32>;

    /// `STB_GNU_UNIQUE` means anything.
    fn has_unique(&self) -> bool;

    /// `DF_SYMBOLIC` means anything.
    fn has_symbolic(&self) -> bool;

    /// What the visibility of a reference means.
    fn reach(&self, reference: &Symbol) -> Reach;
}

/// Where the definition of a reference may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// In its own object; nothing is looked up.
    Itself,
    /// In its own object, if any object has one.
    ItselfIfAny,
    /// Anywhere.
    Process,
}

pub(crate) fn of(libc: Libc) -> &'static dyn Rules {
    match libc {
        Libc::Glibc => &Glibc,
        Libc::Musl => &Musl,
    }
}

/// The version that a symbol of `object` asks for or has.
pub(crate) fn version<'o>(object: &'o Object, symbol: &Symbol) -> Option<WantedVersion<'o>> {
    const HIDDEN: u16 = 0x8000;
    match object.version_of(symbol) {
        SymbolVersion::Unversioned | SymbolVersion::Unknown(_) => None,
        SymbolVersion::Needed(_, needed) => {
            Some(WantedVersion { name: needed.name.as_bytes(), exact: needed.index & HIDDEN != 0 })
        }
        SymbolVersion::Defined(defined, _) => {
            Some(WantedVersion { name: defined.name.as_bytes(), exact: false })
        }
    }
}

/// `STT_COMMON`
const COMMON: SymbolType = SymbolType::Other(5);

/// `check_match` and `do_lookup_x` of elf/dl-lookup.c.
struct Glibc;

/// Whether a definition of the right name will do.
enum Verdict {
    Yes,
    /// A default version, for a reference without a version: if there is no other.
    IfOnly,
    No,
}

impl Glibc {
    fn judge(object: &Object, symbol: &Symbol, wanted: &Wanted<'_>) -> Verdict {
        const SHN_ABS: u16 = 0xfff1;
        /// Versions from this index on are those of symbols that came after the base version.
        const FIRST_LATER_VERSION: u16 = 3;
        let symbol_type = symbol.symbol_type();
        let no_value = symbol.value == 0 && symbol.section != SHN_ABS && symbol_type != SymbolType::Tls;
        let is_data_or_code = match symbol_type {
            SymbolType::Other(_) => symbol_type == COMMON,
            _ => true,
        };
        if no_value || !is_data_or_code {
            return Verdict::No;
        }
        if !object.versions.present {
            return Verdict::Yes;
        }
        let hidden = symbol.version & 0x8000 != 0;
        match wanted.version {
            Some(wanted) => match version(object, symbol) {
                Some(has) if has.name == wanted.name => Verdict::Yes,
                None if !wanted.exact && !hidden => Verdict::Yes,
                _ => Verdict::No,
            },
            None if symbol.version & 0x7fff < FIRST_LATER_VERSION => Verdict::Yes,
            None if hidden => Verdict::No,
            None => Verdict::IfOnly,
        }
    }
}

impl Rules for Glibc {
    fn select(&self, object: &Object, wanted: &Wanted<'_>, steps: &mut u64) -> Option<u32> {
        let mut found = None;
        let mut default = None;
        let mut defaults = 0;
        *steps += 1 + object.symbols.visit_definitions(wanted.name, wanted.hash, |index, symbol| {
            match Self::judge(object, symbol, wanted) {
                Verdict::Yes => found = Some(index),
                Verdict::IfOnly => {
                    default = default.or(Some(index));
                    defaults += 1;
                }
                Verdict::No => {}
            }
            found.is_none()
        });
        // What matches is not always seen, but ends the search in this object.
        let is_seen = |symbol: &Symbol| {
            matches!(symbol.visibility(), Visibility::Default | Visibility::Protected)
                && matches!(symbol.binding(), Binding::Global | Binding::Weak | Binding::Unique)
        };
        let matched = found.or(default.filter(|_| defaults == 1))?;
        object.symbols.get(matched).is_some_and(is_seen).then_some(matched)
    }

    fn has_unique(&self) -> bool {
        true
    }

    fn has_symbolic(&self) -> bool {
        true
    }

    fn reach(&self, reference: &Symbol) -> Reach {
        match reference.visibility() {
            Visibility::Hidden | Visibility::Internal => Reach::Itself,
            Visibility::Protected => Reach::ItselfIfAny,
            Visibility::Default => Reach::Process,
        }
    }
}

/// `find_sym2` and `gnu_lookup` of ldso/dynlink.c.
struct Musl;

impl Rules for Musl {
    fn select(&self, object: &Object, wanted: &Wanted<'_>, steps: &mut u64) -> Option<u32> {
        let mut found = None;
        // The first entry of the name decides: if it will not do, the object has none.
        *steps += 1 + object.symbols.visit_definitions(wanted.name, wanted.hash, |index, symbol| {
            if object.versions.present && symbol.version & 0x8000 != 0 {
                return true;
            }
            let symbol_type = symbol.symbol_type();
            let has_value = symbol.value != 0 || symbol_type == SymbolType::Tls;
            let is_data_or_code = match symbol_type {
                SymbolType::Other(_) => symbol_type == COMMON,
                SymbolType::Ifunc => false,
                _ => true,
            };
            let is_global = matches!(symbol.binding(), Binding::Global | Binding::Weak | Binding::Unique);
            found = (has_value && is_data_or_code && is_global).then_some(index);
            false
        });
        found
    }

    fn has_unique(&self) -> bool {
        false
    }

    fn has_symbolic(&self) -> bool {
        false
    }

    fn reach(&self, _: &Symbol) -> Reach {
        Reach::Process
    }
}
