//! Modules that get at a C++ runtime in different ways, and processes that load two of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A module, and how it is linked.
const VARIANTS: &[(&str, &[&str])] = &[
    ("dynamic.so", &[]),
    ("static.so", &["-static-libstdc++"]),
    ("static_too.so", &["-static-libstdc++"]),
    ("static_unwinder.so", &["-static-libstdc++", "-static-libgcc"]),
    ("hidden.so", &["-static-libstdc++", "-Wl,--exclude-libs,ALL"]),
    ("half_hidden.so", &["-static-libstdc++", "-Wl,--version-script=half_hidden.map"]),
    ("symbolic.so", &["-static-libstdc++", "-Wl,-Bsymbolic"]),
    (
        "vendored.so",
        &["-nodefaultlibs", "./libstdc--.so.6", "-lm", "-lc", "-lgcc_s", "-lgcc", "-Wl,-rpath,$ORIGIN"],
    ),
];

/// Hides the C++ names of the runtime and forgets those in C.
const HALF_HIDDEN: &str =
    "{ local: extern \"C++\" { std::*; \"typeinfo for std::*\"; \"vtable for std::*\"; }; };\n";

/// The runtime of the system under another name of the same length, as a wheel would carry it.
const VENDORED: (&[u8], &str) = (b"libstdc++.so.6\0", "libstdc--.so.6");

pub struct Modules {
    pub directory: PathBuf,
}

/// Builds all modules.
pub fn build(scratch: &Path) -> anyhow::Result<Modules> {
    let directory = scratch.join("modules");
    fs::create_dir_all(&directory)?;
    fs::write(scratch.join("probe.cpp"), include_str!("probe.cpp"))?;
    fs::write(scratch.join("half_hidden.map"), HALF_HIDDEN)?;
    vendor(&directory)?;
    gxx(scratch, &["-O1", "-fPIC", "-c", "probe.cpp", "-o", "probe.o"])?;
    // The linker is given the copy by a path without directory in its name, so that only the soname is recorded.
    fs::copy(directory.join(VENDORED.1), scratch.join(VENDORED.1))?;
    for (name, options) in VARIANTS {
        let output = format!("modules/{name}");
        let mut args = vec!["-shared", "probe.o", "-o", &output];
        args.extend(*options);
        gxx(scratch, &args)?;
    }
    Ok(Modules { directory })
}

/// Copies the runtime and gives the copy another soname.
fn vendor(directory: &Path) -> anyhow::Result<()> {
    let output = Command::new("g++").arg("-print-file-name=libstdc++.so.6").output().context("g++")?;
    let mut bytes = fs::read(String::from_utf8(output.stdout)?.trim())?;
    let (name, new) = VENDORED;
    let at = bytes.windows(name.len()).position(|window| window == name).context("no soname")?;
    bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
    fs::write(directory.join(new), bytes)?;
    Ok(())
}

fn gxx(directory: &Path, args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("g++").args(args).current_dir(directory).status().context("g++")?;
    ensure!(status.success(), "g++ {args:?}: {status}");
    Ok(())
}

impl Modules {
    /// Python code that loads two modules: the one that shares the runtime of the system with each other one, and two
    /// with copies of their own; in both orders, and each of them locally or globally.
    pub fn sequences(&self) -> Vec<String> {
        let others = VARIANTS.iter().map(|(name, _)| *name).skip(1);
        let mut pairs: Vec<(&str, &str)> = others.map(|other| ("dynamic.so", other)).collect();
        pairs.push(("static.so", "static_too.so"));
        pairs.push(("static.so", "vendored.so"));
        let both_orders = pairs.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        let modes = [("LOCAL", "LOCAL"), ("GLOBAL", "GLOBAL"), ("GLOBAL", "LOCAL"), ("LOCAL", "GLOBAL")];
        both_orders.flat_map(|pair| modes.map(|modes| self.sequence(pair, modes))).collect()
    }

    fn sequence(&self, (first, second): (&str, &str), (mode, then): (&str, &str)) -> String {
        let path = |name| self.directory.join(name).display().to_string();
        format!(
            "import ctypes, os\nctypes.CDLL({:?}, mode=ctypes.RTLD_{mode})\nctypes.CDLL({:?}, mode=ctypes.RTLD_{then})\nos._exit(0)",
            path(first),
            path(second)
        )
    }
}
