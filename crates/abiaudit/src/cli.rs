//! The arguments. Their help texts are the reference in docs/cli.md.

mod confirm;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use confirm::{ConfirmArgs, ConfirmFormat, ConfirmMode, ProbePlace};

/// Audits and explains the native code in Python wheels.
#[derive(Debug, Parser)]
#[command(
    name = "abiaudit",
    version,
    about,
    after_help = "Exit codes: 0 clean; 1 findings at or above --fail-on; 2 wrong usage or an input that cannot be read \
                  (that input is named, the others are still audited)."
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Audit wheels against the tags that they claim, and fail if they break a promise
    ///
    /// Reads every member of every wheel once, in memory; nothing is unpacked, and no library, clock or Python of
    /// this machine is looked at, so the answer is the same everywhere.
    ///
    /// With --with, --import or --trace, processes are simulated as well: what the inputs come to next to each other and
    /// next to others that are installed, and in which order of imports.
    Check(CheckArgs),
    /// Print facts, verdict and ladder of wheels: for each better tag, what stands in the way
    Show(ShowArgs),
    /// Show who serves whom in one process: the static counterpart of LD_DEBUG=bindings
    ///
    /// Lays the inputs out in one imagined site-packages, loads their extension modules into a described CPython as the
    /// dynamic loader would, and says for each object which other one serves its symbols. Libraries of the system are
    /// known by their tables at one release; nothing of this machine is looked at.
    ///
    /// With --import, the import statements in the inputs' Python sources are followed. What functions import,
    /// importlib, plug-ins and what native code imports are not seen: --trace takes the order from a recorded run.
    /// With neither, every extension module is loaded, input by input and in the order of names.
    #[command(after_help = "Exit codes: 0 done; 2 wrong usage or an input that cannot be read.")]
    Bind(BindArgs),
    /// Run wheels for real, and compare what happens with what is predicted
    ///
    /// Installs the wheels into a fresh virtual environment in a temporary directory, without fetching anything, and
    /// imports them, one process for each order, mode and place of the probe: a C++ module of abiaudit's own that is built
    /// on the spot and uses the machine's C++ runtime. Watched are exit codes, signals, the time limit, and values:
    /// streams, locales, call_once, threads, exceptions of the probe; what --check asks of the wheels. A second C++
    /// runtime may break any of these without a crash. Beside it stands what the simulation says of the same process.
    ///
    /// This runs the code in the wheels.
    #[command(
        after_help = "Exit codes: 0 all as predicted, be it broken or fine (see the last line); 1 something is not \
                            as predicted; 2 wrong usage, or wheels that this machine cannot run."
    )]
    Confirm(ConfirmArgs),
    /// Explain a rule, a platform tag, a version node, a symbol or a library
    ///
    /// `ABI101` or `symbol-too-new` prints the rule's documentation; `manylinux_2_28_x86_64` what the tag promises.
    /// `GLIBCXX_3.4.26` says which compiler release brought the node, which tags and distributions have it;
    /// `memcpy@GLIBC_2.14`, `std::filesystem::copy` or a mangled C++ name says which library exports the symbol since
    /// when, on which architecture; `libgomp.so.1` which tags promise the library, or who else brings it.
    Explain(ExplainArgs),
    /// Name the known failures in a backtrace, a dump or a log
    ///
    /// Reads what a crash or a failed import left behind (gdb, faulthandler, the loader, a traceback, a CI log), and
    /// says for each known failure on which lines it shows, what it means, which rules prove it on the wheels
    /// concerned, and what mends it. Only the text is looked at.
    #[command(
        after_help = "Exit codes: 0 something was recognised; 1 nothing known; 2 wrong usage, or the text cannot \
                            be read."
    )]
    Triage(TriageArgs),
    /// Edit what the dynamic loader reads of an ELF file, and prove that nothing else changed
    ///
    /// In the place of patchelf: all edits of one call are laid out together, written at once and verified by two
    /// readers before the file gets its name. The result survives strip; a file that cannot be edited without risk is
    /// refused with a reason, and left as it is. Edits are carried out in the order of this page, those of --plan
    /// first.
    #[command(
        after_help = "Exit codes: 0 done, or nothing to do; 2 wrong usage, or a file that was refused."
    )]
    ElfEdit(ElfEditArgs),
    /// Graft external libraries into wheels, correct their tags, and audit the result before it gets its name
    ///
    /// Takes the place of `auditwheel repair`, whose options keep their names and meaning. The wheel is read once; what
    /// has to be done is planned and judged by the gate before anything is written; members that the plan does not name
    /// are copied byte by byte; the result is verified, audited, and then renamed. Whatever fails on the way, nothing has
    /// changed. A wheel that needs nothing is copied as it is.
    ///
    /// This is the one command that looks at the machine: external libraries are looked for as its dynamic loader would,
    /// and the package database is asked who owns them.
    #[command(
        after_help = "Exit codes: 0 every wheel is repaired, or needed nothing; 1 a wheel cannot be repaired; 2 wrong \
                      usage, or an input or output that cannot be read or written (the other wheels are still repaired)."
    )]
    Repair(RepairArgs),
    /// Compare the report of a repair with the wheels
    ///
    /// Checks the digests that `abiaudit repair --report` wrote: of the repaired wheel, of every member that was written,
    /// and with --input that every other member is a copy of the original's.
    #[command(
        after_help = "Exit codes: 0 the report fits; 1 it does not; 2 wrong usage, or a file that cannot be read."
    )]
    VerifyReport(VerifyReportArgs),
    /// Make and use a toolchain that links for old systems
    ///
    /// Links against stubs of the target's shared libraries, and takes what is newer from a static archive, hidden: so
    /// the process keeps one libstdc++, the system's, however old. docs/toolchain.md explains the model and its limits.
    #[command(subcommand)]
    Toolchain(ToolchainCommand),
    /// List the rules
    Rules,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff), or write one for each command into a directory
    Man {
        /// Directory for abiaudit.1, abiaudit-check.1 and so on
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Print the reference of the command line as Markdown
    #[command(hide = true)]
    CliReference,
}

