//! The wheel asks for more static thread-local storage than glibc keeps free.
//!
//! ## What it does
//! Adds the thread-local blocks (`PT_TLS`, with their alignment) of all shared objects of the input that are marked
//! `DF_STATIC_TLS`. A warning if the sum is above 1664 bytes, what glibc has for all that is loaded after the start of a
//! process. Left out are allocators that replace `malloc` and that nothing in the input needs: these are for `LD_PRELOAD`,
//! and for what is there at the start the loader makes room. With musl nothing is said: it keeps no such room. In a
//! simulated process (`check` with `--with`, `--import` or `--trace`) the blocks of all distributions are added up.
//!
//! ## Why is this bad?
//! The import fails with `cannot allocate memory in static TLS block`. Other wheels draw on the same bytes, so that it
//! depends on what was imported before.
//!
//! ## Example
//! Libraries built with `-ftls-model=initial-exec`, such as jemalloc and some builds of libgomp.
//!
//! ## How to mend it
//! Build without `-ftls-model=initial-exec` (or with `-mtls-dialect=gnu2`), or make the variables fewer. Users can help
//! themselves with `GLIBC_TUNABLES=glibc.rtld.optional_static_tls=...` since glibc 2.32, or with `LD_PRELOAD`.
//!
//! ## References
//! glibc, elf/dl-tls.c (`_dl_tls_static_surplus_init`: 1664 with the default tunables, "the historic value") and
//! sysdeps/generic/ldsodefs.h of glibc before 2.32 (`TLS_STATIC_SURPLUS`, 64 + 16 * 100); the glibc manual on
//! `glibc.rtld.optional_static_tls`; opencv #14884, scikit-learn #17231, LightGBM #6509, xgboost #8488.

use std::collections::BTreeMap;

use abiaudit_detect::Replaces;
use abiaudit_policy::Libc;
use abiaudit_process::Collision;

use crate::audit::{Audit, AuditObject, Role};
use crate::finding::{Evidence, Sink};
use crate::runtimes;
use crate::together::Meeting;

super::rule!("ABI304", "static-tls", Warning, "abi304_static_tls.rs");

/// Bytes that glibc keeps for objects which are loaded later, in the version of 2009 as in those since 2.32.
const SURPLUS: u64 = 1664;
const HELP: &str = "build without -ftls-model=initial-exec, or with -mtls-dialect=gnu2";

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    alone(audit, sink);
    for meeting in audit.beside.meetings.iter().filter(|meeting| meeting.distributions() > 1) {
        across(meeting, sink);
    }
}

/// What all distributions of a simulated process ask for together.
fn across(meeting: &Meeting, sink: &mut Sink) {
    let Collision::StaticTls { bytes, objects } = &meeting.collision else { return };
    let message = format!(
        "{} of several distributions ask for {bytes} bytes of static thread-local storage together, {}; glibc keeps {SURPLUS}",
        super::count(objects.len(), "object"),
        meeting.when
    );
    let sizes: Vec<String> = objects.iter().map(|(_, size)| format!("{size} bytes")).collect();
    let about: Vec<_> =
        objects.iter().zip(&sizes).map(|((object, _), size)| (*object, size.as_str())).collect();
    sink.member(&meeting.member, message).help(HELP).evidence(meeting.evidence(&about));
}

