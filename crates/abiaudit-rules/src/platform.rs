//! Which system an input is for, and what it promises: its tags, and what its ELF files are.

use abiaudit_elf::Object;
use abiaudit_policy::{Arch, Libc, PolicySet, Target};
use abiaudit_scan::Subject;
use abiaudit_wheel::{PlatformTag, tags};

/// Architecture and C library that a verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Platform {
    /// Architecture.
    pub arch: Arch,
    /// C library.
    pub libc: Libc,
}

/// A platform tag that the input promises to work on.
#[derive(Debug, Clone)]
pub struct Claim {
    /// As written.
    pub tag: PlatformTag,
    /// What it promises; `Err` says why no target is known for it. `linux_*` promises nothing: `None`.
    pub target: Option<Result<Target, String>>,
    /// The file name or WHEEL says so, or the user asked for it.
    pub requested: bool,
}

impl Claim {
    /// The C library of the systems that are promised; `None` where no target is known.
    pub fn libc(&self) -> Option<Libc> {
        self.target.as_ref()?.as_ref().ok().map(Target::libc)
    }
}

/// The platform tags of an input: of the file name, else of WHEEL.
pub fn platform_tags(subject: &Subject) -> Vec<PlatformTag> {
    if let Some(name) = &subject.file_name {
        return name.platforms.clone();
    }
    let wheel = subject.dist_info.as_ref().and_then(|d| d.wheel.as_ref());
    let mut platforms: Vec<PlatformTag> =
        wheel.iter().flat_map(|w| w.tags.iter().map(|t| t.platform.clone())).collect();
    platforms.sort();
    platforms.dedup();
    platforms
}

/// The promises of an input: the oldest system of each C library among its tags, or what the user asks for.
pub fn claims(platforms: &[PlatformTag], requested: Option<&str>, policies: &PolicySet) -> Vec<Claim> {
    let (tags, requested) = match requested {
        Some(tag) => (vec![PlatformTag::parse(tag)], true),
        None => (tags::promise(platforms), false),
    };
    tags.into_iter()
        .map(|tag| {
            let target = match &tag {
                PlatformTag::Linux { .. } => None,
                other => Some(policies.target(&other.to_string()).map_err(|e| e.to_string())),
            };
            Claim { tag, target, requested }
        })
        .collect()
}

/// The C library that an object was linked against, where that can be told: by its loader or by what it needs.
/// `NEEDED libc.so` comes from musl cross toolchains; glibc's own is a linker script that nothing can need.
pub fn libc_of(object: &Object) -> Option<Libc> {
    let interpreter = object.interpreter.iter().map(abiaudit_elf::Name::to_text);
    let base = interpreter.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
    let needed = object.dynamic.needed.iter().map(abiaudit_elf::Name::to_text);
    let names: Vec<String> = base.chain(needed).collect();
    let musl =
        names.iter().any(|n| n.starts_with("ld-musl-") || n.starts_with("libc.musl-") || n == "libc.so");
    let glibc = names.iter().any(|n| {
        n == "libc.so.6" || n == "libc.so.6.1" || n.starts_with("ld-linux") || n.starts_with("ld64.so")
    });
    match (glibc, musl) {
        (true, false) => Some(Libc::Glibc),
        (false, true) => Some(Libc::Musl),
        _ => None,
    }
}

/// The platform to judge: what the request or the tags say; where they leave it open, what the ELF files are,
/// and glibc where these leave it open too (static files run on both).
pub fn platform(subject: &Subject, claims: &[Claim], platforms: &[PlatformTag]) -> Option<Platform> {
    let named = claims.iter().find(|c| c.requested).and_then(|c| arch_of(&c.tag));
    let mut tagged: Vec<Arch> = platforms.iter().filter_map(arch_of).collect();
    tagged.sort();
    tagged.dedup();
    let arch = match (named, tagged.as_slice()) {
        (Some(arch), _) => arch,
        (None, [arch]) => *arch,
        (None, tagged) => most_common_arch(subject, tagged)?,
    };
    Some(Platform { arch, libc: libc(subject, claims, arch) })
}

fn arch_of(tag: &PlatformTag) -> Option<Arch> {
    match tag {
        PlatformTag::Linux { arch }
        | PlatformTag::Manylinux { arch, .. }
        | PlatformTag::Musllinux { arch, .. } => arch.parse().ok(),
        _ => None,
    }
}

/// The architecture of most ELF files, of those that the tags name if they name any.
fn most_common_arch(subject: &Subject, tagged: &[Arch]) -> Option<Arch> {
    let mut counts = std::collections::BTreeMap::<Arch, usize>::new();
    for (_, object) in subject.objects() {
        if let Some(arch) = object.identity.arch().and_then(|a| a.parse().ok())
            && (tagged.is_empty() || tagged.contains(&arch))
        {
            *counts.entry(arch).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|&(arch, n)| (n, std::cmp::Reverse(arch))).map(|(arch, _)| arch)
}

fn libc(subject: &Subject, claims: &[Claim], arch: Arch) -> Libc {
    let mut claimed: Vec<Libc> = claims
        .iter()
        .filter_map(|c| match c.tag {
            PlatformTag::Manylinux { .. } => Some(Libc::Glibc),
            PlatformTag::Musllinux { .. } => Some(Libc::Musl),
            _ => None,
        })
        .collect();
    claimed.dedup();
    if let [libc] = claimed.as_slice() {
        return *libc;
    }
    let of_arch = subject.objects().filter(|(_, o)| o.identity.arch() == Some(arch.tag()));
    let seen: Vec<Libc> = of_arch.filter_map(|(_, o)| libc_of(o)).collect();
    if !seen.is_empty() && seen.iter().all(|l| *l == Libc::Musl) { Libc::Musl } else { Libc::Glibc }
}
