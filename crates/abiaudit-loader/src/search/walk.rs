//! Loads every root as the loader does: breadth first, each name looked up among what is loaded, then searched for.

use crate::search::index::{
    Admission, Hit, Index, MemberId, NameId, Place, Request, RequestKind, Role, Target,
};
use crate::search::resolution::Resolution;
use crate::search::{CHAIN_MAX, FoundBy, Libc, Need, Outcome, PathTag};

/// Bound on the work for all roots, in look-ups. A site-packages directory of 3,000 objects takes two million.
const STEPS_MAX: u64 = 50_000_000;
/// What keeping an answer counts for. It bounds their number to half a million, which take some 150 MB.
const STEPS_PER_NEED: u64 = 100;

pub(crate) fn resolve(index: Index) -> Resolution {
    let mut walks = Walks::new(&index);
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

/// All walks so far, and the state of the one under way. Per-walk state is valid if it carries the walk's number, so
/// that a walk costs what it loads and not what the set holds.
struct Walks<'i> {
    index: &'i Index,
    steps: u64,
    walk: u32,
    /// Per member: loaded in which walk, and how.
    loaded: Vec<(u32, Loaded)>,
    /// Per file (its first member): loaded as which member.
    files: Vec<(u32, MemberId)>,
    /// Per name: the object that answers to it.
    names: Vec<(u32, MemberId)>,
    /// Per member that was walked and request: the worst so far.
    records: Vec<Vec<Need>>,
    reached: Vec<bool>,
    /// Per root in the order of the walks: what it loads, in load order.
    closures: Vec<Vec<MemberId>>,
    unwalked: Vec<usize>,
}

#[derive(Clone, Copy, Default)]
struct Loaded {
    /// Who asked for it first.
    loader: Option<MemberId>,
    /// The nearest object up the chain, itself included, that hands down a search path.
    path_owner: Option<MemberId>,
    /// Where to look after the `path_owner`: the next one up the chain that hands down another path.
    next_owner: Option<MemberId>,
}

/// How one target was served.
#[derive(Clone, Copy)]
enum Served {
    AlreadyLoaded(MemberId),
    Path(MemberId),
    Search { member: MemberId, owner: MemberId, entry: u32 },
    Blocked(MemberId),
    Nothing,
}

impl<'i> Walks<'i> {
    fn new(index: &'i Index) -> Self {
        let members = index.members.len();
        Self {
            index,
            steps: 0,
            walk: 0,
            loaded: vec![(0, Loaded::default()); members],
            files: vec![(0, 0); members],
            names: vec![(0, 0); index.name_count],
            records: vec![Vec::new(); members],
            reached: vec![false; members],
            closures: Vec::new(),
            unwalked: Vec::new(),
        }
    }

