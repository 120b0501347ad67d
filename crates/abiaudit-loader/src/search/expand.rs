//! Search path entries: dynamic string tokens and the directories that they stand for.

use crate::search::Libc;

/// The dynamic entry that a search path comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathTag {
    /// `DT_RPATH`
    Rpath,
    /// `DT_RUNPATH`
    Runpath,
}

/// What a search path entry starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// The directory of the object: starts with `$ORIGIN` or `${ORIGIN}`.
    Origin,
    /// The root of the file system.
    Absolute,
    /// The working directory of the process, whatever that is.
    Relative,
    /// Nothing: glibc takes the working directory, musl skips it.
    Empty,
}

/// One entry of a `DT_RPATH` or `DT_RUNPATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchEntry {
    /// As the file has it, before expansion.
    pub raw: String,
    /// Where it stands.
    pub tag: PathTag,
    /// What it starts from.
    pub kind: EntryKind,
    /// False if the loader ignores it: `DT_RPATH` beside `DT_RUNPATH`, or a token that it cannot expand.
    pub effective: bool,
    /// The absolute directory that it stands for, without `.` and `..`. With `$LIB` or `$PLATFORM` the first of the
    /// [candidates](Self::candidates). `None` if it is relative, empty, not effective or longer than a path can be.
    pub normalised: Option<String>,
    /// Every directory that it stands for on some system: `$LIB` and `$PLATFORM` differ between distributions and
    /// processors.
    pub candidates: Vec<String>,
}

/// Longest path that Linux opens, in bytes (`PATH_MAX`).
const PATH_MAX: usize = 4096;

/// What the tokens of one object stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens<'a> {
    /// `$ORIGIN`: the directory of the object.
    pub(crate) origin: &'a str,
    /// `$LIB`: glibc's `DL_DST_LIB`, which is `lib64` upstream on most 64-bit machines, `lib/<triplet>` on Debian and
    /// its children, `lib` elsewhere.
    pub(crate) lib: &'static [&'static str],
    /// `$PLATFORM`: `AT_PLATFORM` of the kernel, which glibc replaces on some processors
    /// (`sysdeps/x86/cpu-features.c`). Without one, entries that use the token are ignored.
    pub(crate) platform: &'static [&'static str],
}

impl<'a> Tokens<'a> {
    /// For an object in `origin` whose platform tag ends in `arch`.
    pub(crate) fn new(origin: &'a str, arch: Option<&str>) -> Self {
        let (lib, platform): (&[&str], &[&str]) = match arch {
            Some("x86_64") => (&["lib64", "lib/x86_64-linux-gnu", "lib"], &["haswell", "xeon_phi", "x86_64"]),
            Some("i686") => (&["lib", "lib/i386-linux-gnu", "lib32"], &["i686", "i586", "i386"]),
            Some("aarch64") => (&["lib64", "lib/aarch64-linux-gnu", "lib"], &["aarch64"]),
            Some("armv7l") => (&["lib", "lib/arm-linux-gnueabihf"], &["v7l", "v8l"]),
            Some("ppc64le") => {
                (&["lib64", "lib/powerpc64le-linux-gnu", "lib"], &["power8", "power9", "power10", "power11"])
            }
            Some("ppc64") => (
                &["lib64", "lib/powerpc64-linux-gnu", "lib"],
                &["power7", "power8", "power9", "power10", "power11"],
            ),
            Some("s390x") => (
                &["lib64", "lib/s390x-linux-gnu", "lib"],
                &["z900", "z990", "z9-109", "z10", "z196", "zEC12", "z13", "z14", "z15", "z16", "z17"],
            ),
            Some("riscv64") => (&["lib64/lp64d", "lib/riscv64-linux-gnu", "lib64", "lib"], &[]),
            Some("loongarch64") => (&["lib64", "lib/loongarch64-linux-gnu", "lib"], &["loongarch"]),
            _ => (&["lib64", "lib"], &[]),
        };
        Self { origin, lib, platform }
    }

