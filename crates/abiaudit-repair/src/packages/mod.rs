//! Which package of the system owns a file, and under which licence.
//!
//! The package databases are read as files (dpkg, apk), so that they can be those of a sysroot; rpm's is a database of its
//! own, so the `rpm` command is asked, on the machine itself only.

mod apk;
mod dpkg;
mod os_release;
mod rpm;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::machine::Root;

/// A package and the file of it that says its licence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Version as the distribution writes it.
    pub version: String,
    /// Package URL (purl), <https://github.com/package-url/purl-spec>.
    pub purl: String,
    /// Licence expression or name, where the database has one.
    pub licence: Option<String>,
    /// Path inside the tree of the licence text, where the database names one.
    pub licence_file: Option<String>,
}

/// The package databases of one tree.
pub struct Packages<'r> {
    root: &'r Root,
    distribution: os_release::Distribution,
    dpkg: Option<dpkg::Database>,
    apk: Option<apk::Database>,
}

impl<'r> Packages<'r> {
    /// Opens what databases there are.
    pub fn open(root: &'r Root) -> Self {
        Self {
            root,
            distribution: os_release::Distribution::read(root),
            dpkg: dpkg::Database::open(root),
            apk: apk::Database::open(root),
        }
    }

    /// The owners of files, by path. `paths` are inside the tree and free of links; a database may know a file under its
    /// name from before directories were merged (`/lib/x` for `/usr/lib/x`), which counts as the same.
    pub fn owners(&self, paths: &[String]) -> BTreeMap<String, Package> {
        let mut owners = BTreeMap::new();
        for path in paths {
            let names = aliases(self.root, path);
            let package = self
                .dpkg
                .as_ref()
                .and_then(|database| database.owner(&names, &self.distribution))
                .or_else(|| self.apk.as_ref().and_then(|database| database.owner(&names, &self.distribution)))
                .or_else(|| rpm::owner(self.root, path, &self.distribution));
            owners.extend(package.map(|package| (path.clone(), package)));
        }
        owners
    }
}

/// The names under which a database may know a file: as it is, and below `/` if it is below `/usr` and the directory there is
/// a link (merged `/usr`).
fn aliases(root: &Root, path: &str) -> Vec<String> {
    let mut names = vec![path.to_owned()];
    if let Some(rest) = path.strip_prefix("/usr")
        && root.real_inside(rest).as_deref() == Some(path)
    {
        names.push(rest.to_owned());
    }
    names
}

/// Percent-encodes for a purl: all but letters, digits and `.-_~` (purl specification, "Character encoding").
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b".-_~:".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// `pkg:TYPE/NAMESPACE/NAME@VERSION?qualifiers`, the qualifiers in the order of their names.
fn purl(kind: &str, namespace: &str, name: &str, version: &str, qualifiers: &[(&str, &str)]) -> String {
    let known = qualifiers.iter().filter(|(_, value)| !value.is_empty());
    let qualifiers: Vec<String> = known.map(|(key, value)| format!("{key}={}", encode(value))).collect();
    let question = if qualifiers.is_empty() { "" } else { "?" };
    let [namespace, name, version] = [namespace, name, version].map(encode);
    format!("pkg:{kind}/{namespace}/{name}@{version}{question}{}", qualifiers.join("&"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A tree with these files.
    pub(crate) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (path, content) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, content).expect("a file");
        }
        directory
    }

    #[test]
    fn dpkg_knows_files_by_their_names_before_usr_was_merged() {
        let directory = tree(&[
            ("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n"),
            (
                "var/lib/dpkg/status",
                "Package: liblzma5\nStatus: install ok installed\nArchitecture: amd64\nMulti-Arch: same\nVersion: 5.4.1-1\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n",
            ),
            (
                "var/lib/dpkg/info/liblzma5:amd64.list",
                "/.\n/lib\n/lib/x86_64-linux-gnu\n/lib/x86_64-linux-gnu/liblzma.so.5.4.1\n/usr/share/doc/liblzma5/copyright\n",
            ),
            ("usr/lib/x86_64-linux-gnu/liblzma.so.5.4.1", ""),
            ("usr/share/doc/liblzma5/copyright", "public domain"),
        ]);
        symlink("usr/lib", directory.path().join("lib")).expect("a link");
        let root = Root::sysroot(directory.path());
        let path = "/usr/lib/x86_64-linux-gnu/liblzma.so.5.4.1".to_owned();
        let owners = Packages::open(&root).owners(&[path.clone(), "/usr/lib/other".to_owned()]);
        assert_eq!(
            owners,
            BTreeMap::from([(
                path,
                Package {
                    name: "liblzma5".to_owned(),
                    version: "5.4.1-1".to_owned(),
                    purl: "pkg:deb/debian/liblzma5@5.4.1-1?arch=amd64&distro=debian-12".to_owned(),
                    licence: None,
                    licence_file: Some("/usr/share/doc/liblzma5/copyright".to_owned()),
                }
            )])
        );
    }

    #[test]
    fn apk_has_licences() {
        let directory = tree(&[
            ("etc/os-release", "ID=alpine\nVERSION_ID=3.20.1\n"),
            (
                "lib/apk/db/installed",
                "C:Q1x=\nP:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\nF:lib\nR:ld-musl-x86_64.so.1\n\nP:xz-libs\nV:5.6.1-r3\nA:x86_64\nL:0BSD AND Public-Domain\nF:usr\nF:usr/lib\nR:liblzma.so.5\nR:liblzma.so.5.6.1\n",
            ),
            ("usr/lib/liblzma.so.5.6.1", ""),
        ]);
        let root = Root::sysroot(directory.path());
        let path = "/usr/lib/liblzma.so.5.6.1".to_owned();
        let owners = Packages::open(&root).owners(std::slice::from_ref(&path));
        assert_eq!(owners[&path].purl, "pkg:apk/alpine/xz-libs@5.6.1-r3?arch=x86_64&distro=alpine-3.20.1");
        assert_eq!(owners[&path].licence.as_deref(), Some("0BSD AND Public-Domain"));
    }

    #[test]
    fn purls_are_encoded() {
        assert_eq!(
            purl("deb", "debian", "libstdc++6", "1:12+x~1", &[("arch", ""), ("distro", "a b")]),
            "pkg:deb/debian/libstdc%2B%2B6@1:12%2Bx~1?distro=a%20b"
        );
    }
}
