//! Controls: what happens without each of the measures. A control that does not fail shows a measure that is not needed,
//! or a test that sees nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::modules::{Linked, Modules, exports_beyond};
use super::runtimes::Runtime;
use super::{Bench, MAIN_TARGET, with_arch};
use crate::shell;

/// Makes everything local, as many projects do to hide their own symbols.
const HIDE_ALL: &str = "{ global: run; accept; wait_for; local: *; };\n";

/// Runs all controls; gives how many do not fail.
pub fn run(bench: &Bench) -> Result<u32> {
    let toolchain = bench.toolchain("g++", MAIN_TARGET)?;
    let modules = Modules::compile(&bench.scratch, "g++", &["-std=c++20", "-O2"], false)?;
    let control = Control {
        bench,
        toolchain: &toolchain,
        modules: &modules,
        search: format!("-L{}", toolchain.display()),
    };
    let mut outcomes = vec![control.static_library()?, control.static_unwinder()?, control.hidden_statics()?];
    match &bench.bullseye {
        Some(bullseye) => outcomes.extend([control.start_file(bullseye)?, control.threads(bullseye)?]),
        None => println!("SKIPPED: the controls that need Debian 11"),
    }
    for outcome in &outcomes {
        println!(
            "control: {}: {}",
            outcome.without,
            if outcome.fails { outcome.how } else { "DOES NOT FAIL" }
        );
    }
    Ok(outcomes.iter().filter(|outcome| !outcome.fails).count().try_into()?)
}

/// What came of leaving out a measure.
struct Outcome {
    without: &'static str,
    how: &'static str,
    fails: bool,
}

struct Control<'a> {
    bench: &'a Bench,
    toolchain: &'a Path,
    modules: &'a Modules,
    search: String,
}

impl Control<'_> {
    /// Links without the wrapper: stubs, archives and scripts are found, and nothing is added.
    fn link_bare(&self, name: &str, more: &[&str]) -> Result<Linked> {
        self.modules.link_in(name, |command| {
            command.arg(&self.search).args(more);
        })
    }

    fn static_library(&self) -> Result<Outcome> {
        let directory = self.bench.scratch.join("control-archive");
        std::fs::create_dir_all(&directory)?;
        let full = shell::capture(Command::new("g++").arg("-print-file-name=libstdc++.a"))?;
        let script =
            format!("INPUT ( {} {} )\n", self.toolchain.join("libstdc++.so.6").display(), full.trim());
        std::fs::write(directory.join("libstdc++.so"), script)?;
        let before = format!("-L{}", directory.display());
        let copies = self.modules.link_in("control-static", |command| {
            command.args([&before, &self.search]);
        })?;
        let beyond = exports_beyond(&self.modules.link_plainly()?, &copies, self.toolchain)?;
        Ok(Outcome {
            without: "the whole libstdc++.a in place of the nonshared archive",
            how: "modules export copies of what the target has",
            fails: !beyond.is_empty(),
        })
    }

    fn static_unwinder(&self) -> Result<Outcome> {
        let unwinder = self.link_bare("control-static-libgcc", &["-static-libgcc"])?;
        let mut check = Command::new(&self.bench.program);
        check.args(["check", "--no-config", "--target", &with_arch(MAIN_TARGET)]).args(&unwinder.modules);
        Ok(Outcome {
            without: "-static-libgcc is not undone",
            how: "_dl_find_object is in no library of the target",
            fails: !check.output()?.status.success(),
        })
    }

    fn hidden_statics(&self) -> Result<Outcome> {
        let script = self.bench.scratch.join("hide_all.map");
        std::fs::write(&script, HIDE_ALL)?;
        let option = format!("-Wl,--version-script={}", script.display());
        let hidden = self.link_bare("control-hidden", &[&option])?;
        let pair = Linked { modules: pick(&hidden, &["waits.so", "notifies.so"])?, host: hidden.host };
        Ok(Outcome {
            without: "the statics of inline functions are hidden",
            how: "a module waits in a pool that the other does not notify",
            fails: !pair.run_together(None)?,
        })
    }

    /// The library's functions are in place, only crt1.o is the compiler's.
    fn start_file(&self, bullseye: &Runtime) -> Result<Outcome> {
        let good = self.modules.link(self.toolchain, "bfd")?;
        let bare = self.link_bare("control-bare", &[])?;
        let mixed = Linked { modules: pick(&good, &["charconv.so"])?, host: bare.host };
        Ok(Outcome {
            without: "the compiler's own start file",
            how: "the constructors of executables do not run on Debian 11",
            fails: !mixed.run_together(Some(bullseye))?,
        })
    }

    fn threads(&self, bullseye: &Runtime) -> Result<Outcome> {
        let good = self.modules.link(self.toolchain, "bfd")?;
        let bare = self.link_bare("control-bare", &[])?;
        let mixed = Linked { modules: pick(&bare, &["thread.so"])?, host: good.host };
        Ok(Outcome {
            without: "libpthread is not asked for",
            how: "std::thread jumps to address 0 on Debian 11",
            fails: !mixed.run_together(Some(bullseye))?,
        })
    }
}

fn pick(linked: &Linked, names: &[&str]) -> Result<Vec<PathBuf>> {
    let find = |name: &&str| {
        linked.modules.iter().find(|path| path.ends_with(name)).cloned().context(name.to_string())
    };
    names.iter().map(find).collect()
}
