//! What is run: the imports in one order, the way in which they are opened, and the place of the probe among them.

use serde::Serialize;

/// How objects are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Everything with `RTLD_LOCAL`, as Python does.
    Local,
    /// Everything with `RTLD_GLOBAL` (`sys.setdlopenflags`).
    Global,
    /// Only the first.
    FirstGlobal,
    /// Only the second.
    SecondGlobal,
    /// `LD_PRELOAD=libstdc++.so.6`, and the rest with `RTLD_LOCAL`.
    Preload,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Local, Self::Global, Self::FirstGlobal, Self::SecondGlobal, Self::Preload];

    /// The name of the library that is preloaded.
    pub const PRELOADED: &str = "libstdc++.so.6";

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Global => "global",
            Self::FirstGlobal => "first-global",
            Self::SecondGlobal => "second-global",
            Self::Preload => "preload",
        }
    }

    /// Whether the object at this position, counted from 0, is opened with `RTLD_GLOBAL`.
    fn is_global(self, position: usize) -> bool {
        match self {
            Self::Local | Self::Preload => false,
            Self::Global => true,
            Self::FirstGlobal => position == 0,
            Self::SecondGlobal => position == 1,
        }
    }
}

/// Where the probe is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Before the first import.
    First,
    /// After each import but the last; a copy of its own each time.
    Between,
    /// After the last import.
    Last,
    /// Not at all.
    Nowhere,
}

/// One thing that is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Step {
    /// A module is imported.
    Import {
        /// Its dotted name.
        module: String,
        /// Its extension modules, and those that it imports, with `RTLD_GLOBAL`.
        global: bool,
    },
    /// A copy of the probe is opened.
    Probe {
        /// The number of the copy, from 0.
        copy: usize,
        /// With `RTLD_GLOBAL`.
        global: bool,
    },
}

/// What one process does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// How objects are opened.
    pub mode: Mode,
    /// Where the probe is.
    pub place: Place,
    /// What is opened, in order.
    pub steps: Vec<Step>,
}

impl Case {
    /// Imports in this order.
    pub fn new(imports: &[String], mode: Mode, place: Place) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        let mut copies = 0;
        let mut add = |module: Option<&String>| {
            let global = mode.is_global(steps.len());
            steps.push(match module {
                Some(module) => Step::Import { module: module.clone(), global },
                None => {
                    copies += 1;
                    Step::Probe { copy: copies - 1, global }
                }
            });
        };
        if place == Place::First {
            add(None);
        }
        for (position, module) in imports.iter().enumerate() {
            add(Some(module));
            let is_last = position + 1 == imports.len();
            if (is_last && place == Place::Last) || (!is_last && place == Place::Between) {
                add(None);
            }
        }
        Self { mode, place, steps }
    }

    /// How many copies of the probe it opens.
    pub fn copies(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Probe { .. })).count()
    }

    /// What is opened, in words: `numpy, probe`.
    pub fn order(&self) -> String {
        let names: Vec<String> = self.steps.iter().map(Step::name).collect();
        names.join(", ")
    }
}

impl Step {
    /// A name for people.
    pub fn name(&self) -> String {
        match self {
            Self::Import { module, .. } => module.clone(),
            Self::Probe { copy, .. } => probe_name(*copy),
        }
    }
}

/// The name of a copy of the probe.
pub(crate) fn probe_name(copy: usize) -> String {
    if copy == 0 { "probe".to_owned() } else { format!("probe {}", copy + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(mode: Mode, place: Place) -> Case {
        Case::new(&["a", "b", "c"].map(str::to_owned), mode, place)
    }

    #[test]
    fn places_of_the_probe() {
        assert_eq!(case(Mode::Local, Place::First).order(), "probe, a, b, c");
        assert_eq!(case(Mode::Local, Place::Between).order(), "a, probe, b, probe 2, c");
        assert_eq!(case(Mode::Local, Place::Last).order(), "a, b, c, probe");
        assert_eq!(case(Mode::Local, Place::Nowhere).order(), "a, b, c");
    }

    #[test]
    fn first_and_second_count_the_probe_too() {
        let globals = |mode| {
            let steps = case(mode, Place::First).steps;
            steps
                .iter()
                .map(|step| match step {
                    Step::Import { global, .. } | Step::Probe { global, .. } => *global,
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(globals(Mode::FirstGlobal), [true, false, false, false]);
        assert_eq!(globals(Mode::SecondGlobal), [false, true, false, false]);
        assert_eq!(globals(Mode::Preload), [false; 4]);
        assert_eq!(globals(Mode::Global), [true; 4]);
    }
}
