//! Who compiled the parts of an object.
//!
//! `.comment` has one text for each compiler that made a part (GCC's `.ident`); linkers merge equal ones. Rust's and
//! Go's tools leave other traces. What DWARF says of each unit is another question ([`crate::producers`]): it is in whole
//! files only.

use crate::evidence::Evidence;
use crate::markers::Speaks;
use crate::object_facts::{ObjectFacts, evidence_of};

/// Which compiler or linker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompilerKind {
    /// GNU.
    Gcc,
    /// LLVM's, and compilers built on it that keep its text.
    Clang,
    /// Intel's, on LLVM or of its own.
    Intel,
    /// Rust's.
    Rustc,
    /// Go's linker.
    Go,
    /// A linker.
    Linker,
    /// Any other text.
    Other,
}

/// One compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    /// Which.
    pub kind: CompilerKind,
    /// Its version, as it writes it: `13.3.1`.
    pub version: Option<String>,
    /// The text that says so.
    pub text: String,
    /// The text in the file, where it did not come from `.comment`.
    pub evidence: Option<Evidence>,
}

pub(crate) fn detect(facts: &ObjectFacts<'_>) -> Vec<Compiler> {
    let mut all: Vec<Compiler> = facts.object.sections.comments.iter().map(|text| of_comment(text)).collect();
    for (speaks, kind) in [(Speaks::Rustc, CompilerKind::Rustc), (Speaks::Go, CompilerKind::Go)] {
        let known = all.iter().any(|compiler| compiler.kind == kind);
        if let Some(found) = facts.found(speaks).next().filter(|_| !known) {
            let evidence = Some(evidence_of(found));
            all.push(Compiler { kind, version: None, text: found.text.clone(), evidence });
        }
    }
    all
}

fn of_comment(text: &str) -> Compiler {
    let starts = [
        ("GCC: ", CompilerKind::Gcc),
        ("Linker: ", CompilerKind::Linker),
        ("rustc ", CompilerKind::Rustc),
        ("Intel", CompilerKind::Intel),
    ];
    let kind = starts.into_iter().find(|(start, _)| text.starts_with(start)).map(|(_, kind)| kind);
    let kind = kind.unwrap_or(if text.contains("clang") { CompilerKind::Clang } else { CompilerKind::Other });
    Compiler { kind, version: version_in(text), text: text.to_owned(), evidence: None }
}

/// The first word that looks like a version and stands outside of parentheses: GCC writes the distributor's name and
/// version in them. (`GCC: (GNU) 8.5.0 20210514 (Red Hat 8.5.0-4)`)
fn version_in(text: &str) -> Option<String> {
    let mut depth = 0usize;
    for word in text.split_ascii_whitespace() {
        let outside = depth == 0 && !word.starts_with('(');
        depth += word.matches('(').count();
        depth = depth.saturating_sub(word.matches(')').count());
        let is_version = word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
        if outside && is_version {
            return Some(word.trim_end_matches([',', ')']).to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_read() {
        for (text, kind, version) in [
            ("GCC: (GNU) 8.5.0 20210514 (Red Hat 8.5.0-4)", CompilerKind::Gcc, Some("8.5.0")),
            ("GCC: (Debian 12.2.0-14+deb12u1) 12.2.0", CompilerKind::Gcc, Some("12.2.0")),
            ("clang version 14.0.6", CompilerKind::Clang, Some("14.0.6")),
            ("Ubuntu clang version 18.1.3 (1ubuntu1)", CompilerKind::Clang, Some("18.1.3")),
            ("Linker: LLD 17.0.6", CompilerKind::Linker, Some("17.0.6")),
            ("rustc version 1.80.0 (051478957 2024-07-21)", CompilerKind::Rustc, Some("1.80.0")),
            (
                "Intel(R) oneAPI DPC++/C++ Compiler 2024.2.0 (2024.2.0.20240602)",
                CompilerKind::Intel,
                Some("2024.2.0"),
            ),
            ("something", CompilerKind::Other, None),
        ] {
            let compiler = of_comment(text);
            assert_eq!((compiler.kind, compiler.version.as_deref()), (kind, version), "{text}");
        }
    }
}
