//! What one platform tag promises.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::data::{ArchRow, LATER, PolicyRow, known_versions};
use crate::family::{Node, compare_versions};
use crate::{Action, Arch, Libc, LibraryRule, glob};

/// A policy on an architecture: `manylinux_2_28` on x86_64.
#[derive(Debug, Clone)]
pub struct Target {
    policy: Cow<'static, str>,
    aliases: &'static [&'static str],
    release: (u32, u32),
    provisional: bool,
    /// The listed policy that this one is, or that it is derived from.
    row: &'static PolicyRow,
    arch: Arch,
    ceilings: Vec<Ceiling>,
    extra_nodes: Vec<&'static str>,
    rules: Arc<[LibraryRule]>,
}

#[derive(Debug, Clone)]
struct Ceiling {
    family: &'static str,
    /// `None`: the family is judged and no node of it is there.
    newest: Option<Cow<'static, str>>,
}

/// Has a target this version node?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeVerdict {
    /// Every system of the target has it.
    Allowed,
    /// It exists, or will, but only on newer systems.
    TooNew {
        /// The newest version of the family that the target has, without the family's name; `None` if it has no
        /// node of this family at all.
        ceiling: Option<String>,
    },
    /// The target judges this family, and no release of the library has such a node on this architecture:
    /// `GLIBC_PRIVATE`, a node of another architecture, a vendor's own.
    Unknown,
    /// The target says nothing of this family: the node belongs to a library that a wheel brings along.
    NotCovered,
}

/// May an object NEED this library from outside the wheel?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibraryVerdict {
    /// Every system of the target has it, or the overlay says so.
    Allowed,
    /// It is the dynamic loader itself.
    DynamicLinker,
    /// The target does not promise it: it must come with the wheel or with a dependency.
    NotAllowed,
    /// The overlay wants it inside the wheel, although the policy would allow it from the system.
    MustBundle {
        /// The overlay's reason.
        reason: String,
    },
    /// The overlay wants it nowhere, neither from the system nor inside the wheel.
    Denied {
        /// The overlay's reason.
        reason: String,
    },
}

/// What it is.
impl Target {
    /// The tag, policy and architecture: `manylinux_2_28_x86_64`.
    pub fn tag(&self) -> String {
        format!("{}_{}", self.policy, self.arch)
    }

    /// The policy's PEP 600 or PEP 656 name: `manylinux_2_17`, never `manylinux2014`.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// The policy's older names (PEP 513, 571, 599): `manylinux2014`.
    pub fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// The C library.
    pub fn libc(&self) -> Libc {
        self.row.libc
    }

    /// The architecture.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// True if the target is newer than every listed policy of its architecture: its families other than GLIBC are
    /// those of the newest listed policy, and may turn out to be newer.
    pub fn is_provisional(&self) -> bool {
        self.provisional
    }

    /// The listed policy whose libraries and families this target takes; its own name if it is listed itself.
    pub fn based_on(&self) -> &'static str {
        self.row.name
    }

    /// The oldest glibc that the tag promises to run with.
    pub fn glibc_version(&self) -> Option<(u32, u32)> {
        (self.libc() == Libc::Glibc).then_some(self.release)
    }

    /// The oldest musl that the tag promises to run with: `(1, 2)` stands for 1.2.0.
    pub fn musl_version(&self) -> Option<(u32, u32)> {
        (self.libc() == Libc::Musl).then_some(self.release)
    }

    /// The instruction set that every machine of the target has, see [`Arch::baseline_isa`].
    pub fn baseline_isa(&self) -> Option<&'static str> {
        self.arch.baseline_isa()
    }

    /// Does `name` name this target: its tag, its policy, or an older name of either?
    pub fn is_named(&self, name: &str) -> bool {
        let policy =
            name.strip_suffix(self.arch.tag()).and_then(|rest| rest.strip_suffix('_')).unwrap_or(name);
        policy == self.policy || self.aliases.contains(&policy)
    }

    pub(crate) fn release(&self) -> (u32, u32) {
        self.release
    }
}