/// Inputs and settings that check and show share.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Wheels, directories (of wheels, an unpacked wheel or a site-packages) or ELF files; `-` reads a list from
    /// standard input, one path a line
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,

    /// Judge against this tag instead of the input's own, such as manylinux_2_28_x86_64
    #[arg(long, value_name = "TAG")]
    pub target: Option<String>,

    /// Take the configuration from this file instead of the nearest abiaudit.toml or pyproject.toml
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,

    /// Read no configuration file
    #[arg(long)]
    pub no_config: bool,

    /// Number of threads; the number of processors if not given
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Colours in the text
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub color: Color,

    /// No progress bar even on a terminal
    #[arg(long)]
    pub no_progress: bool,
}

/// `abiaudit check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Inputs
    #[command(flatten)]
    pub input: InputArgs,

    /// Form of the report
    #[arg(long, short = 'f', value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// Write the report to a file, and the text for people to standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Run only these rules: ids, names, or prefixes such as ABI1
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub select: Vec<String>,

    /// Do not run these rules
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub ignore: Vec<String>,

    /// Severity from which findings make the exit code 1
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub fail_on: Option<FailOn>,

    /// Report wheels larger than this, such as 100MB (PyPI's default limit)
    #[arg(long, value_name = "SIZE")]
    pub size_budget: Option<String>,

    /// What is compared
    #[command(flatten)]
    pub beside: BesideArgs,

    /// Only failing inputs and the summary
    #[arg(long, short = 'q', conflicts_with = "verbose")]
    pub quiet: bool,

    /// Infos and more evidence too
    #[arg(long, short = 'v')]
    pub verbose: bool,

    /// Do not fold long lists
    #[arg(long)]
    pub all: bool,
}

/// What inputs are looked at beside.
#[derive(Debug, Args)]
#[command(next_help_heading = "Processes and comparisons")]
pub struct BesideArgs {
    /// A further input that is installed beside and is not judged itself; repeat for more. Without --import, each input
    /// is simulated with all of these, once imported first and once last
    #[arg(long, value_name = "INPUT")]
    pub with: Vec<PathBuf>,

