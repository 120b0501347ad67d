//! `abiaudit toolchain`, and the linker wrapper that this program is under the name of `ld`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use abiaudit_policy::{PolicySet, Target};
use abiaudit_toolchain::environment::{Builder, instructions};
use abiaudit_toolchain::{Error, Manifest, Options, create, link, mask, verify};
use anyhow::Context as _;

use crate::cli::{
    Builder as BuilderArg, MaskRuntimeArgs, ToolchainCommand, ToolchainCreateArgs, ToolchainEnvArgs,
};
use crate::{CLEAN, FINDINGS};

/// Runs one of the commands.
pub fn run(command: &ToolchainCommand) -> anyhow::Result<u8> {
    match command {
        ToolchainCommand::Create(args) => make(args),
        ToolchainCommand::Verify { directory } => check(directory),
        ToolchainCommand::Env(args) => env(args),
        ToolchainCommand::MaskRuntime(args) => mask_runtime(args),
    }
}

fn make(args: &ToolchainCreateArgs) -> anyhow::Result<u8> {
    let wrapper =
        std::env::current_exe().context("cannot find the program itself, which is the linker wrapper")?;
    let options = Options { target: target(&args.target)?, compiler: args.cxx.clone(), wrapper };
    let manifest = match create(&options, &args.output) {
        Ok(manifest) => manifest,
        Err(error @ Error::Unsound { .. }) => {
            anstream::eprintln!("{error}");
            return Ok(FINDINGS);
        }
        Err(error) => return Err(error.into()),
    };
    let ceilings: Vec<String> =
        manifest.ceilings.iter().map(|(family, version)| format!("{family}_{version}")).collect();
    anstream::println!(
        "{}: {} for {} {}\n  up to {}\n  libstdc++_nonshared.a has {} symbols that the target lacks; {} functions of a \
         newer C library are stood in for; {} symbols are refused\n  use it: eval \"$(abiaudit toolchain env {})\"",
        args.output.display(),
        manifest.target,
        manifest.compiler.program,
        manifest.compiler.version,
        ceilings.join(", "),
        manifest.libstdcxx.covered.len(),
        manifest.shim.len(),
        manifest.refused.len(),
        args.output.display(),
    );
    Ok(CLEAN)
}

fn check(directory: &Path) -> anyhow::Result<u8> {
    let checks = verify(directory)?;
    for check in &checks {
        anstream::println!("{check}");
    }
    Ok(if checks.iter().all(|check| check.problems.is_empty()) { CLEAN } else { FINDINGS })
}

fn env(args: &ToolchainEnvArgs) -> anyhow::Result<u8> {
    let directory =
        args.directory.canonicalize().with_context(|| format!("no {}", args.directory.display()))?;
    let manifest = Manifest::read(&directory)?;
    let log = args.log.as_ref().map(std::path::absolute).transpose()?;
    let builder = match args.builder {
        BuilderArg::Shell => Builder::Shell,
        BuilderArg::Make => Builder::Make,
        BuilderArg::Cmake => Builder::CMake,
        BuilderArg::Meson => Builder::Meson,
        BuilderArg::Setuptools => Builder::Setuptools,
        BuilderArg::ScikitBuildCore => Builder::ScikitBuildCore,
        BuilderArg::Cibuildwheel => Builder::Cibuildwheel,
    };
    anstream::print!("{}", instructions(builder, &directory, &manifest, log.as_deref()));
    Ok(CLEAN)
}

fn mask_runtime(args: &MaskRuntimeArgs) -> anyhow::Result<u8> {
    let directories: Vec<&Path> = args.libraries.iter().map(std::path::PathBuf::as_path).collect();
    let copied = mask::mask_runtime(&directories, &target(&args.target)?, &args.output)?;
    anyhow::ensure!(!copied.is_empty(), "none of the directories has a libc.so.6 or libstdc++.so.6");
    anstream::println!("{}: {} as {} has them", args.output.display(), copied.join(", "), args.target);
    Ok(CLEAN)
}

fn target(tag: &str) -> anyhow::Result<Target> {
    PolicySet::builtin().target(tag).map_err(Into::into)
}

/// The linker wrapper: like a linker it says what is wrong and fails.
pub fn link(program: &Path, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match link::run(program, arguments) {
        Ok(linked) => {
            for notice in linked.notices {
                anstream::eprintln!("abiaudit ld: {notice}");
            }
            ExitCode::from(linked.code)
        }
        Err(error) => {
            anstream::eprintln!("abiaudit ld: error: {error}");
            ExitCode::FAILURE
        }
    }
}
