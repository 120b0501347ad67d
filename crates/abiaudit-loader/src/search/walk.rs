//! Loads every root as the loader does: breadth first, each name looked up among what is loaded, then searched for.

use crate::search::index::{Index, Member, MemberId, Request, RequestKind, Role};
use crate::search::loading::{Asker, Loading, Served};
use crate::search::resolution::Resolution;
use crate::search::{CHAIN_MAX, FoundBy, Libc, Need, Outcome, PathTag, System};

/// Bound on the work for all roots, in look-ups. A site-packages directory of 3,000 objects takes two million.
const STEPS_MAX: u64 = 50_000_000;
/// What keeping an answer counts for. It bounds their number to half a million, which take some 150 MB.
const STEPS_PER_NEED: u64 = 100;

pub(crate) fn resolve(index: Index, system: System<'_>) -> Resolution {
    let mut walks = Walks::new(&index, system);
    let mut roots = index.roots();
    for &root in &roots {
        walks.walk(root, |_| true);
    }
    // What no root reaches (cycles, libraries that are needed by name but not found) is loaded on its own, and tells
    // only of objects that no root reached.
    let reached = walks.reached.clone();
    let mut orphans = Vec::new();
    for (id, member) in (0..).zip(&index.members) {
        if member.role != Role::Inert && !walks.reached[id as usize] {
            walks.walk(id, |from| !reached[from as usize]);
            orphans.push(id);
        }
    }
    roots.extend(&orphans);
    let Walks { records, closures, unwalked, .. } = walks;
    let needs = records.into_iter().flatten().collect();
    Resolution::new(index, roots, orphans, unwalked, closures, needs)
}

/// All walks so far, and the process of the one under way.
struct Walks<'i> {
    index: &'i Index,
    system: System<'i>,
    process: Loading<'i>,
    /// Per member that was walked and request: the worst so far.
    records: Vec<Vec<Need>>,
    reached: Vec<bool>,
    /// Per root in the order of the walks: what it loads, in load order.
    closures: Vec<Vec<MemberId>>,
    unwalked: Vec<usize>,
}

impl<'i> Walks<'i> {
    fn new(index: &'i Index, system: System<'i>) -> Self {
        let members = index.members.len();
        Self {
            index,
            system,
            process: Loading::new(index),
            records: vec![Vec::new(); members],
            reached: vec![false; members],
            closures: Vec::new(),
            unwalked: Vec::new(),
        }
    }

