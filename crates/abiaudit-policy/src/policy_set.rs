//! All policies: from a tag to its [`Target`], and the ladder of targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::data::POLICIES;
use crate::family::is_numeric;
use crate::{Arch, Libc, LibraryRule, Overlay, OverlayError, Target};

/// The listed targets, and the way to those in between.
#[derive(Debug, Clone)]
pub struct PolicySet {
    /// Oldest first.
    ladders: BTreeMap<(Libc, Arch), Vec<Target>>,
    overlay: Overlay,
    rules: Arc<[LibraryRule]>,
}

impl PolicySet {
    /// The policies of `policies/`: 16 of glibc, 2 of musl.
    pub fn builtin() -> Self {
        let mut ladders: BTreeMap<(Libc, Arch), Vec<Target>> = BTreeMap::new();
        // The build script has sorted the rows, oldest first.
        for row in POLICIES {
            for arch in row.arches {
                ladders.entry((row.libc, arch.arch)).or_default().push(Target::listed(row, arch));
            }
        }
        Self { ladders, overlay: Overlay::default(), rules: Arc::new([]) }
    }

    /// The same policies under a custom policy, which replaces an earlier one.
    pub fn with_overlay(&self, overlay: &Overlay) -> Result<Self, OverlayError> {
        let builtin = Self::builtin();
        builtin.validate(overlay)?;
        let rules: Arc<[LibraryRule]> = overlay.libraries.clone().into();
        let mut set = Self { ladders: BTreeMap::new(), overlay: overlay.clone(), rules };
        for (key, ladder) in &builtin.ladders {
            let ladder = ladder.iter().map(|target| set.lay_over(target.clone(), ladder)).collect();
            set.ladders.insert(*key, ladder);
        }
        Ok(set)
    }

    /// The listed targets of an architecture, oldest first; empty where no policy covers it.
    pub fn ladder(&self, libc: Libc, arch: Arch) -> &[Target] {
        self.ladders.get(&(libc, arch)).map_or(&[], Vec::as_slice)
    }

    /// Every listed target, by C library, architecture and age.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.ladders.values().flatten()
    }

    /// The target of a platform tag: listed (`manylinux_2_28_x86_64`), by an older name (`manylinux2014_x86_64`), or
    /// any other `manylinux_2_N` from the architecture's oldest policy on.
    ///
    /// A glibc release between two listed ones gets its own GLIBC ceiling and the other families, libraries and
    /// forbidden symbols of the older one. A release after the last gets those of the last, and is provisional.
    pub fn target(&self, tag: &str) -> Result<Target, UnknownTarget> {
        let unknown = |why, nearest: Option<String>| UnknownTarget { tag: tag.to_owned(), why, nearest };
        let Some((policy, arch)) = split_tag(tag) else {
            return Err(unknown(WhyUnknown::Architecture, self.nearest(tag, None)));
        };
        let ladders = [Libc::Glibc, Libc::Musl].map(|libc| self.ladder(libc, arch));
        if let Some(target) = ladders.into_iter().flatten().find(|target| target.is_named(policy)) {
            return Ok(target.clone());
        }
        // "manylinux1" and the like are policies, but not of every architecture.
        let elsewhere = POLICIES.iter().find(|row| row.name == policy || row.aliases.contains(&policy));
        let Some((libc, release)) =
            elsewhere.map(|row| (row.libc, row.release)).or_else(|| release_of(policy))
        else {
            return Err(unknown(WhyUnknown::Policy, self.nearest(tag, Some(arch))));
        };
        let ladder = self.ladder(libc, arch);
        let Some(base) = ladder.iter().rev().find(|target| target.release() < release) else {
            let why = if ladder.is_empty() { WhyUnknown::NotCovered } else { WhyUnknown::TooOld };
            return Err(unknown(why, ladder.first().map(Target::tag)));
        };
        if libc == Libc::Musl {
            return Err(unknown(WhyUnknown::TooNew, ladder.last().map(Target::tag)));
        }
        let newest = ladder.last().map(Target::release);
        Ok(self.lay_over(base.derive(release, newest < Some(release)), ladder))
    }

    /// Applies the overlay to one target, whose ladder the ceilings' named nodes come from.
    fn lay_over(&self, mut target: Target, ladder: &[Target]) -> Target {
        target.set_rules(Arc::clone(&self.rules));
        for rule in &self.overlay.ceilings {
            if rule.targets.as_ref().is_none_or(|names| names.iter().any(|name| target.is_named(name))) {
                target.lower(&rule.family, &rule.at_most, ladder);
            }
        }
        target
    }

    fn validate(&self, overlay: &Overlay) -> Result<(), OverlayError> {
        for rule in &overlay.libraries {
            if rule.soname.trim().is_empty() {
                return Err(OverlayError::NoSoname);
            }
            self.validate_common(&rule.soname, &rule.reason, rule.targets.as_deref())?;
        }
        for rule in &overlay.ceilings {
            self.validate_common(&rule.family, &rule.reason, rule.targets.as_deref())?;
            if !self.targets().any(|target| target.families().any(|family| family == rule.family)) {
                return Err(OverlayError::UnknownFamily { family: rule.family.clone() });
            }
            if !is_numeric(&rule.at_most) {
                let (family, at_most) = (rule.family.clone(), rule.at_most.clone());
                return Err(OverlayError::BadVersion { family, at_most });
            }
        }
        Ok(())
    }

    fn validate_common(
        &self,
        subject: &str,
        reason: &str,
        targets: Option<&[String]>,
    ) -> Result<(), OverlayError> {
        if reason.trim().is_empty() {
            return Err(OverlayError::NoReason { subject: subject.to_owned() });
        }
        for name in targets.unwrap_or_default() {
            let is_policy = Arch::ALL.iter().any(|arch| self.target(&format!("{name}_{arch}")).is_ok());
            if !is_policy && self.target(name).is_err() {
                let (subject, target) = (subject.to_owned(), name.clone());
                return Err(OverlayError::UnknownTarget { subject, target });
            }
        }
        Ok(())
    }

    /// The listed tag that is spelt most like `tag`, of one architecture if that much is known.
    fn nearest(&self, tag: &str, arch: Option<Arch>) -> Option<String> {
        const LONGEST: usize = 64;
        if tag.len() > LONGEST {
            return None;
        }
        let targets = self.targets().filter(|target| arch.is_none_or(|arch| target.arch() == arch));
        let names = targets.flat_map(|target| {
            let aliases = target.aliases().iter().map(|alias| format!("{alias}_{}", target.arch()));
            std::iter::once(target.tag()).chain(aliases)
        });
        names.min_by_key(|name| edit_distance(name, tag))
    }
}

