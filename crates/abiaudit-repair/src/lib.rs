//! Repairs wheels: external libraries are grafted, dependants rewritten, tags corrected.
//!
//! ```text
//! prepare   reads a wheel once and makes a Plan, judged by the gate on facts as they will be
//! Plan      what is to be done, as data: text or JSON
//! write     carries it out in one transaction; the result is verified and judged again before it gets its name
//! ```
//!
//! Rules of the crate:
//! * The input is never changed, and nothing half-written ever has a wheel's name.
//! * What the plan does not name is copied byte by byte.
//! * This is the one crate that looks at the machine, and only for libraries and the packages that own them.

mod closure;
mod edit;
mod error;
mod facts;
pub mod machine;
mod mend;
mod names;
mod options;
pub mod packages;
mod plan;
mod planner;
mod report;
mod sbom;
mod script;
mod tags;
mod transaction;

pub use abiaudit_mend::Method;
pub use error::{MissingLibrary, RepairError};
pub use mend::MemberMend;
pub use options::{Include, Mend, Options};
pub use plan::{Dropped, Graft, LicenceFile, MemberEdit, Plan, SCHEMA, ScriptMove, TagChange};
pub use report::{Mismatch, PREDICATE_TYPE, Predicate, Resource, STATEMENT_TYPE, Statement, Tool};
pub use transaction::{Control, Prepared, Repaired, prepare};
