//! OpenMP runtimes of two distributions meet in one process.
//!
//! ## What it does
//! Looks at a simulated process (`check` with `--with`, `--import` or `--trace`) and at the OpenMP runtimes that are loaded
//! into it, told apart by soname as the loader does. An error: libomp and libiomp5, each serving somebody. A warning: two
//! libgomp that both serve somebody, or a libomp that shows as texts alone beside libiomp5. An info: the system's libgomp
//! beside a vendored one, libgomp beside LLVM's or Intel's, and a runtime whose users are served by another one, so that
//! the order of imports decides whose it is. Two libraries of one soname are one runtime: nothing is said. What meets
//! within one wheel is the business of ABI301 and ABI302.
//!
//! ## Why is this bad?
//! libomp and libiomp5 are the same code: the second to start finds the first and ends the process with `OMP: Error #15`.
//! Two libgomp have a pool of threads each: parallel regions of the two use twice the processors, and a setting reaches
//! one of them.
//!
//! ## Example
//! torch opens its libgomp with `RTLD_GLOBAL`: modules of scikit-learn that are imported later call it instead of the
//! libgomp in scikit-learn's wheel, which is loaded all the same.
//!
//! ## How to mend it
//! Build with the OpenMP that the others use. Users can help themselves with the order of imports, or with
//! `threadpoolctl`.
//!
//! ## References
//! LLVM OpenMP, kmp_runtime.cpp (`__kmp_register_library_startup`); threadpoolctl, multiple_openmp.md; pytorch #98836.

use abiaudit_process::{Collision, Grade, OpenMpRuntime, OpenMpUse};

use crate::audit::Audit;
use crate::finding::{Severity, Sink};
use crate::together::Meeting;

super::rule!("ABI307", "openmp-runtimes-collide", Error, "abi307_openmp_runtimes_collide.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for meeting in &audit.beside.meetings {
        let Collision::OpenMp { first, second, used } = &meeting.collision else { continue };
        if meeting.distributions() < 2 {
            continue;
        }
        match *used {
            OpenMpUse::Both => both(meeting, first, second, sink),
            OpenMpUse::TakenOver { user } => taken_over(meeting, [first, second], user, sink),
            OpenMpUse::One => {}
        }
    }
}

fn both(meeting: &Meeting, first: &OpenMpRuntime, second: &OpenMpRuntime, sink: &mut Sink) {
    let of_system = |runtime: &OpenMpRuntime| {
        meeting.party(runtime.object).is_some_and(|party| party.distribution.is_none())
    };
    let same_family = first.family == second.family;
    let (severity, harm) = match meeting.collision.grade() {
        Grade::Broken => (Severity::Error, "the second to start ends the process (OMP: Error #15)"),
        Grade::Differs => (Severity::Warning, "the second to start can end the process (OMP: Error #15)"),
        _ if !same_family => (Severity::Info, "two pools of threads; no failure of this pair is known"),
        _ if of_system(first) || of_system(second) => {
            (Severity::Info, "two pools of threads, as long as the system's is not vendored too")
        }
        _ => (Severity::Warning, "two pools of threads that know nothing of each other"),
    };
    let message = format!(
        "{} ({}) and {} ({}) are both used: {harm}, {}",
        first.family.as_str(),
        meeting.name(first.object),
        second.family.as_str(),
        meeting.name(second.object),
        meeting.when
    );
    let about = [(first.object, "loaded first"), (second.object, "loaded later")];
    let users = [first.user, second.user].into_iter().flatten().map(|user| (user, "uses OpenMP"));
    let about: Vec<_> = about.into_iter().chain(users).collect();
    sink.member(&meeting.member, message)
        .severity(severity)
        .help("build with the OpenMP runtime that the others use")
        .evidence(meeting.evidence(&about));
}

