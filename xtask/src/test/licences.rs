//! Licences of dependencies: an SPDX expression must be satisfied by licences of this list.

use super::metadata::Metadata;

/// Licences whose terms a binary distribution under Apache-2.0 OR MIT can keep.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    // Copyleft of single files: it asks for the source of changed files of the dependency, and we change none.
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    // bzip2 and libbz2-rs-sys: BSD-like, of Julian Seward.
    "bzip2-1.0.6",
];

/// One line for each dependency without an allowed licence.
pub fn complaints(metadata: &Metadata) -> Vec<String> {
    let dependencies = metadata.packages.iter().filter(|package| package.source.is_some());
    dependencies
        .filter(|package| !package.license.as_deref().is_some_and(is_allowed))
        .map(|package| {
            let licence = package.license.as_deref().unwrap_or("none given");
            format!("{} {}: licence {licence}", package.name, package.version)
        })
        .collect()
}

/// SPDX expressions (annex D of the specification): `OR` binds weaker than `AND`; a slash is an old way to write `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    either(&mut words).unwrap_or(false) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>) -> Option<bool> {
    let mut allowed = both(words)?;
    while words.next_if_eq(&"OR").is_some() {
        allowed |= both(words)?;
    }
    Some(allowed)
}

fn both(words: &mut Words<'_>) -> Option<bool> {
    let mut allowed = single(words)?;
    while words.next_if_eq(&"AND").is_some() {
        allowed &= single(words)?;
    }
    Some(allowed)
}

fn single(words: &mut Words<'_>) -> Option<bool> {
    let first = words.next()?;
    if first == "(" {
        let allowed = either(words)?;
        return (words.next() == Some(")")).then_some(allowed);
    }
    let licence = match words.next_if_eq(&"WITH") {
        Some(_) => format!("{first} WITH {}", words.next()?),
        None => first.to_owned(),
    };
    Some(ALLOWED.contains(&licence.as_str()))
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn expressions() {
        for expression in
            ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR GPL-2.0-only) AND Unicode-3.0"]
        {
            assert!(is_allowed(expression), "{expression}");
        }
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only"));
        for expression in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "", "MIT MIT", "(MIT", "Apache-2.0 WITH x"]
        {
            assert!(!is_allowed(expression), "{expression}");
        }
    }
}
