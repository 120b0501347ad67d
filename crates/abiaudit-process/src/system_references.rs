//! `policies/system-references.toml`: what libraries of the system ask the loader for themselves.

use std::sync::LazyLock;

use abiaudit_loader::binding::SystemReference;
use serde::Deserialize;

/// What is listed of a library.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    soname: String,
    #[allow(dead_code, reason = "for the reader of the table")]
    source: String,
    /// References that it makes, to its own exports too.
    #[serde(default)]
    pub(crate) references: Vec<Named>,
    /// What it exports, if no table of `policies/symbols` says so.
    #[serde(default)]
    pub(crate) exports: Vec<Named>,
}

/// A symbol, at a version if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Named {
    pub(crate) symbol: String,
    pub(crate) version: Option<String>,
}

impl From<String> for Named {
    fn from(text: String) -> Self {
        match text.split_once('@') {
            Some((symbol, version)) => Self { symbol: symbol.to_owned(), version: Some(version.to_owned()) },
            None => Self { symbol: text, version: None },
        }
    }
}

impl Named {
    pub(crate) fn as_reference(&self) -> SystemReference<'_> {
        SystemReference { symbol: &self.symbol, version: self.version.as_deref() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    library: Vec<Listed>,
}

/// What is listed of the library of this name.
pub(crate) fn of(soname: &str) -> Option<&'static Listed> {
    static TABLE: LazyLock<Vec<Listed>> = LazyLock::new(|| {
        let table: Result<Table, _> =
            toml::from_str(include_str!("../../../policies/system-references.toml"));
        table.expect("the table is part of the program, and a test reads it").library
    });
    TABLE.iter().find(|listed| listed.soname == soname)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_what_predicates_ask_for() {
        let has = |soname: &str, symbol: &str| {
            of(soname).is_some_and(|listed| listed.references.iter().any(|named| named.symbol == symbol))
        };
        assert!(has("libstdc++.so.6", "_ZNKSt6locale2id5_M_idEv"));
        assert!(has("libstdc++.so.6", "_ZNSt5ctypeIcE2idE"));
        assert!(has("libstdc++.so.6", "__once_proxy"));
        assert!(has("libgcc_s.so.1", "_Unwind_SetGR"));
        let gomp = of("libgomp.so.1").expect("libgomp");
        let parallel = Named { symbol: "GOMP_parallel".to_owned(), version: Some("GOMP_4.0".to_owned()) };
        assert!(gomp.exports.contains(&parallel));
        assert!(of("libX11.so.6").is_none());
    }
}