fn alone(audit: &Audit<'_>, sink: &mut Sink) {
    // Objects of one soname are loaded once.
    let mut blocks: BTreeMap<String, (u64, &str)> = BTreeMap::new();
    for (object, entry) in runtimes::shared(audit) {
        if is_for_preload(audit, object, entry)
            || !entry.object.dynamic.static_tls()
            || runtimes::libc_of(audit, entry) != Libc::Glibc
        {
            continue;
        }
        let Some((size, align)) = entry.object.tls() else { continue };
        let size = size.checked_next_multiple_of(align.max(1)).unwrap_or(size);
        let key = if entry.object.dynamic.soname.is_some() {
            runtimes::loader_name(entry)
        } else {
            entry.member.name.clone()
        };
        let block = blocks.entry(key).or_insert((0, &entry.member.name));
        *block = (*block).max((size, &entry.member.name));
    }
    let sum = blocks.values().fold(0_u64, |sum, (size, _)| sum.saturating_add(*size));
    if sum <= SURPLUS {
        return;
    }
    let mut largest: Vec<(u64, &str)> = blocks.into_values().collect();
    largest.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let message = format!(
        "asks for {sum} bytes of static thread-local storage in {}; glibc keeps {SURPLUS} for all wheels together",
        super::count(largest.len(), "object")
    );
    let evidence = largest
        .iter()
        .take(5)
        .map(|(size, member)| Evidence::member(*member).with_note(format!("{size} bytes")));
    sink.whole(message).help(HELP).evidence(evidence);
}

/// An allocator for the whole process that nobody needs by name (jemalloc in ray).
fn is_for_preload(audit: &Audit<'_>, object: usize, entry: &AuditObject<'_>) -> bool {
    entry.role == Role::Library
        && entry.carries.allocators.iter().any(|allocator| allocator.replaces == Replaces::Malloc)
        && audit.resolution.users_of(object).next().is_none()
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::findings;

    const DT_FLAGS: i64 = 30;
    const DF_STATIC_TLS: u64 = 0x10;

    fn object(size: u64, flags: u64) -> ElfWriter {
        ElfWriter::new(Arch::X86_64).define("PyInit_m").tls(size, 16).dynamic(DT_FLAGS, flags)
    }

    fn messages(tags: &str, objects: &[ElfWriter]) -> Vec<String> {
        let wheel =
            objects.iter().enumerate().fold(TestWheel::new("p", "1", tags), |wheel, (number, object)| {
                wheel.elf(&format!("p/m{number}.so"), object)
            });
        findings("ABI304", &wheel).into_iter().map(|finding| finding.message).collect()
    }

    const GLIBC: &str = "cp312-cp312-manylinux_2_28_x86_64";

    #[test]
    fn the_sum_counts() {
        let found = messages(GLIBC, &[object(1000, DF_STATIC_TLS), object(700, DF_STATIC_TLS)]);
        // 1000 and 700 are rounded up to 1008 and 704.
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("asks for 1712 bytes"), "{found:?}");
    }

    #[test]
    fn silent_up_to_the_surplus_and_about_dynamic_storage_and_musl() {
        assert!(messages(GLIBC, &[object(1664, DF_STATIC_TLS), object(5000, 0)]).is_empty());
        assert!(messages("cp312-cp312-musllinux_1_2_x86_64", &[object(5000, DF_STATIC_TLS)]).is_empty());
        let same = || object(1000, DF_STATIC_TLS).soname("libone.so.1");
        assert!(messages(GLIBC, &[same(), same()]).is_empty(), "one soname is loaded once");
    }

    /// jemalloc in ray 2.60: `LD_PRELOAD` names it, so that it is there at the start.
    #[test]
    fn silent_about_an_allocator_that_nobody_needs() {
        let allocator = |name: &str| {
            let writer =
                ElfWriter::new(Arch::X86_64).soname(name).tls(2632, 16).dynamic(DT_FLAGS, DF_STATIC_TLS);
            ["malloc", "free", "calloc", "realloc"].iter().fold(writer, ElfWriter::define)
        };
        assert!(messages(GLIBC, &[allocator("libjemalloc.so.2")]).is_empty());
        let user =
            ElfWriter::new(Arch::X86_64).define("PyInit_m").needed("libjemalloc.so.2").rpath("$ORIGIN");
        let wheel = TestWheel::new("p", "1", GLIBC)
            .elf("p/m.so", &user)
            .elf("p/libjemalloc.so.2", &allocator("libjemalloc.so.2"));
        assert_eq!(findings("ABI304", &wheel).len(), 1, "an import loads it");
    }
}
