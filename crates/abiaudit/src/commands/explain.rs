//! `abiaudit explain`: rules, platform tags, version nodes, symbols, libraries.

mod names;
mod tag;

use std::collections::BTreeMap;
use std::io::{self, Write};

use abiaudit_policy::explain::{Explanation, NodeExplanation, SymbolExplanation, SymbolExport, explain};
use abiaudit_policy::{Libc, PolicySet, Provider, ProviderClass, providers};
use abiaudit_report::escape::visible;
use abiaudit_rules::{Rule, demangle, find};
use serde_json::{Value, json};

use crate::cli::ExplainArgs;
use crate::{CLEAN, TROUBLE};

/// What is known of a query.
enum Answer {
    Rule(&'static Rule),
    Tag(tag::Tag),
    Table(Box<Explanation>),
    /// Overloads of a C++ name.
    Names(Vec<SymbolExplanation>),
    Library(Library),
    Nothing,
}

/// What policies and providers say of a soname.
struct Library {
    soname: String,
    /// It is a dynamic loader.
    is_loader: bool,
    /// Tags of the oldest policy that allows it, by architecture; empty if none does.
    allowed_since: BTreeMap<&'static str, String>,
    providers: Vec<Provider>,
}

pub fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let answers: Vec<(&String, Answer)> = args.queries.iter().map(|q| (q, answer(q))).collect();
    let mut out = io::stdout().lock();
    if args.json {
        let values: Vec<Value> = answers.iter().map(|(query, answer)| to_json(query, answer)).collect();
        serde_json::to_writer_pretty(&mut out, &values)?;
        writeln!(out)?;
    } else {
        for (index, (query, answer)) in answers.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write_text(&mut out, query, answer)?;
        }
    }
    let all_known = !answers.iter().any(|(_, a)| matches!(a, Answer::Nothing));
    Ok(if all_known { CLEAN } else { TROUBLE })
}

fn answer(query: &str) -> Answer {
    if let Some(rule) = find(query) {
        return Answer::Rule(rule);
    }
    if let Some(tag) = tag::find(query) {
        return Answer::Tag(tag);
    }
    if let Some(explanation) = explain(query) {
        return Answer::Table(Box::new(explanation));
    }
    let names = names::find(query);
    if !names.is_empty() {
        return Answer::Names(names);
    }
    library(query).map_or(Answer::Nothing, Answer::Library)
}

/// Any soname: of one that nobody has heard of it can still be said that no tag promises it.
fn library(soname: &str) -> Option<Library> {
    let is_soname = soname.ends_with(".so") || soname.contains(".so.");
    if !is_soname || soname.contains('/') {
        return None;
    }
    let mut allowed_since = BTreeMap::new();
    for target in PolicySet::builtin().targets() {
        if target.libraries().any(|l| l == soname) {
            allowed_since.entry(target.arch().tag()).or_insert_with(|| target.tag());
        }
    }
    let providers: Vec<Provider> = providers().lookup(soname).into_iter().cloned().collect();
    let is_loader = [Libc::Glibc, Libc::Musl].iter().any(|libc| libc.is_dynamic_linker(soname));
    Some(Library { soname: soname.to_owned(), is_loader, allowed_since, providers })
}

fn write_text(out: &mut dyn Write, query: &str, answer: &Answer) -> io::Result<()> {
    match answer {
        Answer::Rule(rule) => {
            writeln!(
                out,
                "{} {} ({})\n\n{}",
                rule.id,
                rule.name,
                rule.severity.as_str(),
                rule.documentation()
            )
        }
        Answer::Table(explanation) => match explanation.as_ref() {
            Explanation::Node(node) => write_node(out, node),
            Explanation::Symbol(symbol) => write_symbol(out, symbol),
        },
        Answer::Tag(tag) => tag.write(out),
        Answer::Names(symbols) => write_names(out, symbols),
        Answer::Library(library) => write_library(out, library),
        Answer::Nothing => writeln!(
            out,
            "{}: nothing is known of it; expected a rule (ABI101, symbol-too-new), a platform tag \
             (manylinux_2_28_x86_64), a version node (GLIBCXX_3.4.26), a symbol (memcpy@GLIBC_2.14, \
             std::filesystem::copy, a mangled C++ name) or a library (libcudart.so.12)",
            visible(query)
        ),
    }
}

fn write_node(out: &mut dyn Write, node: &NodeExplanation) -> io::Result<()> {
    let name = visible(&node.node);
    writeln!(out, "{name} is a version node of {}", list(&node.libraries, "no known library"))?;
    if let (Some(project), Some(release)) = (node.project, node.release) {
        let file = node.library_file.as_ref().map(|f| format!(" ({f})")).unwrap_or_default();
        writeln!(out, "  since       {project} {release}{file}")?;
    }
    let mut by_policy: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (arch, tag) in &node.first_policy {
        let policy =
            tag.as_deref().and_then(|t| t.strip_suffix(arch)).map_or("no tag", |t| t.trim_end_matches('_'));
        by_policy.entry(policy).or_default().push(arch);
    }
    for (policy, arches) in by_policy {
        writeln!(out, "  first tag   {policy:<18} {}", arches.join(", "))?;
    }
    let distributions: Vec<String> =
        node.distributions.iter().map(|d| format!("{} {}", d.name, d.release)).collect();
    if !distributions.is_empty() {
        writeln!(out, "  found from  {}", distributions.join(", "))?;
    }
    // One architecture shows what the node is about; --json has them all.
    let used = || node.symbols.iter().filter(|(_, s)| s.count > 0);
    if let Some((arch, symbols)) = used().find(|(arch, _)| **arch == "x86_64").or_else(|| used().next()) {
        writeln!(out, "  {arch:<11} {} symbols, such as", symbols.count)?;
        for example in &symbols.examples {
            writeln!(out, "                {}", demangle(example))?;
        }
    }
    Ok(())
}

