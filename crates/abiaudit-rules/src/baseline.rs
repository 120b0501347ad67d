//! A wheel that another one is compared with: an earlier release, or the one that the index has.

use abiaudit_detect::{BlasFamily, Carries};
use abiaudit_scan::Subject;
use abiaudit_wheel::normalize_name;

/// What is known of a baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    /// Name and version, or its path.
    pub title: String,
    /// The normalised name; `None` if it does not say.
    pub distribution: Option<String>,
    /// An object of it is, holds or needs an OpenBLAS.
    pub has_openblas: bool,
}

impl Baseline {
    /// Looks at all objects of an input.
    pub fn of(subject: &Subject) -> Self {
        let named = subject.name_and_version();
        let has_openblas = subject.objects().any(|(member, object)| {
            let carries = abiaudit_detect::detect(object, &member.markers);
            has_openblas(&carries)
        });
        Self {
            title: named
                .as_ref()
                .map_or_else(|| subject.path.clone(), |(name, version)| format!("{name} {version}")),
            distribution: named.map(|(name, _)| normalize_name(&name)),
            has_openblas,
        }
    }
}

fn has_openblas(carries: &Carries) -> bool {
    carries.blas.iter().any(|blas| blas.family == BlasFamily::OpenBlas)
}
