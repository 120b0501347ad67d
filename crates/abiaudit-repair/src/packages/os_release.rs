//! Which distribution a tree is (`os-release(5)`).

use crate::machine::Root;

/// What purls say of a distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Distribution {
    /// `ID`, such as `debian`.
    pub id: String,
    /// `ID-VERSION_ID`, such as `debian-12`; empty if unknown.
    pub distro: String,
}

impl Distribution {
    /// Reads `/etc/os-release`, or `/usr/lib/os-release`.
    pub(super) fn read(root: &Root) -> Self {
        let bytes =
            root.read("/etc/os-release").or_else(|| root.read("/usr/lib/os-release")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
        };
        let (id, version) = (value("ID"), value("VERSION_ID"));
        let id = if id.is_empty() { "linux".to_owned() } else { id };
        let distro = if version.is_empty() { String::new() } else { format!("{id}-{version}") };
        Self { id, distro }
    }
}
