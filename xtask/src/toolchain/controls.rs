//! Controls: what happens without each of the measures. A control that does not fail shows a measure that is not needed,
//! or a test that sees nothing.

use std::process::Command;

use anyhow::Result;

use super::modules::{Linked, Modules, exports_beyond, object};
use super::{Bench, MAIN_TARGET, with_arch};
use crate::shell;

pub fn run(bench: &Bench) -> Result<u32> {
    let compiler = "g++";
    let toolchain = bench.toolchain(compiler, MAIN_TARGET)?;
    let modules = Modules::compile(&bench.scratch, compiler, &["-std=c++20", "-O2"], false)?;
    let search = format!("-L{}", toolchain.display());
    let mut failures = 0;
    let mut control = |name: &str, fails: bool, how: &str| {
        println!("control: {name}: {}", if fails { how } else { "DOES NOT FAIL" });
        failures += u32::from(!fails);
    };

    // The whole static library in place of the nonshared one: modules with copies of what the process has.
    let archive = toolchain.join("libstdc++_nonshared.a");
    let kept = bench.scratch.join("kept.a");
    std::fs::copy(&archive, &kept)?;
    let full = shell::capture(Command::new(compiler).arg("-print-file-name=libstdc++.a"))?;
    std::fs::copy(full.trim(), &archive)?;
    let copies = modules.link_in("control-static", |command| {
        command.arg(&search);
    })?;
    std::fs::copy(&kept, &archive)?;
    let plain = modules.link_plainly()?;
    let beyond = exports_beyond(&plain, &copies, &toolchain)?;
    control(
        "libstdc++.a in place of the nonshared archive",
        !beyond.is_empty(),
        "exports copies of the target's symbols",
    );

    // Without the wrapper, with all else.
    let bare = modules.link_in("control-bare", |command| {
        command.arg(&search);
    })?;
    let needs_threads = |linked: &Linked| -> Result<bool> {
        let threads = linked.modules.iter().find(|path| path.ends_with("threads.so"));
        Ok(match threads {
            Some(path) => object(path)?.dynamic.needed.iter().any(|name| *name == "libpthread.so.0"),
            None => false,
        })
    };
    let charconv: Vec<_> = bare.modules.iter().filter(|path| path.ends_with("charconv.so")).collect();
    if let Some(bullseye) = &bench.bullseye {
        let threads: Vec<_> =
            bare.modules.iter().filter(|p| p.ends_with("filesystem.so")).map(|p| p.as_path()).collect();
        // The program starts its constructors by the start file of the toolchain alone.
        let starts = bare.run_once(Some(bullseye), &threads)?;
        control("the compiler's own start file", !starts, "constructors do not run on Debian 11");
    }
    control(
        "no libpthread asked for",
        !needs_threads(&bare)? || bench.bullseye.is_none(),
        "std::thread jumps to 0 where glibc is older than 2.34",
    );
    let _ = charconv;

    // An unwinder of one's own.
    let unwinder = modules.link_in("control-static-libgcc", |command| {
        command.args([search.as_str(), "-static-libgcc"]);
    })?;
    let mut check = Command::new(&bench.program);
    check.args(["check", "--no-config", "--target", &with_arch(MAIN_TARGET)]).args(&unwinder.modules);
    control(
        "-static-libgcc left as it is",
        !check.output()?.status.success(),
        "_dl_find_object is in no library of the target",
    );
    Ok(failures)
}
