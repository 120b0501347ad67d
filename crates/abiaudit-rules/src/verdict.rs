//! The verdict: the oldest tag that the content honours, and what stands in the way of older ones.

use abiaudit_policy::{Libc, Target};
use abiaudit_wheel::PlatformTag;

use crate::audit::Audit;
use crate::blockers::{Blockers, Demands};
use crate::platform::Claim;

/// The verdict on one input.
#[derive(Debug)]
pub struct Verdict {
    /// The oldest tag that the content honours by itself: `manylinux_2_17_x86_64`, or `linux_x86_64` if none.
    pub tag: String,
    /// The same, with libraries accepted that declared requirements, drivers or earlier imports bring.
    pub tag_with_providers: String,
    /// The best tag by each criterion alone.
    pub by: ByCriterion,
    /// Every claim holds, providers accepted.
    pub claim_ok: bool,
    /// What breaks each claim, in the order of the claims; empty blockers where the claim holds. Judged with
    /// providers accepted.
    pub claims: Vec<ClaimVerdict>,
    /// For each target better than `tag`, nearest first: what stands in the way.
    pub ladder: Vec<Step>,
}

/// The best tag by each criterion alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByCriterion {
    /// Symbol versions.
    pub symbols: String,
    /// Libraries outside of the input.
    pub libraries: String,
    /// Symbols that policies forbid.
    pub forbidden: String,
    /// Processor level.
    pub isa: String,
    /// Python's own restrictions.
    pub python: String,
}

/// One claim, judged.
#[derive(Debug)]
pub struct ClaimVerdict {
    /// The tag as written.
    pub tag: String,
    /// The claim holds.
    pub holds: bool,
    /// What breaks it; empty for a tag that promises nothing or is not known.
    pub blockers: Blockers,
}

/// One rung of the ladder.
#[derive(Debug)]
pub struct Step {
    /// The target.
    pub target: Target,
    /// What stands in the way, providers not accepted.
    pub blockers: Blockers,
}

/// Judges the objects that count. `None` if there are none, or no policy covers the platform.
pub(crate) fn judge(audit: &Audit<'_>) -> Option<Verdict> {
    let platform = audit.platform?;
    audit.counted().next()?;
    let ladder = provable(audit, audit.settings.policies.ladder(platform.libc, platform.arch));
    let demands = Demands::gather(audit, ladder.iter().chain(audit.claims.iter().filter_map(target)));
    let judged: Vec<(&Target, Blockers)> =
        ladder.iter().map(|target| (target, demands.against(audit, target, false))).collect();
    let linux = format!("linux_{}", platform.arch.tag());
    let oldest = |passes: &dyn Fn(&Blockers) -> bool| {
        let listed = judged.iter().find(|(_, blockers)| passes(blockers)).map(|(target, _)| target.tag());
        listed.or_else(|| newer(audit, &demands, ladder, false, passes))
    };
    let or_linux = |tag: Option<String>| tag.unwrap_or_else(|| linux.clone());
    let strict = oldest(&Blockers::is_empty);
    let by = ByCriterion {
        symbols: or_linux(oldest(&|b| b.symbols.is_empty())),
        libraries: or_linux(oldest(&|b| b.libraries.is_empty())),
        forbidden: or_linux(oldest(&|b| b.forbidden.is_empty())),
        isa: or_linux(oldest(&|b| b.isa.is_empty())),
        python: or_linux(oldest(&|b| b.python.is_empty())),
    };
    let with_providers = ladder
        .iter()
        .find(|target| demands.against(audit, target, true).is_empty())
        .map(Target::tag)
        .or_else(|| newer(audit, &demands, ladder, true, &Blockers::is_empty));
    let claims = judge_claims(audit, &demands);
    let mut steps: Vec<Step> = judged
        .into_iter()
        .take_while(|(target, _)| strict.as_deref() != Some(target.tag().as_str()))
        .map(|(target, blockers)| Step { target: target.clone(), blockers })
        .collect();
    steps.reverse();
    Some(Verdict {
        tag: or_linux(strict),
        tag_with_providers: or_linux(with_providers),
        by,
        claim_ok: claims.iter().all(|c| c.holds) && foreign_tags(audit).is_empty(),
        claims,
        ladder: steps,
    })
}