/// What it has.
impl Target {
    /// Has the target this version node? The name is as the object records it: `GLIBC_2.17`.
    pub fn allows_node(&self, name: &str) -> NodeVerdict {
        let Some(node) = Node::parse(name) else { return NodeVerdict::NotCovered };
        let Some(ceiling) = self.ceilings.iter().find(|ceiling| ceiling.family == node.family) else {
            return NodeVerdict::NotCovered;
        };
        if self.extra_nodes.contains(&name) {
            return NodeVerdict::Allowed;
        }
        let known = known_versions(self.arch, node.family);
        let exists = known.contains(&node.version);
        let beyond = !exists && newest(known).is_none_or(|newest| is_newer(node.version, newest));
        let reached = ceiling.newest.as_deref().is_some_and(|ceiling| is_at_most(node.version, ceiling));
        // No list can hold the nodes of a glibc to come; a provisional target's own number vouches for them.
        let foreseen = beyond && self.provisional && node.family == "GLIBC";
        if reached && (exists || foreseen) {
            NodeVerdict::Allowed
        } else if exists || (beyond && !reached) {
            NodeVerdict::TooNew { ceiling: ceiling.newest.as_deref().map(str::to_owned) }
        } else {
            NodeVerdict::Unknown
        }
    }

    /// The newest version of a family, without the family's name: `2.28` for `GLIBC`. `None` if the target has no
    /// node of the family, or does not judge it.
    pub fn ceiling(&self, family: &str) -> Option<&str> {
        self.ceilings.iter().find(|ceiling| ceiling.family == family)?.newest.as_deref()
    }

    /// The families that the target judges, sorted.
    pub fn families(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.ceilings.iter().map(|ceiling| ceiling.family)
    }

    /// Every node that the target has, by its whole name, in the order of family and version. A provisional
    /// target may have more.
    pub fn nodes(&self) -> impl Iterator<Item = String> + '_ {
        self.ceilings.iter().flat_map(move |ceiling| {
            known_versions(self.arch, ceiling.family)
                .iter()
                .map(|version| format!("{}_{version}", ceiling.family))
                .filter(|node| self.allows_node(node) == NodeVerdict::Allowed)
        })
    }

    /// May an object NEED `soname` from outside the wheel? The overlay's first matching rule decides before the
    /// policy does.
    pub fn library(&self, soname: &str) -> LibraryVerdict {
        match self.library_rule(soname) {
            Some(LibraryRule { action: Action::Allow, .. }) => return LibraryVerdict::Allowed,
            Some(LibraryRule { action: Action::Bundle, reason, .. }) => {
                return LibraryVerdict::MustBundle { reason: reason.clone() };
            }
            Some(LibraryRule { action: Action::Deny, reason, .. }) => {
                return LibraryVerdict::Denied { reason: reason.clone() };
            }
            None => {}
        }
        if self.libc().is_dynamic_linker(soname) {
            LibraryVerdict::DynamicLinker
        } else if self.libraries().any(|library| library == soname) {
            LibraryVerdict::Allowed
        } else {
            LibraryVerdict::NotAllowed
        }
    }

    /// The overlay's rule that decides on `soname`.
    pub fn library_rule(&self, soname: &str) -> Option<&LibraryRule> {
        self.rules.iter().find(|rule| {
            glob::matches(&rule.soname, soname)
                && rule.targets.as_ref().is_none_or(|targets| targets.iter().any(|name| self.is_named(name)))
        })
    }

    /// The sonames that the policy promises, the overlay left out.
    pub fn libraries(&self) -> impl Iterator<Item = Cow<'static, str>> + '_ {
        self.row.libraries.iter().map(|library| {
            if library.contains("{musl_arch}") {
                Cow::Owned(library.replace("{musl_arch}", self.arch.musl_name()))
            } else {
                Cow::Borrowed(*library)
            }
        })
    }

    /// Symbols of an allowed library that some systems of the target lack, so that no object may need them
    /// (strongly): libz builds differ in what they export, and an old glibc got symbols patched in.
    pub fn forbidden_symbols(&self, soname: &str) -> &'static [&'static str] {
        let forbidden = self.row.forbidden_symbols.iter().find(|(library, _)| *library == soname);
        forbidden.map_or(&[], |(_, symbols)| symbols)
    }
}

