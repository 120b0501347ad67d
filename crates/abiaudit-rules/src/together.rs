//! What simulated processes say of an input that is audited: with whom it does not go together, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_loader::binding::{ObjectId, Process};
use abiaudit_process::{Collision, OpenMpUse, Opened, Plan, Site, SystemBase, collisions, run};

use crate::baseline::Baseline;
use crate::finding::Evidence;

/// What an input is looked at beside.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Collisions in simulated processes that it takes part in.
    pub meetings: Vec<Meeting>,
    /// A wheel to compare it with.
    pub baseline: Option<Baseline>,
}

/// One process: what was opened in which order, and what came of it.
#[derive(Debug)]
pub struct Simulated {
    /// What is opened.
    pub plan: Plan,
    /// What is loaded, and who serves whom.
    pub process: Process,
    /// What does not go together.
    pub collisions: Vec<Collision>,
}

/// A collision that an input takes part in.
#[derive(Debug, Clone)]
pub struct Meeting {
    /// What collides.
    pub collision: Collision,
    /// Other objects that come to the same harm.
    pub more: Vec<Collision>,
    /// The member of the input that the finding is about.
    pub member: String,
    /// In which order it bites: `when a 1 is imported before b 2`.
    pub when: String,
    /// The object that is to blame is not this input's, but of this distribution.
    pub elsewhere: Option<String>,
    parties: BTreeMap<ObjectId, Party>,
}

/// An object in a collision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// Path below site-packages, or soname of a library of the system.
    pub path: String,
    /// Name and version of its distribution; `None` for a library of the system.
    pub distribution: Option<String>,
    /// It belongs to the input that is audited.
    pub own: bool,
}

impl Simulated {
    /// Plays a plan and looks for collisions.
    pub fn new(site: &Site<'_>, base: &SystemBase, plan: Plan) -> Self {
        let process = run(site, base, &plan);
        let collisions = collisions(site, base, &plan, &process);
        Self { plan, process, collisions }
    }
}

impl Meeting {
    /// How messages name an object: `p/m.so` of the input itself, `p/m.so of a 1`, `the system's libstdc++.so.6`.
    pub fn name(&self, object: ObjectId) -> String {
        match self.parties.get(&object) {
            None => String::new(),
            Some(Party { path, own: true, .. }) => path.clone(),
            Some(Party { path, distribution: Some(distribution), .. }) => format!("{path} of {distribution}"),
            Some(Party { path, distribution: None, .. }) => format!("the system's {path}"),
        }
    }

    /// An object of the collision.
    pub fn party(&self, object: ObjectId) -> Option<&Party> {
        self.parties.get(&object)
    }

    /// Distributions that have a part in it; those of the system count as one.
    pub fn distributions(&self) -> usize {
        let parties = self.collision.objects().into_iter().filter_map(|object| self.parties.get(&object));
        parties.map(|party| &party.distribution).collect::<BTreeSet<_>>().len()
    }

    /// What mends it, and where.
    pub fn help(&self, help: &str) -> String {
        match &self.elsewhere {
            Some(distribution) => format!("the mend is in {distribution}: {help}"),
            None => help.to_owned(),
        }
    }

    /// The order, and the objects of other distributions, each with what it does there.
    pub fn evidence(&self, about: &[(ObjectId, &str)]) -> Vec<Evidence> {
        let mut evidence = vec![Evidence::note(self.when.clone())];
        for (object, what) in about {
            let Some(party) = self.parties.get(object) else { continue };
            evidence.push(match &party.distribution {
                Some(distribution) => {
                    Evidence::member(&party.path).with_note(format!("{distribution}: {what}"))
                }
                None => {
                    Evidence::default().with_library(&party.path).with_note(format!("the system: {what}"))
                }
            });
        }
        evidence
    }
}

/// Collisions of the same process in all its orders, by the input (position in [`Site::subjects`]) that is to hear of
/// them, if it is one of `judged`.
pub fn meetings(
    site: &Site<'_>,
    base: &SystemBase,
    runs: &[Simulated],
    judged: &BTreeSet<usize>,
) -> BTreeMap<usize, Vec<Meeting>> {
    let mut groups = BTreeMap::<_, Vec<(usize, &Collision)>>::new();
    for (number, run) in runs.iter().enumerate() {
        for collision in &run.collisions {
            groups.entry(key(collision)).or_default().push((number, collision));
        }
    }
    let mut meetings = BTreeMap::<usize, Vec<Meeting>>::new();
    for group in groups.into_values() {
        let Some((subject, meeting)) = meeting(site, base, runs, judged, &group) else { continue };
        meetings.entry(subject).or_default().push(meeting);
    }
    meetings
}

/// What makes two collisions the same one, whatever the order and whoever suffers.
fn key(collision: &Collision) -> (u8, u8, BTreeSet<ObjectId>, String) {
    let (kind, variant, text) = match collision {
        Collision::Facets { .. } => (0, 0, ""),
        Collision::Once { .. } => (1, 0, ""),
        Collision::UnwinderInterposed { .. } => (2, 0, ""),
        Collision::PrivateUnwinder { .. } => (3, 0, ""),
        Collision::CxxAbis { .. } => (4, 0, ""),
        Collision::StateDuplicated { .. } => (5, 0, ""),
        Collision::OpenMp { used, first, .. } => {
            let variant = match used {
                OpenMpUse::Both => 0,
                OpenMpUse::TakenOver { .. } => 1,
                OpenMpUse::One => 2,
            };
            // Who takes over whom is another thing in the other order.
            (6, variant, if variant == 1 { first.name.as_str() } else { "" })
        }
        Collision::Blas { .. } => (7, 0, ""),
        Collision::StaticTls { .. } => (8, 0, ""),
        Collision::DuplicateRuntime { family, .. } => (9, 0, *family),
        Collision::PartialInGlobalScope { .. } => (10, 0, ""),
    };
    (kind, variant, culprits(collision).into_iter().collect(), text.to_owned())
}

