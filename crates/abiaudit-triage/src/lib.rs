//! Names known failures of native code in Python processes, from what people paste into bug reports: a backtrace of
//! gdb, a dump of faulthandler, an error of the dynamic loader, a traceback, the log of a CI job.
//!
//! [`triage`] reads a text once, line by line, in memory that does not grow with it, and answers with a
//! [`Diagnosis`]: which [`SIGNATURES`] were seen, on which lines, what they mean, which rules of abiaudit prove them
//! on given wheels and what mends them. It looks at the text only and runs nothing.
//!
//! A signature is a row of a table ([`Signature`]); how it is recognised is data too, either patterns on messages
//! or a predicate on the frames of one stack. Addresses, ANSI colours, the prefixes that CI services put before
//! lines, and wrapping by terminals do not matter.

mod diagnosis;
mod scanner;
mod signature;
mod signatures;
mod stack;
mod text;

pub use diagnosis::{CheckAdvice, Diagnosis, Evidence, Recognised};
pub use scanner::triage;
pub use signature::{Certainty, Check, Signature};
pub use signatures::SIGNATURES;
pub use text::{Error, MAX_LINE};
