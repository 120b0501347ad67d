//! A declared distribution has a needed library, but no search path leads to it.
//!
//! ## What it does
//! For each library that a required distribution brings into a known directory, looks whether a search path that counts
//! for the object that needs it (its own, and the inherited `DT_RPATH`s) leads there once both are installed.
//!
//! ## Why is this bad?
//! Only whoever imports the other package first, or a preload by hand (`ctypes.CDLL(..., RTLD_GLOBAL)`), makes it work:
//! otherwise `ImportError: libcudart.so.12: cannot open shared object file`. Many packages do that on purpose, so this is
//! information.
//!
//! ## Example
//! An extension of torch needs `libc10.so` and relies on `import torch` before.
//!
//! ## How to mend it
//! Add the way to the search path (`$ORIGIN/../torch/lib`), or import the provider in the package's `__init__.py`.
//!
//! ## References
//! ld.so(8); PyTorch's `_preload_cuda_deps`.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_loader::search::{Need, Outcome};
use abiaudit_policy::{Provider, Scheme};

use crate::audit::Audit;
use crate::external::Origin;
use crate::finding::{Evidence, Sink};
use crate::origin;

super::rule!("ABI409", "provider-not-reachable", Info, "abi409_provider_not_reachable.rs");

/// Distribution and directory.
type Place<'a> = (&'a str, &'a str);

#[derive(Default)]
struct Unreached<'a> {
    sonames: BTreeSet<&'a str>,
    objects: BTreeSet<usize>,
    /// What would lead there from the objects.
    entries: BTreeSet<String>,
}

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let providers: BTreeMap<&str, &Provider> = audit
        .externals
        .iter()
        .filter_map(|external| match &external.origin {
            Origin::Provider { provider, .. } => Some((external.soname.as_str(), provider)),
            _ => None,
        })
        .collect();
    let mut unreached: BTreeMap<Place<'_>, Unreached<'_>> = BTreeMap::new();
    for need in &audit.resolution.needs {
        let counts = audit.objects.get(need.from).is_some_and(|o| o.counts);
        let (true, Outcome::External, Some(provider)) =
            (counts, &need.outcome, providers.get(need.name.as_str()))
        else {
            continue;
        };
        // Some sonames are the same over several distributions, one for each CUDA; any of them will do.
        let directories: Vec<String> =
            audit.settings.providers.lookup(&need.name).into_iter().filter_map(directory).collect();
        if let (Some(distribution), Some(place)) = (&provider.distribution, &provider.lib_dir)
            && !directories.iter().any(|directory| reaches(audit, need, directory))
        {
            let unreached = unreached.entry((distribution, place)).or_default();
            unreached.sonames.insert(&need.name);
            unreached.objects.insert(need.from);
            unreached.entries.extend(directory(provider).and_then(|to| entry(audit, need.from, &to)));
        }
    }
    for ((distribution, place), Unreached { sonames, objects, entries }) in unreached {
        let sonames: Vec<&str> = sonames.into_iter().collect();
        let message = format!(
            "no search path leads to {place}, where {distribution} has {}: it must be loaded first",
            sonames.join(", ")
        );
        sink.whole(message)
            .help(format!("add {} to the search path, or import the provider first", list(&entries)))
            .evidence(objects.iter().map(|&o| Evidence::member(audit.member_name(o)).with_note("needs it")));
    }
}

/// Several directories of a wheel have a way each.
fn list(entries: &BTreeSet<String>) -> String {
    let some: Vec<&str> = entries.iter().take(2).map(String::as_str).collect();
    let more = if entries.len() > some.len() { " or the like" } else { "" };
    format!("{}{more}", some.join(" or "))
}

fn entry(audit: &Audit<'_>, from: usize, directory: &str) -> Option<String> {
    Some(origin::entry(&audit.objects.get(from)?.member.installed, directory))
}

/// Where the provider's libraries are once installed.
fn directory(provider: &Provider) -> Option<String> {
    let place = provider.lib_dir.as_deref()?.trim_matches('/');
    let base = match provider.scheme {
        Scheme::Platlib => abiaudit_scan::SITE_PACKAGES,
        Scheme::Data => abiaudit_scan::SITE_PACKAGES.rsplitn(4, '/').last()?,
    };
    Some(format!("{base}/{place}"))
}

fn reaches(audit: &Audit<'_>, need: &Need, directory: &str) -> bool {
    use abiaudit_loader::search::PathTag;
    let leads = |object: usize, inherited: bool| {
        audit.resolution.search_paths(object).iter().any(|entry| {
            let counts = !inherited || entry.tag == PathTag::Rpath;
            counts && entry.effective && entry.candidates.iter().any(|c| c == directory)
        })
    };
    leads(need.from, false) || need.chain.iter().any(|&o| o != need.from && leads(o, true))
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    fn wheel(elf: &ElfWriter) -> TestWheel {
        TestWheel::new("p", "1", TAGS).requires("torch").elf("p/m.so", &elf.clone().needed("libc10.so"))
    }

    fn found(elf: &ElfWriter) -> usize {
        findings("ABI409", &wheel(elf)).len()
    }

    #[test]
    fn the_way_is_told() {
        let found = findings("ABI409", &wheel(&module()));
        let help = found[0].help.as_deref().unwrap();
        assert!(help.starts_with("add $ORIGIN/../torch/lib to the search path"), "{help}");
    }

    #[test]
    fn only_a_path_to_the_providers_directory_will_do() {
        assert_eq!(found(&module()), 1);
        assert_eq!(found(&module().runpath("$ORIGIN")), 1);
        assert_eq!(found(&module().runpath("$ORIGIN/../torch/lib")), 0);
        assert_eq!(found(&module().rpath("$ORIGIN/../torch/./lib/")), 0);
    }

    #[test]
    fn rpath_of_who_loads_it_counts() {
        let library = ElfWriter::new(Arch::X86_64).soname("libown.so").needed("libc10.so");
        let wheel = |elf: ElfWriter| {
            let elf = elf.needed("libown.so");
            TestWheel::new("p", "1", TAGS).requires("torch").elf("p/m.so", &elf).elf("p/libown.so", &library)
        };
        assert!(findings("ABI409", &wheel(module().rpath("$ORIGIN:$ORIGIN/../torch/lib"))).is_empty());
        assert_eq!(findings("ABI409", &wheel(module().runpath("$ORIGIN:$ORIGIN/../torch/lib"))).len(), 1);
    }
}