impl Default for PolicySet {
    fn default() -> Self {
        Self::builtin()
    }
}

/// A platform tag that no policy stands behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTarget {
    /// The tag as given.
    pub tag: String,
    /// What is wrong with it.
    pub why: WhyUnknown,
    /// The listed tag that may have been meant.
    pub nearest: Option<String>,
}

/// What is wrong with a platform tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUnknown {
    /// It does not end in an architecture.
    Architecture,
    /// It does not begin with a policy.
    Policy,
    /// The policy is older than all of this architecture.
    TooOld,
    /// It is newer than every musl policy of this architecture, and nobody can say what such a musl will have.
    TooNew,
    /// No policy of this C library covers the architecture.
    NotCovered,
}

impl std::fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = match self.why {
            WhyUnknown::Architecture => "it does not end in a known architecture",
            WhyUnknown::Policy => {
                "it does not begin with manylinux_2_N, musllinux_1_N or an older name of these"
            }
            WhyUnknown::TooOld => "the policies of this architecture begin later",
            WhyUnknown::TooNew => "the policies of this architecture end earlier",
            WhyUnknown::NotCovered => "no policy of this C library covers this architecture",
        };
        write!(f, "unknown target {:?}: {why}", self.tag)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; the nearest is {nearest}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownTarget {}

/// `manylinux_2_28_x86_64` -> `manylinux_2_28`, x86_64. No architecture's name is the end of another's after an
/// underscore, so the first that fits is the only one.
fn split_tag(tag: &str) -> Option<(&str, Arch)> {
    Arch::ALL.into_iter().find_map(|arch| {
        let policy = tag.strip_suffix(arch.tag())?.strip_suffix('_')?;
        (!policy.is_empty()).then_some((policy, arch))
    })
}

/// `manylinux_2_33` -> glibc 2.33, `musllinux_1_2` -> musl 1.2. Only the major numbers that policies know, and only
/// the canonical spelling: no leading zeros.
fn release_of(policy: &str) -> Option<(Libc, (u32, u32))> {
    let (libc, major, minor) = if let Some(minor) = policy.strip_prefix("manylinux_2_") {
        (Libc::Glibc, 2, minor)
    } else {
        (Libc::Musl, 1, policy.strip_prefix("musllinux_1_")?)
    };
    let digits = minor.bytes().all(|byte| byte.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
    digits.then(|| minor.parse().ok().map(|minor| (libc, (major, minor))))?
}

/// Levenshtein's distance in bytes.
fn edit_distance(left: &str, right: &str) -> usize {
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (row, left_byte) in left.bytes().enumerate() {
        let mut current = vec![row + 1];
        let mut diagonal_and_above = previous.iter().zip(previous.iter().skip(1)).zip(right.bytes());
        let mut before = row + 1;
        for ((&diagonal, &above), right_byte) in &mut diagonal_and_above {
            let substitution = diagonal + usize::from(left_byte != right_byte);
            before = substitution.min(above + 1).min(before + 1);
            current.push(before);
        }
        previous = current;
    }
    previous.last().copied().unwrap_or_default()
}