/// The part of the ladder that can be proven. What glibc releases export is known from the first one on. Of musl
/// the tables know one release and what came after it, so nothing is said of systems older than the input's own
/// claim; without a claim only the newest policy is judged.
fn provable<'t>(audit: &Audit<'_>, ladder: &'t [Target]) -> &'t [Target] {
    let musl = audit.platform.is_some_and(|p| p.libc == Libc::Musl);
    if !musl {
        return ladder;
    }
    let claimed = audit.claims.iter().find_map(|c| match &c.target {
        Some(Ok(target)) if target.libc() == Libc::Musl => {
            ladder.iter().position(|t| t.tag() == target.tag())
        }
        _ => None,
    });
    &ladder[claimed.unwrap_or(ladder.len().saturating_sub(1))..]
}

/// Newer glibc releases than the newest policy: provisional targets (auditwheel #731), tried in order.
fn newer(
    audit: &Audit<'_>,
    demands: &Demands,
    ladder: &[Target],
    providers: bool,
    passes: &dyn Fn(&Blockers) -> bool,
) -> Option<String> {
    let last = ladder.last()?;
    let (major, minor) = last.glibc_version()?;
    let newest_known = crate::symbol_tables::newest_glibc().unwrap_or((major, minor));
    (minor + 1..=newest_known.1)
        .filter_map(|minor| {
            let tag = format!("manylinux_{major}_{minor}_{}", last.arch().tag());
            audit.settings.policies.target(&tag).ok()
        })
        .find(|target| passes(&demands.against(audit, target, providers)))
        .map(|target| target.tag())
}

/// Claims of the verdict's C library rest on its demands; for those of another one the input is put before that one's
/// loader, which searches by rules of its own.
fn judge_claims(audit: &Audit<'_>, demands: &Demands) -> Vec<ClaimVerdict> {
    let other = audit.claims.iter().filter_map(Claim::libc).find(|&libc| !is_of(audit, libc));
    let other = other.and_then(|libc| {
        let before = audit.before(libc)?;
        let demands = Demands::gather(&before, before.claims.iter().filter_map(target));
        Some((before, demands))
    });
    let judge = |claim: &Claim| match (&other, claim.libc()) {
        (Some((before, demands)), Some(libc)) if is_of(before, libc) => judge_claim(before, demands, claim),
        _ => judge_claim(audit, demands, claim),
    };
    audit.claims.iter().map(judge).collect()
}

fn is_of(audit: &Audit<'_>, libc: Libc) -> bool {
    audit.platform.is_some_and(|p| p.libc == libc)
}

fn target(claim: &Claim) -> Option<&Target> {
    claim.target.as_ref()?.as_ref().ok()
}

/// A claim is judged against the very target that it names, which need not be one of the listed ones.
fn judge_claim(audit: &Audit<'_>, demands: &Demands, claim: &Claim) -> ClaimVerdict {
    let tag = claim.tag.to_string();
    let arch_fits = audit.platform.is_some_and(|p| claim.tag.arch() == Some(p.arch.tag()));
    match &claim.target {
        None => ClaimVerdict { tag, holds: arch_fits, blockers: Blockers::default() },
        Some(Err(_)) => ClaimVerdict { tag, holds: false, blockers: Blockers::default() },
        Some(Ok(target)) => {
            let blockers = demands.against(audit, target, true);
            ClaimVerdict { tag, holds: arch_fits && blockers.is_empty(), blockers }
        }
    }
}

/// Tags of other systems, or of any system, on an input that has Linux code.
pub(crate) fn foreign_tags(audit: &Audit<'_>) -> Vec<String> {
    let linux = |t: &PlatformTag| {
        matches!(t, PlatformTag::Linux { .. } | PlatformTag::Manylinux { .. } | PlatformTag::Musllinux { .. })
    };
    if audit.settings.target.is_some() {
        return Vec::new();
    }
    audit.platform_tags.iter().filter(|t| !linux(t)).map(ToString::to_string).collect()
}
