//! `SUMMARY.md`: what a reviewer can check of the tables without reading bytes.

use std::collections::BTreeMap;
use std::fmt::Write;

use abiaudit_policy::symbols::Release;

use super::packages::{Dump, GLIBC_LIBRARIES};
use super::reconstruct::Glibc;
use super::rows::Row;
use super::{ARCHS, Table};

/// The text of `SUMMARY.md`.
pub fn summary(tables: &[Table<'_>], glibc: &Glibc, late: &[Row], dumps: &[Dump]) -> String {
    let mut text = String::from("# The symbol tables in numbers\n\nWritten by `cargo xtask gen-policies`.\n");
    for table in tables {
        libraries(&mut text, table);
    }
    releases(&mut text, &glibc.rows);
    nodes(&mut text, tables);
    left_out(&mut text, late);
    agreement(&mut text, &glibc.rows, dumps);
    surprises(&mut text, &glibc.surprises);
    text
}

fn libraries(text: &mut String, table: &Table<'_>) {
    let _ = writeln!(text, "\n## {}: rows by library and architecture\n", table.name);
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for row in table.rows {
        *counts.entry(&row.library).or_default().entry(row.arch).or_default() += 1;
    }
    counted(text, "library", &counts);
}

fn releases(text: &mut String, rows: &[Row]) {
    let _ = writeln!(text, "\n## glibc.bin: rows by the release they begin with\n");
    let mut counts: BTreeMap<Release, BTreeMap<&str, usize>> = BTreeMap::new();
    for row in rows {
        if let Some(since) = row.since {
            *counts.entry(since.release).or_default().entry(row.arch).or_default() += 1;
        }
    }
    counted(text, "release", &counts);
}

fn nodes(text: &mut String, tables: &[Table<'_>]) {
    let _ = writeln!(text, "\n## gcc.bin: symbols by version node (GCC release)\n");
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    for table in tables.iter().filter(|table| table.name == "gcc.bin") {
        for row in table.rows {
            let release = table.nodes.get(&row.version).map_or("?".to_owned(), ToString::to_string);
            let node = format!("{} ({release})", row.version);
            *counts.entry(node).or_default().entry(row.arch).or_default() += 1;
        }
    }
    counted(text, "node", &counts);
}

/// Symbols that an older build with the same node has not.
fn left_out(text: &mut String, late: &[Row]) {
    let _ = writeln!(text, "\n## gcc.bin: left out, because an older build with the node lacks them\n");
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    for row in late {
        if let Some(since) = row.since {
            let key = format!("{} in GCC {}", row.version, since.release);
            *counts.entry(key).or_default().entry(row.arch).or_default() += 1;
        }
    }
    counted(text, "node and first build", &counts);
}

fn counted<K: ToString>(text: &mut String, head: &str, counts: &BTreeMap<K, BTreeMap<&str, usize>>) {
    let _ = writeln!(text, "| {head} | {} |\n|---|{}", ARCHS.join(" | "), "---|".repeat(ARCHS.len()));
    for (key, by_arch) in counts {
        let cells = ARCHS.map(|arch| by_arch.get(arch).map_or_else(String::new, ToString::to_string));
        let _ = writeln!(text, "| {} | {} |", key.to_string(), cells.join(" | "));
    }
}

/// For each dump of glibc: does the table say the same about its release?
fn agreement(text: &mut String, rows: &[Row], dumps: &[Dump]) {
    let _ = writeln!(
        text,
        "\n## glibc.bin against the dumps\n\nSymbols at versions that the library has \
         in both, in the table only, in the dump only.\n\n\
         | release | architecture | library | both | table only | dump only |\n\
         |---|---|---|---|---|---|"
    );
    let mut lines = BTreeMap::new();
    for dump in dumps.iter().filter(|dump| GLIBC_LIBRARIES.contains(&dump.library)) {
        let table: Vec<(String, String)> = rows
            .iter()
            .filter(|row| {
                row.arch == dump.arch
                    && row.library == dump.library
                    && row.since.is_none_or(|since| since.release <= dump.release)
                    && row.until.is_none_or(|until| dump.release < until.release)
            })
            .map(|row| (row.symbol.clone(), row.version.clone()))
            .collect();
        let both = table.iter().filter(|key| dump.exports.contains_key(key)).count();
        let only = (table.len() - both, dump.exports.len() - both);
        lines.insert((dump.release, dump.arch, dump.library), (both, only));
    }
    for ((release, arch, library), (both, (table, dump))) in lines {
        let _ = writeln!(text, "| {release} | {arch} | {library} | {both} | {table} | {dump} |");
    }
}

fn surprises(text: &mut String, surprises: &[String]) {
    let _ = writeln!(
        text,
        "\n## What the dumps show and no rule foresees\n\nDates of these rows are not exact.\n"
    );
    for surprise in surprises {
        let _ = writeln!(text, "* {surprise}");
    }
}
