//! What happened in a process: the record that the driver wrote, and how the process ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::{Case, probe_name};
use crate::child::{Ended, signal_name};

/// Lines of the record that are read; a run writes some hundred.
const EVENTS_MAX: usize = 100_000;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Happened {
    /// How the process ended.
    pub ended: Ended,
    /// What was begun last and not finished, if it did not come to its end: `import numpy`.
    pub during: Option<String>,
    /// What did not work.
    pub failures: Vec<Failure>,
    /// What did not work when an exception or a stream went from one module to another.
    pub crossings: Vec<Failure>,
    /// How many questions to the probes were answered as they should be.
    pub passed: usize,
    /// How many crossings went well.
    pub crossed: usize,
    /// Whether what should be once in a process is shared by each two probes.
    pub identities: Vec<Identity>,
    /// Values of the expressions to check.
    pub checks: Vec<Checked>,
    /// A module that no input has.
    pub absent: Option<String>,
    /// The driver itself failed, so that nothing is known.
    #[serde(skip)]
    pub(crate) fault: Option<String>,
    /// The end of what the process wrote to its standard error.
    pub stderr: String,
}

/// Something that did not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Where: a module, `probe`, or `a -> b` for what goes from one to the other.
    pub at: String,
    /// What was tried.
    pub what: String,
    /// What came of it.
    pub seen: String,
}

/// Whether two modules share something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The one.
    pub first: String,
    /// The other.
    pub second: String,
    /// What, such as `cout`.
    pub what: String,
    /// They do.
    pub shared: bool,
}

/// An expression and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// As it was given.
    pub expression: String,
    /// Its value is true.
    pub holds: bool,
    /// Its value, or what went wrong.
    pub value: String,
}

impl Happened {
    /// Something is wrong with a module or with the process, crossings left aside.
    pub fn is_broken(&self) -> bool {
        !self.failures.is_empty()
    }

    /// Something did not cross from one module to another.
    pub fn is_crossing_broken(&self) -> bool {
        !self.crossings.is_empty()
    }

    /// Reads the driver's record of a case.
    pub(crate) fn read(record: &str, ended: Ended, case: &Case, checks: &[String], stderr: String) -> Self {
        let mut happened = Self {
            ended,
            during: None,
            failures: Vec::new(),
            crossings: Vec::new(),
            passed: 0,
            crossed: 0,
            identities: Vec::new(),
            checks: Vec::new(),
            absent: None,
            fault: None,
            stderr,
        };
        let mut reached = Reached::Nothing;
        for line in record.lines().take(EVENTS_MAX) {
            // The last line may be cut.
            let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
            happened.take(event, case, checks, &mut reached);
        }
        happened.conclude(reached);
        happened
    }

    fn take(&mut self, event: Event, case: &Case, checks: &[String], reached: &mut Reached) {
        match event {
            Event::Start => *reached = Reached::Started,
            Event::Begin { step } => *reached = Reached::Began(step_name(case, step)),
            Event::Loaded => *reached = Reached::Loaded,
            Event::Error { step, kind, message, absent } => {
                *reached = Reached::End;
                self.absent = absent;
                let seen = format!("{kind}: {message}");
                self.failures.push(Failure { at: step_name(case, step), what: "import".to_owned(), seen });
            }
            Event::Test { at, what, outcome } => match outcome.wrong(None) {
                Some(seen) => self.failures.push(Failure { at, what, seen }),
                None => self.passed += 1,
            },
            Event::Cross { from, to, what, outcome, expected } => {
                let at = format!("{from} -> {to}");
                match outcome.wrong(expected.as_deref()) {
                    Some(seen) => self.crossings.push(Failure { at, what, seen }),
                    None => self.crossed += 1,
                }
            }
            Event::Identity { first, second, what, shared } => {
                self.identities.push(Identity { first, second, what, shared });
            }
            Event::Check { number, outcome } => {
                let expression = checks.get(number).cloned().unwrap_or_default();
                let (holds, value) = outcome.value();
                if !holds {
                    let (at, what, seen) = ("check".to_owned(), expression.clone(), value.clone());
                    self.failures.push(Failure { at, what, seen });
                }
                self.checks.push(Checked { expression, holds, value });
            }
            Event::Fault { message } => self.fault = Some(message),
            Event::End => *reached = Reached::End,
        }
    }

    /// What the end of the process adds.
    fn conclude(&mut self, reached: Reached) {
        self.during = match reached {
            Reached::Nothing => Some("the start of Python".to_owned()),
            Reached::Began(step) => Some(format!("import of {step}")),
            Reached::Started | Reached::Loaded => Some("the tests".to_owned()),
            Reached::End if self.ended == Ended::Exited(0) => None,
            Reached::End => Some("the end of the process".to_owned()),
        };
        if let Some(during) = &self.during {
            let (at, what) = ("process".to_owned(), during.clone());
            self.failures.push(Failure { at, what, seen: self.ended.text() });
        }
    }

