//! The header block of METADATA and WHEEL: an e-mail message's (RFC 822), as the core metadata specification
//! has it.

/// One header field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Line number, from 1.
    pub line: usize,
    /// Name as written.
    pub name: String,
    /// Value, trimmed, continuation lines joined by `\n`.
    pub value: String,
}

/// The fields up to the first empty line, and the numbers of lines that are no fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Headers {
    pub fields: Vec<Field>,
    pub bad_lines: Vec<usize>,
}

impl Headers {
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut headers = Self::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            if line.is_empty() {
                break;
            }
            if line.starts_with([' ', '\t']) {
                match headers.fields.last_mut() {
                    Some(field) => {
                        field.value.push('\n');
                        field.value.push_str(line.trim());
                    }
                    None => headers.bad_lines.push(number),
                }
                continue;
            }
            match line.split_once(':') {
                Some((name, value)) if is_field_name(name) => headers.fields.push(Field {
                    line: number,
                    name: name.to_owned(),
                    value: value.trim().to_owned(),
                }),
                _ => headers.bad_lines.push(number),
            }
        }
        headers
    }

    /// All fields of that name, which is compared without regard to case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Field> {
        self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name))
    }
}

fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_continuations_and_body() {
        let headers = Headers::parse("\u{feff}Name: x\r\nSummary: a\n  b\nnonsense\nname:y\n\nName: body\n");
        let names: Vec<(&str, usize)> =
            headers.all("NAME").map(|field| (field.value.as_str(), field.line)).collect();
        assert_eq!(names, [("x", 1), ("y", 5)]);
        assert_eq!(headers.all("Summary").next().map(|field| field.value.as_str()), Some("a\nb"));
        assert_eq!(headers.bad_lines, [4]);
    }
}
