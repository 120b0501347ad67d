//! Simulates one process of wheels or directories and prints what collides in it, and how long each step took:
//! `judge [--import MODULE,..] INPUT..`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example that prints")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use abiaudit_loader::binding::ObjectId;
use abiaudit_process::{Followed, Follower, Plan, Platform, Releases, Site, SystemBase, collisions, run};
use abiaudit_scan::{Options, scan};

fn main() -> Result<(), Box<dyn Error>> {
    let mut imports = Vec::new();
    let mut inputs = Vec::<PathBuf>::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--import" => {
                imports.extend(args.next().ok_or("--import MODULE,..")?.split(',').map(str::to_owned));
            }
            input => inputs.push(input.into()),
        }
    }
    let mut clock = Clock::start();
    let mut subjects = Vec::new();
    for input in &inputs {
        subjects.extend(scan(input, &Options::default())?);
    }
    clock.tick("read");
    let site = Site::new(&subjects, Platform::of(&subjects).ok_or("no native code")?);
    let base = SystemBase::new(&site, Releases::default())?;
    clock.tick("site and base");
    let plan = if imports.is_empty() {
        Plan::everything(&site, &(0..subjects.len()).collect::<Vec<_>>())
    } else {
        let mut follower = Follower::new(&site);
        for name in &imports {
            if follower.import(name) == Followed::Absent {
                return Err(format!("no input has {name}").into());
            }
        }
        follower.finish()
    };
    clock.tick("plan");
    let process = run(&site, &base, &plan);
    clock.tick("bindings");
    let found = collisions(&site, &base, &plan, &process);
    clock.tick("collisions");
    println!(
        "{} objects, {} openings, {} bindings, {} collisions",
        process.loads.len(),
        plan.openings.len(),
        process.bindings.len() + process.system_bindings.len(),
        found.len()
    );
    for collision in found {
        let objects = collision.objects();
        let names = objects.iter().map(|object| match object {
            ObjectId::File(file) => site.files.get(*file as usize).map_or("?", |file| file.short_path()),
            ObjectId::System(library) => base.soname(*library as usize),
        });
        println!("{:?}: {} {collision:?}", collision.grade(), names.collect::<Vec<_>>().join(", "));
    }
    Ok(())
}

/// Wall time since the last tick, and time of this thread on a processor, which other programs do not lengthen.
struct Clock(Instant, f64);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), on_processor())
    }

    fn tick(&mut self, what: &str) {
        let (wall, processor) = (self.0.elapsed().as_secs_f64(), on_processor() - self.1);
        eprintln!("{wall:>9.3} s wall {processor:>9.3} s processor  {what}");
        *self = Self::start();
    }
}

/// Seconds that this thread has run; 0 where Linux does not tell.
fn on_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}
