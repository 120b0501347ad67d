//! How builds are told to use a toolchain.
//!
//! `COMPILER_PATH` is where GCC looks for the programs that it runs, the linker among them (GCC manual, "Environment
//! Variables Affecting GCC"). It passes through make, CMake, meson, ninja and pip's build isolation, and no build file
//! has to be changed. `-B` does the same for one command; clang knows both. `LIBRARY_PATH` does not do it: the compiler's own
//! directories come first.

use std::path::Path;

use crate::manifest::Manifest;
use crate::nonshared::{NEW_STRING_ABI, refusal};

/// Who is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builder {
    /// A shell, and so anything that it starts.
    Shell,
    /// GNU make and configure scripts.
    Make,
    /// CMake.
    CMake,
    /// Meson.
    Meson,
    /// pip with setuptools.
    Setuptools,
    /// pip with scikit-build-core.
    ScikitBuildCore,
    /// cibuildwheel.
    Cibuildwheel,
}

impl Builder {
    /// All, in the order of their description.
    pub const ALL: [Self; 7] = [
        Self::Shell,
        Self::Make,
        Self::CMake,
        Self::Meson,
        Self::Setuptools,
        Self::ScikitBuildCore,
        Self::Cibuildwheel,
    ];
}

/// The variables: name and value. `log` is where links are recorded.
pub fn variables(directory: &Path, manifest: &Manifest, log: Option<&Path>) -> Vec<(&'static str, String)> {
    let mut variables =
        vec![("COMPILER_PATH", directory.display().to_string()), ("CXX", manifest.compiler.program.clone())];
    if needs_old_strings(manifest) {
        variables.push(("CXXFLAGS", OLD_STRINGS.to_owned()));
    }
    if let Some(log) = log {
        variables.push((crate::link::LOG_VARIABLE, log.display().to_string()));
    }
    variables
}

/// What to write, for a shell or into a configuration.
pub fn instructions(builder: Builder, directory: &Path, manifest: &Manifest, log: Option<&Path>) -> String {
    let variables = variables(directory, manifest, log);
    let assignments =
        || variables.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect::<Vec<_>>();
    let prefix = format!("-B{}/", directory.display());
    let exports = || assignments().iter().fold(String::new(), |text, line| text + "export " + line + "\n");
    match builder {
        Builder::Shell => exports(),
        Builder::Make => format!("{} make LDFLAGS={}\n", assignments().join(" "), quoted(&prefix)),
        Builder::CMake => {
            let flags: Vec<String> = ["EXE", "SHARED", "MODULE"]
                .iter()
                .map(|kind| format!("-DCMAKE_{kind}_LINKER_FLAGS_INIT={}", quoted(&prefix)))
                .collect();
            format!("{} cmake {}\n", assignments().join(" "), flags.join(" "))
        }
        Builder::Meson => format!(
            "{} meson setup build -Dcpp_link_args={prefix} -Dc_link_args={prefix}\n",
            assignments().join(" "),
            prefix = quoted(&prefix)
        ),
        Builder::Setuptools | Builder::ScikitBuildCore => {
            format!("{} pip wheel --no-deps --no-binary :all: .\n", assignments().join(" "))
        }
        Builder::Cibuildwheel => {
            let inner = assignments().join(" ").replace('\\', "\\\\").replace('"', "\\\"");
            format!(
                "# pyproject.toml. The directory must exist in the build's container: make it there with before-all.\n\
                 [tool.cibuildwheel.linux]\n\
                 before-all = \"abiaudit toolchain create --target {} -o {}\"\n\
                 environment = \"{inner}\"\n",
                manifest.target,
                directory.display()
            )
        }
    }
}

/// What makes GCC use the old `std::string`.
pub(crate) const OLD_STRINGS: &str = "-D_GLIBCXX_USE_CXX11_ABI=0";

/// Has the target only the old `std::string` (before GCC 5.1)?
pub(crate) fn needs_old_strings(manifest: &Manifest) -> bool {
    let glibcxx = manifest.ceilings.get("GLIBCXX").map_or(NEW_STRING_ABI, String::as_str);
    refusal("__cxx11", glibcxx).is_some()
}

/// A word for a POSIX shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
