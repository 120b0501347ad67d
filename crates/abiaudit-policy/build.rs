//! Turns the reviewable TOML under `policies/` into static tables, so that a start of the program parses
//! nothing. Every key is checked here: a misspelt one fails the build and names the file.
#![allow(clippy::print_stdout, reason = "cargo reads a build script's instructions from standard output")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;
use serde::de::DeserializeOwned;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    name: String,
    aliases: Vec<String>,
    libraries: Vec<String>,
    ceilings: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    extra_nodes: BTreeMap<String, Vec<String>>,
    forbidden_symbols: BTreeMap<String, Vec<String>>,
}

/// `versions.toml`: architecture -> family -> versions, and the nodes newer than every listed policy.
#[derive(Deserialize)]
struct Versions {
    later: Vec<Later>,
    #[serde(flatten)]
    known: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Later {
    glibc: String,
    node: String,
    arches: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Providers {
    provider: Vec<Provider>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    sonames: Vec<String>,
    class: String,
    distribution: Option<String>,
    #[serde(default)]
    through: Vec<String>,
    #[serde(default)]
    scheme: Option<String>,
    lib_dir: Option<String>,
    #[serde(default)]
    note: String,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Distributions {
    distribution: Vec<Distribution>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Distribution {
    name: String,
    release: String,
    glibc: Option<String>,
    musl: Option<String>,
    gcc: Option<String>,
    glibcxx: Option<String>,
    source: String,
}

fn main() -> Result<()> {
    let policies = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../policies");
    let mut code = String::new();
    emit_policies(&policies, &mut code)?;
    emit_versions(&read(&policies.join("versions.toml"))?, &mut code)?;
    emit_providers(&read(&policies.join("providers.toml"))?, &mut code)?;
    emit_distributions(&read(&policies.join("distributions.toml"))?, &mut code)?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("policies.rs"), code)?;
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    println!("cargo::rerun-if-changed={}", path.display());
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn emit_policies(policies: &Path, code: &mut String) -> Result<()> {
    let mut rows = Vec::new();
    for (directory, libc) in [("manylinux", "Glibc"), ("musllinux", "Musl")] {
        let directory = policies.join(directory);
        println!("cargo::rerun-if-changed={}", directory.display());
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let policy: Policy = read(&path)?;
                let release = release_of(&policy.name)?;
                rows.push((libc, release, policy));
            }
        }
    }
    rows.sort_by_key(|(libc, release, _)| (*libc, *release));
    writeln!(code, "pub(crate) static POLICIES: &[PolicyRow] = &[")?;
    for (libc, (major, minor), policy) in &rows {
        writeln!(code, "PolicyRow {{ name: {:?}, aliases: &{:?},", policy.name, policy.aliases)?;
        writeln!(
            code,
            "libc: Libc::{libc}, release: ({major}, {minor}), libraries: &{:?},",
            policy.libraries
        )?;
        writeln!(code, "forbidden_symbols: &[")?;
        for (library, symbols) in &policy.forbidden_symbols {
            writeln!(code, "({library:?}, &{symbols:?}),")?;
        }
        writeln!(code, "], arches: &[")?;
        for arch in policy.extra_nodes.keys() {
            if !policy.ceilings.contains_key(arch) {
                return Err(format!("{}: extra_nodes of {arch}, which has no ceilings", policy.name).into());
            }
        }
        for (arch, ceilings) in &policy.ceilings {
            emit_arch(arch, ceilings, policy.extra_nodes.get(arch), code)?;
        }
        writeln!(code, "] }},")?;
    }
    writeln!(code, "];")?;
    Ok(())
}

fn emit_arch(
    arch: &str,
    ceilings: &BTreeMap<String, String>,
    extra_nodes: Option<&Vec<String>>,
    code: &mut String,
) -> Result<()> {
    writeln!(code, "ArchRow {{ arch: {}, ceilings: &[", variant_of(arch)?)?;
    for (family, ceiling) in ceilings {
        let ceiling = (ceiling != "none").then_some(ceiling);
        writeln!(code, "({family:?}, {ceiling:?}),")?;
    }
    writeln!(code, "], extra_nodes: &{:?} }},", extra_nodes.map_or(&[][..], Vec::as_slice))?;
    Ok(())
}

fn emit_versions(versions: &Versions, code: &mut String) -> Result<()> {
    writeln!(code, "pub(crate) static KNOWN: &[KnownRow] = &[")?;
    for (arch, families) in &versions.known {
        for (family, known) in families {
            let arch = variant_of(arch)?;
            writeln!(code, "KnownRow {{ arch: {arch}, family: {family:?}, versions: &{known:?} }},")?;
        }
    }
    writeln!(code, "];\npub(crate) static LATER: &[LaterRow] = &[")?;
    for Later { glibc, node, arches } in &versions.later {
        let (major, minor) =
            glibc.split_once('.').ok_or_else(|| format!("later node {node}: glibc {glibc}"))?;
        let (major, minor): (u32, u32) = (major.parse()?, minor.parse()?);
        let arches: Vec<String> = arches.iter().map(|arch| variant_of(arch)).collect::<Result<_>>()?;
        let arches = arches.join(", ");
        writeln!(code, "LaterRow {{ node: {node:?}, glibc: ({major}, {minor}), arches: &[{arches}] }},")?;
    }
    writeln!(code, "];")?;
    Ok(())
}

fn emit_providers(providers: &Providers, code: &mut String) -> Result<()> {
    writeln!(code, "pub(crate) static PROVIDERS: &[ProviderRow] = &[")?;
    for row in &providers.provider {
        let class = match (row.class.as_str(), &row.distribution) {
            ("wheel", Some(_)) => "Wheel",
            ("driver", None) => "Driver",
            ("host", None) => "Host",
            (class, _) => return Err(format!("provider {:?}: class {class:?}", row.sonames).into()),
        };
        let scheme = match row.scheme.as_deref() {
            None | Some("platlib") => "Platlib",
            Some("data") => "Data",
            Some(scheme) => return Err(format!("provider {:?}: scheme {scheme:?}", row.sonames).into()),
        };
        writeln!(
            code,
            "ProviderRow {{ sonames: &{:?}, class: ProviderClass::{class}, distribution: {:?}, through: &{:?}, \
             scheme: Scheme::{scheme}, lib_dir: {:?}, note: {:?}, source: {:?} }},",
            row.sonames, row.distribution, row.through, row.lib_dir, row.note, row.source
        )?;
    }
    writeln!(code, "];")?;
    Ok(())
}

fn emit_distributions(distributions: &Distributions, code: &mut String) -> Result<()> {
    writeln!(code, "pub(crate) static DISTRIBUTIONS: &[Distribution] = &[")?;
    for row in &distributions.distribution {
        let (libc, version) = match (&row.glibc, &row.musl) {
            (Some(version), None) => ("Glibc", version),
            (None, Some(version)) => ("Musl", version),
            _ => return Err(format!("{} {}: either glibc or musl", row.name, row.release).into()),
        };
        writeln!(
            code,
            "Distribution {{ name: {:?}, release: {:?}, libc: Libc::{libc}, libc_version: {version:?}, gcc: {:?}, \
             glibcxx: {:?}, source: {:?} }},",
            row.name, row.release, row.gcc, row.glibcxx, row.source
        )?;
    }
    writeln!(code, "];")?;
    Ok(())
}

/// `manylinux_2_28` -> (2, 28).
fn release_of(name: &str) -> Result<(u32, u32)> {
    let mut parts = name.split('_').skip(1);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(major), Some(minor), None) => Ok((major.parse()?, minor.parse()?)),
        _ => Err(format!("policy name {name:?} is not FAMILY_MAJOR_MINOR").into()),
    }
}

fn variant_of(arch: &str) -> Result<String> {
    let variant = match arch {
        "x86_64" => "X86_64",
        "i686" => "I686",
        "aarch64" => "Aarch64",
        "armv7l" => "Armv7l",
        "ppc64le" => "Ppc64le",
        "ppc64" => "Ppc64",
        "s390x" => "S390x",
        "riscv64" => "Riscv64",
        "loongarch64" => "Loongarch64",
        _ => return Err(format!("unknown architecture {arch:?}").into()),
    };
    Ok(format!("Arch::{variant}"))
}
