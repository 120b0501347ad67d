//! GitHub-flavoured Markdown for pull request comments and step summaries: a table of verdicts, then the details.
//!
//! Untrusted text is either a code span or has every character escaped that Markdown or GitHub gives a meaning,
//! including mentions and links.

use std::io::{self, Write};

use crate::escape::brief;
use crate::grouping::{RuleGroup, by_rule};
use crate::headline::{display_names, headline, totals};
use crate::layout::{Labelled, counted};
use crate::model::{Finding, Report, Severity, Wheel};
use crate::options::RenderOptions;

/// Length of a comment that GitHub accepts, in characters (counted here in bytes).
const COMMENT_BYTES: usize = 65_536;
/// Findings of a rule and pieces of evidence of a finding that are listed.
const MOST_ROWS: usize = 10;

/// Writes `report` as a comment of at most 65,536 bytes; what does not fit is counted at the end.
pub fn render(report: &Report, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    render_within(report, options, COMMENT_BYTES, out)
}

/// Writes `report` in at most `room` bytes: whole blocks, never a part of one.
pub(crate) fn render_within(
    report: &Report,
    options: &RenderOptions,
    room: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    const NOTICE: usize = 200;
    let names = display_names(report);
    let mut room = room.saturating_sub(NOTICE);
    let mut left_out = 0;
    let mut write_if_room = |block: &str| {
        if block.len() <= room {
            room -= block.len();
            out.write_all(block.as_bytes())
        } else {
            left_out += 1;
            Ok(())
        }
    };
    write_if_room(&format!("### abiaudit: {}\n\n| wheel | verdict | |\n|---|---|---|\n", totals(report)))?;
    for (wheel, name) in report.wheels.iter().zip(&names) {
        write_if_room(&table_row(wheel, name, options))?;
    }
    for (wheel, name) in report.wheels.iter().zip(&names) {
        if let Some(block) = details(wheel, name) {
            write_if_room(&block)?;
        }
    }
    if left_out > 0 && room > 0 {
        writeln!(
            out,
            "\n_{} left out for their size; the JSON report has everything_",
            counted(left_out, "block")
        )?;
    }
    Ok(())
}

fn table_row(wheel: &Wheel, name: &str, options: &RenderOptions) -> String {
    let line = headline(wheel, options.fail_on);
    let detail = line.detail.trim_start_matches([':', ',', ' ']);
    format!("| {} | **{}** | {} |\n", code_in_table(name), line.status.word(), prose(detail))
}

/// The findings of a wheel, folded away below its name; `None` when there are none.
fn details(wheel: &Wheel, name: &str) -> Option<String> {
    let groups = by_rule(wheel, Severity::Info);
    let suppressed: Vec<&Finding> = wheel.findings.iter().filter(|f| f.suppressed.is_some()).collect();
    if groups.is_empty() && suppressed.is_empty() {
        return None;
    }
    let mut lines =
        vec![String::new(), format!("<details><summary>{}</summary>", html_code(name)), String::new()];
    for group in &groups {
        push_group(&mut lines, group);
    }
    for finding in suppressed.iter().take(MOST_ROWS) {
        let reason =
            finding.suppressed.as_ref().map(|suppression| prose(&suppression.reason)).unwrap_or_default();
        lines.push(format!("- suppressed {} {}: {reason}", prose(&finding.rule), prose(&finding.name)));
    }
    if suppressed.len() > MOST_ROWS {
        lines.push(format!("- ... {} more suppressed", suppressed.len() - MOST_ROWS));
    }
    lines.extend([String::new(), "</details>".to_owned(), String::new()]);
    Some(lines.join("\n"))
}

fn push_group(lines: &mut Vec<String>, group: &RuleGroup<'_>) {
    lines.push(format!("**{}** {} {}", group.severity.as_str(), prose(group.rule), prose(group.name)));
    lines.push(String::new());
    for finding in group.findings.iter().take(MOST_ROWS) {
        let member =
            finding.member.as_deref().map(|member| format!("{}: ", code(member))).unwrap_or_default();
        lines.push(format!("- {member}{}", prose(&finding.message)));
        for piece in finding.evidence.iter().take(MOST_ROWS) {
            lines.push(format!("  - {}", evidence(piece, finding.member.as_deref())));
        }
        let hidden = finding.unnamed_after(MOST_ROWS);
        if hidden > 0 {
            lines.push(format!("  - ... {hidden} more"));
        }
    }
    if group.findings.len() > MOST_ROWS {
        lines.push(format!("- ... {}", counted(group.findings.len() - MOST_ROWS, "more finding")));
    }
    for help in group.helps().into_iter().take(MOST_ROWS) {
        lines.push(format!("- mend: {}", prose(help)));
    }
    lines.push(String::new());
}

fn evidence(piece: &crate::model::Evidence, member: Option<&str>) -> String {
    let Labelled { label, details } = Labelled::from_evidence(piece, member, false);
    match (label.is_empty(), details.is_empty()) {
        (true, _) => prose(&details),
        (_, true) => code(&label),
        _ => format!("{} {}", code(&label), prose(&details)),
    }
}

/// `text` as a code span: the fence is longer than any run of backticks inside (CommonMark 6.1).
fn code(text: &str) -> String {
    let text = brief(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // Spaces keep a backtick at either end off the fence; CommonMark strips one from each side.
    let space = if longest > 0 || text.is_empty() { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// [`code`] for a table cell, where GitHub's tables want pipes escaped even inside code.
fn code_in_table(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// `text` as code inside an HTML element, where Markdown is not read.
fn html_code(text: &str) -> String {
    let text = brief(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<code>{text}</code>")
}

/// `text` as literal text. Besides Markdown's own characters, an empty comment keeps `@name` from notifying people and
/// `scheme://` from becoming a link.
fn prose(text: &str) -> String {
    let text = brief(text);
    let mut escaped = String::with_capacity(text.len() + 16);
    for (index, character) in text.char_indices() {
        match character {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!' | '$' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '&' => escaped.push_str("&amp;"),
            '@' => escaped.push_str("@<!-- -->"),
            ':' if text[index..].starts_with("://") => escaped.push_str(":<!-- -->"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_spans_outlast_backticks() {
        assert_eq!(code("plain"), "`plain`");
        assert_eq!(code("a`b``c"), "``` a`b``c ```");
        assert_eq!(code_in_table("a|b"), "`a\\|b`");
    }

    #[test]
    fn prose_is_literal() {
        assert_eq!(prose("a|b `c` <img> @team"), r"a\|b \`c\` \<img\> @<!-- -->team");
        assert_eq!(prose("see https://x.example"), "see https:<!-- -->//x.example");
        assert_eq!(prose("one\n# two"), r"one\\n\# two");
    }
}
