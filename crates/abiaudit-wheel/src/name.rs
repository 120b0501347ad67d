//! Project names.

/// A project name as PEP 503 normalises it: lower case, runs of `-`, `_` and `.` become one `-`.
#[must_use]
pub fn normalize_name(name: &str) -> String {
    let mut normalized = String::with_capacity(name.len());
    let mut in_separator = false;
    for character in name.chars() {
        if matches!(character, '-' | '_' | '.') {
            in_separator = true;
            continue;
        }
        if in_separator {
            normalized.push('-');
            in_separator = false;
        }
        normalized.extend(character.to_lowercase());
    }
    if in_separator {
        normalized.push('-');
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_collapse_and_case_is_dropped() {
        for name in ["Friendly-Bard", "FRIENDLY.bard", "friendly__bard", "friendly-._.-bard"] {
            assert_eq!(normalize_name(name), "friendly-bard");
        }
        assert_eq!(normalize_name(""), "");
    }
}
