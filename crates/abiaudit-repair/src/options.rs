//! What a repair is asked to do.

use std::collections::BTreeSet;
use std::path::PathBuf;

use abiaudit_rules::Settings;
use abiaudit_wheel::WriteOptions;

use crate::machine::{LibraryPaths, Root};

/// Options of a repair. The names of `auditwheel repair` are given where an option is one of its.
#[derive(Debug, Clone)]
pub struct Options {
    /// `--plat`: the wanted tag, such as `manylinux_2_28_x86_64`; without the architecture that of the wheel is meant. `None`
    /// (`auto`): the oldest that the content honours once repaired.
    pub platform: Option<String>,
    /// `--only-plat`: no older tag beside the wanted one.
    pub only_platform: bool,
    /// `--exclude`: patterns (`*`, `?`) of sonames, or of paths of libraries, that stay outside.
    pub exclude: Vec<String>,
    /// Libraries given by hand: they go before what a search finds, and are grafted even if nothing needs them.
    pub include: Vec<Include>,
    /// Wheels whose libraries may be grafted; they go before what a search finds.
    pub from_wheels: Vec<PathBuf>,
    /// The tree that libraries come from.
    pub root: Root,
    /// Directories to search beside those that objects name.
    pub paths: LibraryPaths,
    /// `--lib-sdir`: what the name of the directory of grafted libraries ends in.
    pub lib_sdir: String,
    /// Patterns of sonames that are grafted under their own name. A second library of that name in the process is then
    /// taken for the same.
    pub keep_name: Vec<String>,
    /// `--strip`: remove symbol tables and debug information of grafted libraries and of the objects that are edited.
    pub strip: bool,
    /// Not `--no-update-tags`: correct the platform tags.
    pub update_tags: bool,
    /// Graft external libraries; without it only the tags are corrected.
    pub graft: bool,
    /// What is mended in the members of the wheel, before libraries are grafted.
    pub mends: BTreeSet<Mend>,
    /// `--disable-isa-ext-check`: processor levels are not judged.
    pub ignore_isa: bool,
    /// `--allow-pure-python-wheel`: copy a wheel without native code.
    pub allow_pure: bool,
    /// Policies, providers and ignores, as for `check`.
    pub settings: Settings,
    /// Compression and timestamps of what is written anew.
    pub write: WriteOptions,
}

/// What can be mended in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mend {
    /// An exported or half-hidden static libstdc++ (ABI201, ABI203), by the best method that can be proved to work.
    Libstdcxx,
    /// The same, by this method alone.
    LibstdcxxBy(abiaudit_mend::Method),
    /// References to symbols of glibc that are newer than the target (ABI101): an older version of the same symbol.
    Glibc,
    /// Search paths that do not start from `$ORIGIN` (ABI403, ABI404).
    SearchPath,
    /// Segments without sections (ABI503).
    EmptySegments,
    /// An executable stack (ABI501). Whether the code needs one cannot be proved.
    ExecutableStack,
}

/// A library given by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// The file.
    pub path: PathBuf,
    /// Where it goes in the wheel, under a name that is kept: for plug-ins that are opened by their path. Without it the
    /// file goes to the grafted libraries: renamed like them if something needs it, under its own name if nothing does.
    pub member: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            platform: None,
            only_platform: false,
            exclude: Vec::new(),
            include: Vec::new(),
            from_wheels: Vec::new(),
            root: Root::machine(),
            paths: LibraryPaths::default(),
            lib_sdir: ".libs".to_owned(),
            keep_name: Vec::new(),
            strip: false,
            update_tags: true,
            graft: true,
            mends: BTreeSet::new(),
            ignore_isa: false,
            allow_pure: false,
            settings: Settings::default(),
            write: WriteOptions::default(),
        }
    }
}
