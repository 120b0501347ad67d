//! What goes wrong between the objects of one simulated process.
//!
//! Each predicate looks at bindings: at who serves whom, not at who carries what. Two copies of a runtime in one
//! process do no harm as long as each serves itself; harm begins where state that belongs together is served by two, and
//! that shows in the bindings. The predicates are those that the crash matrix of small modules (static, hidden,
//! half-hidden and renamed copies of libstdc++, in every order and mode) was found to obey.
//!
//! ```text
//! facets     facet ids numbered by two counters                        streams, locales: broken
//! once       call_once writes one copy's variable, reads another's     call of address 0: broken
//! unwinder   libgcc_s served by another unwinder                       any exception: broken
//!            a private unwinder where C++ calls cross                  broken if an exception crosses
//! abis       exceptions of GNU's runtime served by LLVM's, or reverse  broken
//! identity   std::cout, error categories twice                         duplicated
//! openmp     two OpenMP runtimes, by soname                            broken, slow, or one serves the other's users
//! blas       plain BLAS names served by another library                wrong if the two differ
//! tls        more static thread-local storage than glibc keeps         an import fails
//! copies     two libgfortran or libquadmath                            duplicated
//!            parts of a newer libstdc++ in the global scope            wrong if releases differ
//! ```

mod abis;
mod blas;
mod bound;
mod copies;
mod facets;
mod identity;
mod once;
mod openmp;
mod tls;
mod unwinder;

use abiaudit_loader::binding::{ObjectId, Process};

use crate::base::SystemBase;
use crate::plan::Plan;
use crate::site::Site;

use bound::Bound;
pub use openmp::{OpenMpRuntime, OpenMpUse};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// State exists more than once, and each copy serves its own.
    Duplicated,
    /// Results are right; more threads than processors, or memory.
    Performance,
    /// Misbehaves if the two that are mixed differ: in release, integer width or build.
    Differs,
    /// Misbehaves if an exception (or a stream) crosses from one object to the other.
    Crosses,
    /// Misbehaves.
    Broken,
}

/// Two objects of a process that do not go together. Objects are named by their position in [`Site::files`] or
/// [`SystemBase::libraries`]; symbols are mangled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collision {
    /// `std::locale` facets: an object uses ids of which some are numbered by one copy of libstdc++ and some by another.
    /// Two facets get one number, and streams find the wrong one in their slot, or none.
    Facets {
        /// Whose facets are mixed up: the copy that came second.
        victim: ObjectId,
        /// The copy whose ids serve the victim: `STB_GNU_UNIQUE` ones are one for the process.
        ids: ObjectId,
        /// The copy that numbers the victim's other ids.
        numbering: ObjectId,
        /// An id that `ids` serves.
        shared: String,
        /// An id that is numbered by `numbering`.
        own: String,
    },
    /// `std::call_once` of `user` stores the function in one copy's `std::__once_call`, and the `__once_proxy` that runs it
    /// reads another copy's, which nobody has set.
    Once {
        /// Who calls `std::call_once` (or `std::async`, which uses it).
        user: ObjectId,
        /// Whose `__once_proxy` runs, or whose copy of the inline function that it calls.
        proxy: ObjectId,
        /// Whose variable is set.
        variable: ObjectId,
    },
    /// `libgcc_s` uses functions of another unwinder, whose contexts have another layout.
    UnwinderInterposed {
        /// The libgcc_s.
        unwinder: ObjectId,
        /// Who serves it.
        provider: ObjectId,
        /// What, sorted.
        symbols: Vec<String>,
    },
    /// An object with an unwinder of its own, and C++ calls between it and another object.
    PrivateUnwinder {
        /// The object.
        object: ObjectId,
        /// An object that it calls or that calls it.
        other: ObjectId,
        /// By what function.
        symbol: String,
    },
    /// GNU's and LLVM's C++ runtime serve one object.
    CxxAbis {
        /// An object that uses the one.
        user: ObjectId,
        /// A provider that is the other.
        provider: ObjectId,
        /// What it serves, sorted.
        symbols: Vec<String>,
        /// The user is built for GNU's runtime. LLVM's does not know the type information of GNU's
        /// `ios_base::failure`, so that even the user's own exceptions break. GNU's serves what is built for LLVM's well
        /// enough, until an exception crosses.
        user_is_gnu: bool,
    },
    /// What there should be one of is there more than once.
    StateDuplicated {
        /// Its name: `std::cout`, `std::generic_category()`.
        symbol: String,
        /// Who serves it to someone, in the order of loading.
        providers: Vec<ObjectId>,
    },
    /// Two OpenMP runtimes.
    OpenMp {
        /// Loaded first.
        first: OpenMpRuntime,
        /// Loaded later.
        second: OpenMpRuntime,
        /// Who uses them.
        used: OpenMpUse,
    },
    /// A BLAS function that an object exports under its plain name is served by another object.
    Blas {
        /// Who calls.
        user: ObjectId,
        /// Who was meant: the user itself, or what it needs.
        meant: ObjectId,
        /// Who serves.
        provider: ObjectId,
        /// What, sorted.
        symbols: Vec<String>,
    },
    /// More static thread-local storage than glibc keeps for what is loaded later.
    StaticTls {
        /// Sum of blocks, in bytes.
        bytes: u64,
        /// Objects with their blocks, in the order of loading.
        objects: Vec<(ObjectId, u64)>,
    },
    /// A runtime library is loaded more than once, under different names.
    DuplicateRuntime {
        /// `libgfortran`, `libquadmath`.
        family: &'static str,
        /// Its copies, in the order of loading.
        objects: Vec<ObjectId>,
    },
    /// Parts of a newer libstdc++ that an object exports serve the whole process.
    PartialInGlobalScope {
        /// The object.
        object: ObjectId,
        /// What it exports, sorted.
        symbols: Vec<String>,
    },
}