    /// Loads `root` and all that it needs; records the needs of those objects that `records` tells of.
    fn walk(&mut self, root: MemberId, records: impl Fn(MemberId) -> bool) {
        if self.process.steps > STEPS_MAX {
            self.unwalked.push(root as usize);
            self.reached[root as usize] = true;
            self.closures.push(vec![root]);
            return;
        }
        self.process.begin();
        self.process.load(root, None, None);
        self.reached[root as usize] = true;
        let mut order = vec![root];
        let mut next = 0;
        'walk: while let Some(&from) = order.get(next) {
            next += 1;
            for (number, request) in self.index.members[from as usize].requests.iter().enumerate() {
                if self.process.steps > STEPS_MAX {
                    self.unwalked.push(root as usize);
                    break 'walk;
                }
                let served = if self.is_loaded_before(root, request) {
                    Served::Nothing
                } else {
                    self.process.request(Asker::Object(from), request)
                };
                if let Some(member) = served.newly_loaded() {
                    self.reached[member as usize] = true;
                    order.push(member);
                }
                if records(from) {
                    self.record(root, from, number, served);
                }
            }
        }
        self.closures.push(order);
    }

    /// Keeps the outcome if it is the first or worse than what was seen before.
    fn record(&mut self, root: MemberId, from: MemberId, number: usize, served: Served) {
        let failed = matches!(served, Served::Nothing | Served::Blocked(_));
        let Some(known) = self.records[from as usize].get_mut(number) else {
            let need = self.need(root, from, number, served, !failed);
            self.records[from as usize].push(need);
            self.process.steps += STEPS_PER_NEED;
            return;
        };
        known.found_in_some_root |= !failed;
        if failed && matches!(known.outcome, Outcome::Found { .. }) {
            self.records[from as usize][number] = self.need(root, from, number, served, true);
        }
    }

    fn need(
        &self,
        root: MemberId,
        from: MemberId,
        number: usize,
        served: Served,
        found_in_some_root: bool,
    ) -> Need {
        let member = &self.index.members[from as usize];
        let request = &member.requests[number];
        let outcome = match served {
            Served::Nothing if self.is_systems(root, member, request) => Outcome::External,
            Served::Nothing | Served::Blocked(_) => self.failure(from, request),
            Served::AlreadyLoaded(id) => found(id, FoundBy::AlreadyLoaded),
            Served::Path(id) => found(id, FoundBy::Path),
            Served::Search { member, owner, entry } => found(member, self.found_by(from, owner, entry)),
            Served::Default(member) => found(member, FoundBy::DefaultDirectory),
        };
        let is_failure = matches!(outcome, Outcome::External | Outcome::Unreachable { .. });
        Need {
            from: from as usize,
            name: request.text.clone(),
            root: root as usize,
            chain: self.chain(root, from),
            found_in_some_root: found_in_some_root || !is_failure,
            blocked_by: match served {
                Served::Blocked(id) => Some(id as usize),
                _ => None,
            },
            no_default_directories: member.no_default_directories,
            hwcaps: match served {
                Served::Search { member, .. } if self.index.libc == Libc::Glibc => {
                    self.index.hwcaps_copies(member)
                }
                _ => Vec::new(),
            },
            outcome,
        }
    }

    /// The interpreter that opens `root` has the library already.
    fn is_loaded_before(&self, root: MemberId, request: &Request) -> bool {
        self.index.libc == Libc::Glibc
            && self.index.members[root as usize].role != Role::Program
            && self.system.loaded.contains(&request.text.as_str())
    }

    /// No member serves the request, and the system does.
    fn is_systems(&self, root: MemberId, member: &Member, request: &Request) -> bool {
        let in_directories = || {
            self.index.libc == Libc::Glibc
                && !member.no_default_directories
                && (self.system.has)(&request.text)
        };
        self.is_loaded_before(root, request) || in_directories()
    }

    fn failure(&self, from: MemberId, request: &Request) -> Outcome {
        let targets = match &request.kind {
            RequestKind::Empty => return Outcome::NotAName,
            RequestKind::Libc => return Outcome::Libc,
            RequestKind::File(targets) => targets,
        };
        let present = targets.iter().flat_map(|&target| self.index.present(from, target));
        let mut present: Vec<usize> = present.collect();
        present.sort_unstable();
        present.dedup();
        if present.is_empty() { Outcome::External } else { Outcome::Unreachable { present } }
    }

    fn found_by(&self, from: MemberId, owner: MemberId, entry: u32) -> FoundBy {
        let (tag, entry) = self.index.members[owner as usize]
            .raw_entry(entry, self.index.libc)
            .unwrap_or((PathTag::Rpath, ""));
        let entry = entry.to_owned();
        match tag {
            PathTag::Runpath if owner == from => FoundBy::Runpath { entry },
            _ => FoundBy::Rpath { owner: owner as usize, entry },
        }
    }

    /// From the root to `from`; of a long chain the root and its end.
    fn chain(&self, root: MemberId, from: MemberId) -> Vec<usize> {
        let mut chain = vec![from as usize];
        let mut loader = self.process.loader_of(from);
        while let Some(id) = loader.filter(|_| chain.len() < CHAIN_MAX - 1) {
            chain.push(id as usize);
            loader = self.process.loader_of(id);
        }
        if loader.is_some() {
            chain.push(root as usize);
        }
        chain.reverse();
        chain
    }
}

fn found(id: MemberId, by: FoundBy) -> Outcome {
    Outcome::Found { library: id as usize, by }
}
