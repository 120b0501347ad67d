//! All inputs, laid out at their installed paths in one imagined `site-packages`.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use abiaudit_elf::{Name, Object, ObjectType};
use abiaudit_loader::binding;
use abiaudit_loader::search::{self, Library};
use abiaudit_policy::{Arch, Libc};
use abiaudit_scan::{Member, SITE_PACKAGES, Subject};
use abiaudit_wheel::PlatformTag;

/// What the process runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Platform {
    /// Architecture.
    pub arch: Arch,
    /// C library.
    pub libc: Libc,
}

/// A shared object that the process may load.
#[derive(Debug, Clone, Copy)]
pub struct SiteFile<'s> {
    /// Position of its subject.
    pub subject: usize,
    /// The member.
    pub member: &'s Member,
    /// What it says.
    pub object: &'s Object,
}

/// An ELF file that is not part of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Position of its subject.
    pub subject: usize,
    /// Its name there.
    pub member: String,
    /// Why.
    pub why: WhyLeftOut,
}

/// Why a file is not part of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyLeftOut {
    /// It is for another architecture, which it names if wheels have a tag for it.
    OtherArchitecture(Option<&'static str>),
    /// An earlier input has a file at the same installed path.
    PathTaken,
    /// Its installed path has `.`, `..` or empty components.
    OddPath,
}

/// The imagined `site-packages` with all inputs.
#[derive(Debug)]
pub struct Site<'s> {
    /// The inputs, in the order in which they were given; each is a distribution of its own.
    pub subjects: Vec<&'s Subject>,
    /// What the process runs on.
    pub platform: Platform,
    /// Shared objects, by subject and name.
    pub files: Vec<SiteFile<'s>>,
    /// What was passed over.
    pub left_out: Vec<LeftOut>,
    /// Position of a file by installed path.
    by_path: HashMap<&'s str, usize>,
    /// Other members below `site-packages` by their path there: position of subject and of member.
    members: BTreeMap<&'s str, (usize, usize)>,
}

impl Platform {
    /// What most ELF files are for, and what the platform tags say of the C library; where they do not say, what
    /// most files need. `None` if no file is for a Linux that wheels have a tag for.
    pub fn of<'s>(subjects: impl IntoIterator<Item = &'s Subject>) -> Option<Self> {
        let subjects: Vec<&Subject> = subjects.into_iter().collect();
        let mut arches = BTreeMap::<Arch, usize>::new();
        let (mut musl, mut glibc) = (0_usize, 0_usize);
        for subject in &subjects {
            for (_, object) in subject.objects() {
                if let Some(arch) = object.identity.arch().and_then(|arch| arch.parse().ok()) {
                    *arches.entry(arch).or_default() += 1;
                }
                let needed = object.dynamic.needed.iter().map(Name::to_text);
                for name in needed {
                    musl += usize::from(name.starts_with("libc.musl-") || name == "libc.so");
                    glibc += usize::from(name.starts_with("libc.so."));
                }
            }
        }
        let most = arches.into_iter().max_by_key(|&(arch, count)| (count, std::cmp::Reverse(arch)));
        let arch = most.map(|(arch, _)| arch)?;
        let tagged = |wanted: fn(&PlatformTag) -> bool| {
            let names = subjects.iter().filter_map(|subject| subject.file_name.as_ref());
            names.flat_map(|name| &name.platforms).any(wanted)
        };
        let is_musl = match (
            tagged(|tag| matches!(tag, PlatformTag::Manylinux { .. })),
            tagged(|tag| matches!(tag, PlatformTag::Musllinux { .. })),
        ) {
            (true, false) => false,
            (false, true) => true,
            _ => musl > glibc,
        };
        Some(Self { arch, libc: if is_musl { Libc::Musl } else { Libc::Glibc } })
    }

    pub(crate) fn loader(self) -> search::Libc {
        match self.libc {
            Libc::Glibc => search::Libc::Glibc,
            Libc::Musl => search::Libc::Musl,
        }
    }
}

