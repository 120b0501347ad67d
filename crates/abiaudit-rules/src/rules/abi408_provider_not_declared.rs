//! Another distribution has a needed library, and the wheel does not require it.
//!
//! ## What it does
//! For a library that is NEEDED, not in the wheel and not promised by the tag, looks for distributions known to carry
//! it (`policies/providers.toml` and the configuration) and for their names in `Requires-Dist`, markers evaluated.
//! Where several distributions carry one soname for different CUDA releases, the other libraries of the wheel say which
//! release it is.
//!
//! ## Why is this bad?
//! `ImportError: libcudart.so.12: cannot open shared object file` in a fresh environment: it worked for whoever had the
//! other distribution installed.
//!
//! ## Example
//! An extension of torch needs `libc10.so` and its metadata says `dependencies = []`.
//!
//! ## How to mend it
//! Require the distribution, in the versions whose library has this soname; or copy the library into the wheel. If users
//! install it by another way, name it under `assume-installed` in the configuration.
//!
//! ## References
//! sgl-project/sglang #30562; auditwheel #368.

use abiaudit_policy::Provider;
use abiaudit_wheel::normalize_name;

use crate::audit::Audit;
use crate::blockers::LibraryReason;
use crate::external::Origin;
use crate::finding::{Evidence, Sink};

super::rule!("ABI408", "provider-not-declared", Error, "abi408_provider_not_declared.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    let Some(verdict) = &audit.verdict else { return };
    let cuda = cuda_release(audit);
    for claim in &verdict.claims {
        let blocked = claim.blockers.libraries.iter().filter(|b| b.reason == LibraryReason::NotPromised);
        for blocker in blocked {
            let soname = &blocker.soname;
            let origin = audit.external(soname).map(|e| &e.origin);
            let Some(Origin::Undeclared(providers)) = origin else { continue };
            let providers = of_cuda_release(providers, cuda.as_ref());
            let mut names: Vec<&str> = providers.iter().filter_map(|p| p.distribution.as_deref()).collect();
            names.sort_unstable();
            names.dedup();
            let user = |&object: &usize| Evidence::member(audit.member_name(object)).with_note("needs it");
            let conditional = names.iter().find(|name| is_named(audit, name));
            let message = if let Some(name) = conditional {
                format!(
                    "{soname} comes with {name}, which Requires-Dist declares only for some environments or an extra"
                )
            } else if names == [audit.distribution().as_str()] {
                format!("{soname} should be in this very distribution, and is not")
            } else {
                format!("{soname} comes with {}, which Requires-Dist does not declare", names.join(" or "))
            };
            sink.whole(message)
                .help(help(&names, &providers))
                .evidence(blocker.needed_by.iter().map(user))
                .evidence(cuda.iter().filter(|_| providers.iter().any(|p| major(p).is_some())).map(|cuda| {
                    Evidence::note(format!("{} says that it is built for CUDA {}", cuda.soname, cuda.major))
                }));
        }
    }
}

fn help(names: &[&str], providers: &[&Provider]) -> String {
    let mut through: Vec<&str> = providers.iter().flat_map(|p| &p.through).map(String::as_str).collect();
    through.retain(|name| !name.contains('['));
    through.sort_unstable();
    through.dedup();
    let through = match through.as_slice() {
        [] => String::new(),
        [one] => format!(" (or {one}, which brings it)"),
        several => format!(" (or one of {}, which bring it)", several.join(", ")),
    };
    format!(
        "add Requires-Dist: {}{through}, or copy the library into the wheel; if users install it by another way, name it \
         under assume-installed in the configuration",
        names.join(" or ")
    )
}

/// The CUDA release that a wheel is built for.
struct CudaRelease<'a> {
    major: u32,
    /// The library that says so.
    soname: &'a str,
}

/// Told by a library whose soname has one release only (`libcudart.so.12`); `None` if there is none, or they disagree.
fn cuda_release<'a>(audit: &'a Audit<'_>) -> Option<CudaRelease<'a>> {
    let release = |soname: &'a str| {
        let mut majors = audit.settings.providers.lookup(soname).into_iter().map(major);
        let first = majors.next()??;
        majors.all(|other| other == Some(first)).then_some(CudaRelease { major: first, soname })
    };
    let mut found = audit.externals.iter().filter_map(|external| release(&external.soname));
    let first = found.next()?;
    found.all(|other| other.major == first.major).then_some(first)
}

/// NVIDIA names its distributions `...-cu11` and `...-cu12`; those for CUDA 13 without a suffix share `nvidia/cu13`.
fn major(provider: &Provider) -> Option<u32> {
    let suffix = provider.distribution.as_deref().and_then(|name| name.rsplit_once("-cu")).map(|(_, n)| n);
    let directory =
        provider.lib_dir.iter().flat_map(|d| d.split('/')).find_map(|part| part.strip_prefix("cu"));
    [suffix, directory].into_iter().flatten().find_map(|number| number.parse().ok())
}

