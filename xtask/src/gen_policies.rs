//! `gen-policies`: makes the tables under `policies/symbols` from glibc's ABI lists and from real libraries.
//!
//! Input is a `ziglang` wheel from PyPI (its `lib/libc/glibc/abilists`) and directories with Debian
//! packages of libc6, libstdc++6, libgcc-s1, libatomic1, zlib1g and musl, native or `-cross`. The same
//! input gives the same bytes.

mod abilists;
mod packages;
mod pool_writer;
mod reconstruct;
mod rows;
mod summary;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abiaudit_policy::symbols::Release;
use anyhow::{Context, Result, bail, ensure};

use packages::{Dump, Package};
use rows::{NodeReleases, Row};

const HELP: &str = "\
usage: cargo xtask gen-policies --zig WHEEL --debs DIR... [--out DIR] [--fetch]
  --zig WHEEL  the ziglang wheel of PyPI; with --fetch, a directory to download it into
  --debs DIR   Debian packages (*.deb), searched recursively; with --fetch, the native libc6, libstdc++6,
               libgcc-s1, libatomic1, zlib1g and musl and the cross packages of the configured suite are
               downloaded into the first DIR (once for each suite; APT_CONFIG chooses it)
  --out DIR    where the tables go (policies/symbols)
Needs dpkg-deb and unzip; --fetch needs pip and apt-get.";

/// The architectures of the tables, as in platform tags; the position is the bit in a record.
const ARCHS: [&str; 8] =
    ["x86_64", "i686", "aarch64", "armv7l", "ppc64le", "s390x", "riscv64", "loongarch64"];

/// The releases of musl that exist between the dumped ones: what a neighbour is decides whether a date is
/// exact.
const MUSL_RELEASES: [&str; 5] = ["1.2.2", "1.2.3", "1.2.4", "1.2.5", "1.2.6"];

/// Makes the tables.
pub fn run(args: &[String]) -> Result<()> {
    let mut options = Options::parse(args)?;
    if options.fetch {
        options.fetch()?;
    }
    let abilists = abilists::AbiLists::parse(&abilists::extract(&options.zig)?)?;
    let packages = packages::read_all(&options.debs)?;
    let dumps: Vec<Dump> = packages.iter().flat_map(|package| package.dumps.iter().cloned()).collect();
    println!("{} packages, {} libraries", packages.len(), dumps.len());

    let gcc_nodes = gcc_nodes(&options.out)?;
    let glibc = reconstruct::glibc(&abilists, &dumps)?;
    // The releases of GCC and zlib are not listed, so that no date between two dumps is called exact.
    let no_releases = BTreeSet::new();
    let gcc = rows::from_dumps(&dumps, packages::GCC_LIBRARIES, &gcc_nodes, &no_releases);
    let (late, gcc): (Vec<Row>, Vec<Row>) = gcc.into_iter().partition(|row| rows::is_late(row, &gcc_nodes));
    let musl_releases =
        MUSL_RELEASES.iter().map(|text| text.parse()).collect::<Result<BTreeSet<Release>, _>>()?;
    let mut musl =
        rows::from_dumps(&dumps, packages::MUSL_LIBRARIES, &NodeReleases::default(), &musl_releases);
    rows::keep_large_file_names(&mut musl);
    let zlib_nodes = rows::nodes_named_after_releases(&dumps, packages::ZLIB_LIBRARIES);
    let zlib = rows::from_dumps(&dumps, packages::ZLIB_LIBRARIES, &zlib_nodes, &no_releases);

    let dumped = |libraries: &[&str]| -> BTreeSet<Release> {
        let dumps = dumps.iter().filter(|dump| libraries.contains(&dump.library));
        dumps.map(|dump| dump.release).collect()
    };
    let no_nodes = NodeReleases::new();
    let tables = [
        Table { name: "glibc.bin", rows: &glibc.rows, nodes: &glibc.nodes, releases: abilists.releases() },
        Table { name: "gcc.bin", rows: &gcc, nodes: &gcc_nodes, releases: dumped(packages::GCC_LIBRARIES) },
        Table { name: "musl.bin", rows: &musl, nodes: &no_nodes, releases: dumped(packages::MUSL_LIBRARIES) },
        Table {
            name: "zlib.bin",
            rows: &zlib,
            nodes: &zlib_nodes,
            releases: dumped(packages::ZLIB_LIBRARIES),
        },
    ];
    for table in &tables {
        let bytes = pool_writer::encode(table)?;
        println!("{}: {} rows, {} bytes", table.name, table.rows.len(), bytes.len());
        fs::write(options.out.join(table.name), bytes)?;
    }
    fs::write(options.out.join("SUMMARY.md"), summary::summary(&tables, &glibc, &late, &dumps))?;
    fs::write(options.out.join("inputs.txt"), inputs(&options.zig, &packages)?)?;
    Ok(())
}