    /// Simulate a process that imports these modules in this order; two of them in both orders
    #[arg(long, value_name = "MODULES", value_delimiter = ',', conflicts_with = "trace")]
    pub import: Vec<String>,

    /// Simulate what a recorded run opened: the file that LD_DEBUG=files,scopes LD_DEBUG_OUTPUT=FILE wrote for the process
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Compare with this wheel, such as an earlier release
    #[arg(long, value_name = "WHEEL")]
    pub baseline: Option<PathBuf>,
}

/// `abiaudit show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Inputs
    #[command(flatten)]
    pub input: InputArgs,

    /// Form of the report
    #[arg(long, short = 'f', value_name = "FORMAT", value_enum, default_value_t = ShowFormat::Text)]
    pub format: ShowFormat,

    /// Do not fold long lists
    #[arg(long)]
    pub all: bool,
}

/// `abiaudit verify-report`
#[derive(Debug, Args)]
pub struct VerifyReportArgs {
    /// What `abiaudit repair --report` wrote
    #[arg(value_name = "REPORT")]
    pub report: PathBuf,

    /// The repaired wheel
    #[arg(value_name = "WHEEL")]
    pub wheel: PathBuf,

    /// The wheel as it was before the repair
    #[arg(long, value_name = "WHEEL")]
    pub input: Option<PathBuf>,
}

/// `abiaudit repair`
#[derive(Debug, Args)]
pub struct RepairArgs {
    /// Wheels
    #[arg(required = true, value_name = "WHEEL")]
    pub wheels: Vec<PathBuf>,

    /// Directory for the repaired wheels
    #[arg(long, short = 'w', value_name = "DIR", default_value = "wheelhouse")]
    pub wheel_dir: PathBuf,

    /// Put each repaired wheel in the place of its input
    #[arg(long, conflicts_with = "wheel_dir")]
    pub in_place: bool,

    /// Print what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Form of what is printed
    #[arg(long, short = 'f', value_name = "FORMAT", value_enum, default_value_t = PlanFormat::Text)]
    pub format: PlanFormat,

    /// What to mend
    #[arg(long, value_name = "MENDS", value_enum, value_delimiter = ',', default_value = "auto")]
    pub mend: Vec<Mend>,

    /// Wanted tag, such as manylinux_2_28 or manylinux_2_28_x86_64; auto is the oldest that the content honours
    #[arg(long, value_name = "TAG", env = "AUDITWHEEL_PLAT", default_value = "auto")]
    pub plat: String,

    /// No older tag beside the wanted one
    #[arg(long)]
    pub only_plat: bool,

    /// Leave the platform tags as they are
    #[arg(long)]
    pub no_update_tags: bool,

    /// Leave libraries outside whose soname, or path, matches this pattern (*, ?); repeat for more. What a required
    /// distribution is known to bring stays outside by itself
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,

    /// Take this library before any that a search finds, and graft it even if nothing needs it: plug-ins that are
    /// opened at run time. FILE=MEMBER puts it at that place under a name that is kept; repeat for more
    #[arg(long, value_name = "FILE[=MEMBER]")]
    pub include: Vec<String>,

    /// Take libraries from another wheel before any that a search finds; repeat for more
    #[arg(long, value_name = "WHEEL")]
    pub from_wheel: Vec<PathBuf>,

    /// Graft libraries whose soname matches this pattern under their own name; repeat for more
    #[arg(long, value_name = "PATTERN")]
    pub keep_name: Vec<String>,

    /// Search this tree instead of the machine, for wheels of any architecture
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,

    /// Search these directories, separated by colons, instead of LD_LIBRARY_PATH, the loader's cache and its default
    /// directories
    #[arg(long, value_name = "PATHS")]
    pub ldpaths: Option<String>,

    /// What the name of the directory of grafted libraries ends in, after the distribution's name
    #[arg(long, short = 'L', value_name = "SUFFIX", default_value = ".libs")]
    pub lib_sdir: String,

    /// Strip symbol tables and debug information from grafted libraries and edited objects
    #[arg(long)]
    pub strip: bool,

