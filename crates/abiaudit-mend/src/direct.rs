//! References to a definition that the linker settled, so that the loader never sees them.
//!
//! Taking a definition out of an object's dynamic symbols (so that another object's is used instead) redirects what goes
//! through relocations. What is bound directly would go on using the object's own: two copies of one thing. [`bindings`]
//! finds those. None found is the proof that a set of definitions can be switched off.
//!
//! What is only reachable from the switched-off functions is dead with them, and does not count:
//! * code in the functions themselves;
//! * parts of them that the compiler put elsewhere (`.cold`): a jump into the middle of a function comes from its own part;
//! * helpers and data that nothing else leads to. This is looked at only where it matters, since it needs the whole graph:
//!   nodes are fragments of code and data symbols; edges are references, directly or through a word that the loader fills;
//!   roots are the exports that stay, initialisers, and every word that belongs to no data symbol.

mod graph;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use abiaudit_elf::{Fixup, FixupKind, Object, SymbolType};

use crate::code::{Code, Reference, ReferenceKind};
use graph::Graph;

/// One reference that stays with the object's own definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectBinding {
    /// An instruction refers to it by distance.
    Code {
        /// The reference.
        reference: Reference,
        /// Index of the definition in `.dynsym`.
        symbol: u32,
    },
    /// A word of data holds its address, and the relocation names no symbol.
    Word {
        /// The address of the word.
        at: u64,
        /// What it points to.
        to: u64,
        /// Index of the definition in `.dynsym`.
        symbol: u32,
    },
    /// A thread-local variable is found by its offset in the object's block.
    Tls {
        /// The address of the word that the loader fills: the module or the offset.
        at: u64,
        /// Index of the definition in `.dynsym`.
        symbol: u32,
    },
}

/// A set of definitions of one object, by index into `.dynsym`.
#[derive(Debug)]
pub struct Definitions {
    /// Address ranges with the symbol and whether it is a function, sorted by start.
    ranges: Vec<(Range<u64>, u32, bool)>,
    /// Offsets in the TLS block.
    tls: Vec<(Range<u64>, u32)>,
    symbols: BTreeSet<u32>,
}

impl Definitions {
    /// Collects the definitions. Indexes of undefined symbols are passed over.
    pub fn new(object: &Object, symbols: impl IntoIterator<Item = u32>) -> Self {
        let symbols: BTreeSet<u32> = symbols.into_iter().collect();
        let (mut ranges, mut tls) = (Vec::new(), Vec::new());
        for &index in &symbols {
            let Some(symbol) = object.symbols.get(index).filter(|s| !s.is_undefined()) else { continue };
            // A size of 0 is one of a label: its address counts.
            let range = symbol.value..symbol.value.saturating_add(symbol.size.max(1));
            match symbol.symbol_type() {
                SymbolType::Tls => tls.push((range, index)),
                kind => {
                    let is_function = matches!(kind, SymbolType::Function | SymbolType::Ifunc);
                    ranges.push((range, index, is_function));
                }
            }
        }
        ranges.sort_by_key(|(range, index, _)| (range.start, range.end, *index));
        Self { ranges, tls, symbols }
    }

    /// The definition that an address lies in. Aliases have one range; of others that overlap, the one that begins last.
    fn at(&self, address: u64) -> Option<&(Range<u64>, u32, bool)> {
        let next = self.ranges.partition_point(|(range, ..)| range.start <= address);
        // Definitions do not nest, but for a few (construction vtables in vtables): a short way back is enough.
        self.ranges[..next].iter().rev().take(8).find(|(range, ..)| range.contains(&address))
    }

    fn is_in_function(&self, address: u64) -> bool {
        self.at(address).is_some_and(|(.., is_function)| *is_function)
    }
}