fn write_symbol(out: &mut dyn Write, symbol: &SymbolExplanation) -> io::Result<()> {
    let readable = demangle(&symbol.symbol);
    writeln!(out, "{}", visible(&readable))?;
    if readable != symbol.symbol {
        writeln!(out, "  mangled     {}", visible(&symbol.symbol))?;
    }
    if let Some(version) = &symbol.version
        && !symbol.exports.iter().any(|e| e.version == Some(version.as_str()))
    {
        writeln!(out, "  no library has it at {}; what exists:", visible(version))?;
    }
    for export in &symbol.exports {
        writeln!(out, "  {}", export_line(export))?;
    }
    Ok(())
}

fn write_names(out: &mut dyn Write, symbols: &[SymbolExplanation]) -> io::Result<()> {
    for (number, symbol) in symbols.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        write_symbol(out, symbol)?;
    }
    Ok(())
}

fn export_line(export: &SymbolExport) -> String {
    let version = match (export.version, export.default) {
        (Some(version), true) => format!("@@{version}"),
        (Some(version), false) => format!("@{version}"),
        (None, _) => "no version".to_owned(),
    };
    let mut life = Vec::new();
    if let Some(since) = export.since {
        let exact = if export.since_exact { "since" } else { "at the latest since" };
        life.push(format!("{exact} {} {since}", export.project));
    }
    if let Some(until) = export.until {
        let exact = if export.until_exact { "until" } else { "at the latest until" };
        life.push(format!("{exact} {until}"));
    }
    if let Some(moved) = export.moved_to {
        life.push(format!("then in {moved}"));
    }
    format!("{:<16} {version:<20} {}  [{}]", export.library, life.join(", "), export.archs.join(", "))
}

fn write_library(out: &mut dyn Write, library: &Library) -> io::Result<()> {
    writeln!(out, "{}", visible(&library.soname))?;
    if library.is_loader {
        writeln!(out, "  the dynamic loader, which every process of its C library and architecture has")?;
    } else if library.allowed_since.is_empty() {
        write_outsider(out, library)?;
    }
    let mut by_tag: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (arch, tag) in &library.allowed_since {
        let policy = tag.strip_suffix(arch).unwrap_or(tag).trim_end_matches('_').to_owned();
        by_tag.entry(policy).or_default().push(arch);
    }
    for (policy, arches) in by_tag {
        writeln!(out, "  promised from {policy} on ({})", arches.join(", "))?;
    }
    for provider in &library.providers {
        let what = match (&provider.class, &provider.distribution) {
            (ProviderClass::Wheel, Some(distribution)) => {
                format!("comes with the distribution {distribution}")
            }
            (ProviderClass::Driver, _) => "comes with the device's driver".to_owned(),
            _ => "comes with the host system".to_owned(),
        };
        let place = provider.lib_dir.as_ref().map(|d| format!(" in {d}")).unwrap_or_default();
        let note = if provider.note.is_empty() { String::new() } else { format!(": {}", provider.note) };
        writeln!(out, "  {what}{place}{note}")?;
    }
    Ok(())
}

/// What to do about a library that no platform tag promises.
fn write_outsider(out: &mut dyn Write, library: &Library) -> io::Result<()> {
    writeln!(out, "  no platform tag promises it: it must be in the wheel, or come with a dependency")?;
    let of = |class| library.providers.iter().any(|provider| provider.class == class);
    if of(ProviderClass::Driver) || of(ProviderClass::Host) {
        return Ok(());
    }
    writeln!(out, "  copy it into the wheel (abiaudit repair, auditwheel repair), or link it statically")?;
    if of(ProviderClass::Wheel) {
        writeln!(out, "  or require one of these distributions (ABI408):")
    } else {
        writeln!(
            out,
            "  or require a distribution that has it, and name that under providers in the configuration (ABI103)"
        )
    }
}

fn list(names: &[&str], otherwise: &str) -> String {
    if names.is_empty() { otherwise.to_owned() } else { names.join(", ") }
}

fn to_json(query: &str, answer: &Answer) -> Value {
    match answer {
        Answer::Rule(rule) => json!({
            "query": query, "about": "rule", "id": rule.id, "name": rule.name,
            "severity": rule.severity.as_str(), "documentation": rule.documentation(),
        }),
        Answer::Table(explanation) => {
            let mut value = serde_json::to_value(explanation).unwrap_or(Value::Null);
            if let Some(object) = value.as_object_mut() {
                object.insert("query".to_owned(), query.into());
            }
            value
        }
        Answer::Tag(tag) => tag.to_json(),
        Answer::Names(symbols) => json!({ "query": query, "about": "name", "symbols": symbols }),
        Answer::Library(library) => json!({
            "query": query, "about": "library", "soname": library.soname, "loader": library.is_loader,
            "allowed_since": library.allowed_since,
            "providers": library.providers.iter().map(|p| json!({
                "distribution": p.distribution, "lib_dir": p.lib_dir, "note": p.note,
            })).collect::<Vec<_>>(),
        }),
        Answer::Nothing => json!({ "query": query, "about": null }),
    }
}