impl<'s> Site<'s> {
    /// Lays out the inputs. Where two have the same path the earlier one is taken, as if it were installed last.
    pub fn new(subjects: impl IntoIterator<Item = &'s Subject>, platform: Platform) -> Self {
        let mut site = Self {
            subjects: subjects.into_iter().collect(),
            platform,
            files: Vec::new(),
            left_out: Vec::new(),
            by_path: HashMap::new(),
            members: BTreeMap::new(),
        };
        for (position, subject) in site.subjects.clone().into_iter().enumerate() {
            site.add(position, subject);
        }
        site
    }

    fn add(&mut self, subject: usize, contents: &'s Subject) {
        for (position, member) in contents.members.iter().enumerate() {
            // Of two members with one name the last is installed.
            if contents.members.get(position + 1).is_some_and(|next| next.name == member.name) {
                continue;
            }
            if let Some(path) = below_site_packages(&member.installed) {
                self.members.entry(path).or_insert((subject, position));
            }
            let Some(object) = member.object() else { continue };
            if object.identity.object_type != ObjectType::Shared || object.debug_only || object.is_program() {
                continue;
            }
            let taken = || self.by_path.contains_key(member.installed.as_str());
            let why = if object.identity.arch() != Some(self.platform.arch.tag()) {
                WhyLeftOut::OtherArchitecture(object.identity.arch())
            } else if !is_normal(&member.installed) {
                WhyLeftOut::OddPath
            } else if taken() {
                WhyLeftOut::PathTaken
            } else {
                self.by_path.insert(&member.installed, self.files.len());
                self.files.push(SiteFile { subject, member, object });
                continue;
            };
            self.left_out.push(LeftOut { subject, member: member.name.clone(), why });
        }
    }

    /// The file with this installed path.
    pub fn file_at(&self, installed: &str) -> Option<usize> {
        self.by_path.get(installed).copied()
    }

    /// The file with this path below `site-packages`.
    pub fn file_below(&self, path: &str) -> Option<usize> {
        self.file_at(&format!("{SITE_PACKAGES}/{path}"))
    }

    /// The subject and name of the member with this path below `site-packages`, ELF or not.
    pub(crate) fn member_below(&self, path: &str) -> Option<(usize, &'s str)> {
        let &(subject, member) = self.members.get(path)?;
        Some((subject, self.subjects.get(subject)?.members.get(member)?.name.as_str()))
    }

    /// Paths below `site-packages` that begin with `prefix`, sorted.
    pub(crate) fn paths_with<'p>(&'p self, prefix: &'p str) -> impl Iterator<Item = &'s str> + 'p {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        self.members
            .range::<str, _>(from)
            .map(|(path, _)| *path)
            .take_while(move |path| path.starts_with(prefix))
    }

    /// A name for the distribution that a subject is: `numpy 2.5.5`, or its path.
    pub fn distribution(&self, subject: usize) -> String {
        let Some(subject) = self.subjects.get(subject) else { return String::new() };
        subject
            .name_and_version()
            .map_or_else(|| subject.path.clone(), |(name, version)| format!("{name} {version}"))
    }
}

impl<'s> SiteFile<'s> {
    /// Where it is installed.
    pub fn path(&self) -> &'s str {
        &self.member.installed
    }

    /// Its path below `site-packages`, or its installed path.
    pub fn short_path(&self) -> &'s str {
        below_site_packages(self.path()).unwrap_or(self.path())
    }

    pub(crate) fn for_loader(&self) -> binding::File<'s> {
        let library = Library { path: self.path(), object: self.object };
        binding::File { library, group: u32::try_from(self.subject).unwrap_or(u32::MAX) }
    }
}

pub(crate) fn below_site_packages(installed: &str) -> Option<&str> {
    installed.strip_prefix(SITE_PACKAGES)?.strip_prefix('/')
}

fn is_normal(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")))
}
