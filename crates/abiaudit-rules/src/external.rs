//! Libraries that are needed and not in the input: who needs them, and who brings them.

use std::collections::BTreeMap;

use abiaudit_loader::search::Outcome;
use abiaudit_policy::{LibraryVerdict, Provider, ProviderClass, Target};

use crate::audit::{self, Audit};
use crate::python;

/// One external library.
#[derive(Debug, Clone)]
pub struct External {
    /// As in `DT_NEEDED`.
    pub soname: String,
    /// Objects that need it, by index.
    pub needed_by: Vec<usize>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where an external library comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Every system that the judged target stands for has it.
    System,
    /// A distribution that the input requires brings it.
    Provider {
        /// The row of `policies/providers.toml` or of the configuration.
        provider: Provider,
        /// The requirement that brings it.
        declared_by: String,
    },
    /// A device's driver brings it.
    Driver(Provider),
    /// A known distribution has it, but nothing declares that distribution.
    Undeclared(Vec<Provider>),
    /// A package of the host system that wheels cannot carry.
    Host(Provider),
    /// The interpreter as a library, which most interpreters are not.
    LibPython,
    /// Nobody known.
    Unknown,
}

impl Origin {
    /// Present wherever the wheel's requirements are installed.
    pub fn is_provided(&self) -> bool {
        matches!(self, Self::System | Self::Provider { .. } | Self::Driver(_))
    }

    /// The word in reports.
    pub fn class(&self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Provider { .. } => "provider",
            Self::Driver(_) => "driver",
            Self::Host(_) => "host",
            Self::Undeclared(_) | Self::LibPython | Self::Unknown => "unprovided",
        }
    }
}

pub(crate) fn externals(audit: &Audit<'_>) -> Vec<External> {
    let mut needed_by: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for need in &audit.resolution.needs {
        let counts = audit.objects.get(need.from).is_some_and(|o| o.counts);
        if counts && matches!(need.outcome, Outcome::External | Outcome::Libc) {
            let users = needed_by.entry(&need.name).or_default();
            if users.last() != Some(&need.from) {
                users.push(need.from);
            }
        }
    }
    // The loader is in every process before all libraries; who NEEDs it needs nothing from outside.
    if let Some(platform) = audit.platform {
        needed_by.retain(|soname, _| !platform.libc.is_dynamic_linker(soname));
    }
    let judged = audit::judged(&audit.claims, audit.platform, &audit.settings.policies);
    needed_by
        .into_iter()
        .map(|(soname, needed_by)| External {
            soname: soname.to_owned(),
            needed_by,
            origin: origin(audit, soname, judged),
        })
        .collect()
}

fn origin(audit: &Audit<'_>, soname: &str, judged: Option<&Target>) -> Origin {
    if judged.is_some_and(|target| is_system(target, soname)) {
        return Origin::System;
    }
    if python::is_libpython(soname) {
        return Origin::LibPython;
    }
    let providers = &audit.settings.providers;
    if let Some(accepted) = providers.accepts(soname, &audit.requires, &audit.distribution()) {
        return match accepted.declared_by {
            Some(by) => Origin::Provider { provider: accepted.provider.clone(), declared_by: by.to_owned() },
            None => Origin::Driver(accepted.provider.clone()),
        };
    }
    let known: Vec<Provider> = providers.lookup(soname).into_iter().cloned().collect();
    if let Some(host) = known.iter().find(|p| p.class == ProviderClass::Host) {
        return Origin::Host(host.clone());
    }
    if known.is_empty() { Origin::Unknown } else { Origin::Undeclared(known) }
}

/// The target has the library, or it is the loader itself.
pub(crate) fn is_system(target: &Target, soname: &str) -> bool {
    matches!(target.library(soname), LibraryVerdict::Allowed | LibraryVerdict::DynamicLinker)
}
