//! Where output goes: standard output, or a file that appears only when it is complete.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::cli::Color;

/// Standard output that drops colours where they do not belong, and whether colours are worth writing.
pub fn stdout(color: Color) -> (Box<dyn Write>, bool) {
    let choice = match color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    let stream = anstream::AutoStream::new(io::stdout(), choice);
    let colored = stream.current_choice() != anstream::ColorChoice::Never;
    (Box::new(io::BufWriter::new(stream)), colored)
}

/// Columns of the terminal that standard output is, if it is one.
pub fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    io::stdout().is_terminal().then(|| columns.unwrap_or(100))
}

/// A report must not take the place of a wheel that it is about.
pub fn refuse_input(output: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
    let Ok(target) = output.canonicalize() else { return Ok(()) };
    if inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == target)) {
        bail!("{} is an input; the report would replace it", output.display());
    }
    Ok(())
}

/// Writes a file as a whole or not at all: into a temporary file beside it, which is then renamed.
pub fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let context = || format!("cannot write {}", path.display());
    // A device or a pipe (/dev/stdout) cannot be replaced by renaming.
    if path.exists() && !path.is_file() {
        let mut file = io::BufWriter::new(std::fs::File::create(path).with_context(context)?);
        return write(&mut file).and_then(|()| file.flush()).with_context(context);
    }
    let mut file =
        tempfile::Builder::new().prefix(".abiaudit-").tempfile_in(directory).with_context(context)?;
    {
        let mut buffer = io::BufWriter::new(file.as_file_mut());
        write(&mut buffer).and_then(|()| buffer.flush()).with_context(context)?;
    }
    make_readable(&file);
    file.as_file().sync_all().with_context(context)?;
    file.persist(path).map_err(|e| e.error).with_context(context)?;
    Ok(())
}

/// Temporary files are private; a report is an ordinary file.
#[cfg(unix)]
fn make_readable(file: &tempfile::NamedTempFile) {
    use std::os::unix::fs::PermissionsExt;
    let _ = file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644));
}

#[cfg(not(unix))]
fn make_readable(_file: &tempfile::NamedTempFile) {}

/// Passes over a reader of our output that has gone; any other failure to write is one.
pub fn unless_reader_has_gone(written: anyhow::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        other => other,
    }
}

/// The reader of our output has gone: not worth a word.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
