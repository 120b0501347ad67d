//! The set of libraries, prepared: names and directories are numbers, search paths are lists of directories of the
//! set, and members are found by file name, soname and path.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ptr;

use abiaudit_elf::{Class, Endian, Name, Object, ObjectType};

use crate::search::expand::{self, PathTag, SearchEntry, Tokens};
use crate::search::{Libc, Library};

/// Number of a name.
pub(crate) type NameId = u32;
/// Number of a directory that holds members.
pub(crate) type DirectoryId = u32;
/// Position of a member in the set.
pub(crate) type MemberId = u32;

/// Class, byte order and machine number.
pub(crate) type Machine = (Class, Endian, u16);

/// Longest file name that musl searches for, in bytes (`NAME_MAX`).
const NAME_MAX: usize = 255;

#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) libc: Libc,
    pub(crate) members: Vec<Member>,
    pub(crate) name_count: usize,
    /// Per name: members with that file name.
    by_file_name: Vec<Vec<MemberId>>,
    /// Per name: members with that soname.
    by_soname: Vec<Vec<MemberId>>,
    by_path: HashMap<(DirectoryId, NameId), MemberId>,
    /// Per directory: the hardware capability directories below it (`glibc-hwcaps/*`).
    hwcaps: Vec<Vec<DirectoryId>>,
    /// The loader's cache and default directories.
    pub(crate) default_directories: SearchList,
    /// What programs ask for with `dlopen`, in the order of [`Surroundings::requests`].
    pub(crate) requests: Vec<Request>,
}

/// What surrounds a set of libraries in a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Surroundings<'a> {
    /// Directories that are searched last, in order.
    pub(crate) default_directories: &'a [&'a str],
    /// Names and paths that are asked for by `dlopen` rather than `DT_NEEDED`.
    pub(crate) requests: &'a [&'a str],
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) directory: DirectoryId,
    pub(crate) file_name: NameId,
    pub(crate) soname: Option<NameId>,
    /// The first member that is the same file.
    pub(crate) file: MemberId,
    pub(crate) machine: Machine,
    pub(crate) role: Role,
    /// glibc loads it as a library: `ET_DYN` without `DF_1_PIE`, with a dynamic section, for Linux.
    loadable: bool,
    /// Distinct needs in order.
    pub(crate) requests: Vec<Request>,
    /// Directories searched for what this object needs and for what the objects that it loads need.
    pub(crate) inherited: SearchList,
    /// Directories searched for what this object needs only (glibc `DT_RUNPATH`).
    pub(crate) own: SearchList,
    /// What others hand down is not searched (glibc, an object with `DT_RUNPATH`).
    pub(crate) shielded: bool,
    pub(crate) no_default_directories: bool,
    path: String,
    arch: Option<&'static str>,
    rpath: Option<String>,
    runpath: Option<String>,
    soname_text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing that a loader handles: an object file, debug information, no dynamic section.
    Inert,
    /// Started, not loaded.
    Program,
    /// A Python extension module.
    Module,
    /// Any other shared object.
    Library,
}

/// One distinct `DT_NEEDED`.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) text: String,
    pub(crate) kind: RequestKind,
}

#[derive(Debug)]
pub(crate) enum RequestKind {
    /// An empty name.
    Empty,
    /// musl's own name.
    Libc,
    /// What the name stands for, tried in order; more than one only with `$LIB` or `$PLATFORM` in it.
    File(Vec<Target>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: NameId,
    /// The name, or the last component of a path.
    pub(crate) file_name: NameId,
    pub(crate) place: Place,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// To be searched for.
    Anywhere,
    /// A path, and the member that is there.
    Path(Option<MemberId>),
    /// Too long to be searched for.
    Nowhere,
}

/// Directories of the set in search order, each once, with the byte offset of the search path
/// entry that named it.
#[derive(Debug, Default)]
pub(crate) struct SearchList {
    order: Vec<(DirectoryId, u32)>,
    /// Directories and their positions in `order`, by directory.
    positions: Vec<(DirectoryId, u32)>,
    /// Equal for lists of the same directories in the same order.
    pub(crate) identity: u32,
}

/// What the loader does with a file of the right name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Loads it.
    Load,
    /// Looks further.
    Skip,
    /// Gives up.
    Stop,
}

/// Where a search ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) member: MemberId,
    pub(crate) entry: u32,
    pub(crate) admission: Admission,
}

