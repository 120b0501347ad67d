//! `abiaudit elf-edit`: one ELF file, edited and verified.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use abiaudit_edit::{
    Binding, Edit, EditPlan, EditedFile, ElfImage, Layout, Options, Place, SearchPathKind, StripLevel,
    SymbolName, debug_file, debug_link, edit, edit_file,
};
use anyhow::{Context, bail};
use serde_json::json;

use crate::CLEAN;
use crate::cli::{self, EditFormat, ElfEditArgs};
use crate::output;

pub fn run(args: &ElfEditArgs) -> anyhow::Result<u8> {
    let plan = plan(args)?;
    let options = Options { allow_phdr_move: args.allow_phdr_move };
    let context = || format!("{} was not edited", args.file.display());
    let done = match target(args) {
        Some(target) => edit_file(&args.file, target, &plan, &options).with_context(context)?,
        None => rehearse(&args.file, &plan, options).with_context(context)?,
    };
    let mut out = io::stdout().lock();
    match args.format {
        EditFormat::Text => write_text(&mut out, args, &plan, &done)?,
        EditFormat::Json => write_json(&mut out, args, &plan, &done)?,
    }
    Ok(CLEAN)
}

/// Where the result goes, unless it goes nowhere.
fn target(args: &ElfEditArgs) -> Option<&Path> {
    if args.dry_run {
        return None;
    }
    args.output.as_deref().or(args.in_place.then_some(args.file.as_path()))
}

/// All but writing.
fn rehearse(file: &Path, plan: &EditPlan, options: Options) -> anyhow::Result<EditedFile> {
    let bytes = fs::read(file)?;
    ElfImage::parse(&bytes)?;
    let edited = edit(&bytes, plan, &options)?;
    Ok(EditedFile { layout: edited.layout, stripped: edited.stripped })
}

/// The plan of the options, in the order of the help page.
fn plan(args: &ElfEditArgs) -> anyhow::Result<EditPlan> {
    let mut plan = match &args.plan {
        Some(path) => read_plan(path)?,
        None => EditPlan::default(),
    };
    if let Some(level) = args.strip {
        plan.push(strip(args, level)?);
    }
    push_libraries(args, &mut plan)?;
    push_paths(args, &mut plan);
    push_versions(args, &mut plan)?;
    push_symbols(args, &mut plan)?;
    if args.clear_execstack {
        plan.push(Edit::ClearExecutableStack);
    }
    if let Some(path) = &args.set_interpreter {
        plan.push(Edit::SetInterpreter { path: path.clone() });
    }
    if args.heal {
        plan.push(Edit::Heal);
    }
    if plan.edits.is_empty() {
        bail!("no edit is asked for");
    }
    Ok(plan)
}

fn read_plan(path: &Path) -> anyhow::Result<EditPlan> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    serde_json::from_str(&text).with_context(|| format!("{name} is no plan"))
}

/// Writes the debug file, if one is wanted: what leads to it says what is in it.
fn strip(args: &ElfEditArgs, level: cli::StripLevel) -> anyhow::Result<Edit> {
    let level = match level {
        cli::StripLevel::Debug => StripLevel::Debug,
        cli::StripLevel::Symbols => StripLevel::Symbols,
    };
    let Some(path) = &args.debug_file else { return Ok(Edit::Strip { level, debug_link: None }) };
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} has no name that a debug link can hold", path.display()))?;
    let original = fs::read(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    let debug = debug_file(&original).with_context(|| format!("cannot make {}", path.display()))?;
    if !args.dry_run {
        output::write_file(path, |out| out.write_all(&debug))?;
    }
    Ok(Edit::Strip { level, debug_link: Some(debug_link(name, &debug)) })
}

fn push_libraries(args: &ElfEditArgs, plan: &mut EditPlan) -> anyhow::Result<()> {
    for pair in &args.replace_needed {
        let (from, to) = split(pair, '=', "OLD=NEW")?;
        plan.push(Edit::ReplaceNeeded { from, to });
    }
    for library in &args.remove_needed {
        plan.push(Edit::RemoveNeeded { library: library.clone() });
    }
    // Each goes before the one added last.
    for library in &args.add_needed {
        plan.push(Edit::AddNeeded { library: library.clone(), place: Place::First });
    }
    for library in &args.append_needed {
        plan.push(Edit::AddNeeded { library: library.clone(), place: Place::Last });
    }
    if !args.order_needed.is_empty() {
        plan.push(Edit::OrderNeeded { libraries: args.order_needed.clone() });
    }
    Ok(())
}