    /// Compression level of what is written anew
    #[arg(
        long, short = 'z', value_name = "LEVEL", env = "AUDITWHEEL_ZIP_COMPRESSION_LEVEL", default_value_t = 6,
        value_parser = clap::value_parser!(u32).range(0..=9)
    )]
    pub zip_compression_level: u32,

    /// Do not judge which processor level objects ask for
    #[arg(long)]
    pub disable_isa_ext_check: bool,

    /// Copy wheels without native code instead of failing
    #[arg(long)]
    pub allow_pure_python_wheel: bool,

    /// Accept findings of these rules in the result: ids, names, or prefixes
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub ignore: Vec<String>,

    /// Write what was done as in-toto statements, one a line, to be signed and kept with the wheels
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub report: Option<PathBuf>,

    /// Accepted for auditwheel's sake; the editor is built in
    #[arg(long, value_name = "PATCHER", env = "AUDITWHEEL_PATCHER", hide = true)]
    pub patcher: Option<String>,

    /// Take the configuration from this file instead of the nearest abiaudit.toml or pyproject.toml
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,

    /// Read no configuration file
    #[arg(long)]
    pub no_config: bool,

    /// Number of threads; the number of processors if not given
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// `abiaudit bind`
#[derive(Debug, Args)]
pub struct BindArgs {
    /// Wheels, directories (of wheels, an unpacked wheel or a site-packages) or ELF files; `-` reads a list from
    /// standard input, one path a line
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,

    /// A further input that is installed beside; repeat for more
    #[arg(long, value_name = "INPUT")]
    pub with: Vec<PathBuf>,

    /// Import these modules, in this order
    #[arg(long, value_name = "MODULES", value_delimiter = ',', conflicts_with = "trace")]
    pub import: Vec<String>,

    /// Open what a recorded run opened: the file that LD_DEBUG=files,scopes LD_DEBUG_OUTPUT=FILE wrote for the process
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Only references that leave the object or the distribution that they were built for
    #[arg(long, conflicts_with = "symbol")]
    pub unexpected: bool,

    /// Follow symbols whose name, mangled or not, contains this text: who defines them, who refers, who serves
    #[arg(long, value_name = "TEXT")]
    pub symbol: Option<String>,

    /// The order of imports (or of inputs): as given, or as given and reversed, with what differs
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Given, conflicts_with = "trace")]
    pub order: Order,

    /// Release of glibc or musl that the system has, such as 2.28; the newest known if not given
    #[arg(long, value_name = "RELEASE")]
    pub libc: Option<String>,

    /// Release of GCC whose runtime libraries the system has; the newest known if not given
    #[arg(long, value_name = "RELEASE")]
    pub gcc: Option<String>,

    /// Form of the report
    #[arg(long, short = 'f', value_name = "FORMAT", value_enum, default_value_t = BindFormat::Text)]
    pub format: BindFormat,

    /// Write the report to a file
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Fold nothing: long lists, and inline functions, templates and type information within one distribution
    #[arg(long)]
    pub all: bool,

    /// Colours in the text
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub color: Color,

    /// No progress bar even on a terminal
    #[arg(long)]
    pub no_progress: bool,
}

/// `abiaudit explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A rule, a platform tag, a version node, a symbol, or a library
    #[arg(required = true, value_name = "WHAT")]
    pub queries: Vec<String>,

    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// `abiaudit triage`
#[derive(Debug, Args)]
pub struct TriageArgs {
    /// The text; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Forms of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For a person
    Text,
    /// One JSON document a wheel, on a line of its own
    Json,
}

/// What a repair may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mend {
    /// Graft, and the mends of objects that can be proved to work: libstdcxx, glibc, rpath
    Auto,
    /// Graft external libraries, and correct the tags
    Graft,
    /// Correct the tags, and nothing else
    Retag,
    /// An exported static libstdc++ (ABI201, ABI203): share, hide or demote, the first that can be proved to work
    Libstdcxx,
    /// Switch the object's libstdc++ off and use the process's; what the target lacks stays, hidden
    Share,
    /// Hide every export but the entry points
    Hide,
    /// Make unique symbols weak
    Demote,
    /// Take older versions of glibc symbols that are newer than the target (ABI101)
    Glibc,
    /// Search libraries relative to the object only (ABI403, ABI404)
    Rpath,
    /// Drop segments without sections, which strip breaks files with (ABI503)
    Heal,
    /// Ask for no executable stack (ABI501)
    Execstack,
}

