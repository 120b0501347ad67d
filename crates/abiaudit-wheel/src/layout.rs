//! Where an installer puts a member (binary distribution format, "The .data directory").

/// Where a member goes on installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// The root of the archive: into purelib or platlib, as `Root-Is-Purelib` says.
    Root,
    /// `*.data/purelib`.
    Purelib,
    /// `*.data/platlib`.
    Platlib,
    /// `*.data/scripts`.
    Scripts,
    /// `*.data/headers`.
    Headers,
    /// `*.data/data`: relative to the environment's prefix.
    Data,
    /// `*.data/` and anything else; installers fail or ignore it.
    UnknownData,
    /// Inside a top-level `*.dist-info`.
    DistInfo,
}

/// Classifies a member name; the second part is the path within its scheme.
#[must_use]
pub fn classify(member: &str) -> (Scheme, &str) {
    let Some((top, rest)) = member.split_once('/') else { return (Scheme::Root, member) };
    if top.ends_with(".dist-info") {
        return (Scheme::DistInfo, rest);
    }
    // `name-version.data`; a package may be called `x.data` only without the hyphen.
    if !(top.ends_with(".data") && top.contains('-')) {
        return (Scheme::Root, member);
    }
    let (key, path) = rest.split_once('/').unwrap_or((rest, ""));
    let scheme = match key {
        "purelib" => Scheme::Purelib,
        "platlib" => Scheme::Platlib,
        "scripts" => Scheme::Scripts,
        "headers" => Scheme::Headers,
        "data" => Scheme::Data,
        _ => return (Scheme::UnknownData, rest),
    };
    (scheme, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes() {
        assert_eq!(classify("pkg/mod.so"), (Scheme::Root, "pkg/mod.so"));
        assert_eq!(classify("mod.so"), (Scheme::Root, "mod.so"));
        assert_eq!(classify("h-1.data/purelib/mod.so"), (Scheme::Purelib, "mod.so"));
        assert_eq!(classify("h-1.data/platlib/a/mod.so"), (Scheme::Platlib, "a/mod.so"));
        assert_eq!(classify("h-1.data/scripts/ninja"), (Scheme::Scripts, "ninja"));
        assert_eq!(classify("h-1.data/headers/h.h"), (Scheme::Headers, "h.h"));
        assert_eq!(classify("h-1.data/data/lib/libx.so"), (Scheme::Data, "lib/libx.so"));
        assert_eq!(classify("h-1.data/other/x"), (Scheme::UnknownData, "other/x"));
        assert_eq!(classify("h-1.dist-info/WHEEL"), (Scheme::DistInfo, "WHEEL"));
        // Folder names elsewhere mean nothing.
        assert_eq!(classify("pkg/purelib/mod.so"), (Scheme::Root, "pkg/purelib/mod.so"));
        assert_eq!(classify("my.data/purelib/mod.so"), (Scheme::Root, "my.data/purelib/mod.so"));
    }
}
