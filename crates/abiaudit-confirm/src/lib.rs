//! Runs wheels for real and compares what happens with what the simulation says.
//!
//! ```text
//! Environment  a fresh virtual environment with the wheels and nothing else
//! Probe        a C++ module of our own source, built on the spot
//! Case         the imports in one order, the way in which they are opened, the place of the probe among them
//! Runner       one process for each case: it imports, then asks the probes, each question in a child of its own
//! Happened     how it ended, and which answers were wrong
//! Predictor    the same case, simulated and judged: Prediction
//! confirm      all of it: inputs in, Confirmation out
//! bindings     simulated bindings beside those that ld.so makes
//! ```
//!
//! A crash is not the only symptom of two runtimes in one process. With the libstdc++ of GCC 12 and before, the streams
//! of the copy that was loaded second print nothing and the process ends with 0; so values are looked at, not only the
//! exit code.

pub mod bindings;
mod case;
mod child;
mod confirmation;
mod environment;
mod happened;
mod importable;
mod prediction;
mod probe;
mod run;
mod text;

pub use case::{Case, Mode, Place, Step};
pub use child::{ChildError, Ended, Stop};
pub use confirmation::{ConfirmError, Confirmation, Request, Run, SCHEMA, confirm};
pub use environment::{Environment, EnvironmentError};
pub use happened::{Checked, Failure, Happened, Identity};
pub use prediction::{Prediction, PredictionError, Predictor, Reason};
pub use probe::{FLAGS, MODULE_SOURCE, Probe, ProbeError, SOURCE, compile};
pub use run::{Limits, RunError, Runner};
pub use text::write as write_text;
