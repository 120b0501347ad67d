//! WHEEL with other tags.

use crate::tags::Tag;

/// `WHEEL` with these tags, one line each, where the first `Tag` stood; every other line stays as it is. With `platlib`,
/// `Root-Is-Purelib: true` becomes false, since a wheel with a platform tag belongs there.
#[must_use]
pub fn with_tags(wheel: &[u8], tags: &[Tag], platlib: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(wheel.len() + 64);
    let mut written = false;
    let mut in_header = true;
    let mut dropping = false;
    let put_tags = |out: &mut Vec<u8>, ending: &[u8]| {
        for tag in tags {
            out.extend_from_slice(format!("Tag: {tag}").as_bytes());
            out.extend_from_slice(ending);
        }
    };
    for line in wheel.split_inclusive(|&byte| byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let ending: &[u8] = if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
        if in_header && text.is_empty() {
            if !written {
                put_tags(&mut out, ending);
                written = true;
            }
            in_header = false;
        }
        let continues = text.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        if in_header && (is_field(text, b"tag") || (continues && dropping)) {
            if !written {
                put_tags(&mut out, ending);
                written = true;
            }
            dropping = true;
            continue;
        }
        dropping = false;
        if in_header
            && platlib
            && is_field(text, b"root-is-purelib")
            && text.to_ascii_lowercase().ends_with(b"true")
        {
            out.extend_from_slice(b"Root-Is-Purelib: false");
            out.extend_from_slice(ending);
            continue;
        }
        out.extend_from_slice(line);
    }
    if !written {
        if !out.is_empty() && !out.ends_with(b"\n") {
            out.push(b'\n');
        }
        put_tags(&mut out, b"\n");
    }
    out
}

fn is_field(line: &[u8], name: &[u8]) -> bool {
    let end = line.iter().position(|&byte| byte == b':');
    end.and_then(|end| line.get(..end)).is_some_and(|found| found.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(text: &str, tags: &[&str], platlib: bool) -> String {
        let tags: Vec<Tag> = tags.iter().flat_map(|tag| Tag::parse_set(tag).expect("a tag")).collect();
        String::from_utf8(with_tags(text.as_bytes(), &tags, platlib)).expect("UTF-8")
    }

    #[test]
    fn only_the_tags_change() {
        let text = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: a-b-linux_x86_64\nTag: c-b-linux_x86_64\nBuild: 1\n\nbody\nTag: no\n";
        assert_eq!(
            rewrite(text, &["a.c-b-manylinux_2_17_x86_64"], true),
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: a-b-manylinux_2_17_x86_64\nTag: c-b-manylinux_2_17_x86_64\nBuild: 1\n\nbody\nTag: no\n"
        );
    }

    #[test]
    fn other_line_ends_missing_tags_and_purelib() {
        assert_eq!(rewrite("A: 1\r\nTag: x-y-any\r\n", &["x-y-z"], false), "A: 1\r\nTag: x-y-z\r\n");
        assert_eq!(rewrite("A: 1", &["x-y-z"], false), "A: 1\nTag: x-y-z\n");
        assert_eq!(rewrite("A: 1\n\nbody", &["x-y-z"], false), "A: 1\nTag: x-y-z\n\nbody");
        let pure = "root-is-purelib: True\nTag: x-y-any\n";
        assert_eq!(rewrite(pure, &["x-y-z"], true), "Root-Is-Purelib: false\nTag: x-y-z\n");
        assert_eq!(rewrite(pure, &["x-y-any"], false), pure);
    }
}
