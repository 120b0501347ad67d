//! Which modules of a wheel are worth importing if nobody says.

use std::collections::BTreeSet;

use abiaudit_scan::{SITE_PACKAGES, Subject};

/// Packages with native code, and extension modules that stand alone, by name. If there are none, all packages.
pub(crate) fn modules(subject: &Subject) -> Vec<String> {
    let mut packages = BTreeSet::new();
    let mut native = BTreeSet::new();
    for member in &subject.members {
        let below = member.installed.strip_prefix(SITE_PACKAGES).and_then(|path| path.strip_prefix('/'));
        let Some(path) = below else { continue };
        match path.split_once('/') {
            Some((package, "__init__.py")) => drop(packages.insert(package.to_owned())),
            Some((package, _)) if member.object().is_some() => drop(native.insert(package.to_owned())),
            Some(_) => {}
            None => {
                let (stem, is_module) = match path.split_once('.') {
                    Some((stem, suffix)) => (stem, suffix.ends_with("so") && member.object().is_some()),
                    None => (path, false),
                };
                let init = format!("PyInit_{stem}");
                let has_init = member.object().is_some_and(|object| {
                    object.symbols.exported().any(|symbol| object.symbols.name(symbol) == init.as_bytes())
                });
                if is_module && has_init {
                    packages.insert(stem.to_owned());
                    native.insert(stem.to_owned());
                }
            }
        }
    }
    let both: Vec<String> = packages.intersection(&native).cloned().collect();
    if both.is_empty() { packages.into_iter().collect() } else { both }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::{Arch, ElfWriter, TestWheel};

    use super::*;

    fn modules_of(wheel: &TestWheel) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = wheel.write(folder.path());
        let subjects = abiaudit_scan::scan(&path, &abiaudit_scan::Options::default()).expect("a wheel");
        subjects.iter().flat_map(modules).collect()
    }

    #[test]
    fn packages_with_native_code() {
        let elf = ElfWriter::new(Arch::X86_64).define("PyInit__alone");
        let wheel = || TestWheel::new("p", "1", "cp312-cp312-linux_x86_64");
        let native = wheel()
            .file("p/__init__.py", "")
            .file("tests/__init__.py", "")
            .elf("p/m.abi3.so", &elf)
            .elf("_alone.abi3.so", &elf)
            .elf("other.so", &elf)
            .elf("p.libs/libx.so.1", &elf);
        assert_eq!(modules_of(&native), ["_alone", "p"]);
        assert_eq!(modules_of(&wheel().file("p/__init__.py", "").file("p/x.py", "")), ["p"]);
    }
}