impl Collision {
    /// How bad it is.
    pub fn grade(&self) -> Grade {
        match self {
            Self::Facets { .. }
            | Self::Once { .. }
            | Self::UnwinderInterposed { .. }
            | Self::CxxAbis { user_is_gnu: true, .. }
            | Self::StaticTls { .. } => Grade::Broken,
            Self::PrivateUnwinder { .. } | Self::CxxAbis { user_is_gnu: false, .. } => Grade::Crosses,
            Self::Blas { .. } | Self::PartialInGlobalScope { .. } => Grade::Differs,
            Self::OpenMp { first, second, used } => openmp::grade(first, second, *used),
            Self::StateDuplicated { .. } | Self::DuplicateRuntime { .. } => Grade::Duplicated,
        }
    }

    /// The objects that do not go together, those with a copy of something first.
    pub fn objects(&self) -> Vec<ObjectId> {
        let mut objects = match self {
            Self::Facets { victim, ids, numbering, .. } => vec![*ids, *numbering, *victim],
            Self::Once { user, proxy, variable } => vec![*proxy, *variable, *user],
            Self::UnwinderInterposed { unwinder, provider, .. } => vec![*provider, *unwinder],
            Self::PrivateUnwinder { object, other, .. } => vec![*object, *other],
            Self::CxxAbis { user, provider, .. } => vec![*provider, *user],
            Self::StateDuplicated { providers, .. } => providers.clone(),
            Self::OpenMp { first, second, .. } => vec![first.object, second.object],
            Self::Blas { user, meant, provider, .. } => vec![*provider, *meant, *user],
            Self::StaticTls { objects, .. } => objects.iter().map(|(object, _)| *object).collect(),
            Self::DuplicateRuntime { objects, .. } => objects.clone(),
            Self::PartialInGlobalScope { object, .. } => vec![*object],
        };
        let mut seen = std::collections::BTreeSet::new();
        objects.retain(|object| seen.insert(*object));
        objects
    }

    /// The openings (positions in [`Plan::openings`]) that brought the objects in, in order: it bites when these are
    /// opened in this order.
    pub fn openings(&self, process: &Process) -> Vec<usize> {
        let objects = self.objects();
        let loads = process.loads.iter().filter(|load| objects.contains(&load.object));
        let openings: std::collections::BTreeSet<usize> = loads.filter_map(|load| load.event).collect();
        openings.into_iter().collect()
    }
}

/// All collisions of a process, the worst first. `process` is what [`run`](crate::run) made of the others.
pub fn collisions(site: &Site<'_>, base: &SystemBase, plan: &Plan, process: &Process) -> Vec<Collision> {
    let bound = Bound::new(site, base, plan, process);
    let mut found = facets::find(&bound);
    found.extend(once::find(&bound));
    found.extend(unwinder::find(&bound));
    found.extend(abis::find(&bound));
    found.extend(identity::find(&bound));
    found.extend(openmp::find(&bound));
    found.extend(blas::find(&bound));
    found.extend(tls::find(&bound));
    found.extend(copies::find(&bound));
    found.sort();
    found.dedup();
    found.sort_by_key(|collision| std::cmp::Reverse(collision.grade()));
    found
}