fn push_paths(args: &ElfEditArgs, plan: &mut EditPlan) {
    if let Some(soname) = &args.set_soname {
        plan.push(Edit::SetSoname { soname: soname.clone() });
    }
    if args.remove_soname {
        plan.push(Edit::RemoveSoname);
    }
    let kind = if args.force_rpath { SearchPathKind::Rpath } else { SearchPathKind::Runpath };
    if let Some(path) = &args.set_rpath {
        plan.push(Edit::SetSearchPath { kind, path: path.clone() });
    } else if args.force_rpath {
        plan.push(Edit::ConvertSearchPath { to: kind });
    }
    if args.remove_rpath {
        plan.push(Edit::RemoveSearchPath);
    }
}

fn push_versions(args: &ElfEditArgs, plan: &mut EditPlan) -> anyhow::Result<()> {
    for text in &args.rename_version {
        let (library, versions) = split(text, ':', "LIBRARY:OLD=NEW")?;
        let (from, to) = split(&versions, '=', "LIBRARY:OLD=NEW")?;
        plan.push(Edit::RenameVersion { library, from, to });
    }
    for text in &args.remove_version {
        let (library, version) = split(text, ':', "LIBRARY:VERSION")?;
        plan.push(Edit::RemoveVersion { library, version });
    }
    for text in &args.assign_version {
        let (symbol, target) = split(text, '=', "SYMBOL=LIBRARY:VERSION")?;
        let (library, version) = split(&target, ':', "SYMBOL=LIBRARY:VERSION")?;
        plan.push(Edit::AssignVersion { symbols: vec![SymbolName::from(symbol)], library, version });
    }
    Ok(())
}

fn push_symbols(args: &ElfEditArgs, plan: &mut EditPlan) -> anyhow::Result<()> {
    for pair in &args.rename_symbol {
        let (from, to) = split(pair, '=', "SYMBOL=NAME")?;
        plan.push(Edit::RenameSymbol { from: SymbolName::from(from), to });
    }
    if !args.hide.is_empty() {
        plan.push(Edit::Hide { symbols: args.hide.iter().cloned().map(SymbolName::from).collect() });
    }
    if args.demote_unique {
        plan.push(Edit::DemoteUnique { to: Binding::Weak });
    }
    Ok(())
}

fn split(text: &str, separator: char, form: &str) -> anyhow::Result<(String, String)> {
    match text.split_once(separator) {
        Some((left, right)) if !left.is_empty() && !right.is_empty() => {
            Ok((left.to_owned(), right.to_owned()))
        }
        _ => bail!("{text:?} is not of the form {form}"),
    }
}

fn write_text(out: &mut dyn Write, args: &ElfEditArgs, plan: &EditPlan, done: &EditedFile) -> io::Result<()> {
    let layout = &done.layout;
    write!(out, "{plan}")?;
    for name in &done.stripped {
        writeln!(out, "  {name} goes")?;
    }
    for note in &layout.notes {
        writeln!(out, "  nothing to do: {note}")?;
    }
    for moved in &layout.moves {
        let (from, to) = (moved.from.offset, moved.to.offset);
        writeln!(out, "  {} moves from {from:#x} to {to:#x} ({} bytes)", moved.what.name(), moved.to.size)?;
    }
    for segment in &layout.added {
        let kind = if segment.is_writable { "writable" } else { "read-only" };
        let extent = segment.extent;
        writeln!(out, "  a {kind} segment of {} bytes is added at {:#x}", extent.size, extent.address)?;
    }
    for segment in &layout.dropped {
        writeln!(out, "  the empty segment at {:#x} goes", segment.address)?;
    }
    for warning in &layout.warnings {
        writeln!(out, "  warning: {warning}")?;
    }
    writeln!(out, "{}: {}", args.file.display(), summary(args, layout, &done.stripped))
}

fn summary(args: &ElfEditArgs, layout: &Layout, stripped: &[String]) -> String {
    if layout.is_empty() && stripped.is_empty() {
        return "as wanted already".to_owned();
    }
    let bytes: u64 = layout.writes.iter().map(|write| write.size).sum();
    let done = if args.dry_run { "would be written, and verified" } else { "written and verified" };
    format!("{bytes} bytes in {} places {done}; growth {}", layout.writes.len(), layout.growth())
}

fn write_json(
    out: &mut dyn Write,
    args: &ElfEditArgs,
    plan: &EditPlan,
    done: &EditedFile,
) -> anyhow::Result<()> {
    let document = json!({
        "schema": "abiaudit.elf-edit/1",
        "file": args.file,
        "plan": plan,
        "stripped": done.stripped,
        "layout": done.layout,
        "written": !args.dry_run,
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}
