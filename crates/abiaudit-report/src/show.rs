//! `abiaudit show` for a person: the facts, the verdict with what decided it, and the ladder.

use std::collections::BTreeSet;
use std::io;

use crate::escape::{brief, visible};
use crate::headline::{display_names, short_tag};
use crate::layout::{
    BAD, BOLD, DIM, GOOD, Labelled, counted, joined, painted, write_columns, write_labelled,
};
use crate::model::{External, LadderSymbol, Object, Provider, Report, Rung, Verdict, Wheel};
use crate::options::{RenderOptions, Verbosity};

/// Rows of a section that are shown unless `--all` asks for everything.
const FOLD_AFTER: usize = 10;

/// Writes facts, verdict and ladder of every wheel of `report`.
pub fn render_show(report: &Report, options: &RenderOptions, out: &mut dyn io::Write) -> io::Result<()> {
    for (index, (wheel, name)) in report.wheels.iter().zip(display_names(report)).enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        crate::text::write_headline(wheel, &name, options, out)?;
        if wheel.error.is_some() {
            continue;
        }
        write_facts(wheel, out)?;
        if let Some(verdict) = &wheel.verdict {
            write_verdict(verdict, options, out)?;
        }
        write_objects(wheel, options, out)?;
        write_external(wheel, options, out)?;
        write_ladder(wheel, options, out)?;
    }
    Ok(())
}

fn fold_after(options: &RenderOptions) -> usize {
    if options.all || options.verbosity == Verbosity::Verbose { usize::MAX } else { FOLD_AFTER }
}

fn write_heading(text: &str, options: &RenderOptions, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "  {}", painted(options, BOLD, text))
}

fn write_folded(
    hidden: usize,
    noun: &str,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if hidden == 0 {
        return Ok(());
    }
    let line = format!("... {} (--all)", counted(hidden, &format!("more {noun}")));
    writeln!(out, "    {}", painted(options, DIM, line))
}

fn write_facts(wheel: &Wheel, out: &mut dyn io::Write) -> io::Result<()> {
    let text = |value: &Option<String>| value.as_deref().map(|v| brief(v).into_owned());
    let distribution = match (text(&wheel.name), text(&wheel.version)) {
        (Some(name), Some(version)) => Some(format!("{name} {version}")),
        (name, version) => name.or(version),
    };
    let platform: Vec<String> = [&wheel.arch, &wheel.libc].into_iter().filter_map(text).collect();
    let rows: Vec<Vec<String>> = [
        ("distribution", distribution),
        ("sha256", text(&wheel.sha256)),
        ("tags", (!wheel.tags.is_empty()).then(|| joined(&wheel.tags, FOLD_AFTER))),
        ("platform", (!platform.is_empty()).then(|| platform.join(", "))),
    ]
    .into_iter()
    .filter_map(|(label, value)| Some(vec![label.to_owned(), value?]))
    .collect();
    write_columns(&rows, 2, out)
}

fn write_verdict(verdict: &Verdict, options: &RenderOptions, out: &mut dyn io::Write) -> io::Result<()> {
    write_heading("verdict", options, out)?;
    let mut rows = vec![vec!["honours".to_owned(), brief(&verdict.tag).into_owned()]];
    if verdict.tag_with_providers != verdict.tag {
        rows.push(vec!["with providers".to_owned(), brief(&verdict.tag_with_providers).into_owned()]);
    }
    if let Some(claim) = &verdict.claim {
        let (style, held) = if verdict.claim_ok { (GOOD, "holds") } else { (BAD, "does not hold") };
        rows.push(vec!["claims".to_owned(), format!("{}, {}", brief(claim), painted(options, style, held))]);
    }
    for (criterion, tag) in verdict.by.named() {
        let decides = if tag == verdict.tag { "  (decides)" } else { "" };
        rows.push(vec![format!("by {criterion}"), format!("{}{decides}", brief(tag))]);
    }
    write_columns(&rows, 4, out)?;
    for reason in &verdict.reasons {
        writeln!(out, "    because {}", brief(reason))?;
    }
    Ok(())
}

/// The table of objects: what each is, what it needs and where it looks.
pub(crate) fn write_objects(
    wheel: &Wheel,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if wheel.objects.is_empty() {
        return Ok(());
    }
    write_heading(&format!("objects ({})", wheel.objects.len()), options, out)?;
    let most = fold_after(options);
    for object in wheel.objects.iter().take(most) {
        write_object(object, out)?;
    }
    write_folded(wheel.objects.len().saturating_sub(most), "object", options, out)
}

fn write_object(object: &Object, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "    {}", brief(&object.member))?;
    let list = |values: &[String]| (!values.is_empty()).then(|| joined(values, usize::MAX));
    let versions: Vec<String> = object.versions.iter().map(|(family, v)| format!("{family} {v}")).collect();
    let runtimes: Vec<String> = object
        .runtimes
        .iter()
        .map(|runtime| format!("{} ({}, {})", runtime.kind, runtime.class, runtime.exposure))
        .collect();
    let rows: Vec<Vec<String>> = [
        ("soname", object.soname.as_deref().map(|soname| brief(soname).into_owned())),
        ("needed", list(&object.needed)),
        ("rpath", list(&object.rpath)),
        ("runpath", list(&object.runpath)),
        ("versions", list(&versions)),
        ("runtimes", list(&runtimes)),
        ("compilers", list(&object.compilers)),
        ("producers", list(&object.producers)),
    ]
    .into_iter()
    .filter_map(|(label, value)| Some(vec![label.to_owned(), value?]))
    .collect();
    write_columns(&rows, 6, out)
}

