//! Bindings for a person.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::BindingsOptions;
use super::model::{
    Astray, Bindings, Difference, Edge, Missing, Name, ObjectKind, Run, Symbol, Unexpected, Via,
};
use crate::escape::{brief, visible};

/// Symbols shown of each group before the rest is counted.
const SYMBOLS: usize = 4;
/// Lines shown of each list before the rest is counted.
const LINES: usize = 40;

const BOLD: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default();

pub(super) fn render(bindings: &Bindings, options: BindingsOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer { options, out };
    let system = &bindings.system;
    for input in &bindings.inputs {
        if let Some(error) = &input.error {
            let error = visible(error).into_owned();
            writer.styled(RED, &format!("{}: {error}", visible(&input.path)))?;
        }
    }
    writeln!(
        writer.out,
        "{} {} {}, libraries of GCC {}, a described CPython",
        system.arch, system.libc, system.libc_release, system.gcc_release
    )?;
    for run in &bindings.runs {
        writer.run(run)?;
    }
    if bindings.runs.len() > 1 {
        writer.differences(bindings)?;
    }
    Ok(())
}

struct Writer<'w> {
    options: BindingsOptions,
    out: &'w mut dyn Write,
}

impl Writer<'_> {
    fn run(&mut self, run: &Run) -> io::Result<()> {
        let order: Vec<_> = run.order.iter().map(|name| visible(name)).collect();
        let title = if order.is_empty() { "recorded run".to_owned() } else { order.join(", ") };
        writeln!(self.out)?;
        self.styled(BOLD, &title)?;
        let files = run.objects.iter().filter(|object| object.kind == ObjectKind::File).count();
        writeln!(
            self.out,
            "  {} opened, {files} files and {} libraries of the system loaded, {} references bound",
            run.opened.len(),
            run.objects.len() - files,
            run.references
        )?;
        for note in &run.notes {
            writeln!(self.out, "  note: {}", brief(note))?;
        }
        for opened in run.opened.iter().filter(|opened| opened.global) {
            writeln!(
                self.out,
                "  in the global scope: {} ({})",
                visible(&opened.name),
                visible(&opened.because)
            )?;
        }
        self.trouble(run)?;
        if let Some(symbols) = &run.symbols {
            return self.symbols(run, symbols);
        }
        if !self.options.unexpected {
            self.edges(run)?;
        }
        self.unexpected(run)
    }

    fn trouble(&mut self, run: &Run) -> io::Result<()> {
        let mut missing = BTreeMap::<&str, Vec<&Missing>>::new();
        for one in &run.missing {
            missing.entry(&one.name).or_default().push(one);
        }
        let lines = missing.into_iter().map(|(library, all)| {
            let mut from = all.iter().filter_map(|one| one.from);
            let first = from.next().map(|first| format!(", needed by {}", name(run, first)));
            let others =
                Some(from.count()).filter(|&count| count > 0).map(|count| format!(" and {count} more"));
            let providers = all.first().map_or(&[][..], |one| &one.providers).join(" or ");
            let with = if providers.is_empty() {
                String::new()
            } else {
                format!(" (comes with {}: give it by --with)", visible(&providers))
            };
            format!("{}{}{}{with}", visible(library), first.unwrap_or_default(), others.unwrap_or_default())
        });
        self.list("missing libraries", &lines.collect::<Vec<_>>())?;
        let mut unresolved = BTreeMap::<(usize, &[String]), Vec<&Name>>::new();
        for one in &run.unresolved {
            unresolved.entry((one.from, &one.perhaps)).or_default().push(&one.name);
        }
        let mut lines = Vec::new();
        for ((from, perhaps), names) in unresolved {
            let perhaps = if perhaps.is_empty() {
                String::new()
            } else {
                format!(" (perhaps in {})", visible(&perhaps.join(", ")))
            };
            let most = if self.options.all { names.len() } else { 1 };
            for name_of in names.iter().take(most) {
                lines.push(format!("{}: {}{perhaps}", name(run, from), symbol(name_of)));
            }
            if names.len() > most {
                lines.push(format!("{}: ... {} more (--all)", name(run, from), names.len() - most));
            }
        }
        self.list("unresolved symbols", &lines)
    }

    /// A list with a title, folded, if it has something.
    fn list(&mut self, title: &str, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.styled(RED, &format!("  {title}"))?;
        let most = if self.options.all { lines.len() } else { LINES };
        for line in lines.iter().take(most) {
            writeln!(self.out, "    {line}")?;
        }
        self.rest(lines.len(), most, "    ")
    }

    fn rest(&mut self, count: usize, shown: usize, indent: &str) -> io::Result<()> {
        if count > shown { writeln!(self.out, "{indent}... {} more (--all)", count - shown) } else { Ok(()) }
    }

    /// Who serves whom: consumers in the order of loading.
    fn edges(&mut self, run: &Run) -> io::Result<()> {
        let width = |names: &mut dyn Iterator<Item = usize>| {
            names.map(|object| name(run, object).chars().count()).max().unwrap_or(0).clamp(8, 60)
        };
        let from = width(&mut run.edges.iter().map(|edge| edge.from));
        let to = width(&mut run.edges.iter().map(|edge| edge.to));
        writeln!(self.out)?;
        let header = format!("  {:<from$}  {:<to$}  symbols  via", "object", "served by");
        self.styled(BOLD, header.trim_end())?;
        let most = if self.options.all { run.edges.len() } else { LINES * 5 };
        for edge in run.edges.iter().take(most) {
            let (consumer, provider) = (name(run, edge.from), name(run, edge.to));
            let line = format!("  {consumer:<from$}  {provider:<to$}  {:>7}  {}", edge.symbols(), via(edge));
            writeln!(self.out, "{line}")?;
        }
        self.rest(run.edges.len(), most, "  ")
    }

    fn unexpected(&mut self, run: &Run) -> io::Result<()> {
        writeln!(self.out)?;
        let symbols: usize = run.unexpected.iter().map(|unexpected| unexpected.symbols.len()).sum();
        let title = format!("  references that leave what they were built for: {symbols}");
        self.styled(BOLD, &title)?;
        for unexpected in &run.unexpected {
            self.one_unexpected(run, unexpected)?;
        }
        if run.folded > 0 {
            writeln!(
                self.out,
                "  {} more within one distribution, to inline functions, templates and type information that several \
                 of its objects define (--all)",
                run.folded
            )?;
        }
        Ok(())
    }

    fn one_unexpected(&mut self, run: &Run, unexpected: &Unexpected) -> io::Result<()> {
        let (from, to) = (name(run, unexpected.from), name(run, unexpected.to));
        let owner = |object: usize| {
            run.objects.get(object).and_then(|object| object.distribution.as_deref()).unwrap_or("the system")
        };
        let place = if unexpected.leaves_distribution {
            format!(" [{} <- {}]", visible(owner(unexpected.from)), visible(owner(unexpected.to)))
        } else {
            String::new()
        };
        let kind = match unexpected.kind {
            Astray::Overridden => "has its own",
            Astray::NotNeeded => "does not need it",
        };
        let scope = via_name(unexpected.via);
        let count = unexpected.symbols.len();
        writeln!(self.out, "  {from} <- {to}: {count} by {scope}, and {kind}{place}")?;
        self.names(&unexpected.symbols)
    }

    fn names(&mut self, names: &[Name]) -> io::Result<()> {
        let most = if self.options.all { names.len() } else { SYMBOLS };
        for name in names.iter().take(most) {
            writeln!(self.out, "      {}", symbol(name))?;
        }
        self.rest(names.len(), most, "      ")
    }

    fn symbols(&mut self, run: &Run, symbols: &[Symbol]) -> io::Result<()> {
        if symbols.is_empty() {
            return writeln!(self.out, "  no object defines or refers to such a symbol");
        }
        let most = if self.options.all { symbols.len() } else { LINES };
        for found in symbols.iter().take(most) {
            writeln!(self.out)?;
            let shown = found.demangled.as_deref().unwrap_or(&found.symbol);
            self.styled(BOLD, &format!("  {}", brief(shown)))?;
            if found.demangled.is_some() {
                writeln!(self.out, "    {}", brief(&found.symbol))?;
            }
            for definition in &found.definitions {
                let version = at(definition.version.as_deref());
                let object = name(run, definition.object);
                writeln!(self.out, "    defined   {object} ({}{version})", definition.binding)?;
            }
            for reference in &found.references {
                let provider = reference.provider.map_or("nothing".to_owned(), |object| name(run, object));
                let own = if reference.own_definition && reference.provider != Some(reference.object) {
                    ", though it has its own"
                } else {
                    ""
                };
                let version = at(reference.version.as_deref());
                let (object, scope) = (name(run, reference.object), via_name(reference.via));
                writeln!(self.out, "    referred  {object}{version} <- {provider} by {scope}{own}")?;
            }
        }
        self.rest(symbols.len(), most, "  ")
    }

    fn differences(&mut self, bindings: &Bindings) -> io::Result<()> {
        writeln!(self.out)?;
        let count: usize = bindings.differences.iter().map(|difference| difference.symbols.len()).sum();
        self.styled(BOLD, &format!("references that depend on the order: {count}"))?;
        for difference in &bindings.differences {
            let Difference { object, providers, symbols } = difference;
            let providers: Vec<_> =
                providers.iter().map(|p| visible(p.as_deref().unwrap_or("nothing")).into_owned()).collect();
            writeln!(self.out, "  {} <- {}: {}", visible(object), providers.join(" | "), symbols.len())?;
            self.names(symbols)?;
        }
        Ok(())
    }

    fn styled(&mut self, style: Style, text: &str) -> io::Result<()> {
        if self.options.color {
            writeln!(self.out, "{style}{text}{style:#}")
        } else {
            writeln!(self.out, "{text}")
        }
    }
}

fn name(run: &Run, object: usize) -> String {
    run.objects.get(object).map_or_else(String::new, |object| visible(&object.name).into_owned())
}

fn symbol(name: &Name) -> String {
    format!("{}{}", brief(name.shown()), at(name.version.as_deref()))
}

fn at(version: Option<&str>) -> String {
    version.map(|version| format!(" @{}", visible(version))).unwrap_or_default()
}

fn via(edge: &Edge) -> String {
    let parts = [(edge.global, "global"), (edge.local, "local"), (edge.unique, "unique")];
    let used: Vec<_> = parts.iter().filter(|(count, _)| *count > 0).collect();
    let mut text = match used.as_slice() {
        [(_, name)] => (*name).to_owned(),
        used => used.iter().map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", "),
    };
    if edge.overridden > 0 {
        text += "; ";
        text += &edge.overridden.to_string();
        text += " overridden";
    }
    text
}

fn via_name(via: Via) -> &'static str {
    match via {
        Via::Itself => "its own rule",
        Via::Global => "global scope",
        Via::Local => "local scope",
        Via::Unique => "uniqueness",
        Via::Nothing => "no rule",
    }
}
