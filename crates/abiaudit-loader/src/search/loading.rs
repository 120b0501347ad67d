//! What one process has loaded, and how a request of one of its objects is served: among what is loaded by name, then
//! through the search paths, then in the default directories.

use crate::search::Libc;
use crate::search::index::{Admission, Hit, Index, MemberId, NameId, Place, Request, SearchList, Target};

/// The state of one process. It can be begun anew: per-process state is valid if it carries the number of the process,
/// so that a process costs what it loads and not what the set holds.
pub(crate) struct Loading<'i> {
    pub(crate) index: &'i Index,
    /// Work done so far, over all processes.
    pub(crate) steps: u64,
    process: u32,
    /// The program, whose `DT_RPATH` counts for every request (glibc).
    program: Option<MemberId>,
    /// Per member: loaded in which process, and how.
    loaded: Vec<(u32, Loaded)>,
    /// Per file (its first member): loaded as which member.
    files: Vec<(u32, MemberId)>,
    /// Per name: the object that answers to it.
    names: Vec<(u32, MemberId)>,
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
pub(crate) enum Served {
    AlreadyLoaded(MemberId),
    Path(MemberId),
    Search {
        member: MemberId,
        owner: MemberId,
        entry: u32,
    },
    /// In a default directory.
    Default(MemberId),
    Blocked(MemberId),
    Nothing,
}

/// Who asks for a file.
#[derive(Clone, Copy)]
pub(crate) enum Asker {
    /// `DT_NEEDED` of an object.
    Object(MemberId),
    /// `dlopen` called from code of an object: its search paths count, but what is loaded starts a chain of its own
    /// (glibc `__RTLD_CALLMAP`; musl makes the program the one that needs it).
    Call(Option<MemberId>),
}

impl Served {
    /// The member that this request made the loader load.
    pub(crate) fn newly_loaded(self) -> Option<MemberId> {
        match self {
            Self::Path(member) | Self::Search { member, .. } | Self::Default(member) => Some(member),
            Self::AlreadyLoaded(_) | Self::Blocked(_) | Self::Nothing => None,
        }
    }
}

impl<'i> Loading<'i> {
    pub(crate) fn new(index: &'i Index) -> Self {
        let members = index.members.len();
        Self {
            index,
            steps: 0,
            process: 0,
            program: None,
            loaded: vec![(0, Loaded::default()); members],
            files: vec![(0, 0); members],
            names: vec![(0, 0); index.name_count],
        }
    }

    /// Forgets all that is loaded.
    pub(crate) fn begin(&mut self) {
        self.process += 1;
        self.program = None;
    }

    /// Loads `id` as the program.
    pub(crate) fn load_program(&mut self, id: MemberId) {
        self.load(id, None, None);
        self.program = Some(id);
    }

    /// Loads `id`, which was found by the name `requested` for `loader`.
    pub(crate) fn load(&mut self, id: MemberId, loader: Option<MemberId>, requested: Option<NameId>) {
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
        self.loaded[id as usize] = (self.process, Loaded { loader, path_owner, next_owner });
        self.files[member.file as usize] = (self.process, id);
        let soname = member.soname.filter(|_| self.index.libc == Libc::Glibc);
        for name in [requested, soname].into_iter().flatten() {
            self.answer(name, id);
        }
    }

    /// Who asked for a loaded object first.
    pub(crate) fn loader_of(&self, id: MemberId) -> Option<MemberId> {
        self.loaded[id as usize].1.loader
    }

    /// The loaded object that is the same file as `id`.
    pub(crate) fn loaded_as(&self, id: MemberId) -> Option<MemberId> {
        let (process, first) = self.files[self.index.members[id as usize].file as usize];
        (process == self.process).then_some(first)
    }

    /// `dlopen` of a member by its path.
    pub(crate) fn open_path(&mut self, id: MemberId) -> Served {
        if let Some(loaded) = self.loaded_as(id) {
            return Served::AlreadyLoaded(loaded);
        }
        let served = self.open(self.program, id);
        if served.newly_loaded().is_some() {
            self.load(id, self.program.filter(|_| self.index.libc == Libc::Musl), None);
        }
        served
    }

