//! The matrix as a table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use abiaudit_confirm::Mode;

use super::cells::Outcome;

/// Outcomes of one pair, in the order of modes and, within, of orders.
type Row<'o, 'm> = Vec<&'o Outcome<'m>>;

/// Rows of the table, in the order of outcomes.
pub fn rows<'o, 'm>(outcomes: &'o [Outcome<'m>]) -> Vec<Row<'o, 'm>> {
    let same = |a: &&Outcome<'_>, b: &&Outcome<'_>| {
        a.cell.pair.module == b.cell.pair.module && a.cell.pair.other == b.cell.pair.other
    };
    let all: Vec<&Outcome<'_>> = outcomes.iter().collect();
    all.chunk_by(same).map(<[_]>::to_vec).collect()
}

/// As Markdown.
pub fn markdown(outcomes: &[Outcome<'_>], modes: &[Mode]) -> String {
    let mut text = String::from("| variant | beside |");
    for mode in modes {
        let _ = write!(text, " {} |", mode.as_str());
    }
    text.push_str(" exceptions and streams across |\n| --- | --- |");
    text.push_str(&" --- |".repeat(modes.len() + 1));
    text.push('\n');
    for row in rows(outcomes) {
        let Some(first) = row.first() else { continue };
        let _ = write!(text, "| `{}` | `{}` |", first.cell.pair.variant.name, first.cell.pair.partner.name);
        for mode in modes {
            let cells: Vec<&&Outcome<'_>> = row.iter().filter(|outcome| outcome.cell.mode == *mode).collect();
            let _ = write!(text, " {} |", both(&cells, word));
        }
        let _ = writeln!(text, " {} |", across(&row));
    }
    text
}

/// One word if both orders have the same.
fn both(cells: &[&&Outcome<'_>], word: impl Fn(&Outcome<'_>) -> String) -> String {
    let words: Vec<String> = cells.iter().map(|outcome| word(outcome)).collect();
    match words.as_slice() {
        [given, reversed] if given != reversed => format!("{given} / {reversed}"),
        [given, ..] => given.clone(),
        [] => String::new(),
    }
}

/// What happened, and what was predicted if that is something else.
fn word(outcome: &Outcome<'_>) -> String {
    let name = |broken| if broken { "**broken**" } else { "fine" };
    let (predicted, happened) = (outcome.prediction.is_broken(), outcome.happened.is_broken());
    if predicted == happened {
        name(happened).to_owned()
    } else {
        format!("{} (predicted: {})", name(happened), name(predicted))
    }
}

/// Which crossings went wrong in any order or mode where nothing else did.
fn across(row: &[&Outcome<'_>]) -> String {
    let sound = row.iter().filter(|outcome| !outcome.happened.is_broken());
    let wrong: BTreeSet<&str> = sound
        .flat_map(|outcome| &outcome.happened.crossings)
        .map(|crossing| crossing.what.as_str())
        .collect();
    if wrong.is_empty() { "fine".to_owned() } else { wrong.into_iter().collect::<Vec<_>>().join(", ") }
}

/// A cell in words, for what went wrong.
pub fn describe(outcome: &Outcome<'_>) -> String {
    let pair = outcome.cell.pair;
    let (mut first, mut second) = (&pair.variant.name, &pair.partner.name);
    if outcome.cell.reversed {
        std::mem::swap(&mut first, &mut second);
    }
    let mut text = format!("{first}, {second} ({}):", outcome.cell.mode.as_str());
    if outcome.happened.failures.is_empty() {
        text.push_str("\n    happened: fine");
    }
    for failure in outcome.happened.failures.iter().take(6) {
        let _ = write!(text, "\n    happened: {} {}: {}", failure.at, failure.what, failure.seen);
    }
    if outcome.prediction.broken.is_empty() {
        text.push_str("\n    predicted: fine");
    }
    for reason in outcome.prediction.broken.iter().take(6) {
        let _ = write!(text, "\n    predicted: {}: {}", reason.kind, reason.text);
    }
    text
}
