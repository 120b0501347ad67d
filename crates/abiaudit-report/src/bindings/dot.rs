//! Bindings as a graph for Graphviz: objects grouped by distribution.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::model::{Bindings, Object, Run};
use crate::escape::visible;

pub(super) fn render(bindings: &Bindings, out: &mut dyn Write) -> io::Result<()> {
    for (number, run) in bindings.runs.iter().enumerate() {
        graph(number, run, out)?;
    }
    Ok(())
}

fn graph(number: usize, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "digraph run{number} {{")?;
    writeln!(out, "  label={};", quoted(&run.order.join(", ")))?;
    writeln!(out, "  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];")?;
    writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=8];")?;
    let mut groups: BTreeMap<&str, Vec<(usize, &Object)>> = BTreeMap::new();
    for (id, object) in run.objects.iter().enumerate() {
        groups.entry(object.distribution.as_deref().unwrap_or("")).or_default().push((id, object));
    }
    for (cluster, (distribution, objects)) in groups.into_iter().enumerate() {
        let label = if distribution.is_empty() { "system" } else { distribution };
        writeln!(out, "  subgraph cluster{cluster} {{\n    label={};", quoted(label))?;
        for (id, object) in objects {
            let style = if object.global { ", style=bold" } else { "" };
            writeln!(out, "    n{id} [label={}{style}];", quoted(&object.name))?;
        }
        writeln!(out, "  }}")?;
    }
    for edge in &run.edges {
        let astray = run.unexpected.iter().any(|u| (u.from, u.to) == (edge.from, edge.to));
        let color = if astray { ", color=red, fontcolor=red" } else { "" };
        writeln!(out, "  n{} -> n{} [label=\"{}\"{color}];", edge.from, edge.to, edge.symbols())?;
    }
    writeln!(out, "}}")
}

/// A quoted string of the DOT language: only the quote and the backslash mean something in it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", visible(text).replace('\\', "\\\\").replace('"', "\\\""))
}