    /// Serves one request: the first of its targets that is found. What is [`Served::AlreadyLoaded`] was loaded before;
    /// anything else that was found has been loaded now.
    pub(crate) fn request(&mut self, asker: Asker, request: &Request) -> Served {
        let mut failure = Served::Nothing;
        for &target in request.targets() {
            self.steps += 1;
            match self.target(asker, target) {
                Served::Nothing => {}
                blocked @ Served::Blocked(_) => failure = blocked,
                served => return served,
            }
        }
        failure
    }

    /// From now on `id` answers to `name`, unless an object that was loaded earlier does.
    fn answer(&mut self, name: NameId, id: MemberId) {
        let slot = &mut self.names[name as usize];
        if slot.0 != self.process {
            *slot = (self.process, id);
        }
    }

    fn answering(&self, name: NameId) -> Option<MemberId> {
        let (process, id) = self.names[name as usize];
        (process == self.process).then_some(id)
    }

    fn target(&mut self, asker: Asker, target: Target) -> Served {
        let is_path = matches!(target.place, Place::Path(_));
        if (self.index.libc == Libc::Glibc || !is_path)
            && let Some(id) = self.answering(target.name)
        {
            return Served::AlreadyLoaded(id);
        }
        let (from, loader) = match (asker, self.index.libc) {
            (Asker::Object(from), _) => (Some(from), Some(from)),
            (Asker::Call(from), Libc::Glibc) => (from.or(self.program), None),
            (Asker::Call(_), Libc::Musl) => (self.program, self.program),
        };
        let served = match target.place {
            Place::Anywhere => self.search(from, target.name),
            Place::Path(Some(member)) => self.open(from, member),
            Place::Path(None) | Place::Nowhere => Served::Nothing,
        };
        let (Served::Path(member) | Served::Search { member, .. } | Served::Default(member)) = served else {
            return served;
        };
        let requested = (self.index.libc == Libc::Glibc || !is_path).then_some(target.name);
        let Some(first) = self.loaded_as(member) else {
            self.load(member, loader, requested);
            return served;
        };
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

    /// The request is a path: no other file will do.
    fn open(&self, from: Option<MemberId>, member: MemberId) -> Served {
        let machine = self.index.members[from.unwrap_or(member) as usize].machine;
        match self.index.admission(machine, member) {
            Admission::Load => Served::Path(member),
            Admission::Skip | Admission::Stop => Served::Blocked(member),
        }
    }

    /// Looks through the search paths that count for what `from` needs.
    fn search(&mut self, from: Option<MemberId>, name: NameId) -> Served {
        let index = self.index;
        let Some(from) = from else { return Served::Nothing };
        let member = &index.members[from as usize];
        let served = if member.shielded {
            self.search_list(&member.own, name, from)
        } else {
            self.search_inherited(from, name)
        };
        if !matches!(served, Served::Nothing) || member.no_default_directories {
            return served;
        }
        match index.search(&index.default_directories, name, member.machine, &mut self.steps) {
            Some(Hit { member, admission: Admission::Load, .. }) => Served::Default(member),
            Some(hit) => Served::Blocked(hit.member),
            None => Served::Nothing,
        }
    }

    /// The paths that are handed down the chain of loaders, then with glibc that of the program.
    fn search_inherited(&mut self, from: MemberId, name: NameId) -> Served {
        let index = self.index;
        let mut owner = self.loaded[from as usize].1.path_owner;
        let mut seen_program = false;
        while let Some(id) = owner {
            seen_program |= Some(id) == self.program;
            match self.search_list(&index.members[id as usize].inherited, name, id) {
                Served::Nothing => owner = self.loaded[id as usize].1.next_owner,
                served => return served,
            }
        }
        match self.program.filter(|_| index.libc == Libc::Glibc && !seen_program) {
            Some(program) => self.search_list(&index.members[program as usize].inherited, name, program),
            None => Served::Nothing,
        }
    }

    fn search_list(&mut self, list: &SearchList, name: NameId, owner: MemberId) -> Served {
        let machine = self.index.members[owner as usize].machine;
        match self.index.search(list, name, machine, &mut self.steps) {
            Some(Hit { member, entry, admission: Admission::Load }) => {
                Served::Search { member, owner, entry }
            }
            Some(hit) => Served::Blocked(hit.member),
            None => Served::Nothing,
        }
    }
}