/// Everything that would still use the object's own copy of `definitions` after they are taken out of its dynamic symbols.
/// `stays` tells the exports that others may still use, by index into `.dynsym`.
pub fn bindings(
    code: &Code<'_>,
    object: &Object,
    fixups: &[Fixup],
    definitions: &Definitions,
    stays: impl Fn(u32) -> bool,
) -> Vec<DirectBinding> {
    let (mut suspects, parts) = suspects_in_code(code, definitions);
    suspects.extend(suspect_words(object, fixups, definitions));
    suspects.extend(suspect_tls(code, object, fixups, definitions));
    if suspects.is_empty() {
        return suspects;
    }
    let graph = Graph::new(code, object, fixups, definitions, &parts, stays);
    let slots = suspects.iter().filter_map(|suspect| match suspect {
        DirectBinding::Tls { at, .. } => Some(*at),
        _ => None,
    });
    let used = graph.used(&slots.collect());
    suspects.retain(|suspect| match suspect {
        DirectBinding::Code { reference, .. } => graph.is_live(reference.from),
        DirectBinding::Word { at, .. } => graph.is_live(*at),
        DirectBinding::Tls { at, .. } => used.contains(at),
    });
    suspects
}

/// References from code outside of the functions, and the fragments that are parts of them.
fn suspects_in_code(code: &Code<'_>, definitions: &Definitions) -> (Vec<DirectBinding>, BTreeSet<usize>) {
    let (mut suspects, mut parts) = (Vec::new(), BTreeSet::new());
    code.references(|reference| {
        let Some((range, symbol, is_function)) = definitions.at(reference.to) else { return };
        if definitions.is_in_function(reference.from) {
            return;
        }
        if *is_function && reference.kind == ReferenceKind::Jump && reference.to != range.start {
            parts.extend(code.fragment_of(reference.from));
        } else {
            suspects.push(DirectBinding::Code { reference, symbol: *symbol });
        }
    });
    let is_part = |suspect: &DirectBinding| match suspect {
        DirectBinding::Code { reference, .. } => {
            code.fragment_of(reference.from).is_some_and(|fragment| parts.contains(&fragment))
        }
        _ => false,
    };
    suspects.retain(|suspect| !is_part(suspect));
    (suspects, parts)
}

/// Relative words that point to a definition, and lie in none.
fn suspect_words<'a>(
    object: &'a Object,
    fixups: &'a [Fixup],
    definitions: &'a Definitions,
) -> impl Iterator<Item = DirectBinding> + 'a {
    fixups.iter().filter_map(|fixup| {
        use FixupKind::{IndirectRelative, Relative};
        if !matches!(fixup.kind(&object.identity), Some(Relative | IndirectRelative)) {
            return None;
        }
        let to = fixup.addend.cast_unsigned();
        let (_, symbol, _) = definitions.at(to)?;
        let is_dead = definitions.at(fixup.address).is_some();
        (!is_dead).then_some(DirectBinding::Word { at: fixup.address, to, symbol: *symbol })
    })
}

/// Words of thread-local storage that name no symbol and mean a definition.
///
/// The pair of words of a variable that the linker bound (general dynamic) has its offset in the second one. A pair with
/// 0 there is that of the first variable, or of the module as such (local dynamic), whose users add an offset that the
/// compiler chose, which it does only for variables that are not exported: those are no definitions of ours.
fn suspect_tls(
    code: &Code<'_>,
    object: &Object,
    fixups: &[Fixup],
    definitions: &Definitions,
) -> Vec<DirectBinding> {
    if definitions.tls.is_empty() {
        return Vec::new();
    }
    let filled: BTreeMap<u64, &Fixup> = fixups.iter().map(|fixup| (fixup.address, fixup)).collect();
    let meant = |offset: u64| {
        definitions.tls.iter().find(|(range, _)| range.contains(&offset)).map(|(_, symbol)| *symbol)
    };
    let binding = |fixup: &Fixup| {
        let offset = match fixup.kind(&object.identity)? {
            FixupKind::TlsModule => match filled.get(&(fixup.address.saturating_add(8))) {
                Some(second) if second.symbol == 0 => second.addend.cast_unsigned(),
                Some(_) => return None,
                None => code.word_at(fixup.address.saturating_add(8))?,
            },
            FixupKind::TlsThreadOffset | FixupKind::TlsDescriptor => fixup.addend.cast_unsigned(),
            _ => return None,
        };
        Some(DirectBinding::Tls { at: fixup.address, symbol: meant(offset)? })
    };
    fixups.iter().filter(|fixup| fixup.symbol == 0).filter_map(binding).collect()
}