impl Index {
    pub(crate) fn new(libraries: &[Library<'_>], libc: Libc, surroundings: Surroundings<'_>) -> Self {
        let mut builder = Builder::new(libc);
        for library in libraries {
            builder.place(library.path);
        }
        let files = same_files(libraries);
        let members = (0..).zip(libraries).zip(files);
        let members = members.map(|((id, library), file)| builder.member(id, library, file)).collect();
        builder.finish(members, surroundings)
    }

    /// Members with that file name or soname that could be loaded beside `from`, in order.
    pub(crate) fn present(&self, from: MemberId, target: Target) -> BTreeSet<usize> {
        let machine = self.members[from as usize].machine;
        let file_names = named(&self.by_file_name, target.file_name).iter();
        let sonames = [target.name, target.file_name].map(|name| named(&self.by_soname, name));
        let both = file_names.chain(sonames.into_iter().flatten()).map(|&m| m as usize);
        let fits = |m: &usize| self.admission(machine, *m as MemberId) == Admission::Load;
        both.filter(fits).collect()
    }

    pub(crate) fn has_soname(&self, member: MemberId, name: &str) -> bool {
        self.members[member as usize].soname_text.as_deref() == Some(name)
    }

    pub(crate) fn has_file_name(&self, member: MemberId, name: &str) -> bool {
        expand::split_path(&self.members[member as usize].path).1 == name
    }

    /// What becomes of `candidate` in a process of that machine.
    ///
    /// glibc's `open_verify` passes over other classes and machines and ends with an error on all else that is
    /// wrong. musl opens the first file of the name and maps it; it never compares machines, so a foreign file ends
    /// the search.
    pub(crate) fn admission(&self, machine: Machine, candidate: MemberId) -> Admission {
        let member = &self.members[candidate as usize];
        let (class, endian, number) = member.machine;
        match self.libc {
            Libc::Glibc if class != machine.0 => Admission::Skip,
            Libc::Glibc if endian != machine.1 => Admission::Stop,
            Libc::Glibc if number != machine.2 => Admission::Skip,
            Libc::Glibc if member.loadable => Admission::Load,
            Libc::Musl if member.machine == machine && member.role != Role::Inert => Admission::Load,
            _ => Admission::Stop,
        }
    }

    /// The first file called `name` in the directories of `list`. Looks through whichever is shorter, the list or the
    /// members of that name; `steps` counts the work.
    pub(crate) fn search(
        &self,
        list: &SearchList,
        name: NameId,
        machine: Machine,
        steps: &mut u64,
    ) -> Option<Hit> {
        let candidates = named(&self.by_file_name, name);
        let hit = |member, entry| {
            let admission = self.admission(machine, member);
            (admission != Admission::Skip).then_some(Hit { member, entry, admission })
        };
        *steps += candidates.len().min(list.order.len()) as u64 + 1;
        if list.order.len() < candidates.len() {
            return list.order.iter().find_map(|&(directory, entry)| {
                let member = *self.by_path.get(&(directory, name))?;
                hit(member, entry)
            });
        }
        let positioned = candidates.iter().filter_map(|&member| {
            let directory = self.members[member as usize].directory;
            let position = list.position(directory)?;
            let (_, entry) = *list.order.get(position as usize)?;
            Some((position, hit(member, entry)?))
        });
        positioned.min_by_key(|(position, _)| *position).map(|(_, hit)| hit)
    }

    /// Copies of a member in `glibc-hwcaps` subdirectories of its directory.
    pub(crate) fn hwcaps_copies(&self, member: MemberId) -> Vec<usize> {
        let member = &self.members[member as usize];
        let copies = self.hwcaps[member.directory as usize].iter();
        let mut copies: Vec<usize> = copies
            .filter_map(|&directory| self.by_path.get(&(directory, member.file_name)))
            .map(|&copy| copy as usize)
            .filter(|&copy| self.members[copy].machine == member.machine && self.members[copy].loadable)
            .collect();
        copies.sort_unstable();
        copies
    }

    /// Members that start a process: programs, extension modules, and libraries that no other member needs by file
    /// name, soname or path.
    pub(crate) fn roots(&self) -> Vec<MemberId> {
        let needers = self.needers();
        let needed = |id: MemberId, member: &Member| {
            let names = [Some(member.file_name), member.soname];
            let by_name = names.into_iter().flatten().any(|name| needers.names[name as usize].other_than(id));
            by_name || needers.paths[id as usize].other_than(id)
        };
        let is_root = |id: MemberId, member: &Member| match member.role {
            Role::Inert => false,
            Role::Program | Role::Module => true,
            Role::Library => !needed(id, member),
        };
        (0..).zip(&self.members).filter(|(id, member)| is_root(*id, member)).map(|(id, _)| id).collect()
    }

    fn needers(&self) -> Needers {
        let mut needers = Needers {
            names: vec![Needer::Nobody; self.name_count],
            paths: vec![Needer::Nobody; self.members.len()],
        };
        for (from, member) in (0..).zip(&self.members) {
            for target in member.requests.iter().flat_map(Request::targets) {
                needers.names[target.name as usize].add(from);
                if let Place::Path(Some(at)) = target.place {
                    needers.paths[at as usize].add(from);
                }
            }
        }
        needers
    }
}

fn named(table: &[Vec<MemberId>], name: NameId) -> &[MemberId] {
    table.get(name as usize).map_or(&[], Vec::as_slice)
}

impl Member {
    /// musl's libc, which is its loader too.
    pub(crate) fn is_musl(&self) -> bool {
        let soname =
            self.soname_text.as_deref().filter(|name| name.starts_with("libc.")).is_some_and(is_musl);
        soname || expand::split_path(&self.path).1.starts_with("ld-musl-")
    }