/// `abiaudit toolchain`
#[derive(Debug, Subcommand)]
pub enum ToolchainCommand {
    /// Make a toolchain from the files of the installed compiler
    ///
    /// Nothing is fetched. The directory is made beside, checked as verify does, and renamed: it is whole or not there.
    #[command(
        after_help = "Exit codes: 0 made; 1 it does not pass its own checks; 2 wrong usage, or the compiler lacks \
                            a file."
    )]
    Create(ToolchainCreateArgs),
    /// Check a toolchain: the regression tests of everything that links and still fails at run time
    #[command(after_help = "Exit codes: 0 sound; 1 a check failed; 2 no toolchain.")]
    Verify {
        /// The toolchain
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the variables and flags with which a build uses a toolchain
    Env(ToolchainEnvArgs),
    /// Copy a runtime so that it looks as old as a target: newer version nodes get other names
    ///
    /// The loader then refuses what an old system would refuse, with the same message:
    /// DIR/ld-linux-x86-64.so.2 --library-path DIR PROGRAM.
    MaskRuntime(MaskRuntimeArgs),
}

/// `abiaudit toolchain create`
#[derive(Debug, Args)]
pub struct ToolchainCreateArgs {
    /// The oldest systems that programs are to run on, such as manylinux_2_28_x86_64
    #[arg(long, value_name = "TAG")]
    pub target: String,

    /// The compiler that is to use it
    #[arg(long, value_name = "PROGRAM", default_value = "g++")]
    pub cxx: String,

    /// Where to put it
    #[arg(long, short = 'o', value_name = "DIR")]
    pub output: PathBuf,
}

/// `abiaudit toolchain env`
#[derive(Debug, Args)]
pub struct ToolchainEnvArgs {
    /// The toolchain
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// What builds
    #[arg(long = "for", value_name = "BUILDER", value_enum, default_value_t = Builder::Shell)]
    pub builder: Builder,

    /// Record each link in this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// `abiaudit toolchain mask-runtime`
#[derive(Debug, Args)]
pub struct MaskRuntimeArgs {
    /// The directories of the runtime: libc.so.6, libstdc++.so.6 and the loader
    #[arg(required = true, value_name = "LIBDIR")]
    pub libraries: Vec<PathBuf>,

    /// How old it is to look, such as manylinux_2_28_x86_64
    #[arg(long, value_name = "TAG")]
    pub target: String,

    /// Where to put the copies
    #[arg(long, short = 'o', value_name = "DIR")]
    pub output: PathBuf,
}

/// Build systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Builder {
    /// export lines for a POSIX shell
    Shell,
    /// GNU make and configure scripts
    Make,
    /// CMake
    Cmake,
    /// Meson
    Meson,
    /// pip with setuptools
    Setuptools,
    /// pip with scikit-build-core
    ScikitBuildCore,
    /// cibuildwheel, for pyproject.toml
    Cibuildwheel,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a person
    Text,
    /// Everything, schema docs/schema/abiaudit.report-1.schema.json
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for test reports
    Junit,
    /// GitHub Actions annotations and step summary
    Github,
    /// For a comment on a pull request
    Markdown,
    /// What `auditwheel show --json` prints, one document a wheel
    AuditwheelJson,
}

/// Forms of `show`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// For a person
    Text,
    /// As check's
    Json,
    /// What `auditwheel show --json` prints
    AuditwheelJson,
}

/// Orders of imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// As given
    Given,
    /// As given, and reversed
    Both,
}

/// Forms of `bind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BindFormat {
    /// For a person
    Text,
    /// Everything, schema docs/schema/abiaudit.bindings-1.schema.json
    Json,
    /// A graph for Graphviz
    Dot,
    /// A page that needs nothing but itself
    Html,
}

/// Severities to fail on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors only
    Error,
    /// Warnings too
    Warning,
    /// Anything
    Info,
}

