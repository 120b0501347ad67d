//! The verdict on an input and the rules that explain it; one file a rule.
//!
//! [`Audit`] puts a scanned [`Subject`](abiaudit_scan::Subject) before its platform: which objects count, how the
//! loader connects them, which libraries come from outside and who brings them, which tag the content honours
//! ([`Verdict`]) and what stands in the way of better ones. [`run`] lets the rules look at it.

mod audit;
mod baseline;
mod blockers;
mod demangle;
mod external;
mod finding;
mod lost_references;
mod nodes;
mod origin;
mod platform;
mod python;
mod references;
mod registry;
mod rule;
mod rules;
mod runtimes;
mod scopes;
mod settings;
mod suppress;
mod symbol_tables;
#[cfg(test)]
mod testing;
mod together;
mod verdict;

pub use abiaudit_detect::{Carries, Runtime};
pub use audit::{Audit, AuditObject, Role};
pub use baseline::Baseline;
pub use blockers::{Blockers, ForbiddenSymbol, LibraryBlocker, LibraryReason, SymbolBlocker, SymbolReason};
pub use demangle::demangle;
pub use external::{External, Origin};
pub use finding::{Evidence, Finding, Severity, Sink, Suppression};
pub use lost_references::{Loss, LostReference, LostReferences};
pub use platform::{Claim, Platform};
pub use python::{EntryPoint, Extension};
pub use references::{OpenReference, Outlook};
pub use registry::{RULES, UnknownRule, distance, find, is_selected, run, selects, validate};
pub use rule::Rule;
pub use settings::{Ignore, Settings};
pub use symbol_tables::since;
pub use together::{Beside, Meeting, Party, Simulated, meetings};
pub use verdict::{ByCriterion, ClaimVerdict, Step, Verdict};