fn write_external(wheel: &Wheel, options: &RenderOptions, out: &mut dyn io::Write) -> io::Result<()> {
    if wheel.external.is_empty() {
        return Ok(());
    }
    write_heading(&format!("external libraries ({})", wheel.external.len()), options, out)?;
    let most = fold_after(options);
    let rows: Vec<Vec<String>> = wheel.external.iter().take(most).map(external_row).collect();
    write_columns(&rows, 4, out)?;
    write_folded(wheel.external.len().saturating_sub(most), "library", options, out)
}

fn external_row(external: &External) -> Vec<String> {
    let users = format!("needed by {}", joined(&external.needed_by, 2));
    let provider = external.provider.as_ref().map(provider_text);
    vec![
        brief(&external.soname).into_owned(),
        external.class.as_str().to_owned(),
        provider.map(|provider| format!("{provider}; {users}")).unwrap_or(users),
    ]
}

fn provider_text(provider: &Provider) -> String {
    let declared = provider.declared_as.as_deref().map(|line| format!(" (declared as {})", brief(line)));
    let place = provider.lib_dir.as_deref().map(|directory| format!(" in {}", brief(directory)));
    [brief(&provider.distribution).into_owned(), declared.unwrap_or_default(), place.unwrap_or_default()]
        .concat()
}

/// Every obstacle once, at the nearest tag that it keeps the wheel from: what blocks a tag blocks every better one too.
fn write_ladder(wheel: &Wheel, options: &RenderOptions, out: &mut dyn io::Write) -> io::Result<()> {
    if wheel.ladder.is_empty() {
        return Ok(());
    }
    write_heading("ladder (better tags, nearest first)", options, out)?;
    let mut listed = Listed::default();
    for rung in &wheel.ladder {
        write_rung(rung, &mut listed, wheel, options, out)?;
    }
    Ok(())
}

/// Obstacles that nearer tags have shown already.
#[derive(Default)]
struct Listed<'a> {
    symbols: BTreeSet<&'a LadderSymbol>,
    forbidden: BTreeSet<&'a LadderSymbol>,
    libraries: BTreeSet<&'a str>,
    other: BTreeSet<&'a str>,
}

fn write_rung<'a>(
    rung: &'a Rung,
    listed: &mut Listed<'a>,
    wheel: &Wheel,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let symbols: Vec<_> = rung.symbols.iter().filter(|symbol| listed.symbols.insert(symbol)).collect();
    let forbidden: Vec<_> = rung.forbidden.iter().filter(|symbol| listed.forbidden.insert(symbol)).collect();
    let libraries: Vec<_> =
        rung.libraries.iter().filter(|library| listed.libraries.insert(library)).collect();
    let other: Vec<_> = rung.other.iter().filter(|reason| listed.other.insert(reason)).collect();

    let obstacles = rung.symbols.len() + rung.forbidden.len() + rung.libraries.len() + rung.other.len();
    let fresh = symbols.len() + forbidden.len() + libraries.len() + other.len();
    writeln!(out, "    {}: {}", short_tag(&rung.tag, wheel), rung_summary(rung, obstacles - fresh))?;

    write_symbols(&symbols, 6, options, out)?;
    if !libraries.is_empty() {
        let most = fold_after(options);
        writeln!(out, "      not promised by the system: {}", joined(&libraries, most))?;
    }
    if !forbidden.is_empty() {
        writeln!(out, "      forbidden by the policy:")?;
        write_symbols(&forbidden, 8, options, out)?;
    }
    for reason in other {
        writeln!(out, "      {}", if options.all { visible(reason) } else { brief(reason) })?;
    }
    Ok(())
}

/// `12 symbols, 1 library in the way, 3 of them listed above`.
fn rung_summary(rung: &Rung, known: usize) -> String {
    let parts: Vec<String> = [
        (rung.symbols.len(), "symbol"),
        (rung.libraries.len(), "library"),
        (rung.forbidden.len(), "forbidden symbol"),
        (rung.other.len(), "other obstacle"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, noun)| counted(count, noun))
    .collect();
    let total = rung.symbols.len() + rung.libraries.len() + rung.forbidden.len() + rung.other.len();
    match (total, known) {
        (0, _) => "nothing in the way".to_owned(),
        (_, 0) => format!("{} in the way", parts.join(", ")),
        (total, known) if total == known => format!("{} in the way, all counted above", parts.join(", ")),
        (_, known) => format!("{} in the way, {known} of them counted above", parts.join(", ")),
    }
}

fn write_symbols(
    symbols: &[&LadderSymbol],
    indent: usize,
    options: &RenderOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let most = fold_after(options);
    let lines: Vec<Labelled> =
        symbols.iter().take(most).map(|symbol| Labelled::from_symbol(symbol, options.all)).collect();
    write_labelled(&lines, indent, options, out)?;
    let hidden = symbols.len().saturating_sub(most);
    if hidden > 0 {
        let files: BTreeSet<&str> = symbols.iter().skip(most).map(|symbol| symbol.member.as_str()).collect();
        let line =
            format!("... {} in {} (--all)", counted(hidden, "more symbol"), counted(files.len(), "file"));
        writeln!(out, "{:indent$}{}", "", painted(options, DIM, line))?;
    }
    Ok(())
}