/// `abiaudit elf-edit`
#[derive(Debug, Args)]
pub struct ElfEditArgs {
    /// Shared library or program
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Write the result to this file
    #[arg(long, short = 'o', value_name = "OUT", required_unless_present_any = ["in_place", "dry_run"])]
    pub output: Option<PathBuf>,

    /// Let the result take the place of the file
    #[arg(long, conflicts_with = "output")]
    pub in_place: bool,

    /// Write nothing, and say what would be written
    #[arg(long)]
    pub dry_run: bool,

    /// Form of what is said
    #[arg(long, short = 'f', value_name = "FORMAT", value_enum, default_value_t = EditFormat::Text)]
    pub format: EditFormat,

    /// Move the program headers to the end of the file if there is no other way; the result does not survive strip
    #[arg(long)]
    pub allow_phdr_move: bool,

    /// Edits as JSON, as --format json prints them: every kind, also those without an option here
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,

    /// Remove sections that are not loaded: debug information, or symbols too
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub strip: Option<StripLevel>,

    /// With --strip: keep what goes in this file, to which .gnu_debuglink then leads
    #[arg(long, value_name = "FILE", requires = "strip")]
    pub debug_file: Option<PathBuf>,

    /// Rename a needed library, and the versions that are needed of it
    #[arg(long, value_name = "OLD=NEW")]
    pub replace_needed: Vec<String>,

    /// Remove a needed library, and the versions that are needed of it
    #[arg(long, value_name = "LIBRARY")]
    pub remove_needed: Vec<String>,

    /// Add a needed library before the others, as patchelf does
    #[arg(long, value_name = "LIBRARY")]
    pub add_needed: Vec<String>,

    /// Add a needed library behind the others
    #[arg(long, value_name = "LIBRARY")]
    pub append_needed: Vec<String>,

    /// Put these needed libraries first, in this order
    #[arg(long, value_name = "LIBRARIES", value_delimiter = ',')]
    pub order_needed: Vec<String>,

    /// Set the name under which others need this library
    #[arg(long, value_name = "NAME", conflicts_with = "remove_soname")]
    pub set_soname: Option<String>,

    /// Remove that name
    #[arg(long)]
    pub remove_soname: bool,

    /// Set the search path: DT_RUNPATH, or DT_RPATH with --force-rpath; the other one goes
    #[arg(long, value_name = "PATH", conflicts_with = "remove_rpath")]
    pub set_rpath: Option<String>,

    /// Remove DT_RUNPATH and DT_RPATH
    #[arg(long)]
    pub remove_rpath: bool,

    /// Make the search path a DT_RPATH
    #[arg(long, conflicts_with = "remove_rpath")]
    pub force_rpath: bool,

    /// Rename a needed version
    #[arg(long, value_name = "LIBRARY:OLD=NEW")]
    pub rename_version: Vec<String>,

    /// Remove a needed version; its symbols are then asked for without version
    #[arg(long, value_name = "LIBRARY:VERSION")]
    pub remove_version: Vec<String>,

    /// Ask for a symbol in another version
    #[arg(long, value_name = "SYMBOL=LIBRARY:VERSION")]
    pub assign_version: Vec<String>,

    /// Rename a dynamic symbol; SYMBOL is NAME or NAME@VERSION
    #[arg(long, value_name = "SYMBOL=NAME")]
    pub rename_symbol: Vec<String>,

    /// Hide an exported symbol from other objects
    #[arg(long, value_name = "SYMBOL")]
    pub hide: Vec<String>,

    /// Make STB_GNU_UNIQUE symbols weak
    #[arg(long)]
    pub demote_unique: bool,

    /// Clear the executable stack
    #[arg(long)]
    pub clear_execstack: bool,

    /// Set the program interpreter
    #[arg(long, value_name = "PATH")]
    pub set_interpreter: Option<String>,

    /// Drop segments that nothing is left in, though nothing else is to be done
    #[arg(long)]
    pub heal: bool,
}

/// What `elf-edit --strip` removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StripLevel {
    /// Debug information
    Debug,
    /// Debug information and symbols that the loader does not use
    Symbols,
}

/// Forms of what `elf-edit` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EditFormat {
    /// For a person
    Text,
    /// Plan and layout, schema abiaudit.elf-edit/1
    Json,
}