/// Those for the release; all if none is.
fn of_cuda_release<'p>(providers: &'p [Provider], release: Option<&CudaRelease<'_>>) -> Vec<&'p Provider> {
    let fits = |provider: &&Provider| release.is_some_and(|r| major(provider) == Some(r.major));
    let fitting: Vec<&Provider> = providers.iter().filter(fits).collect();
    if fitting.is_empty() { providers.iter().collect() } else { fitting }
}

/// Some Requires-Dist names the distribution, whatever its marker.
fn is_named(audit: &Audit<'_>, distribution: &str) -> bool {
    let metadata = audit.subject.dist_info.as_ref().and_then(|d| d.metadata.as_ref());
    let names = metadata.iter().flat_map(|m| &m.requires_dist).filter_map(|r| r.name.as_deref());
    names.map(normalize_name).any(|name| name == distribution)
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{ElfWriter, TestWheel};

    use crate::testing::{TAGS, findings, module};

    fn wheel() -> TestWheel {
        TestWheel::new("p", "1", TAGS).elf("p/m.so", &module().needed("libc10.so"))
    }

    #[test]
    fn a_known_library_whose_distribution_is_not_required() {
        let found = findings("ABI", &wheel());
        let rules: Vec<&str> =
            found.iter().map(|f| f.rule.id).filter(|id| ["ABI103", "ABI408"].contains(id)).collect();
        assert_eq!(rules, ["ABI408"], "told once");
        let found = findings("ABI408", &wheel());
        assert_eq!(found[0].message, "libc10.so comes with torch, which Requires-Dist does not declare");
    }

    /// libcudnn.so.9 has the same name for every CUDA.
    #[test]
    fn the_cuda_release_is_taken_from_the_other_libraries() {
        let of = |libraries: &[&str]| {
            let elf = libraries.iter().fold(module(), ElfWriter::needed);
            let found = findings("ABI408", &TestWheel::new("p", "1", TAGS).elf("p/m.so", &elf));
            found.into_iter().find(|f| f.message.starts_with("libcudnn.so.9 ")).unwrap()
        };
        let unknown = of(&["libcudnn.so.9"]);
        assert!(unknown.message.contains("nvidia-cudnn-cu12 or nvidia-cudnn-cu13"), "{}", unknown.message);
        for major in [12, 13] {
            let found = of(&["libcudnn.so.9", &format!("libcudart.so.{major}")]);
            let expected = format!(
                "libcudnn.so.9 comes with nvidia-cudnn-cu{major}, which Requires-Dist does not declare"
            );
            assert_eq!(found.message, expected);
            let help = found.help.unwrap();
            let expected =
                format!("add Requires-Dist: nvidia-cudnn-cu{major} (or torch, which brings it), or copy");
            assert!(help.starts_with(&expected), "{help}");
        }
        let both = of(&["libcudnn.so.9", "libcudart.so.12", "libcublas.so.13"]);
        assert!(both.message.contains(" or "), "{}", both.message);
    }

    #[test]
    fn silent_if_it_is_required_on_this_platform() {
        assert!(findings("ABI408", &wheel().requires("torch>=2; sys_platform == 'linux'")).is_empty());
        assert_eq!(findings("ABI408", &wheel().requires("torch>=2; sys_platform == 'win32'")).len(), 1);
    }

    /// The marker must hold under every Python that the tags let in.
    #[test]
    fn a_requirement_of_some_pythons_only() {
        let of = |tags: &str, file: &str| {
            let wheel = TestWheel::new("p", "1", &format!("{tags}-manylinux_2_17_x86_64"));
            let wheel = wheel.elf(file, &module().needed("libc10.so"));
            findings("ABI408", &wheel.requires("torch; python_version < '3.10'"))
        };
        assert!(of("cp39-cp39", "p/m.so").is_empty());
        for (tags, file) in
            [("cp39-abi3", "p/m.abi3.so"), ("cp39.cp310-cp39.cp310", "p/m.so"), ("py3-none", "p/m.so")]
        {
            let found = of(tags, file);
            assert_eq!(found.len(), 1, "{tags}");
            assert!(
                found[0].message.ends_with("only for some environments or an extra"),
                "{}",
                found[0].message
            );
        }
        let torch = |marker: &str| format!("torch; python_version {marker} '3.10'");
        let both = TestWheel::new("p", "1", "cp39-abi3-manylinux_2_17_x86_64")
            .elf("p/m.abi3.so", &module().needed("libc10.so"))
            .requires(&torch("<"))
            .requires(&torch(">="));
        assert!(findings("ABI408", &both).is_empty(), "one of them always holds");
    }
}
