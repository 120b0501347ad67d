//! `policies/preloads.toml`: what packages open through `ctypes` while they are imported.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::site::Site;

/// A library that a package opens itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preload {
    /// The module that does it.
    pub module: String,
    /// The module before which it is done; without it, it is done at the end of `module`.
    pub before: Option<String>,
    /// Path below `site-packages`. One `*` in a component stands for any text.
    pub file: String,
    /// `RTLD_GLOBAL`
    #[serde(default)]
    pub global: bool,
    /// Where this can be read.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    preload: Vec<Preload>,
}

/// What the program knows, in the order of the file.
pub fn preloads() -> &'static [Preload] {
    static TABLE: LazyLock<Vec<Preload>> = LazyLock::new(|| {
        let table: Result<Table, _> = toml::from_str(include_str!("../../../policies/preloads.toml"));
        table.expect("the table is part of the program, and a test reads it").preload
    });
    &TABLE
}

impl Preload {
    /// It is done right before this module is started.
    pub fn is_before(&self, module: &str) -> bool {
        self.before.as_deref() == Some(module)
    }

    /// It is done when this module's own code has run.
    pub fn is_after(&self, module: &str) -> bool {
        self.before.is_none() && self.module == module
    }

    /// The file of the site that it means: the first by path.
    pub(crate) fn file_of(&self, site: &Site<'_>) -> Option<usize> {
        let Some((fixed, _)) = self.file.split_once('*') else {
            return site.file_below(&self.file);
        };
        let mut paths = site.paths_with(fixed).filter(|path| matches(&self.file, path));
        paths.find_map(|path| site.file_below(path))
    }
}

/// Component by component; `*` stands for any text within one.
fn matches(pattern: &str, path: &str) -> bool {
    let component = |(pattern, part): (&str, &str)| match pattern.split_once('*') {
        None => pattern == part,
        Some((head, tail)) => {
            part.len() >= head.len() + tail.len() && part.starts_with(head) && part.ends_with(tail)
        }
    };
    pattern.split('/').count() == path.split('/').count()
        && pattern.split('/').zip(path.split('/')).all(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        assert!(preloads().len() > 2);
        for preload in preloads() {
            assert!(preload.source.len() > 10, "{preload:?}");
            assert!(preload.file.split('/').all(|part| part.matches('*').count() < 2), "{preload:?}");
            assert!(preload.file.contains(".so"), "{preload:?}");
        }
        let torch = |p: &&Preload| p.before.as_deref() == Some("torch._C") && p.global;
        assert_eq!(preloads().iter().filter(torch).count(), 1);
    }

    #[test]
    fn stars_stay_within_a_component() {
        assert!(matches("a/lib*.so", "a/libx.so"));
        assert!(!matches("a/lib*.so", "a/lib/x.so"));
        assert!(!matches("a/lib.so*.so", "a/lib.so"));
        assert!(matches("n/*/lib/l.so", "n/m/lib/l.so"));
    }
}