    /// Loads `root` and all that it needs; records the needs of those objects that `records` tells of.
    fn walk(&mut self, root: MemberId, records: impl Fn(MemberId) -> bool) {
        if self.steps > STEPS_MAX {
            self.unwalked.push(root as usize);
            self.reached[root as usize] = true;
            self.closures.push(vec![root]);
            return;
        }
        self.walk += 1;
        let mut order = Vec::new();
        self.load(root, None, None, &mut order);
        let mut next = 0;
        'walk: while let Some(&from) = order.get(next) {
            next += 1;
            for (number, request) in self.index.members[from as usize].requests.iter().enumerate() {
                if self.steps > STEPS_MAX {
                    self.unwalked.push(root as usize);
                    break 'walk;
                }
                let served = self.request(from, request, &mut order);
                if records(from) {
                    self.record(root, from, number, served);
                }
            }
        }
        self.closures.push(order);
    }

    fn load(
        &mut self,
        id: MemberId,
        loader: Option<MemberId>,
        requested: Option<NameId>,
        order: &mut Vec<MemberId>,
    ) {
        let member = &self.index.members[id as usize];
        let above = loader.map_or_else(Loaded::default, |loader| self.loaded[loader as usize].1);
        let same = |owner: MemberId| {
            self.index.members[owner as usize].inherited.identity == member.inherited.identity
        };
        let (path_owner, next_owner) = match above.path_owner {
            _ if member.inherited.is_empty() => (above.path_owner, above.next_owner),
            Some(owner) if same(owner) => (Some(id), above.next_owner),
            owner => (Some(id), owner),
        };
        self.loaded[id as usize] = (self.walk, Loaded { loader, path_owner, next_owner });
        self.files[member.file as usize] = (self.walk, id);
        self.reached[id as usize] = true;
        let soname = member.soname.filter(|_| self.index.libc == Libc::Glibc);
        for name in [requested, soname].into_iter().flatten() {
            self.answer(name, id);
        }
        order.push(id);
    }

    /// From now on `id` answers to `name`, unless an object that was loaded earlier does.
    fn answer(&mut self, name: NameId, id: MemberId) {
        let slot = &mut self.names[name as usize];
        if slot.0 != self.walk {
            *slot = (self.walk, id);
        }
    }

    fn answering(&self, name: NameId) -> Option<MemberId> {
        let (walk, id) = self.names[name as usize];
        (walk == self.walk).then_some(id)
    }

    /// Serves one `DT_NEEDED` of `from`: the first of its targets that is found.
    fn request(&mut self, from: MemberId, request: &Request, order: &mut Vec<MemberId>) -> Served {
        let mut failure = Served::Nothing;
        for &target in request.targets() {
            self.steps += 1;
            match self.target(from, target, order) {
                Served::Nothing => {}
                blocked @ Served::Blocked(_) => failure = blocked,
                served => return served,
            }
        }
        failure
    }

    fn target(&mut self, from: MemberId, target: Target, order: &mut Vec<MemberId>) -> Served {
        let is_path = matches!(target.place, Place::Path(_));
        if (self.index.libc == Libc::Glibc || !is_path)
            && let Some(id) = self.answering(target.name)
        {
            return Served::AlreadyLoaded(id);
        }
        let served = match target.place {
            Place::Anywhere => self.search(from, target.name),
            Place::Path(Some(member)) => self.open(from, member),
            Place::Path(None) | Place::Nowhere => Served::Nothing,
        };
        let (Served::Path(member) | Served::Search { member, .. }) = served else { return served };
        let (walk, first) = self.files[self.index.members[member as usize].file as usize];
        let requested = (self.index.libc == Libc::Glibc || !is_path).then_some(target.name);
        if walk != self.walk {
            self.load(member, Some(from), requested, order);
            return served;
        }
        // The same file under another name. glibc remembers the name; musl gives an object without a name its own.
        let name = match self.index.libc {
            Libc::Glibc => requested,
            Libc::Musl => requested.map(|_| self.index.members[first as usize].file_name),
        };
        if let Some(name) = name {
            self.answer(name, first);
        }
        Served::AlreadyLoaded(first)
    }

    /// `DT_NEEDED` is a path: no other file will do.
    fn open(&self, from: MemberId, member: MemberId) -> Served {
        match self.index.admission(self.index.members[from as usize].machine, member) {
            Admission::Load => Served::Path(member),
            Admission::Skip | Admission::Stop => Served::Blocked(member),
        }
    }

    /// Looks through the search paths that count for what `from` needs.
    fn search(&mut self, from: MemberId, name: NameId) -> Served {
        let index = self.index;
        let member = &index.members[from as usize];
        if member.shielded {
            let hit = index.search(&member.own, name, member.machine, &mut self.steps);
            return hit.map_or(Served::Nothing, |hit| served(hit, from));
        }
        let mut owner = self.loaded[from as usize].1.path_owner;
        while let Some(id) = owner {
            let list = &index.members[id as usize].inherited;
            if let Some(hit) = index.search(list, name, member.machine, &mut self.steps) {
                return served(hit, id);
            }
            owner = self.loaded[id as usize].1.next_owner;
        }
        Served::Nothing
    }

    /// Keeps the outcome if it is the first or worse than what was seen before.
    fn record(&mut self, root: MemberId, from: MemberId, number: usize, served: Served) {
        let failed = matches!(served, Served::Nothing | Served::Blocked(_));
        let Some(known) = self.records[from as usize].get_mut(number) else {
            let need = self.need(root, from, number, served, !failed);
            self.records[from as usize].push(need);
            self.steps += STEPS_PER_NEED;
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
            Served::Nothing | Served::Blocked(_) => self.failure(from, request),
            Served::AlreadyLoaded(id) => found(id, FoundBy::AlreadyLoaded),
            Served::Path(id) => found(id, FoundBy::Path),
            Served::Search { member, owner, entry } => found(member, self.found_by(from, owner, entry)),
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
        let mut loader = self.loaded[from as usize].1.loader;
        while let Some(id) = loader.filter(|_| chain.len() < CHAIN_MAX - 1) {
            chain.push(id as usize);
            loader = self.loaded[id as usize].1.loader;
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

fn served(hit: Hit, owner: MemberId) -> Served {
    match hit.admission {
        Admission::Load => Served::Search { member: hit.member, owner, entry: hit.entry },
        Admission::Skip | Admission::Stop => Served::Blocked(hit.member),
    }
}
