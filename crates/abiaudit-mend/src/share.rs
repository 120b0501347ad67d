//! `share`: the copy is switched off, and the process's libstdc++ serves.
//!
//! The parts of libstdc++.a are compiled for shared libraries with default visibility, so they reach each other and are
//! reached through relocations that name a symbol. A definition that becomes undefined takes all of them along: to the
//! libstdc++.so.6 that the object now needs. What the target's libstdc++.so.6 lacks keeps its definition, hidden: the
//! split model of manylinux toolchains, after the fact.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_detect::itanium::is_plain;
use abiaudit_detect::{Exposure, OncePair, UnwinderKind};
use abiaudit_edit::{Edit, EditPlan, Place, RequiredVersion, SymbolName};
use abiaudit_elf::{Binding, Fixup, Object, SymbolType, fixups};

use crate::code::Code;
use crate::copy::RuntimeCopy;
use crate::cure::{Cure, Method, Patient};
use crate::direct::{Definitions, DirectBinding, bindings};
use crate::refusal::Refusal;

const LIBSTDCXX: &str = "libstdc++.so.6";
const LIBGCC: &str = "libgcc_s.so.1";

pub(crate) fn plan(patient: &Patient<'_>, copy: &RuntimeCopy) -> Result<Cure, Refusal> {
    if patient.object.dynamic.symbolic {
        return Err(Refusal::Symbolic);
    }
    if let Some(allocator) = patient.carries.allocators.first() {
        let symbol = allocator.evidence.first().map_or_else(String::new, ToString::to_string);
        return Err(Refusal::ReplacesAllocator { symbol });
    }
    whole(patient, copy)?;
    let left = left(patient, copy)?;
    let object = patient.object;
    let mut edits = Vec::new();
    let private = patient.carries.unwinder.kind == UnwinderKind::Private;
    for library in [Some(LIBSTDCXX), private.then_some(LIBGCC)].into_iter().flatten() {
        if !object.dynamic.needed.iter().any(|name| *name == *library) {
            edits.push(Edit::AddNeeded { library: library.to_owned(), place: Place::Last });
        }
    }
    let name = |index: u32| object.symbols.get(index).map(|s| object.symbols.name_text(s));
    let mut by_node: BTreeMap<&str, Vec<SymbolName>> = BTreeMap::new();
    for (index, node) in copy.shared.iter().filter(|(index, _)| !left.contains(index)) {
        by_node.entry(node).or_default().extend(name(*index).map(SymbolName::new));
    }
    let shared: usize = by_node.values().map(Vec::len).sum();
    edits.extend(by_node.into_iter().map(|(node, symbols)| Edit::Undefine {
        symbols,
        version: Some(RequiredVersion { library: LIBSTDCXX.to_owned(), version: node.to_owned() }),
    }));
    let hidden: Vec<SymbolName> = kept(object, copy).filter_map(name).map(SymbolName::new).collect();
    let mut notes = vec![format!("{shared} definitions of its libstdc++ become references to {LIBSTDCXX}")];
    if !hidden.is_empty() {
        notes.push(format!("{} that the target's lacks stay in it, hidden", hidden.len()));
        edits.push(Edit::Hide { symbols: hidden });
    }
    if !left.is_empty() {
        notes.push(format!("{} instances of templates stay, since the linker bound them", left.len()));
    }
    Ok(Cure { method: Method::Share, plan: EditPlan::new(edits), notes })
}

/// All or nothing: what of the copy is hidden would go on beside the process's.
fn whole(patient: &Patient<'_>, copy: &RuntimeCopy) -> Result<(), Refusal> {
    let cxx = &patient.carries.cxx;
    let hidden = |example: &str| Err(Refusal::PartlyHidden { example: example.to_owned() });
    match cxx.once {
        OncePair::ProxyOnly => return hidden("_ZSt11__once_call"),
        OncePair::CallOnly => return hidden("__once_proxy"),
        OncePair::Neither | OncePair::Both => {}
    }
    if cxx.exposure != Exposure::Exported {
        return hidden("_ZNSt6locale7classicEv");
    }
    // What every copy with streams has: the table that facet ids index, and one that numbers them.
    for example in ["_ZNSt6locale7classicEv", "_ZNKSt6locale2id5_M_idEv", "__cxa_throw"] {
        let object = patient.object;
        let has = copy.shared.iter().any(|(index, _)| {
            object.symbols.get(*index).is_some_and(|s| object.symbols.name(s) == example.as_bytes())
        });
        if !has {
            return hidden(example);
        }
    }
    Ok(())
}

/// Definitions of the copy that must stay because the linker bound references to them, which is harmless for
/// instances of templates alone: user code has those too, and their state is elsewhere.
fn left(patient: &Patient<'_>, copy: &RuntimeCopy) -> Result<BTreeSet<u32>, Refusal> {
    const MOST_ROUNDS: usize = 16;
    let object = patient.object;
    let code = Code::new(patient.bytes, object)?;
    let fixups = fixups(patient.bytes, object)?;
    let mut left = BTreeSet::new();
    let mut found = Vec::new();
    for _ in 0..MOST_ROUNDS {
        found = direct(&code, object, &fixups, copy, &left);
        if found.is_empty() {
            return Ok(left);
        }
        let before = left.len();
        left.extend(found.iter().map(symbol_of).filter(|&index| may_stay(object, index)));
        if left.len() == before || !found.iter().all(|binding| may_stay(object, symbol_of(binding))) {
            break;
        }
    }
    let example = found.first().map_or_else(String::new, |binding| describe(object, binding));
    Err(Refusal::DirectBindings { count: found.len(), example })
}

fn direct(
    code: &Code<'_>,
    object: &Object,
    fixups: &[Fixup],
    copy: &RuntimeCopy,
    left: &BTreeSet<u32>,
) -> Vec<DirectBinding> {
    let chosen = copy.shared.iter().map(|(index, _)| *index).filter(|index| !left.contains(index));
    let definitions = Definitions::new(object, chosen);
    let internal: BTreeSet<u32> = kept(object, copy).collect();
    bindings(code, object, fixups, &definitions, |index| !internal.contains(&index))
}

/// What stays of the copy and is hidden. Unique symbols are the state of inline functions, of which there must be one
/// for the process: they are never touched.
fn kept(object: &Object, copy: &RuntimeCopy) -> impl Iterator<Item = u32> {
    let is_unique = |index: u32| object.symbols.get(index).is_some_and(|s| s.binding() == Binding::Unique);
    copy.newer.iter().chain(&copy.internal).copied().filter(move |&index| !is_unique(index))
}

fn may_stay(object: &Object, index: u32) -> bool {
    object.symbols.get(index).is_some_and(|symbol| {
        symbol.symbol_type() == SymbolType::Function && !is_plain(&object.symbols.name_text(symbol))
    })
}

fn symbol_of(binding: &DirectBinding) -> u32 {
    match binding {
        DirectBinding::Code { symbol, .. }
        | DirectBinding::Word { symbol, .. }
        | DirectBinding::Tls { symbol, .. } => *symbol,
    }
}

fn describe(object: &Object, binding: &DirectBinding) -> String {
    let name = object.symbols.get(symbol_of(binding)).map(|s| object.symbols.name_text(s));
    let name = name.unwrap_or_default();
    match binding {
        DirectBinding::Code { reference, .. } => format!("code at {:#x} for {name}", reference.from),
        DirectBinding::Word { at, .. } => format!("the word at {at:#x} for {name}"),
        DirectBinding::Tls { at, .. } => format!("thread-local storage at {at:#x} for {name}"),
    }
}
