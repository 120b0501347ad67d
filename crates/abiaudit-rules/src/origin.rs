//! Search path entries from one installed file to another directory.

/// The entry of a search path that leads from `file` to `directory`, both as installed: `$ORIGIN/../p.libs`.
pub(crate) fn entry(file: &str, directory: &str) -> String {
    let parts = |path: &'_ str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let (from, to) = (parts(parent(file)), parts(directory));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from.iter().skip(common).map(|_| "..");
    let down = to.iter().skip(common).map(String::as_str);
    std::iter::once("$ORIGIN").chain(up).chain(down).collect::<Vec<_>>().join("/")
}

/// The directory of a file.
pub(crate) fn parent(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(directory, _)| directory)
}

#[cfg(test)]
mod tests {
    use super::entry;

    #[test]
    fn the_way_goes_up_to_what_both_share() {
        assert_eq!(entry("site/p/m.so", "site/p"), "$ORIGIN");
        assert_eq!(entry("site/p/m.so", "site/p/libs"), "$ORIGIN/libs");
        assert_eq!(entry("site/p/sub/m.so", "site/p.libs"), "$ORIGIN/../../p.libs");
        assert_eq!(entry("m.so", "p.libs/"), "$ORIGIN/p.libs");
        assert_eq!(entry("p/m.so", ""), "$ORIGIN/..");
    }
}