    /// All that `input` can stand for with glibc (`_dl_dst_substitute`), in the order of the tables. Nothing if a
    /// token has no value or the result is longer than a path can be.
    pub(crate) fn substitute(&self, input: &str) -> Vec<String> {
        if !input.contains('$') {
            return if input.len() <= PATH_MAX { vec![input.to_owned()] } else { Vec::new() };
        }
        let used = |token| tokens_in(input).any(|(_, found, _)| found == token);
        let platforms = if used(Token::Platform) { self.platform } else { &[""] };
        let libs = if used(Token::Lib) { self.lib } else { &[""] };
        let mut all = Vec::with_capacity(platforms.len() * libs.len());
        for platform in platforms {
            for lib in libs {
                let value = |token| match token {
                    Token::Origin => self.origin,
                    Token::Platform => platform,
                    Token::Lib => lib,
                };
                all.extend(replace(input, value));
            }
        }
        all
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Origin,
    Platform,
    Lib,
}

const TOKENS: [(&str, Token); 3] =
    [("ORIGIN", Token::Origin), ("PLATFORM", Token::Platform), ("LIB", Token::Lib)];

/// The token at the start of `text`, which follows a `$`, and its length: `NAME` up to the first byte that is no
/// letter, digit or underscore, or `{NAME}` (`is_dst`; gABI chapter 5, "Substitution Sequences").
fn token(text: &str) -> Option<(Token, usize)> {
    let name = text.strip_prefix('{').unwrap_or(text);
    let curly = name.len() < text.len();
    TOKENS.into_iter().find_map(|(spelling, token)| {
        let rest = name.strip_prefix(spelling)?;
        let ends = match rest.bytes().next() {
            Some(next) if curly => next == b'}',
            Some(next) => !(next.is_ascii_alphanumeric() || next == b'_'),
            None => !curly,
        };
        ends.then_some((token, spelling.len() + if curly { 2 } else { 0 }))
    })
}

/// Position of the `$`, token, and length without the `$` of all tokens of a string.
fn tokens_in(input: &str) -> impl Iterator<Item = (usize, Token, usize)> {
    input.match_indices('$').filter_map(|(at, _)| {
        let (token, length) = token(input.get(at + 1..)?)?;
        Some((at, token, length))
    })
}

fn replace<'v>(input: &str, value: impl Fn(Token) -> &'v str) -> Option<String> {
    let mut output = String::with_capacity(input.len());
    let mut copied = 0;
    for (at, token, length) in tokens_in(input) {
        output.push_str(input.get(copied..at)?);
        output.push_str(value(token));
        copied = at + 1 + length;
        if output.len() > PATH_MAX {
            return None;
        }
    }
    output.push_str(input.get(copied..)?);
    (output.len() <= PATH_MAX).then_some(output)
}

/// The entries of a search path in order, with their byte offsets in it (glibc `fillin_rpath`; musl `fixup_rpath` and
/// `path_open`). Made one by one: a path of colons has many more bytes as entries than as text.
pub(crate) fn entries<'p>(
    path: &'p str,
    tag: PathTag,
    libc: Libc,
    tokens: &'p Tokens<'_>,
) -> impl Iterator<Item = (u32, SearchEntry)> + 'p {
    let expands = libc == Libc::Glibc || musl_expands(path);
    let raw = if path.is_empty() { None } else { Some(path.split(move |c| is_separator(c, libc))) };
    raw.into_iter().flatten().scan(0, move |next, raw| {
        let offset = *next;
        *next += raw.len() as u32 + 1;
        let entry = match libc {
            Libc::Glibc => glibc_entry(raw, tag, tokens),
            Libc::Musl => musl_entry(raw, tag, expands, tokens),
        };
        Some((offset, entry))
    })
}

/// The raw text of the entry at a byte offset of a search path.
pub(crate) fn raw_entry(path: &str, offset: u32, libc: Libc) -> &str {
    let rest = path.get(offset as usize..).unwrap_or("");
    rest.split(|c| is_separator(c, libc)).next().unwrap_or("")
}

fn is_separator(c: char, libc: Libc) -> bool {
    c == ':' || (libc == Libc::Musl && c == '\n')
}

fn glibc_entry(raw: &str, tag: PathTag, tokens: &Tokens<'_>) -> SearchEntry {
    let expanded = tokens.substitute(raw);
    let origin = matches!(tokens_in(raw).next(), Some((0, Token::Origin, _)));
    entry(raw, tag, origin, true, &expanded)
}

fn musl_entry(raw: &str, tag: PathTag, expands: bool, tokens: &Tokens<'_>) -> SearchEntry {
    let origin = raw.starts_with("$ORIGIN") || raw.starts_with("${ORIGIN}");
    let mut expanded = Vec::new();
    let spellings = raw.matches('$').count();
    if expands && raw.len().saturating_add(spellings.saturating_mul(tokens.origin.len())) <= PATH_MAX {
        expanded.push(raw.replace("${ORIGIN}", tokens.origin).replace("$ORIGIN", tokens.origin));
    }
    entry(raw, tag, origin, expands && !raw.is_empty(), &expanded)
}

/// musl drops the whole path if any `$` in it is not that of `$ORIGIN`.
fn musl_expands(path: &str) -> bool {
    path.split('$').skip(1).all(|rest| rest.starts_with("ORIGIN") || rest.starts_with("{ORIGIN}"))
}

fn entry(raw: &str, tag: PathTag, origin: bool, effective: bool, expanded: &[String]) -> SearchEntry {
    let absolute = |path: &&String| path.starts_with('/');
    let kind = if raw.is_empty() {
        EntryKind::Empty
    } else if origin {
        EntryKind::Origin
    } else if expanded.iter().any(|path| absolute(&path)) || raw.starts_with('/') {
        EntryKind::Absolute
    } else {
        EntryKind::Relative
    };
    let candidates: Vec<String> = expanded.iter().filter(absolute).map(|path| normalise(path)).collect();
    let effective = effective && (raw.is_empty() || !expanded.is_empty());
    SearchEntry {
        raw: raw.to_owned(),
        tag,
        kind,
        effective,
        normalised: candidates.first().cloned(),
        candidates,
    }
}