    /// What is not shared, by pair of modules: `dyn, static` and `cout, locale::classic`.
    pub fn split(&self) -> BTreeMap<(&str, &str), Vec<&str>> {
        let mut split = BTreeMap::<_, Vec<&str>>::new();
        for identity in self.identities.iter().filter(|identity| !identity.shared) {
            split
                .entry((identity.first.as_str(), identity.second.as_str()))
                .or_default()
                .push(&identity.what);
        }
        split
    }
}

fn step_name(case: &Case, step: usize) -> String {
    case.steps.get(step).map_or_else(|| probe_name(step), crate::case::Step::name)
}

/// How far the driver came.
enum Reached {
    Nothing,
    Started,
    Began(String),
    Loaded,
    End,
}

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", tag = "event")]
enum Event {
    Start,
    Begin { step: usize },
    Loaded,
    Error { step: usize, kind: String, message: String, absent: Option<String> },
    Test { at: String, what: String, outcome: Outcome },
    Cross { from: String, to: String, what: String, outcome: Outcome, expected: Option<String> },
    Identity { first: String, second: String, what: String, shared: bool },
    Check { number: usize, outcome: Outcome },
    Fault { message: String },
    End,
}

/// What came of a question in its child process.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Answer(Value),
    Signal(i32),
    Exit(i32),
    Hang,
}

impl Outcome {
    /// What is wrong, if the answer should be this (no answer if it is `None`).
    fn wrong(&self, expected: Option<&str>) -> Option<String> {
        match self {
            Self::Answer(answer)
                if answer.as_str() == expected && (answer.is_string() || answer.is_null()) =>
            {
                None
            }
            Self::Answer(Value::String(text)) => Some(text.clone()),
            Self::Answer(other) => Some(other.to_string()),
            Self::Signal(number) => Some(signal_name(*number)),
            Self::Exit(code) => Some(format!("exit code {code}")),
            Self::Hang => Some("no answer within the time limit".to_owned()),
        }
    }

    /// Whether an expression holds, and its value.
    fn value(&self) -> (bool, String) {
        if let Self::Answer(Value::Array(parts)) = self
            && let [Value::Bool(holds), Value::String(value)] = parts.as_slice()
        {
            return (*holds, value.clone());
        }
        (false, self.wrong(None).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Mode, Place};

    fn read(record: &str, ended: Ended) -> Happened {
        let case = Case::new(&["a".to_owned(), "b".to_owned()], Mode::Local, Place::Last);
        Happened::read(record, ended, &case, &["1 == 2".to_owned()], String::new())
    }

    #[test]
    fn a_good_end() {
        let record = r#"{"event":"start"}
{"event":"begin","step":0}
{"event":"loaded","step":0}
{"event":"test","at":"a","what":"cout","outcome":{"answer":null}}
{"event":"cross","from":"a","to":"b","what":"throw int","outcome":{"answer":"int"},"expected":"int"}
{"event":"identity","first":"a","second":"b","what":"cout","shared":false}
{"event":"end"}
"#;
        let happened = read(record, Ended::Exited(0));
        assert!(!happened.is_broken() && !happened.is_crossing_broken(), "{happened:?}");
        assert_eq!((happened.passed, happened.crossed), (1, 1));
        assert_eq!(happened.split().into_iter().collect::<Vec<_>>(), [(("a", "b"), vec!["cout"])]);
    }

    #[test]
    fn wrong_values_and_crashes() {
        let record = r#"{"event":"start"}
{"event":"test","at":"a","what":"cout","outcome":{"answer":"\"\" instead of \"1\""}}
{"event":"test","at":"a","what":"regex","outcome":{"signal":6}}
{"event":"cross","from":"a","to":"b","what":"throw int","outcome":{"answer":"..."},"expected":"int"}
{"event":"check","number":0,"outcome":{"answer":[false,"False"]}}
{"event":"end"}"#;
        let happened = read(record, Ended::Exited(0));
        let seen: Vec<&str> = happened.failures.iter().map(|failure| failure.seen.as_str()).collect();
        assert_eq!(seen, ["\"\" instead of \"1\"", "SIGABRT", "False"]);
        assert_eq!(happened.crossings.len(), 1);
        assert_eq!(happened.checks[0].expression, "1 == 2");
    }

    #[test]
    fn a_record_that_stops() {
        let happened =
            read("{\"event\":\"start\"}\n{\"event\":\"begin\",\"step\":1}\n{\"ev", Ended::Signalled(11));
        assert_eq!(happened.during.as_deref(), Some("import of b"));
        assert_eq!(happened.failures[0].seen, "SIGSEGV");
        assert_eq!(read("", Ended::TimedOut).during.as_deref(), Some("the start of Python"));
    }

    #[test]
    fn a_crash_after_everything() {
        let happened = read("{\"event\":\"start\"}\n{\"event\":\"end\"}\n", Ended::Signalled(11));
        assert_eq!(happened.during.as_deref(), Some("the end of the process"));
    }
}
