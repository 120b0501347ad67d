//! dpkg's database: `/var/lib/dpkg/status` and one list of files a package (`dpkg(1)`, "FILES").

use std::collections::{BTreeMap, HashMap};

use super::os_release::Distribution;
use super::{Package, purl};
use crate::machine::Root;

/// The database of one tree, read whole: a few megabytes.
pub(super) struct Database {
    /// Package (with `:arch` as in the names of the lists) by file.
    files: HashMap<String, String>,
    /// Fields of installed packages, by name and by `name:arch`.
    installed: BTreeMap<String, Fields>,
}

#[derive(Debug, Clone, Default)]
struct Fields {
    package: String,
    version: String,
    architecture: String,
}

impl Database {
    /// `None` if there is none.
    pub(super) fn open(root: &Root) -> Option<Self> {
        let status = root.read("/var/lib/dpkg/status")?;
        let installed = installed(&String::from_utf8_lossy(&status));
        let mut files = HashMap::new();
        for name in root.list("/var/lib/dpkg/info") {
            let Some(package) = name.strip_suffix(".list") else { continue };
            let Some(list) = root.read(&format!("/var/lib/dpkg/info/{name}")) else { continue };
            for path in String::from_utf8_lossy(&list).lines() {
                // Only libraries are asked for, and where their licences are.
                if path.contains(".so") || path.ends_with("/copyright") {
                    files.entry(path.to_owned()).or_insert_with(|| package.to_owned());
                }
            }
        }
        Some(Self { files, installed })
    }

    /// The owner of a file that has these names.
    pub(super) fn owner(&self, names: &[String], distribution: &Distribution) -> Option<Package> {
        let package = names.iter().find_map(|name| self.files.get(name))?;
        let fields = self.installed.get(package)?;
        let licence_file = format!("/usr/share/doc/{}/copyright", fields.package);
        let qualifiers = [("arch", fields.architecture.as_str()), ("distro", &distribution.distro)];
        Some(Package {
            name: fields.package.clone(),
            version: fields.version.clone(),
            purl: purl("deb", &distribution.id, &fields.package, &fields.version, &qualifiers),
            licence: None,
            licence_file: Some(licence_file),
        })
    }
}

/// Paragraphs of packages that are installed (deb822).
fn installed(status: &str) -> BTreeMap<String, Fields> {
    let mut packages = BTreeMap::new();
    for paragraph in status.split("\n\n") {
        let field = |name: &str| {
            let value = paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.unwrap_or_default().trim().to_owned()
        };
        if !field("Status").ends_with(" installed") {
            continue;
        }
        let fields = Fields {
            package: field("Package"),
            version: field("Version"),
            architecture: field("Architecture"),
        };
        packages.insert(format!("{}:{}", fields.package, fields.architecture), fields.clone());
        packages.entry(fields.package.clone()).or_insert(fields);
    }
    packages
}
