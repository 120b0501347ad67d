//! Shell-like patterns on sonames.

/// Does `pattern` match the whole of `text`? `*` stands for any characters, also none, `?` for one; everything
/// else, brackets too, stands for itself. Time is bounded by the product of the lengths.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on when a literal fails: after the last star, which takes one more byte each time.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t + 1));
                p += 1;
            }
            Some(&wanted) if wanted == byte || wanted == b'?' => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((after_star, next)) => {
                    (p, t) = (after_star, next);
                    retry = Some((after_star, next + 1));
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|&byte| byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks() {
        assert!(matches("libcudart.so.*", "libcudart.so.12"));
        assert!(!matches("libcudart.so.*", "libcudart.so"));
        assert!(matches("libnvrtc-builtins.so.1?.*", "libnvrtc-builtins.so.13.5"));
        assert!(matches("lib*.so", "libtorch.so"));
        assert!(!matches("lib*.so", "libtorch.so.1"));
        assert!(matches("*", ""));
        assert!(!matches("", "a"));
        assert!(matches("*a*b*", "xaxxabb"));
        assert!(!matches("*a*b*c", "xaxxabb"));
        assert!(!matches("lib[a].so", "liba.so"), "brackets are literal");
    }

    #[test]
    fn many_stars_do_not_explode() {
        assert!(!matches(&"*a".repeat(64), &"a".repeat(63)));
        assert!(!matches(&format!("{}b", "*a".repeat(200)), &"a".repeat(2000)));
    }
}
