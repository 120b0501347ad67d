//! What a target system offers: libraries, version nodes, symbols.
//!
//! A platform tag is a promise: a wheel tagged `manylinux_2_28_x86_64` runs on every mainstream system with
//! glibc 2.28 or newer ([PEP 600](https://peps.python.org/pep-0600/)). A [`Target`] says what the oldest of
//! those systems has. The facts are the TOML files under `policies/`, compiled in as static tables by the build
//! script; `policies/sources.md` says where each comes from.
//!
//! ```
//! use abiaudit_policy::{LibraryVerdict, NodeVerdict, PolicySet};
//!
//! let target = PolicySet::builtin().target("manylinux_2_28_x86_64").unwrap();
//! assert_eq!(target.allows_node("GLIBC_2.28"), NodeVerdict::Allowed);
//! assert_eq!(
//!     target.allows_node("GLIBCXX_3.4.26"),
//!     NodeVerdict::TooNew { ceiling: Some("3.4.24".into()) },
//! );
//! assert_eq!(target.library("libgomp.so.1"), LibraryVerdict::NotAllowed);
//! ```

mod arch;
mod data;
mod distributions;
pub mod explain;
mod family;
mod glob;
mod libc;
mod overlay;
mod policy_set;
mod providers;
pub mod symbols;
mod target;

pub use arch::{Arch, UnknownArch};
pub use distributions::{Distribution, Distributions, distributions};
pub use family::{Node, compare_versions};
pub use glob::matches as glob_matches;
pub use libc::Libc;
pub use overlay::{Action, CeilingRule, LibraryRule, Overlay, OverlayError};
pub use policy_set::{PolicySet, UnknownTarget, WhyUnknown};
pub use providers::{
    Accepted, Provider, ProviderClass, Providers, Scheme, declaration_keys, normalize_name, providers,
};
pub use target::{LibraryVerdict, NodeVerdict, Target};
