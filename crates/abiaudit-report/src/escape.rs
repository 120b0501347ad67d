//! Makes text from untrusted files safe to show.

use std::borrow::Cow;

/// Characters of one name or message that a rendering for people shows before it folds the rest. Mangled names of
/// heavily templated code reach tens of thousands; JSON and SARIF carry them whole.
const LONGEST_SHOWN: usize = 600;

/// Replaces what a reader cannot see or what would steer a terminal by an escape in the manner of Rust literals:
/// control characters (C0, DEL, C1) including newlines, line and paragraph separators, bidirectional controls
/// (the "Trojan Source" characters, CVE-2021-42574), invisible format characters and noncharacters.
///
/// ```
/// use abiaudit_report::escape::visible;
/// assert_eq!(visible("lib\u{1b}[31m\n\u{202e}os"), r"lib\x1b[31m\n\u{202e}os");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    let printable_ascii = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if printable_ascii || !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(spelled).collect())
}

fn spelled(character: char) -> String {
    match character {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if is_hidden(c) && c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
        c if is_hidden(c) => format!("\\u{{{:x}}}", u32::from(c)),
        c => c.to_string(),
    }
}

/// [`visible`], with the end of an extremely long text replaced by a note of its length.
pub fn brief(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_SHOWN) {
        None => visible(text),
        Some((end, _)) => {
            let rest = text[end..].chars().count();
            Cow::Owned(format!("{}...({rest} more characters)", visible(&text[..end])))
        }
    }
}

/// Characters that have no shape of their own or change the shape of others (Unicode categories Cc, Cf, Zl, Zp), and
/// noncharacters, which XML 1.0 does not admit.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0xAD | 0x61C | 0x600..=0x605 | 0x6DD | 0x70F | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E
            | 0x2060..=0x206F | 0xFEFF | 0xFFF9..=0xFFFB | 0xFDD0..=0xFDEF | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
        || u32::from(character) & 0xFFFE == 0xFFFE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_borrowed() {
        assert!(matches!(visible("std::vector<π> 日本"), Cow::Borrowed(_)));
    }

    #[test]
    fn steering_characters_are_spelled_out() {
        assert_eq!(visible("a\u{1b}]0;x\u{7}b"), r"a\x1b]0;x\x07b");
        assert_eq!(visible("a\u{85}b\u{2028}c\u{9b}"), r"a\u{85}b\u{2028}c\u{9b}");
        assert_eq!(visible("a\u{202e}b\u{2066}c\u{200b}"), r"a\u{202e}b\u{2066}c\u{200b}");
        assert_eq!(visible("a\r\n\tb\0"), r"a\r\n\tb\x00");
        assert_eq!(visible("\u{ffff}\u{1fffe}\u{e0041}"), r"\u{ffff}\u{1fffe}\u{e0041}");
    }

    #[test]
    fn very_long_text_says_how_long_it_is() {
        let long = "é".repeat(LONGEST_SHOWN + 5);
        let shown = brief(&long);
        assert!(shown.ends_with("...(5 more characters)"), "{shown}");
        assert_eq!(brief("short"), "short");
    }
}
