//! The report as JSON, and its schema.

use std::io::{self, Write};

use schemars::Schema;
use schemars::generate::SchemaSettings;

use crate::model::Report;
use crate::options::RenderOptions;

/// Writes the whole report as indented JSON.
pub fn render(report: &Report, _: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

/// Writes the whole report as JSON on one line.
pub fn render_compact(report: &Report, _: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, report)?;
    writeln!(out)
}

/// The JSON Schema (draft 2020-12) of what [`render`] writes. `docs/schema/abiaudit.report-1.schema.json` is its
/// committed form.
pub fn schema() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Report>()
}
