//! Who serves whom in a process (`abiaudit bind`): the JSON contract `abiaudit.bindings/1` and its renderings.

mod dot;
mod html;
pub mod model;
mod text;

use std::io::{self, Write};

use schemars::Schema;
use schemars::generate::SchemaSettings;

pub use model::Bindings;

/// Forms of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindingsFormat {
    /// For a person.
    Text,
    /// Everything.
    Json,
    /// A directed graph for Graphviz.
    Dot,
    /// A page that needs nothing but itself.
    Html,
}

/// What of it to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BindingsOptions {
    /// Text: only references that leave what they were built for.
    pub unexpected: bool,
    /// Text: nothing is folded.
    pub all: bool,
    /// Text: in colour.
    pub color: bool,
}

/// Writes the report.
///
/// # Errors
/// Those of writing.
pub fn render(
    format: BindingsFormat,
    bindings: &Bindings,
    options: BindingsOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        BindingsFormat::Text => text::render(bindings, options, out),
        BindingsFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, bindings)?;
            writeln!(out)
        }
        BindingsFormat::Dot => dot::render(bindings, out),
        BindingsFormat::Html => html::render(bindings, out),
    }
}

/// The JSON Schema (draft 2020-12) of the JSON form. `docs/schema/abiaudit.bindings-1.schema.json` is its committed
/// form.
pub fn schema() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Bindings>()
}
