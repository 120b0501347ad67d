//! Turns wheels and directories into a process that [`abiaudit_loader::binding`] can simulate.
//!
//! ```text
//! Site        all inputs, laid out at their installed paths in one imagined site-packages
//! SystemBase  what is there before: CPython, the C library, GCC's runtimes, as tables and not as files
//! Plan        what is opened, in order: from imports that are followed, from a recorded trace, or everything
//! run         all three, given to the loader
//! collisions  which objects of the process do not go together
//! ```
//!
//! Nothing of the machine is looked at but the inputs, so the same inputs give the same process everywhere.

mod base;
pub mod collisions;
mod imports;
mod plan;
mod preloads;
mod site;
mod system_references;
pub mod trace;

use abiaudit_loader::binding::{Event, Process, Program, Scenario, SystemLibrary, Target};

pub use base::{Releases, SystemBase, SystemKind, UnknownPlatform};
pub use collisions::{Collision, Grade, OpenMpRuntime, OpenMpUse, collisions};
pub use imports::follow::{Followed, Follower};
pub use imports::scan::{Import, Statement, imports};
pub use plan::{Cause, Opened, Opening, Plan};
pub use preloads::{Preload, preloads};
pub use site::{LeftOut, Platform, Site, SiteFile, WhyLeftOut};

/// Simulates the process. Positions in the result are those of [`Site::files`] and [`SystemBase::libraries`].
pub fn run(site: &Site<'_>, base: &SystemBase, plan: &Plan) -> Process {
    run_preloaded(site, base, plan, &[])
}

/// Simulates a process that was started with these in `LD_PRELOAD`.
pub fn run_preloaded(site: &Site<'_>, base: &SystemBase, plan: &Plan, preload: &[Target<'_>]) -> Process {
    let files: Vec<_> = site.files.iter().map(SiteFile::for_loader).collect();
    let libraries: Vec<&dyn SystemLibrary> = base.libraries().collect();
    let events: Vec<Event<'_>> = plan.openings.iter().map(event).collect();
    Process::run(&Scenario {
        libc: site.platform.loader(),
        files: &files,
        system: &libraries,
        default_directories: &[],
        program: Program::Described(&[SystemBase::PROGRAM]),
        preload,
        events: &events,
    })
}

fn event(opening: &Opening) -> Event<'_> {
    let target = match &opening.opened {
        Opened::File(file) => Target::File(*file),
        Opened::Name(name) => Target::Name(name),
    };
    Event::Dlopen { target, global: opening.global, caller: opening.caller }
}
