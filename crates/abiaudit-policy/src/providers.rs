//! Which other wheel, driver or host package brings a library that no platform tag promises.
//!
//! An eighth of real wheels NEED libraries of another distribution on purpose: torch of the CUDA wheels, PyQt5 of
//! PyQt5-Qt5. Such a wheel works if it declares that distribution in `Requires-Dist`, so that the installer brings it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::data::{PROVIDERS, ProviderRow};
use crate::glob;

/// Something that brings libraries; from `policies/providers.toml`, or from a project's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The sonames, in which `*` stands for any characters and `?` for one.
    pub sonames: Vec<String>,
    /// What kind of provider it is.
    pub class: ProviderClass,
    /// The normalised name of the distribution that holds the libraries; none for a driver or the host.
    #[serde(default)]
    pub distribution: Option<String>,
    /// Other declarations that bring the distribution with them: `torch`, or `cuda-toolkit[cublas]` for an extra.
    #[serde(default)]
    pub through: Vec<String>,
    /// Where `lib_dir` begins.
    #[serde(default)]
    pub scheme: Scheme,
    /// The directory that holds the libraries once installed.
    #[serde(default)]
    pub lib_dir: Option<String>,
    /// What a person should know.
    #[serde(default)]
    pub note: String,
    /// Where the row is from, see `policies/sources.md`.
    #[serde(default)]
    pub source: String,
}

/// The kind of a [`Provider`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderClass {
    /// A distribution on the package index, which must be declared.
    Wheel,
    /// Installed with a device's driver and bound to its kernel module: never in a wheel, never a pin.
    Driver,
    /// A system package that a wheel cannot sensibly carry, as it talks to the host's kernel, devices or
    /// configuration; the user must install it.
    Host,
}

/// The installation scheme (as in `sysconfig`) that a provider's directory is relative to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// `site-packages`.
    #[default]
    Platlib,
    /// The environment's prefix, where `*.data/data` is unpacked: three levels above `site-packages`
    /// (`lib/python3.12/site-packages`).
    Data,
}

/// A provider, and the declaration that vouches for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted<'a> {
    /// The provider.
    pub provider: &'a Provider,
    /// The entry of the wheel's requirements that brings it; none for a driver, which nothing can declare.
    pub declared_by: Option<&'a str>,
}

/// The table of providers.
#[derive(Debug, Clone)]
pub struct Providers {
    rows: Vec<Provider>,
}

/// The providers that the program knows.
pub fn providers() -> &'static Providers {
    static BUILTIN: LazyLock<Providers> =
        LazyLock::new(|| Providers { rows: PROVIDERS.iter().map(Provider::from).collect() });
    &BUILTIN
}

impl Providers {
    /// The same table behind a project's own providers.
    #[must_use]
    pub fn with(&self, own: &[Provider]) -> Self {
        Self { rows: own.iter().chain(&self.rows).cloned().collect() }
    }

    /// Every provider, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.rows.iter()
    }

    /// Everything that brings a library of this soname; several for one that kept its soname over releases.
    pub fn lookup(&self, soname: &str) -> Vec<&Provider> {
        self.rows
            .iter()
            .filter(|row| row.sonames.iter().any(|pattern| glob::matches(pattern, soname)))
            .collect()
    }

    /// The provider that a wheel may count on for `soname`: a driver, or a distribution that the wheel declares,
    /// itself before one that brings it along. A host package is never accepted: [`Providers::lookup`] finds it
    /// for the message.
    ///
    /// `requires` holds the wheel's `Requires-Dist` whose markers hold on the target, each as made by
    /// [`declaration_keys`]. `own_name` is the wheel's own normalised name: what a wheel should hold itself is not
    /// excused by its own name.
    pub fn accepts<'a>(
        &'a self,
        soname: &str,
        requires: &'a BTreeSet<String>,
        own_name: &str,
    ) -> Option<Accepted<'a>> {
        let candidates = self.lookup(soname);
        if let Some(provider) = candidates.iter().find(|row| row.class == ProviderClass::Driver) {
            return Some(Accepted { provider, declared_by: None });
        }
        let others = || {
            let wheels = candidates.iter().filter(|row| row.class == ProviderClass::Wheel);
            wheels.filter(|row| row.distribution.as_deref().is_some_and(|name| name != own_name))
        };
        let declared = |name: &str| requires.get(name).map(String::as_str);
        let directly = others().find_map(|provider| {
            let declared_by = declared(provider.distribution.as_deref()?)?;
            Some(Accepted { provider, declared_by: Some(declared_by) })
        });
        directly.or_else(|| {
            others().find_map(|provider| {
                let declared_by = provider.through.iter().find_map(|name| declared(name))?;
                Some(Accepted { provider, declared_by: Some(declared_by) })
            })
        })
    }
}

/// The keys by which a requirement is found in [`Providers::accepts`]: the normalised name, and `name[extra]` for each
/// extra.
pub fn declaration_keys<'a>(name: &str, extras: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let name = normalize_name(name);
    let mut keys: Vec<String> =
        extras.into_iter().map(|extra| format!("{name}[{}]", normalize_name(extra))).collect();
    keys.insert(0, name);
    keys
}

/// The normalised name of a distribution or an extra (PEP 503, PEP 685): lower case, each run of `-`, `_` and `.` a
/// single hyphen.
pub fn normalize_name(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for character in name.trim().chars() {
        match character {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            other => normal.push(other.to_ascii_lowercase()),
        }
    }
    normal
}

impl From<&ProviderRow> for Provider {
    fn from(row: &ProviderRow) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            sonames: owned(row.sonames),
            class: row.class,
            distribution: row.distribution.map(str::to_owned),
            through: owned(row.through),
            scheme: row.scheme,
            lib_dir: row.lib_dir.map(str::to_owned),
            note: row.note.to_owned(),
            source: row.source.to_owned(),
        }
    }
}