/// An absolute path without empty, `.` and `..` components, by text alone.
pub(crate) fn normalise(path: &str) -> String {
    let mut components = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                components.pop();
            }
            name => components.push(name),
        }
    }
    format!("/{}", components.join("/"))
}

/// Directory and file name of a path: `("/a/b", "c")` of `/a/b/c`.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((directory, name)) => (directory, name),
        None => ("", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glibc(path: &str) -> Vec<SearchEntry> {
        let tokens = Tokens::new("/p/pkg", Some("x86_64"));
        entries(path, PathTag::Runpath, Libc::Glibc, &tokens).map(|(_, entry)| entry).collect()
    }

    fn musl(path: &str) -> Vec<SearchEntry> {
        let tokens = Tokens::new("/p/pkg", Some("x86_64"));
        entries(path, PathTag::Runpath, Libc::Musl, &tokens).map(|(_, entry)| entry).collect()
    }

    fn directories(entries: &[SearchEntry]) -> Vec<&str> {
        entries.iter().flat_map(|e| &e.candidates).map(String::as_str).collect()
    }

    #[test]
    fn origin_in_both_spellings_and_anywhere() {
        assert_eq!(
            directories(&glibc("$ORIGIN/../x.libs:${ORIGIN}:/a$ORIGIN")),
            ["/p/x.libs", "/p/pkg", "/a/p/pkg"]
        );
        let kinds: Vec<_> = glibc("$ORIGIN:${ORIGIN}/a:/a/$ORIGIN").iter().map(|e| e.kind).collect();
        assert_eq!(kinds, [EntryKind::Origin, EntryKind::Origin, EntryKind::Absolute]);
    }

    #[test]
    fn a_token_ends_where_an_identifier_ends() {
        for raw in ["$ORIGINAL/x", "$ORIGIN_/x", "${ORIGIN/x", "$origin/x", "$$", "$"] {
            let entry = &glibc(raw)[0];
            assert_eq!((entry.kind, &entry.normalised), (EntryKind::Relative, &None), "{raw}");
        }
        assert_eq!(directories(&glibc("$ORIGIN-x:$ORIGIN$ORIGIN")), ["/p/pkg-x", "/p/pkg/p/pkg"]);
        // musl compares no further than the word.
        assert_eq!(directories(&musl("$ORIGINAL/x")), ["/p/pkgAL/x"]);
    }

    #[test]
    fn lib_and_platform_have_candidates() {
        let lib = glibc("$ORIGIN/$LIB");
        assert_eq!(directories(&lib), ["/p/pkg/lib64", "/p/pkg/lib/x86_64-linux-gnu", "/p/pkg/lib"]);
        assert_eq!(glibc("$ORIGIN/$LIB/$LIB/${PLATFORM}")[0].candidates.len(), 9);
        assert_eq!(glibc("$LIB")[0].kind, EntryKind::Relative);
        let riscv = Tokens::new("/p", Some("riscv64"));
        let (_, entry) = entries("/x/$PLATFORM", PathTag::Rpath, Libc::Glibc, &riscv).next().unwrap();
        assert_eq!((entry.kind, entry.effective, &entry.normalised), (EntryKind::Absolute, false, &None));
    }

    #[test]
    fn empty_entries() {
        assert!(glibc("").is_empty());
        let kinds: Vec<_> = glibc(":/a:").iter().map(|e| (e.kind, e.effective)).collect();
        assert_eq!(kinds, [(EntryKind::Empty, true), (EntryKind::Absolute, true), (EntryKind::Empty, true)]);
        assert!(!musl(":/a")[0].effective);
    }

    #[test]
    fn offsets_lead_back_to_the_entry() {
        let tokens = Tokens::new("/p", None);
        for libc in [Libc::Glibc, Libc::Musl] {
            for (offset, entry) in entries(":/a::$ORIGIN\n/b:", PathTag::Rpath, libc, &tokens) {
                assert_eq!(raw_entry(":/a::$ORIGIN\n/b:", offset, libc), entry.raw);
            }
        }
    }

    #[test]
    fn musl_drops_a_path_with_an_unknown_token() {
        assert!(musl("/a:$LIB/x:$ORIGIN").iter().all(|e| !e.effective && e.candidates.is_empty()));
        assert_eq!(directories(&musl("/a\n${ORIGIN}/x")), ["/a", "/p/pkg/x"]);
    }

    #[test]
    fn paths_longer_than_a_path_can_be_are_not_built() {
        let many = "$ORIGIN".repeat(9000);
        assert!(glibc(&many)[0].candidates.is_empty());
        assert!(musl(&many)[0].candidates.is_empty());
    }

    #[test]
    fn normalised_by_text() {
        assert_eq!(normalise("//a/./b/../c//"), "/a/c");
        assert_eq!(normalise("/../.."), "/");
        assert_eq!(split_path("/a"), ("/", "a"));
        assert_eq!(split_path("/a/b"), ("/a", "b"));
    }
}
