//! What an audit found, as plain data, and the forms in which it is handed on.
//!
//! [`model`] is the data: the JSON contract `abiaudit.report/1`. Everything else renders it:
//!
//! | module | for |
//! |---|---|
//! | [`text`] | a person at a terminal (`abiaudit check`) |
//! | [`show`] | a person who asks why (`abiaudit show`): facts, verdict, ladder |
//! | [`json`] | programs; the schema is committed under `docs/schema/` |
//! | [`sarif`] | code scanning (SARIF 2.1.0 within GitHub's limits) |
//! | [`junit`] | CI servers that show test results |
//! | [`github`] | GitHub Actions annotations and step summary |
//! | [`markdown`] | pull request comments |
//! | [`auditwheel`] | programs written for `auditwheel show --json` |
//!
//! [`bindings`] is another report with a contract of its own: who serves whom in a process (`abiaudit bind`).
//!
//! The crate knows no ELF, wheel, policy or rule: the command converts its audit into the model. It reads no clock,
//! no environment and no terminal; what depends on them comes in through [`RenderOptions`].
//!
//! Names, symbols and messages come from files that nobody vouches for. Every renderer but JSON passes them through
//! [`escape::visible`], so that a file cannot steer a terminal, forge a line or reorder text; JSON and auditwheel-json
//! carry them unchanged, escaped as JSON demands.

pub mod auditwheel;
pub mod bindings;
pub mod escape;
pub mod github;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod model;
pub mod sarif;
pub mod show;
pub mod text;

mod grouping;
mod headline;
mod layout;
mod options;

pub use options::{Format, RenderOptions, RuleInfo, Verbosity, render};
