//! `abiaudit.bindings/1`: its schema is committed, and no form lets a name out of its place.

use std::{env, fs, path::PathBuf};

use abiaudit_report::bindings::model::{
    Astray, Definition, Difference, Edge, Input, Missing, Name, Object, ObjectKind, Opened, Reference, Run,
    SCHEMA, Symbol, System, Unexpected, Unresolved, Via,
};
use abiaudit_report::bindings::{Bindings, BindingsFormat, BindingsOptions, render, schema};
use abiaudit_report::model::Tool;
use serde_json::Value;

/// A name that tries to get out of HTML, a script, DOT and a terminal.
const EVIL: &str = "</script><img src=x onerror=alert(1)>\"];evil[\\\n\u{1b}[31m<!--";

fn name(symbol: &str) -> Name {
    Name {
        symbol: symbol.to_owned(),
        demangled: Some(format!("{symbol}()")),
        version: Some(symbol.to_owned()),
    }
}

fn object(name: &str, kind: ObjectKind) -> Object {
    let distribution = (kind == ObjectKind::File).then(|| name.to_owned());
    Object { name: name.to_owned(), distribution, kind, loader: None, opened: Some(0), global: true }
}

fn sample(text: &str) -> Bindings {
    let owned = || text.to_owned();
    let run = Run {
        order: vec![owned()],
        notes: vec![owned()],
        opened: vec![Opened { name: owned(), global: true, because: owned() }],
        objects: vec![
            object("python", ObjectKind::Python),
            object(text, ObjectKind::File),
            object("b", ObjectKind::File),
        ],
        references: 3,
        edges: vec![
            Edge { from: 1, to: 0, global: 1, local: 0, unique: 0, overridden: 0 },
            Edge { from: 1, to: 2, global: 0, local: 1, unique: 1, overridden: 1 },
        ],
        unexpected: vec![Unexpected {
            from: 1,
            to: 2,
            kind: Astray::Overridden,
            via: Via::Unique,
            leaves_distribution: true,
            symbols: vec![name(text)],
        }],
        folded: 2,
        missing: vec![Missing { name: owned(), from: Some(1), providers: vec![owned()] }],
        unresolved: vec![Unresolved { from: 1, name: name(text), perhaps: vec![owned()] }],
        symbols: None,
    };
    let symbol = Symbol {
        symbol: owned(),
        demangled: None,
        definitions: vec![Definition { object: 2, version: Some(owned()), binding: "weak".to_owned() }],
        references: vec![Reference {
            object: 1,
            version: None,
            provider: None,
            via: Via::Nothing,
            own_definition: false,
        }],
    };
    let second = Run { symbols: Some(vec![symbol]), ..run.clone() };
    Bindings {
        schema: SCHEMA.to_owned(),
        tool: Tool { name: "abiaudit".to_owned(), version: "0".to_owned() },
        inputs: vec![Input { path: owned(), distribution: None, with: false, error: Some(owned()) }],
        system: System {
            arch: "x86_64".to_owned(),
            libc: "glibc".to_owned(),
            libc_release: "2.28".to_owned(),
            gcc_release: "8.1".to_owned(),
        },
        runs: vec![run, second],
        differences: vec![Difference {
            object: owned(),
            providers: vec![None, Some(owned())],
            symbols: vec![name(text)],
        }],
    }
}

fn rendered(format: BindingsFormat, text: &str) -> String {
    let mut out = Vec::new();
    render(format, &sample(text), BindingsOptions::default(), &mut out).expect("memory can be written to");
    String::from_utf8(out).expect("reports are UTF-8")
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let current = schema().to_value();
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/abiaudit.bindings-1.schema.json");
    if env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&current).unwrap())).unwrap();
    }
    let committed: Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    assert!(committed == current, "the schema has changed: UPDATE_SCHEMA=1 cargo test -p abiaudit-report");
}

#[test]
fn samples_fit_the_schema_and_a_broken_one_does_not() {
    let validator = jsonschema::validator_for(&schema().to_value()).unwrap();
    let mut value: Value = serde_json::from_str(&rendered(BindingsFormat::Json, EVIL)).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(value["runs"][0]["objects"][1]["name"], EVIL);
    value["schema"] = "abiaudit.bindings/2".into();
    assert!(!validator.is_valid(&value));
}

#[test]
fn a_page_needs_nothing_else_and_runs_nothing_of_its_data() {
    let page = rendered(BindingsFormat::Html, EVIL);
    // Only the page's own elements: the data, the script that shows them, and the line for browsers without scripts.
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("<img") && !page.contains("<!--"));
    let external = |line: &&str| {
        line.contains("http") && !line.contains("www.w3.org/2000/svg") && !line.contains("http-equiv")
    };
    assert_eq!(page.lines().find(external), None);
    let start = page.find("id=\"data\">").expect("the data") + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").expect("their end");
    let data: Bindings = serde_json::from_str(&page[start..end]).expect("JSON");
    assert_eq!(data, sample(EVIL));
    // Names are set as text.
    assert!(!page.contains("innerHTML") && !page.contains("document.write"));
}

#[test]
fn graphs_quote_their_names() {
    let graph = rendered(BindingsFormat::Dot, EVIL);
    assert_eq!(graph.matches("digraph").count(), 2);
    assert!(graph.contains("n1 -> n2 [label=\"2\", color=red, fontcolor=red];"), "{graph}");
    for line in graph.lines() {
        let unescaped = line.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(unescaped.matches('"').count() % 2, 0, "{line}");
        // What stands outside quotes is the graph's own.
        let outside: String = unescaped.split('"').step_by(2).collect();
        assert!(!outside.contains("evil"), "{line}");
    }
}

#[test]
fn text_steers_no_terminal() {
    let text = rendered(BindingsFormat::Text, EVIL);
    assert!(!text.contains('\u{1b}') && text.contains("\\x1b"), "{text}");
    assert!(text.contains("references that depend on the order: 1"), "{text}");
}
