//! A file system tree that libraries come from: the machine's own, or a sysroot.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Most symbolic links on the way to one file, as Linux has it (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// The root of a tree. Paths inside are absolute texts that begin with `/`; so do the targets of absolute links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    directory: PathBuf,
}

impl Root {
    /// The machine itself.
    pub fn machine() -> Self {
        Self { directory: PathBuf::from("/") }
    }

    /// A sysroot.
    pub fn sysroot(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Whether this is the machine itself.
    pub fn is_machine(&self) -> bool {
        self.directory == Path::new("/")
    }

    /// The path on this machine of a path inside, links followed; `None` if there is nothing.
    pub fn real(&self, path: &str) -> Option<PathBuf> {
        let inside = self.real_inside(path)?;
        Some(self.outside(&inside))
    }

    /// A path inside without any link in it; `None` if there is nothing at its end.
    pub fn real_inside(&self, path: &str) -> Option<String> {
        let mut links = 0;
        let mut done: Vec<String> = Vec::new();
        let mut pending: Vec<String> = components(Path::new(path)).rev().collect();
        while let Some(name) = pending.pop() {
            if name == ".." {
                done.pop();
                continue;
            }
            let here = format!("/{}", [done.as_slice(), std::slice::from_ref(&name)].concat().join("/"));
            let metadata = fs::symlink_metadata(self.outside(&here)).ok()?;
            if metadata.file_type().is_symlink() {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                let target = fs::read_link(self.outside(&here)).ok()?;
                if target.is_absolute() {
                    done.clear();
                }
                pending.extend(components(&target).rev());
            } else {
                done.push(name);
            }
        }
        Some(format!("/{}", done.join("/")))
    }

    /// The content of a file inside.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.real(path)?).ok()
    }

    /// The names in a directory inside, sorted.
    pub fn list(&self, path: &str) -> Vec<String> {
        let Some(directory) = self.real(path) else { return Vec::new() };
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The path inside that a path of this machine stands for; `None` if it is not below the root.
    pub fn inside(&self, path: &Path) -> Option<String> {
        let rest = path.strip_prefix(&self.directory).ok()?;
        Some(format!("/{}", rest.to_str()?))
    }

    fn outside(&self, inside: &str) -> PathBuf {
        self.directory.join(inside.trim_start_matches('/'))
    }
}

fn components(path: &Path) -> std::vec::IntoIter<String> {
    let names: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            Component::ParentDir => Some("..".to_owned()),
            _ => None,
        })
        .collect();
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_inside() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |path: &str| directory.path().join(path);
        fs::create_dir_all(at("usr/lib")).expect("a directory");
        fs::write(at("usr/lib/libx.so.1.2"), "x").expect("a file");
        symlink("usr/lib", at("lib")).expect("a link");
        symlink("/usr/lib/libx.so.1.2", at("usr/lib/libx.so.1")).expect("a link");
        symlink("../../../../../usr/lib/libx.so.1", at("usr/lib/up.so")).expect("a link");
        symlink("loop", at("usr/lib/loop")).expect("a link");
        let root = Root::sysroot(directory.path());
        for path in ["/lib/libx.so.1", "/usr/lib/up.so", "/lib/../lib/./libx.so.1"] {
            assert_eq!(root.real_inside(path).as_deref(), Some("/usr/lib/libx.so.1.2"), "{path}");
        }
        assert_eq!(root.read("/lib/libx.so.1").as_deref(), Some(b"x".as_slice()));
        assert_eq!(root.real("/usr/lib/loop"), None);
        assert_eq!(root.real("/usr/lib/absent"), None);
        assert_eq!(root.list("/lib"), ["libx.so.1", "libx.so.1.2", "loop", "up.so"]);
    }
}
