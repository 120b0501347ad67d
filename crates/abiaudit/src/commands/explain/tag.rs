//! What a platform tag promises.

use std::io::{self, Write};

use abiaudit_policy::{Distribution, Libc, PolicySet, Target, distributions};
use abiaudit_report::escape::visible;
use serde_json::{Value, json};

/// A tag, or a policy on every architecture that it is for.
pub struct Tag {
    query: String,
    /// None for `linux_*`. The first is the one that is shown in full.
    targets: Vec<Target>,
}

/// `manylinux_2_28_x86_64`, `manylinux2014`, `linux_x86_64`, also at the end of a whole tag (`cp312-cp312-...`).
pub fn find(query: &str) -> Option<Tag> {
    let platform = query.rsplit('-').next().unwrap_or(query);
    let tag = |targets| Some(Tag { query: platform.to_owned(), targets });
    if platform.strip_prefix("linux_").is_some_and(|arch| arch.parse::<abiaudit_policy::Arch>().is_ok()) {
        return tag(Vec::new());
    }
    if !platform.starts_with("manylinux") && !platform.starts_with("musllinux") {
        return None;
    }
    let policies = PolicySet::builtin();
    if let Ok(target) = policies.target(platform) {
        return tag(vec![target]);
    }
    let mut targets: Vec<Target> = policies.targets().filter(|t| t.is_named(platform)).cloned().collect();
    // Most people ask for the most common one.
    targets.sort_by_key(|target| target.arch().tag() != "x86_64");
    if targets.is_empty() { None } else { tag(targets) }
}

impl Tag {
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(target) = self.targets.first() else {
            writeln!(out, "{} promises nothing", visible(&self.query))?;
            return writeln!(
                out,
                "  it is for the machine that the wheel was built on and those like it; PyPI does not accept it"
            );
        };
        let names: Vec<String> = target.aliases().iter().map(|&alias| alias.to_owned()).collect();
        let aliases = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        writeln!(
            out,
            "{}{aliases} promises to run wherever there is {} or newer",
            target.policy(),
            libc(target)
        )?;
        if target.is_provisional() {
            writeln!(
                out,
                "  provisional  newer than every known policy; all but glibc's nodes are those of {}",
                target.based_on()
            )?;
        }
        let archs: Vec<&str> = self.targets.iter().map(|target| target.arch().tag()).collect();
        writeln!(out, "  for          {}", archs.join(", "))?;
        let more = if self.targets.len() > 1 { format!(" (on {})", target.arch()) } else { String::new() };
        let nodes = newest_nodes(target);
        if !nodes.is_empty() {
            writeln!(out, "  nodes up to  {}{more}", nodes.join(", "))?;
        }
        let libraries: Vec<String> = target.libraries().map(std::borrow::Cow::into_owned).collect();
        write_list(out, "libraries", &libraries)?;
        for library in &libraries {
            let mut forbidden: Vec<String> =
                target.forbidden_symbols(library).iter().map(|&symbol| symbol.to_owned()).collect();
            if let Some(last) = forbidden.last_mut() {
                *last = format!("{last} of {library}");
                write_list(out, "but not", &forbidden)?;
            }
        }
        if let Some(isa) = target.baseline_isa() {
            writeln!(out, "  processor    {isa}")?;
        }
        writeln!(out, "  found from   {}", oldest_distributions(target).join(", "))
    }

    pub fn to_json(&self) -> Value {
        let target = |target: &Target| {
            json!({
                "tag": target.tag(), "policy": target.policy(), "aliases": target.aliases(),
                "arch": target.arch().tag(), "libc": target.libc().to_string(), "libc_version": version(target),
                "provisional": target.is_provisional(), "nodes": target.nodes().collect::<Vec<_>>(),
                "libraries": target.libraries().collect::<Vec<_>>(), "isa": target.baseline_isa(),
                "distributions": oldest_distributions(target),
            })
        };
        json!({
            "query": self.query, "about": "tag",
            "targets": self.targets.iter().map(target).collect::<Vec<_>>(),
        })
    }
}

fn libc(target: &Target) -> String {
    format!("{} {}", target.libc(), version(target))
}

fn version(target: &Target) -> String {
    let release = target.glibc_version().or_else(|| target.musl_version());
    release.map(|(major, minor)| format!("{major}.{minor}")).unwrap_or_default()
}

/// The newest node of each family that has numbers.
fn newest_nodes(target: &Target) -> Vec<String> {
    let newest = |family| Some(format!("{family}_{}", target.ceiling(family)?));
    target.families().filter_map(newest).collect()
}

/// Of each distribution the oldest release whose C library is new enough.
fn oldest_distributions(target: &Target) -> Vec<String> {
    let rows: Vec<&Distribution> = match (target.libc(), target.glibc_version(), target.musl_version()) {
        (Libc::Glibc, Some(at_least), _) => distributions().with_glibc(at_least).collect(),
        (Libc::Musl, _, Some((major, minor))) => distributions().with_musl((major, minor, 0)).collect(),
        _ => Vec::new(),
    };
    let mut oldest: Vec<&Distribution> = Vec::new();
    for row in rows {
        if !oldest.iter().any(|known| known.name == row.name) {
            oldest.push(row);
        }
    }
    oldest.into_iter().map(|row| format!("{} {}", row.name, row.release)).collect()
}

/// A list that is folded at the width of a terminal.
fn write_list(out: &mut dyn Write, heading: &str, items: &[String]) -> io::Result<()> {
    const WIDTH: usize = 80;
    let mut line = format!("  {heading:<12}");
    for (number, item) in items.iter().enumerate() {
        let comma = if number + 1 < items.len() { "," } else { "" };
        if line.len() + item.len() + 2 > WIDTH {
            writeln!(out, "{line}")?;
            line = " ".repeat(14);
        }
        line = format!("{line} {item}{comma}");
    }
    writeln!(out, "{line}")
}
