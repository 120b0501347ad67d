//! rpm's database, asked through the `rpm` command (`rpm(8)`, "QUERY OPTIONS").

use std::process::{Command, Stdio};

use super::os_release::Distribution;
use super::{Package, purl};
use crate::machine::Root;

/// Fields of the owner, one a line; `(none)` stands for an absent one.
const FORMAT: &str = "%{NAME}\\n%{EPOCH}\\n%{VERSION}-%{RELEASE}\\n%{ARCH}\\n%{LICENSE}\\n";

/// The owner of a file of the machine itself; `None` for one of a sysroot and where there is no rpm.
pub(super) fn owner(root: &Root, path: &str, distribution: &Distribution) -> Option<Package> {
    if !root.is_machine() {
        return None;
    }
    let name = query(path, FORMAT)?;
    let mut lines = name.lines();
    let mut field = || lines.next().filter(|value| *value != "(none)").map(str::to_owned);
    let (name, epoch, version, arch, licence) = (field()?, field(), field()?, field(), field());
    let qualifiers = [
        ("arch", arch.as_deref().unwrap_or_default()),
        ("distro", &distribution.distro),
        ("epoch", epoch.as_deref().unwrap_or_default()),
    ];
    let purl = purl("rpm", &distribution.id, &name, &version, &qualifiers);
    // `-L` lists the files that the package marks as licences, first the shortest name: COPYING before COPYING.LIB.
    let licence_file = listed(&name);
    Some(Package { name, version, purl, licence, licence_file })
}

fn query(path: &str, format: &str) -> Option<String> {
    run(&["-qf", "--queryformat", format, path])
}

fn listed(package: &str) -> Option<String> {
    let text = run(&["-q", "-L", package])?;
    text.lines()
        .filter(|line| line.starts_with('/'))
        .min_by_key(|line| (line.len(), (*line).to_owned()))
        .map(str::to_owned)
}

fn run(arguments: &[&str]) -> Option<String> {
    let output = Command::new("rpm")
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
