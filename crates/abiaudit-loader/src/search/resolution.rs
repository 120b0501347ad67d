//! The answers.

use std::ops::Range;
use std::sync::OnceLock;

use crate::search::index::{Index, MemberId};
use crate::search::{Libc, Need, Outcome, SearchEntry};

/// How the needs of a set are found. Indexes are positions in the slice that was given to
/// [`resolve`](crate::search::resolve); every list is in an order that depends on nothing else.
#[derive(Debug)]
pub struct Resolution {
    /// Members that start a process of their own: programs, Python extension modules and libraries that no other member
    /// needs, in the order of the set; after them the [`orphans`](Self::orphans).
    pub roots: Vec<usize>,
    /// Members that were loaded on their own because no other root reached them: they are part of a cycle, or are
    /// needed by name but not found.
    pub orphans: Vec<usize>,
    /// One for each member and distinct `DT_NEEDED`, in the order of the set and of the entries.
    pub needs: Vec<Need>,
    /// Roots that were not walked, or not to the end, to bound the work; needs that only they reach are missing. Empty
    /// for any set that is not made to be slow.
    pub unwalked: Vec<usize>,
    index: Index,
    /// Per root: what it loads.
    closures: Vec<Vec<MemberId>>,
    /// Per member: its position among the roots.
    root_positions: Vec<Option<usize>>,
    /// Per member: its part of `needs`.
    ranges: Vec<Range<usize>>,
    /// Per member: needs that it serves, by position in `needs`.
    users: Vec<Vec<usize>>,
    /// Per member: the roots that load it, by position in `roots`. Made when it is first asked for: most sets have no
    /// need that is unreachable.
    loaded_by: OnceLock<Vec<Vec<u32>>>,
}

impl Resolution {
    pub(crate) fn new(
        index: Index,
        roots: Vec<MemberId>,
        orphans: Vec<MemberId>,
        unwalked: Vec<usize>,
        closures: Vec<Vec<MemberId>>,
        needs: Vec<Need>,
    ) -> Self {
        let mut ranges = vec![0..0; index.members.len()];
        let mut users = vec![Vec::new(); index.members.len()];
        for (position, need) in needs.iter().enumerate() {
            let range: &mut Range<usize> = &mut ranges[need.from];
            let start = if range.end == 0 { position } else { range.start };
            *range = start..position + 1;
            if let Outcome::Found { library, .. } = need.outcome {
                users[library].push(position);
            }
        }
        let mut root_positions = vec![None; index.members.len()];
        for (position, &root) in roots.iter().enumerate() {
            root_positions[root as usize] = Some(position);
        }
        let widen = |ids: Vec<MemberId>| ids.into_iter().map(|id| id as usize).collect();
        Self {
            roots: widen(roots),
            orphans: widen(orphans),
            needs,
            unwalked,
            index,
            closures,
            root_positions,
            ranges,
            users,
            loaded_by: OnceLock::new(),
        }
    }

    /// The needs of a member in the order of its entries.
    pub fn needs_of(&self, member: usize) -> &[Need] {
        self.ranges.get(member).and_then(|range| self.needs.get(range.clone())).unwrap_or(&[])
    }

    /// What is loaded when `root` is, in load order (breadth first), starting with `root` itself. Empty if `root` is
    /// none of the [`roots`](Self::roots).
    pub fn closure(&self, root: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        let position = self.root_positions.get(root).copied().flatten();
        let closure = position.and_then(|p| self.closures.get(p)).map_or(&[][..], Vec::as_slice);
        closure.iter().map(|&member| member as usize)
    }

    /// Needs whose outcome is that this member serves them.
    pub fn users_of(&self, member: usize) -> impl Iterator<Item = &Need> {
        self.users.get(member).into_iter().flatten().filter_map(|&position| self.needs.get(position))
    }

    /// Every entry of a member's `DT_RPATH` and `DT_RUNPATH`.
    pub fn search_paths(&self, member: usize) -> Vec<SearchEntry> {
        self.index.members.get(member).map_or_else(Vec::new, |member| member.search_entries(self.index.libc))
    }

    /// Roots that, when loaded earlier in the same process, satisfy an unreachable need: they load an object that then
    /// answers to the name. With glibc that is its soname or the name by which it was found, with musl only the
    /// latter.
    pub fn preload_candidates(&self, need: &Need) -> Vec<usize> {
        let Outcome::Unreachable { present } = &need.outcome else { return Vec::new() };
        let loaded_by = self.loaded_by.get_or_init(|| self.invert_closures());
        let mut candidates: Vec<usize> = Vec::new();
        for &member in present {
            let id = member as MemberId;
            let by_soname = self.index.libc == Libc::Glibc && self.index.has_soname(id, &need.name);
            if !by_soname && !self.index.has_file_name(id, &need.name) {
                continue;
            }
            // A root that was opened by its path answers to no file name.
            let roots = loaded_by[member].iter().map(|&position| self.roots[position as usize]);
            candidates.extend(roots.filter(|&root| root != need.root && (by_soname || root != member)));
        }
        // In the order of the roots.
        candidates.sort_unstable_by_key(|&root| self.root_positions[root]);
        candidates.dedup();
        candidates
    }

    fn invert_closures(&self) -> Vec<Vec<u32>> {
        let mut loaded_by = vec![Vec::new(); self.index.members.len()];
        for (position, closure) in (0..).zip(&self.closures) {
            for &member in closure {
                loaded_by[member as usize].push(position);
            }
        }
        loaded_by
    }
}
