//! What leads to what in an object, as far as it must be known to call a part of it dead.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use abiaudit_elf::{Fixup, FixupKind, Object, Symbol, SymbolType};

use super::Definitions;
use crate::code::{Code, Reference, ReferenceKind};

/// A fragment of code or a data symbol, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Code(usize),
    Data(usize),
}

/// What can be reached once the definitions are switched off.
pub(super) struct Graph<'g> {
    code: &'g Code<'g>,
    definitions: &'g Definitions,
    /// Data symbols, sorted by start.
    data: Vec<Range<u64>>,
    /// Fragments that are parts of the definitions.
    parts: &'g BTreeSet<usize>,
    live: BTreeSet<Node>,
}

/// What refers to what.
#[derive(Default)]
struct Edges {
    /// From what is not switched off.
    from: BTreeMap<Node, BTreeSet<Node>>,
    /// What anything refers to, also what is switched off.
    referred: BTreeSet<Node>,
}

impl Edges {
    fn add(&mut self, from: Node, to: Node) {
        self.from.entry(from).or_default().insert(to);
    }
}

impl<'g> Graph<'g> {
    pub(super) fn new(
        code: &'g Code<'g>,
        object: &Object,
        fixups: &[Fixup],
        definitions: &'g Definitions,
        parts: &'g BTreeSet<usize>,
        stays: impl Fn(u32) -> bool,
    ) -> Self {
        let data = object.symbols.iter().filter(|symbol| is_data(symbol));
        let mut data: Vec<_> = data.map(|s| s.value..s.value.saturating_add(s.size)).collect();
        data.sort_unstable_by_key(|range| (range.start, range.end));
        data.dedup();
        let mut graph = Self { code, definitions, data, parts, live: BTreeSet::new() };
        let edges = graph.edges(object, fixups);
        let roots = graph.roots(object, fixups, &edges, stays);
        graph.live = reach(roots, &edges.from);
        graph
    }

    /// The code or word at the address can still be run or read. What belongs to nothing known can.
    pub(super) fn is_live(&self, address: u64) -> bool {
        match self.node_of(address) {
            Some(node) => self.live.contains(&node),
            None => true,
        }
    }

    /// Some instruction that can still be run refers to one of the addresses: those that are.
    pub(super) fn used(&self, addresses: &BTreeSet<u64>) -> BTreeSet<u64> {
        let mut used = BTreeSet::new();
        self.code.references(|reference| {
            if addresses.contains(&reference.to) && self.is_live(reference.from) {
                used.insert(reference.to);
            }
        });
        used
    }

    fn node_of(&self, address: u64) -> Option<Node> {
        if let Some(fragment) = self.code.fragment_of(address) {
            return Some(Node::Code(fragment));
        }
        let next = self.data.partition_point(|range| range.start <= address);
        let index = next.checked_sub(1)?;
        self.data[index].contains(&address).then_some(Node::Data(index))
    }

    /// The node is switched off: it is of the definitions.
    fn is_off(&self, node: Node) -> bool {
        match node {
            Node::Code(index) => {
                let start = self.code.fragments().get(index).map_or(0, |fragment| fragment.start);
                self.parts.contains(&index) || self.definitions.is_in_function(start)
            }
            Node::Data(index) => self.definitions.at(self.data[index].start).is_some(),
        }
    }

    fn edges(&self, object: &Object, fixups: &[Fixup]) -> Edges {
        let words = self.targets_of_words(object, fixups);
        let linkage = Linkage::new(self.code, fixups);
        let mut edges = Edges::default();
        self.code.references(|reference| {
            let Some(from) = self.code.fragment_of(reference.from) else { return };
            if linkage.fragments.contains(&from) {
                return;
            }
            let from = Node::Code(from);
            let slot = linkage.slot_of(self.code, reference.to);
            let through = words.get(&slot.unwrap_or(reference.to)).copied();
            let itself = if slot.is_none() { self.node_of(reference.to) } else { None };
            for to in through.into_iter().chain(itself).filter(|&to| to != from) {
                edges.referred.insert(to);
                if self.is_off(from) || self.is_off(to) {
                    continue;
                }
                edges.add(from, to);
                if self.is_within_one_function(&reference, to) {
                    edges.add(to, from);
                }
            }
        });
        for (&address, &to) in &words {
            let Some(from) = self.node_of(address) else { continue };
            edges.referred.insert(to);
            if !self.is_off(from) && !self.is_off(to) {
                edges.add(from, to);
            }
        }
        edges
    }

    /// A jump into the middle of a fragment: both are parts of one function, and live or die together.
    fn is_within_one_function(&self, reference: &Reference, to: Node) -> bool {
        let Node::Code(index) = to else { return false };
        let start = self.code.fragments().get(index).map(|fragment| fragment.start);
        reference.kind == ReferenceKind::Jump && start != Some(reference.to)
    }