    /// The entry at a byte offset of the search path that counts, and the tag of that path.
    pub(crate) fn raw_entry(&self, offset: u32, libc: Libc) -> Option<(PathTag, &str)> {
        let (tag, path) = effective_path(self.rpath.as_deref(), self.runpath.as_deref())?;
        Some((tag, expand::raw_entry(path, offset, libc)))
    }

    /// All entries of `DT_RPATH` and `DT_RUNPATH`.
    pub(crate) fn search_entries(&self, libc: Libc) -> Vec<SearchEntry> {
        let tokens = Tokens::new(expand::split_path(&self.path).0, self.arch);
        let mut all = Vec::new();
        for (path, tag) in [(&self.rpath, PathTag::Rpath), (&self.runpath, PathTag::Runpath)] {
            let Some(path) = path else { continue };
            let ignored = tag == PathTag::Rpath && self.runpath.is_some();
            all.extend(
                expand::entries(path, tag, libc, &tokens)
                    .map(|(_, entry)| SearchEntry { effective: entry.effective && !ignored, ..entry }),
            );
        }
        all
    }
}

impl Request {
    pub(crate) fn targets(&self) -> &[Target] {
        match &self.kind {
            RequestKind::File(targets) => targets,
            RequestKind::Empty | RequestKind::Libc => &[],
        }
    }
}

impl SearchList {
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn new(mut order: Vec<(DirectoryId, u32)>, identities: &mut HashMap<Vec<DirectoryId>, u32>) -> Self {
        let mut seen = HashSet::new();
        order.retain(|(directory, _)| seen.insert(*directory));
        let mut positions: Vec<_> = order.iter().map(|(directory, _)| *directory).zip(0..).collect();
        positions.sort_unstable();
        let next = identities.len() as u32;
        let directories = order.iter().map(|(directory, _)| *directory).collect();
        let identity = *identities.entry(directories).or_insert(next);
        Self { order, positions, identity }
    }

    fn position(&self, directory: DirectoryId) -> Option<u32> {
        let found = self.positions.binary_search_by_key(&directory, |(directory, _)| *directory);
        self.positions.get(found.ok()?).map(|(_, position)| *position)
    }
}

/// Who needs what, by name and by path.
struct Needers {
    names: Vec<Needer>,
    paths: Vec<Needer>,
}

#[derive(Clone, Copy)]
enum Needer {
    Nobody,
    One(MemberId),
    Several,
}

impl Needer {
    fn add(&mut self, from: MemberId) {
        *self = match *self {
            Self::Nobody => Self::One(from),
            Self::One(other) if other == from => return,
            _ => Self::Several,
        };
    }

