//! Which definitions of an object belong to the libstdc++ that is linked into it.

use abiaudit_detect::itanium::{is_plain, may_be_standard};
use abiaudit_elf::{Binding, Object, Symbol};
use abiaudit_policy::symbols::{GccLibrary, libstdcxx};
use abiaudit_policy::{NodeVerdict, Target};

use crate::refusal::Refusal;

/// The exported definitions of a libstdc++ in an object, by index into `.dynsym`. What the object exports beyond these is
/// its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeCopy {
    /// The target's libstdc++.so.6 has them too, at this version node.
    pub shared: Vec<(u32, &'static str)>,
    /// Newer than the target's libstdc++.so.6: the part that a split toolchain adds.
    pub newer: Vec<u32>,
    /// Helpers of the library that it never exports, and inline functions of its headers.
    pub internal: Vec<u32>,
}

impl RuntimeCopy {
    /// Sorts the exports of an object.
    ///
    /// # Errors
    /// [`Refusal::UnknownLibrary`] without a list for the target's architecture.
    pub fn of(object: &Object, target: &Target) -> Result<Self, Refusal> {
        let table = libstdcxx(target.arch())
            .ok_or_else(|| Refusal::UnknownLibrary { arch: target.arch().tag().to_owned() })?;
        let mut copy = Self::default();
        for (index, symbol) in (1u32..).zip(object.symbols.iter()).filter(|(_, s)| s.is_exported()) {
            let name = object.symbols.name_text(symbol);
            match place(&name, symbol, &table, target) {
                Place::Shared(node) => copy.shared.push((index, node)),
                Place::Newer => copy.newer.push(index),
                Place::Internal => copy.internal.push(index),
                Place::Own => {}
            }
        }
        Ok(copy)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        let shared = self.shared.iter().map(|(index, _)| index);
        shared.chain(&self.newer).chain(&self.internal).copied()
    }
}

enum Place {
    Shared(&'static str),
    Newer,
    Internal,
    Own,
}

fn place(name: &str, symbol: &Symbol, table: &GccLibrary, target: &Target) -> Place {
    let exports = table.exports(name);
    if exports.is_empty() {
        // What user code has in these namespaces is instances of templates, and inline functions, which every object that
        // uses them has for itself.
        let internal = matches!(symbol.binding(), Binding::Global | Binding::Weak)
            && may_be_standard(name.as_bytes())
            && is_plain(name);
        return if internal { Place::Internal } else { Place::Own };
    }
    // The newest that the target has is what its linker would take: one symbol got a second version with GCC 12.
    let nodes = exports.iter().rev().filter_map(|export| export.version);
    match nodes.into_iter().find(|node| target.allows_node(node) == NodeVerdict::Allowed) {
        Some(node) => Place::Shared(node),
        None => Place::Newer,
    }
}