/// What goes into one file.
struct Table<'a> {
    name: &'a str,
    rows: &'a [Row],
    nodes: &'a NodeReleases,
    /// The releases that the table speaks of, besides those of its dates and nodes.
    releases: BTreeSet<Release>,
}

struct Options {
    zig: PathBuf,
    debs: Vec<PathBuf>,
    out: PathBuf,
    fetch: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let (mut zig, mut debs, mut fetch) = (None, Vec::new(), false);
        let mut out = PathBuf::from("policies/symbols");
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value =
                || args.next().map(PathBuf::from).with_context(|| format!("{arg} needs a value\n{HELP}"));
            match arg.as_str() {
                "--zig" => zig = Some(value()?),
                "--debs" => debs.push(value()?),
                "--out" => out = value()?,
                "--fetch" => fetch = true,
                // `--debs A B C`
                other if !other.starts_with('-') && !debs.is_empty() => debs.push(PathBuf::from(other)),
                _ => bail!("{HELP}"),
            }
        }
        ensure!(!debs.is_empty(), "{HELP}");
        Ok(Self { zig: zig.context(HELP)?, debs, out, fetch })
    }

    /// Downloads the newest packages that the package managers of this machine offer.
    fn fetch(&mut self) -> Result<()> {
        fs::create_dir_all(&self.zig)?;
        succeed(Command::new("pip").args(["download", "--no-deps", "--dest"]).arg(&self.zig).arg("ziglang"))?;
        let wheels: Vec<PathBuf> = fs::read_dir(&self.zig)?
            .map(|entry| Ok(entry?.path()))
            .filter(|path: &Result<PathBuf>| {
                path.as_ref().is_ok_and(|path| path.extension() == Some("whl".as_ref()))
            })
            .collect::<Result<_>>()?;
        self.zig = wheels.into_iter().max().context("pip downloaded no wheel")?;

        let debs = self.debs.first().context(HELP)?;
        fs::create_dir_all(debs)?;
        let native = ["libc6", "libstdc++6", "libgcc-s1", "libatomic1", "zlib1g", "musl"].map(str::to_owned);
        let cross = ["arm64", "armhf", "i386", "ppc64el", "s390x", "riscv64"].iter().flat_map(|arch| {
            ["libc6", "libstdc++6", "libgcc-s1", "libatomic1"].map(|name| format!("{name}-{arch}-cross"))
        });
        succeed(Command::new("apt-get").arg("download").args(native).args(cross).current_dir(debs))
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    let status =
        command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(status.success(), "{} failed: {status}", command.get_program().display());
    Ok(())
}

/// Reads `gcc-nodes.toml`, which a person keeps: `"GLIBCXX_3.4.26" = "9.1.0"` in the table `nodes`.
fn gcc_nodes(dir: &Path) -> Result<NodeReleases> {
    let path = dir.join("gcc-nodes.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: toml::Table = text.parse().with_context(|| path.display().to_string())?;
    let nodes =
        file.get("nodes").and_then(toml::Value::as_table).context("gcc-nodes.toml has no table `nodes`")?;
    nodes
        .iter()
        .map(|(node, release)| {
            let release = release.as_str().with_context(|| format!("{node}: not a string"))?;
            Ok((node.clone(), release.parse()?))
        })
        .collect()
}

/// What was read: one line a file, for SOURCES.md.
fn inputs(zig: &Path, packages: &[Package]) -> Result<String> {
    let mut lines = BTreeMap::new();
    let name = zig.file_name().context("no file name")?.to_string_lossy().into_owned();
    lines.insert(name, packages::sha256(zig)?);
    for package in packages {
        lines.insert(package.file_name.clone(), package.sha256.clone());
    }
    Ok(lines.iter().fold(String::new(), |text, (name, digest)| text + &format!("{digest}  {name}\n")))
}