    /// For each word that the loader fills: what it leads to inside the object.
    fn targets_of_words(&self, object: &Object, fixups: &[Fixup]) -> BTreeMap<u64, Node> {
        let target = |fixup: &Fixup| {
            let address = match fixup.kind(&object.identity)? {
                FixupKind::Relative | FixupKind::IndirectRelative => fixup.addend.cast_unsigned(),
                FixupKind::Address | FixupKind::Slot => {
                    let symbol = object.symbols.get(fixup.symbol).filter(|s| !s.is_undefined())?;
                    if self.definitions.symbols.contains(&fixup.symbol) {
                        return None;
                    }
                    symbol.value.wrapping_add_signed(fixup.addend)
                }
                _ => return None,
            };
            Some((fixup.address, self.node_of(address)?))
        };
        fixups.iter().filter_map(target).collect()
    }

    /// What is live of itself: exports that stay, words of no symbol that are no slots of a procedure linkage or global
    /// offset table, and fragments that nothing refers to, for what leads to them may be unwinding.
    fn roots(
        &self,
        object: &Object,
        fixups: &[Fixup],
        edges: &Edges,
        stays: impl Fn(u32) -> bool,
    ) -> BTreeSet<Node> {
        let mut roots = BTreeSet::new();
        let (mut internal, mut slots) = (BTreeSet::new(), BTreeMap::new());
        let indexes = (1u32..).zip(object.symbols.iter());
        for (index, symbol) in indexes.filter(|(_, symbol)| symbol.is_exported()) {
            let Some(node) = self.node_of(symbol.value) else { continue };
            if stays(index) {
                roots.insert(node)
            } else {
                internal.insert(node)
            };
        }
        let words = self.targets_of_words(object, fixups);
        for fixup in fixups {
            let Some(&to) = words.get(&fixup.address) else { continue };
            if self.node_of(fixup.address).is_some() {
                continue;
            }
            if fixup.kind(&object.identity) == Some(FixupKind::Slot) {
                slots.insert(fixup.address, to);
            } else {
                roots.insert(to);
            }
        }
        let referred: BTreeSet<Node> = edges.referred.iter().copied().chain(slots.into_values()).collect();
        let all = (0..self.code.fragments().len()).map(Node::Code);
        roots.extend(all.filter(|node| !referred.contains(node) && !internal.contains(node)));
        roots.retain(|&root| !self.is_off(root));
        roots
    }
}

/// The procedure linkage table (each psABI): its entries go to where a slot points, each to another one, though for
/// unwinding it is one function.
struct Linkage {
    /// Address of an instruction with the slot that it goes through, in the order of addresses.
    entries: Vec<(u64, u64)>,
    /// The fragments that hold entries.
    fragments: BTreeSet<usize>,
}

impl Linkage {
    /// Entries are known by what they use: the slots of `DT_JMPREL`.
    fn new(code: &Code<'_>, fixups: &[Fixup]) -> Self {
        let slots: BTreeSet<u64> =
            fixups.iter().filter(|fixup| fixup.plt).map(|fixup| fixup.address).collect();
        let mut entries = Vec::new();
        code.references(|reference| {
            if reference.kind == ReferenceKind::Memory && slots.contains(&reference.to) {
                entries.push((reference.from, reference.to));
            }
        });
        let fragments = entries.iter().filter_map(|&(from, _)| code.fragment_of(from)).collect();
        Self { entries, fragments }
    }

    /// The slot that the entry at an address goes through: that of the next instruction with one.
    fn slot_of(&self, code: &Code<'_>, address: u64) -> Option<u64> {
        const LONGEST_ENTRY: u64 = 32;
        if !self.fragments.contains(&code.fragment_of(address)?) {
            return None;
        }
        let next = self.entries.partition_point(|&(from, _)| from < address);
        let &(from, slot) = self.entries.get(next)?;
        (from - address < LONGEST_ENTRY).then_some(slot)
    }
}

fn reach(roots: BTreeSet<Node>, edges: &BTreeMap<Node, BTreeSet<Node>>) -> BTreeSet<Node> {
    let mut live = roots.clone();
    let mut open: Vec<Node> = roots.into_iter().collect();
    while let Some(node) = open.pop() {
        for &next in edges.get(&node).into_iter().flatten() {
            if live.insert(next) {
                open.push(next);
            }
        }
    }
    live
}

fn is_data(symbol: &Symbol) -> bool {
    !symbol.is_undefined()
        && symbol.size > 0
        && matches!(symbol.symbol_type(), SymbolType::Object | SymbolType::None)
}