/// One of two serves the users of the other.
fn taken_over(
    meeting: &Meeting,
    runtimes: [&OpenMpRuntime; 2],
    user: abiaudit_loader::binding::ObjectId,
    sink: &mut Sink,
) {
    let [Some(serving), Some(idle)] =
        [true, false].map(|serves| runtimes.into_iter().find(|runtime| runtime.user.is_some() == serves))
    else {
        return;
    };
    let message = format!(
        "{} is loaded and unused: {} serves {}, which needs it, {}",
        meeting.name(idle.object),
        meeting.name(serving.object),
        meeting.name(user),
        meeting.when
    );
    sink.member(&meeting.member, message)
        .severity(Severity::Info)
        .help("nothing is broken; the order of imports decides which OpenMP runtime is used")
        .evidence(meeting.evidence(&[
            (serving.object, "serves"),
            (idle.object, "is loaded and serves nobody"),
            (user, "was to be served by it"),
        ]));
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::finding::Severity;
    use crate::testing::{calling, findings_together, wheel_named};

    fn runtime(soname: &str) -> ElfWriter {
        let kmpc = (0..50).map(|n| format!("__kmpc_f{n}")).filter(|_| !soname.starts_with("libgomp"));
        let gomp = (0..50).map(|n| format!("GOMP_f{n}"));
        let named = ["__kmpc_fork_call", "GOMP_parallel"].map(str::to_owned);
        kmpc.chain(gomp).chain(named).fold(ElfWriter::new(Arch::X86_64).soname(soname), ElfWriter::define)
    }

    fn with(name: &str, soname: &str, call: &str) -> TestWheel {
        wheel_named(name, &calling(&[soname], &[call])).elf(&format!("{name}/{soname}"), &runtime(soname))
    }

    fn severities(wheels: &[TestWheel], global: bool) -> Vec<Severity> {
        findings_together("ABI307", wheels, global).into_iter().map(|(_, finding)| finding.severity).collect()
    }

    #[test]
    fn libomp_and_libiomp5() {
        let pair = [with("a", "libomp.so", "__kmpc_fork_call"), with("b", "libiomp5.so", "__kmpc_fork_call")];
        let found = findings_together("ABI307", &pair, false);
        let [(0, finding)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(
            finding.message,
            "libomp (a/libomp.so) and libiomp5 (b/libiomp5.so of b 1) are both used: the second to start ends the \
             process (OMP: Error #15), in either order of a 1 and b 1"
        );
        assert_eq!(severities(&pair, true), [Severity::Info, Severity::Info], "the first serves both");
    }

    #[test]
    fn libgomp_by_its_sonames() {
        let gomp = |name, soname| with(name, soname, "GOMP_parallel");
        let different = [gomp("a", "libgomp-1a2b3c4d.so.1"), gomp("b", "libgomp-e985bcbb.so.1")];
        assert_eq!(severities(&different, false), [Severity::Warning]);
        let same = [gomp("a", "libgomp-e985bcbb.so.1"), gomp("b", "libgomp-e985bcbb.so.1")];
        assert!(severities(&same, false).is_empty());
        let system = wheel_named("a", &calling(&["libgomp.so.1"], &["GOMP_parallel"]));
        assert_eq!(severities(&[system, gomp("b", "libgomp-e985bcbb.so.1")], false), [Severity::Info]);
        let intel = with("b", "libiomp5.so", "__kmpc_fork_call");
        assert_eq!(severities(&[gomp("a", "libgomp-e985bcbb.so.1"), intel], false), [Severity::Info]);
    }

    /// What torch does to scikit-learn.
    #[test]
    fn who_comes_first_serves_the_users_of_the_other() {
        let pair = [with("a", "libgomp-1.so", "GOMP_parallel"), with("b", "libgomp-2.so", "GOMP_parallel")];
        let found = findings_together("ABI307", &pair, true);
        let messages: Vec<&str> = found.iter().map(|(_, finding)| finding.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "a/libgomp-1.so is loaded and unused: b/libgomp-2.so of b 1 serves a/m.so, which needs it, when b 1 is \
                 imported before a 1",
                "b/libgomp-2.so of b 1 is loaded and unused: a/libgomp-1.so serves b/m.so of b 1, which needs it, when \
                 a 1 is imported before b 1",
            ]
        );
    }
}
