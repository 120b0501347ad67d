//! What ld.so says of a run: `LD_DEBUG=files,scopes,bindings` of glibc. For what was opened `files` and `scopes` are
//! enough; without `scopes` the log does not tell `RTLD_GLOBAL` (`add_to_global_update` in glibc elf/dl-open.c).

use std::collections::BTreeSet;
use std::io::{self, BufRead};

use crate::plan::{self, Cause, Opening, Plan};
use crate::site::Site;

/// A run, as ld.so told it.
#[derive(Debug, Default)]
pub struct Log {
    /// Requests of `dlopen`, in order.
    pub opened: Vec<Opened>,
    /// Distinct bindings.
    pub bindings: BTreeSet<Bound>,
    /// How many objects were mapped; the program, the loader and the vdso are not.
    pub mapped: usize,
    /// The log tells of scopes.
    pub has_scopes: bool,
}

/// What happened by `dlopen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// A name or path that was not loaded was asked for by an object.
    Asked {
        /// As it was asked for.
        name: String,
        /// Path of the object whose code asked; empty for the program.
        caller: String,
    },
    /// An object was put into the global scope with all that it needs.
    Global {
        /// Its path.
        path: String,
    },
}

/// One line on a binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bound {
    /// Path of the object that refers.
    pub from: String,
    /// Path of the object that serves.
    pub to: String,
    /// The symbol.
    pub symbol: String,
    /// The version that the reference asks for.
    pub version: Option<String>,
}

impl Log {
    /// Reads a log of one process. Lines of other kinds are passed over.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(lines: impl BufRead) -> io::Result<Self> {
        let mut log = Self::default();
        let mut became_global = false;
        for line in lines.split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            // The number of the process, a tab, the message.
            let Some((_, message)) = line.split_once('\t') else { continue };
            log.has_scopes |= message.starts_with(" scope ");
            if let Some(bound) = message.strip_prefix("binding file ").and_then(bound) {
                log.bindings.insert(bound);
            } else if message.starts_with("add ") && message.ends_with(" to global scope") {
                became_global = true;
            } else if let Some(rest) = message.strip_prefix("opening file=") {
                // Said after relocation and initialisation, so that what these opened comes before it.
                if std::mem::take(&mut became_global)
                    && let Some((path, _)) = rest.split_once(" [")
                {
                    log.opened.push(Opened::Global { path: path.to_owned() });
                }
            } else if let Some((name, rest)) = message.strip_prefix("file=").and_then(|m| m.split_once(" ["))
            {
                log.mapped += usize::from(rest.ends_with("generating link map"));
                if let Some((_, caller)) = rest.split_once("dynamically loaded by ") {
                    let caller = caller.rsplit_once(" [").map_or(caller, |(caller, _)| caller);
                    log.opened.push(Opened::Asked { name: name.to_owned(), caller: caller.to_owned() });
                }
            }
        }
        Ok(log)
    }

    /// What the run opened of the site. Paths are taken to be those of the site from their `site-packages` (or
    /// Debian's `dist-packages`) on.
    pub fn plan(&self, site: &Site<'_>) -> Plan {
        let mut plan = Plan::default();
        let mut elsewhere = BTreeSet::new();
        for opened in &self.opened {
            let (name, caller, global) = match opened {
                Opened::Asked { name, caller } => (name, file_of(site, caller), false),
                Opened::Global { path } => (path, None, true),
            };
            let opened = match file_of(site, name) {
                Some(file) => plan::Opened::File(file),
                None if name.contains('/') => {
                    elsewhere.insert(name.as_str());
                    continue;
                }
                None => plan::Opened::Name(name.clone()),
            };
            plan.openings.push(Opening { opened, global, caller, cause: Cause::Trace });
        }
        if !self.has_scopes {
            let note = "the trace does not tell what is RTLD_GLOBAL: record it with LD_DEBUG=files,scopes";
            plan.notes.push(note.to_owned());
        }
        if !elsewhere.is_empty() {
            let (count, first) = (elsewhere.len(), elsewhere.first().copied().unwrap_or_default());
            plan.notes.push(format!("the trace opens {count} files that no input has, such as {first}"));
        }
        plan
    }
}

fn file_of(site: &Site<'_>, path: &str) -> Option<usize> {
    let below = ["/site-packages/", "/dist-packages/"].iter().find_map(|root| path.split_once(root));
    let mut parts: Vec<&str> = Vec::new();
    for part in below?.1.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    site.file_below(&parts.join("/"))
}

/// `FROM [0] to TO [0]: normal symbol 'NAME' [VERSION]`; the first quote may be a backquote.
fn bound(rest: &str) -> Option<Bound> {
    let (from, rest) = rest.split_once(" [0] to ")?;
    let (to, rest) = rest.split_once(" [0]: ")?;
    let (_, rest) = rest.split_once(" symbol ")?;
    let (symbol, rest) = rest.get(1..)?.split_once('\'')?;
    let version = rest.strip_prefix(" [").and_then(|v| v.strip_suffix(']')).map(str::to_owned);
    Some(Bound { from: from.to_owned(), to: to.to_owned(), symbol: symbol.to_owned(), version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_glibc_prints() -> io::Result<()> {
        let text = "      7:\tfile=/p/m.so [0];  dynamically loaded by /p/libpython.so [0]\n\
            \x20     7:\tfile=/p/m.so [0];  generating link map\n\
            \x20     7:\tbinding file /p/m.so [0] to /l/libc.so.6 [0]: normal symbol `free' [GLIBC_2.2.5]\n\
            \x20     7:\tbinding file /p/m.so [0] to /p/m.so [0]: normal symbol `own'\n\
            \x20     7:\t scope 0: python /p/m.so\n\
            \x20     7:\tadd /p/m.so [0] to global scope\n\
            \x20     7:\topening file=/p/m.so [0]; direct_opencount=1\n";
        let log = Log::read(text.as_bytes())?;
        let asked = Opened::Asked { name: "/p/m.so".to_owned(), caller: "/p/libpython.so".to_owned() };
        assert_eq!(log.opened, [asked, Opened::Global { path: "/p/m.so".to_owned() }]);
        let symbols: Vec<_> =
            log.bindings.iter().map(|b| (b.symbol.as_str(), b.version.as_deref())).collect();
        assert_eq!(symbols, [("free", Some("GLIBC_2.2.5")), ("own", None)]);
        assert_eq!((log.mapped, log.has_scopes), (1, true));
        Ok(())
    }
}