    fn other_than(self, member: MemberId) -> bool {
        match self {
            Self::Nobody => false,
            Self::One(from) => from != member,
            Self::Several => true,
        }
    }
}

/// For each library the first one that borrows the same object.
fn same_files(libraries: &[Library<'_>]) -> Vec<MemberId> {
    let mut first: HashMap<*const Object, MemberId> = HashMap::new();
    (0..)
        .zip(libraries)
        .map(|(id, library)| *first.entry(ptr::from_ref(library.object)).or_insert(id))
        .collect()
}

struct Builder {
    libc: Libc,
    names: HashMap<String, NameId>,
    directories: HashMap<String, DirectoryId>,
    /// Directory and file name of each member.
    places: Vec<(DirectoryId, NameId)>,
    by_path: HashMap<(DirectoryId, NameId), MemberId>,
    lists: HashMap<Vec<DirectoryId>, u32>,
}

impl Builder {
    fn new(libc: Libc) -> Self {
        Self {
            libc,
            names: HashMap::new(),
            directories: HashMap::new(),
            places: Vec::new(),
            by_path: HashMap::new(),
            lists: HashMap::new(),
        }
    }

    fn name(&mut self, name: &str) -> NameId {
        number(&mut self.names, name)
    }

    fn place(&mut self, path: &str) {
        let (directory, file_name) = expand::split_path(path);
        let place = (number(&mut self.directories, directory), self.name(file_name));
        self.by_path.entry(place).or_insert(self.places.len() as MemberId);
        self.places.push(place);
    }

    fn member(&mut self, id: MemberId, library: &Library<'_>, file: MemberId) -> Member {
        let object = library.object;
        let (origin, file_name) = expand::split_path(library.path);
        let tokens = Tokens::new(origin, object.identity.arch());
        let (directory, file_name_id) = self.places[id as usize];
        let rpath = object.dynamic.rpath.as_ref().map(Name::to_text);
        let runpath = object.dynamic.runpath.as_ref().map(Name::to_text);
        let list = self.search_list(effective_path(rpath.as_deref(), runpath.as_deref()), &tokens);
        let (own, inherited) = match self.libc {
            Libc::Glibc if runpath.is_some() => (list, SearchList::default()),
            _ => (SearchList::default(), list),
        };
        Member {
            directory,
            file_name: file_name_id,
            soname: object.dynamic.soname.as_ref().map(|soname| self.name(&soname.to_text())),
            file,
            machine: (object.identity.class, object.identity.endian, object.identity.machine),
            role: role(object, file_name),
            loadable: is_loadable(object),
            requests: self.requests(object, &tokens),
            inherited,
            own,
            shielded: self.libc == Libc::Glibc && runpath.is_some(),
            no_default_directories: object.dynamic.no_default_libraries(),
            path: library.path.to_owned(),
            arch: object.identity.arch(),
            rpath,
            runpath,
            soname_text: object.dynamic.soname.as_ref().map(Name::to_text),
        }
    }

    /// The directories of the set among those that a search path stands for.
    fn search_list(&mut self, path: Option<(PathTag, &str)>, tokens: &Tokens<'_>) -> SearchList {
        let mut order = Vec::new();
        if let Some((tag, path)) = path {
            for (offset, entry) in expand::entries(path, tag, self.libc, tokens).filter(|(_, e)| e.effective)
            {
                let known = entry.candidates.iter().filter_map(|directory| self.directories.get(directory));
                order.extend(known.map(|&directory| (directory, offset)));
            }
        }
        SearchList::new(order, &mut self.lists)
    }

    fn requests(&mut self, object: &Object, tokens: &Tokens<'_>) -> Vec<Request> {
        let mut seen = HashSet::new();
        let distinct = object.dynamic.needed.iter().filter(|name| seen.insert(*name));
        distinct
            .map(|name| {
                let text = name.to_text();
                Request { kind: self.request_kind(&text, tokens), text }
            })
            .collect()
    }

    fn request_kind(&mut self, text: &str, tokens: &Tokens<'_>) -> RequestKind {
        if text.is_empty() {
            return RequestKind::Empty;
        }
        if self.libc == Libc::Musl && is_musl(text) {
            return RequestKind::Libc;
        }
        // glibc expands the tokens of DT_NEEDED too (`expand_dst` in elf/dl-deps.c), musl does not.
        let spellings = match self.libc {
            Libc::Glibc => tokens.substitute(text),
            Libc::Musl => vec![text.to_owned()],
        };
        RequestKind::File(spellings.iter().map(|spelling| self.target(spelling)).collect())
    }

    fn target(&mut self, spelling: &str) -> Target {
        let name = self.name(spelling);
        let place = if spelling.starts_with('/') {
            let path = expand::normalise(spelling);
            let (directory, file_name) = expand::split_path(&path);
            let found = self.directories.get(directory).zip(self.names.get(file_name));
            Place::Path(found.and_then(|(&d, &n)| self.by_path.get(&(d, n)).copied()))
        } else if spelling.contains('/') {
            // Relative to the working directory of whoever runs the process.
            Place::Path(None)
        } else if self.libc == Libc::Musl && spelling.len() > NAME_MAX {
            Place::Nowhere
        } else {
            Place::Anywhere
        };
        let file_name = match spelling.rsplit_once('/') {
            Some((_, file_name)) => self.name(file_name),
            None => name,
        };
        Target { name, file_name, place }
    }

    fn finish(mut self, members: Vec<Member>, surroundings: Surroundings<'_>) -> Index {
        let known = surroundings.default_directories.iter().filter_map(|&path| self.directories.get(path));
        let default_directories = SearchList::new(known.map(|&id| (id, 0)).collect(), &mut self.lists);
        let requests = surroundings.requests.iter().map(|&text| {
            let kind = self.request_kind(text, &Tokens::new("/", None));
            Request { kind, text: text.to_owned() }
        });
        let requests = requests.collect();
        let mut by_file_name = vec![Vec::new(); self.names.len()];
        let mut by_soname = vec![Vec::new(); self.names.len()];
        for (id, member) in (0..).zip(&members) {
            by_file_name[member.file_name as usize].push(id);
            if let Some(soname) = member.soname {
                by_soname[soname as usize].push(id);
            }
        }
        Index {
            libc: self.libc,
            name_count: self.names.len(),
            hwcaps: hwcaps_directories(&self.directories),
            by_file_name,
            by_soname,
            by_path: self.by_path,
            default_directories,
            requests,
            members,
        }
    }
}

fn number(table: &mut HashMap<String, u32>, text: &str) -> u32 {
    if let Some(&number) = table.get(text) {
        return number;
    }
    let number = table.len() as u32;
    table.insert(text.to_owned(), number);
    number
}

/// `DT_RUNPATH` if it is there, else `DT_RPATH` (glibc `elf_get_dynamic_info`, musl `decode_dyn`).
fn effective_path<'p>(rpath: Option<&'p str>, runpath: Option<&'p str>) -> Option<(PathTag, &'p str)> {
    let runpath = runpath.map(|path| (PathTag::Runpath, path));
    runpath.or(rpath.map(|path| (PathTag::Rpath, path)))
}

/// Per directory those below its `glibc-hwcaps` (glibc manual, "Dynamic Linker Hwcaps").
fn hwcaps_directories(directories: &HashMap<String, DirectoryId>) -> Vec<Vec<DirectoryId>> {
    let mut below = vec![Vec::new(); directories.len()];
    for (path, &directory) in directories {
        let (parent, _) = expand::split_path(path);
        let base = parent.strip_suffix("/glibc-hwcaps").map(|base| if base.is_empty() { "/" } else { base });
        if let Some(&base) = base.and_then(|base| directories.get(base)) {
            below[base as usize].push(directory);
        }
    }
    below
}

fn role(object: &Object, file_name: &str) -> Role {
    if object.debug_only
        || !matches!(object.identity.object_type, ObjectType::Executable | ObjectType::Shared)
    {
        Role::Inert
    } else if object.is_program() {
        Role::Program
    } else if !object.dynamic.present {
        Role::Inert
    } else if is_extension_module(object, file_name) {
        Role::Module
    } else {
        Role::Library
    }
}

/// Exports the function by which Python starts a module of that file name: `PyInit_NAME` (PEP 489; `PyInitU_` for
/// names beyond ASCII), `PyModExport_NAME` (PEP 793), `initNAME` before Python 3.
fn is_extension_module(object: &Object, file_name: &str) -> bool {
    let stem = file_name.split('.').next().unwrap_or(file_name);
    let exported = |name: String| !object.symbols.definitions(name.as_bytes()).is_empty();
    if !stem.is_ascii() {
        return object.symbols.exported().any(|s| object.symbols.name(s).starts_with(b"PyInitU_"));
    }
    ["PyInit_", "PyModExport_", "init"].iter().any(|prefix| exported(format!("{prefix}{stem}")))
}

/// `open_verify` and `_dl_map_object_from_fd` (glibc elf/dl-load.c). Programs that say so have not been loadable since
/// 2.30.
fn is_loadable(object: &Object) -> bool {
    const SYSTEM_V: u8 = 0;
    const GNU: u8 = 3;
    object.identity.object_type == ObjectType::Shared
        && matches!(object.identity.os_abi, SYSTEM_V | GNU)
        && object.dynamic.present
        && !object.dynamic.pie()
        && !object.debug_only
}

/// Names that musl serves itself (`load_library`), and its own file name, which it recognises after opening it.
fn is_musl(name: &str) -> bool {
    const RESERVED: [&str; 7] = ["c.", "pthread.", "rt.", "m.", "dl.", "util.", "xnet."];
    let reserved = |rest: &str| RESERVED.iter().any(|reserved| rest.starts_with(reserved));
    name.strip_prefix("lib").is_some_and(reserved) || expand::split_path(name).1.starts_with("ld-musl-")
}