/// How it is made.
impl Target {
    pub(crate) fn listed(row: &'static PolicyRow, arch: &'static ArchRow) -> Self {
        let ceiling = |&(family, newest): &(&'static str, Option<&'static str>)| Ceiling {
            family,
            newest: newest.map(Cow::Borrowed),
        };
        Self {
            policy: Cow::Borrowed(row.name),
            aliases: row.aliases,
            release: row.release,
            provisional: false,
            row,
            arch: arch.arch,
            ceilings: arch.ceilings.iter().map(ceiling).collect(),
            extra_nodes: arch.extra_nodes.to_vec(),
            rules: Arc::new([]),
        }
    }

    /// The target of glibc `release`, which no policy lists: the GLIBC ceiling follows the number, all else is the
    /// listed `self`'s, the newest that is older.
    pub(crate) fn derive(&self, release: (u32, u32), provisional: bool) -> Self {
        let version = format!("{}.{}", release.0, release.1);
        let mut derived = Self {
            policy: Cow::Owned(format!("{}_{}_{}", self.libc().tag_family(), release.0, release.1)),
            aliases: &[],
            release,
            provisional,
            ..self.clone()
        };
        let known = known_versions(self.arch, "GLIBC");
        for ceiling in &mut derived.ceilings {
            if ceiling.family == "GLIBC" {
                let listed = known.iter().rev().find(|known| is_at_most(known, &version));
                let foreseen = provisional && newest(known).is_none_or(|newest| is_newer(&version, newest));
                ceiling.newest = match listed {
                    _ if foreseen => Some(Cow::Owned(version.clone())),
                    Some(listed) => Some(Cow::Borrowed(*listed)),
                    None => ceiling.newest.take(),
                };
            }
        }
        let later = LATER.iter().filter(|later| later.glibc <= release && later.arches.contains(&self.arch));
        derived.extra_nodes.extend(later.map(|later| later.node));
        derived
    }

    pub(crate) fn set_rules(&mut self, rules: Arc<[LibraryRule]>) {
        self.rules = rules;
    }

    /// Lowers a family's ceiling; one that is low enough stays. Nodes without a number stay only if a policy of
    /// `ladder` that is no newer in this family has them.
    pub(crate) fn lower(&mut self, family: &str, at_most: &str, ladder: &[Self]) {
        let Some(ceiling) = self.ceilings.iter_mut().find(|ceiling| ceiling.family == family) else { return };
        if !ceiling.newest.as_deref().is_some_and(|newest| is_newer(newest, at_most)) {
            return;
        }
        ceiling.newest = Some(Cow::Owned(at_most.to_owned()));
        let base = ladder
            .iter()
            .rev()
            .find(|older| older.ceiling(family).is_some_and(|ceiling| is_at_most(ceiling, at_most)));
        self.extra_nodes.retain(|name| {
            Node::parse(name).is_none_or(|node| node.family != family)
                || base.is_some_and(|base| base.extra_nodes.contains(name))
        });
    }
}

fn is_at_most(version: &str, ceiling: &str) -> bool {
    matches!(compare_versions(version, ceiling), Some(Ordering::Less | Ordering::Equal))
}

fn is_newer(version: &str, than: &str) -> bool {
    compare_versions(version, than) == Some(Ordering::Greater)
}

/// The newest number of a sorted list of versions, in which names come last.
fn newest(known: &[&'static str]) -> Option<&'static str> {
    known.iter().rev().find(|version| crate::family::is_numeric(version)).copied()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.tag())
    }
}

/// Two targets are equal if their tags are: the same overlay is understood.
impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        (self.libc(), self.arch, self.release) == (other.libc(), other.arch, other.release)
    }
}

impl Eq for Target {}