/// Objects without which there would be no collision, those that bring a copy of something; without them, nobody would
/// suffer.
fn culprits(collision: &Collision) -> Vec<ObjectId> {
    match collision {
        Collision::Facets { ids, numbering, .. } => vec![*ids, *numbering],
        Collision::Once { proxy, variable, .. } => vec![*proxy, *variable],
        Collision::UnwinderInterposed { provider, .. } => vec![*provider],
        Collision::PrivateUnwinder { object, .. } => vec![*object],
        Collision::Blas { meant, provider, .. } => vec![*provider, *meant],
        other => other.objects(),
    }
}

/// Objects that messages name and that have no part in the harm.
fn users(collision: &Collision) -> Vec<ObjectId> {
    match collision {
        Collision::OpenMp { first, second, used } => {
            let taken = match used {
                OpenMpUse::TakenOver { user } => Some(*user),
                OpenMpUse::Both | OpenMpUse::One => None,
            };
            [first.user, second.user, taken].into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

fn meeting(
    site: &Site<'_>,
    base: &SystemBase,
    runs: &[Simulated],
    judged: &BTreeSet<usize>,
    group: &[(usize, &Collision)],
) -> Option<(usize, Meeting)> {
    let (number, collision) = *group.first()?;
    let run = runs.get(number)?;
    let opened = opened_files(collision, run);
    let (subject, file) = owner(site, judged, &culprits(collision))
        .or_else(|| owner(site, judged, &collision.objects()))
        .or_else(|| owner(site, judged, &opened))?;
    let of_others = culprits(collision).into_iter().filter_map(|object| subject_of(site, object));
    let of_others: Vec<usize> = of_others.collect();
    let elsewhere = of_others.first().filter(|_| !of_others.contains(&subject));
    let more = group.iter().filter(|(other, _)| *other == number).skip(1);
    let more: Vec<Collision> = more.map(|(_, collision)| (*collision).clone()).collect();
    let mut objects = collision.objects();
    objects.extend(more.iter().flat_map(Collision::objects));
    objects.extend(users(collision));
    let parties = objects.into_iter().map(|object| (object, party(site, base, subject, object)));
    let meeting = Meeting {
        collision: collision.clone(),
        more,
        member: site.files.get(file)?.member.name.clone(),
        when: when(site, runs, group),
        elsewhere: elsewhere.map(|subject| site.distribution(*subject)),
        parties: parties.collect(),
    };
    Some((subject, meeting))
}

/// The first judged input that has one of the objects, and that object.
fn owner(site: &Site<'_>, judged: &BTreeSet<usize>, objects: &[ObjectId]) -> Option<(usize, usize)> {
    let files = objects.iter().filter_map(|object| match object {
        ObjectId::File(file) => Some(*file as usize),
        ObjectId::System(_) => None,
    });
    let owned = files.filter_map(|file| Some((site.files.get(file)?.subject, file)));
    owned.filter(|(subject, _)| judged.contains(subject)).min()
}

fn subject_of(site: &Site<'_>, object: ObjectId) -> Option<usize> {
    match object {
        ObjectId::File(file) => site.files.get(file as usize).map(|file| file.subject),
        ObjectId::System(_) => None,
    }
}

/// Files whose opening brought in the objects of a collision, in order.
fn opened_files(collision: &Collision, run: &Simulated) -> Vec<ObjectId> {
    let openings = collision.openings(&run.process).into_iter();
    let opened = openings.filter_map(|opening| run.plan.openings.get(opening));
    let files = opened.filter_map(|opening| match opening.opened {
        Opened::File(file) => Some(file),
        Opened::Name(_) => opening.caller,
    });
    files.filter_map(|file| u32::try_from(file).ok()).map(ObjectId::File).collect()
}

fn party(site: &Site<'_>, base: &SystemBase, subject: usize, object: ObjectId) -> Party {
    match object {
        ObjectId::File(file) => {
            let Some(file) = site.files.get(file as usize) else {
                return Party { path: String::new(), distribution: None, own: false };
            };
            let own = file.subject == subject;
            let path = if own { file.member.name.as_str() } else { file.short_path() };
            Party { path: path.to_owned(), distribution: Some(site.distribution(file.subject)), own }
        }
        ObjectId::System(library) => {
            Party { path: base.soname(library as usize).to_owned(), distribution: None, own: false }
        }
    }
}

/// In which orders of distributions it bites, of those that were simulated.
fn when(site: &Site<'_>, runs: &[Simulated], group: &[(usize, &Collision)]) -> String {
    let mut orders = BTreeMap::<usize, Vec<String>>::new();
    for (number, collision) in group {
        let Some(run) = runs.get(*number) else { continue };
        let order = orders.entry(*number).or_default();
        for file in opened_files(collision, run) {
            let distribution = subject_of(site, file).map(|subject| site.distribution(subject));
            if let Some(distribution) = distribution.filter(|distribution| !order.contains(distribution)) {
                order.push(distribution);
            }
        }
    }
    let first = orders.values().next().cloned().unwrap_or_default();
    match first.as_slice() {
        [] => "in this process".to_owned(),
        [one] => format!("when {one} is imported"),
        all if runs.len() > 1 && orders.len() == runs.len() => {
            format!("in either order of {}", all.join(" and "))
        }
        [one, rest @ ..] => format!("when {one} is imported before {}", rest.join(", ")),
    }
}
