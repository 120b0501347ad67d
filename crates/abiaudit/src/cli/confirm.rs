//! The arguments of `abiaudit confirm`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Order;

/// `abiaudit confirm`
#[derive(Debug, Args)]
pub struct ConfirmArgs {
    /// Wheels, or directories of wheels; `-` reads a list from standard input, one path a line
    #[arg(required = true, value_name = "WHEEL")]
    pub inputs: Vec<PathBuf>,

    /// A further wheel that is installed, or a directory of wheels or of installed packages; repeat for more
    #[arg(long, value_name = "WHEEL|DIR")]
    pub with: Vec<PathBuf>,

    /// Import these modules, in this order; the packages of the wheels that have native code if not given
    #[arg(long, value_name = "MODULES", value_delimiter = ',')]
    pub import: Vec<String>,

    /// The order of imports: as given, or as given and reversed
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Given)]
    pub order: Order,

    /// How modules are opened
    #[arg(long, value_name = "MODE", value_enum, default_value_t = ConfirmMode::Local)]
    pub mode: ConfirmMode,

    /// Where the C++ probe is loaded, each place in a process of its own
    #[arg(long, value_name = "PLACES", value_enum, value_delimiter = ',',
          default_values_t = [ProbePlace::First, ProbePlace::Between, ProbePlace::Last])]
    pub probe: Vec<ProbePlace>,

    /// A Python expression that shall be true after the imports, such as 'mod.answer() == 42'; repeat for more
    #[arg(long, value_name = "EXPRESSION")]
    pub check: Vec<String>,

    /// Compare the simulated bindings with those of LD_DEBUG=bindings, too
    #[arg(long)]
    pub bindings: bool,

    /// The Python to make the environment with
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub python: PathBuf,

    /// The compiler of the probe
    #[arg(long, value_name = "COMPILER", env = "CXX", default_value = "c++")]
    pub compiler: String,

    /// Seconds that a process may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    pub timeout: u32,

    /// Address space that a process may take, such as 8GiB; not limited if not given
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// Form of the report
    #[arg(long, short = 'f', value_name = "FORMAT", value_enum, default_value_t = ConfirmFormat::Text)]
    pub format: ConfirmFormat,

    /// Write the report to a file
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Keep the environment and all files of the processes in this directory, which is new or empty
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,

    /// No progress bar even on a terminal
    #[arg(long)]
    pub no_progress: bool,
}

/// How modules are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfirmMode {
    /// With RTLD_LOCAL, as Python does
    Local,
    /// With RTLD_GLOBAL
    Global,
    /// Only the first with RTLD_GLOBAL
    FirstGlobal,
    /// Only the second with RTLD_GLOBAL
    SecondGlobal,
    /// With LD_PRELOAD=libstdc++.so.6
    Preload,
    /// Each of them in turn
    All,
}

/// Where the probe is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProbePlace {
    /// Before the first import
    First,
    /// After each import but the last
    Between,
    /// After the last import
    Last,
    /// In no process
    None,
}

/// Forms of `confirm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfirmFormat {
    /// For a person
    Text,
    /// Everything
    Json,
}
