//! What a process opens, in order, and why.

use crate::imports::module_of;
use crate::preloads::preloads;
use crate::site::Site;

/// A `dlopen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// What is opened.
    pub opened: Opened,
    /// `RTLD_GLOBAL`
    pub global: bool,
    /// The file whose code calls; `None` is the program.
    pub caller: Option<usize>,
    /// Why.
    pub cause: Cause,
}

/// What is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// A file of the site, by its path.
    File(usize),
    /// A name that the loader searches for.
    Name(String),
}

/// Why something is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A module is imported.
    Import {
        /// Its dotted name.
        module: String,
        /// Where the statement stands, such as `numpy/_core/multiarray.py:11`; `None` if the user asked for it.
        at: Option<String>,
    },
    /// `policies/preloads.toml` says so.
    Preload {
        /// The module that does it.
        module: String,
    },
    /// The trace says so.
    Trace,
    /// It is an extension module, and no imports were named.
    Everything,
}

/// All that a process opens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In order.
    pub openings: Vec<Opening>,
    /// What the user should know about how complete the plan is.
    pub notes: Vec<String>,
}

impl Plan {
    /// Every extension module of every distribution, by position in `order` and then by name, each preceded by what
    /// `policies/preloads.toml` knows to be opened before it.
    pub fn everything(site: &Site<'_>, order: &[usize]) -> Self {
        let mut plan = Self::default();
        for &subject in order {
            for (position, file) in site.files.iter().enumerate() {
                if file.subject != subject {
                    continue;
                }
                let Some(module) = module_of(file.short_path()) else { continue };
                if !file.object.symbols.exported().any(|symbol| is_init(file.object.symbols.name(symbol))) {
                    continue;
                }
                for preload in preloads().iter().filter(|preload| preload.is_before(&module)) {
                    plan.preload(site, preload);
                }
                plan.openings.push(Opening {
                    opened: Opened::File(position),
                    global: false,
                    caller: None,
                    cause: Cause::Everything,
                });
            }
        }
        plan
    }

    /// Opens the file that a preload names if the site has it, once.
    pub(crate) fn preload(&mut self, site: &Site<'_>, preload: &crate::Preload) {
        if let Some(file) = preload.file_of(site) {
            let opened = Opened::File(file);
            let cause = Cause::Preload { module: preload.module.clone() };
            let opening = Opening { opened, global: preload.global, caller: None, cause };
            if !self.openings.contains(&opening) {
                self.openings.push(opening);
            }
        }
    }
}

/// The function by which Python starts an extension module (PEP 489, and PEP 3149's ABI before it), or Python 2's.
fn is_init(symbol: &[u8]) -> bool {
    [&b"PyInit_"[..], b"PyInitU_", b"PyModExport_", b"init"].iter().any(|prefix| symbol.starts_with(prefix))
}
